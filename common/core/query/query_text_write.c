#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

// A line being written.
struct writer {
    char *out;
    size_t size, used;
    bool full;
    bool timeless; // a time has no text
};

static void put(struct writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct writer *writer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = writer->full ? 0
                               : vsnprintf(writer->out + writer->used, writer->size - writer->used,
                                           format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= writer->size - writer->used)
        writer->full = true;
    else
        writer->used += (size_t)n;
}

// Writes a word, with a blank before it unless it is the first.
static void put_word(struct writer *writer, const char *word)
{
    put(writer, "%s%s", writer->used > 0 ? " " : "", word);
}

// In RFC 3339, to the nanosecond where that is not zero.
static void put_time(struct writer *writer, int64_t time_ns)
{
    static const int64_t second_ns = INT64_C(1000000000);
    static const int64_t year_2262_ns = INT64_C(9214646400000000000);
    char text[32];
    if (time_ns < 0 || time_ns >= year_2262_ns) {
        writer->timeless = true;
        return;
    }
    put(writer, " %s", text_from_time(text, sizeof text, "%Y-%m-%dT%H:%M:%S", time_ns));
    if (time_ns % second_ns != 0)
        put(writer, ".%09" PRId64, time_ns % second_ns);
    put(writer, "Z");
}

static void put_filter(struct writer *writer, const struct query_filter *filter)
{
    const char *between = query_clause_word(QUERY_CLAUSE_WHERE);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        if (!filter->by[i][0])
            continue;
        put_word(writer, between);
        put(writer, " %s=", query_dimension_name((enum query_dimension)i));
        writer->full = writer->full || !query_word_write(writer->out, writer->size, &writer->used,
                                                         filter->by[i], false);
        between = "and";
    }
    if (filter->since_ns != 0) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_SINCE));
        put_time(writer, filter->since_ns);
    }
    if (filter->until_ns != 0) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_UNTIL));
        put_time(writer, filter->until_ns);
    }
}

enum status query_text_write_filter(char *out, size_t size, const struct query_filter *filter,
                                    struct error *err)
{
    struct writer writer = {.out = out, .size = size, .full = size == 0};
    if (size > 0)
        out[0] = '\0';
    put_filter(&writer, filter);
    if (writer.timeless)
        return error_set(err, STATUS_UNSUPPORTED,
                         "query: a time before 1970 or behind 2261 has no text");
    if (writer.full)
        return error_set(err, STATUS_FULL, "query: its text is too long");
    return STATUS_OK;
}
