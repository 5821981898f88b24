#include "common/core/query/query_text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text_reader.h"
#include "common/core/stats/slo.h"

// ---- Words known ---------------------------------------------------------------

#define BIT(clause) (1U << QUERY_CLAUSE_##clause)

enum {
    WINDOW = BIT(WHERE) | BIT(SINCE) | BIT(UNTIL),
    LISTING = WINDOW | BIT(OLDEST) | BIT(LIMIT),
};

#define RECORDS_VERB(record, table, plural, text)                                                  \
    {.word = plural,                                                                               \
     .kind = QUERY_RECORDS,                                                                        \
     .record_kind = RECORD_KIND_##record,                                                          \
     .clauses = LISTING},

static const struct query_verb verbs[] = {
    {"avg", QUERY_AVERAGE, 0, QUERY_METRIC, WINDOW | BIT(BY) | BIT(STEP) | BIT(SLO) | BIT(LIMIT)},
    {"summary", QUERY_SUMMARY, 0, QUERY_NO_SUBJECT, WINDOW},
    {"overview", QUERY_OVERVIEW, 0, QUERY_NO_SUBJECT, WINDOW},
    {"audit", QUERY_AUDIT, 0, QUERY_NO_SUBJECT, WINDOW},
    {"slowest", QUERY_SLOWEST, 0, QUERY_METRIC_OR_NONE, WINDOW | BIT(LIMIT)},
    {"now", QUERY_NOW, 0, QUERY_NO_SUBJECT, WINDOW | BIT(BY)},
    {"why", QUERY_WHY, 0, QUERY_NO_SUBJECT, BIT(WHERE) | BIT(SINCE)},
    {"stages", QUERY_STAGES, 0, QUERY_NO_SUBJECT, WINDOW | BIT(BY) | BIT(LIMIT)},
    {"errors", QUERY_ERRORS, 0, QUERY_NO_SUBJECT, WINDOW | BIT(BY) | BIT(LIMIT)},
    {"health", QUERY_DEVICE_HEALTH, 0, QUERY_NO_SUBJECT, WINDOW | BIT(LIMIT)},
    {"hosts", QUERY_HOST_HEALTH, 0, QUERY_NO_SUBJECT, WINDOW | BIT(LIMIT)},
    {"events", QUERY_EVENTS, 0, QUERY_NO_SUBJECT, WINDOW | BIT(LIMIT)},
    {"fleet", QUERY_FLEET, 0, QUERY_METRIC_OR_NONE, WINDOW | BIT(LIMIT)},
    {"baselines", QUERY_BASELINES, 0, QUERY_NO_SUBJECT, 0},
    {"compare", QUERY_COMPARE, 0, QUERY_BASELINE_OR_NONE,
     WINDOW | BIT(OF) | BIT(MARGIN) | BIT(FORCE) | BIT(AGAINST)},
    {"event", QUERY_RECORDS, RECORD_KIND_EVENT, QUERY_NO_SUBJECT, LISTING}, // before its plural
    {"samples", QUERY_RECORDS, RECORD_KIND_PROCESS_SAMPLE, QUERY_NO_SUBJECT, LISTING},
    RECORD_KINDS(RECORDS_VERB)};

enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static const char *const clause_words[QUERY_CLAUSE_COUNT] = {
#define CLAUSE_WORD(name, word) [QUERY_CLAUSE_##name] = word,
    QUERY_CLAUSES(CLAUSE_WORD)
#undef CLAUSE_WORD
};

const struct query_verb *query_verbs(unsigned *count)
{
    *count = VERB_COUNT;
    return verbs;
}

const char *query_clause_word(enum query_clause clause)
{
    assert((unsigned)clause < QUERY_CLAUSE_COUNT);
    return clause_words[clause];
}

const struct query_verb *query_verb_of(const struct query *query)
{
    for (unsigned i = 0; i < VERB_COUNT; i++)
        if (verbs[i].kind == query->kind &&
            (query->kind != QUERY_RECORDS || verbs[i].record_kind == query->records.kind))
            return &verbs[i];
    return NULL;
}

const struct query_verb *query_verb_find(const char *word)
{
    for (unsigned i = 0; i < VERB_COUNT; i++) {
        const struct record_kind_info *info = record_kind_info(verbs[i].record_kind);
        if (strcmp(verbs[i].word, word) == 0 ||
            (strcmp(verbs[i].word, info->plural) == 0 && strcmp(info->name, word) == 0))
            return &verbs[i];
    }
    return NULL;
}

// The clause that the next word begins; QUERY_CLAUSE_COUNT: none.  The words of rules' clauses are
// names in other lines.
static unsigned find_clause(const struct query_reader *reader)
{
    const unsigned known = reader->rule ? QUERY_CLAUSE_COUNT : QUERY_CLAUSES_OF_QUERIES;
    for (unsigned clause = 0; clause < known && !reader->word.quoted; clause++)
        if (strcmp(clause_words[clause], reader->word.text) == 0)
            return clause;
    return QUERY_CLAUSE_COUNT;
}

// ---- Reading -------------------------------------------------------------------

enum status query_reader_fail(struct query_reader *reader, struct query_place place)
{
    char raw[ERROR_TEXT_SIZE];
    struct error *err = reader->err;
    reader->place = place;
    (void)error_prefix(err, STATUS_INVALID, "column %zu", query_column(reader->line, place.at));
    memcpy(raw, err->text, sizeof raw);
    (void)text_escape(err->text, sizeof err->text, raw, strlen(raw));
    return STATUS_INVALID;
}

// Fails because `what` occurs twice.
static enum status given_twice(struct query_reader *reader, struct query_place place,
                               const char *what)
{
    (void)error_set(reader->err, STATUS_INVALID, "%s is given twice", what);
    return query_reader_fail(reader, place);
}

enum status query_reader_next(struct query_reader *reader)
{
    const size_t from = reader->word.place.at + reader->word.place.size;
    if (query_word_read(&reader->word, reader->line, from, reader->err) != STATUS_OK)
        return query_reader_fail(reader, reader->word.place);
    return STATUS_OK;
}

enum { SHOWN_MAX = 60 }; // bytes of a word that a message repeats

static int shown_size(const struct query_word *word)
{
    return (int)text_cut(word->text, strlen(word->text), SHOWN_MAX);
}

enum status query_reader_unknown(struct query_reader *reader, const char *what,
                                 const char *const *words, unsigned count)
{
    const char *text = reader->word.text;
    const char *nearest = parse_nearest(text, words, count);
    char all[ERROR_TEXT_SIZE] = "";
    for (unsigned i = 0; i < count; i++)
        (void)text_append(all, sizeof all, ", ", "%s", words[i]);
    (void)error_set(reader->err, STATUS_INVALID, "unknown %s \"%.*s\" (%s%s%s)", what,
                    shown_size(&reader->word), text, nearest ? "did you mean " : "one of ",
                    nearest ? nearest : all, nearest ? "?" : "");
    return query_reader_fail(reader, reader->word.place);
}

enum status query_reader_missing(struct query_reader *reader, const char *wanted)
{
    if (reader->word.kind == QUERY_WORD_END)
        (void)error_set(reader->err, STATUS_INVALID, "%s is missing", wanted);
    else
        (void)error_set(reader->err, STATUS_INVALID, "%s is missing before \"%.*s\"", wanted,
                        shown_size(&reader->word), reader->word.text);
    return query_reader_fail(reader, reader->word.place);
}

static enum status copy_word(struct query_reader *reader, char *out, size_t size, const char *what)
{
    const size_t length = strlen(reader->word.text);
    if (length == 0 || length >= size) {
        (void)error_set(reader->err, STATUS_INVALID,
                        length == 0 ? "the name of a %s is empty" : "the name of a %s is too long",
                        what);
        return query_reader_fail(reader, reader->word.place);
    }
    memcpy(out, reader->word.text, length + 1);
    return query_reader_next(reader);
}

static enum status parse_dimension(struct query_reader *reader, enum query_dimension *out)
{
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a dimension (such as model, host, device)");
    *out = query_dimension_find(reader->word.text);
    if (*out != QUERY_DIMENSION_COUNT)
        return query_reader_next(reader);
    const char *names[QUERY_DIMENSION_COUNT];
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        names[i] = query_dimension_name((enum query_dimension)i);
    return query_reader_unknown(reader, "dimension", names, QUERY_DIMENSION_COUNT);
}

static enum status parse_by(struct query_reader *reader)
{
    struct query *query = reader->query;
    for (;;) {
        const struct query_word word = reader->word;
        enum query_dimension dimension;
        enum status status = parse_dimension(reader, &dimension);
        if (status != STATUS_OK)
            return status;
        if (reader->rule &&
            query_reader_alert_dimension(reader, word.place, dimension, true) != STATUS_OK)
            return STATUS_INVALID;
        for (unsigned i = 0; i < query->group_count; i++)
            if (query->group_by[i] == dimension)
                return given_twice(reader, word.place, word.text);
        query->group_by[query->group_count++] = dimension;
        if (reader->word.kind != QUERY_WORD_COMMA)
            return STATUS_OK;
        status = query_reader_next(reader);
        if (status != STATUS_OK)
            return status;
    }
}

// Finds a word that is none of the dimension's enumeration; parse_clause finds what is no number.
static enum status check_value(struct query_reader *reader, enum query_dimension dimension)
{
    const char *names[8];
    unsigned count = 0;
    const enum column_type type = query_dimension_words(dimension);
    while (count < 8 && (names[count] = column_enum_text(type, count)))
        count++;
    return count == 0 || query_dimension_number(dimension, reader->word.text) >= 0
               ? STATUS_OK
               : query_reader_unknown(reader, query_dimension_name(dimension), names, count);
}

// DIMENSION=NAME.
static enum status parse_condition(struct query_reader *reader)
{
    const struct query_word word = reader->word;
    enum query_dimension dimension;
    enum status status = parse_dimension(reader, &dimension);
    if (status != STATUS_OK)
        return status;
    if (reader->rule &&
        query_reader_alert_dimension(reader, word.place, dimension, false) != STATUS_OK)
        return STATUS_INVALID;
    char *name = reader->filter->by[dimension];
    if (name[0])
        return given_twice(reader, word.place, word.text);
    if (reader->word.kind != QUERY_WORD_EQUALS)
        return query_reader_missing(reader, "=");
    status = query_reader_next(reader);
    if (status == STATUS_OK && reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a name");
    if (status == STATUS_OK)
        status = check_value(reader, dimension);
    return status == STATUS_OK ? copy_word(reader, name, QUERY_TEXT_SIZE, word.text) : status;
}

static bool is_and(const struct query_word *word)
{
    return word->kind == QUERY_WORD_TEXT && !word->quoted && strcmp(word->text, "and") == 0;
}

static enum status parse_where(struct query_reader *reader)
{
    enum status status = parse_condition(reader);
    while (status == STATUS_OK && is_and(&reader->word)) {
        status = query_reader_next(reader);
        if (status == STATUS_OK)
            status = parse_condition(reader);
    }
    return status;
}

// "14:30" after "2026-03-29" belongs to the time.
static bool is_time_of_day(const struct query_word *word)
{
    const char *text = word->text;
    return word->kind == QUERY_WORD_TEXT && !word->quoted && text[0] >= '0' && text[0] <= '9' &&
           text[1] >= '0' && text[1] <= '9' && text[2] == ':';
}

static enum status parse_time(struct query_reader *reader, int64_t *out_ns, bool latest)
{
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a time");
    char text[2 * QUERY_TEXT_SIZE];
    struct query_place place = reader->word.place;
    int used = snprintf(text, sizeof text, "%s", reader->word.text);
    enum status status = query_reader_next(reader);
    if (status == STATUS_OK && used > 0 && is_time_of_day(&reader->word)) {
        (void)snprintf(text + used, sizeof text - (size_t)used, " %s", reader->word.text);
        place.size = reader->word.place.at + reader->word.place.size - place.at;
        status = query_reader_next(reader);
    }
    if (status != STATUS_OK)
        return status;
    return reader->when(reader->context, out_ns, text, latest, reader->err) == STATUS_OK
               ? STATUS_OK
               : query_reader_fail(reader, place);
}

static enum status parse_since(struct query_reader *reader)
{
    return parse_time(reader, &reader->filter->since_ns, false);
}

static enum status parse_until(struct query_reader *reader)
{
    return parse_time(reader, &reader->filter->until_ns, true);
}

static enum status parse_step(struct query_reader *reader)
{
    int64_t *step_ns = &reader->query->step_ns;
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a duration");
    enum status status = parse_duration(step_ns, reader->word.text, "step", reader->err);
    if (status == STATUS_OK && *step_ns == 0)
        status = error_set(reader->err, STATUS_INVALID, "step: the time must be above zero");
    return status == STATUS_OK ? query_reader_next(reader)
                               : query_reader_fail(reader, reader->word.place);
}

static enum status append_objective(struct query_reader *reader, size_t *used)
{
    char *slo = reader->query->average.slo;
    const size_t size = strlen(reader->word.text);
    if (size >= QUERY_TEXT_SIZE - *used) {
        (void)error_set(reader->err, STATUS_INVALID, "slo: too long (at most 255 bytes)");
        return query_reader_fail(reader, reader->word.place);
    }
    memcpy(slo + *used, reader->word.text, size + 1);
    *used += size;
    return query_reader_next(reader);
}

static enum status check_objective(struct query_reader *reader)
{
    const char *names[SLO_METRIC_COUNT];
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++) {
        names[i] = slo_name((enum slo_metric)i);
        if (strcmp(names[i], reader->word.text) == 0)
            return STATUS_OK;
    }
    return query_reader_unknown(reader, "objective", names, SLO_METRIC_COUNT);
}

// NAME=DURATION,..., stored as written; in quotes any text.
static enum status parse_slo(struct query_reader *reader)
{
    if (reader->word.kind == QUERY_WORD_TEXT && reader->word.quoted)
        return copy_word(reader, reader->query->average.slo, QUERY_TEXT_SIZE, "slo");
    static const enum query_word_kind kinds[] = {QUERY_WORD_TEXT, QUERY_WORD_EQUALS,
                                                 QUERY_WORD_TEXT};
    static const char *const wanted[] = {"an objective (such as ttft=200ms)", "=", "a duration"};
    size_t used = 0;
    for (;;) {
        for (unsigned i = 0; i < 3; i++) {
            int64_t duration_ns;
            if (reader->word.kind != kinds[i] || reader->word.quoted)
                return query_reader_missing(reader, wanted[i]);
            if (i == 0 && check_objective(reader) != STATUS_OK)
                return STATUS_INVALID;
            if (i == 2 &&
                parse_duration(&duration_ns, reader->word.text, "slo", reader->err) != STATUS_OK)
                return query_reader_fail(reader, reader->word.place);
            enum status status = append_objective(reader, &used);
            if (status != STATUS_OK)
                return status;
        }
        if (reader->word.kind != QUERY_WORD_COMMA)
            return STATUS_OK;
        enum status status = append_objective(reader, &used);
        if (status != STATUS_OK)
            return status;
    }
}

static enum status parse_limit(struct query_reader *reader)
{
    int64_t limit = 0;
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a number");
    if (parse_int(&limit, reader->word.text, 0, UINT32_MAX, "limit", reader->err) != STATUS_OK)
        return query_reader_fail(reader, reader->word.place);
    reader->query->limit = (uint32_t)limit;
    return query_reader_next(reader);
}

static enum status parse_oldest(struct query_reader *reader)
{
    reader->query->records.oldest_first = true;
    return STATUS_OK;
}

static enum status parse_force(struct query_reader *reader)
{
    reader->query->compare.force = true;
    return STATUS_OK;
}

static enum status parse_metric(struct query_reader *reader)
{
    const struct query_metric *metric;
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "METRIC");
    if (reader->rule)
        return query_reader_alert_subject(reader);
    if (query_metric_find(&metric, reader->word.text, reader->err) != STATUS_OK)
        return query_reader_fail(reader, reader->word.place);
    return copy_word(reader, reader->query->metric, QUERY_TEXT_SIZE, "metric");
}

static enum status parse_margin(struct query_reader *reader)
{
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a ratio");
    if (parse_ratio(&reader->query->compare.margin, reader->word.text, "margin", reader->err) !=
        STATUS_OK)
        return query_reader_fail(reader, reader->word.place);
    return query_reader_next(reader);
}

// query_check, without the prefix "query: " in messages.
static bool is_sound(struct query_reader *reader)
{
    static const char prefix[] = "query: ";
    if (query_check(reader->query, reader->err) == STATUS_OK)
        return true;
    char *text = reader->err->text;
    if (strncmp(text, prefix, strlen(prefix)) == 0)
        memmove(text, text + strlen(prefix), strlen(text + strlen(prefix)) + 1);
    return false;
}

// A baseline, unless the next word begins a clause.
static enum status parse_baseline(struct query_reader *reader)
{
    if (reader->word.kind != QUERY_WORD_TEXT || find_clause(reader) != QUERY_CLAUSE_COUNT ||
        (!reader->word.quoted && query_dimension_find(reader->word.text) != QUERY_DIMENSION_COUNT))
        return STATUS_OK;
    const struct query_place place = reader->word.place;
    enum status status = copy_word(reader, reader->baseline, QUERY_KEY_SIZE, "baseline");
    return status == STATUS_OK && !is_sound(reader) ? query_reader_fail(reader, place) : status;
}

// The clauses that follow apply to the first side of the comparison.
static enum status parse_against(struct query_reader *reader)
{
    reader->filter = &reader->query->filter;
    reader->baseline = reader->query->compare.baseline[0];
    reader->seen &= ~(unsigned)WINDOW;
    return parse_baseline(reader);
}

static enum status (*const parsers[QUERY_CLAUSES_OF_QUERIES])(struct query_reader *) = {
    [QUERY_CLAUSE_BY] = parse_by,         [QUERY_CLAUSE_WHERE] = parse_where,
    [QUERY_CLAUSE_SINCE] = parse_since,   [QUERY_CLAUSE_UNTIL] = parse_until,
    [QUERY_CLAUSE_STEP] = parse_step,     [QUERY_CLAUSE_SLO] = parse_slo,
    [QUERY_CLAUSE_OLDEST] = parse_oldest, [QUERY_CLAUSE_LIMIT] = parse_limit,
    [QUERY_CLAUSE_OF] = parse_metric,     [QUERY_CLAUSE_MARGIN] = parse_margin,
    [QUERY_CLAUSE_FORCE] = parse_force,   [QUERY_CLAUSE_AGAINST] = parse_against,
};

// The length of a number that a blank separates from this word, its unit, as in "100 ms".
static int size_of_number(const struct query_reader *reader)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "h", "d", "%"};
    const char *end = reader->line + reader->word.place.at;
    int size = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(reader->word.text, units[i]) == 0 && end - reader->line > 1 && end[-1] == ' ')
            while (end - 2 - size >= reader->line && strchr("0123456789.", end[-2 - size]))
                size++;
    return size;
}

static enum status unknown_word(struct query_reader *reader)
{
    const int size = size_of_number(reader);
    if (size > 0) {
        (void)error_set(reader->err, STATUS_INVALID, "unknown word \"%s\" (write %.*s%s)",
                        reader->word.text, size, reader->line + reader->word.place.at - 1 - size,
                        reader->word.text);
        return query_reader_fail(reader, reader->word.place);
    }
    const char *words[QUERY_CLAUSE_COUNT + QUERY_DIMENSION_COUNT];
    unsigned count = 0;
    for (unsigned i = 0; i < QUERY_CLAUSE_COUNT; i++)
        if (reader->clauses >> i & 1)
            words[count++] = clause_words[i];
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT && reader->clauses & BIT(WHERE); i++)
        words[count++] = query_dimension_name((enum query_dimension)i);
    return query_reader_unknown(reader, "word", words, count);
}

// Finds the clause that begins here; "where" is optional before a condition.
static enum status begin_clause(struct query_reader *reader, unsigned *clause)
{
    const struct query_word word = reader->word;
    *clause = find_clause(reader);
    const bool is_condition = *clause == QUERY_CLAUSE_COUNT && word.kind == QUERY_WORD_TEXT &&
                              !word.quoted &&
                              query_dimension_find(word.text) != QUERY_DIMENSION_COUNT;
    if (is_condition)
        *clause = QUERY_CLAUSE_WHERE;
    if (*clause == QUERY_CLAUSE_COUNT)
        return unknown_word(reader);
    if (!(reader->clauses >> *clause & 1)) {
        (void)error_set(reader->err, STATUS_INVALID, "%s takes no %s", reader->verb,
                        clause_words[*clause]);
        return query_reader_fail(reader, word.place);
    }
    if (reader->seen >> *clause & 1 && *clause != QUERY_CLAUSE_WHERE)
        return given_twice(reader, word.place, clause_words[*clause]);
    reader->seen |= 1U << *clause;
    return is_condition ? STATUS_OK : query_reader_next(reader);
}

// Parses a clause.  Errors that query_check finds then are reported at this clause: a window
// that ends before it begins, a run that is no UUID.
static enum status parse_clause(struct query_reader *reader)
{
    unsigned clause = QUERY_CLAUSE_COUNT;
    struct query_place place = reader->word.place;
    enum status status = begin_clause(reader, &clause);
    if (status != STATUS_OK)
        return status;
    assert(clause < QUERY_CLAUSE_COUNT);
    status = clause < QUERY_CLAUSES_OF_QUERIES
                 ? parsers[clause](reader)
                 : query_reader_alert_clause(reader, (enum query_clause)clause);
    if (status != STATUS_OK)
        return status;
    size_t end = reader->word.place.at;
    while (end > place.at && strchr(" \t\r\n", reader->line[end - 1]))
        end--;
    place.size = end - place.at;
    return is_sound(reader) ? STATUS_OK : query_reader_fail(reader, place);
}

static enum status parse_clauses(struct query_reader *reader)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && reader->word.kind != QUERY_WORD_END)
        status = parse_clause(reader);
    return status;
}

static enum status parse_subject(struct query_reader *reader, enum query_subject subject)
{
    const bool is_clause = reader->word.kind == QUERY_WORD_END ||
                           find_clause(reader) != QUERY_CLAUSE_COUNT ||
                           query_dimension_find(reader->word.text) != QUERY_DIMENSION_COUNT;
    switch (subject) {
    case QUERY_NO_SUBJECT:
        break;
    case QUERY_METRIC:
        return parse_metric(reader);
    case QUERY_METRIC_OR_NONE:
        return is_clause ? STATUS_OK : parse_metric(reader);
    case QUERY_BASELINE_OR_NONE:
        return parse_baseline(reader);
    }
    return STATUS_OK;
}

static enum status parse_verb(struct query_reader *reader)
{
    if (reader->word.kind != QUERY_WORD_TEXT)
        return query_reader_missing(reader, "a verb (such as avg, summary, loads)");
    const struct query_verb *verb = query_verb_find(reader->word.text);
    if (!verb) {
        const char *words[VERB_COUNT];
        unsigned count = 0;
        for (unsigned i = 0; i < VERB_COUNT; i++)
            if (query_verb_find(verbs[i].word) == &verbs[i]) // two verbs may have one word
                words[count++] = verbs[i].word;
        return query_reader_unknown(reader, "verb", words, count);
    }
    if (verb->kind == QUERY_COMPARE) {
        reader->filter = &reader->query->compare.other;
        reader->baseline = reader->query->compare.baseline[1];
    }
    if (reader->rule && verb->kind != QUERY_AVERAGE) {
        (void)error_set(reader->err, STATUS_INVALID, "an alert is of avg METRIC, not of %s",
                        verb->word);
        return query_reader_fail(reader, reader->word.place);
    }
    reader->query->kind = verb->kind;
    if (verb->kind == QUERY_RECORDS)
        reader->query->records.kind = verb->record_kind;
    reader->verb = verb->word;
    reader->clauses = reader->rule ? QUERY_ALERT_CLAUSES : verb->clauses;
    enum status status = query_reader_next(reader);
    return status == STATUS_OK ? parse_subject(reader, verb->subject) : status;
}

enum status query_reader_line(struct query_reader *reader, size_t from, bool with_verb,
                              struct query_place *place, struct error *err)
{
    reader->word.place = (struct query_place){from, 0};
    reader->err = err ? err : &reader->spare;
    enum status status = query_reader_next(reader);
    if (status == STATUS_OK && with_verb)
        status = parse_verb(reader);
    if (status == STATUS_OK)
        status = parse_clauses(reader);
    if (place)
        *place = reader->place;
    return status;
}

enum status query_text_read(struct query *out, const char *line, query_when *when, void *context,
                            struct query_place *place, struct error *err)
{
    *out = (struct query){0};
    struct query_reader reader = {.line = line,
                                  .query = out,
                                  .filter = &out->filter,
                                  .baseline = out->compare.baseline[0],
                                  .when = when,
                                  .context = context};
    return query_reader_line(&reader, 0, true, place, err);
}

enum status query_text_read_filter(struct query_filter *out, const char *line, query_when *when,
                                   void *context, struct query_place *place, struct error *err)
{
    struct query query = {.kind = QUERY_SUMMARY};
    struct query_reader reader = {.line = line,
                                  .query = &query,
                                  .filter = &query.filter,
                                  .verb = "a filter",
                                  .clauses = WINDOW,
                                  .when = when,
                                  .context = context};
    const enum status status = query_reader_line(&reader, 0, false, place, err);
    *out = query.filter;
    return status;
}
