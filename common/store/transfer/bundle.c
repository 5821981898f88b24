// Writes a bundle: the records that a filter covers, as a store of their own.
//
// A bundle contains nothing that was not asked for.  Records, runs and names keep their ids.
// - Runs of these records; where the filter names only a time, hosts or runs, also runs that lost
//   records in that time, or ended in it or in the day before without closing.  Their streams,
//   ranges and ledgers are copied unchanged; records that are left out are counted as cleared in
//   the ledger, with their set hash, so that the bundle balances as its store does.
// - Descriptions of these runs (device, model), of any time, as far as the filter names them.
// - Names that any of this refers to.
// - Baselines that the filter covers (pick_baselines).
// - Rollups of expired records (bundle_expired.c).  A collector that opens the bundle builds
//   the others from its records.
// The table meta describes it, as JSON: `bundle` (the store's identity and the filter) and
// `fingerprint` (the environment of its records: environment.h).
#include <sqlite3.h>

#include "common/store/transfer/copy.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_migrate.h"
#include "common/store/read/session.h"

// The store is the schema `main` of copying->db, for reading only, the file `bundle`.

// ---- Two files on one connection -------------------------------------------------------

static enum status make_tables(const char *path, struct error *err)
{
    struct sqlite3 *db = NULL;
    enum status status = copying_open(&db, path, err);
    if (status == STATUS_OK)
        status = schema_migrate(db, path, err);
    database_close(db);
    return status;
}

static enum status open_both(struct copying *copying, const char *path, struct error *err)
{
    enum status status = database_open_reader(&copying->db, copying->store->path, err);
    if (status == STATUS_OK)
        status = set_hash_register(copying->db, err);
    if (status == STATUS_OK)
        status = database_execf(copying->db, err,
                                "ATTACH %Q AS bundle;PRAGMA bundle.journal_mode=OFF;"
                                "PRAGMA bundle.synchronous=OFF;PRAGMA temp_store=FILE",
                                path);
    if (status == STATUS_OK)
        store_watch(copying->store, copying->db);
    return status;
}

// ---- Statements -------------------------------------------------------------------------

// Runs what was appended, with the filter's parameters bound.
static enum status run(struct copying *copying, sqlite3_str *sql, struct error *err)
{
    return filter_run(copying->db, sql, &copying->query->filter, err);
}

// Begins "INSERT OR IGNORE INTO bundle.TABLE(...) SELECT ... FROM main.TABLE t".  The columns are
// named: files of different ages have them in different orders.
static enum status append_copy(struct copying *copying, sqlite3_str *sql, const char *table,
                               struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(
        copying->db, &stmt,
        "SELECT group_concat('\"' || name || '\"') FROM pragma_table_info(?, 'bundle')", false,
        err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        sqlite3_str_appendf(
            sql, "INSERT OR IGNORE INTO bundle.\"%w\"(%s) SELECT %s FROM main.\"%w\" t", table,
            sqlite3_column_text(stmt, 0), sqlite3_column_text(stmt, 0), table);
    else
        status = database_error(copying->db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// Copies the rows of a table that a condition (static) holds for, or, where it is NULL, those of a
// kind that the filter covers, and events that began before its time and lasted.  Of devices and
// models with a condition, those that the filter names.
static enum status copy_table(struct copying *copying, const char *table, enum record_kind kind,
                              const char *condition, struct error *err)
{
    const struct query_filter *filter = &copying->query->filter;
    struct query_filter whole = *filter;
    whole.since_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(copying->db);
    enum status status = append_copy(copying, sql, table, err);
    if (condition)
        sqlite3_str_appendf(sql, " %s", condition);
    else
        filter_where(sql, kind, kind == RECORD_KIND_EVENT ? &whole : filter);
    if (!condition && kind == RECORD_KIND_EVENT)
        sqlite3_str_appendall(
            sql, " AND (t.started_ns >= :since OR (t.run IN (SELECT r.run FROM main.run r"
                 " WHERE r.heard_ns >= :since) AND NOT EXISTS (SELECT 1 FROM main.event e"
                 " WHERE e.run = t.run AND e.started_ns = t.started_ns AND e.event = t.event"
                 " AND e.device IS t.device AND e.started_ns + e.duration_ns < :since)))");
    const enum query_dimension named = kind == RECORD_KIND_MODEL ? QUERY_BY_MODEL : QUERY_BY_DEVICE;
    if (condition && kind != RECORD_KIND_RUN && filter->by[named][0]) {
        sqlite3_str_appendall(sql, " AND t.name");
        filter_append_name(sql, filter, named);
    }
    if (status == STATUS_OK)
        return run(copying, sql, err);
    sqlite3_free(sqlite3_str_finish(sql));
    return status;
}

// ---- Records and runs -------------------------------------------------------------------

static enum status copy_records(struct copying *copying, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = RECORD_KIND_RUN + 1; i < RECORD_KIND_COUNT && status == STATUS_OK; i++) {
        const enum record_kind kind = (enum record_kind)i;
        enum query_dimension missing;
        if (filter_applies(kind, &copying->query->filter, &missing))
            status = copy_table(copying, record_kind_info(kind)->name, kind, NULL, err);
    }
    return status;
}

// Runs that the filter covers without a record of theirs: those that lost some in its
// time, or of which some have expired, since the model and device of these are
// unknown; those that ended without closing, which NOW tells for a day; all, where
// there is no filter.
static void append_other_runs(sqlite3_str *sql, const struct query_filter *filter)
{
    enum query_dimension missing;
    struct query_filter whole = *filter;
    whole.since_ns = 0;
    if (!filter_applies(RECORD_KIND_RUN, filter, &missing))
        return;
    sqlite3_str_appendall(sql, " UNION SELECT t.run FROM main.run t");
    filter_where(sql, RECORD_KIND_RUN, &whole);
    if (!query_filter_narrows(filter))
        return;
    sqlite3_str_appendf(
        sql,
        " AND t.heard_ns >= :since - 86400000000000 * (t.\"end\" > 1)"
        " AND ((t.\"end\" > 1 AND t.heard_ns < %s) OR EXISTS (SELECT 1 FROM main.stream s"
        " WHERE s.run = t.run AND s.unnumbered > 0) OR EXISTS (SELECT 1 FROM main.ledger l"
        " WHERE l.run = t.run AND l.expired > 0) OR EXISTS (SELECT 1 FROM main.range g"
        " WHERE g.run = t.run AND g.state = 1 AND (g.until_ns IS NULL OR g.until_ns >= :since)",
        READER_END(filter->until_ns));
    if (filter->until_ns)
        sqlite3_str_appendall(sql, " AND (g.since_ns IS NULL OR g.since_ns < :until)");
    sqlite3_str_appendall(sql, "))");
}

// Those that have records here, and those that may have lost some.
static enum status pick_runs(struct copying *copying, struct error *err)
{
    enum status status =
        database_exec(copying->db,
                      "CREATE TEMP TABLE picked(run INTEGER PRIMARY KEY);"
                      "CREATE TEMP TABLE left_out(run INTEGER PRIMARY KEY, rows, hash)",
                      err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(copying->db);
    const char *before = "INSERT INTO picked";
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        sqlite3_str_appendf(sql, "%s SELECT run FROM bundle.\"%w\"", before,
                            record_kind_info((enum record_kind)kind)->name);
        before = " UNION";
    }
    append_other_runs(sql, &copying->query->filter);
    return run(copying, sql, err);
}

#define OF_PICKED "WHERE t.run IN (SELECT run FROM picked)"

struct part {
    const char *table, *condition;
    enum record_kind kind; // RECORD_KIND_RUN: not of names
};

static enum status copy_parts(struct copying *copying, const struct part *parts, size_t count,
                              struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = copy_table(copying, parts[i].table, parts[i].kind, parts[i].condition, err);
    return status;
}

// A bundle omits the keys that opened its runs: recipients do not need them.
static enum status copy_runs(struct copying *copying, struct error *err)
{
    static const struct part parts[] = {
        {"run", OF_PICKED, RECORD_KIND_RUN},     {"stream", OF_PICKED, RECORD_KIND_RUN},
        {"range", OF_PICKED, RECORD_KIND_RUN},   {"unnumbered", OF_PICKED, RECORD_KIND_RUN},
        {"ledger", OF_PICKED, RECORD_KIND_RUN},  {"device", OF_PICKED, RECORD_KIND_DEVICE},
        {"model", OF_PICKED, RECORD_KIND_MODEL},
    };
    enum status status = copy_parts(copying, parts, sizeof parts / sizeof *parts, err);
    return status == STATUS_OK ? database_exec(copying->db, "UPDATE bundle.run SET key = NULL", err)
                               : status;
}

// ---- What is left out ---------------------------------------------------------------------

// Tables are only gone through where the ledger has more rows of the kind than are here.
static enum status account_kind(struct copying *copying, enum record_kind kind, struct error *err)
{
    const char *table = record_kind_info(kind)->name;
    int64_t runs = 0, rows = 0;
    enum status status =
        database_execf(copying->db, err,
                       "DELETE FROM temp.left_out;"
                       "INSERT INTO temp.left_out(run) SELECT l.run FROM bundle.ledger l LEFT JOIN"
                       " (SELECT run, count(*) AS n FROM bundle.\"%w\" GROUP BY run) USING (run)"
                       " WHERE l.kind = %d AND l.stored - l.expired - l.cleared <> coalesce(n, 0)",
                       table, (int)kind);
    if (status == STATUS_OK)
        status = database_integer(copying->db, "SELECT count(*) FROM temp.left_out", &runs, err);
    if (status != STATUS_OK || runs == 0)
        return status;
    status = database_execf(
        copying->db, err,
        "INSERT OR REPLACE INTO temp.left_out SELECT t.run, count(*),"
        " set_hash(t.stream, t.number) FROM main.\"%w\" t NOT INDEXED WHERE t.run IN"
        " (SELECT run FROM temp.left_out) AND NOT EXISTS (SELECT 1 FROM bundle.\"%w\" b"
        " WHERE b.id = t.id) GROUP BY t.run;"
        "UPDATE bundle.ledger SET cleared = cleared + o.rows,"
        " gone_sum = set_hash_add(gone_sum, o.hash) FROM temp.left_out o"
        " WHERE o.run = ledger.run AND kind = %d AND o.rows > 0",
        table, table, (int)kind);
    if (status == STATUS_OK)
        status = database_integer(copying->db, "SELECT sum(rows) FROM temp.left_out", &rows, err);
    copying->left_out += rows;
    return status;
}

// ---- What goes with them -------------------------------------------------------------------

// Names that something here refers to.
static enum status copy_names(struct copying *copying, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(copying->db);
    sqlite3_str_appendall(sql,
                          "INSERT INTO bundle.name(id, text) SELECT n.id, n.text FROM main.name"
                          " n WHERE n.id IN (SELECT model FROM bundle.baseline_sample"
                          " UNION SELECT device FROM bundle.baseline_sample"
                          " UNION SELECT model FROM bundle.series"
                          " UNION SELECT host FROM bundle.series"
                          " UNION SELECT device FROM bundle.series"
                          " UNION SELECT operation FROM bundle.series");
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        for (unsigned i = 0; i < info->column_count; i++)
            if (info->columns[i].type == COLUMN_NAME)
                sqlite3_str_appendf(sql, " UNION SELECT \"%w\" FROM bundle.\"%w\"",
                                    info->columns[i].name, info->name);
    }
    sqlite3_str_appendall(sql, ")");
    return run(copying, sql, err);
}

// Creates the table going(baseline): the baselines whose own filter has every name that the
// bundle's has, with the same values, at any time.  A baseline stores its filter as words,
// "model=a, host=b", in which a value ends where the words or the next dimension does.  Where a
// name of the store reads like words of a filter and is in them, they are ambiguous, and the
// baseline is left out.
static enum status pick_baselines(struct copying *copying, struct error *err)
{
    const struct query_filter *filter = &copying->query->filter;
    sqlite3_str *sql = sqlite3_str_new(copying->db);
    sqlite3_str_appendall(sql, "CREATE TEMP TABLE going AS WITH next(dimension) AS (VALUES('')");
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        sqlite3_str_appendf(sql, ", (%Q)", query_dimension_name((enum query_dimension)i));
    sqlite3_str_appendall(sql, ") SELECT b.id AS baseline FROM main.baseline b WHERE 1");
    bool has_names = false;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        has_names = has_names || filter->by[i][0];
        if (filter->by[i][0])
            sqlite3_str_appendf(sql,
                                " AND EXISTS (SELECT 1 FROM next WHERE instr(', ' || b.filter ||"
                                " ', =', ', %s=' || %Q || ', ' || dimension || '='))",
                                query_dimension_name((enum query_dimension)i), filter->by[i]);
    }
    if (has_names)
        sqlite3_str_appendall(sql, " AND NOT EXISTS (SELECT 1 FROM main.name n WHERE"
                                   " instr(n.text, ', ') AND instr(n.text, '=')"
                                   " AND instr(b.filter, n.text))");
    enum status status = run(copying, sql, err);
    return status == STATUS_OK ? database_integer(copying->db,
                                                  "SELECT (SELECT count(*) FROM main.baseline) -"
                                                  " (SELECT count(*) FROM going)",
                                                  &copying->baselines_left_out, err)
                               : status;
}

static enum status copy_rest(struct copying *copying, struct error *err)
{
    static const struct part parts[] = {
        {"series", "WHERE t.id IN (SELECT series FROM bundle.rollup)", RECORD_KIND_RUN},
        {"expiry", "", RECORD_KIND_RUN},
        {"baseline", "WHERE t.id IN (SELECT baseline FROM going)", RECORD_KIND_RUN},
        {"baseline_sample", "WHERE t.baseline IN (SELECT baseline FROM going)", RECORD_KIND_RUN},
        {"meta", "WHERE t.key = '" SCHEMA_NO_SET_HASHES "'", RECORD_KIND_RUN},
    };
    enum status status = pick_baselines(copying, err);
    if (status == STATUS_OK)
        status = copy_parts(copying, parts, sizeof parts / sizeof *parts, err);
    if (status == STATUS_OK)
        status = copy_names(copying, err);
    if (status == STATUS_OK)
        status = copy_table(copying, "run_name", RECORD_KIND_RUN,
                            OF_PICKED " AND t.name IN (SELECT n.id FROM bundle.name n)", err);
    return status;
}

// Describes the bundle's source: the store's identity and the filter, as JSON; of a bundle of a
// bundle the filters of both.
static enum status describe(struct copying *copying, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(copying->db);
    sqlite3_str_appendall(sql, "INSERT INTO bundle.meta SELECT 'bundle', json_patch(value,"
                               " json_object('store', (SELECT value FROM main.meta"
                               " WHERE key = 'store')");
    const struct query_filter *filter = &copying->query->filter;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0]) // a pattern says less than what a bundle may say already
            sqlite3_str_appendf(sql, ", %Q, coalesce(iif(%d, value ->> %Q, NULL), %Q)",
                                query_dimension_name((enum query_dimension)i),
                                query_is_pattern(filter->by[i]),
                                query_dimension_name((enum query_dimension)i), filter->by[i]);
    if (filter->since_ns)
        sqlite3_str_appendf(sql, ", 'since_ns', max(%lld, coalesce(value ->> 'since_ns', 0))",
                            (long long)filter->since_ns);
    if (filter->until_ns)
        sqlite3_str_appendf(sql, ", 'until_ns', min(%lld, coalesce(value ->> 'until_ns', %lld))",
                            (long long)filter->until_ns, (long long)filter->until_ns);
    sqlite3_str_appendall(sql, ")) FROM (SELECT coalesce((SELECT value FROM main.meta"
                               " WHERE key = 'bundle' AND json_valid(value)), '{}') AS value)");
    return run(copying, sql, err);
}

// ---- All of it --------------------------------------------------------------------------

static enum status fill(struct copying *copying, struct error *err)
{
    enum status status = database_exec(copying->db, "BEGIN", err);
    if (status == STATUS_OK)
        status = copy_records(copying, err);
    if (status == STATUS_OK)
        status = pick_runs(copying, err);
    if (status == STATUS_OK)
        status = copy_runs(copying, err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = account_kind(copying, (enum record_kind)kind, err);
    if (status == STATUS_OK)
        status = bundle_expired(copying->db, &copying->query->filter, err);
    if (status == STATUS_OK)
        status = copy_rest(copying, err);
    if (status == STATUS_OK)
        status = describe(copying, err);
    return status == STATUS_OK ? database_exec(copying->db, "COMMIT", err) : status;
}

enum status bundle_fill(struct copying *copying, const char *path, struct error *err)
{
    enum status status = make_tables(path, err);
    if (status == STATUS_OK)
        status = open_both(copying, path, err);
    if (status == STATUS_OK)
        status = fill(copying, err);
    database_close(copying->db);
    return status;
}
