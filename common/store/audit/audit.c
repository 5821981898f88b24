#include "common/store/audit/audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/store/read/filter.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "common/store/read/session.h"

enum {
    SEARCHES_MAX = 3,              // runs of a page whose wrong numbers are looked for
    NUMBERS_BEYOND_ROWS = 1000000, // numbers stored that are hashed without rows of theirs
    NUMBERS_PER_LOOK = 1 << 20,    // hashed between two looks at the clock
};

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

// ---- Findings --------------------------------------------------------------------

// Counts the finding even where there is no room or memory for its words.
__attribute__((format(printf, 2, 3))) static void add_finding(struct audit_run *run,
                                                              const char *format, ...)
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

static void end_findings(struct audit_run *run)
{
    if (run->finding && run->findings > run->told)
        (void)snprintf(run->finding + run->finding_size, AUDIT_FINDING_SIZE - run->finding_size,
                       "; and %llu more", (unsigned long long)(run->findings - run->told));
}

// ---- Runs and streams ------------------------------------------------------------

// The run of that id in the page, or NULL.  Rows of a run come together: the last one found
// is tried first.
static struct audit_run *find_run(struct audit *audit, int64_t id)
{
    if (audit->at_run && audit->at_run->run == id)
        return audit->at_run;
    struct audit_run *run = array_find(audit->runs, audit->run_count, sizeof *audit->runs, id);
    if (run)
        audit->at_run = run;
    return run;
}

// The same of a run that is not in the table run.  NULL where it is not of this page, or where
// there are too many such runs.
static struct audit_run *find_orphan(struct audit *audit, int64_t id)
{
    if (!audit->is_whole || id <= audit->after || id > audit->last)
        return NULL;
    for (size_t i = 0; i < audit->orphan_count; i++)
        if (audit->orphans[i].run == id)
            return &audit->orphans[i];
    if (audit->orphan_count == AUDIT_ORPHANS_MAX) {
        audit->orphans_left_out++;
        return NULL;
    }
    struct audit_run *orphan = &audit->orphans[audit->orphan_count++];
    *orphan = (struct audit_run){.run = id, .host = GROUP_KEY_NONE, .is_orphan = true};
    return orphan;
}

static struct audit_stream *find_stream(struct audit *audit, const struct audit_run *run,
                                        int64_t stream)
{
    struct audit_stream *streams = run->streams;
    if (audit->at_stream >= streams && audit->at_stream < streams + run->stream_count &&
        audit->at_stream->stream == stream)
        return audit->at_stream;
    struct audit_stream *found = array_find(streams, run->stream_count, sizeof *streams, stream);
    if (found)
        audit->at_stream = found;
    return found;
}

// Runs behind the page's limit, of runs or of streams, are left to the next page.
static enum status on_run(void *context, sqlite3_stmt *row, struct error *err)
{
    struct audit *audit = context;
    const size_t streams = (size_t)sqlite3_column_int64(row, 11);
    audit->more = audit->more || audit->run_count == audit->limit ||
                  (audit->run_count > 0 && audit->stream_count + streams > AUDIT_STREAMS_MAX);
    if (audit->more)
        return STATUS_OK;
    if (!ARRAY_RESERVE(&audit->runs, &audit->run_room, audit->run_count + 1))
        return error_no_memory(err, "store");
    audit->stream_count += streams;
    audit->runs[audit->run_count++] = (struct audit_run){
        .run = sqlite3_column_int64(row, 0),
        .host = sqlite3_column_int64(row, 1),
        .started_ns = sqlite3_column_int64(row, 2),
        .end = sqlite3_column_int64(row, 3),
        .has_ended = sqlite3_column_type(row, 4) != SQLITE_NULL,
        .duplicates = sqlite3_column_int64(row, 5),
        .run_produced = sqlite3_column_int64(row, 6),
        .run_stored = sqlite3_column_int64(row, 7),
        .produced = sqlite3_column_int64(row, 8),
        .unnumbered = sqlite3_column_int64(row, 9),
        .in_flight = sqlite3_column_int64(row, 10),
        .no_room = sqlite3_column_int64(row, 12),
    };
    return STATUS_OK;
}

// One run more than wanted tells whether there are more.  total() does not fail where sums
// leave 64 bits.
static enum status read_runs(struct audit *audit, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(
        sql, "SELECT t.run, t.host, t.started_ns, t.\"end\", t.ended_ns, t.duplicates, t.produced,"
             " t.stored, CAST(total(s.produced) AS INTEGER), CAST(total(s.unnumbered) AS INTEGER),"
             " CAST(total(max(s.produced - max(s.next - 1, 0), 0)) AS INTEGER), count(s.stream),"
             " CAST(total(s.no_room) AS INTEGER)"
             " FROM run t NOT INDEXED LEFT JOIN stream s ON s.run = t.run");
    filter_where(sql, RECORD_KIND_RUN, audit->filter);
    sqlite3_str_appendf(sql, " AND t.run > %lld GROUP BY t.run ORDER BY t.run LIMIT %lld",
                        (long long)audit->after, (long long)audit->limit + 1);
    return reader_scan(audit->store, sql, audit->filter, on_run, audit, err);
}

// Scans rows of the page's runs: $1 to $2 are their ids, $3 the number of drop reasons.
static enum status scan_page(struct audit *audit, const char *text, row_callback *callback,
                             struct error *err)
{
    const bool is_whole = audit->is_whole || audit->run_count == 0;
    const int64_t numbers[] = {is_whole ? saturate_add(audit->after, 1) : audit->runs[0].run,
                               audit->last, DELIVERY_REASON_COUNT};
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql, text);
    return reader_scan_with(audit->store, sql, NULL, numbers, 3, callback, audit, err);
}

static enum status on_stream(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    struct audit_run *run = find_run(audit, sqlite3_column_int64(row, 0));
    if (!run)
        return STATUS_OK;
    if (run->stream_count++ == 0)
        run->streams = &audit->streams[audit->stream_count];
    audit->streams[audit->stream_count++].stream = sqlite3_column_int64(row, 1);
    return STATUS_OK;
}

static enum status read_streams(struct audit *audit, struct error *err)
{
    audit->streams = calloc(audit->stream_count + 1, sizeof *audit->streams);
    if (!audit->streams)
        return error_no_memory(err, "store");
    audit->stream_count = 0;
    return scan_page(audit,
                     "SELECT run, stream FROM stream WHERE run BETWEEN $1 AND $2"
                     " ORDER BY run, stream",
                     on_stream, err);
}

// ---- Ledgers ---------------------------------------------------------------------

static enum status on_ledger(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    const int64_t kind = sqlite3_column_int64(row, 1), stored = sqlite3_column_int64(row, 2);
    const int64_t expired = sqlite3_column_int64(row, 3), cleared = sqlite3_column_int64(row, 4);
    struct audit_run *run = find_run(audit, sqlite3_column_int64(row, 0));
    if (!run)
        return STATUS_OK;
    if (kind <= RECORD_KIND_RUN || kind >= RECORD_KIND_COUNT) {
        add_finding(run, "the ledger has records of unknown kind %lld", (long long)kind);
        return STATUS_OK;
    }
    const char *name = record_kind_info((enum record_kind)kind)->name;
    const int64_t gone = saturate_add(expired, cleared);
    const bool has_sum = sqlite3_column_type(row, 5) != SQLITE_NULL;
    const int64_t sum = sqlite3_column_int64(row, 5);
    if (stored < 0 || expired < 0 || cleared < 0 || gone > stored || (gone == 0 && sum != 0))
        add_finding(run, "the ledger of %s makes no sense: %lld stored, %lld expired, %lld cleared",
                    name, (long long)stored, (long long)expired, (long long)cleared);
    if (!has_sum && (gone == 0 || run->run > sqlite3_column_int64(row, 6)))
        add_finding(run, "the ledger of %s has no set hash of what is gone", name);
    if (expired != 0 && !sqlite3_column_int64(row, 7))
        add_finding(run, "the ledger of %s has %lld expired, and nothing of it expired", name,
                    (long long)expired);
    run->gone_sum += (uint64_t)sum;
    run->is_gone_unknown |= !has_sum;
    run->ledger_stored = saturate_add(run->ledger_stored, stored);
    run->kept[kind] = gone < 0 || stored < gone ? 0 : stored - gone;
    run->expired = saturate_add(run->expired, expired);
    run->cleared = saturate_add(run->cleared, cleared);
    return STATUS_OK;
}

static enum status read_ledgers(struct audit *audit, struct error *err)
{
    return scan_page(audit,
                     "SELECT l.run, l.kind, l.stored, l.expired, l.cleared, l.gone_sum,"
                     " (SELECT value FROM meta WHERE key = '" SCHEMA_NO_SET_HASHES "'),"
                     " EXISTS(SELECT 1 FROM expiry e WHERE e.kind = l.kind) FROM ledger l"
                     " WHERE l.run BETWEEN $1 AND $2",
                     on_ledger, err);
}

// ---- Rows ------------------------------------------------------------------------

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct audit *audit = context;
    const int64_t id = sqlite3_column_int64(row, 0);
    struct audit_run *run = find_run(audit, id);
    if (!run)
        run = find_orphan(audit, id);
    if (!run)
        return STATUS_OK;
    run->rows++;
    run->counted[audit->kind]++;
    if (run->is_orphan)
        return STATUS_OK;
    struct audit_stream *stream = find_stream(audit, run, sqlite3_column_int64(row, 1));
    if (!stream) {
        run->orphan_rows++;
        return STATUS_OK;
    }
    const uint64_t hash = set_hash_of(stream->stream, sqlite3_column_int64(row, 2));
    stream->rows++;
    stream->sum += hash;
    run->hashes[audit->kind] += hash;
    return STATUS_OK;
}

static enum status read_rows(struct audit *audit, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        audit->kind = (enum record_kind)kind;
        sqlite3_str *sql = sqlite3_str_new(audit->store->db);
        sqlite3_str_appendf(sql,
                            "SELECT t.run, t.stream, t.number FROM main.\"%w\" t NOT INDEXED"
                            " WHERE t.run BETWEEN $1 AND $2",
                            record_kind_info(audit->kind)->name);
        char *text = sqlite3_str_finish(sql);
        status = text ? scan_page(audit, text, on_row, err) : error_no_memory(err, "store");
        sqlite3_free(text);
    }
    return status;
}

// ---- Numbers stored and dropped --------------------------------------------------

// Adds the numbers of a range to what its stream should have.  Ranges that hold far more
// numbers than there are rows are counted and not hashed, which would not end.
static enum status add_stored(struct audit *audit, struct audit_run *run,
                              struct audit_stream *stream, int64_t first, int64_t last,
                              struct error *err)
{
    run->stored = saturate_add(run->stored, last - first + 1);
    stream->stored = saturate_add(stream->stored, last - first + 1);
    stream->is_too_many |=
        stream->stored / 2 >
        saturate_add(saturate_add(run->expired, run->cleared), run->rows + NUMBERS_BEYOND_ROWS);
    if (stream->is_too_many)
        return STATUS_OK;
    for (int64_t number = first; number <= last; number++) {
        stream->expected += set_hash_of(stream->stream, number);
        if (number % NUMBERS_PER_LOOK == 0 && store_is_over_budget(audit->store))
            return error_set(err, STATUS_TIMEOUT, "store: the audit takes too long");
    }
    return STATUS_OK;
}

static enum status on_range(void *context, sqlite3_stmt *row, struct error *err)
{
    struct audit *audit = context;
    struct audit_run *run = find_run(audit, sqlite3_column_int64(row, 0));
    struct audit_stream *stream =
        run ? find_stream(audit, run, sqlite3_column_int64(row, 1)) : NULL;
    const int64_t first = sqlite3_column_int64(row, 2), last = sqlite3_column_int64(row, 3);
    const int64_t reason = sqlite3_column_int64(row, 5);
    if (!stream)
        return STATUS_OK;
    if (sqlite3_column_int64(row, 4) == SCHEMA_RANGE_STORED)
        return add_stored(audit, run, stream, first, last, err);
    if (reason >= 0 && reason < DELIVERY_REASON_COUNT)
        run->dropped[reason] = saturate_add(run->dropped[reason], last - first + 1);
    return STATUS_OK;
}

static enum status read_ranges(struct audit *audit, struct error *err)
{
    return scan_page(audit,
                     "SELECT g.run, g.stream, g.first, g.last, g.state, g.reason FROM range g"
                     " WHERE g.run BETWEEN $1 AND $2 AND g.first >= 1 AND g.last >= g.first",
                     on_range, err);
}

// ---- What the tables say of each other -------------------------------------------

#define STRANGER(table)                                                                            \
    "SELECT DISTINCT t.run, printf('the table " table " speaks of run number %d, which is not in"  \
    " the table run', t.run) FROM " table " t WHERE t.run BETWEEN $1 AND $2"                       \
    " AND NOT EXISTS (SELECT 1 FROM run r WHERE r.run = t.run)"

// Each gives runs, from $1 to $2, and what is wrong with them.  $3: how many reasons there are
// for a drop.
static const char *const checks[] = {
    STRANGER("stream"),
    STRANGER("range"),
    STRANGER("ledger"),
    "SELECT run, printf('stream %d: the range from %d to %d makes no sense', stream, first, last)"
    " FROM range WHERE run BETWEEN $1 AND $2 AND NOT (first >= 1 AND last >= first AND CASE state"
    " WHEN 0 THEN reason IS NULL WHEN 1 THEN coalesce(reason, 0) BETWEEN 0 AND $3 - 1 ELSE 0 END)",
    "SELECT g.run, printf('stream %d has a range, and is not in the table stream', g.stream)"
    " FROM range g WHERE g.run BETWEEN $1 AND $2 AND NOT EXISTS"
    " (SELECT 1 FROM stream s WHERE s.run = g.run AND s.stream = g.stream)",
    "SELECT run, CASE WHEN first > before"
    " THEN printf('stream %d: numbers %d to %d are neither stored nor dropped', stream, before + 1,"
    "  first - 1)"
    " ELSE printf('stream %d: numbers %d to %d are in two ranges', stream, first,"
    "  min(last, before)) END"
    " FROM (SELECT run, stream, first, last, coalesce(max(last) OVER (PARTITION BY run, stream"
    "  ORDER BY first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before FROM range"
    "  WHERE run BETWEEN $1 AND $2 AND first >= 1 AND last >= first) WHERE first - before <> 1",
    "SELECT run, CASE WHEN produced < 0 OR unnumbered < 0 OR no_room NOT BETWEEN 0 AND unnumbered"
    " THEN printf('stream %d: impossible counts', stream)"
    " WHEN next - 1 <> last"
    " THEN printf('stream %d: the number wanted next is %d, and its ranges end at %d', stream,"
    "  next, last)"
    " WHEN produced < last"
    " THEN printf('stream %d: %d were produced, and its ranges end at %d', stream, produced, last)"
    " ELSE printf('stream %d: numbers %d to %d never came', stream, next, produced) END"
    " FROM (SELECT s.*, (SELECT coalesce(max(g.last), 0) FROM range g WHERE g.run = s.run"
    "  AND g.stream = s.stream AND g.first >= 1 AND g.last >= g.first) AS last,"
    "  (SELECT r.\"end\" IN (1, 2) FROM run r WHERE r.run = s.run) AS is_over"
    "  FROM stream s WHERE s.run BETWEEN $1 AND $2)"
    " WHERE produced < 0 OR unnumbered < 0 OR no_room NOT BETWEEN 0 AND unnumbered OR next - 1 <> "
    "last OR produced < last"
    "  OR (is_over AND produced > last)",
};

_Static_assert(RECORD_RUN_END_CLOSED == 1 && RECORD_RUN_END_KILLED == 2 &&
                   SCHEMA_RANGE_STORED == 0 && SCHEMA_RANGE_DROPPED == 1,
               "the numbers in the checks");

static enum status on_finding(void *context, sqlite3_stmt *row, struct error *err)
{
    struct audit *audit = context;
    const int64_t id = sqlite3_column_int64(row, 0);
    const char *text = (const char *)sqlite3_column_text(row, 1);
    struct audit_run *run = find_run(audit, id);
    if (!text)
        return error_no_memory(err, "store");
    if (!run)
        run = find_orphan(audit, id);
    if (run)
        add_finding(run, "%s", text);
    return STATUS_OK;
}

static enum status run_checks(struct audit *audit, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && status == STATUS_OK; i++)
        status = scan_page(audit, checks[i], on_finding, err);
    return status;
}

// ---- Wrong numbers ---------------------------------------------------------------

// Names the first wrong numbers of a run; of one whose rows are not all here, the first
// that cannot be its.
static enum status find_numbers(struct audit *audit, const struct audit_run *run, bool is_complete,
                                struct error *err)
{
    const int64_t numbers[] = {run->run, is_complete};
    sqlite3_str *sql = sqlite3_str_new(audit->store->db);
    sqlite3_str_appendall(sql, "WITH rows(stream, number) AS (SELECT 0, 0 WHERE 0");
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++)
        sqlite3_str_appendf(sql,
                            " UNION ALL SELECT t.stream, CAST(t.number AS INTEGER)"
                            " FROM main.\"%w\" t NOT INDEXED WHERE t.run = $1",
                            record_kind_info((enum record_kind)kind)->name);
    // Rows, and places without one where a number may be missing, with how many rows there are.
    sqlite3_str_appendall(
        sql,
        "), places(stream, number, is_row) AS (SELECT stream, number, 1 FROM rows"
        " UNION ALL SELECT stream, number + 1, 0 FROM rows"
        " UNION ALL SELECT stream, first, 0 FROM range WHERE run = $1)"
        " SELECT $1, printf('stream %d: number %d %s', stream, number, CASE"
        " WHEN times > 1 THEN 'is there more than once' WHEN times = 0 THEN 'is missing'"
        " WHEN state = 1 THEN 'was dropped, and is there' ELSE 'was never stored, and is there' "
        "END)"
        " FROM (SELECT p.stream, p.number, sum(p.is_row) AS times, (SELECT CASE"
        "  WHEN g.last >= p.number THEN g.state END FROM range g WHERE g.run = $1"
        "  AND g.stream = p.stream AND g.first <= p.number ORDER BY g.first DESC LIMIT 1) AS state"
        "  FROM places p GROUP BY p.stream, p.number)"
        " WHERE times > 1 OR (times = 1 AND state IS NOT 0) OR (times = 0 AND state IS 0 AND $2)"
        " ORDER BY stream, number LIMIT 3");
    return reader_scan_with(audit->store, sql, NULL, numbers, 2, on_finding, audit, err);
}

// Whether reading the tables a few times more leaves time for the rest.
static bool has_time(const struct audit *audit)
{
    if (audit->store->deadline_ns == 0)
        return true;
    const uint64_t now_ns = clock_monotonic_ns();
    return now_ns + 4 * (now_ns - audit->began_ns) < audit->store->deadline_ns;
}

// ---- Rows against numbers --------------------------------------------------------

static void check_counts(struct audit_run *run)
{
    if (run->run_produced != run->produced)
        add_finding(run, "the run has produced %lld, its streams %lld",
                    (long long)run->run_produced, (long long)run->produced);
    if (run->run_stored != run->stored)
        add_finding(run, "the run has %lld stored, its ranges %lld", (long long)run->run_stored,
                    (long long)run->stored);
    if (run->ledger_stored != run->stored)
        add_finding(run, "the ledger has %lld stored, the ranges %lld",
                    (long long)run->ledger_stored, (long long)run->stored);
    if (run->end < RECORD_RUN_END_OPEN || run->end > RECORD_RUN_END_SILENT)
        add_finding(run, "the run has the unknown end %lld", (long long)run->end);
    if (run->end == RECORD_RUN_END_OPEN && run->has_ended)
        add_finding(run, "the run is open, and has a time at which it ended");
    if (run->orphan_rows > 0)
        add_finding(run, "%lld rows are of streams that are not there",
                    (long long)run->orphan_rows);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++)
        if (run->counted[kind] != run->kept[kind])
            add_finding(run, "%s has %lld rows, the ledger %lld",
                        record_kind_info((enum record_kind)kind)->name,
                        (long long)run->counted[kind], (long long)run->kept[kind]);
}

// The streams of removed rows are unknown: then only the run as a whole has a set hash.
static enum status check_rows(struct audit *audit, struct audit_run *run, struct error *err)
{
    const bool has_gone = run->expired != 0 || run->cleared != 0;
    uint64_t sum = run->gone_sum, expected = 0;
    bool is_wrong = false;
    for (size_t i = 0; i < run->stream_count; i++) {
        const struct audit_stream *stream = &run->streams[i];
        sum += stream->sum;
        expected += stream->expected;
        if (stream->is_too_many) {
            add_finding(run, "stream %lld: %lld rows, and far more numbers stored: %lld",
                        (long long)stream->stream, (long long)stream->rows,
                        (long long)stream->stored);
        } else if (has_gone ? stream->rows > stream->stored
                            : stream->rows != stream->stored || stream->sum != stream->expected) {
            is_wrong = true;
            add_finding(run, "stream %lld: %lld rows of %lld numbers stored%s",
                        (long long)stream->stream, (long long)stream->rows,
                        (long long)stream->stored,
                        stream->rows == stream->stored ? ", but not theirs" : "");
        }
    }
    if (has_gone && !run->is_gone_unknown && sum != expected) {
        is_wrong = true;
        add_finding(run, "rows and what expired or was cleared are not the numbers stored");
    }
    if (run->is_gone_unknown || (is_wrong && audit->searches++ < SEARCHES_MAX && has_time(audit)))
        return find_numbers(audit, run, !has_gone, err);
    return STATUS_OK;
}

static void check_orphans(struct audit *audit)
{
    for (size_t i = 0; i < audit->orphan_count; i++) {
        struct audit_run *run = &audit->orphans[i];
        for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++)
            if (run->counted[kind] > 0)
                add_finding(run,
                            "%s has %lld rows of run number %lld, which is not in the table run",
                            record_kind_info((enum record_kind)kind)->name,
                            (long long)run->counted[kind], (long long)run->run);
        if (i + 1 == AUDIT_ORPHANS_MAX && audit->orphans_left_out > 0)
            add_finding(run, "and %llu rows of still other runs that are not there",
                        (unsigned long long)audit->orphans_left_out);
        end_findings(run);
    }
}

// ---- The page ------------------------------------------------------------------

static bool covers_all(const struct query_filter *filter)
{
    return filter->by[QUERY_BY_HOST][0] == '\0' && filter->by[QUERY_BY_RUN][0] == '\0' &&
           filter->since_ns == 0 && filter->until_ns == 0;
}

static enum status read_page(struct audit *audit, struct error *err)
{
    enum status status = read_runs(audit, err);
    if (status != STATUS_OK || (!audit->is_whole && audit->run_count == 0))
        return status;
    // The last page of a whole store also covers what lies behind its last run.
    const bool is_bounded = audit->run_count > 0 && (audit->more || !audit->is_whole);
    audit->last = is_bounded ? audit->runs[audit->run_count - 1].run : INT64_MAX;
    status = read_streams(audit, err);
    if (status == STATUS_OK)
        status = read_ledgers(audit, err);
    if (status == STATUS_OK)
        status = read_rows(audit, err);
    if (status == STATUS_OK)
        status = read_ranges(audit, err);
    return status == STATUS_OK ? run_checks(audit, err) : status;
}

enum status audit_page(struct audit *audit, struct store *store, const struct query_filter *filter,
                       int64_t after, uint32_t limit, struct error *err)
{
    *audit = (struct audit){.store = store,
                            .filter = filter,
                            .is_whole = covers_all(filter),
                            .after = after,
                            .limit = limit,
                            .began_ns = clock_monotonic_ns()};
    enum status status = read_page(audit, err);
    for (size_t i = 0; i < audit->run_count && status == STATUS_OK; i++) {
        struct audit_run *run = &audit->runs[i];
        check_counts(run);
        status = check_rows(audit, run, err);
        end_findings(run);
    }
    if (status == STATUS_OK)
        check_orphans(audit);
    return status;
}

void audit_deinit(struct audit *audit)
{
    for (size_t i = 0; i < audit->run_count; i++)
        free(audit->runs[i].finding);
    for (size_t i = 0; i < audit->orphan_count; i++)
        free(audit->orphans[i].finding);
    free(audit->runs);
    free(audit->streams);
    *audit = (struct audit){0};
}
