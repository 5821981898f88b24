#include "tests/bench/bench_store.h"

#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "tests/bench/bench.h"

int64_t bench_ask(const char *path, const char *sql)
{
    struct error err = {0};
    struct sqlite3 *db = NULL;
    int64_t value = 0;
    if (database_open_reader(&db, path, &err) != STATUS_OK ||
        database_integer(db, sql, &value, &err) != STATUS_OK)
        bench_die("store", err.text);
    database_close(db);
    return value;
}
