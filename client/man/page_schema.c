// inferstat-schema(7): every table and view of the store.
#include <stdio.h>
#include <string.h>

#include "client/man/pages.h"
#include "client/man/roff.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_list.h"

enum { TEXT_SIZE = 512 };

static const char intro[] =
    "A store is one SQLite file in WAL mode.  It can be opened with sqlite3(1), Datasette or "
    "pandas "
    "at any time, also while a collector writes to it.  This page lists its tables and views; it "
    "is generated from the table that creates the store.";

static const char *const conventions[] = {
    "Times end in _ns and are nanoseconds since 1970-01-01 UTC; durations end in _ns, too, and are "
    "nanoseconds.  Sizes end in _bytes, shares in _ratio (0 to 1), rates in _per_second.",
    "Names are stored once, in the table name; other tables have their ids.  Enumerations are "
    "stored as numbers.  The views show both as text.",
    "NULL means that a value is absent: it was not measured, or does not exist.  An absent value "
    "is "
    "never 0.",
    "A record is identified permanently by its run, its stream and its number.",
    "To read without disturbing the collector: sqlite3 -readonly FILE.  Changing a table by hand "
    "makes rollups wrong, and audits report it; \"inferstat clear\" deletes records and keeps the "
    "ledgers.",
};

// SQL; a test runs each statement unchanged.
static const char *const examples[][2] = {
    {"The last requests, in scaled units:",
     "SELECT started, host, model, prompt_tokens, generated_tokens,\n"
     "       ttft_ms, e2e_ms, tokens_per_second\n"
     "FROM v_inference ORDER BY started_ns DESC LIMIT 5;"},
    {"Two averages of a rate, by model: total over total, and the mean of requests:",
     "SELECT model, count(*) AS requests,\n"
     "       1e9 * sum(generated_tokens - 1) / sum(decode_ns) AS total_over_total,\n"
     "       avg(tokens_per_second) AS mean_of_requests\n"
     "FROM v_inference WHERE generated_tokens >= 2 GROUP BY model;"},
    {"The same without views, which is faster on a large store:",
     "SELECT n.text AS model, count(*) AS requests, avg(t.ttft_ns) / 1e6 AS ttft_ms\n"
     "FROM inference t JOIN name n ON n.id = t.model\n"
     "WHERE t.started_ns >= (SELECT max(started_ns) FROM inference) - 3600000000000\n"
     "GROUP BY n.text;"},
    {"The stages of the last loads:",
     "SELECT run, model, stage, ordinal, duration_ms\n"
     "FROM v_load_stage WHERE model IS NOT NULL ORDER BY started_ns DESC LIMIT 10;"},
    {"A load with its stages, joined by their identity:",
     "SELECT l.number, l.duration_ns, s.ordinal, s.duration_ns\n"
     "FROM load l JOIN load_stage s\n"
     "  ON s.run = l.run AND s.stream = l.stream AND s.parent = l.number\n"
     "ORDER BY l.id, s.ordinal;"},
    {"What was lost, and why:", "SELECT host, run, reason, sum(last - first + 1) AS records\n"
                                "FROM v_range WHERE state = 'dropped' GROUP BY host, run, reason;"},
    {"Runs whose ledgers do not balance:",
     "SELECT uuid, produced, stored, dropped, in_flight FROM v_ledger WHERE balanced = 0;"},
    {"Requests of each day, from the rollups of e2e_ns (kind 6, column 11), over all models:",
     "SELECT datetime(started_ns / 1000000000, 'unixepoch') AS day, sum(count) AS count,\n"
     "  sum(sum) / sum(count) AS mean_ns\n"
     "FROM rollup WHERE metric = 256 * 6 + 11 AND grouping = 1 AND level = 2\n"
     "GROUP BY started_ns ORDER BY started_ns DESC LIMIT 31;"},
    {"How far the rollups are behind the records:",
     "SELECT s.metric, s.watermark, (SELECT max(id) FROM inference) AS last\n"
     "FROM rollup_state s WHERE s.metric / 256 = 6;"},
};

// ---- Columns --------------------------------------------------------------------------

// The record kind of a table, or of a view "v_KIND"; RECORD_KIND_COUNT: none.
static enum record_kind kind_of(const char *table)
{
    return record_kind_find(strncmp(table, "v_", 2) == 0 ? table + 2 : table);
}

static const struct record_derived *derived_of(enum record_kind kind, const char *name)
{
    unsigned count;
    const struct record_derived *derived = record_derived(&count);
    for (unsigned i = 0; i < count; i++)
        if (derived[i].kind == kind && strcmp(derived[i].name, name) == 0)
            return &derived[i];
    return NULL;
}

static const struct record_column *stored_of(enum record_kind kind, const char *name)
{
    const int place = kind < RECORD_KIND_COUNT ? record_column_find(kind, name) : -1;
    return place < 0 ? NULL : &record_kind_info(kind)->columns[place];
}

// The column that a view shows in another unit: "ttft_ms" of ttft_ns, "x_bytes_mb".
static const struct record_column *scaled_of(enum record_kind kind, const char *name)
{
    char stem[TEXT_SIZE];
    const size_t size = strlen(name);
    if (size < 4)
        return NULL;
    if (strcmp(name + size - 3, "_ms") == 0)
        (void)snprintf(stem, sizeof stem, "%.*s_ns", (int)size - 3, name);
    else if (strcmp(name + size - 3, "_mb") == 0)
        (void)snprintf(stem, sizeof stem, "%.*s", (int)size - 3, name);
    else
        return NULL;
    return stored_of(kind, stem);
}

static void tag_with(const char *name, const char *type, const char *unit, const char *presence)
{
    char behind[TEXT_SIZE];
    (void)snprintf(behind, sizeof behind, "  %s%s%s%s%s", type, *type && *unit ? ", " : "", unit,
                   *presence && (*type || *unit) ? ", " : "", presence);
    roff_tag(name, behind);
}

static void put_stored(const struct schema_column *column, const struct record_column *stored)
{
    const bool as_text =
        column->is_view && stored->type != COLUMN_INT && stored->type != COLUMN_REAL;
    tag_with(column->name, as_text ? "text" : column_type_name(stored->type),
             unit_name(stored->unit), stored->maybe ? "may be NULL" : "");
    roff_text("%s", stored->meaning);
}

static enum status put_other(const struct schema_column *column, struct error *err)
{
    char type[TEXT_SIZE];
    const char *meaning = describe_column(column->table, column->name);
    if (!meaning && strncmp(column->name, "dropped_", 8) == 0)
        meaning = "records lost for that reason";
    if (!meaning)
        return error_set(err, STATUS_INVALID, "%s.%s: no description (client/man/describe.c)",
                         column->table, column->name);
    (void)snprintf(type, sizeof type, "%s", column->type);
    for (char *c = type; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    tag_with(column->name, type, column->key ? "key" : "",
             !column->is_view && column->may_be_null ? "may be NULL" : "");
    roff_text("%s", meaning);
    return STATUS_OK;
}

static enum status put_column(const struct schema_column *column, struct error *err)
{
    const enum record_kind kind = kind_of(column->table);
    const struct record_column *stored = stored_of(kind, column->name);
    const struct record_derived *derived =
        kind < RECORD_KIND_COUNT ? derived_of(kind, column->name) : NULL;
    if (stored) {
        put_stored(column, stored);
    } else if (derived) {
        tag_with(column->name, "real", unit_name(derived->unit), "may be NULL");
        roff_text("%s", derived->meaning);
    } else if (kind < RECORD_KIND_COUNT && scaled_of(kind, column->name)) {
        const bool is_time = strcmp(column->name + strlen(column->name) - 3, "_ms") == 0;
        tag_with(column->name, "real", is_time ? "ms" : "MB of 1024 * 1024 bytes", "");
        roff_text("%s", scaled_of(kind, column->name)->meaning);
    } else {
        return put_other(column, err);
    }
    return STATUS_OK;
}

// True for a view's column that its table, or every view, has.
static bool is_repeated(const struct schema_column *column)
{
    static const char *const common[] = {"run",    "host",       "stream",
                                         "number", "started_ns", "received_ns"};
    const enum record_kind kind = kind_of(column->table);
    if (!column->is_view || kind == RECORD_KIND_COUNT)
        return false;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strcmp(common[i], column->name) == 0)
            return true;
    return stored_of(kind, column->name) != NULL;
}

// ---- The page -----------------------------------------------------------------------------

// The part of the page being written.
struct part {
    bool is_view, is_record;
};

static enum status put_table(const struct schema_column *column, struct error *err)
{
    const enum record_kind kind = kind_of(column->table);
    const char *meaning = describe_table(column->table);
    roff_macro("SS", column->table);
    if (meaning)
        roff_text("This is %s.", meaning);
    else if (column->is_view && kind < RECORD_KIND_COUNT)
        roff_text("The table %s with names and enumerations as text, the run as its UUID, the "
                  "host; and:",
                  record_kind_info(kind)->name);
    else if (kind < RECORD_KIND_COUNT)
        roff_text("A row is %s (kind %d).", record_kind_info(kind)->meaning, (int)kind);
    else
        return error_set(err, STATUS_INVALID, "%s: no description (client/man/describe.c)",
                         column->table);
    return STATUS_OK;
}

static enum status on_column(void *context, const struct schema_column *column, struct error *err)
{
    const struct part *part = context;
    const bool is_record = kind_of(column->table) < RECORD_KIND_COUNT;
    if (part->is_view != column->is_view || (!part->is_view && part->is_record != is_record))
        return STATUS_OK;
    enum status status = column->is_first ? put_table(column, err) : STATUS_OK;
    return status == STATUS_OK && !is_repeated(column) ? put_column(column, err) : status;
}

static enum status put_part(const char *title, const char *text, const struct part *part,
                            struct error *err)
{
    struct part copy = *part;
    roff_macro("SH", title);
    roff_text("%s", text);
    return schema_each_column(on_column, &copy, err);
}

static void put_head(void)
{
    printf(".TH INFERSTAT-SCHEMA 7 \"\" \"inferstat\" \"Miscellaneous Information\"\n");
    roff_macro("SH", "NAME");
    printf("inferstat\\-schema \\- the tables and views of a store of inferstat\n");
    roff_macro("SH", "DESCRIPTION");
    roff_text("%s", intro);
    roff_macro("PP", NULL);
    roff_text(
        "This is version %d of the schema (PRAGMA user_version); the file's application id is "
        "%#x.  inferstatd(8) brings a store of an older version to its own; no program "
        "touches one of a newer version.",
        SCHEMA_VERSION, (unsigned)SCHEMA_APPLICATION_ID);
    roff_macro("SH", "CONVENTIONS");
    for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++) {
        if (i > 0)
            roff_macro("PP", NULL);
        roff_text("%s", conventions[i]);
    }
}

static void put_tail(void)
{
    page_enumerations();
    roff_macro("SH", "EXAMPLES");
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        if (i > 0)
            roff_macro("PP", NULL);
        roff_text("%s", examples[i][0]);
        roff_example(examples[i][1]);
    }
    roff_macro("SH", "NOTES");
    roff_text("New columns are added at the end of a kind; their meaning never changes; views list "
              "theirs by name.  A copy of the file while a collector has it open needs the log "
              "beside it (FILE-wal): \"inferstat backup\" or sqlite3's .backup make whole copies.");
    roff_macro("SH", "SEE ALSO");
    printf(".BR inferstat (1),\n.BR inferstat\\-metrics (7),\n.BR inferstatd (8),\n"
           ".BR sqlite3 (1)\n");
}

enum status page_schema(struct error *err)
{
    put_head();
    enum status status =
        put_part("RECORDS",
                 "One table per kind.  Kinds are numbered in this order, from 0; columns of a kind "
                 "are numbered from 0, starting after received_ns.",
                 &(struct part){.is_record = true}, err);
    if (status == STATUS_OK)
        status = put_part("OTHER TABLES", "Administration of records.", &(struct part){0}, err);
    if (status == STATUS_OK)
        status = put_part("VIEWS", "Views with text and scaled units.",
                          &(struct part){.is_view = true}, err);
    if (status == STATUS_OK)
        put_tail();
    return status;
}
