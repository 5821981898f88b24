#include "common/store/audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/saturate.h"
#include "common/store/database.h"
#include "common/store/filter.h"
#include "common/store/fingerprint.h"
#include "common/store/reader.h"
#include "common/store/schema.h"
#include "common/store/sealed.h"
#include "common/sys/clock.h"

const char *audit_verdict_text(enum audit_verdict verdict)
{
    static const char *const texts[] = {[AUDIT_BALANCED] = "balanced",
                                        [AUDIT_UNBALANCED] = "unbalanced",
                                        [AUDIT_OPEN] = "open",
                                        [AUDIT_UNKNOWN] = "unknown"};
    return texts[verdict];
}

enum audit_verdict audit_verdict(const struct audit_run *run)
{
    if (run->findings > 0)
        return AUDIT_UNBALANCED;
    if (run->end == RECORD_RUN_END_OPEN)
        return AUDIT_OPEN;
    return run->end == RECORD_RUN_END_SILENT ? AUDIT_UNKNOWN : AUDIT_BALANCED;
}

// What does not fit any more is counted all the same, and so is what memory was
// missing for: a finding is never lost.
void audit_find(struct audit_run *run, const char *format, ...)
{
    run->findings++;
    if (!run->finding)
        run->finding = calloc(1, AUDIT_FINDING_SIZE);
    if (!run->finding)
        return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    static const size_t tail = 40; // "; and N more"
    const size_t size = strlen(text) + (run->finding_size ? 2 : 0);
    if (run->finding_size + size + tail >= AUDIT_FINDING_SIZE)
        return;
    (void)snprintf(run->finding + run->finding_size, AUDIT_FINDING_SIZE - run->finding_size, "%s%s",
                   run->finding_size ? "; " : "", text);
    run->finding_size += size;
    run->told++;
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// Room for one more element of an array that doubles.
static bool make_room(void **array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return true;
    const size_t wanted = *room ? 2 * *room : 64;
    void *grown = realloc(*array, wanted * size);
    if (!grown)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

// ---- Runs ----------------------------------------------------------------------

// The run of that id in the page, or NULL.  Rows of a run come together: the last
// one found is looked at first.
static struct audit_run *find_run(struct audit *audit, int64_t id)
{
    if (audit->at_run < audit->run_count && audit->runs[audit->at_run].run == id)
        return &audit->runs[audit->at_run];
    size_t low = 0, high = audit->run_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (audit->runs[middle].run < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == audit->run_count || audit->runs[low].run != id)
        return NULL;
    audit->at_run = low;
    return &audit->runs[low];
}

// Something that belongs to a run which is not there.  NULL: it is not of this
// page, or there are too many such runs already.
static struct audit_run *find_stranger(struct audit *audit, int64_t id)
{
    if (!audit->is_whole || id <= audit->after || id > audit->last)
        return NULL;
    for (size_t i = 0; i < audit->stranger_count; i++)
        if (audit->strangers[i].run == id)
            return &audit->strangers[i];
    if (audit->stranger_count == AUDIT_STRANGERS_MAX) {
        audit->strangers_left_out++;
        return NULL;
    }
    struct audit_run *stranger = &audit->strangers[audit->stranger_count++];
    *stranger = (struct audit_run){.run = id, .host = GROUP_KEY_NONE, .is_stranger = true};
    return stranger;
}

static void find_something_strange(struct audit *audit, int64_t run, const char *table)
{
    struct audit_run *stranger = find_stranger(audit, run);
    if (stranger)
        audit_find(stranger,
                   "the table %s speaks of run number %lld, which is not in the table run", table,
                   (long long)run);
}

static enum status take_run(void *context, sqlite3_stmt *row, struct error *err)
{
    struct audit *audit = context;
    void *runs = audit->runs;
    if (!make_room(&runs, audit->run_count, &audit->run_room, sizeof *audit->runs))
        return out_of_memory(err);
    audit->runs = runs;
    audit->runs[audit->run_count++] = (struct audit_run){
        .run = sqlite3_column_int64(row, 0),
        .host = sqlite3_column_int64(row, 1),
        .started_ns = sqlite3_column_int64(row, 2),
        .end = sqlite3_column_int64(row, 3),
        .run_produced = sqlite3_column_int64(row, 4),
        .run_stored = sqlite3_column_int64(row, 5),
        .duplicates = sqlite3_column_int64(row, 6),
        .has_ended = sqlite3_column_type(row, 7) != SQLITE_NULL,
    };
    return STATUS_OK;
}

// One run more than wanted tells whether there are more.
static enum status read_runs(struct audit *audit, uint32_t limit, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql, "SELECT t.run, t.host, t.started_ns, t.\"end\", t.produced,"
                               " t.stored, t.duplicates, t.ended_ns FROM run t NOT INDEXED");
    filter_where_run(sql, audit->filter);
    sqlite3_str_appendf(sql, " AND t.run > %lld ORDER BY t.run LIMIT %lld", (long long)audit->after,
                        (long long)limit + 1);
    enum status status = reader_scan(audit->store, sql, audit->filter, take_run, audit, err);
    audit->more = audit->run_count > limit;
    if (audit->more)
        audit->run_count = limit;
    return status;
}

// ---- Streams -------------------------------------------------------------------

// Streams come by run and stream: a run's are together.  Where there are too many
// for one page, it ends before the run at hand.
static enum status take_stream(void *context, sqlite3_stmt *row, struct error *err)
{
    struct audit *audit = context;
    const int64_t id = sqlite3_column_int64(row, 0);
    struct audit_run *run = find_run(audit, id);
    if (!run)
        return STATUS_OK; // looked at again when the page's end is known
    const size_t place = (size_t)(run - audit->runs);
    if (audit->stream_count >= AUDIT_STREAMS_MAX && run->stream_count == 0 && place > 0) {
        audit->run_count = place;
        audit->more = true;
        return STATUS_CANCELLED;
    }
    void *streams = audit->streams;
    if (!make_room(&streams, audit->stream_count, &audit->stream_room, sizeof *audit->streams))
        return out_of_memory(err);
    audit->streams = streams;
    if (run->stream_count++ == 0)
        run->first_stream = audit->stream_count;
    const int64_t produced = sqlite3_column_int64(row, 3);
    const int64_t unnumbered = sqlite3_column_int64(row, 4);
    audit->streams[audit->stream_count++] =
        (struct audit_stream){.stream = sqlite3_column_int64(row, 1),
                              .next = sqlite3_column_int64(row, 2),
                              .produced = produced};
    if (produced < 0 || unnumbered < 0)
        audit_find(run, "stream %lld: negative counts",
                   (long long)audit->streams[audit->stream_count - 1].stream);
    run->produced = saturate_add(run->produced, produced);
    run->unnumbered = saturate_add(run->unnumbered, unnumbered);
    return STATUS_OK;
}

// Appends what bounds rows of a table to the runs of the page.
static void append_page(sqlite3_str *sql, const struct audit *audit)
{
    const int64_t first = saturate_add(audit->after, 1);
    const bool is_whole = audit->is_whole || audit->run_count == 0;
    sqlite3_str_appendf(sql, " WHERE t.run BETWEEN %lld AND %lld",
                        (long long)(is_whole ? first : audit->runs[0].run), (long long)audit->last);
}

static enum status read_streams(struct audit *audit, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql,
                          "SELECT t.run, t.stream, t.next, t.produced, t.unnumbered FROM stream t");
    append_page(sql, audit);
    sqlite3_str_appendall(sql, " ORDER BY t.run, t.stream");
    enum status status = reader_scan(audit->store, sql, NULL, take_stream, audit, err);
    return status == STATUS_CANCELLED ? STATUS_OK : status;
}

static struct audit_stream *find_stream(struct audit *audit, const struct audit_run *run,
                                        int64_t stream)
{
    struct audit_stream *streams = audit->streams + run->first_stream;
    const size_t guess = audit->at_stream - run->first_stream; // wraps where it is another run's
    if (guess < run->stream_count && streams[guess].stream == stream)
        return &streams[guess];
    size_t low = 0, high = run->stream_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (streams[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == run->stream_count || streams[low].stream != stream)
        return NULL;
    audit->at_stream = run->first_stream + low;
    return &streams[low];
}

static enum status take_strange_stream(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    const int64_t run = sqlite3_column_int64(row, 0);
    if (!find_run(audit, run))
        find_something_strange(audit, run, "stream");
    return STATUS_OK;
}

static enum status read_strange_streams(struct audit *audit, struct error *err)
{
    if (!audit->is_whole)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql, "SELECT DISTINCT t.run FROM stream t");
    append_page(sql, audit);
    return reader_scan(audit->store, sql, NULL, take_strange_stream, audit, err);
}

// ---- Ranges --------------------------------------------------------------------

static bool range_is_sound(int64_t first, int64_t last, int64_t state, sqlite3_stmt *row)
{
    if (first < 1 || last < first)
        return false;
    if (state == SCHEMA_RANGE_STORED)
        return sqlite3_column_type(row, 5) == SQLITE_NULL;
    const int64_t reason = sqlite3_column_int64(row, 5);
    return state == SCHEMA_RANGE_DROPPED && reason >= 0 && reason < DELIVERY_REASON_COUNT;
}

static void check_neighbours(struct audit_run *run, const struct audit_stream *stream,
                             int64_t first, int64_t last)
{
    if (first > stream->end && first - stream->end > 1)
        audit_find(run, "stream %lld: numbers %lld to %lld are neither stored nor dropped",
                   (long long)stream->stream, (long long)stream->end + 1, (long long)first - 1);
    else if (first <= stream->end)
        audit_find(run, "stream %lld: numbers %lld to %lld are in two ranges",
                   (long long)stream->stream, (long long)first,
                   (long long)(last < stream->end ? last : stream->end));
}

static enum status take_range(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    const int64_t id = sqlite3_column_int64(row, 0), number = sqlite3_column_int64(row, 1);
    const int64_t first = sqlite3_column_int64(row, 2), last = sqlite3_column_int64(row, 3);
    const int64_t state = sqlite3_column_int64(row, 4);
    struct audit_run *run = find_run(audit, id);
    if (!run) {
        find_something_strange(audit, id, "range");
        return STATUS_OK;
    }
    struct audit_stream *stream = find_stream(audit, run, number);
    if (!stream) {
        audit_find(run, "stream %lld has a range, and is not in the table stream",
                   (long long)number);
        return STATUS_OK;
    }
    if (!range_is_sound(first, last, state, row)) {
        audit_find(run, "stream %lld: the range from %lld to %lld makes no sense",
                   (long long)number, (long long)first, (long long)last);
        return STATUS_OK;
    }
    check_neighbours(run, stream, first, last);
    const int64_t count = last - first + 1;
    if (last > stream->end)
        stream->end = last;
    if (state == SCHEMA_RANGE_STORED) {
        stream->stored = saturate_add(stream->stored, count);
        run->stored = saturate_add(run->stored, count);
    } else {
        int64_t *dropped = &run->dropped[sqlite3_column_int64(row, 5)];
        *dropped = saturate_add(*dropped, count);
    }
    return STATUS_OK;
}

static enum status read_ranges(struct audit *audit, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(
        sql, "SELECT t.run, t.stream, t.first, t.last, t.state, t.reason FROM range t");
    append_page(sql, audit);
    sqlite3_str_appendall(sql, " ORDER BY t.run, t.stream, t.first");
    return reader_scan(audit->store, sql, NULL, take_range, audit, err);
}

// ---- Ledgers -------------------------------------------------------------------

static enum status take_expiry(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    const int64_t kind = sqlite3_column_int64(row, 0);
    if (kind >= 0 && kind < RECORD_KIND_COUNT)
        audit->has_expired[kind] = true;
    return STATUS_OK;
}

static enum status read_expiry(struct audit *audit, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql, "SELECT kind FROM expiry");
    return reader_scan(audit->store, sql, NULL, take_expiry, audit, err);
}

static enum status take_ledger(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    const int64_t id = sqlite3_column_int64(row, 0), kind = sqlite3_column_int64(row, 1);
    const int64_t stored = sqlite3_column_int64(row, 2), expired = sqlite3_column_int64(row, 3);
    const int64_t cleared = sqlite3_column_int64(row, 4);
    struct audit_run *run = find_run(audit, id);
    if (!run) {
        find_something_strange(audit, id, "ledger");
        return STATUS_OK;
    }
    if (kind <= RECORD_KIND_RUN || kind >= RECORD_KIND_COUNT) {
        audit_find(run, "the ledger counts records of kind %lld, which there is not",
                   (long long)kind);
        return STATUS_OK;
    }
    const int64_t gone = saturate_add(expired, cleared);
    const bool has_sum = sqlite3_column_type(row, 5) != SQLITE_NULL;
    const int64_t sum = sqlite3_column_int64(row, 5);
    if (stored < 0 || expired < 0 || cleared < 0 || gone > stored || (gone == 0 && sum != 0))
        audit_find(run, "the ledger of %s makes no sense: %lld stored, %lld expired, %lld cleared",
                   record_kind_info((enum record_kind)kind)->name, (long long)stored,
                   (long long)expired, (long long)cleared);
    if (!has_sum && (gone == 0 || id > audit->no_fingerprints))
        audit_find(run, "the ledger of %s has no fingerprint of what is gone",
                   record_kind_info((enum record_kind)kind)->name);
    if (expired != 0 && !audit->has_expired[kind])
        audit_find(run, "the ledger of %s has %lld expired, and nothing of it expired",
                   record_kind_info((enum record_kind)kind)->name, (long long)expired);
    run->gone_sum += (uint64_t)sum;
    run->is_gone_unknown |= !has_sum;
    run->kept[kind] = gone < 0 || stored < gone ? 0 : stored - gone;
    run->ledger_stored = saturate_add(run->ledger_stored, stored);
    run->expired = saturate_add(run->expired, expired);
    run->cleared = saturate_add(run->cleared, cleared);
    return STATUS_OK;
}

static enum status read_ledgers(struct audit *audit, struct error *err)
{
    enum status status = database_integer(
        audit->store->db,
        "SELECT coalesce((SELECT value FROM meta WHERE key = '" SCHEMA_NO_FINGERPRINTS "'), 0)",
        &audit->no_fingerprints, err);
    if (status == STATUS_OK)
        status = read_expiry(audit, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(
        sql, "SELECT t.run, t.kind, t.stored, t.expired, t.cleared, t.gone_sum FROM ledger t");
    append_page(sql, audit);
    return reader_scan(audit->store, sql, NULL, take_ledger, audit, err);
}

// ---- Rows ----------------------------------------------------------------------

// Brings the range that holds the number, or the one before it, into the stream.
static enum status look_up(struct audit *audit, const struct audit_run *run,
                           struct audit_stream *stream, int64_t number, struct error *err)
{
    if (stream->first != 0 && number >= stream->first && number <= stream->last)
        return STATUS_OK;
    (void)sqlite3_bind_int64(audit->range, 1, run->run);
    (void)sqlite3_bind_int64(audit->range, 2, stream->stream);
    (void)sqlite3_bind_int64(audit->range, 3, number);
    const int rc = sqlite3_step(audit->range);
    enum status status = STATUS_OK;
    if (rc == SQLITE_ROW) {
        stream->first = sqlite3_column_int64(audit->range, 0);
        stream->last = sqlite3_column_int64(audit->range, 1);
        stream->is_stored = sqlite3_column_int64(audit->range, 2) == SCHEMA_RANGE_STORED;
    } else if (rc == SQLITE_DONE) {
        stream->first = 0;
    } else {
        status = database_error(audit->store->db, "store", err);
    }
    (void)sqlite3_reset(audit->range);
    return status;
}

static enum status check_number(struct audit *audit, struct audit_run *run,
                                struct audit_stream *stream, int64_t id, int64_t number,
                                struct error *err)
{
    const char *table = record_kind_info(audit->kind)->name;
    if (number > stream->last_number)
        stream->last_number = number;
    else if (run->disorders++ == 0)
        run->disorder = (struct audit_disorder){.stream = stream->stream,
                                                .kind = audit->kind,
                                                .id = id,
                                                .number = number,
                                                .before = stream->last_number};
    enum status status = look_up(audit, run, stream, number, err);
    if (status != STATUS_OK)
        return status;
    const bool in_range = stream->first != 0 && number >= stream->first && number <= stream->last;
    if (!in_range || !stream->is_stored)
        audit_find(run, "stream %lld: row %lld of %s has number %lld, which %s",
                   (long long)stream->stream, (long long)id, table, (long long)number,
                   in_range ? "was dropped" : "was never stored");
    return STATUS_OK;
}

static enum status take_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct audit *audit = context;
    const int64_t id = sqlite3_column_int64(row, 0), number = sqlite3_column_int64(row, 3);
    struct audit_run *run = find_run(audit, sqlite3_column_int64(row, 1));
    if (!run)
        run = find_stranger(audit, sqlite3_column_int64(row, 1));
    if (!run)
        return STATUS_OK;
    run->rows++;
    run->counted[audit->kind]++;
    if (run->is_stranger)
        return STATUS_OK; // all of them are one finding in the end
    struct audit_stream *stream = find_stream(audit, run, sqlite3_column_int64(row, 2));
    if (!stream) {
        if (run->strays++ == 0) {
            run->stray_id = id;
            run->stray_kind = audit->kind;
        }
        return STATUS_OK;
    }
    stream->rows++;
    stream->sum += fingerprint_of(stream->stream, number);
    return check_number(audit, run, stream, id, number, err);
}

static enum status read_rows(struct audit *audit, enum record_kind kind, struct error *err)
{
    audit->kind = kind;
    for (size_t i = 0; i < audit->stream_count; i++)
        audit->streams[i].last_number = 0;
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql, "SELECT t.id, t.run, t.stream, t.number FROM ");
    store_append_from(sql, audit->store, kind, INT64_MIN, INT64_MIN, SEALED_UNINDEXED);
    append_page(sql, audit);
    sqlite3_str_appendall(sql, " ORDER BY t.id");
    return reader_scan(audit->store, sql, NULL, take_row, audit, err);
}

static enum status read_all_rows(struct audit *audit, struct error *err)
{
    enum status status = database_prepare(
        audit->store->db, &audit->range,
        "SELECT first, last, state FROM range WHERE run = ? AND stream = ? AND first <= ?"
        " ORDER BY first DESC LIMIT 1",
        true, err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = read_rows(audit, (enum record_kind)kind, err);
    return status;
}

// ---- Verdicts ------------------------------------------------------------------

static bool is_over(const struct audit_run *run)
{
    return run->end == RECORD_RUN_END_CLOSED || run->end == RECORD_RUN_END_KILLED;
}

static void check_end(struct audit_run *run, const struct audit_stream *stream)
{
    const int64_t before = stream->next > INT64_MIN ? stream->next - 1 : stream->next;
    if (before != stream->end)
        audit_find(run, "stream %lld: the number wanted next is %lld, and its ranges end at %lld",
                   (long long)stream->stream, (long long)stream->next, (long long)stream->end);
    if (stream->produced < before)
        audit_find(run, "stream %lld: %lld were produced, and its ranges end at %lld",
                   (long long)stream->stream, (long long)stream->produced, (long long)stream->end);
    if (stream->produced <= before)
        return;
    const int64_t waiting = saturate_add(stream->produced, before < 0 ? 0 : -before);
    run->in_flight = saturate_add(run->in_flight, waiting);
    if (is_over(run))
        audit_find(run, "stream %lld: numbers %lld to %lld never came", (long long)stream->stream,
                   (long long)stream->next, (long long)stream->produced);
}

static void check_sums(struct audit_run *run)
{
    if (run->strays > 0)
        audit_find(run, "%lld rows, from row %lld of %s on, are of streams that are not there",
                   (long long)run->strays, (long long)run->stray_id,
                   record_kind_info(run->stray_kind)->name);
    if (run->run_produced != run->produced)
        audit_find(run, "the run has produced %lld, its streams %lld", (long long)run->run_produced,
                   (long long)run->produced);
    if (run->run_stored != run->stored)
        audit_find(run, "the run has %lld stored, its ranges %lld", (long long)run->run_stored,
                   (long long)run->stored);
    if (run->ledger_stored != run->stored)
        audit_find(run, "the ledger has %lld stored, the ranges %lld",
                   (long long)run->ledger_stored, (long long)run->stored);
    if (run->end < RECORD_RUN_END_OPEN || run->end > RECORD_RUN_END_SILENT)
        audit_find(run, "the run ended in way %lld, which there is not", (long long)run->end);
    if (run->end == RECORD_RUN_END_OPEN && run->has_ended)
        audit_find(run, "the run is open, and has a time at which it ended");
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++)
        if (run->counted[kind] != run->kept[kind])
            audit_find(run, "%s has %lld rows, the ledger %lld",
                       record_kind_info((enum record_kind)kind)->name,
                       (long long)run->counted[kind], (long long)run->kept[kind]);
}

static bool has_gone(const struct audit_run *run)
{
    return run->expired != 0 || run->cleared != 0;
}

// Ranges that hold far more numbers than there can be rows are not counted through,
// which would not end.
enum { NUMBERS_BEYOND_ROWS = 1000000 };

// Rows of one stream against the numbers stored.  Where some of the run's are gone
// nobody knows which stream's.
static enum status check_stream_rows(struct audit *audit, struct audit_run *run,
                                     const struct audit_stream *stream, uint64_t *expected,
                                     struct error *err)
{
    if (stream->stored / 2 > run->rows + run->expired + run->cleared + NUMBERS_BEYOND_ROWS) {
        audit_find(run, "stream %lld: %lld rows, and far more numbers stored: %lld",
                   (long long)stream->stream, (long long)stream->rows, (long long)stream->stored);
        return STATUS_OK;
    }
    enum status status = audit_expected(audit, run, stream, expected, err);
    if (status != STATUS_OK ||
        (has_gone(run) ? stream->rows <= stream->stored
                       : stream->rows == stream->stored && stream->sum == *expected))
        return status;
    char which[64] = "";
    struct audit_fault fault;
    if (!has_gone(run) && audit_search(audit, run, stream, &fault))
        (void)snprintf(which, sizeof which, ": number %lld is %s", (long long)fault.number,
                       fault.is_missing ? "missing" : "there more than once");
    audit_find(run, "stream %lld: %lld rows of %lld numbers stored%s%s", (long long)stream->stream,
               (long long)stream->rows, (long long)stream->stored,
               stream->rows == stream->stored ? ", but not theirs" : "", which);
    return STATUS_OK;
}

static enum status check_rows(struct audit *audit, struct audit_run *run, struct error *err)
{
    uint64_t sum = run->gone_sum, expected = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < run->stream_count && status == STATUS_OK; i++) {
        const struct audit_stream *stream = &audit->streams[run->first_stream + i];
        uint64_t of_stream = 0;
        status = check_stream_rows(audit, run, stream, &of_stream, err);
        sum += stream->sum;
        expected += of_stream;
    }
    if (status == STATUS_OK && has_gone(run) && !run->is_gone_unknown && sum != expected)
        audit_find(run, "rows and what expired or was cleared are not the numbers stored");
    return status;
}

// Rows of an import come in another order than they were made in.  Where all numbers
// are there, each once, that is all; else it shows where one is there twice.
static void check_order(struct audit_run *run)
{
    const struct audit_disorder *disorder = &run->disorder;
    if (run->disorders == 0 || (run->findings == 0 && !run->is_gone_unknown))
        return;
    audit_find(run, "stream %lld: row %lld of %s has number %lld behind number %lld%s",
               (long long)disorder->stream, (long long)disorder->id,
               record_kind_info(disorder->kind)->name, (long long)disorder->number,
               (long long)disorder->before, run->disorders > 1 ? ", and there are more" : "");
}

static void end_findings(struct audit_run *run)
{
    if (run->finding && run->findings > run->told)
        (void)snprintf(run->finding + run->finding_size, AUDIT_FINDING_SIZE - run->finding_size,
                       "; and %llu more", (unsigned long long)(run->findings - run->told));
}

static enum status check_run(struct audit *audit, struct audit_run *run, struct error *err)
{
    for (size_t i = 0; i < run->stream_count; i++)
        check_end(run, &audit->streams[run->first_stream + i]);
    check_sums(run);
    enum status status = check_rows(audit, run, err);
    check_order(run);
    end_findings(run);
    return status;
}

static void check_strangers(struct audit *audit)
{
    for (size_t i = 0; i < audit->stranger_count; i++) {
        struct audit_run *run = &audit->strangers[i];
        for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++)
            if (run->counted[kind] > 0)
                audit_find(run,
                           "%s has %lld rows of run number %lld, which is not in the table run",
                           record_kind_info((enum record_kind)kind)->name,
                           (long long)run->counted[kind], (long long)run->run);
        if (i + 1 == AUDIT_STRANGERS_MAX && audit->strangers_left_out > 0)
            audit_find(run, "and %llu rows of still other runs that are not there",
                       (unsigned long long)audit->strangers_left_out);
        end_findings(run);
    }
}

// ---- The page ------------------------------------------------------------------

static bool covers_all(const struct query_filter *filter)
{
    return filter->by[QUERY_BY_HOST][0] == '\0' && filter->by[QUERY_BY_RUN][0] == '\0' &&
           filter->since_ns == 0 && filter->until_ns == 0;
}

// A page of a whole store reaches to its last run, or, where that is the store's
// last, to whatever lies beyond.
static void set_last(struct audit *audit)
{
    const bool bounded = audit->run_count > 0 && (audit->more || !audit->is_whole);
    audit->last = bounded ? audit->runs[audit->run_count - 1].run : INT64_MAX;
}

static enum status read_page(struct audit *audit, uint32_t limit, struct error *err)
{
    enum status status = read_runs(audit, limit, err);
    if (status != STATUS_OK || (!audit->is_whole && audit->run_count == 0))
        return status;
    set_last(audit);
    status = read_streams(audit, err);
    set_last(audit); // too many streams end it sooner
    if (status == STATUS_OK)
        status = read_strange_streams(audit, err);
    if (status == STATUS_OK)
        status = read_ranges(audit, err);
    if (status == STATUS_OK)
        status = read_ledgers(audit, err);
    if (status == STATUS_OK)
        status = read_all_rows(audit, err);
    return status;
}

enum status audit_page(struct audit *audit, struct store *store, const struct query_filter *filter,
                       int64_t after, uint32_t limit, struct error *err)
{
    *audit = (struct audit){.store = store,
                            .filter = filter,
                            .is_whole = covers_all(filter),
                            .after = after,
                            .began_ns = clock_monotonic_ns()};
    enum status status = read_page(audit, limit, err);
    for (size_t i = 0; i < audit->run_count && status == STATUS_OK; i++)
        status = check_run(audit, &audit->runs[i], err);
    if (status == STATUS_OK)
        check_strangers(audit);
    return status;
}

void audit_deinit(struct audit *audit)
{
    for (size_t i = 0; i < audit->run_count; i++)
        free(audit->runs[i].finding);
    for (size_t i = 0; i < audit->stranger_count; i++)
        free(audit->strangers[i].finding);
    free(audit->runs);
    free(audit->streams);
    (void)sqlite3_finalize(audit->range);
    *audit = (struct audit){0};
}
