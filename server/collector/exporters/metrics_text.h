// Text writer for metrics pages: Prometheus text format 0.0.4 and OpenMetrics 1.0.0.  Pure: fills
// a buffer.  The caller writes each family once, all its samples after it.
//
// The page is valid for any label values: they are escaped, and malformed UTF-8 becomes U+FFFD.
// Names of families and labels, and help texts, are the caller's own and must be valid.
#ifndef INFERSTAT_COLLECTOR_METRICS_TEXT_H
#define INFERSTAT_COLLECTOR_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metrics_type {
    METRICS_GAUGE,
    METRICS_COUNTER,   // samples have the suffix _total
    METRICS_INFO,      // samples have the suffix _info and value 1
    METRICS_HISTOGRAM, // samples have the suffixes _bucket, _sum and _count
};

// Set `is_openmetrics`, the rest zero.  The members up to `has_failed` may be read.
struct metrics_text {
    bool is_openmetrics;
    char *bytes; // from malloc; the caller frees it, or metrics_text_deinit
    size_t size;
    uint64_t samples; // written
    bool has_failed;  // out of memory: the text is incomplete
    size_t room;      // the rest is private
    const char *family, *help;
    enum metrics_type type;
    bool has_header; // of the family
};

void metrics_text_deinit(struct metrics_text *text);

// Begins a family: `name` has no suffix of its type.  Both texts are borrowed until the next
// family.  A family without samples leaves no trace.
void metrics_text_family(struct metrics_text *text, const char *name, enum metrics_type type,
                         const char *help);

// Writes a sample of a gauge, counter or info.  `labels` is the text of a struct metrics_labels;
// NULL: none.  NaN writes nothing.
void metrics_text_sample(struct metrics_text *text, const char *labels, double value);

// Writes the samples of a histogram: `counts` has one count per bin, not cumulative: of the values
// up to edges[0], of those above it up to edges[1], ..., of those above the last edge.
void metrics_text_histogram(struct metrics_text *text, const char *labels, const double *edges,
                            unsigned edge_count, const uint64_t *counts, double sum);

// Ends the page.
void metrics_text_end(struct metrics_text *text);

// True if the header Accept of a scraper names OpenMetrics.
bool metrics_text_accepts_openmetrics(const char *accept);

// The Content-Type of a page; static.
const char *metrics_text_type(bool is_openmetrics);

// ---- Labels ---------------------------------------------------------------------------------

// The labels of a sample, `host="a",model="b"`.  Initially zero.  The text is valid until the
// labels are changed; NULL when out of memory, or without labels.
struct metrics_labels {
    struct metrics_text text;
};

void metrics_labels_clear(struct metrics_labels *labels); // keeps the memory
void metrics_labels_deinit(struct metrics_labels *labels);
// Adds a label; one with an empty value is the same as none, and is left out.
void metrics_labels_add(struct metrics_labels *labels, const char *name, const char *value);
const char *metrics_labels_text(const struct metrics_labels *labels);

#endif
