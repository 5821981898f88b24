#include "server/collector/exporters/metrics_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"

enum { FIRST_ROOM = 256, COUNT_SIZE = 20 };

// ---- The buffer -------------------------------------------------------------------------------

// Makes room for `size` bytes and a NUL; false when out of memory.
static bool reserve(struct metrics_text *text, size_t size)
{
    if (text->has_failed)
        return false;
    if (text->room - text->size > size)
        return true;
    size_t room = text->room ? text->room : FIRST_ROOM;
    while (room - text->size <= size)
        room *= 2;
    char *bytes = realloc(text->bytes, room);
    if (!bytes) {
        text->has_failed = true;
        return false;
    }
    text->bytes = bytes;
    text->room = room;
    return true;
}

static void put(struct metrics_text *text, const char *bytes, size_t size)
{
    if (!reserve(text, size))
        return;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

static void put_text(struct metrics_text *text, const char *string)
{
    put(text, string, strlen(string));
}

static void put_count(struct metrics_text *text, uint64_t value)
{
    char digits[COUNT_SIZE];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    put(text, digits + at, sizeof digits - at);
}

static void put_real(struct metrics_text *text, double value)
{
    char number[TEXT_NUMBER_SIZE];
    if (isinf(value))
        put_text(text, value > 0 ? "+Inf" : "-Inf");
    else if (value >= 0 && value < 9e15 && value == floor(value))
        put_count(text, (uint64_t)value);
    else
        put_text(text, text_from_real(number, value));
}

// Puts a text with `\`, line feeds and, if `quotes`, double quotes escaped.
static void put_escaped(struct metrics_text *text, const char *string, bool quotes)
{
    const size_t size = strlen(string);
    size_t length = 0;
    for (size_t at = 0; at < size; at += length) {
        length = text_character(string + at, size - at, NULL);
        if (length == 0) {
            put_text(text, "\xEF\xBF\xBD");
            length = 1;
        } else if (string[at] == '\n') {
            put_text(text, "\\n");
        } else if (string[at] == '\\' || (quotes && string[at] == '"')) {
            put(text, "\\", 1);
            put(text, string + at, 1);
        } else {
            put(text, string + at, length);
        }
    }
}

void metrics_text_deinit(struct metrics_text *text)
{
    free(text->bytes);
    *text = (struct metrics_text){.is_openmetrics = text->is_openmetrics};
}

// ---- Families -----------------------------------------------------------------------------------

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
    put_text(text, "# HELP ");
    put_text(text, text->family);
    put_text(text, suffix);
    put(text, " ", 1);
    put_escaped(text, text->help, text->is_openmetrics);
    put_text(text, "\n# TYPE ");
    put_text(text, text->family);
    put_text(text, suffix);
    put(text, " ", 1);
    put_text(text, names[type]);
    put(text, "\n", 1);
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

// Puts all of a sample before its value.
static void begin_sample(struct metrics_text *text, const char *suffix, const char *labels)
{
    if (!text->has_header)
        put_header(text);
    put_text(text, text->family);
    put_text(text, suffix);
    if (labels) {
        put(text, "{", 1);
        put_text(text, labels);
        put(text, "}", 1);
    }
    put(text, " ", 1);
    text->samples++;
}

void metrics_text_sample(struct metrics_text *text, const char *labels, double value)
{
    if (isnan(value))
        return;
    begin_sample(text, suffix_of(text->type), labels);
    put_real(text, value);
    put(text, "\n", 1);
}

// OpenMetrics wants a point in `le`; with it in both formats, a series has one name.
static void put_edge(struct metrics_text *text, double edge)
{
    char number[TEXT_NUMBER_SIZE];
    put_text(text, text_from_real(number, edge));
    if (!strpbrk(number, ".e"))
        put_text(text, ".0");
}

void metrics_text_histogram(struct metrics_text *text, const char *labels, const double *edges,
                            unsigned edge_count, const uint64_t *counts, double sum)
{
    uint64_t count = 0;
    if (!text->has_header)
        put_header(text);
    for (unsigned i = 0; i <= edge_count; i++) {
        count += counts[i];
        put_text(text, text->family);
        put_text(text, "_bucket{");
        if (labels) {
            put_text(text, labels);
            put(text, ",", 1);
        }
        put_text(text, "le=\"");
        if (i < edge_count)
            put_edge(text, edges[i]);
        else
            put_text(text, "+Inf");
        put_text(text, "\"} ");
        put_count(text, count);
        put(text, "\n", 1);
        text->samples++;
    }
    begin_sample(text, "_sum", labels);
    put_real(text, sum);
    put(text, "\n", 1);
    begin_sample(text, "_count", labels);
    put_count(text, count);
    put(text, "\n", 1);
}

void metrics_text_end(struct metrics_text *text)
{
    if (text->is_openmetrics)
        put_text(text, "# EOF\n");
}

// ---- Formats ------------------------------------------------------------------------------------

bool metrics_text_accepts_openmetrics(const char *accept)
{
    return strcasestr(accept, "application/openmetrics-text") != NULL;
}

const char *metrics_text_type(bool is_openmetrics)
{
    return is_openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                          : "text/plain; version=0.0.4; charset=utf-8";
}

// ---- Labels -------------------------------------------------------------------------------------

void metrics_labels_clear(struct metrics_labels *labels)
{
    labels->text.size = 0;
}

void metrics_labels_deinit(struct metrics_labels *labels)
{
    metrics_text_deinit(&labels->text);
}

void metrics_labels_add(struct metrics_labels *labels, const char *name, const char *value)
{
    struct metrics_text *text = &labels->text;
    if (!value[0])
        return;
    if (text->size > 0)
        put(text, ",", 1);
    put_text(text, name);
    put_text(text, "=\"");
    put_escaped(text, value, true);
    put(text, "\"", 1);
    if (reserve(text, 1))
        text->bytes[text->size] = '\0';
}

const char *metrics_labels_text(const struct metrics_labels *labels)
{
    return labels->text.size > 0 && !labels->text.has_failed ? labels->text.bytes : NULL;
}
