#include "common/store/sqlite/set_hash.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

// The finaliser of splitmix64 (Steele, Lea and Flood, 2014).
uint64_t set_hash_of(int64_t stream, int64_t number)
{
    uint64_t x = (uint64_t)number + (uint64_t)stream * UINT64_C(0xd1342543de82ef95) +
                 UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int64_t set_hash_signed(uint64_t bits)
{
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    uint64_t *sum = sqlite3_aggregate_context(context, sizeof *sum);
    if (sum)
        *sum += set_hash_of(sqlite3_value_int64(values[0]), sqlite3_value_int64(values[1]));
    else
        sqlite3_result_error_nomem(context);
}

static void finish(sqlite3_context *context)
{
    const uint64_t *sum = sqlite3_aggregate_context(context, 0);
    sqlite3_result_int64(context, sum ? set_hash_signed(*sum) : 0);
}

static void add(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL ||
        sqlite3_value_type(values[1]) == SQLITE_NULL)
        return;
    sqlite3_result_int64(context, set_hash_signed((uint64_t)sqlite3_value_int64(values[0]) +
                                                  (uint64_t)sqlite3_value_int64(values[1])));
}

enum status set_hash_register(sqlite3 *db, struct error *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    if (sqlite3_create_function_v2(db, "set_hash", 2, flags, NULL, NULL, step, finish, NULL) ==
            SQLITE_OK &&
        sqlite3_create_function_v2(db, "set_hash_add", 2, flags, NULL, add, NULL, NULL, NULL) ==
            SQLITE_OK)
        return STATUS_OK;
    return database_error(db, "store", err);
}
