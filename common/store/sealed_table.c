#include "common/store/sealed_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/excess.h"
#include "common/store/seal_columns.h"
#include "common/store/sealed_walk.h"

// A column of the table: one that is kept, or made from such.
struct shown {
    unsigned kept;               // its place in seal_columns
    const struct excess *excess; // NULL: it is that
};

enum { ROOM = 2 * SEAL_COLUMNS_MAX };

struct module {
    enum record_kind kind;
    unsigned shown_count;
    struct shown shown[ROOM];
    struct sealed_cache cache;
};

struct table {
    sqlite3_vtab base;
    sqlite3 *db;
    struct module *module;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct sealed_walk walk;
    bool is_over;
};

// ---- Plans ----------------------------------------------------------------------------

enum { ID = 0, STARTED = 4, FALLING = 1, BY_TIME = 2 };

// Conditions on ids and times, as letters of a plan's text: column and comparison.
static char letter_of(int column, unsigned char op)
{
    if (column != ID && column != STARTED)
        return 0;
    const char *letters = column == ID ? "=<>lg" : "EBALG";
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return letters[0];
    case SQLITE_INDEX_CONSTRAINT_LT:
        return letters[1];
    case SQLITE_INDEX_CONSTRAINT_GT:
        return letters[2];
    case SQLITE_INDEX_CONSTRAINT_LE:
        return letters[3];
    case SQLITE_INDEX_CONSTRAINT_GE:
        return letters[4];
    default:
        return 0;
    }
}

// What a condition leaves of many rows, about.
static double share_left(char letter)
{
    if (letter == '=')
        return 1e-6;
    return letter == 'E' ? 1e-5 : letter == '<' || letter == 'l' ? 0.5 : 0.2;
}

// Rows come by id, or by start and then by id; rising or falling.
static void plan_order(sqlite3_index_info *info)
{
    const struct sqlite3_index_orderby *by = info->aOrderBy;
    if (info->nOrderBy < 1 || info->nOrderBy > 2)
        return;
    const bool by_id = info->nOrderBy == 1 && by[0].iColumn == ID;
    const bool by_time = by[0].iColumn == STARTED &&
                         (info->nOrderBy == 1 || (by[1].iColumn == ID && by[1].desc == by[0].desc));
    if (!by_id && !by_time)
        return;
    info->orderByConsumed = 1;
    info->idxNum = (by[0].desc ? FALLING : 0) | (by_time ? BY_TIME : 0);
}

static int table_plan(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    char *text = sqlite3_malloc(info->nConstraint + 1);
    double rows = 1e6;
    int count = 0;
    if (!text)
        return SQLITE_NOMEM;
    for (int i = 0; i < info->nConstraint; i++) {
        const char letter = letter_of(info->aConstraint[i].iColumn, info->aConstraint[i].op);
        if (!letter || !info->aConstraint[i].usable)
            continue;
        text[count++] = letter;
        info->aConstraintUsage[i].argvIndex = count;
        rows *= share_left(letter);
    }
    text[count] = '\0';
    info->idxStr = text;
    info->needToFreeIdxStr = 1;
    plan_order(info);
    info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
    // A segment at least is read; its columns are decoded, which no row of a table is.
    info->estimatedCost = 1e4 + 4 * rows;
    return SQLITE_OK;
}

// Narrows bounds by a condition.  What is no integer is left to SQLite, which looks at
// all conditions again.
static void narrow(struct cursor *cursor, char letter, sqlite3_value *value)
{
    if (sqlite3_value_type(value) != SQLITE_INTEGER)
        return;
    const int64_t number = sqlite3_value_int64(value);
    struct sealed_span *bounds = strchr("=<>lg", letter) ? &cursor->walk.ids : &cursor->walk.times;
    int64_t first = INT64_MIN, last = INT64_MAX;
    if (strchr("=EgG", letter))
        first = number;
    if (strchr("=ElL", letter))
        last = number;
    if (strchr(">A", letter)) {
        first = number == INT64_MAX ? number : number + 1;
        cursor->is_over |= number == INT64_MAX;
    }
    if (strchr("<B", letter)) {
        last = number == INT64_MIN ? number : number - 1;
        cursor->is_over |= number == INT64_MIN;
    }
    bounds->first = first > bounds->first ? first : bounds->first;
    bounds->last = last < bounds->last ? last : bounds->last;
}

// ---- Cursors --------------------------------------------------------------------------

static int fail(const struct cursor *cursor, enum status status, const struct error *err)
{
    sqlite3_vtab *base = cursor->base.pVtab;
    sqlite3_free(base->zErrMsg);
    base->zErrMsg = sqlite3_mprintf("%s", err->text);
    if (status == STATUS_NOMEM)
        return SQLITE_NOMEM;
    if (status == STATUS_CORRUPT)
        return SQLITE_CORRUPT_VTAB;
    const int rc = sqlite3_errcode(((struct table *)base)->db);
    return rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE ? rc : SQLITE_ERROR;
}

static struct module *module_of(const struct cursor *cursor)
{
    return ((const struct table *)cursor->base.pVtab)->module;
}

static int table_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    struct error err = {.text = ""};
    enum status status = sealed_walk_next(&cursor->walk, &err);
    cursor->is_over = status == STATUS_NO_DATA;
    return status == STATUS_OK || cursor->is_over ? SQLITE_OK : fail(cursor, status, &err);
}

static int table_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    struct cursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *out = &cursor->base;
    return SQLITE_OK;
}

static int table_close(sqlite3_vtab_cursor *base)
{
    sealed_walk_deinit(&((struct cursor *)base)->walk);
    free(base); // the first member of struct cursor
    return SQLITE_OK;
}

static int table_filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc,
                        sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct table *table = (const struct table *)base->pVtab;
    struct error err = {.text = ""};
    sealed_walk_deinit(&cursor->walk);
    sealed_walk_init(&cursor->walk, table->db, &table->module->cache, table->module->kind);
    cursor->walk.is_falling = plan & FALLING;
    cursor->walk.by_time = plan & BY_TIME;
    cursor->is_over = false;
    for (int i = 0; i < argc; i++)
        narrow(cursor, text[i], argv[i]);
    if (cursor->is_over)
        return SQLITE_OK;
    enum status status = sealed_walk_begin(&cursor->walk, &err);
    return status == STATUS_OK ? table_next(base) : fail(cursor, status, &err);
}

static int table_eof(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)base)->is_over;
}

static enum status value_at(struct cursor *cursor, unsigned kept, int64_t *value, bool *is_absent)
{
    return sealed_value(cursor->walk.at, kept, cursor->walk.row, value, is_absent);
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    struct cursor *cursor = (struct cursor *)base;
    struct error err;
    int64_t id = 0;
    bool is_absent = false;
    enum status status = value_at(cursor, SEAL_ID, &id, &is_absent);
    *out = id;
    return status == STATUS_OK
               ? SQLITE_OK
               : fail(cursor, sealed_walk_failed(cursor->walk.at, status, &err), &err);
}

// ---- Values ---------------------------------------------------------------------------

static unsigned place_of(int column)
{
    return column == EXCESS_STARTED ? (unsigned)SEAL_STARTED : (unsigned)(SEAL_FIRST + column);
}

// The value is what is kept beyond base - less; rows whose sum is no integer are not
// sealed, so that it does not matter here that it wraps.
static enum status add_base(struct cursor *cursor, const struct excess *excess, int64_t *value)
{
    int64_t base = 0, less = 0;
    bool is_absent = false;
    enum status status = value_at(cursor, place_of(excess->base), &base, &is_absent);
    if (status == STATUS_OK && excess->less != EXCESS_NONE)
        status = value_at(cursor, place_of(excess->less), &less, &is_absent);
    *value = (int64_t)((uint64_t)*value + (uint64_t)base - (uint64_t)less);
    return status;
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
    struct cursor *cursor = (struct cursor *)base;
    const struct shown *shown = &module_of(cursor)->shown[column];
    struct error err;
    int64_t value = 0;
    bool is_absent = false;
    enum status status = value_at(cursor, shown->kept, &value, &is_absent);
    if (status == STATUS_OK && !is_absent && shown->excess)
        status = add_base(cursor, shown->excess, &value);
    if (status != STATUS_OK)
        return fail(cursor, sealed_walk_failed(cursor->walk.at, status, &err), &err);
    if (is_absent)
        sqlite3_result_null(out);
    else
        sqlite3_result_int64(out, value);
    return SQLITE_OK;
}

// ---- The module -----------------------------------------------------------------------

static void show(struct module *module, unsigned kept, const struct excess *excess)
{
    module->shown[module->shown_count++] = (struct shown){kept, excess};
}

// In the order of schema_append_all.
static void list_shown(struct module *module)
{
    static const unsigned first[] = {SEAL_ID, SEAL_RUN, SEAL_STREAM, SEAL_NUMBER, SEAL_STARTED};
    const int count = (int)record_kind_info(module->kind)->column_count;
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++)
        show(module, first[i], NULL);
    for (int i = EXCESS_RECEIVED; i < count; i++) {
        const struct excess *excess = excess_find(module->kind, i);
        show(module, (unsigned)(SEAL_FIRST + i), NULL);
        if (excess)
            show(module, (unsigned)(SEAL_FIRST + i), excess);
    }
}

// With the types of the kind's table: SQLite looks through a UNION ALL of the two only
// where they are the same.
static void append_definition(sqlite3_str *sql, enum record_kind kind)
{
    const int count = (int)record_kind_info(kind)->column_count;
    sqlite3_str_appendall(sql, "CREATE TABLE sealed(id INTEGER, run INTEGER, stream INTEGER,"
                               " number INTEGER, started_ns INTEGER");
    for (int i = EXCESS_RECEIVED; i < count; i++) {
        const struct excess *excess = excess_find(kind, i);
        if (excess)
            sqlite3_str_appendf(sql, ", \"%w\"", excess->kept);
        sqlite3_str_appendf(sql, ", \"%w\" INTEGER", excess_name(kind, i));
    }
    sqlite3_str_appendall(sql, ")");
}

static int table_connect(sqlite3 *db, void *context, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **text)
{
    (void)argc;
    (void)argv;
    (void)text;
    struct module *module = context;
    struct table *table = calloc(1, sizeof *table);
    sqlite3_str *sql = sqlite3_str_new(db);
    append_definition(sql, module->kind);
    char *definition = sqlite3_str_finish(sql);
    int rc = table && definition ? sqlite3_declare_vtab(db, definition) : SQLITE_NOMEM;
    sqlite3_free(definition);
    if (rc != SQLITE_OK) {
        free(table);
        return rc;
    }
    table->db = db;
    table->module = module;
    *out = &table->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *base)
{
    free(base); // the first member of struct table
    return SQLITE_OK;
}

// There is nothing to create: the table is there wherever the module is.
static const sqlite3_module table_module = {
    .iVersion = 1,
    .xConnect = table_connect,
    .xBestIndex = table_plan,
    .xDisconnect = table_disconnect,
    .xOpen = table_open,
    .xClose = table_close,
    .xFilter = table_filter,
    .xNext = table_next,
    .xEof = table_eof,
    .xColumn = table_column,
    .xRowid = table_rowid,
};

static void free_module(void *context)
{
    struct module *module = context;
    sealed_cache_deinit(&module->cache);
    free(module);
}

static enum status register_kind(sqlite3 *db, enum record_kind kind, struct error *err)
{
    char name[64];
    struct module *module = calloc(1, sizeof *module);
    if (!module)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    module->kind = kind;
    list_shown(module);
    (void)snprintf(name, sizeof name, "sealed_%s", record_kind_info(kind)->name);
    // Frees the module where it fails.
    if (sqlite3_create_module_v2(db, name, &table_module, module, free_module) != SQLITE_OK)
        return database_error(db, "store", err);
    return STATUS_OK;
}

enum status sealed_table_register(sqlite3 *db, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        if (seal_has_kind((enum record_kind)kind))
            status = register_kind(db, (enum record_kind)kind, err);
    return status;
}

static enum status check_kind(sqlite3 *db, enum record_kind kind, const char *path,
                              struct error *err)
{
    char sql[128];
    const char *name = record_kind_info(kind)->name;
    int64_t count = 0;
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM main.sqlite_schema WHERE lower(name) = 'sealed_%s'", name);
    enum status status = database_integer(db, sql, &count, err);
    if (status == STATUS_OK && count > 0)
        status = error_set(err, STATUS_UNSUPPORTED,
                           "store %s: its table or view sealed_%s hides the sealed rows, which have"
                           " that name (rename or drop it)",
                           path, name);
    return status;
}

enum status sealed_table_check(sqlite3 *db, const char *path, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        if (seal_has_kind((enum record_kind)kind))
            status = check_kind(db, (enum record_kind)kind, path, err);
    return status;
}
