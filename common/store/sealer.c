#include "common/store/sealer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/excess.h"
#include "common/store/own_table.h"
#include "common/store/schema_tables.h"
#include "common/store/seal_columns.h"
#include "common/store/sealed.h"

enum { ROWS_A_STEP = 4096 };

#define LATE_NS INT64_C(3600000000000) // an hour

enum phase { PHASE_LOOK, PHASE_READ, PHASE_PACK, PHASE_STORE };

struct sealer {
    sqlite3 *db;
    enum record_kind kind;
    enum phase phase;
    int64_t after_id;  // looked at up to here
    int64_t until_id;  // the segment at work goes no further
    int64_t behind_id; // where it goes on behind a segment that is there; 0: there is none
    uint32_t wanted;   // rows of the segment at work
    sqlite3_stmt *read, *delete_row;
    struct seal_rows rows;
    unsigned char *absent[SEAL_COLUMNS_MAX];
    struct sealed_segment segment;
    struct seal_writer *writer;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// ---- Rows -----------------------------------------------------------------------------

// What is kept, in the order of seal_columns; behind it what is read in place of some.
static enum status prepare(struct sealer *sealer, struct error *err)
{
    const char *name = record_kind_info(sealer->kind)->name;
    const int count = (int)record_kind_info(sealer->kind)->column_count;
    sqlite3_str *sql = sqlite3_str_new(sealer->db);
    sqlite3_str_appendall(sql, "SELECT ");
    for (unsigned i = 0; i < sealer->rows.columns; i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", i ? ", " : "", sealer->rows.names[i]);
    for (int i = EXCESS_RECEIVED; i < count; i++)
        if (excess_find(sealer->kind, i))
            sqlite3_str_appendf(sql, ", \"%w\"", excess_name(sealer->kind, i));
    sqlite3_str_appendf(
        sql, " FROM main.\"%w\" NOT INDEXED WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3", name);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(sealer->db, &sealer->read, text, true, err) : out_of_memory(err);
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    text = sqlite3_mprintf("DELETE FROM main.\"%w\" WHERE id = ?1", name);
    status = text ? database_prepare(sealer->db, &sealer->delete_row, text, true, err)
                  : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

enum status sealer_new(struct sealer **out, sqlite3 *db, enum record_kind kind, struct error *err)
{
    assert(seal_has_kind(kind));
    struct sealer *sealer = calloc(1, sizeof *sealer);
    if (!sealer)
        return out_of_memory(err);
    sealer->db = db;
    sealer->kind = kind;
    sealer->rows.columns = seal_columns(kind, sealer->rows.names);
    sealer->rows.group = seal_group(kind);
    sealer->rows.behind = seal_behind(kind);
    *out = sealer;
    return STATUS_OK;
}

// Memory is held while there is a segment at work.
static void drop_rows(struct sealer *sealer)
{
    seal_writer_free(sealer->writer);
    sealer->writer = NULL;
    for (unsigned i = 0; i < SEAL_COLUMNS_MAX; i++) {
        free(sealer->rows.values[i]);
        free(sealer->absent[i]);
        sealer->rows.values[i] = NULL;
        sealer->rows.is_absent[i] = NULL;
        sealer->absent[i] = NULL;
    }
    sealer->rows.count = 0;
}

void sealer_free(struct sealer *sealer)
{
    if (!sealer)
        return;
    drop_rows(sealer);
    (void)sqlite3_finalize(sealer->read);
    (void)sqlite3_finalize(sealer->delete_row);
    free(sealer);
}

static enum status make_room(struct sealer *sealer, struct error *err)
{
    for (unsigned i = 0; i < sealer->rows.columns; i++) {
        sealer->rows.values[i] = calloc(SEAL_ROWS_MAX, sizeof **sealer->rows.values);
        sealer->absent[i] = calloc(SEAL_ROWS_MAX, 1);
        if (!sealer->rows.values[i] || !sealer->absent[i])
            return out_of_memory(err);
    }
    return STATUS_OK;
}

// Up to the next segment, or the newest row.
static enum status look(struct sealer *sealer, const struct sealer_limits *limits,
                        struct error *err)
{
    struct sealed_segment next;
    int64_t newest = 0;
    drop_rows(sealer);
    enum status status = own_table_check(sealer->db, sealer->kind, err);
    if (status == STATUS_OK)
        status = make_room(sealer, err);
    char *sql =
        sqlite3_mprintf("SELECT max(id) FROM main.\"%w\"", record_kind_info(sealer->kind)->name);
    if (status == STATUS_OK)
        status = sql ? database_integer(sealer->db, sql, &newest, err) : out_of_memory(err);
    sqlite3_free(sql);
    if (status == STATUS_OK)
        status = sealed_next(sealer->db, sealer->kind, sealer->after_id, &next, err);
    if (status != STATUS_OK)
        return status;
    sealer->until_id = limits->last_id < newest - 1 ? limits->last_id : newest - 1;
    sealer->behind_id = 0;
    sealer->wanted = limits->rows;
    if (next.id != 0 && next.first_id <= sealer->until_id) {
        sealer->until_id = next.first_id - 1;
        sealer->behind_id = next.last_id;
    }
    sealer->segment = (struct sealed_segment){
        .kind = (int64_t)sealer->kind, .first_started_ns = INT64_MAX, .last_started_ns = INT64_MIN};
    sealer->phase = PHASE_READ;
    return STATUS_OK;
}

// ---- Which rows -----------------------------------------------------------------------

static int64_t kept_at(const struct sealer *sealer, sqlite3_stmt *row, int column)
{
    (void)sealer;
    const int place = column == EXCESS_STARTED ? (int)SEAL_STARTED : (int)SEAL_FIRST + column;
    return sqlite3_column_int64(row, place);
}

// Whether what is read is the integer that a segment would give; rows that somebody has
// put texts into stay.
static bool excess_fits(const struct sealer *sealer, sqlite3_stmt *row, int column, int read)
{
    const struct excess *excess = excess_find(sealer->kind, column);
    const int kept = (int)SEAL_FIRST + column;
    if (sqlite3_column_type(row, kept) == SQLITE_NULL)
        return sqlite3_column_type(row, read) == SQLITE_NULL;
    int64_t value = 0;
    const int64_t base = kept_at(sealer, row, excess->base);
    const int64_t less = excess->less == EXCESS_NONE ? 0 : kept_at(sealer, row, excess->less);
    return sqlite3_column_type(row, read) == SQLITE_INTEGER &&
           !__builtin_sub_overflow(base, less, &value) &&
           !__builtin_add_overflow(value, sqlite3_column_int64(row, kept), &value) &&
           value == sqlite3_column_int64(row, read);
}

// By the clocks: what arrived late or before it began would make its segment one of a
// long time.
static bool came_at_once(int64_t started_ns, int64_t received_ns)
{
    int64_t after_ns = 0;
    return !__builtin_sub_overflow(received_ns, started_ns, &after_ns) && after_ns > -LATE_NS &&
           after_ns < LATE_NS;
}

static bool fits(const struct sealer *sealer, sqlite3_stmt *row)
{
    const int count = (int)record_kind_info(sealer->kind)->column_count;
    int read = (int)sealer->rows.columns;
    for (int i = 0; i < (int)sealer->rows.columns; i++) {
        const int type = sqlite3_column_type(row, i);
        if (type != SQLITE_INTEGER && type != SQLITE_NULL)
            return false;
    }
    for (int i = EXCESS_RECEIVED; i < count; i++)
        if (excess_find(sealer->kind, i) && !excess_fits(sealer, row, i, read++))
            return false;
    unsigned column = 0;
    int64_t value = 0;
    if (seal_stays(sealer->kind, &column, &value) &&
        sqlite3_column_int64(row, (int)column) == value)
        return false;
    return sqlite3_column_int64(row, SEAL_ID) > 0 &&
           came_at_once(sqlite3_column_int64(row, SEAL_STARTED),
                        sqlite3_column_int64(row, (int)sealer->rows.columns));
}

static void add_row(struct sealer *sealer, sqlite3_stmt *row)
{
    struct seal_rows *rows = &sealer->rows;
    struct sealed_segment *segment = &sealer->segment;
    const int64_t id = sqlite3_column_int64(row, SEAL_ID);
    const int64_t started_ns = sqlite3_column_int64(row, SEAL_STARTED);
    for (unsigned i = 0; i < rows->columns; i++) {
        const bool is_absent = sqlite3_column_type(row, (int)i) == SQLITE_NULL;
        rows->values[i][rows->count] = sqlite3_column_int64(row, (int)i);
        sealer->absent[i][rows->count] = is_absent;
        if (is_absent)
            rows->is_absent[i] = sealer->absent[i];
    }
    if (rows->count == 0)
        segment->first_id = id;
    segment->last_id = id;
    if (started_ns < segment->first_started_ns)
        segment->first_started_ns = started_ns;
    if (started_ns > segment->last_started_ns)
        segment->last_started_ns = started_ns;
    segment->rows = ++rows->count;
}

// Rows come in the order of their arrival: where one is young by both clocks, all behind
// it are.  One that is young by one of them alone has a clock that is wrong.
static void take_row(struct sealer *sealer, const struct sealer_limits *limits, sqlite3_stmt *row,
                     bool *is_end)
{
    const int64_t received_ns = sqlite3_column_int64(row, (int)sealer->rows.columns);
    const bool has_started = sqlite3_column_int64(row, SEAL_STARTED) < limits->before_ns;
    const bool has_arrived = received_ns < limits->before_ns;
    if (!has_started && !has_arrived) {
        *is_end = true;
        return;
    }
    if (has_started && has_arrived && fits(sealer, row))
        add_row(sealer, row);
    sealer->after_id = sqlite3_column_int64(row, SEAL_ID);
}

// Reads some rows; `*is_end`: there are no more for this segment.
static enum status read_rows(struct sealer *sealer, const struct sealer_limits *limits,
                             bool *is_end, bool *is_young, struct error *err)
{
    const uint32_t left = sealer->wanted - sealer->rows.count;
    const uint32_t wanted = left < ROWS_A_STEP ? left : ROWS_A_STEP;
    enum status status = sealer->read ? STATUS_OK : prepare(sealer, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(sealer->read, 1, sealer->after_id);
    (void)sqlite3_bind_int64(sealer->read, 2, sealer->until_id);
    (void)sqlite3_bind_int64(sealer->read, 3, wanted);
    uint32_t count = 0;
    int rc = SQLITE_DONE;
    while (!*is_young && (rc = sqlite3_step(sealer->read)) == SQLITE_ROW) {
        take_row(sealer, limits, sealer->read, is_young);
        count++;
    }
    if (!*is_young && rc != SQLITE_DONE)
        status = database_error(sealer->db, "store", err);
    (void)sqlite3_reset(sealer->read);
    *is_end = *is_young || count < wanted;
    return status;
}

// ---- Steps ----------------------------------------------------------------------------

static enum status begin_packing(struct sealer *sealer, struct error *err)
{
    struct seal_guess guesses[SEAL_GUESSES_MAX];
    const unsigned count = seal_guesses(sealer->kind, guesses);
    sealer->phase = PHASE_PACK;
    if (seal_writer_new(&sealer->writer, &sealer->rows, guesses, count) != STATUS_OK)
        return out_of_memory(err);
    return STATUS_OK;
}

// A segment is full, or as full as it can become between others.  What is too little to
// pay is left until the next start.
static enum status read_some(struct sealer *sealer, const struct sealer_limits *limits, bool *done,
                             struct error *err)
{
    bool is_end = false, is_young = false;
    enum status status = read_rows(sealer, limits, &is_end, &is_young, err);
    if (status != STATUS_OK)
        return status;
    const bool is_between = is_end && !is_young && sealer->behind_id != 0;
    const uint32_t least = sealer->wanted < SEALER_LEAST_ROWS ? sealer->wanted : SEALER_LEAST_ROWS;
    if (sealer->rows.count == sealer->wanted || (is_between && sealer->rows.count >= least))
        return begin_packing(sealer, err);
    if (!is_end)
        return STATUS_OK;
    sealer->phase = PHASE_LOOK;
    *done = !is_between;
    if (is_between)
        sealer->after_id = sealer->behind_id;
    else if (sealer->rows.count > 0) // these are looked at again when they are more
        sealer->after_id = sealer->segment.first_id - 1;
    drop_rows(sealer);
    return STATUS_OK;
}

static enum status delete_rows(struct sealer *sealer, bool *are_all, struct error *err)
{
    const int64_t *ids = sealer->rows.values[SEAL_ID];
    enum status status = STATUS_OK;
    *are_all = true;
    for (uint32_t i = 0; i < sealer->rows.count && status == STATUS_OK && *are_all; i++) {
        (void)sqlite3_bind_int64(sealer->delete_row, 1, ids[i]);
        status = database_run(sealer->db, sealer->delete_row, err);
        *are_all = sqlite3_changes(sealer->db) == 1;
    }
    return status;
}

static enum status store_segment(struct sealer *sealer, uint32_t *sealed, struct error *err)
{
    size_t size = 0;
    bool are_all = false;
    const void *bytes = seal_writer_bytes(sealer->writer, &size);
    sealer->phase = PHASE_LOOK;
    enum status status = database_exec(sealer->db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = own_table_check(sealer->db, sealer->kind, err);
    if (status == STATUS_OK)
        status = delete_rows(sealer, &are_all, err);
    if (status == STATUS_OK && are_all)
        status = sealed_add(sealer->db, &sealer->segment, &sealer->rows, bytes, size, err);
    if (status == STATUS_OK && are_all)
        status = database_exec(sealer->db, "COMMIT", err);
    if (status != STATUS_OK || !are_all) {
        database_rollback(sealer->db);
        sealer->after_id = sealer->segment.first_id - 1;
        return status;
    }
    *sealed = sealer->rows.count;
    return STATUS_OK;
}

static enum status pack_column(struct sealer *sealer, struct error *err)
{
    bool is_packed = false;
    if (seal_writer_step(sealer->writer, &is_packed) != STATUS_OK)
        return out_of_memory(err);
    if (is_packed)
        sealer->phase = PHASE_STORE;
    return STATUS_OK;
}

void sealer_restart(struct sealer *sealer)
{
    sealer->phase = PHASE_LOOK;
    sealer->after_id = 0;
    drop_rows(sealer);
}

enum status sealer_step(struct sealer *sealer, const struct sealer_limits *limits, bool *done,
                        uint32_t *sealed, struct error *err)
{
    enum status status = STATUS_OK;
    *done = false;
    *sealed = 0;
    switch (sealer->phase) {
    case PHASE_LOOK:
        status = look(sealer, limits, err);
        break;
    case PHASE_READ:
        status = read_some(sealer, limits, done, err);
        break;
    case PHASE_PACK:
        status = pack_column(sealer, err);
        break;
    case PHASE_STORE:
        status = store_segment(sealer, sealed, err);
        break;
    }
    if (status != STATUS_OK)
        sealer_restart(sealer);
    return status;
}
