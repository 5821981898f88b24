#include "common/core/query/query.h"

#include <assert.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/core/query/alert_rule.h"

static const char *const dimension_names[QUERY_DIMENSION_COUNT] = {
#define DIMENSION_NAME(name, text) [QUERY_BY_##name] = text,
    QUERY_DIMENSIONS(DIMENSION_NAME)};

// ---- The table of metrics, made from the record table --------------------------
//
// Numbers with a unit are metrics; names, texts, enumerations, times and plain
// figures (ordinals, ids) are not.  A column's type and unit choose the macro
// that makes its line, or makes nothing.

#define LINE(of, id, column_name, column_unit, text)                                               \
    {.kind = RECORD_KIND_##of,                                                                     \
     .name = column_name,                                                                          \
     .meaning = text,                                                                              \
     .unit = UNIT_##column_unit,                                                                   \
     .column = (int)(id)},

#define LINE_FOR_NONE(...)
#define LINE_FOR_TIME(...)
#define LINE_FOR_COUNT(...)            LINE(__VA_ARGS__)
#define LINE_FOR_DURATION(...)         LINE(__VA_ARGS__)
#define LINE_FOR_BYTES(...)            LINE(__VA_ARGS__)
#define LINE_FOR_RATIO(...)            LINE(__VA_ARGS__)
#define LINE_FOR_TOKENS(...)           LINE(__VA_ARGS__)
#define LINE_FOR_BYTES_PER_SECOND(...) LINE(__VA_ARGS__)
#define LINE_FOR_FLOPS(...)            LINE(__VA_ARGS__)
#define LINE_FOR_CELSIUS(...)          LINE(__VA_ARGS__)
#define LINE_FOR_WATTS(...)            LINE(__VA_ARGS__)
#define LINE_FOR_JOULES(...)           LINE(__VA_ARGS__)
#define LINE_FOR_HERTZ(...)            LINE(__VA_ARGS__)

// Columns that are not numbers have no unit, so the unit alone decides.
#define OF(kind, id, name, type, unit, presence, text) LINE_FOR_##unit(kind, id, name, unit, text)
#define OF_DEVICE(...)                                 OF(DEVICE, __VA_ARGS__)
#define OF_MODEL(...)                                  OF(MODEL, __VA_ARGS__)
#define OF_STARTUP(...)                                OF(STARTUP, __VA_ARGS__)
#define OF_LOAD(...)                                   OF(LOAD, __VA_ARGS__)
#define OF_LOAD_STAGE(...)                             OF(LOAD_STAGE, __VA_ARGS__)
#define OF_INFERENCE(...)                              OF(INFERENCE, __VA_ARGS__)
#define OF_ITL(...)                                    OF(ITL, __VA_ARGS__)
#define OF_OPERATION(...)                              OF(OPERATION, __VA_ARGS__)
#define OF_PIPELINE(...)                               OF(PIPELINE, __VA_ARGS__)
#define OF_DEVICE_SAMPLE(...)                          OF(DEVICE_SAMPLE, __VA_ARGS__)
#define OF_PROCESS_SAMPLE(...)                         OF(PROCESS_SAMPLE, __VA_ARGS__)
#define OF_HOST_SAMPLE(...)                            OF(HOST_SAMPLE, __VA_ARGS__)
#define OF_DEVICE_PROCESS(...)                         OF(DEVICE_PROCESS, __VA_ARGS__)
#define OF_EVENT(...)                                  OF(EVENT, __VA_ARGS__)

// `column` -1 marks a derived metric; `derived` is found by name when asked for.
#define DERIVED_LINE(of, column_name, column_unit, over, under, text)                              \
    {.kind = RECORD_KIND_##of,                                                                     \
     .name = column_name,                                                                          \
     .meaning = text,                                                                              \
     .unit = UNIT_##column_unit,                                                                   \
     .column = -1,                                                                                 \
     .derived = &(const struct record_derived){.name = column_name,                                \
                                               .meaning = text,                                    \
                                               .numerator = over,                                  \
                                               .denominator = under,                               \
                                               .kind = RECORD_KIND_##of,                           \
                                               .unit = UNIT_##column_unit}},

#define COMPUTED(of, metric_name, metric_unit, text)                                               \
    {                                                                                              \
        .kind = RECORD_KIND_##of, .name = metric_name, .meaning = text,                            \
        .unit = UNIT_##metric_unit, .column = -1,                                                  \
    }

static const struct query_metric metrics[] = {
    RECORD_DEVICE(OF_DEVICE) RECORD_MODEL(OF_MODEL) RECORD_STARTUP(OF_STARTUP) RECORD_LOAD(OF_LOAD)
        RECORD_LOAD_STAGE(OF_LOAD_STAGE) RECORD_INFERENCE(OF_INFERENCE) RECORD_ITL(OF_ITL)
            RECORD_OPERATION(OF_OPERATION) RECORD_PIPELINE(OF_PIPELINE)
                RECORD_DEVICE_SAMPLE(OF_DEVICE_SAMPLE) RECORD_PROCESS_SAMPLE(OF_PROCESS_SAMPLE)
                    RECORD_HOST_SAMPLE(OF_HOST_SAMPLE) RECORD_DEVICE_PROCESS(OF_DEVICE_PROCESS)
                        RECORD_EVENT(OF_EVENT) RECORD_DERIVED(DERIVED_LINE)
    // Metrics that only averages have.
    {.kind = RECORD_KIND_ITL,
     .name = QUERY_METRIC_ITL,
     .meaning = "gap between two output tokens of a request, of all requests (within 1 %)",
     .unit = UNIT_DURATION,
     .column = ITL_SKETCH},
    COMPUTED(LOAD, QUERY_METRIC_FLOOR, DURATION,
             "what a load takes at least: bytes of weights / the device's measured rate of copies "
             "from the host"),
    COMPUTED(INFERENCE, QUERY_METRIC_MBU, RATIO,
             "model bandwidth utilisation: bytes that a token reads (weights, and KV cache of "
             "prompt_tokens + generated_tokens / 2 positions, their mean) / time per output token "
             "/ the device's measured memory bandwidth"),
    COMPUTED(INFERENCE, QUERY_METRIC_GOODPUT, ITEMS_PER_SECOND,
             "requests that met every objective (--slo) / time"),
    COMPUTED(INFERENCE, QUERY_METRIC_REQUEST_RATE, REQUEST_RATE,
             "throughput: requests that ended / seconds of the window"),
    COMPUTED(INFERENCE, QUERY_METRIC_OUTPUT_RATE, TOKEN_RATE,
             "throughput: tokens put out, by all requests / seconds of the window"),
    COMPUTED(INFERENCE, QUERY_METRIC_PROMPT_RATE, TOKEN_RATE,
             "throughput: prompt tokens of requests that ended / seconds of the window"),
    COMPUTED(INFERENCE, QUERY_METRIC_ITEM_RATE, ITEMS_PER_SECOND,
             "throughput: items of requests that ended / seconds of the window"),
    COMPUTED(INFERENCE, QUERY_METRIC_ERRORS, RATIO,
             "failed requests / requests that ended in the window"),
    COMPUTED(INFERENCE, QUERY_METRIC_CANCELLED, RATIO,
             "cancelled requests / requests that ended in the window"),
    COMPUTED(INFERENCE, QUERY_METRIC_BUSY_RATE, TOKEN_RATE,
             "of comparisons: tokens put out, by all requests / time with a request "
             "in progress"),
    COMPUTED(INFERENCE, QUERY_METRIC_MFU, RATIO,
             "model arithmetic utilisation: 2 * parameters * tokens computed (prompt_tokens -"
             " cached_prompt_tokens + generated_tokens - 1) / time without the queue / the device's"
             " measured arithmetic rate"),
    COMPUTED(INFERENCE, QUERY_METRIC_TOKENS_PER_JOULE, TOKENS_PER_JOULE,
             "tokens put out in the window / joules that the devices of the requests used in it"),
    COMPUTED(INFERENCE, QUERY_METRIC_JOULES_PER_REQUEST, JOULES,
             "joules that the devices of the requests used in the window / requests that ended"),
};

enum { METRIC_COUNT = sizeof metrics / sizeof *metrics };

const char *query_dimension_name(enum query_dimension dimension)
{
    assert((unsigned)dimension < QUERY_DIMENSION_COUNT);
    return dimension_names[dimension];
}

enum query_dimension query_dimension_find(const char *name)
{
    unsigned dimension = 0;
    while (dimension < QUERY_DIMENSION_COUNT && strcmp(dimension_names[dimension], name) != 0)
        dimension++;
    return (enum query_dimension)dimension;
}

enum column_type query_dimension_words(enum query_dimension dimension)
{
    return dimension == QUERY_BY_STATUS ? COLUMN_STATUS
           : dimension == QUERY_BY_SYNC ? COLUMN_SYNC
                                        : COLUMN_INT;
}

bool query_dimension_is_number(enum query_dimension dimension)
{
    return dimension == QUERY_BY_CHUNK_BYTES || dimension == QUERY_BY_POOL_SIZE ||
           query_dimension_words(dimension) != COLUMN_INT;
}

int64_t query_dimension_number(enum query_dimension dimension, const char *text)
{
    const enum column_type type = query_dimension_words(dimension);
    const char *word = NULL;
    int64_t number = 0;
    for (int i = 0; (word = column_enum_text(type, i)); i++)
        if (strcmp(word, text) == 0)
            return i;
    if (type != COLUMN_INT || !query_dimension_is_number(dimension) ||
        parse_size(&number, text, 0, "", NULL) != STATUS_OK)
        return -1;
    return number;
}

static const char *const role_names[QUERY_ROLE_COUNT] = {
#define QUERY_ROLE_NAME(name, text) [QUERY_ROLE_##name] = text,
    QUERY_ROLES(QUERY_ROLE_NAME)
#undef QUERY_ROLE_NAME
};

const char *query_role_name(enum query_role role)
{
    assert(role < QUERY_ROLE_COUNT);
    return role_names[role];
}

enum query_role query_role_find(const char *name)
{
    unsigned role = 0;
    while (role < QUERY_ROLE_COUNT && strcmp(role_names[role], name) != 0)
        role++;
    return (enum query_role)role;
}

// ---- Checks ----------------------------------------------------------------------

static enum status check_text(const char *text, size_t room, const char *what, struct error *err)
{
    const size_t size = strnlen(text, room);
    if (size == room)
        return error_set(err, STATUS_INVALID, "query: %s is longer than %zu bytes", what, room - 1);
    if (!text_is_utf8(text, size))
        return error_set(err, STATUS_INVALID, "query: %s is not UTF-8", what);
    return STATUS_OK;
}

static enum status check_number(enum query_dimension dimension, const char *text, struct error *err)
{
    if (!text[0] || !query_dimension_is_number(dimension) ||
        query_dimension_number(dimension, text) >= 0)
        return STATUS_OK;
    const enum column_type type = query_dimension_words(dimension);
    return error_set(err, STATUS_INVALID,
                     type == COLUMN_STATUS ? "query: unknown status (ok, error or cancelled)"
                     : type == COLUMN_SYNC ? "query: unknown sync (events or periodic)"
                                           : "query: %s is not a number",
                     dimension_names[dimension]);
}

static enum status check_filter(const struct query_filter *filter, struct error *err)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        enum status status = check_text(filter->by[i], QUERY_TEXT_SIZE, dimension_names[i], err);
        if (status == STATUS_OK)
            status = check_number((enum query_dimension)i, filter->by[i], err);
        if (status != STATUS_OK)
            return status;
    }
    if (filter->until_ns != 0 && filter->until_ns <= filter->since_ns)
        return error_set(err, STATUS_INVALID, "query: the window ends before it begins");
    const char *run = filter->by[QUERY_BY_RUN];
    const size_t size = strlen(run);
    if (size > 0 && (size < 4 || size > 36 || strspn(run, "0123456789abcdefABCDEF-") != size))
        return error_set(err, STATUS_INVALID,
                         "query: run is not a UUID or at least its first 4 characters");
    return STATUS_OK;
}

static enum status check_groups(const struct query *query, struct error *err)
{
    if (query->group_count > QUERY_DIMENSION_COUNT)
        return error_set(err, STATUS_INVALID, "query: too many dimensions to group by");
    unsigned seen = 0;
    for (unsigned i = 0; i < query->group_count; i++) {
        const unsigned dimension = query->group_by[i];
        if (dimension >= QUERY_DIMENSION_COUNT)
            return error_set(err, STATUS_INVALID, "query: unknown dimension %u", dimension);
        if (seen >> dimension & 1)
            return error_set(err, STATUS_INVALID, "query: grouped by %s twice",
                             dimension_names[dimension]);
        seen |= 1U << dimension;
    }
    return STATUS_OK;
}

static enum status check_key(const char text[QUERY_KEY_SIZE], const char *what, struct error *err)
{
    const size_t size = strnlen(text, QUERY_KEY_SIZE);
    if (size == QUERY_KEY_SIZE)
        return error_set(err, STATUS_INVALID, "query: %s is longer than %d bytes", what,
                         QUERY_KEY_SIZE - 1);
    for (size_t i = 0; i < size; i++)
        if (text[i] < '!' || text[i] > '~')
            return error_set(err, STATUS_INVALID, "query: %s has characters it cannot have", what);
    return STATUS_OK;
}

static enum status check_keys(const struct query *query, struct error *err)
{
    enum status status = check_key(query->key.text, "the key", err);
    if (status == STATUS_OK)
        status = check_key(query->key.name, "the name of the key", err);
    if (status == STATUS_OK)
        status = check_key(query->key.replaces, "the key to be replaced", err);
    if (status == STATUS_OK && query->key.roles >> QUERY_ROLE_COUNT)
        status = error_set(err, STATUS_INVALID, "query: unknown role");
    if (status == STATUS_OK && query->key.expires_ns < 0)
        status = error_set(err, STATUS_INVALID, "query: the key expires before 1970");
    return status;
}

static enum status check_baseline(const char name[QUERY_KEY_SIZE], struct error *err)
{
    enum status status = check_key(name, "the name of a baseline", err);
    if (status == STATUS_OK && name[strspn(name, TEXT_NAME_CHARACTERS)] != '\0')
        status = error_set(err, STATUS_INVALID,
                           "query: the name of a baseline has other characters than a-z A-Z 0-9 "
                           ". _ -");
    return status;
}

static enum status check_comparison(const struct query *query, struct error *err)
{
    enum status status = check_baseline(query->compare.baseline[0], err);
    if (status == STATUS_OK)
        status = check_baseline(query->compare.baseline[1], err);
    if (status == STATUS_OK && !(query->compare.margin >= 0 && query->compare.margin <= 1))
        status = error_set(err, STATUS_INVALID, "query: the margin is not from 0 to 1");
    return status == STATUS_OK ? check_filter(&query->compare.other, err) : status;
}

static enum status check_path(const struct query *query, struct error *err)
{
    enum status status = check_text(query->file.path, QUERY_PATH_SIZE, "the path", err);
    if (status == STATUS_OK && query->file.path[0] != '/')
        status = error_set(err, STATUS_INVALID, "query: the path does not begin with /");
    return status;
}

static enum status check_records(const struct query *query, struct error *err)
{
    if ((unsigned)query->records.kind >= RECORD_KIND_COUNT)
        return error_set(err, STATUS_INVALID, "query: unknown kind of records %u",
                         (unsigned)query->records.kind);
    return STATUS_OK;
}

static enum status check_average(const struct query *query, struct error *err)
{
    if (query->average.histogram && (query->group_count != 0 || query->step_ns != 0))
        return error_set(err, STATUS_INVALID, "query: a histogram has no groups and no steps");
    return check_text(query->average.slo, QUERY_TEXT_SIZE, "slo", err);
}

static enum status check_baseline_name(const struct query *query, struct error *err)
{
    if (!query->baseline.name[0])
        return error_set(err, STATUS_INVALID, "query: the baseline has no name");
    return check_baseline(query->baseline.name, err);
}

static enum status check_forget(const struct query *query, struct error *err)
{
    struct query_filter other = query->filter;
    const bool has_run = other.by[QUERY_BY_RUN][0] != '\0';
    enum status status = check_key(query->key.text, "the key", err);
    memset(other.by[QUERY_BY_RUN], 0, sizeof other.by[QUERY_BY_RUN]);
    if (status == STATUS_OK &&
        (query_filter_narrows(&other) || has_run == (query->key.text[0] != '\0')))
        status = error_set(err, STATUS_INVALID, "query: either a run or a key is to be forgotten");
    if (status == STATUS_OK && has_run && strlen(query->filter.by[QUERY_BY_RUN]) != 36)
        status = error_set(err, STATUS_INVALID,
                           "query: a run to be forgotten needs its whole UUID (inferstat runs)");
    return status;
}

static enum status check_alert_list(const struct query *query, struct error *err)
{
    if ((unsigned)query->alert.list >= QUERY_ALERT_LIST_COUNT)
        return error_set(err, STATUS_INVALID, "query: unknown list of alerts %u",
                         (unsigned)query->alert.list);
    return check_text(query->alert.rule, QUERY_KEY_SIZE, "the name of a rule", err);
}

static enum status check_alert_edit(const struct query *query, struct error *err)
{
    const bool is_silence = query->alert.edit == QUERY_ALERT_SILENCE;
    if ((unsigned)query->alert.edit >= QUERY_ALERT_EDIT_COUNT)
        return error_set(err, STATUS_INVALID, "query: unknown change of an alert %u",
                         (unsigned)query->alert.edit);
    enum status status = check_text(query->alert.rule, QUERY_KEY_SIZE, "the name of a rule", err);
    if (status == STATUS_OK)
        status = check_text(query->alert.text, QUERY_RULE_SIZE, "the reason", err);
    if (status == STATUS_OK && !is_silence && query->alert.id < 1)
        status = error_set(err, STATUS_INVALID, "query: no alert or silence has the id %lld",
                           (long long)query->alert.id);
    if (status == STATUS_OK && is_silence && query->alert.for_ns < 1)
        status = error_set(err, STATUS_INVALID, "query: a silence has a duration above 0");
    if (status == STATUS_OK && is_silence && !query->alert.rule[0] &&
        !query->filter.by[QUERY_BY_MODEL][0] && !query->filter.by[QUERY_BY_HOST][0] &&
        !query->filter.by[QUERY_BY_DEVICE][0])
        status = error_set(err, STATUS_INVALID,
                           "query: a silence needs a rule (\"*\": all rules), "
                           "model, host or device");
    return status;
}

static enum status check_alert_try(const struct query *query, struct error *err)
{
    return check_text(query->alert.text, QUERY_RULE_SIZE, "the rule", err);
}

static const struct {
    bool is_administrative;
    // Checks the fields of this kind alone; NULL: it has none.
    enum status (*check)(const struct query *query, struct error *err);
} kinds[QUERY_KIND_COUNT] = {
    [QUERY_RECORDS] = {false, check_records},
    [QUERY_AVERAGE] = {false, check_average},
    [QUERY_COMPARE] = {false, check_comparison},
    [QUERY_CLEAR] = {true, NULL},
    [QUERY_AUTHORIZE] = {true, check_keys},
    [QUERY_REVOKE] = {true, check_keys},
    [QUERY_KEYS] = {true, NULL},
    [QUERY_BASELINE_SAVE] = {true, check_baseline_name},
    [QUERY_BASELINE_DELETE] = {true, check_baseline_name},
    [QUERY_COPY] = {true, check_path},
    [QUERY_IMPORT] = {true, check_path},
    [QUERY_FORGET] = {true, check_forget},
    [QUERY_ADMIN_LOG] = {true, NULL},
    [QUERY_ALERTS] = {false, check_alert_list},
    [QUERY_ALERT_EDIT] = {true, check_alert_edit},
    [QUERY_ALERT_TRY] = {false, check_alert_try},
};

bool query_is_administrative(enum query_kind kind)
{
    return (unsigned)kind < QUERY_KIND_COUNT && kinds[kind].is_administrative;
}

bool query_is_pattern(const char *wanted)
{
    return strpbrk(wanted, "*?[") != NULL;
}

// Takes a set such as "[a-c]" or "[^x]" off `*pattern`, which begins with it.  True if the
// character is in it; a set without its end has nothing.
static bool take_set(const char **pattern, uint32_t character)
{
    const char *at = *pattern + 1;
    const bool is_inverse = *at == '^';
    uint32_t from, to;
    bool found = false;
    at += is_inverse;
    for (bool is_first = true; *at && (is_first || *at != ']'); is_first = false) {
        at += text_character(at, strlen(at), &from);
        to = from;
        if (at[0] == '-' && at[1] && at[1] != ']')
            at += 1 + text_character(at + 1, strlen(at + 1), &to);
        found = found || character == from || (character >= from && character <= to);
    }
    *pattern = at + (*at == ']');
    return *at == ']' && found != is_inverse;
}

// As SQLite's GLOB.  Both are UTF-8.
static bool glob(const char *pattern, const char *name)
{
    const char *star = NULL, *retry = NULL; // behind the last `*`, and where it goes on next
    while (*name) {
        uint32_t character = 0, wanted = 0;
        const size_t size = text_character(name, strlen(name), &character);
        const char *next = pattern;
        bool matches = false;
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
            continue;
        }
        if (*pattern == '[') {
            matches = take_set(&next, character);
        } else if (*pattern) {
            next += text_character(pattern, strlen(pattern), &wanted);
            matches = *pattern == '?' || wanted == character;
        }
        if (!matches && !star)
            return false;
        if (matches) {
            pattern = next;
            name += size;
        } else {
            pattern = star;
            retry += text_character(retry, strlen(retry), NULL);
            name = retry;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool query_name_matches(const char *wanted, const char *name)
{
    return strcmp(wanted, name) == 0 ||
           (query_is_pattern(wanted) && text_is_utf8(wanted, strlen(wanted)) &&
            text_is_utf8(name, strlen(name)) && glob(wanted, name));
}

bool query_filter_narrows(const struct query_filter *filter)
{
    bool narrows = filter->since_ns != 0 || filter->until_ns != 0;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        narrows = narrows || filter->by[i][0] != '\0';
    return narrows;
}

enum status query_check(const struct query *query, struct error *err)
{
    if ((unsigned)query->kind >= QUERY_KIND_COUNT)
        return error_set(err, STATUS_INVALID, "query: unknown kind %u", (unsigned)query->kind);
    enum status status = check_text(query->metric, QUERY_TEXT_SIZE, "metric", err);
    if (status == STATUS_OK)
        status = check_groups(query, err);
    if (status == STATUS_OK)
        status = check_filter(&query->filter, err);
    if (status == STATUS_OK && query->step_ns < 0)
        status = error_set(err, STATUS_INVALID, "query: the step is negative");
    return status == STATUS_OK && kinds[query->kind].check ? kinds[query->kind].check(query, err)
                                                           : status;
}

// ---- Metrics by name ---------------------------------------------------------------

const struct query_metric *query_metrics(unsigned *count)
{
    *count = METRIC_COUNT;
    return metrics;
}

const char *query_metric_short(const char *name)
{
    static const char *const words[][2] = {{"tokens_per_second", "decode"},
                                           {"prefill_tokens_per_second", "prefill"},
                                           {"ttft_ns", "TTFT"},
                                           {"items_per_second", "items/s"},
                                           {"load_bytes_per_second", "load"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i][0]) == 0)
            return words[i][1];
    return name;
}

bool query_metric_is_of_records(const struct query_metric *metric)
{
    if (metric->column < 0)
        return metric->derived != NULL;
    return record_kind_info(metric->kind)->columns[metric->column].type != COLUMN_BLOB;
}

// Whether `name` is the metric's name, alone or after its kind and a dot.
static bool metric_has_name(const struct query_metric *metric, const char *name)
{
    const char *kind = record_kind_info(metric->kind)->name;
    const size_t size = strlen(kind);
    if (strncmp(name, kind, size) == 0 && name[size] == '.')
        return strcmp(name + size + 1, metric->name) == 0;
    return strcmp(name, metric->name) == 0;
}

static enum status unknown_metric(const char *name, struct error *err)
{
    const char *words[METRIC_COUNT];
    if (alert_source_find(name) != ALERT_SOURCE_NONE)
        return error_set(err, STATUS_INVALID,
                         "%s is known to alert rules alone (see inferstatd-alerts(5))", name);
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        words[i] = metrics[i].name;
    const char *dot = strchr(name, '.');
    const char *nearest = parse_nearest(dot ? dot + 1 : name, words, METRIC_COUNT);
    char shown[96];
    (void)text_escape(shown, sizeof shown, name, strnlen(name, QUERY_TEXT_SIZE));
    if (nearest)
        return error_set(err, STATUS_INVALID, "unknown metric \"%s\" (did you mean %s?)", shown,
                         nearest);
    return error_set(err, STATUS_INVALID, "unknown metric \"%s\" (inferstat metrics lists them)",
                     shown);
}

static enum status ambiguous_metric(const char *name, struct error *err)
{
    char choices[256] = "";
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        if (metric_has_name(&metrics[i], name))
            (void)text_append(choices, sizeof choices, ", ", "%s.%s",
                              record_kind_info(metrics[i].kind)->name, metrics[i].name);
    return error_set(err, STATUS_INVALID, "several kinds have the metric %s (say one of %s)", name,
                     choices);
}

enum status query_metric_find(const struct query_metric **out, const char *name, struct error *err)
{
    const struct query_metric *found = NULL;
    bool is_ambiguous = false;
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        if (!metric_has_name(&metrics[i], name))
            continue;
        is_ambiguous = found && metrics[i].kind != RECORD_KIND_INFERENCE;
        found = &metrics[i];
        if (found->kind == RECORD_KIND_INFERENCE)
            break;
    }
    if (!found)
        return unknown_metric(name, err);
    if (is_ambiguous)
        return ambiguous_metric(name, err);
    *out = found;
    return STATUS_OK;
}
