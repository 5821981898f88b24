// Runs of a file, with what belongs to them, on their way into this store.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/delivery.h"
#include "common/core/text.h"
#include "common/store/database.h"
#include "common/store/import_reading.h"
#include "common/store/reader.h"
#include "common/store/schema.h"

enum {
    RANGES_MAX = 100000, // of one run
    NAMES_MAX = 65535,   // the same; as on the wire
    RUN_COLUMNS_AT = 6,  // in a run's row, behind what the table has besides
};

// What new runs have in each table, for their ledgers.
static enum status count_coming(struct importing *importing, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        struct run_tallies *tallies = &importing->tallies[kind];
        for (size_t i = 0; i < importing->run_count && status == STATUS_OK; i++)
            if (!importing->runs[i].is_here)
                status = run_tally_add(tallies, importing->runs[i].from, err);
        if (status == STATUS_OK && tallies->count > 0)
            status = run_tally_rows(tallies, importing->from->db, "main", (enum record_kind)kind,
                                    false, err);
    }
    return status;
}

// ---- Runs, with what belongs to them ---------------------------------------------------------

// How far a piece is filled, to go back to.
struct filled {
    size_t runs, streams, ranges, unnumbered, ledgers, names, values, bytes;
};

static struct filled filled_now(const struct import_piece *piece)
{
    return (struct filled){piece->runs.count,       piece->streams.count, piece->ranges.count,
                           piece->unnumbered.count, piece->ledgers.count, piece->names.count,
                           piece->value_count,      piece->byte_count};
}

static void fill_back(struct import_piece *piece, struct filled to)
{
    piece->runs.count = to.runs;
    piece->streams.count = to.streams;
    piece->ranges.count = to.ranges;
    piece->unnumbered.count = to.unnumbered;
    piece->ledgers.count = to.ledgers;
    piece->names.count = to.names;
    piece->value_count = to.values;
    piece->byte_count = to.bytes;
}

typedef enum status take_part(struct importing *importing, int64_t run, int64_t place,
                              sqlite3_stmt *row, struct error *err);

// Hands over the rows that a statement gives for the run; `place` is the run's in the
// piece.
static enum status take_parts(struct importing *importing, const char *sql, int64_t run,
                              int64_t place, take_part *take, struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(importing->from->db, &row, sql, false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, run);
    int rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW && status == STATUS_OK)
        status = take(importing, run, place, row, err);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_finalize(row);
    return status;
}

enum status import_take_ints(struct importing *importing, struct import_rows *rows,
                             sqlite3_stmt *row, int first, int last, int64_t least, int64_t most,
                             struct error *err)
{
    enum status status = STATUS_OK;
    for (int i = first; i <= last && status == STATUS_OK; i++) {
        const int64_t value = sqlite3_column_int64(row, i);
        if (sqlite3_column_type(row, i) != SQLITE_INTEGER || value < least || value > most)
            return error_set(err, STATUS_INVALID, "%s: a number that cannot be",
                             sqlite3_column_name(row, i));
        status = import_add_int(&importing->piece, rows, value, err);
    }
    return status;
}

static enum status take_time(struct importing *importing, struct import_rows *rows,
                             sqlite3_stmt *row, int at, struct error *err)
{
    return sqlite3_column_type(row, at) == SQLITE_NULL
               ? import_add_null(&importing->piece, rows, err)
               : import_take_ints(importing, rows, row, at, at, INT64_MIN, INT64_MAX, err);
}

static enum status take_stream(struct importing *importing, int64_t run, int64_t place,
                               sqlite3_stmt *row, struct error *err)
{
    (void)run;
    struct import_rows *rows = &importing->piece.streams;
    enum status status = import_begin_row(&importing->piece, rows, place, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 0, 0, 0, UINT32_MAX, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 1, 3, 0, IMPORT_NUMBER_MAX + 1, err);
    if (status == STATUS_OK)
        status = import_take_text(&importing->piece, rows, row, 4, err);
    return status == STATUS_OK ? take_time(importing, rows, row, 5, err) : status;
}

static enum status take_range(struct importing *importing, int64_t run, int64_t place,
                              sqlite3_stmt *row, struct error *err)
{
    (void)run;
    struct import_rows *rows = &importing->piece.ranges;
    enum status status = import_begin_row(&importing->piece, rows, place, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 0, 0, 0, UINT32_MAX, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 1, 2, 1, IMPORT_NUMBER_MAX, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 3, 3, SCHEMA_RANGE_STORED,
                                  SCHEMA_RANGE_DROPPED, err);
    if (status == STATUS_OK && sqlite3_column_type(row, 4) == SQLITE_NULL)
        status = import_add_null(&importing->piece, rows, err);
    else if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 4, 4, 0, DELIVERY_REASON_COUNT - 1, err);
    if (status == STATUS_OK)
        status = import_take_text(&importing->piece, rows, row, 5, err);
    for (int i = 6; i <= 7 && status == STATUS_OK; i++)
        status = take_time(importing, rows, row, i, err);
    return status;
}

static enum status take_unnumbered(struct importing *importing, int64_t run, int64_t place,
                                   sqlite3_stmt *row, struct error *err)
{
    (void)run;
    struct import_rows *rows = &importing->piece.unnumbered;
    enum status status = import_begin_row(&importing->piece, rows, place, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 0, 0, INT64_MIN, INT64_MAX, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 1, 1, 0, IMPORT_VALUE_MAX, err);
    return status == STATUS_OK
               ? import_take_ints(importing, rows, row, 2, 3, INT64_MIN, INT64_MAX, err)
               : status;
}

// The records that are to come are cleared ones until they are here.  So is for ever
// what expired there: it did not expire here.
static enum status take_ledger(struct importing *importing, int64_t run, int64_t place,
                               sqlite3_stmt *row, struct error *err)
{
    struct import_piece *piece = &importing->piece;
    struct import_rows *rows = &piece->ledgers;
    const int64_t kind = sqlite3_column_int64(row, 0);
    enum status status = import_begin_row(piece, rows, place, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 0, 0, RECORD_KIND_RUN + 1,
                                  RECORD_KIND_COUNT - 1, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, rows, row, 1, 1, 0, IMPORT_VALUE_MAX, err);
    if (status == STATUS_OK)
        status = import_add_int(piece, rows, 0, err);
    if (status != STATUS_OK)
        return status;
    // Both are within what was stored, else the audit would have said so.
    const struct run_tally *tally = run_tally_find(&importing->tallies[kind], run);
    const int64_t gone = sqlite3_column_int64(row, 2) + sqlite3_column_int64(row, 3);
    const uint64_t sum = (uint64_t)sqlite3_column_int64(row, 4) + (tally ? tally->sum : 0);
    status = import_add_int(piece, rows, gone + (tally ? tally->count : 0), err);
    return status == STATUS_OK ? import_add_int(piece, rows, run_tally_bits(sum), err) : status;
}

// A name and the run's number of it.  One that is not sound stays out: its records will.
static enum status take_name(struct importing *importing, int64_t run, int64_t place,
                             sqlite3_stmt *row, struct error *err)
{
    (void)run;
    struct import_piece *piece = &importing->piece;
    const size_t names = piece->names.count, values = piece->value_count;
    enum status status = import_begin_row(piece, &piece->names, place, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, &piece->names, row, 0, 0, 0, UINT32_MAX, err);
    if (status == STATUS_OK)
        status = import_take_name(piece, &piece->names, sqlite3_column_int64(row, 1),
                                  &importing->names, err);
    if (status != STATUS_INVALID)
        return status;
    piece->names.count = names;
    piece->value_count = values;
    return STATUS_OK;
}

// A run that is open there comes from nobody any more.
static void end_run(struct import_piece *piece, const struct import_row *row)
{
    struct import_value *end = &piece->values[row->first + RUN_COLUMNS_AT + RUN_END];
    if (end->i == RECORD_RUN_END_OPEN)
        end->i = RECORD_RUN_END_SILENT;
}

// The uuid as this store writes them.
static void set_uuid(struct import_piece *piece, const struct import_row *row)
{
    const struct import_value *uuid = &piece->values[row->first + RUN_COLUMNS_AT + RUN_UUID];
    unsigned char bytes[16];
    char text[37];
    (void)snprintf(text, sizeof text, "%.*s", (int)uuid->size, piece->bytes + uuid->place);
    if (!text_to_uuid(bytes, text))
        return; // it was looked at before
    text_from_uuid(text, bytes);
    memcpy(piece->bytes + uuid->place, text, uuid->size);
}

static enum status take_run_row(struct importing *importing, int64_t run, int64_t place,
                                sqlite3_stmt *row, struct error *err)
{
    struct import_piece *piece = &importing->piece;
    enum status status = import_begin_row(piece, &piece->runs, run, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, &piece->runs, row, 0, 2, INT64_MIN, INT64_MAX, err);
    if (status == STATUS_OK)
        status = import_take_ints(importing, &piece->runs, row, 3, 5, 0, IMPORT_VALUE_MAX, err);
    if (status == STATUS_OK)
        status = import_take_columns(piece, &piece->runs, RECORD_KIND_RUN, row, RUN_COLUMNS_AT,
                                     &importing->names, err);
    if (status != STATUS_OK)
        return status;
    end_run(piece, &piece->runs.list[place]);
    set_uuid(piece, &piece->runs.list[place]);
    return STATUS_OK;
}

static char *run_sql(void)
{
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_RUN);
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT started_ns, received_ns, heard_ns, refused, clock_suspects,"
                               " unknown_columns");
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", info->columns[i].name);
    sqlite3_str_appendall(sql, " FROM run WHERE run = ?");
    return sqlite3_str_finish(sql);
}

static enum status take_run(struct importing *importing, const char *sql, int64_t run,
                            struct error *err)
{
    const struct filled before = filled_now(&importing->piece);
    const int64_t place = (int64_t)before.runs;
    enum status status = take_parts(importing, sql, run, place, take_run_row, err);
    if (status == STATUS_OK)
        status = take_parts(importing,
                            "SELECT stream, next, produced, unnumbered, activity,"
                            " activity_since_ns FROM stream WHERE run = ?",
                            run, place, take_stream, err);
    if (status == STATUS_OK)
        status = take_parts(importing,
                            "SELECT stream, first, last, state, reason, detail, since_ns,"
                            " until_ns FROM range WHERE run = ?",
                            run, place, take_range, err);
    if (status == STATUS_OK)
        status = take_parts(importing,
                            "SELECT told_ns, lost, since_ns, until_ns FROM unnumbered"
                            " WHERE run = ?",
                            run, place, take_unnumbered, err);
    if (status == STATUS_OK)
        status = take_parts(importing,
                            "SELECT kind, stored, expired, cleared, gone_sum FROM ledger"
                            " WHERE run = ?",
                            run, place, take_ledger, err);
    if (status == STATUS_OK)
        status = take_parts(importing, "SELECT number, name FROM run_name WHERE run = ?", run,
                            place, take_name, err);
    if (status == STATUS_OK &&
        (importing->piece.ranges.count - before.ranges > RANGES_MAX ||
         importing->piece.unnumbered.count - before.unnumbered > RANGES_MAX ||
         importing->piece.streams.count - before.streams > DELIVERY_STREAMS_MAX ||
         importing->piece.names.count - before.names > NAMES_MAX))
        status = error_set(err, STATUS_INVALID,
                           "it has more streams, ranges, losses or names than a run can");
    if (status == STATUS_INVALID)
        fill_back(&importing->piece, before);
    return status;
}

// Gives the runs of the piece, whose places in `runs` are listed, away.
static enum status send_runs(struct importing *importing, const size_t *places, struct error *err)
{
    struct import_piece *piece = &importing->piece;
    if (piece->runs.count == 0)
        return STATUS_OK;
    piece->has_runs = true;
    enum status status = importing->sink->apply(importing->sink->context, piece, err);
    for (size_t i = 0; i < piece->runs.count && status == STATUS_OK; i++) {
        importing->runs[places[i]].to = piece->ids[i]; // 0: it came from elsewhere just now
        if (piece->ids[i])
            importing->new_runs++;
        else
            importing->there++;
    }
    import_piece_clear(piece);
    piece->has_runs = false;
    return status;
}

enum status import_send_runs(struct importing *importing, struct error *err)
{
    size_t places[IMPORT_RUNS_MAX];
    char *sql = run_sql();
    enum status status =
        sql ? count_coming(importing, err) : error_set(err, STATUS_NOMEM, "store: out of memory");
    for (size_t i = 0; i < importing->run_count && status == STATUS_OK; i++) {
        struct coming *coming = &importing->runs[i];
        if (coming->is_here)
            continue;
        const size_t place = importing->piece.runs.count;
        status = take_run(importing, sql, coming->from, err);
        if (status == STATUS_INVALID) {
            importing->refused++;
            import_note(importing, "a run", err->text);
            status = STATUS_OK;
            continue;
        }
        places[place] = i;
        if (status == STATUS_OK && (importing->piece.runs.count == IMPORT_RUNS_MAX ||
                                    importing->piece.ranges.count > IMPORT_ROWS_MAX ||
                                    importing->piece.unnumbered.count > IMPORT_ROWS_MAX ||
                                    importing->piece.names.count > IMPORT_ROWS_MAX))
            status = send_runs(importing, places, err);
    }
    sqlite3_free(sql);
    return status == STATUS_OK ? send_runs(importing, places, err) : status;
}
