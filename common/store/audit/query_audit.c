// AUDIT: one row a run with its counts, verdict and findings.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/store/audit/audit.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"
#include "common/store/rollup/rollup_row.h"

static const struct answer_column columns[] = {
    {"run", UNIT_NONE},
    {"host", UNIT_NONE},
    {"started_ns", UNIT_TIME},
    {"end", UNIT_NONE},
    {"produced", UNIT_COUNT},
    {"stored", UNIT_COUNT},
    {"lost", UNIT_COUNT}, // all of what follows
    DROP_COLUMNS{"expired", UNIT_COUNT},
    {"cleared", UNIT_COUNT},
    {"duplicates", UNIT_COUNT},
    {"in_flight", UNIT_COUNT},
    {"rows", UNIT_COUNT},
    {"verdict", UNIT_NONE},
    {"finding", UNIT_NONE},
};

enum { COLUMN_RUN, COLUMN_HOST };

// Records dropped by a full ring never had numbers, nor those of threads without a ring.
static void set_drops(struct result *answer, const struct audit_run *run)
{
    int64_t lost = 0;
    for (unsigned reason = 0; reason < DELIVERY_REASON_COUNT; reason++) {
        const int64_t unnumbered = reason == DELIVERY_RING_FULL ? run->unnumbered - run->no_room
                                   : reason == DELIVERY_NO_ROOM ? run->no_room
                                                                : 0;
        const int64_t dropped = saturate_add(run->dropped[reason], unnumbered);
        answer_int(answer, drop_key((enum delivery_reason)reason), dropped);
        lost = saturate_add(lost, dropped);
    }
    answer_int(answer, "lost", lost);
}

static void set_counts(struct result *answer, const struct audit_run *run)
{
    answer_int(answer, "started_ns", run->started_ns);
    answer_int(answer, "produced", saturate_add(run->produced, run->unnumbered));
    answer_int(answer, "stored", run->stored);
    answer_int(answer, "expired", run->expired);
    answer_int(answer, "cleared", run->cleared);
    answer_int(answer, "duplicates", run->duplicates);
    answer_int(answer, "in_flight", run->in_flight);
    set_drops(answer, run);
}

static enum status set_identity(struct store *store, struct result *answer,
                                const struct audit_run *run, struct error *err)
{
    enum status status = answer_run(store, answer, COLUMN_RUN, run->run, err);
    if (status == STATUS_OK)
        status = answer_name(store, answer, COLUMN_HOST, run->host, err);
    const char *end = record_run_end_text(run->end, run->has_ended);
    if (end)
        answer_text(answer, "end", end);
    return status;
}

// A run that is not in the table run has only rows, a verdict and a finding.
static enum status add_row(struct store *store, struct result *answer, const struct audit_run *run,
                           struct error *err)
{
    answer_row(answer);
    enum status status = STATUS_OK;
    if (!run->is_orphan) {
        status = set_identity(store, answer, run, err);
        set_counts(answer, run);
    }
    answer_int(answer, "rows", run->rows);
    answer_text(answer, "verdict", audit_verdict_text(audit_verdict(run)));
    if (run->findings > 0)
        answer_text(answer, "finding", run->finding ? run->finding : "out of memory");
    return status;
}

// The sums of all runs that were removed, if any, in a row of their own.
static enum status add_forgotten(struct store *store, struct result *answer, struct error *err)
{
    int64_t runs = 0;
    enum status status = database_integer(
        store->db, "SELECT CAST(total(runs) AS INTEGER) FROM forgotten", &runs, err);
    if (status != STATUS_OK || runs == 0)
        return status;
    answer_row(answer);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(
        sql, "SELECT 'forgotten' AS verdict, min(since_ns) AS started_ns,"
             " CAST(total(produced) AS INTEGER) AS produced,"
             " CAST(total(stored) AS INTEGER) AS stored,"
             " CAST(total(dropped) + total(unnumbered) AS INTEGER) AS lost,"
             " CAST(total(expired) AS INTEGER) AS expired,"
             " CAST(total(cleared) AS INTEGER) AS cleared,"
             " CAST(total(duplicates) AS INTEGER) AS duplicates,"
             " printf('%d removed runs, %d of them on request', total(runs),"
             "  total(iif(why = 1, runs, 0))) AS finding FROM forgotten WHERE runs > 0");
    return reader_scan(store, sql, NULL, answer_on_row, answer, err);
}

_Static_assert(SCHEMA_FORGOTTEN_REQUEST == 1, "as add_forgotten has it");

static enum status add_rows(struct store *store, struct result *answer, const struct audit *audit,
                            struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < audit->run_count && status == STATUS_OK; i++)
        status = add_row(store, answer, &audit->runs[i], err);
    for (size_t i = 0; i < audit->orphan_count && status == STATUS_OK; i++)
        status = add_row(store, answer, &audit->orphans[i], err);
    if (status == STATUS_OK && audit->is_whole && !audit->more)
        status = add_forgotten(store, answer, err);
    if (audit->more)
        result_set_next_cursor(answer, (uint64_t)audit->last);
    return status;
}

enum status query_audit(struct store *store, const struct query *query, struct result **out,
                        struct error *err)
{
    if (query->cursor > INT64_MAX)
        return error_set(err, STATUS_INVALID, "query: no such cursor");
    enum query_dimension missing;
    if (!filter_applies(RECORD_KIND_RUN, &query->filter, &missing))
        return error_set(err, STATUS_INVALID, "an audit is of whole runs, not of a %s",
                         query_dimension_name(missing));
    const int64_t after = query->cursor ? (int64_t)query->cursor : INT64_MIN;
    const uint32_t limit =
        query->limit == 0 || query->limit > AUDIT_RUNS_MAX ? AUDIT_RUNS_MAX : query->limit;
    struct audit audit = {0};
    // Reads the whole file, so only for a process that has the store to itself (no budget).
    enum status status =
        query->cursor == 0 && store->budget_ns == 0 ? integrity_check(store, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = audit_page(&audit, store, &query->filter, after, limit, err);
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK)
        status = add_rows(store, *out, &audit, err);
    audit_deinit(&audit);
    return status;
}

enum status integrity_pragma(char finding[INTEGRITY_FINDING_SIZE], sqlite3 *db, const char *pragma,
                             struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, pragma, false, err);
    if (status != STATUS_OK)
        return status;
    finding[0] = '\0';
    const int rc = sqlite3_step(stmt);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (!text)
        status =
            rc == SQLITE_ROW ? error_no_memory(err, "store") : database_error(db, "store", err);
    if (text && strncmp(text, "***", 3) == 0 && strchr(text, '\n')) // "*** in database main ***"
        text = strchr(text, '\n') + 1;
    if (text && strcmp(text, "ok") != 0)
        (void)snprintf(finding, INTEGRITY_FINDING_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status check_rollup(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)context;
    struct ratio cell = {0};
    const struct rollup_row_key key = {
        .metric = sqlite3_column_int(row, 0),
        .grouping = (enum rollup_grouping)sqlite3_column_int(row, 1),
        .level = (enum rollup_level)sqlite3_column_int(row, 2),
        .started_ns = sqlite3_column_int64(row, 3),
        .series = sqlite3_column_int64(row, 4),
    };
    return rollup_row_add(&cell, &key, row, 5, err);
}

enum status integrity_check(struct store *store, struct error *err)
{
    char finding[INTEGRITY_FINDING_SIZE];
    enum status status = integrity_pragma(finding, store->db, "PRAGMA integrity_check(1)", err);
    if (status == STATUS_OK && finding[0])
        status = database_is_damaged(store->path, finding, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql,
                          "SELECT metric, grouping, level, started_ns, series, " ROLLUP_ROW_COLUMNS
                          " FROM rollup");
    status = reader_scan(store, sql, &(struct query_filter){0}, check_rollup, NULL, err);
    return status == STATUS_CORRUPT ? error_prefix(err, status, "store %s", store->path) : status;
}
