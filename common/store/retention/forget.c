#include "common/store/retention/forget.h"

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

enum {
    WINDOW = 2048,         // ids of runs that a slice visits
    NAMES_MAX = 2048,      // names of runs that a slice removes
    TOMBSTONES_LEAST = 64, // of an owner
};

// Tables of the connection: the runs of a slice, their names, and the names that nothing uses.
static const char make_tables[] =
    "CREATE TEMP TABLE IF NOT EXISTS going(run INTEGER PRIMARY KEY);"
    "CREATE TEMP TABLE IF NOT EXISTS going_run_name(run, number, name, PRIMARY KEY(run, number))"
    " WITHOUT ROWID;"
    "CREATE TEMP TABLE IF NOT EXISTS going_name(id INTEGER PRIMARY KEY, owner);"
    "DELETE FROM temp.going; DELETE FROM temp.going_run_name; DELETE FROM temp.going_name;";

// ---- Runs -----------------------------------------------------------------------------

// Chooses runs after `forget->after`, at most `count`.  Ids are not sought one by one, as most may
// be gone.  The latest run stays, so that its id is not given out again.
static enum status choose(const struct forget *forget, sqlite3 *db, unsigned count, int64_t last,
                          struct error *err)
{
    static const char empty[] = " AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.run = r.run"
                                " AND l.stored > l.expired + l.cleared%s)";
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "INSERT INTO temp.going SELECT r.run FROM run r"
                        " WHERE r.run > %lld AND r.run <= %lld",
                        (long long)forget->after, (long long)last);
    if (forget->why == FORGET_REQUEST) {
        sqlite3_str_appendf(sql,
                            " AND %lld IN (0, r.run) AND r.owner = %lld"
                            " AND EXISTS (SELECT 1 FROM tombstone s WHERE s.uuid = r.uuid)",
                            (long long)forget->run, (long long)forget->owner);
        sqlite3_str_appendf(sql, empty, "");
    } else {
        sqlite3_str_appendf(sql,
                            " AND r.\"end\" <> 0 AND (r.heard_ns < %lld OR (r.heard_ns < %lld"
                            " AND r.stored = 0)) AND r.run < (SELECT max(run) FROM run)",
                            (long long)forget->before_ns, (long long)forget->before_empty_ns);
        sqlite3_str_appendf(sql, empty, " AND l.kind NOT IN (1, 2)");
    }
    sqlite3_str_appendf(sql, " ORDER BY r.run LIMIT %u", count);
    return database_exec_built(db, sql, err);
}

_Static_assert(RECORD_KIND_DEVICE == 1 && RECORD_KIND_MODEL == 2, "as choose has them");

// What a run cannot have is the largest integer, as in v_ledger.
#define TOTAL(expression) "CAST(total(" expression ") AS INTEGER)"
#define OF_RUN(table, sum, condition)                                                              \
    TOTAL("(SELECT total(" sum ") FROM \"" table "\" x WHERE x.run = r.run" condition ")")
#define ADD(column) column " = CAST(" column " + excluded." column " AS INTEGER)"

// Adds the runs' ledgers to the sums of their owners.  Devices and models expire with their run.
static enum status add_sums(sqlite3 *db, enum forget_why why, struct error *err)
{
    return database_execf(
        db, err,
        "INSERT INTO forgotten(owner, why, runs, produced, stored, expired, cleared, dropped,"
        " unnumbered, duplicates, refused, since_ns, until_ns) SELECT r.owner, %d, count(*)," TOTAL(
            "r.produced") "," TOTAL("r.stored") ","                                            //
        OF_RUN("ledger", "x.stored - x.cleared", "") "," OF_RUN("ledger", "x.cleared", "") "," //
        OF_RUN("range", "x.last - x.first + 1", " AND x.state = 1") ","                        //
        OF_RUN("stream", "x.unnumbered", "") "," TOTAL("r.duplicates") "," TOTAL(
            "r.refused") ","
                         " min(r.started_ns), max(r.heard_ns)"
                         " FROM run r WHERE r.run IN (SELECT run FROM temp.going) GROUP BY r.owner"
                         " ON CONFLICT(owner, why) DO UPDATE SET since_ns ="
                         " iif(runs = 0, excluded.since_ns, min(since_ns, excluded.since_ns)),"
                         " until_ns = max(until_ns, excluded.until_ns), runs = runs + "
                         "excluded.runs,"                                           //
        ADD("produced") "," ADD("stored") "," ADD("expired") "," ADD("cleared") "," //
        ADD("dropped") "," ADD("unnumbered") "," ADD("duplicates") "," ADD("refused"),
        (int)why);
}

#define TOMBSTONES                                                                                 \
    "INSERT OR REPLACE INTO tombstone SELECT uuid, owner, min(started_ns, received_ns) FROM run"

// Makes room among the tombstones of an owner, of which all owners together have at most `most`.
static enum status bound_tombstones(sqlite3 *db, int64_t owner, int64_t most, struct error *err)
{
    int64_t owners = 0, count = 0;
    enum status status = database_integer(db, "SELECT count(*) FROM owner", &owners, err);
    if (status == STATUS_OK)
        status = database_integerf(
            db, &count, err, "SELECT count(*) FROM tombstone WHERE owner = %lld", (long long)owner);
    most /= owners > 0 ? owners : 1;
    most = most > FORGET_TOMBSTONES_OWNER ? FORGET_TOMBSTONES_OWNER : most;
    most = most < TOMBSTONES_LEAST ? TOMBSTONES_LEAST : most;
    if (status != STATUS_OK || count <= most)
        return status;
    return database_execf(
        db, err,
        "UPDATE owner SET horizon_ns = max(horizon_ns, (SELECT run_ns FROM tombstone"
        " WHERE owner = %lld ORDER BY run_ns LIMIT 1 OFFSET %lld)) WHERE owner = %lld;"
        "DELETE FROM tombstone WHERE uuid IN (SELECT uuid FROM tombstone WHERE owner = %lld"
        " ORDER BY run_ns LIMIT %lld)",
        (long long)owner, (long long)(count - most - 1), (long long)owner, (long long)owner,
        (long long)(count - most));
}

// The same for each owner of runs in the slice.
static enum status bound_all_tombstones(sqlite3 *db, int64_t most, struct error *err)
{
    enum status status = STATUS_OK;
    for (int64_t owner = -1; status == STATUS_OK;) {
        status = database_integerf(db, &owner, err,
                                   "SELECT coalesce(min(owner), -1) FROM run WHERE owner > %lld"
                                   " AND run IN (SELECT run FROM temp.going)",
                                   (long long)owner);
        if (status != STATUS_OK || owner < 0)
            break;
        status = bound_tombstones(db, owner, most, err);
    }
    return status;
}

static enum status remove_runs(const struct forget *forget, sqlite3 *db, struct error *err)
{
    static const char *const tables[] = {"run_name", "stream", "range", "unnumbered",
                                         "ledger",   "device", "model", "run"};
    enum status status = add_sums(db, forget->why, err);
    if (status == STATUS_OK)
        status = database_exec(db, TOMBSTONES " WHERE run IN (SELECT run FROM temp.going)", err);
    if (status == STATUS_OK && forget->why != FORGET_REQUEST) // these are needed until the end
        status = bound_all_tombstones(db, forget->tombstones, err);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == STATUS_OK; i++)
        status = database_execf(
            db, err, "DELETE FROM \"%w\" WHERE run IN (SELECT run FROM temp.going)", tables[i]);
    return status;
}

// ---- Names ----------------------------------------------------------------------------

// Removes names of the runs, from the highest number down, so that a run that stays for now has its
// first ones.  Runs that have more names stay.
static enum status take_names(sqlite3 *db, struct error *err)
{
    return database_execf(
        db, err,
        "INSERT INTO temp.going_run_name SELECT run, number, name FROM run_name"
        " WHERE run IN (SELECT run FROM temp.going) ORDER BY run, number DESC LIMIT %d;"
        "INSERT OR IGNORE INTO temp.going_name SELECT n.id, n.owner FROM name n WHERE n.owner <> 0"
        " AND n.id IN (SELECT name FROM temp.going_run_name);"
        "DELETE FROM run_name WHERE run IN (SELECT run FROM temp.going_run_name) AND EXISTS"
        " (SELECT 1 FROM temp.going_run_name g WHERE g.run = run_name.run"
        " AND g.number = run_name.number);"
        "DELETE FROM temp.going WHERE EXISTS (SELECT 1 FROM run_name x WHERE x.run = going.run);"
        "INSERT OR IGNORE INTO temp.going_name SELECT n.id, n.owner FROM name n WHERE n.owner <> 0"
        " AND n.id IN (SELECT host FROM run WHERE run IN (SELECT run FROM temp.going))",
        NAMES_MAX);
}

// Names of records are also names of their runs (run_name).  The latest name stays, so that its id
// is not given out again.
static enum status remove_names(sqlite3 *db, enum forget_why why, struct error *err)
{
    return database_execf(
        db, err,
        "DELETE FROM temp.going_name WHERE id = (SELECT max(id) FROM name)"
        " OR EXISTS (SELECT 1 FROM run_name x WHERE x.name = going_name.id)"
        " OR EXISTS (SELECT 1 FROM run x WHERE x.host = going_name.id)"
        " OR EXISTS (SELECT 1 FROM series x WHERE x.grouping IN (0, 1) AND x.model = going_name.id)"
        " OR EXISTS (SELECT 1 FROM series x WHERE x.host = going_name.id)"
        " OR EXISTS (SELECT 1 FROM series x WHERE x.device = going_name.id)"
        " OR EXISTS (SELECT 1 FROM series x WHERE x.operation = going_name.id)"
        " OR id IN (SELECT model FROM baseline_sample UNION ALL SELECT device FROM "
        "baseline_sample);"
        "INSERT INTO forgotten(owner, why, names) SELECT owner, %d, count(*) FROM temp.going_name"
        " WHERE true GROUP BY owner"
        " ON CONFLICT(owner, why) DO UPDATE SET names = names + excluded.names;"
        "DELETE FROM name WHERE id IN (SELECT id FROM temp.going_name)",
        (int)why);
}

// ---- Slices ---------------------------------------------------------------------------

static enum status count_rows(sqlite3 *db, const char *table, int64_t *out, struct error *err)
{
    return database_integerf(db, out, err, "SELECT count(*) FROM temp.%s", table);
}

// `*runs` were removed, `*uses` are rows of run_name, `*names` are names.
static enum status remove_chosen(struct forget *forget, sqlite3 *db, int64_t *runs, int64_t *uses,
                                 int64_t *names, struct error *err)
{
    enum status status = take_names(db, err);
    if (status == STATUS_OK)
        status = count_rows(db, "going", runs, err);
    if (status == STATUS_OK)
        status = count_rows(db, "going_run_name", uses, err);
    if (status == STATUS_OK && *runs > 0)
        status = remove_runs(forget, db, err);
    if (status == STATUS_OK)
        status = remove_names(db, forget->why, err);
    return status == STATUS_OK ? count_rows(db, "going_name", names, err) : status;
}

static enum status next_window(const struct forget *forget, sqlite3 *db, int64_t *last, bool *done,
                               struct error *err)
{
    int64_t first = 0;
    enum status status =
        database_integerf(db, &first, err, "SELECT coalesce(min(run), 0) FROM run WHERE run > %lld",
                          (long long)forget->after);
    *done = first == 0;
    *last = first + WINDOW;
    return status;
}

enum status forget_slice(struct forget *forget, sqlite3 *db, unsigned count, unsigned *gone,
                         bool *done, struct error *err)
{
    int64_t last = 0, chosen = 0, runs = 0, uses = 0, names = 0;
    *gone = 0;
    enum status status = next_window(forget, db, &last, done, err);
    if (status == STATUS_OK && *done && forget->why == FORGET_REQUEST)
        status = bound_tombstones(db, forget->owner, forget->tombstones, err);
    if (status != STATUS_OK || *done)
        return status;
    status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    status = database_exec(db, make_tables, err);
    if (status == STATUS_OK)
        status = choose(forget, db, count, last, err);
    if (status == STATUS_OK)
        status = count_rows(db, "going", &chosen, err);
    if (status == STATUS_OK && chosen > 0)
        status = remove_chosen(forget, db, &runs, &uses, &names, err);
    status = database_end(db, status, err);
    if (status != STATUS_OK)
        return status;
    if (chosen < (int64_t)count && runs == chosen)
        forget->after = last;
    forget->runs += runs;
    forget->names += names;
    *gone = (unsigned)(runs + uses);
    return STATUS_OK;
}

// ---- Requests -------------------------------------------------------------------------

// Finds the run or the owner that a query names.
static enum status resolve(struct forget *forget, sqlite3 *db, const struct query *query,
                           struct error *err)
{
    const char *run = query->filter.by[QUERY_BY_RUN], *key = query->key.text;
    int64_t runs = 0;
    char *sql = run[0] ? sqlite3_mprintf("FROM run WHERE uuid = lower(%Q)", run)
                       : sqlite3_mprintf("FROM run JOIN owner o USING(owner)"
                                         " WHERE o.who IN (%Q, 'key:' || %Q)",
                                         key, key);
    enum status status = sql ? STATUS_OK : error_no_memory(err, "store");
    if (status == STATUS_OK)
        status = database_integerf(db, &runs, err, "SELECT count(*) %s", sql);
    if (status == STATUS_OK)
        status = database_integerf(db, &forget->owner, err, "SELECT max(owner) %s", sql);
    if (status == STATUS_OK && run[0])
        status = database_integerf(db, &forget->run, err, "SELECT max(run) %s", sql);
    sqlite3_free(sql);
    if (status == STATUS_OK && runs == 0)
        return error_set(err, STATUS_NO_DATA, "no run of %.63s in the store", run[0] ? run : key);
    return status;
}

enum status forget_begin(struct forget *forget, sqlite3 *db, const struct query *query,
                         struct error *err)
{
    *forget = (struct forget){.why = FORGET_REQUEST, .tombstones = FORGET_TOMBSTONES};
    enum status status = resolve(forget, db, query, err);
    if (status != STATUS_OK)
        return status;
    return database_execf(db, err, TOMBSTONES " WHERE %lld IN (0, run) AND owner = %lld",
                          (long long)forget->run, (long long)forget->owner);
}
