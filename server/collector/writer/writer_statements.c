#include "server/collector/writer/writer_statements.h"

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

static const char *const texts[STATEMENT_COUNT] = {
    [STATEMENT_OWNER_ADD] = "INSERT INTO owner(who) VALUES(?)",
    [STATEMENT_OWNER_FIND] = "SELECT owner FROM owner WHERE who = ?",
    [STATEMENT_TOMBSTONE_FIND] = "SELECT count(*) FROM tombstone WHERE uuid = ?",
    [STATEMENT_HORIZONS] = "SELECT who FROM owner WHERE horizon_ns > 0 AND horizon_ns >= ?",
    [STATEMENT_REPLAY_COUNT] = "INSERT INTO forgotten(owner, why, replays) VALUES(?, 0, 1)"
                               " ON CONFLICT(owner, why) DO UPDATE SET replays = replays + 1",
    [STATEMENT_RUN_FIND] = "SELECT run, \"end\", ended_ns, heard_ns, stored, duplicates, refused,"
                           " clock_suspects, unknown_columns, last_activity, device_count,"
                           " clock_offset_ns, clock_error_ns, key, produced, owner,"
                           " (SELECT o.who FROM owner o WHERE o.owner = run.owner), started_ns,"
                           " received_ns FROM run WHERE uuid = ?",
    [STATEMENT_RUN_OWN] = "UPDATE run SET owner = ? WHERE run = ?",
    [STATEMENT_RUN_OPEN] = "SELECT uuid FROM run INDEXED BY run_open WHERE \"end\" = 0",
    [STATEMENT_RUN_ADD] =
        "INSERT INTO run(run, started_ns, received_ns, heard_ns, uuid, host, pid,"
        " \"end\", worker_version, protocol, os, kernel, cpu, cpu_count,"
        " cpu_governor, host_memory_bytes, container, device_count, driver,"
        " cuda, huge_pages, allocator, build_flags, key, owner, produced, stored, duplicates)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0,"
        " 0)",
    // The condition must be the one of the partial index.
    [STATEMENT_RUN_UNFINISHED] = "SELECT count(*) FROM run INDEXED BY run_owner WHERE owner = ?"
                                 " AND heard_ns >= ? AND \"end\" IN (0, 3)",
    [STATEMENT_RUN_UPDATE] = "UPDATE run SET \"end\" = ?, ended_ns = ?, heard_ns = ?, produced = ?,"
                             " stored = ?, duplicates = ?, refused = ?, clock_suspects = ?,"
                             " unknown_columns = ?, last_activity = ?, device_count = ?,"
                             " clock_offset_ns = ?, clock_error_ns = ?"
                             " WHERE run = ?",
    [STATEMENT_RUN_DESCRIBE] = "UPDATE run SET cpu_governor = coalesce(?, cpu_governor),"
                               " container = coalesce(?, container), driver = coalesce(?, driver),"
                               " cuda = coalesce(?, cuda), huge_pages = coalesce(?, huge_pages),"
                               " allocator = coalesce(?, allocator),"
                               " build_flags = coalesce(?, build_flags) WHERE run = ?",
    [STATEMENT_NAME_ADD] = "INSERT INTO name(text, owner) VALUES(?, ?)",
    [STATEMENT_NAME_OTHER] = "INSERT INTO name(text) VALUES(?)"
                             " ON CONFLICT(text) DO UPDATE SET owner = 0",
    [STATEMENT_NAME_OWNERS] =
        "SELECT o.who, n.count FROM (SELECT owner, count(*) AS count FROM name"
        " GROUP BY owner) n LEFT JOIN owner o ON o.owner = n.owner",
    [STATEMENT_NAME_FIND] = "SELECT id FROM name WHERE text = ?",
    [STATEMENT_RUN_NAMES] = "SELECT number, name FROM run_name WHERE run = ? ORDER BY number",
    [STATEMENT_RUN_NAME_ADD] = "INSERT INTO run_name(run, number, name) VALUES(?, ?, ?)",
    [STATEMENT_STREAMS] = "SELECT stream, next, produced, unnumbered, activity, activity_since_ns,"
                          " no_room FROM stream WHERE run = ? ORDER BY stream",
    [STATEMENT_STREAM_SAVE] =
        "INSERT INTO stream(run, stream, next, produced, unnumbered, activity,"
        " activity_since_ns, no_room) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        " ON CONFLICT(run, stream) DO UPDATE SET next = ?3, produced = ?4,"
        " unnumbered = ?5, activity = ?6, activity_since_ns = ?7, no_room = ?8",
    [STATEMENT_DROPS] = "SELECT count(*) FROM range INDEXED BY range_dropped"
                        " WHERE run = ? AND state = 1",
    [STATEMENT_RANGE_LAST] = "SELECT first, last, state, reason, detail, since_ns, until_ns"
                             " FROM range WHERE run = ? AND stream = ? ORDER BY first DESC LIMIT 1",
    [STATEMENT_RANGE_SAVE] = "INSERT INTO range(run, stream, first, last, state, reason, detail,"
                             " since_ns, until_ns) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                             " ON CONFLICT(run, stream, first) DO UPDATE"
                             " SET last = ?4, since_ns = ?8, until_ns = ?9",
    [STATEMENT_LEDGER_ADD] = "INSERT INTO ledger(run, kind, stored) VALUES(?1, ?2, ?3)"
                             " ON CONFLICT(run, kind) DO UPDATE SET stored = stored + ?3",
    [STATEMENT_UNNUMBERED_ADD] =
        "INSERT INTO unnumbered(run, told_ns, lost, since_ns, until_ns) VALUES(?1, ?2, ?3, ?4, ?5)"
        " ON CONFLICT(run, told_ns) DO UPDATE SET lost = lost + ?3,"
        " since_ns = min(since_ns, ?4), until_ns = max(until_ns, ?5)",
};

enum status statements_init(struct statements *statements, sqlite3 *db, struct error *err)
{
    *statements = (struct statements){.db = db};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < STATEMENT_COUNT && status == STATUS_OK; i++)
        status = database_prepare(db, &statements->list[i], texts[i], true, err);
    if (status != STATUS_OK)
        statements_deinit(statements);
    return status;
}

void statements_deinit(struct statements *statements)
{
    for (unsigned i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(statements->list[i]);
        statements->list[i] = NULL;
    }
}

enum status statement_run(struct statements *statements, enum statement which, struct error *err)
{
    return database_run(statements->db, statements->list[which], err);
}

bool statement_row(struct statements *statements, enum statement which, enum status *status,
                   struct error *err)
{
    sqlite3_stmt *stmt = statements->list[which];
    *status = STATUS_OK;
    if (database_step(statements->db, stmt, status, err))
        return true;
    (void)sqlite3_reset(stmt);
    return false;
}

enum status statement_integer(struct statements *statements, enum statement which, int64_t *out,
                              struct error *err)
{
    enum status status = STATUS_OK;
    *out = 0;
    while (statement_row(statements, which, &status, err))
        *out = sqlite3_column_int64(statements->list[which], 0);
    return status;
}

void statement_bind(struct statements *statements, enum statement which,
                    const struct statement_value *values, size_t count)
{
    sqlite3_stmt *stmt = statements->list[which];
    for (size_t i = 0; i < count; i++) {
        const struct wire_bytes *text = &values[i].text;
        if (values[i].type == VALUE_INT)
            (void)sqlite3_bind_int64(stmt, (int)i + 1, values[i].number);
        else if (values[i].type == VALUE_NULL)
            (void)sqlite3_bind_null(stmt, (int)i + 1);
        else // a null pointer would bind NULL instead of an empty text
            (void)sqlite3_bind_text64(stmt, (int)i + 1, text->bytes ? text->bytes : "", text->size,
                                      SQLITE_STATIC, SQLITE_UTF8);
    }
}
