#include "server/collector/exporters/metrics_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"

static void put(FILE *stream, const char *string)
{
    (void)fputs_unlocked(string, stream);
}

static void put_real(FILE *stream, double value)
{
    char number[TEXT_NUMBER_SIZE];
    if (isinf(value))
        put(stream, value > 0 ? "+Inf" : "-Inf");
    else if (value >= 0 && value < 9e15 && value == floor(value))
        (void)fprintf(stream, "%" PRIu64, (uint64_t)value);
    else
        put(stream, text_from_real(number, value));
}

static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '\\' && c != '"';
}

// Puts a text with `\`, line feeds and, if `quotes`, double quotes escaped.
static void put_escaped(FILE *stream, const char *string, bool quotes)
{
    const size_t size = strlen(string);
    size_t length = 0;
    for (size_t at = 0; at < size; at += length) {
        for (length = 0; is_plain(string[at + length]); length++) {
            // Up to the next that is not, or the end.
        }
        if (length == 0) {
            length = text_character(string + at, size - at, NULL);
            if (string[at] == '\\' || (quotes && string[at] == '"'))
                put(stream, "\\");
        }
        if (length == 0)
            put(stream, "\xEF\xBF\xBD");
        else if (string[at] == '\n')
            put(stream, "\\n");
        else
            (void)fwrite_unlocked(string + at, 1, length, stream);
        length += length == 0;
    }
}

// Puts labels in braces; `edge`, of a bucket, is the last one; NULL: none.
static void put_labels(FILE *stream, const struct metrics_labels *labels, const char *edge)
{
    const char *before = "{";
    for (unsigned i = 0; labels && i < labels->count; i++) {
        if (!labels->of[i].value[0])
            continue;
        put(stream, before);
        put(stream, labels->of[i].name);
        put(stream, "=\"");
        put_escaped(stream, labels->of[i].value, true);
        before = "\",";
    }
    if (edge) {
        put(stream, before);
        put(stream, "le=\"");
        put(stream, edge);
    }
    if (edge || before[0] == '"')
        put(stream, "\"}");
}

static const char *suffix_of(enum metrics_type type)
{
    return type == METRICS_COUNTER ? "_total" : type == METRICS_INFO ? "_info" : "";
}

static void put_header(struct metrics_text *text)
{
    static const char *const names[] = {"gauge", "counter", "info", "histogram"};
    // Text 0.0.4 knows no infos, and names a family as its samples.
    const char *suffix = text->is_openmetrics ? "" : suffix_of(text->type);
    const enum metrics_type type =
        text->type == METRICS_INFO && !text->is_openmetrics ? METRICS_GAUGE : text->type;
    (void)fprintf(text->stream, "# HELP %s%s ", text->family, suffix);
    put_escaped(text->stream, text->help, text->is_openmetrics);
    (void)fprintf(text->stream, "\n# TYPE %s%s %s\n", text->family, suffix, names[type]);
    text->has_header = true;
}

void metrics_text_family(struct metrics_text *text, const char *name, enum metrics_type type,
                         const char *help)
{
    text->family = name;
    text->type = type;
    text->help = help;
    text->has_header = false;
}

static void put_sample(struct metrics_text *text, const char *suffix,
                       const struct metrics_labels *labels, const char *edge, double value)
{
    if (!text->has_header)
        put_header(text);
    put(text->stream, text->family);
    put(text->stream, suffix);
    put_labels(text->stream, labels, edge);
    put(text->stream, " ");
    put_real(text->stream, value);
    put(text->stream, "\n");
    text->samples++;
}

void metrics_text_sample(struct metrics_text *text, const struct metrics_labels *labels,
                         double value)
{
    if (!isnan(value))
        put_sample(text, suffix_of(text->type), labels, NULL, value);
}

void metrics_text_histogram(struct metrics_text *text, const struct metrics_labels *labels,
                            const double *edges, unsigned edge_count, const uint64_t *counts,
                            double sum)
{
    char edge[TEXT_NUMBER_SIZE + 2] = "";
    uint64_t count = 0;
    for (unsigned i = 0; i < edge_count; i++) {
        count += counts[i];
        (void)text_from_real(edge, edges[i]);
        // OpenMetrics wants a point in `le`; with it in both formats, a series has one name.
        if (!strpbrk(edge, ".e"))
            (void)strcat(edge, ".0");
        put_sample(text, "_bucket", labels, edge, (double)count);
    }
    count += counts[edge_count];
    put_sample(text, "_bucket", labels, "+Inf", (double)count);
    put_sample(text, "_sum", labels, NULL, sum);
    put_sample(text, "_count", labels, NULL, (double)count);
}

enum status metrics_text_open(struct metrics_text *text, bool is_openmetrics)
{
    *text = (struct metrics_text){.is_openmetrics = is_openmetrics};
    text->stream = open_memstream(&text->bytes, &text->size);
    return text->stream ? STATUS_OK : STATUS_NOMEM;
}

enum status metrics_text_close(struct metrics_text *text, char **bytes, size_t *size)
{
    if (text->is_openmetrics)
        put(text->stream, "# EOF\n");
    const bool has_failed = ferror(text->stream) != 0;
    if (fclose(text->stream) != 0 || has_failed) {
        free(text->bytes);
        return STATUS_NOMEM;
    }
    *bytes = text->bytes;
    *size = text->size;
    return STATUS_OK;
}

bool metrics_text_accepts_openmetrics(const char *accept)
{
    return strcasestr(accept, "application/openmetrics-text") != NULL;
}

const char *metrics_text_type(bool is_openmetrics)
{
    return is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8";
}
