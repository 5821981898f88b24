// The clauses that only the lines of alerts have.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text_reader.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS    (86400 * SECOND_NS)

static const int64_t window_least_ns = 10 * SECOND_NS;
static const int64_t window_most_ns = 31 * DAY_NS;
static const int64_t for_most_ns = 7 * DAY_NS;

enum status query_reader_alert_dimension(struct query_reader *reader, struct query_place place,
                                         enum query_dimension dimension, bool is_by)
{
    const char *name = query_dimension_name(dimension);
    const enum alert_source source = reader->rule->source;
    if (source != ALERT_SOURCE_NONE) {
        const struct alert_source_info *info = alert_source_info(source);
        if (!is_by && info->grouping >> dimension & 1)
            return STATUS_OK;
        (void)error_set(reader->err, STATUS_INVALID,
                        is_by ? "%s takes no by: its groups are fixed" : "%s has no %s", info->name,
                        name);
        return query_reader_fail(reader, place);
    }
    if (!is_by || dimension == QUERY_BY_MODEL || dimension == QUERY_BY_HOST ||
        dimension == QUERY_BY_DEVICE)
        return STATUS_OK;
    (void)error_set(reader->err, STATUS_INVALID,
                    "alerts are by model, host and device alone, not by %s", name);
    return query_reader_fail(reader, place);
}

// Keeps the error of query_metric_find, unless a source has a name that is as close.
static enum status unknown_subject(struct query_reader *reader)
{
    const char *words[ALERT_SOURCE_COUNT];
    for (int i = 0; i < ALERT_SOURCE_COUNT; i++)
        words[i] = alert_source_info((enum alert_source)i)->name;
    if (parse_nearest(reader->word.text, words, ALERT_SOURCE_COUNT))
        return query_reader_unknown(reader, "metric", words, ALERT_SOURCE_COUNT);
    return query_reader_fail(reader, reader->word.place);
}

enum status query_reader_alert_subject(struct query_reader *reader)
{
    struct alert_rule *rule = reader->rule;
    const struct query_metric *metric = NULL;
    rule->source = alert_source_find(reader->word.text);
    if (rule->source != ALERT_SOURCE_NONE) {
        const struct alert_source_info *info = alert_source_info(rule->source);
        rule->unit = info->unit;
        rule->is_rare = info->is_rare;
        // The name of a metric until the end of the line, as query_check knows no sources.
        (void)snprintf(rule->query.metric, QUERY_TEXT_SIZE, "e2e_ns");
        for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
            if (info->grouping >> i & 1)
                rule->query.group_by[rule->query.group_count++] = (enum query_dimension)i;
        return query_reader_next(reader);
    }
    if (query_metric_find(&metric, reader->word.text, reader->err) != STATUS_OK)
        return unknown_subject(reader);
    rule->unit = metric->unit;
    rule->is_rare = metric->kind == RECORD_KIND_LOAD || metric->kind == RECORD_KIND_LOAD_STAGE ||
                    metric->kind == RECORD_KIND_STARTUP;
    (void)snprintf(rule->query.metric, QUERY_TEXT_SIZE, "%s", reader->word.text);
    return query_reader_next(reader);
}

// ---- Values --------------------------------------------------------------------

static const struct {
    enum unit unit;
    const char *suffix;
    double factor;
} suffixes[] = {
    {UNIT_RATIO, "%", 0.01},
    {UNIT_TOKENS_PER_SECOND, "t/s", 1},
    {UNIT_TOKEN_RATE, "tok/s", 1},
    {UNIT_REQUEST_RATE, "req/s", 1},
    {UNIT_ITEMS_PER_SECOND, "/s", 1},
    {UNIT_BYTES_PER_SECOND, "MB/s", 1 << 20},
    {UNIT_BYTES_PER_SECOND, "GB/s", 1 << 30},
    {UNIT_CELSIUS, "C", 1},
    {UNIT_WATTS, "W", 1},
    {UNIT_JOULES, "J", 1},
    {UNIT_TOKENS_PER_JOULE, "t/J", 1},
    {UNIT_HERTZ, "MHz", 1e6},
    {UNIT_HERTZ, "GHz", 1e9},
    {UNIT_FLOPS, "flop/s", 1},
};

enum { SUFFIX_COUNT = sizeof suffixes / sizeof *suffixes };

// A number, or a number and one of the unit's suffixes.
static bool read_number(double *out, const char *text, enum unit unit)
{
    static const double most = 1e18;
    if (parse_real(out, text, -most, most, "", NULL) == STATUS_OK)
        return true;
    for (unsigned i = 0; i < SUFFIX_COUNT; i++) {
        char number[TEXT_NUMBER_SIZE];
        const size_t size = strlen(text), end = strlen(suffixes[i].suffix);
        if (suffixes[i].unit != unit || size <= end || size - end >= sizeof number ||
            strcmp(text + size - end, suffixes[i].suffix) != 0)
            continue;
        memcpy(number, text, size - end);
        number[size - end] = '\0';
        if (parse_real(out, number, -most, most, "", NULL) == STATUS_OK) {
            *out *= suffixes[i].factor;
            return true;
        }
    }
    return false;
}

static bool read_value(double *out, const char *text, enum unit unit)
{
    int64_t whole = 0;
    bool is_whole = false;
    if (unit == UNIT_TIME)
        return false;
    if (unit == UNIT_DURATION)
        is_whole = parse_duration(&whole, text, "", NULL) == STATUS_OK;
    else if (unit == UNIT_BYTES)
        is_whole = parse_size(&whole, text, 0, "", NULL) == STATUS_OK && text[0] != 'u';
    else
        return read_number(out, text, unit);
    if (is_whole)
        *out = (double)whole;
    return is_whole;
}

// What a value of the unit may look like.
static const char *example(enum unit unit)
{
    for (unsigned i = 0; i < SUFFIX_COUNT; i++)
        if (suffixes[i].unit == unit)
            return suffixes[i].suffix;
    return unit == UNIT_DURATION ? "ms or s" : unit == UNIT_BYTES ? "MB or GB" : "no unit";
}

static enum unit value_unit(const struct alert_rule *rule)
{
    return rule->stat == ALERT_STAT_COUNT ? UNIT_COUNT : rule->unit;
}

static enum status parse_value(struct query_reader *reader, double *out)
{
    const enum unit unit = value_unit(reader->rule);
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a value");
    if (read_value(out, reader->word.text, unit))
        return query_reader_next(reader);
    (void)error_set(reader->err, STATUS_INVALID, "\"%.40s\" is no value in %s (a number with %s)",
                    reader->word.text, *unit_name(unit) ? unit_name(unit) : "numbers",
                    example(unit));
    return query_reader_fail(reader, reader->word.place);
}

// ---- Clauses -------------------------------------------------------------------

static enum status parse_span(struct query_reader *reader, int64_t *out_ns, const char *what,
                              int64_t least_ns, int64_t most_ns)
{
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a duration");
    enum status status = parse_duration(out_ns, reader->word.text, what, reader->err);
    if (status == STATUS_OK && (*out_ns < least_ns || *out_ns > most_ns)) {
        char least[UNIT_TEXT_SIZE], most[UNIT_TEXT_SIZE];
        status = error_set(reader->err, STATUS_INVALID, "%s: the time must be from %s to %s", what,
                           unit_format(least, UNIT_DURATION, (double)least_ns),
                           unit_format(most, UNIT_DURATION, (double)most_ns));
    }
    return status == STATUS_OK ? query_reader_next(reader)
                               : query_reader_fail(reader, reader->word.place);
}

// Metrics of a window of time have a count and one value.
static bool is_of_window(const char *metric)
{
    static const char *const metrics[] = {
        QUERY_METRIC_REQUEST_RATE, QUERY_METRIC_PROMPT_RATE,      QUERY_METRIC_OUTPUT_RATE,
        QUERY_METRIC_ITEM_RATE,    QUERY_METRIC_ERRORS,           QUERY_METRIC_CANCELLED,
        QUERY_METRIC_GOODPUT,      QUERY_METRIC_TOKENS_PER_JOULE, QUERY_METRIC_JOULES_PER_REQUEST,
    };
    for (unsigned i = 0; i < sizeof metrics / sizeof *metrics; i++)
        if (strcmp(metrics[i], metric) == 0)
            return true;
    return false;
}

static enum status parse_stat(struct query_reader *reader)
{
    struct alert_rule *rule = reader->rule;
    const char *names[ALERT_STAT_COUNT_OF];
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a statistic (such as p95, mean, count)");
    unsigned found = ALERT_STAT_COUNT_OF;
    for (unsigned i = 0; i < ALERT_STAT_COUNT_OF; i++) {
        names[i] = alert_stat_name((enum alert_stat)i);
        if (strcmp(names[i], reader->word.text) == 0)
            found = i;
    }
    if (found == ALERT_STAT_COUNT_OF && strpbrk(reader->word.text, "<>")) {
        (void)error_set(reader->err, STATUS_INVALID, "blanks are missing around < or >");
        return query_reader_fail(reader, reader->word.place);
    }
    if (found == ALERT_STAT_COUNT_OF)
        return query_reader_unknown(reader, "statistic", names, ALERT_STAT_COUNT_OF);
    rule->stat = (enum alert_stat)found;
    const bool is_source = rule->source != ALERT_SOURCE_NONE;
    if ((is_source && rule->stat == ALERT_STAT_COUNT) ||
        (is_of_window(rule->query.metric) && rule->stat > ALERT_STAT_MEAN)) {
        (void)error_set(reader->err, STATUS_INVALID,
                        "a window has one value of this metric: say %s",
                        is_source ? "max" : "mean");
        return query_reader_fail(reader, reader->word.place);
    }
    return query_reader_next(reader);
}

static enum status parse_when(struct query_reader *reader)
{
    enum status status = parse_stat(reader);
    if (status != STATUS_OK)
        return status;
    const char *text = reader->word.text;
    if (reader->word.kind != QUERY_WORD_TEXT || (strcmp(text, ">") != 0 && strcmp(text, "<") != 0))
        return query_reader_missing(reader, "> or <");
    reader->rule->is_below = text[0] == '<';
    status = query_reader_next(reader);
    return status == STATUS_OK ? parse_value(reader, &reader->rule->warning) : status;
}

static enum status parse_least(struct query_reader *reader)
{
    int64_t least = 0;
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a number");
    if (parse_int(&least, reader->word.text, 1, INT32_MAX, "least", reader->err) != STATUS_OK)
        return query_reader_fail(reader, reader->word.place);
    reader->rule->least = (uint64_t)least;
    return query_reader_next(reader);
}

static enum status parse_threshold(struct query_reader *reader, double *out,
                                   struct query_place *place)
{
    *place = reader->word.place;
    if (!(reader->seen >> QUERY_CLAUSE_WHEN & 1)) // its statistic tells the unit
        return query_reader_missing(reader, "\"when STAT > VALUE\"");
    return parse_value(reader, out);
}

enum status query_reader_alert_clause(struct query_reader *reader, enum query_clause clause)
{
    struct alert_rule *rule = reader->rule;
    if (clause == QUERY_CLAUSE_OVER)
        return parse_span(reader, &rule->window_ns, "over", window_least_ns, window_most_ns);
    if (clause == QUERY_CLAUSE_FOR)
        return parse_span(reader, &rule->for_ns, "for", 0, for_most_ns);
    if (clause == QUERY_CLAUSE_WHEN)
        return parse_when(reader);
    if (clause == QUERY_CLAUSE_CRITICAL)
        return parse_threshold(reader, &rule->critical, &reader->of_critical);
    if (clause == QUERY_CLAUSE_CLEAR)
        return parse_threshold(reader, &rule->clear, &reader->of_clear);
    assert(clause == QUERY_CLAUSE_LEAST);
    return parse_least(reader);
}

// ---- The line ------------------------------------------------------------------

// Checks the order of the thresholds, and sets `clear` if the line has none.
static enum status check_thresholds(struct query_reader *reader)
{
    struct alert_rule *rule = reader->rule;
    const double sign = rule->is_below ? -1 : 1;
    if (isnan(rule->clear))
        rule->clear = rule->warning - sign * 0.1 * fabs(rule->warning);
    if (!isnan(rule->critical) && sign * (rule->critical - rule->warning) <= 0) {
        (void)error_set(reader->err, STATUS_INVALID, "critical must be %s the threshold",
                        rule->is_below ? "below" : "above");
        return query_reader_fail(reader, reader->of_critical);
    }
    if (sign * (rule->clear - rule->warning) > 0) {
        (void)error_set(reader->err, STATUS_INVALID, "clear must not be %s the threshold",
                        rule->is_below ? "below" : "above");
        return query_reader_fail(reader, reader->of_clear);
    }
    return STATUS_OK;
}

static enum status finish_rule(struct query_reader *reader)
{
    struct alert_rule *rule = reader->rule;
    if (!(reader->seen >> QUERY_CLAUSE_OVER & 1))
        return query_reader_missing(reader, "\"over DURATION\"");
    if (!(reader->seen >> QUERY_CLAUSE_WHEN & 1))
        return query_reader_missing(reader, "\"when STAT > VALUE\"");
    if (rule->source != ALERT_SOURCE_NONE)
        (void)snprintf(rule->query.metric, QUERY_TEXT_SIZE, "%s",
                       alert_source_info(rule->source)->name);
    return check_thresholds(reader);
}

enum status query_text_read_alert(struct alert_rule *out, const char *line, size_t from,
                                  struct query_place *place, struct error *err)
{
    *out =
        (struct alert_rule){.source = ALERT_SOURCE_NONE, .critical = NAN, .clear = NAN, .least = 1};
    struct query_reader reader = {
        .line = line, .query = &out->query, .filter = &out->query.filter, .rule = out};
    enum status status = query_reader_line(&reader, from, true, place, err);
    if (status == STATUS_OK)
        status = finish_rule(&reader);
    if (place)
        *place = reader.place;
    return status;
}

const char *query_text_alert_window(char out[QUERY_WINDOW_SIZE], const char *rule)
{
    struct query_word word = {.kind = QUERY_WORD_END};
    bool is_window = false, is_name;
    int64_t ns;
    out[0] = '\0';
    if (strncmp(rule, "runs_killed ", 12) == 0) // what it tells may be of the day before
        return out;
    do {
        is_name = word.kind != QUERY_WORD_TEXT; // behind "="
        if (query_word_read(&word, rule, word.place.at + word.place.size, NULL) != STATUS_OK)
            return out;
        if (is_window && parse_duration(&ns, word.text, "over", NULL) == STATUS_OK) {
            (void)snprintf(out, QUERY_WINDOW_SIZE, "%.*s", QUERY_WINDOW_SIZE - 1, word.text);
            return out;
        }
        is_window = !is_name && !word.quoted && strcmp(word.text, "over") == 0;
    } while (word.kind != QUERY_WORD_END);
    return out;
}
