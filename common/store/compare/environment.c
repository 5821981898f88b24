#include "common/store/compare/environment.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/core/query/json_writer.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema_select.h"
#include "common/store/read/session_state.h"

enum {
    FACTS_MAX = 10000,      // of one environment
    SAMPLES_OF_A_RUN = 600, // of a device's counters that are looked at, the last ones
    DIFFERENCES_MAX = 12,   // that are named
    VALUES_SHOWN = 4,       // of what something had on one side
    VALUE_SHOWN = 24,       // bytes of a value
    TOLERANCE_PERCENT = 3,  // that clocks may differ by
};

// What is known of each subject.  The table is what collecting, JSON and comparing go
// by.
static const struct property {
    enum environment_subject subject;
    const char *name;
    bool decisive;   // samples with different ones are not comparable
    bool in_table;   // a column of the subject's table
    bool in_samples; // a column of device_sample, of which the highest counts
} properties[] = {
    {ENVIRONMENT_MACHINE, "worker_version", false, true, false},
    {ENVIRONMENT_MACHINE, "os", false, true, false},
    {ENVIRONMENT_MACHINE, "kernel", false, true, false},
    {ENVIRONMENT_MACHINE, "container", false, true, false},
    {ENVIRONMENT_MACHINE, "host_memory_bytes", false, true, false},
    {ENVIRONMENT_MACHINE, "cpu", true, true, false},
    {ENVIRONMENT_MACHINE, "cpu_count", true, true, false},
    {ENVIRONMENT_MACHINE, "cpu_governor", true, true, false},
    {ENVIRONMENT_MACHINE, "driver", true, true, false},
    {ENVIRONMENT_MACHINE, "cuda", true, true, false},
    {ENVIRONMENT_DEVICE, "memory_bytes", true, true, false},
    {ENVIRONMENT_DEVICE, "compute_capability", true, true, false},
    {ENVIRONMENT_DEVICE, "pcie_width", true, true, false},
    {ENVIRONMENT_DEVICE, "pcie_generation", true, true, true},
    {ENVIRONMENT_DEVICE, "pcie_width_max", true, true, false},
    {ENVIRONMENT_DEVICE, "pcie_generation_max", true, true, false},
    {ENVIRONMENT_DEVICE, "sm_clock_hz", true, false, true},
    {ENVIRONMENT_DEVICE, "memory_clock_hz", true, false, true},
    {ENVIRONMENT_DEVICE, "power_cap_watts", true, true, false},
    {ENVIRONMENT_DEVICE, "sm_clock_max_hz", true, true, false},
    {ENVIRONMENT_DEVICE, "memory_clock_max_hz", true, true, false},
    {ENVIRONMENT_MODEL, "digest", true, true, false},
    {ENVIRONMENT_MODEL, "format", true, true, false},
    {ENVIRONMENT_MODEL, "architecture", true, true, false},
    {ENVIRONMENT_MODEL, "quantisation", true, true, false},
    {ENVIRONMENT_MODEL, "parameters", true, true, false},
    {ENVIRONMENT_MODEL, "file_bytes", true, true, false},
    {ENVIRONMENT_MODEL, "context", false, true, false},
    {ENVIRONMENT_PIPELINE, "sync", false, true, false},
    {ENVIRONMENT_PIPELINE, "chunk_bytes", false, true, false},
    {ENVIRONMENT_PIPELINE, "pool_size", false, true, false},
    {ENVIRONMENT_PIPELINE, "prefetch", false, true, false},
};

enum { PROPERTY_COUNT = sizeof properties / sizeof *properties };

static const struct {
    enum record_kind kind;
    const char *name; // the name's id; NULL: machines have none
} tables[ENVIRONMENT_SUBJECT_COUNT] = {
    [ENVIRONMENT_MACHINE] = {RECORD_KIND_RUN, NULL},
    [ENVIRONMENT_DEVICE] = {RECORD_KIND_DEVICE, "t.name"},
    [ENVIRONMENT_MODEL] = {RECORD_KIND_MODEL, "t.name"},
    [ENVIRONMENT_PIPELINE] = {RECORD_KIND_PIPELINE, "coalesce(t.model, t.workload)"},
};

static const char *const subjects[ENVIRONMENT_SUBJECT_COUNT] = {
#define ENVIRONMENT_SUBJECT_TEXT(name, text) [ENVIRONMENT_##name] = text,
    ENVIRONMENT_SUBJECTS(ENVIRONMENT_SUBJECT_TEXT)
#undef ENVIRONMENT_SUBJECT_TEXT
};

static const struct property *find_property(enum environment_subject subject, const char *name)
{
    for (unsigned i = 0; i < PROPERTY_COUNT; i++)
        if (properties[i].subject == subject && strcmp(properties[i].name, name) == 0)
            return &properties[i];
    return NULL;
}

// ---- Facts --------------------------------------------------------------------------

static void deinit_fact(struct environment_fact *fact)
{
    free(fact->of);
    free(fact->property);
    free(fact->value);
}

void environment_deinit(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        deinit_fact(&environment->facts[i]);
    free(environment->facts);
    *environment = (struct environment){0};
}

static enum status make_room(struct environment *environment, struct error *err)
{
    if (environment->count >= FACTS_MAX)
        return error_set(err, STATUS_FULL,
                         "store: the samples are from too many devices and models (narrow them)");
    return ARRAY_RESERVE(&environment->facts, &environment->room, environment->count + 1)
               ? STATUS_OK
               : error_no_memory(err, "store");
}

static int by_property(const struct environment_fact *a, const struct environment_fact *b)
{
    if (a->subject != b->subject)
        return a->subject < b->subject ? -1 : 1;
    const int order = strcmp(a->of, b->of);
    return order ? order : strcmp(a->property, b->property);
}

static int by_value(const struct environment_fact *a, const struct environment_fact *b)
{
    if (strlen(a->value) != strlen(b->value) && !a->is_text && !b->is_text)
        return strlen(a->value) < strlen(b->value) ? -1 : 1; // numbers by size
    return strcmp(a->value, b->value);
}

static int by_all(const void *left, const void *right)
{
    const int order = by_property(left, right);
    return order ? order : by_value(left, right);
}

static void sort(struct environment *environment)
{
    if (environment->count > 1)
        qsort(environment->facts, environment->count, sizeof *environment->facts, by_all);
}

// The fact that says the same, or of which only the highest value counts; NULL where
// there is none.
static struct environment_fact *find_like(const struct environment *environment,
                                          const struct environment_fact *fact)
{
    const struct property *property = find_property(fact->subject, fact->property);
    const bool is_highest = property && property->in_samples;
    for (size_t i = 0; i < environment->count; i++) {
        struct environment_fact *here = &environment->facts[i];
        if (by_property(here, fact) == 0 && (is_highest || by_value(here, fact) == 0))
            return here;
    }
    return NULL;
}

// Adds the fact (takes ownership) unless it is a duplicate.
static enum status add_fact(struct environment *environment, struct environment_fact fact,
                            struct error *err)
{
    enum status status = STATUS_OK;
    struct environment_fact *like = NULL;
    if (!fact.of || !fact.property || !fact.value)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK)
        like = find_like(environment, &fact);
    if (status == STATUS_OK && !like)
        status = make_room(environment, err);
    if (status == STATUS_OK && !like) {
        environment->facts[environment->count++] = fact;
        return STATUS_OK;
    }
    if (like && by_value(like, &fact) < 0) {
        char *lower = like->value;
        like->value = fact.value;
        fact.value = lower;
    }
    deinit_fact(&fact);
    return status;
}

// Takes the value of a row's column, where it has one.  A 0 counts as
// absent: no machine has 0 memory, processors or Hz, and imports have 0 where unknown.
static enum status take_fact(struct environment *environment, enum environment_subject subject,
                             const char *of, const char *property, sqlite3_stmt *row, int place,
                             struct error *err)
{
    const int type = sqlite3_column_type(row, place);
    if (type == SQLITE_NULL || type == SQLITE_BLOB ||
        (type != SQLITE_TEXT && sqlite3_column_double(row, place) == 0))
        return STATUS_OK;
    const char *value = (const char *)sqlite3_column_text(row, place);
    if (!value || !of || !property)
        return error_no_memory(err, "store");
    const struct environment_fact fact = {.subject = subject,
                                          .of = strdup(of),
                                          .property = strdup(property),
                                          .value = strdup(value),
                                          .is_text = type == SQLITE_TEXT};
    return add_fact(environment, fact, err);
}

// ---- Collecting ----------------------------------------------------------------------

struct collecting {
    struct environment *environment;
    const struct samples *samples;
    const struct query_filter *filter;
    enum environment_subject subject;
    bool of_samples; // else of the subject's table
};

// Whether a device or model is one that the samples are of.
static bool is_sampled(const struct collecting *collecting, int64_t name)
{
    if (collecting->subject == ENVIRONMENT_MACHINE)
        return true;
    for (size_t i = 0; i < samples_count(collecting->samples); i++) {
        const struct sample_group *group = samples_at(collecting->samples, i);
        const bool fits = collecting->subject == ENVIRONMENT_PIPELINE
                              ? group->key.kind == RECORD_KIND_PIPELINE
                              : samples_are_of_models(group->key.kind);
        if (collecting->subject == ENVIRONMENT_DEVICE ? group->key.device == name
                                                      : fits && group->key.subject == name)
            return true;
    }
    return false;
}

enum { RUN, NAME, TEXT, FIRST_VALUE }; // columns of the rows

static bool is_read(const struct collecting *collecting, const struct property *property)
{
    return collecting->of_samples ? property->in_samples
                                  : property->subject == collecting->subject && property->in_table;
}

static enum status take_row(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct collecting *collecting = context;
    const struct samples *samples = collecting->samples;
    if (!array_find(samples->runs, samples->run_count, sizeof *samples->runs,
                    sqlite3_column_int64(row, RUN)) ||
        !is_sampled(collecting, sqlite3_column_int64(row, NAME)))
        return STATUS_OK;
    const char *of = (const char *)sqlite3_column_text(row, TEXT);
    enum status status = STATUS_OK;
    int place = FIRST_VALUE;
    for (unsigned i = 0; i < PROPERTY_COUNT && status == STATUS_OK; i++)
        if (is_read(collecting, &properties[i]))
            status = take_fact(collecting->environment, collecting->subject, of, properties[i].name,
                               row, place++, err);
    return status;
}

// A column of a kind's table.  Enumerations by their words, since a number of 0 counts as
// not said.
static void append_column(sqlite3_str *sql, enum record_kind kind, const char *name)
{
    const int place = record_column_find(kind, name);
    const struct record_column *column =
        place >= 0 ? &record_kind_info(kind)->columns[place] : NULL;
    sqlite3_str_appendall(sql, ", ");
    if (column && column_type_is_enum(column->type))
        schema_select_enum(sql, column);
    else
        sqlite3_str_appendf(sql, "t.\"%w\"", name);
}

static enum status collect_subject(struct store *store, struct collecting *collecting,
                                   struct error *err)
{
    const char *name = tables[collecting->subject].name;
    const struct record_kind_info *info = record_kind_info(tables[collecting->subject].kind);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT DISTINCT t.run");
    if (name)
        sqlite3_str_appendf(sql, ", %s, (SELECT n.text FROM name n WHERE n.id = %s)", name, name);
    else
        sqlite3_str_appendall(sql, ", 0, ''");
    for (unsigned i = 0; i < PROPERTY_COUNT; i++)
        if (is_read(collecting, &properties[i]))
            append_column(sql, tables[collecting->subject].kind, properties[i].name);
    sqlite3_str_appendf(sql, " FROM \"%w\" t", info->name);
    if (collecting->subject != ENVIRONMENT_PIPELINE)
        return reader_scan(store, sql, NULL, take_row, collecting, err);
    // A run may have had others, set otherwise, before and after.
    filter_where(sql, RECORD_KIND_PIPELINE, collecting->filter);
    sqlite3_str_appendall(sql, " AND t.status = 0");
    return reader_scan(store, sql, collecting->filter, take_row, collecting, err);
}

// The highest clocks of the runs: a row a device of one run.
static enum status collect_clocks(struct store *store, struct collecting *collecting,
                                  struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < collecting->samples->run_count && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendall(sql, "SELECT s.run, s.device,"
                                   " (SELECT n.text FROM name n WHERE n.id = s.device)");
        for (unsigned k = 0; k < PROPERTY_COUNT; k++)
            if (is_read(collecting, &properties[k]))
                sqlite3_str_appendf(sql, ", max(s.\"%w\")", properties[k].name);
        sqlite3_str_appendf(sql,
                            " FROM (SELECT * FROM device_sample WHERE run = %lld"
                            " ORDER BY rowid DESC LIMIT %d) s GROUP BY s.device",
                            (long long)collecting->samples->runs[i], SAMPLES_OF_A_RUN);
        status = reader_scan(store, sql, NULL, take_row, collecting, err);
    }
    return status;
}

enum status environment_collect(struct environment *environment, struct store *store,
                                const struct samples *samples, const struct query_filter *filter,
                                struct error *err)
{
    struct collecting collecting = {
        .environment = environment, .samples = samples, .filter = filter};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < ENVIRONMENT_SUBJECT_COUNT && status == STATUS_OK; i++) {
        collecting.subject = (enum environment_subject)i;
        status = collect_subject(store, &collecting, err);
    }
    collecting.subject = ENVIRONMENT_DEVICE;
    collecting.of_samples = true;
    if (status == STATUS_OK)
        status = collect_clocks(store, &collecting, err);
    environment->runs = (int64_t)samples->run_count;
    sort(environment);
    return status;
}

// ---- JSON ----------------------------------------------------------------------------

static void put_sql(void *sql, const char *bytes, size_t size)
{
    sqlite3_str_append(sql, bytes, (int)size);
}

// Whether fact `i` begins another property, device or model, or subject than the one
// before.
enum change { CHANGE_NONE, CHANGE_PROPERTY, CHANGE_OF, CHANGE_SUBJECT };

static enum change change_at(const struct environment *environment, size_t i)
{
    const struct environment_fact *now = &environment->facts[i], *before = now - 1;
    if (i == 0 || before->subject != now->subject)
        return CHANGE_SUBJECT;
    if (strcmp(before->of, now->of) != 0)
        return CHANGE_OF;
    return strcmp(before->property, now->property) != 0 ? CHANGE_PROPERTY : CHANGE_NONE;
}

// Closes what such a change ends behind a fact of that subject.
static void close_facts(struct json_writer *json, enum environment_subject subject,
                        enum change change)
{
    if (change >= CHANGE_PROPERTY)
        json_write_end_list(json);
    if (change >= CHANGE_OF && subject != ENVIRONMENT_MACHINE)
        json_write_end(json);
    if (change >= CHANGE_SUBJECT)
        json_write_end(json);
}

static void open_facts(struct json_writer *json, const struct environment_fact *fact,
                       enum change change)
{
    if (change >= CHANGE_SUBJECT)
        json_write_begin(json, subjects[fact->subject]);
    if (change >= CHANGE_OF && fact->subject != ENVIRONMENT_MACHINE)
        json_write_begin(json, fact->of);
    if (change >= CHANGE_PROPERTY)
        json_write_begin_list(json, fact->property);
}

void environment_append_json(sqlite3_str *sql, const struct environment *environment)
{
    struct json_writer json = {.put = put_sql, .sink = sql};
    json_write_begin(&json, NULL);
    json_write_int(&json, "runs", environment->runs);
    for (size_t i = 0; i < environment->count; i++) {
        const struct environment_fact *fact = &environment->facts[i];
        const enum change change = change_at(environment, i);
        if (i > 0)
            close_facts(&json, environment->facts[i - 1].subject, change);
        open_facts(&json, fact, change);
        if (fact->is_text)
            json_write_text(&json, NULL, fact->value);
        else
            json_write_number(&json, NULL, fact->value);
    }
    if (environment->count > 0)
        close_facts(&json, environment->facts[environment->count - 1].subject, CHANGE_SUBJECT);
    json_write_end(&json);
}

static enum status take_json(void *context, sqlite3_stmt *row, struct error *err)
{
    struct environment *environment = context;
    const char *of = (const char *)sqlite3_column_text(row, 1);
    const char *property = (const char *)sqlite3_column_text(row, 2);
    const enum environment_subject subject = (enum environment_subject)sqlite3_column_int(row, 0);
    return take_fact(environment, subject, of, property, row, 3, err);
}

enum status environment_read_json(struct environment *environment, struct store *store,
                                  const char *json, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT json_extract(%Q, '$.runs')", json);
    enum status status =
        reader_scan(store, sql, NULL, reader_take_integer, &environment->runs, err);
    for (unsigned i = 0; i < ENVIRONMENT_SUBJECT_COUNT && status == STATUS_OK; i++) {
        sql = sqlite3_str_new(store->db);
        // Machines have no names: one of them stands for all.
        sqlite3_str_appendf(sql,
                            i == ENVIRONMENT_MACHINE
                                ? "SELECT %u, '', p.key, v.value FROM json_each(%Q, '$.%s') p,"
                                  " json_each(p.value) v WHERE p.type = 'array'"
                                : "SELECT %u, o.key, p.key, v.value FROM json_each(%Q, '$.%s') o,"
                                  " json_each(o.value) p, json_each(p.value) v"
                                  " WHERE o.type = 'object' AND p.type = 'array'",
                            i, json, subjects[i]);
        status = reader_scan(store, sql, NULL, take_json, environment, err);
    }
    sort(environment);
    return status;
}

// ---- Differences ----------------------------------------------------------------------

// Where the facts of a property begin and end: `end` = `first` where there are none.
struct span {
    size_t first, end;
};

static struct span span_at(const struct environment *environment, size_t first)
{
    struct span span = {first, first + 1};
    while (span.end < environment->count && change_at(environment, span.end) == CHANGE_NONE)
        span.end++;
    return span;
}

static struct span find(const struct environment *environment, const struct environment_fact *fact)
{
    for (size_t i = 0; i < environment->count; i++)
        if (by_property(&environment->facts[i], fact) == 0)
            return span_at(environment, i);
    return (struct span){0, 0};
}

static bool is_near(const char *before, const char *after)
{
    const double a = strtod(before, NULL), b = strtod(after, NULL);
    const double most = a > b ? a : b, least = a > b ? b : a;
    return (most - least) * 100 <= most * TOLERANCE_PERCENT;
}

static bool is_same(const struct environment *before, struct span a,
                    const struct environment *after, struct span b, bool by_size)
{
    if (by_size)
        return is_near(before->facts[a.first].value, after->facts[b.first].value);
    if (a.end - a.first != b.end - b.first)
        return false;
    for (size_t i = 0; i < a.end - a.first; i++)
        if (strcmp(before->facts[a.first + i].value, after->facts[b.first + i].value) != 0)
            return false;
    return true;
}

static void append_values(sqlite3_str *text, const struct environment *environment,
                          struct span span)
{
    const size_t count = span.end - span.first;
    const size_t named = count < VALUES_SHOWN ? count : VALUES_SHOWN;
    for (size_t i = span.first; i < span.first + named; i++) {
        const char *value = environment->facts[i].value;
        const size_t size = strlen(value), shown = text_cut(value, size, VALUE_SHOWN);
        sqlite3_str_appendf(text, "%s%.*s%s", i > span.first ? ", " : "", (int)shown, value,
                            shown < size ? "..." : "");
    }
    if (named < count)
        sqlite3_str_appendf(text, " and %llu more", (unsigned long long)(count - named));
}

static void append_difference(sqlite3_str *text, const struct environment *before, struct span a,
                              const struct environment *after, struct span b)
{
    const struct environment_fact *fact = &before->facts[a.first];
    if (fact->subject != ENVIRONMENT_MACHINE)
        sqlite3_str_appendf(text, "%s %s: ", subjects[fact->subject], fact->of);
    sqlite3_str_appendf(text, "%s ", fact->property);
    append_values(text, before, a);
    sqlite3_str_appendall(text, " / ");
    append_values(text, after, b);
}

void environment_append_differences(sqlite3_str *text, const struct environment *before,
                                    const struct environment *after, bool decisive)
{
    unsigned found = 0;
    for (size_t i = 0; i < before->count; i++) {
        if (change_at(before, i) == CHANGE_NONE)
            continue;
        const struct environment_fact *fact = &before->facts[i];
        const struct property *property = find_property(fact->subject, fact->property);
        const struct span a = span_at(before, i), b = find(after, fact);
        if (!property || property->decisive != decisive || b.first == b.end ||
            is_same(before, a, after, b, property->in_samples))
            continue;
        if (++found > DIFFERENCES_MAX)
            continue;
        sqlite3_str_appendall(text, found > 1 ? "; " : "");
        append_difference(text, before, a, after, b);
    }
    if (found > DIFFERENCES_MAX)
        sqlite3_str_appendf(text, "; and %u more", found - DIFFERENCES_MAX);
}
