// Text writer for metrics pages: Prometheus text format 0.0.4 and OpenMetrics 1.0.0.  Writes to
// memory.  The caller writes each family once, all its samples after it.
//
// The page is valid for any label values: they are escaped, and malformed UTF-8 becomes U+FFFD.
// Names of families and labels, and help texts, are the caller's own and must be valid.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"

enum metrics_type {
    METRICS_GAUGE,
    METRICS_COUNTER,   // samples have the suffix _total
    METRICS_INFO,      // samples have the suffix _info and value 1
    METRICS_HISTOGRAM, // samples have the suffixes _bucket, _sum and _count
};

// The labels of a sample; borrowed.  One with an empty value is the same as none, and is left out.
enum { METRICS_LABELS_MAX = 8 };
struct metrics_labels {
    unsigned count;
    struct {
        const char *name, *value;
    } of[METRICS_LABELS_MAX];
};

// An open page.  The caller may read `samples`; the rest is private.
struct metrics_text {
    uint64_t samples; // written
    bool is_openmetrics;
    FILE *stream;
    char *bytes;
    size_t size;
    const char *family, *help;
    enum metrics_type type;
    bool has_header; // of the family
};

MUST_CHECK enum status metrics_text_open(struct metrics_text *text, bool is_openmetrics);

// Ends the page.  The caller frees `*bytes`, which have a NUL after them.  On failure (out of
// memory) there is nothing to free.
MUST_CHECK enum status metrics_text_close(struct metrics_text *text, char **bytes, size_t *size);

// Begins a family: `name` has no suffix of its type.  Both texts are borrowed until the next
// family.  A family without samples leaves no trace.
void metrics_text_family(struct metrics_text *text, const char *name, enum metrics_type type,
                         const char *help);

// Writes a sample of a gauge, counter or info.  NaN writes nothing.
void metrics_text_sample(struct metrics_text *text, const struct metrics_labels *labels,
                         double value);

// Writes the samples of a histogram: `counts` has one count per bin, not cumulative: of the values
// up to edges[0], of those above it up to edges[1], ..., of those above the last edge.
void metrics_text_histogram(struct metrics_text *text, const struct metrics_labels *labels,
                            const double *edges, unsigned edge_count, const uint64_t *counts,
                            double sum);

// True if the header Accept of a scraper names OpenMetrics.
bool metrics_text_accepts_openmetrics(const char *accept);

// The Content-Type of a page; static.
const char *metrics_text_type(bool is_openmetrics);
