#include "common/store/compare/environment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/key_index.h"
#include "common/store/read/device_names.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema_select.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/session.h"

enum {
    FACTS_MAX = 10000,      // of one environment
    SAMPLES_OF_A_RUN = 600, // of a device's counters that are looked at, the last ones
    DIFFERENCES_MAX = 12,   // that are named
};

// Values of a property that are shown, and characters of each.
#define VALUES_SHOWN "4"
#define VALUE_SHOWN  "48"

static const double tolerance = 0.03; // that clocks may differ by

// What is known of each subject.
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
    {ENVIRONMENT_MACHINE, "allocator", false, true, false},
    {ENVIRONMENT_MACHINE, "build_flags", false, true, false},
    {ENVIRONMENT_MACHINE, "huge_pages", true, true, false},
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
    {ENVIRONMENT_PIPELINE, "source", false, true, false},
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

void environment_deinit(struct environment *environment)
{
    free(environment->json);
    *environment = (struct environment){0};
}

// ---- Facts --------------------------------------------------------------------------
//
// The table temp.fact holds the distinct values that properties of a subject have; `of` is the
// device's, model's or pipeline's name, "" of machines.  Its order is that of the JSON.

static enum status begin_facts(struct store *store, struct error *err)
{
    return database_exec(store->db,
                         "CREATE TEMP TABLE IF NOT EXISTS fact(subject INTEGER, of TEXT,"
                         " property TEXT, value, PRIMARY KEY(subject, of, property, value))"
                         " WITHOUT ROWID; DELETE FROM temp.fact",
                         err);
}

static enum status on_json(void *context, sqlite3_stmt *row, struct error *err)
{
    struct environment *environment = context;
    const char *json = (const char *)sqlite3_column_text(row, 0);
    if (sqlite3_column_int64(row, 1) > FACTS_MAX)
        return error_set(err, STATUS_FULL,
                         "store: the samples are from too many devices and models (narrow them)");
    environment->json = json ? strdup(json) : NULL;
    return environment->json ? STATUS_OK : error_no_memory(err, "store");
}

#define PROPERTIES(subject, of)                                                                    \
    "(SELECT json_group_object(p.property, json((SELECT json_group_array(v.value) FROM temp.fact"  \
    " v WHERE v.subject = " subject " AND v.of = " of " AND v.property = p.property)))"            \
    " FROM (SELECT DISTINCT property FROM temp.fact WHERE subject = " subject " AND of = " of      \
    ") p)"

// Makes the JSON of the facts.
static enum status end_facts(struct environment *environment, struct store *store,
                             struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "DELETE FROM temp.fact AS f WHERE property IN (''");
    for (unsigned i = 0; i < PROPERTY_COUNT; i++)
        if (properties[i].in_samples)
            sqlite3_str_appendf(sql, ", %Q", properties[i].name);
    sqlite3_str_appendall(sql,
                          ") AND EXISTS (SELECT 1 FROM temp.fact h WHERE h.subject = f.subject"
                          " AND h.of = f.of AND h.property = f.property AND h.value > f.value)");
    enum status status = database_exec_built(store->db, sql, err);
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT json_group_object(name, json(object)), (SELECT count(*)"
                        " FROM temp.fact) FROM (SELECT 'runs' AS name, '%lld' AS object",
                        (long long)environment->runs);
    for (unsigned i = 0; i < ENVIRONMENT_SUBJECT_COUNT; i++)
        sqlite3_str_appendf(
            sql,
            i == ENVIRONMENT_MACHINE
                ? " UNION ALL SELECT %Q, " PROPERTIES("%u", "''")
                : " UNION ALL SELECT %Q, (SELECT json_group_object(o.of, json(" PROPERTIES(
                      "%u", "o.of") ")) FROM (SELECT DISTINCT of"
                                    " FROM temp.fact WHERE subject = %u) o)",
            subjects[i], i, i, i);
    sqlite3_str_appendall(sql, ") WHERE object <> '{}'");
    return reader_scan(store, sql, NULL, on_json, environment, err);
}

// ---- Collecting ----------------------------------------------------------------------

struct collecting {
    struct store *store;
    const struct samples *samples;
    const struct query_filter *filter;
    enum environment_subject subject;
    char *names; // of find_names; of SQLite's memory
};

// Finds the ids of the names of the devices, models or pipelines that the samples are of, as a JSON
// array, each once: the devices of a fleet have few names.
static enum status find_names(struct collecting *collecting, struct error *err)
{
    const enum environment_subject subject = collecting->subject;
    struct key_index names = {.width = 1};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < samples_count(collecting->samples) && status == STATUS_OK; i++) {
        const struct sample_key *key = &samples_at(collecting->samples, i)->key;
        const bool fits = subject == ENVIRONMENT_DEVICE     ? key->kind != RECORD_KIND_DEVICE_SAMPLE
                          : subject == ENVIRONMENT_PIPELINE ? key->kind == RECORD_KIND_PIPELINE
                                                            : samples_are_of_models(key->kind);
        size_t number = 0;
        if (fits)
            status = key_index_add(
                &names, subject == ENVIRONMENT_DEVICE ? &key->device : &key->subject, &number);
    }
    sqlite3_str *text = sqlite3_str_new(collecting->store->db);
    sqlite3_str_appendall(text, "[0");
    for (size_t i = 0; i < names.count; i++)
        sqlite3_str_appendf(text, ",%lld", (long long)names.keys[i]);
    sqlite3_str_appendall(text, "]");
    key_index_deinit(&names);
    collecting->names = sqlite3_str_finish(text);
    return status == STATUS_OK && collecting->names ? STATUS_OK : error_no_memory(err, "store");
}

// Begins a statement that adds the properties of rows as facts, and ends it.  A 0 counts as absent:
// no machine has 0 memory, processors or Hz, and imports have 0 where unknown.
static void append_begin(sqlite3_str *sql, enum environment_subject subject, const char *name)
{
    sqlite3_str_appendf(sql,
                        "INSERT OR IGNORE INTO temp.fact SELECT %u, r.of, p.key, p.value"
                        " FROM (SELECT DISTINCT ",
                        (unsigned)subject);
    if (name)
        sqlite3_str_appendf(sql, "(SELECT n.text FROM name n WHERE n.id = %s)", name);
    else
        sqlite3_str_appendall(sql, "''");
    sqlite3_str_appendall(sql, " AS of, json_object(");
}

static void append_end(sqlite3_str *sql)
{
    sqlite3_str_appendall(sql, ") r, json_each(r.properties) p WHERE p.value <> 0");
}

static enum status on_nothing(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)context, (void)row, (void)err;
    return STATUS_OK;
}

// A property's name and column.  Enumerations by their words, since a number of 0 counts as absent,
// and names by their text, since ids differ between stores.
static void append_property(sqlite3_str *sql, enum record_kind kind, const char *name)
{
    const int place = record_column_find(kind, name);
    const struct record_column *column =
        place >= 0 ? &record_kind_info(kind)->columns[place] : NULL;
    sqlite3_str_appendf(sql, "%Q, ", name);
    if (column && column_type_is_enum(column->type))
        schema_select_enum(sql, column);
    else if (column && column->type == COLUMN_NAME)
        sqlite3_str_appendf(sql, "(SELECT n.text FROM name n WHERE n.id = t.\"%w\")", name);
    else
        sqlite3_str_appendf(sql, "t.\"%w\"", name);
}

static enum status collect_subject(const struct collecting *collecting, struct error *err)
{
    const enum environment_subject subject = collecting->subject;
    const enum record_kind kind = tables[subject].kind;
    const struct samples *samples = collecting->samples;
    sqlite3_str *sql = sqlite3_str_new(collecting->store->db);
    const char *comma = "";
    append_begin(sql, subject, tables[subject].name);
    for (unsigned i = 0; i < PROPERTY_COUNT; i++) {
        if (properties[i].subject != subject || !properties[i].in_table)
            continue;
        sqlite3_str_appendall(sql, comma);
        append_property(sql, kind, properties[i].name);
        comma = ", ";
    }
    sqlite3_str_appendf(sql, ") AS properties FROM \"%w\" t", record_kind_info(kind)->name);
    // A run may have had pipelines that were set otherwise, before and after.
    if (subject == ENVIRONMENT_PIPELINE)
        filter_where(sql, kind, collecting->filter);
    sqlite3_str_appendall(sql, subject == ENVIRONMENT_PIPELINE ? " AND t.status = 0" : " WHERE 1");
    sqlite3_str_appendall(sql, " AND t.run IN (SELECT value FROM json_each('[0");
    for (size_t i = 0; i < samples->runs.count; i++)
        sqlite3_str_appendf(sql, ", %lld", (long long)samples->runs.keys[i]);
    sqlite3_str_appendall(sql, "]'))");
    if (tables[subject].name)
        sqlite3_str_appendf(sql, " AND %s IN (SELECT value FROM json_each(%Q))",
                            tables[subject].name, collecting->names);
    append_end(sql);
    return reader_scan(collecting->store, sql, collecting->filter, on_nothing, NULL, err);
}

// The highest clocks of the runs' devices while these ran.  Any run of the host may have sampled
// them.
static enum status collect_clocks(const struct collecting *collecting, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < collecting->samples->runs.count && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(collecting->store->db);
        const char *comma = "";
        append_begin(sql, ENVIRONMENT_DEVICE, "u.name");
        for (unsigned k = 0; k < PROPERTY_COUNT; k++) {
            if (!properties[k].in_samples)
                continue;
            sqlite3_str_appendf(sql, "%s%Q, max(s.\"%w\")", comma, properties[k].name,
                                properties[k].name);
            comma = ", ";
        }
        sqlite3_str_appendf(
            sql,
            ") AS properties FROM (SELECT value AS name,"
            " " DEVICE_NAMES_UUID(
                "$1",
                "value") " AS uuid FROM json_each(%Q)) u"
                         " CROSS JOIN main.run w ON w.run = $1"
                         " CROSS JOIN main.run o ON o.host = w.host"
                         " AND o.started_ns <= w.heard_ns AND o.heard_ns >= w.started_ns"
                         " CROSS JOIN main.name c ON c.id IN (SELECT d.name FROM device d"
                         "  WHERE d.run = o.run UNION SELECT u.name) AND " DEVICE_NAMES_SAME(
                             DEVICE_NAMES_UUID("o.run", "c.id"), "c.id", "u.uuid",
                             "u.name") " CROSS JOIN device_sample s ON s.id IN (SELECT i.id"
                                       " FROM device_sample i WHERE i.run = o.run"
                                       " AND i.started_ns BETWEEN w.started_ns AND w.heard_ns"
                                       " ORDER BY i.started_ns DESC LIMIT %d) AND s.device = c.id"
                                       " GROUP BY u.name",
            collecting->names, SAMPLES_OF_A_RUN);
        append_end(sql);
        status = reader_scan_with(collecting->store, sql, NULL, &collecting->samples->runs.keys[i],
                                  1, on_nothing, NULL, err);
    }
    return status;
}

static enum status collect(struct collecting *collecting, struct error *err)
{
    enum status status = find_names(collecting, err);
    if (status == STATUS_OK)
        status = collect_subject(collecting, err);
    if (status == STATUS_OK && collecting->subject == ENVIRONMENT_DEVICE)
        status = collect_clocks(collecting, err);
    sqlite3_free(collecting->names);
    return status;
}

enum status environment_collect(struct environment *environment, struct store *store,
                                const struct samples *samples, const struct query_filter *filter,
                                struct error *err)
{
    enum status status = begin_facts(store, err);
    for (unsigned i = 0; i < ENVIRONMENT_SUBJECT_COUNT && status == STATUS_OK; i++)
        status = collect(&(struct collecting){.store = store,
                                              .samples = samples,
                                              .filter = filter,
                                              .subject = (enum environment_subject)i},
                         err);
    environment->runs = (int64_t)samples->runs.count;
    return status == STATUS_OK ? end_facts(environment, store, err) : status;
}

// ---- Stored environments ---------------------------------------------------------------

// Appends a SELECT of the subject, name and property of what a JSON text has, and of the list of
// its values.  Machines have no names: one of them stands for all.
static void append_lists(sqlite3_str *sql, const char *json)
{
    for (unsigned i = 0; i < ENVIRONMENT_SUBJECT_COUNT; i++)
        sqlite3_str_appendf(sql,
                            i == ENVIRONMENT_MACHINE
                                ? "SELECT %u AS subject, '' AS of, p.key AS property, p.value AS"
                                  " list FROM json_each(%Q, '$.%s') p WHERE p.type = 'array'"
                                : " UNION ALL SELECT %u, o.key, p.key, p.value FROM json_each(%Q,"
                                  " '$.%s') o, json_each(o.value) p WHERE o.type = 'object'"
                                  " AND p.type = 'array'",
                            i, json, subjects[i]);
}

enum status environment_read_json(struct environment *environment, struct store *store,
                                  const char *json, struct error *err)
{
    enum status status = begin_facts(store, err);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, "SELECT json_extract(%Q, '$.runs')", json);
    if (status == STATUS_OK)
        status = reader_scan(store, sql, NULL, reader_on_integer, &environment->runs, err);
    else
        sqlite3_free(sqlite3_str_finish(sql));
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "INSERT OR IGNORE INTO temp.fact SELECT subject, of, property,"
                               " v.value FROM (");
    append_lists(sql, json);
    sqlite3_str_appendall(sql, ") f, json_each(f.list) v WHERE v.value <> 0");
    status = database_exec_built(store->db, sql, err);
    return status == STATUS_OK ? end_facts(environment, store, err) : status;
}

// ---- Differences ----------------------------------------------------------------------

struct differing {
    sqlite3_str *text;
    bool decisive;
    unsigned found;
};

enum { SUBJECT, OF, PROPERTY, BEFORE, AFTER, HIGHEST_BEFORE, HIGHEST_AFTER };

static enum status on_difference(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct differing *differing = context;
    const enum environment_subject subject =
        (enum environment_subject)sqlite3_column_int(row, SUBJECT);
    const char *name = (const char *)sqlite3_column_text(row, PROPERTY);
    const double before = sqlite3_column_double(row, HIGHEST_BEFORE);
    const double after = sqlite3_column_double(row, HIGHEST_AFTER);
    const struct property *property = NULL;
    for (unsigned i = 0; i < PROPERTY_COUNT; i++)
        if (properties[i].subject == subject && name && strcmp(properties[i].name, name) == 0)
            property = &properties[i];
    if (!property || property->decisive != differing->decisive ||
        (property->in_samples && fabs(before - after) <= tolerance * fmax(before, after)) ||
        ++differing->found > DIFFERENCES_MAX)
        return STATUS_OK;
    sqlite3_str_appendall(differing->text, sqlite3_str_length(differing->text) ? "; " : "");
    if (subject != ENVIRONMENT_MACHINE)
        sqlite3_str_appendf(differing->text, "%s %s: ", subjects[subject],
                            sqlite3_column_text(row, OF));
    sqlite3_str_appendf(differing->text, "%s %s / %s", name, sqlite3_column_text(row, BEFORE),
                        sqlite3_column_text(row, AFTER));
    return STATUS_OK;
}

// The first values of a list, in words.
#define SHOWN(list)                                                                                \
    "(SELECT group_concat(CASE WHEN length(value) > " VALUE_SHOWN                                  \
    " THEN substr(value, 1, " VALUE_SHOWN                                                          \
    ") || '...' ELSE value END, ', ') FROM (SELECT value FROM json_each(" list ")"                 \
    " LIMIT " VALUES_SHOWN ")) || CASE WHEN json_array_length(" list ") > " VALUES_SHOWN           \
    " THEN printf(' and %%d more', json_array_length(" list ") - " VALUES_SHOWN ") ELSE '' END"

enum status environment_append_differences(sqlite3_str *text, struct store *store,
                                           const struct environment *before,
                                           const struct environment *after, bool decisive,
                                           struct error *err)
{
    struct differing differing = {.text = text, .decisive = decisive};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "WITH a AS (");
    append_lists(sql, before->json);
    sqlite3_str_appendall(sql, "), b AS (");
    append_lists(sql, after->json);
    sqlite3_str_appendf(sql,
                        ") SELECT subject, of, property, " SHOWN("a.list") ", " SHOWN("b.list"));
    sqlite3_str_appendall(sql, ", json_extract(a.list, '$[0]'), json_extract(b.list, '$[0]')"
                               " FROM a JOIN b USING (subject, of, property)"
                               " WHERE a.list <> b.list ORDER BY subject, of, property");
    enum status status = reader_scan(store, sql, NULL, on_difference, &differing, err);
    if (differing.found > DIFFERENCES_MAX)
        sqlite3_str_appendf(text, "; and %u more", differing.found - DIFFERENCES_MAX);
    return status;
}
