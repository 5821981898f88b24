#include "common/store/schema/schema_migrate.h"

#include <stdio.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/core/delivery/delivery.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_rebuild.h"
#include "common/store/schema/schema_select.h"
#include "common/store/schema/file_probe.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/sys/process.h"
#include "common/store/schema/schema.h"

// ---- Tables that are not records ----------------------------------------------------

static const char fixed_tables[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE run_name(run INTEGER NOT NULL, number INTEGER NOT NULL,"
    " name INTEGER NOT NULL, PRIMARY KEY(run, number)) WITHOUT ROWID;"
    "CREATE TABLE stream(run INTEGER NOT NULL, stream INTEGER NOT NULL, next INTEGER NOT NULL,"
    " produced INTEGER NOT NULL, unnumbered INTEGER NOT NULL, activity TEXT,"
    " activity_since_ns INTEGER, PRIMARY KEY(run, stream)) WITHOUT ROWID;"
    "CREATE TABLE range(run INTEGER NOT NULL, stream INTEGER NOT NULL, first INTEGER NOT NULL,"
    " last INTEGER NOT NULL, state INTEGER NOT NULL, reason INTEGER, detail TEXT,"
    " since_ns INTEGER, until_ns INTEGER, CHECK(first >= 1 AND last >= first),"
    " PRIMARY KEY(run, stream, first)) WITHOUT ROWID;"
    "CREATE TABLE ledger(run INTEGER NOT NULL, kind INTEGER NOT NULL, stored INTEGER NOT NULL,"
    " expired INTEGER NOT NULL DEFAULT 0, cleared INTEGER NOT NULL DEFAULT 0,"
    " gone_sum INTEGER DEFAULT 0, PRIMARY KEY(run, kind)) WITHOUT ROWID;";

// What later versions have added: messages refused; when records were lost that got no number (of
// a run, in the ten minutes, of the collector's clock, from told_ns on); rollups (rollup.h); until
// when records have expired; baselines; owners of runs, and what was removed of them; acts of
// administrators; alerts, silences, and what hooks have not been told yet.  The columns of a key
// come first: integrity_check of SQLite 3.40 finds NULLs that are not there where one lies between
// them.
static const char added_tables[] =
    "CREATE TABLE IF NOT EXISTS refusal(reason TEXT PRIMARY KEY, count INTEGER NOT NULL,"
    " last_ns INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS unnumbered(run INTEGER NOT NULL, told_ns INTEGER NOT NULL,"
    " lost INTEGER NOT NULL, since_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL,"
    " PRIMARY KEY(run, told_ns)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS series(id INTEGER PRIMARY KEY, grouping INTEGER NOT NULL,"
    " model INTEGER NOT NULL, host INTEGER NOT NULL, device INTEGER NOT NULL,"
    " operation INTEGER NOT NULL, UNIQUE(grouping, model, host, device, operation));"
    "CREATE TABLE IF NOT EXISTS rollup(metric INTEGER NOT NULL, grouping INTEGER NOT NULL,"
    " level INTEGER NOT NULL, started_ns INTEGER NOT NULL, series INTEGER NOT NULL,"
    " count INTEGER NOT NULL, sum NOT NULL, carry INTEGER NOT NULL, min NOT NULL, max NOT NULL,"
    " numerator REAL, denominator REAL, sketch BLOB,"
    " PRIMARY KEY(metric, grouping, level, started_ns, series)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS rollup_state(metric INTEGER PRIMARY KEY,"
    " watermark INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS rollup_gap(kind INTEGER NOT NULL, grouping INTEGER NOT NULL,"
    " level INTEGER NOT NULL, since_ns INTEGER NOT NULL, why INTEGER NOT NULL,"
    " until_ns INTEGER NOT NULL, PRIMARY KEY(kind, grouping, level, since_ns, why)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS expiry(kind INTEGER PRIMARY KEY, until_ns INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS baseline(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " created_ns INTEGER NOT NULL, filter TEXT NOT NULL, since_ns INTEGER NOT NULL,"
    " until_ns INTEGER NOT NULL, coverage_ratio REAL, fingerprint TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS baseline_sample(baseline INTEGER NOT NULL, metric TEXT NOT NULL,"
    " model INTEGER NOT NULL, device INTEGER NOT NULL, count INTEGER NOT NULL,"
    " samples BLOB NOT NULL, PRIMARY KEY(baseline, metric, model, device)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS owner(owner INTEGER PRIMARY KEY, who TEXT NOT NULL UNIQUE,"
    " horizon_ns INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS tombstone(uuid TEXT PRIMARY KEY, owner INTEGER NOT NULL,"
    " run_ns INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS forgotten(owner INTEGER NOT NULL, why INTEGER NOT NULL,"
    " runs INTEGER NOT NULL DEFAULT 0, names INTEGER NOT NULL DEFAULT 0,"
    " produced INTEGER NOT NULL DEFAULT 0, stored INTEGER NOT NULL DEFAULT 0,"
    " expired INTEGER NOT NULL DEFAULT 0, cleared INTEGER NOT NULL DEFAULT 0,"
    " dropped INTEGER NOT NULL DEFAULT 0, unnumbered INTEGER NOT NULL DEFAULT 0,"
    " duplicates INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,"
    " replays INTEGER NOT NULL DEFAULT 0, since_ns INTEGER NOT NULL DEFAULT 0,"
    " until_ns INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(owner, why)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS admin(id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL,"
    " actor TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL, outcome TEXT NOT NULL,"
    " rows INTEGER NOT NULL);";
static const char alert_tables[] =
    "CREATE TABLE IF NOT EXISTS alert(id INTEGER PRIMARY KEY, rule TEXT NOT NULL, model TEXT,"
    " host TEXT, device TEXT, state INTEGER NOT NULL, severity INTEGER NOT NULL,"
    " started_ns INTEGER NOT NULL, firing_ns INTEGER, resolved_ns INTEGER, value REAL,"
    " threshold REAL, unit TEXT, why TEXT, acknowledged_ns INTEGER, acknowledged_by TEXT,"
    " acknowledged_text TEXT, is_told INTEGER NOT NULL, was_lost INTEGER NOT NULL,"
    " stepped_ns INTEGER NOT NULL, held_ns INTEGER NOT NULL, critical_held_ns INTEGER NOT NULL,"
    " good_ns INTEGER NOT NULL, lost_ns INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS alert_silence(id INTEGER PRIMARY KEY, rule TEXT, model TEXT,"
    " host TEXT, device TEXT, since_ns INTEGER NOT NULL, until_ns INTEGER NOT NULL,"
    " actor TEXT NOT NULL, text TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS alert_delivery(id INTEGER PRIMARY KEY, alert INTEGER NOT NULL,"
    " hook TEXT NOT NULL, event TEXT NOT NULL, due_ns INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL, error TEXT, queued_ns INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE IF NOT EXISTS alert_config(kind TEXT NOT NULL, name TEXT NOT NULL,"
    " since_ns INTEGER, error TEXT, dropped INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(kind, name))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS disk_sample(at_ns INTEGER PRIMARY KEY,"
    " free_bytes INTEGER NOT NULL);";

// Indexes beside the one on started_ns: for stages to find their load, and for
// the last sample of a run.  All on kinds with few rows.
static const char fixed_indexes[] = "CREATE INDEX run_heard ON run(heard_ns);"
                                    "CREATE INDEX load_identity ON load(run, stream, number);"
                                    "CREATE INDEX process_sample_run ON process_sample(run);";

// Indexes that later versions have added.
static const char added_indexes[] =
    // Runs that are not over, by their owner: their number is limited.
    "CREATE INDEX IF NOT EXISTS run_owner ON run(owner, heard_ns) WHERE \"end\" IN (0, 3);"
    // Open runs are counted, and loaded at the start, without a scan of all runs.
    "CREATE INDEX IF NOT EXISTS run_open ON run(run) WHERE \"end\" = 0;"
    "CREATE INDEX IF NOT EXISTS tombstone_age ON tombstone(owner, run_ns);"
    // A name goes when nothing uses it any more (forget.h).
    "CREATE INDEX IF NOT EXISTS run_name_name ON run_name(name);"
    "CREATE INDEX IF NOT EXISTS run_host ON run(host);"
    "CREATE INDEX IF NOT EXISTS series_host ON series(host);"
    "CREATE INDEX IF NOT EXISTS series_device ON series(device);"
    "CREATE INDEX IF NOT EXISTS series_operation ON series(operation);"
    // What failed is counted, and what belongs to a run is found, without reading the rest.
    "CREATE INDEX IF NOT EXISTS inference_failed ON inference(started_ns) WHERE finish = 3;"
    "CREATE INDEX IF NOT EXISTS load_failed ON load(started_ns) WHERE status = 1;"
    "CREATE INDEX IF NOT EXISTS operation_failed ON operation(started_ns)"
    " WHERE error IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS pipeline_failed ON pipeline(started_ns) WHERE status = 1;"
    "CREATE INDEX IF NOT EXISTS device_run ON device(run);"
    "CREATE INDEX IF NOT EXISTS event_received ON event(received_ns);"
    "CREATE UNIQUE INDEX IF NOT EXISTS alert_delivery_hook ON alert_delivery(hook, alert);"
    "CREATE INDEX IF NOT EXISTS range_dropped ON range(run, first, last, reason) WHERE state = 1;"
    "CREATE INDEX IF NOT EXISTS stream_unnumbered ON stream(run, unnumbered)"
    " WHERE unnumbered > 0;"
    // A run's model, and its size as it was loaded last, for each of its inferences.
    "CREATE INDEX IF NOT EXISTS model_run ON model(run, name);"
    "CREATE INDEX IF NOT EXISTS load_run ON load(run, model) WHERE status = 0;"
    // The newest samples, processes and events of a run, and those of a host in a window, among
    // those of a fleet.  Before version 14 the first index had no time.
    "DROP INDEX IF EXISTS device_sample_run;"
    "CREATE INDEX device_sample_run ON device_sample(run, started_ns);"
    "CREATE INDEX IF NOT EXISTS device_sample_pcie ON device_sample(run, device, started_ns,"
    " pcie_rx_bytes_per_second, pcie_tx_bytes_per_second)"
    " WHERE pcie_rx_bytes_per_second IS NOT NULL;"
    "CREATE INDEX IF NOT EXISTS host_sample_run ON host_sample(run, started_ns);"
    "CREATE INDEX IF NOT EXISTS device_process_run ON device_process(run, started_ns);"
    "CREATE INDEX IF NOT EXISTS event_run ON event(run, started_ns);"
    "CREATE INDEX IF NOT EXISTS alert_open ON alert(rule) WHERE resolved_ns IS NULL;"
    "CREATE INDEX IF NOT EXISTS alert_fired ON alert(firing_ns) WHERE firing_ns IS NOT NULL;";

// Per run: what became of everything it produced.  A closed run balances when
// the ranges of each stream follow each other from 1 to what it produced, and
// all counts of the stored agree.  total(), since sum() fails the whole query
// where it overflows; what the wire lets in stays exact in it (MESSAGE_NUMBER_MAX
// of each of a run's streams), and what is beyond becomes the largest integer.
static const char ledger_view[] =
    "v_ledger AS SELECT id, uuid, \"end\", produced, stored, dropped, unnumbered,"
    " no_room, in_flight, duplicates, refused, expired, cleared,"
    " CASE WHEN \"end\" IN (1, 2) THEN in_flight = 0 AND stored + dropped = produced"
    "  AND stored = ledger_stored AND stored = range_stored"
    "  AND NOT EXISTS (SELECT 1 FROM (SELECT g.first, lag(g.last, 1, 0)"
    "   OVER (PARTITION BY g.stream ORDER BY g.first) AS before FROM range g WHERE g.run = id)"
    "   WHERE first <> before + 1)"
    "  AND NOT EXISTS (SELECT 1 FROM stream s WHERE s.run = id AND s.produced <>"
    "   coalesce((SELECT max(g.last) FROM range g WHERE g.run = s.run AND g.stream = s.stream), 0))"
    " END AS balanced"
    " FROM (SELECT r.run AS id, r.uuid AS uuid, r.\"end\" AS \"end\", r.stored AS stored,"
    "  r.duplicates AS duplicates, r.refused AS refused,"
    "  (SELECT CAST(total(s.produced) AS INTEGER) FROM stream s WHERE s.run = r.run) AS produced,"
    "  (SELECT CAST(total(s.unnumbered) AS INTEGER) FROM stream s WHERE s.run = r.run) AS "
    "unnumbered,"
    "  (SELECT CAST(total(s.no_room) AS INTEGER) FROM stream s WHERE s.run = r.run) AS no_room,"
    "  (SELECT CAST(total(max(s.produced - s.next + 1, 0)) AS INTEGER) FROM stream s"
    "   WHERE s.run = r.run) AS in_flight,"
    "  (SELECT CAST(total(g.last - g.first + 1) AS INTEGER) FROM range g"
    "   WHERE g.run = r.run AND g.state = 1) AS dropped,"
    "  (SELECT CAST(total(g.last - g.first + 1) AS INTEGER) FROM range g"
    "   WHERE g.run = r.run AND g.state = 0) AS range_stored,"
    "  (SELECT CAST(total(l.stored) AS INTEGER) FROM ledger l WHERE l.run = r.run) AS "
    "ledger_stored,"
    "  (SELECT CAST(total(l.expired) AS INTEGER) FROM ledger l WHERE l.run = r.run) AS expired,"
    "  (SELECT CAST(total(l.cleared) AS INTEGER) FROM ledger l WHERE l.run = r.run) AS cleared"
    "  FROM run r)";

#define WHOSE(table)                                                                               \
    "(SELECT r.uuid FROM run r WHERE r.run = " table ".run) AS run,"                               \
    " (SELECT n.text FROM name n JOIN run r ON n.id = r.host WHERE r.run = " table ".run) AS host"

// What became of the numbers of each stream, and what its thread was doing when
// it ended, in words.
static void append_stream_views(sqlite3_str *sql)
{
    sqlite3_str_appendall(
        sql,
        "DROP VIEW IF EXISTS v_stream; CREATE VIEW v_stream AS SELECT " WHOSE(
            "s") ", s.stream, s.next, s.produced, s.unnumbered, s.no_room, s.activity,"
                 " s.activity_since_ns"
                 " FROM stream s;"
                 "DROP VIEW IF EXISTS v_range; CREATE VIEW v_range AS SELECT " WHOSE(
                     "g") ", g.stream, g.first, g.last, CASE g.state WHEN 0 THEN 'stored' ELSE "
                          "'dropped' END"
                          " AS state, CASE g.reason");
    for (unsigned reason = 0; reason < DELIVERY_REASON_COUNT; reason++)
        sqlite3_str_appendf(sql, " WHEN %u THEN %Q", reason,
                            delivery_reason_text((enum delivery_reason)reason));
    sqlite3_str_appendall(sql, " END AS reason, g.detail, g.since_ns, g.until_ns FROM range g;");
}

static enum status create_views(sqlite3 *db, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "DROP VIEW IF EXISTS v_ledger;CREATE VIEW %s;", ledger_view);
    append_stream_views(sql);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        sqlite3_str_appendf(sql, "DROP VIEW IF EXISTS \"v_%w\";",
                            record_kind_info((enum record_kind)kind)->name);
        schema_append_view(sql, (enum record_kind)kind);
    }
    return database_exec_built(db, sql, err);
}

enum status schema_make_ledger(sqlite3 *db, struct error *err)
{
    return database_execf(db, err, "CREATE TEMP VIEW %s", ledger_view);
}

static enum status insert_identity(sqlite3 *db, struct error *err)
{
    unsigned char id[16];
    enum status status = process_random(id, sizeof id, err);
    if (status != STATUS_OK)
        return status;
    id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); // a random UUID (RFC 9562, version 4)
    id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
    char uuid[37];
    text_from_uuid(uuid, id);
    return database_execf(db, err, "INSERT INTO meta VALUES('store', %Q), ('created_ns', %lld);",
                          uuid, (long long)clock_wall_ns());
}

// ---- Versions -------------------------------------------------------------------------

// Creates the tables of the kinds of records that the store does not have yet.
static enum status add_kinds(sqlite3 *db, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        const char *name = record_kind_info((enum record_kind)kind)->name;
        int64_t has = 0;
        status = database_integerf(
            db, &has, err,
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND lower(name) = '%s'", name);
        if (status != STATUS_OK || has)
            continue;
        sqlite3_str *sql = sqlite3_str_new(db);
        schema_append_table(sql, (enum record_kind)kind, name);
        sqlite3_str_appendf(sql, "CREATE INDEX \"%w_started\" ON \"%w\"(started_ns);", name, name);
        status = database_exec_built(db, sql, err);
    }
    return status;
}

// Version 1: the tables that it had, with the kinds and columns of today.
static enum status create_tables(sqlite3 *db, struct error *err)
{
    enum status status = database_exec(db, fixed_tables, err);
    if (status == STATUS_OK)
        status = add_kinds(db, err);
    if (status == STATUS_OK)
        status = database_exec(db, fixed_indexes, err);
    return status == STATUS_OK ? insert_identity(db, err) : status;
}

static enum status has_column(sqlite3 *db, const char *table, const char *column, bool *has,
                              struct error *err)
{
    int64_t count = 0;
    enum status status = database_integerf(
        db, &count, err, "SELECT count(*) FROM pragma_table_xinfo('%s') WHERE name = '%s'", table,
        column);
    *has = count > 0;
    return status;
}

// Where the table does not have it yet.
static enum status add_column(sqlite3 *db, const char *table, const char *column, const char *type,
                              struct error *err)
{
    bool has = false;
    enum status status = has_column(db, table, column, &has, err);
    if (status != STATUS_OK || has)
        return status;
    return database_execf(db, err, "ALTER TABLE \"%w\" ADD COLUMN \"%w\" %s", table, column, type);
}

// What was cleared before there were set hashes has none.  SCHEMA_NO_SET_HASHES
// is the last run that this can be said of.
static enum status add_gone_sum(sqlite3 *db, struct error *err)
{
    bool has = false;
    enum status status = has_column(db, "ledger", "gone_sum", &has, err);
    if (status != STATUS_OK || has)
        return status;
    return database_exec(db,
                         "ALTER TABLE ledger ADD COLUMN gone_sum INTEGER DEFAULT 0;"
                         "UPDATE ledger SET gone_sum = NULL WHERE expired + cleared > 0;"
                         "INSERT OR REPLACE INTO meta SELECT '" SCHEMA_NO_SET_HASHES
                         "', coalesce(max(run), 0) FROM run",
                         err);
}

// Since version 3 a run has the key that opened it, and a stream what its thread did when its
// process died; since version 10 runs and names have an owner; since version 15 hosts of a metric
// have different watermarks.  Kinds of records get the columns of
// today.
static enum status add_columns(sqlite3 *db, struct error *err)
{
    static const struct {
        const char *table, *column, *type;
    } added[] = {
        {"run", "key", "TEXT"},
        {"stream", "activity", "TEXT"},
        {"stream", "activity_since_ns", "INTEGER"},
        {"run", "owner", "INTEGER NOT NULL DEFAULT 0"},
        {"name", "owner", "INTEGER NOT NULL DEFAULT 0"},
        {"stream", "no_room", "INTEGER NOT NULL DEFAULT 0"},
        {"rollup_state", "ahead_id", "INTEGER NOT NULL DEFAULT 0"},
        {"rollup_state", "ahead_host", "INTEGER NOT NULL DEFAULT 0"},
        {"alert_delivery", "queued_ns", "INTEGER NOT NULL DEFAULT 0"},
    };
    enum status status = add_gone_sum(db, err);
    for (size_t i = 0; i < sizeof added / sizeof *added && status == STATUS_OK; i++)
        status = add_column(db, added[i].table, added[i].column, added[i].type, err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        for (unsigned i = 0; i < info->column_count && status == STATUS_OK; i++)
            status = add_column(db, info->name, info->columns[i].name,
                                schema_column_type((enum record_kind)kind, i), err);
    }
    return status;
}

// The table of device samples of versions before 15 has no scaled columns (schema_scaled.h).
static enum status has_scaled(sqlite3 *db, bool *has, struct error *err)
{
    return has_column(db, "device_sample", "power_watts_stored", has, err);
}

// Rebuilds the tables of versions 5 to 8, which stored received_ns and some durations as
// differences from other columns, and computed them as generated columns; and that of device
// samples.
static enum status rebuild_tables(sqlite3 *db, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        bool rebuilds = false, is_scaled = true;
        status = has_column(db, record_kind_info((enum record_kind)kind)->name, "received_after_ns",
                            &rebuilds, err);
        if (status == STATUS_OK && kind == RECORD_KIND_DEVICE_SAMPLE)
            status = has_scaled(db, &is_scaled, err);
        if (status != STATUS_OK || (!rebuilds && is_scaled))
            continue;
        log_write(LOG_LEVEL_INFO, "store: the records of kind %s are rewritten",
                  record_kind_info((enum record_kind)kind)->name);
        status = schema_rebuild(db, (enum record_kind)kind, err);
    }
    return status;
}

// Brings a file of any older version to this one; existing rows stay.  Rollups know
// nothing yet of the records of a store that had none; version 8 had four groupings of them.
// Before version 3 `meta` counted messages that could not be decoded; before version 17 the memory
// of a device that does not tell it was 0.  unseal() has already moved the rows of sealed history
// back.
static enum status upgrade(sqlite3 *db, struct error *err)
{
    static const char move_meta[] =
        "INSERT OR IGNORE INTO refusal SELECT 'undecodable', value, 0 FROM meta"
        " WHERE key = 'undecodable' AND value > 0;"
        "DELETE FROM meta WHERE key = 'undecodable';"
        "DELETE FROM rollup_gap WHERE grouping > 1;"
        "DROP TABLE IF EXISTS sealed;"
        "UPDATE device SET memory_bytes = NULL WHERE memory_bytes = 0";
    // Before version 10 runs with a key had no other owner.  In version 15 a hook had a call for
    // each event of an alert, and was_lost was 1 for what is 2.  What is_told has may be told as
    // critical once more.
#define BEFORE_16 " WHERE (SELECT user_version FROM pragma_user_version) < 16"
    static const char move_others[] =
        "DROP INDEX IF EXISTS run_owner;"
        "INSERT OR IGNORE INTO owner(who) SELECT DISTINCT 'key:' || key FROM run"
        " WHERE key IS NOT NULL;"
        "UPDATE run SET owner = (SELECT o.owner FROM owner o WHERE o.who = 'key:' || run.key)"
        " WHERE key IS NOT NULL AND owner = 0;"
        "DELETE FROM alert_delivery WHERE id NOT IN"
        " (SELECT max(id) FROM alert_delivery GROUP BY hook, alert);"
        "UPDATE alert_delivery SET queued_ns = due_ns" BEFORE_16 ";"
        "UPDATE alert SET was_lost = 2 * was_lost" BEFORE_16;
    static const struct {
        enum status (*run)(sqlite3 *db, struct error *err);
        const char *sql; // or this
    } steps[] = {{add_kinds, NULL},      {NULL, added_tables},       {NULL, alert_tables},
                 {add_columns, NULL},    {NULL, move_others},        {NULL, added_indexes},
                 {rebuild_tables, NULL}, {schema_allow_nulls, NULL}, {NULL, move_meta}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++)
        status = steps[i].run ? steps[i].run(db, err) : database_exec(db, steps[i].sql, err);
    return status;
}

// ---- Checks ---------------------------------------------------------------------------

// The tables that are not of a kind of records.
static const char *const others[] = {
    "meta",    "name",       "run_name",        "stream",         "range",        "ledger",
    "refusal", "unnumbered", "series",          "rollup",         "rollup_state", "rollup_gap",
    "expiry",  "baseline",   "baseline_sample", "owner",          "tombstone",    "forgotten",
    "admin",   "alert",      "alert_silence",   "alert_delivery", "alert_config", "disk_sample",
};
enum { TABLES = sizeof others / sizeof *others + RECORD_KIND_COUNT };

// SQLite compares names without regard to case.  Versions 6 (late ones), 7 and 8
// have a table `sealed`.
static enum status prepare_verify(sqlite3 *db, sqlite3_stmt **stmt, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "SELECT count(*), min(CASE WHEN type <> 'table' THEN type"
                               " WHEN rootpage <= 0 THEN 'virtual table' END || ' named ' || name)"
                               " FROM sqlite_schema WHERE type IN ('table', 'view')"
                               " AND lower(name) IN ('sealed'");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        sqlite3_str_appendf(sql, ", %Q", others[i]);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        sqlite3_str_appendf(sql, ", %Q", record_kind_info((enum record_kind)kind)->name);
    sqlite3_str_appendall(sql, ")");
    return database_prepare_built(db, stmt, sql, false, err);
}

// Verifies that no view or virtual table has the name of one of the store's tables, before any of
// them is read: it would run code of the file's author.  With `all`, also that no table of this
// version is missing.
static enum status verify_tables(sqlite3 *db, const char *path, bool all, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = prepare_verify(db, &stmt, err);
    if (status != STATUS_OK)
        return status;
    if (sqlite3_step(stmt) != SQLITE_ROW)
        status = database_error(db, path, err);
    else if (sqlite3_column_type(stmt, 1) != SQLITE_NULL)
        status = error_set(err, STATUS_CORRUPT,
                           "store %s: not a store: it has a %s, where a store has a table", path,
                           (const char *)sqlite3_column_text(stmt, 1));
    else if (all && sqlite3_column_int(stmt, 0) < TABLES)
        status = error_set(err, STATUS_CORRUPT, "store %s: it does not have the tables of a store",
                           path);
    (void)sqlite3_finalize(stmt);
    return status;
}

struct file_version {
    int64_t application;
    int64_t version;
    int64_t objects; // tables, views, indexes
};

static enum status read_version(sqlite3 *db, const char *path, struct file_version *file,
                                struct error *err)
{
    enum status status =
        database_integer(db, "SELECT count(*) FROM sqlite_schema", &file->objects, err);
    if (status == STATUS_OK)
        status = database_integer(db, "PRAGMA application_id", &file->application, err);
    if (status == STATUS_OK)
        status = database_integer(db, "PRAGMA user_version", &file->version, err);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (sqlite3_errcode(db) == SQLITE_NOTADB)
        return file_probe_is_no_database(path, err);
    if (status == STATUS_CORRUPT)
        return database_is_damaged(path, sqlite3_errmsg(db), err);
    char text[ERROR_TEXT_SIZE];
    (void)snprintf(text, sizeof text, "%s", sqlite3_errmsg(db));
    return error_set(err, status, "store %s: %s", path, text);
}

static bool is_new(const struct file_version *file)
{
    return file->application == 0 && file->version == 0 && file->objects == 0;
}

static enum status check_version(const struct file_version *file, const char *path,
                                 struct error *err)
{
    if (is_new(file))
        return error_set(err, STATUS_CORRUPT, "store %s: an empty file, no store of inferstat",
                         path);
    if (file->application != SCHEMA_APPLICATION_ID)
        return file_probe_is_foreign(path, file->application, err);
    if (file->version > SCHEMA_VERSION)
        return file_probe_is_newer(path, file->version, err);
    if (file->version < 1)
        return error_set(err, STATUS_CORRUPT, "store %s: its schema has no version", path);
    return STATUS_OK;
}

enum status schema_check(sqlite3 *db, const char *path, struct error *err)
{
    struct file_version file;
    enum status status = read_version(db, path, &file, err);
    if (status == STATUS_OK)
        status = check_version(&file, path, err);
    if (status == STATUS_OK && file.version < SCHEMA_VERSION)
        status = error_set(err, STATUS_UNSUPPORTED,
                           "store %s: its schema is version %lld, this program reads %d"
                           " (start inferstatd on it once to migrate it)",
                           path, (long long)file.version, SCHEMA_VERSION);
    return status == STATUS_OK ? verify_tables(db, path, true, err) : status;
}

static enum status make_tables(sqlite3 *db, bool is_new, struct error *err)
{
    enum status status = is_new ? create_tables(db, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = upgrade(db, err);
    if (status == STATUS_OK)
        status = create_views(db, err);
    if (status != STATUS_OK)
        return status;
    return database_execf(db, err, "PRAGMA application_id=%d;PRAGMA user_version=%d",
                          SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
}

// Of a row that was sealed, with its entry in the index on started_ns, rounded up.
enum { SEALED_ROW_BYTES = 160 };

enum status schema_check_space(sqlite3 *db, int64_t free_bytes, int64_t *needed, struct error *err)
{
    char needs[UNIT_TEXT_SIZE], has[UNIT_TEXT_SIZE];
    int64_t rows = 0, samples = 0;
    bool rewrites = false, is_scaled = false, is_sealed = false;
    *needed = 0;
    enum status status = has_column(db, "inference", "received_after_ns", &rewrites, err);
    if (status == STATUS_OK)
        status = has_scaled(db, &is_scaled, err);
    if (status == STATUS_OK && !is_scaled)
        status = database_integer(db, "SELECT EXISTS(SELECT 1 FROM device_sample)", &samples, err);
    if (status == STATUS_OK && (rewrites || samples > 0))
        status = database_integer(
            db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", needed,
            err);
    if (status == STATUS_OK)
        status = has_column(db, "sealed", "rows", &is_sealed, err);
    if (status == STATUS_OK && is_sealed) // a damaged count of rows counts nothing
        status = database_integer(db, "SELECT sum(rows) FROM sealed WHERE rows BETWEEN 1 AND 16384",
                                  &rows, err);
    *needed += 2 * rows * SEALED_ROW_BYTES; // in the file, and in the log
    if (status == STATUS_OK && *needed > free_bytes)
        status =
            error_set(err, STATUS_FULL, "migrating it needs %s of free disk space, there are %s",
                      unit_format_int(needs, UNIT_BYTES, *needed),
                      unit_format_int(has, UNIT_BYTES, free_bytes));
    return status;
}

// Checks the disk space, then does what cannot be one transaction.
static enum status prepare(sqlite3 *db, const char *path, int64_t version, struct error *err)
{
    int64_t needed = 0;
    char text[UNIT_TEXT_SIZE];
    enum status status = schema_check_space(db, database_free_bytes(path), &needed, err);
    if (status != STATUS_OK)
        return status;
    log_write(LOG_LEVEL_INFO,
              "store %s: version %lld becomes version %d, with up to %s of free disk space", path,
              (long long)version, SCHEMA_VERSION, unit_format_int(text, UNIT_BYTES, needed));
    return unseal(db, err);
}

enum status schema_migrate(sqlite3 *db, const char *path, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns();
    char took[UNIT_TEXT_SIZE];
    struct file_version file;
    enum status status = read_version(db, path, &file, err);
    if (status != STATUS_OK)
        return status;
    if (!is_new(&file)) {
        status = check_version(&file, path, err);
        if (status == STATUS_OK)
            status = verify_tables(db, path, file.version == SCHEMA_VERSION, err);
        if (status != STATUS_OK || file.version == SCHEMA_VERSION)
            return status;
        status = prepare(db, path, file.version, err);
        if (status != STATUS_OK)
            return error_prefix(err, status, "store %s", path);
    } else {
        status = database_exec(db, "PRAGMA auto_vacuum=INCREMENTAL", err);
    }
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = make_tables(db, is_new(&file), err);
    status = database_end(db, status, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "store %s: making its tables", path);
    if (!is_new(&file))
        log_write(LOG_LEVEL_INFO, "store %s: is of version %d, after %s", path, SCHEMA_VERSION,
                  unit_format_int(took, UNIT_DURATION, (int64_t)(clock_monotonic_ns() - began_ns)));
    return STATUS_OK;
}
