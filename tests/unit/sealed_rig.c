#include "tests/unit/sealed_rig.h"

#include "common/store/clear.h"
#include "common/store/database.h"
#include "common/store/expire.h"
#include "common/store/sealer.h"
#include "tests/support/test.h"

int64_t ask(sqlite3 *of, const char *sql)
{
    struct error err;
    int64_t value = 0;
    if (database_integer(of, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

void make_random(int64_t count)
{
    make_store(RECORD_KIND_INFERENCE, count);
    exec("UPDATE inference SET received_after_ns = abs(random() % 1000000000) WHERE id % 7");
    exec("UPDATE inference SET prefill_excess_ns = 'text' WHERE id % 53 = 0");
    exec("UPDATE inference SET finish = 3 WHERE id % 11 = 3");
    exec("UPDATE inference SET number = id, stream = 0");
    execf("INSERT OR REPLACE INTO ledger(run, kind, stored) SELECT run, %d, count(*)"
          " FROM inference GROUP BY run",
          (int)RECORD_KIND_INFERENCE);
}

void seal_all(uint32_t rows)
{
    struct error err;
    struct sealer *sealer = NULL;
    bool done = false;
    uint32_t sealed = 0;
    const struct sealer_limits limits = {
        .before_ns = INT64_MAX, .last_id = INT64_MAX, .rows = rows};
    if (sealer_new(&sealer, db, RECORD_KIND_INFERENCE, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    while (!done)
        if (sealer_step(sealer, &limits, &done, &sealed, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    sealer_free(sealer);
}

int64_t segments(void)
{
    return ask(db, "SELECT count(*) FROM sealed");
}

void damage(int64_t segment)
{
    execf("UPDATE sealed SET data = zeroblob(length(data)) WHERE id = %lld", (long long)segment);
}

enum status clear_to_end(const struct query_filter *filter, struct error *err)
{
    struct clearing clearing;
    bool done = false;
    enum status status = clear_begin(&clearing, db, filter, err);
    while (status == STATUS_OK && !done)
        status = clear_slice(&clearing, db, &done, err);
    return status;
}

static void dump(sqlite3 *of, const char *sql, sqlite3_str *out)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(of, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(of));
    while (sqlite3_step(stmt) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            sqlite3_str_appendf(out, "%d:%s|", sqlite3_column_type(stmt, i),
                                (const char *)sqlite3_column_text(stmt, i));
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

char *dump_sql(sqlite3 *of, const char *sql)
{
    sqlite3_str *out = sqlite3_str_new(NULL);
    sqlite3_str_appendall(out, "rows: ");
    dump(of, sql, out);
    return sqlite3_str_finish(out);
}

void assert_same_text(char *a, char *b)
{
    assert_non_null(a);
    assert_non_null(b);
    size_t same = 0; // they may be longer than what is shown of them
    while (a[same] && a[same] == b[same])
        same++;
    const size_t from = same > 200 ? same - 200 : 0;
    if (a[same] != b[same])
        fail_msg("...%.400s differs from ...%.400s", a + from, b + from);
    sqlite3_free(a);
    sqlite3_free(b);
}

void clear_both(const struct query_filter *filter, sqlite3 *of)
{
    struct error err;
    struct clearing clearing;
    bool done = false;
    enum status status = clear_begin(&clearing, of, filter, &err);
    while (status == STATUS_OK && !done)
        status = clear_slice(&clearing, of, &done, &err);
    if (status != STATUS_OK)
        fail_msg("%s", err.text);
}

unsigned expire_all(sqlite3 *of, int64_t before_ns, int64_t last_id)
{
    struct error err;
    const struct expire_rows rows = {
        .kind = RECORD_KIND_INFERENCE, .before_ns = before_ns, .last_id = last_id, .count = 25};
    unsigned gone = 1, all = 0;
    for (; gone > 0; all += gone)
        if (expire_slice(of, &rows, &gone, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    return all;
}
