// The tables and views of the store, for inferstat-schema(7).
#include <stdio.h>
#include <string.h>

#include "client/man/pages.h"
#include "common/store/schema/schema_list.h"

enum { TEXT_SIZE = 512 };

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

// ---- Parts --------------------------------------------------------------------------------

// The tables of one part of the page.
struct part {
    bool is_view, is_record;
};

static enum status put_table(const struct schema_column *column, struct error *err)
{
    const enum record_kind kind = kind_of(column->table);
    const char *meaning = describe_table(column->table);
    roff_section(column->table);
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

enum status page_records(struct error *err)
{
    return schema_each_column(on_column, &(struct part){.is_record = true}, err);
}

enum status page_tables(struct error *err)
{
    return schema_each_column(on_column, &(struct part){0}, err);
}

enum status page_views(struct error *err)
{
    return schema_each_column(on_column, &(struct part){.is_view = true}, err);
}
