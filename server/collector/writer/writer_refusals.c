#include "server/collector/writer/writer_refusals.h"

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

static enum status save_one(sqlite3 *db, const char *key, uint64_t count, int64_t now_ns,
                            struct error *err)
{
    char *sql = sqlite3_mprintf("INSERT INTO refusal VALUES(%Q, %lld, %lld)"
                                " ON CONFLICT(reason) DO UPDATE SET count = count + excluded.count,"
                                " last_ns = excluded.last_ns",
                                key, (long long)count, (long long)now_ns);
    if (!sql)
        return error_no_memory(err, "refusals");
    enum status status = database_exec(db, sql, err);
    sqlite3_free(sql);
    return status;
}

enum status writer_save_refusals(struct reject_counters *reject_counters, sqlite3 *db,
                                 int64_t now_ns, struct error *err)
{
    if (!reject_counters)
        return STATUS_OK;
    const uint64_t *counts = reject_counters_save(reject_counters);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < REFUSAL_COUNT && status == STATUS_OK; i++)
        if (counts[i] != 0)
            status = save_one(db, refusal_key((enum refusal)i), counts[i], now_ns, err);
    return status;
}
