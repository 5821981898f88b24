#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"
#include "common/core/stats/slo.h"

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

static void put_name(struct writer *writer, const char *name, bool in_quotes)
{
    if (writer->full ||
        !query_word_write(writer->out, writer->size, &writer->used, name, in_quotes))
        writer->full = true;
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
    enum { YEAR_LAST = 2261 };
    const time_t seconds = (time_t)(time_ns / second_ns);
    struct tm utc;
    char text[32];
    if (time_ns < 0 || !gmtime_r(&seconds, &utc) || utc.tm_year + 1900 > YEAR_LAST ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        writer->timeless = true;
        return;
    }
    put(writer, " %s", text);
    if (time_ns % second_ns != 0)
        put(writer, ".%09" PRId64, time_ns % second_ns);
    put(writer, "Z");
}

// In the longest unit that holds it whole.
static void put_duration(struct writer *writer, int64_t duration_ns)
{
    static const struct {
        const char *suffix;
        int64_t ns;
    } units[] = {
        {"w", INT64_C(604800000000000)}, {"d", INT64_C(86400000000000)},
        {"h", INT64_C(3600000000000)},   {"m", INT64_C(60000000000)},
        {"s", INT64_C(1000000000)},      {"ms", INT64_C(1000000)},
        {"us", INT64_C(1000)},           {"ns", 1},
    };
    unsigned unit = 0;
    while (duration_ns % units[unit].ns != 0)
        unit++;
    put(writer, " %" PRId64 "%s", duration_ns / units[unit].ns, units[unit].suffix);
}

static void put_ratio(struct writer *writer, double ratio)
{
    char text[TEXT_NUMBER_SIZE];
    put(writer, " %s", text_from_real(text, ratio));
}

static void put_groups(struct writer *writer, const struct query *query)
{
    for (unsigned i = 0; i < query->group_count; i++)
        put(writer, "%c%s", i > 0 ? ',' : ' ', query_dimension_name(query->group_by[i]));
}

static void put_filter(struct writer *writer, const struct query_filter *filter)
{
    const char *between = query_clause_word(QUERY_CLAUSE_WHERE);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        if (!filter->by[i][0])
            continue;
        put_word(writer, between);
        put(writer, " %s=", query_dimension_name((enum query_dimension)i));
        put_name(writer, filter->by[i], false);
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

static bool is_objective(const char *name)
{
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++)
        if (strcmp(slo_name((enum slo_metric)i), name) == 0)
            return true;
    return false;
}

// Whether objectives parse the same without quotes: NAME=DURATION,... only.
static bool is_objectives(const char *slo)
{
    static const enum query_word_kind kinds[] = {QUERY_WORD_TEXT, QUERY_WORD_EQUALS,
                                                 QUERY_WORD_TEXT, QUERY_WORD_COMMA};
    size_t at = 0;
    for (unsigned i = 0;; i = (i + 1) % 4) {
        struct query_word word;
        int64_t duration_ns;
        if (query_word_read(&word, slo, at, NULL) != STATUS_OK || word.quoted ||
            word.place.at != at)
            return false;
        if (i == 3 && word.kind == QUERY_WORD_END)
            return true;
        if (word.kind != kinds[i] || (i == 0 && !is_objective(word.text)) ||
            (i == 2 && parse_duration(&duration_ns, word.text, "slo", NULL) != STATUS_OK))
            return false;
        at += word.place.size;
    }
}

static void put_slo(struct writer *writer, const char *slo)
{
    put(writer, " ");
    if (is_objectives(slo))
        put(writer, "%s", slo);
    else
        put_name(writer, slo, true);
}

// Quotes a name that would parse as the beginning of a clause.
static void put_subject(struct writer *writer, const char *subject)
{
    if (!subject[0])
        return;
    bool is_word = query_dimension_find(subject) != QUERY_DIMENSION_COUNT;
    for (unsigned i = 0; i < QUERY_CLAUSE_COUNT; i++)
        is_word = is_word || strcmp(query_clause_word((enum query_clause)i), subject) == 0;
    put(writer, " ");
    put_name(writer, subject, is_word);
}

// Writes the clauses of the verb except "against".
static void put_clauses(struct writer *writer, const struct query_verb *verb,
                        const struct query *query)
{
    const unsigned takes = verb->clauses;
    if (takes >> QUERY_CLAUSE_BY & 1 && query->group_count > 0) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_BY));
        put_groups(writer, query);
    }
    if (takes >> QUERY_CLAUSE_WHERE & 1)
        put_filter(writer, query->kind == QUERY_COMPARE ? &query->compare.other : &query->filter);
    if (takes >> QUERY_CLAUSE_STEP & 1 && query->step_ns > 0) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_STEP));
        put_duration(writer, query->step_ns);
    }
    if (takes >> QUERY_CLAUSE_SLO & 1 && query->average.slo[0]) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_SLO));
        put_slo(writer, query->average.slo);
    }
    if (takes >> QUERY_CLAUSE_OLDEST & 1 && query->records.oldest_first)
        put_word(writer, query_clause_word(QUERY_CLAUSE_OLDEST));
    if (takes >> QUERY_CLAUSE_LIMIT & 1 && query->limit != 0) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_LIMIT));
        put(writer, " %" PRIu32, query->limit);
    }
    if (takes >> QUERY_CLAUSE_OF & 1 && query->metric[0]) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_OF));
        put_subject(writer, query->metric);
    }
    if (takes >> QUERY_CLAUSE_MARGIN & 1 && query->compare.margin > 0) {
        put_word(writer, query_clause_word(QUERY_CLAUSE_MARGIN));
        put_ratio(writer, query->compare.margin);
    }
    if (takes >> QUERY_CLAUSE_FORCE & 1 && query->compare.force)
        put_word(writer, query_clause_word(QUERY_CLAUSE_FORCE));
}

static bool filters(const struct query_filter *filter)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0])
            return true;
    return filter->since_ns != 0 || filter->until_ns != 0;
}

static struct writer begin(char *out, size_t size)
{
    if (size > 0)
        out[0] = '\0';
    return (struct writer){.out = out, .size = size, .full = size == 0};
}

static enum status finish(const struct writer *writer, struct error *err)
{
    if (writer->timeless)
        return error_set(err, STATUS_UNSUPPORTED,
                         "query: a time before 1970 or behind 2261 has no text");
    if (writer->full)
        return error_set(err, STATUS_FULL, "query: its text is too long");
    return STATUS_OK;
}

enum status query_text_write(char *out, size_t size, const struct query *query, struct error *err)
{
    const struct query_verb *verb = query_verb_of(query);
    if (!verb)
        return error_set(err, STATUS_UNSUPPORTED, "query: this kind has no text");
    struct writer writer = begin(out, size);
    put(&writer, "%s", verb->word);
    const bool compares = verb->subject == QUERY_BASELINE_OR_NONE;
    if (verb->subject != QUERY_NO_SUBJECT)
        put_subject(&writer, compares ? query->compare.baseline[1] : query->metric);
    put_clauses(&writer, verb, query);
    if (compares && (query->compare.baseline[0][0] || filters(&query->filter))) {
        put_word(&writer, query_clause_word(QUERY_CLAUSE_AGAINST));
        put_subject(&writer, query->compare.baseline[0]);
        put_filter(&writer, &query->filter);
    }
    return finish(&writer, err);
}

enum status query_text_write_filter(char *out, size_t size, const struct query_filter *filter,
                                    struct error *err)
{
    struct writer writer = begin(out, size);
    put_filter(&writer, filter);
    return finish(&writer, err);
}
