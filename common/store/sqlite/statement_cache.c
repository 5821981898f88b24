#include "common/store/sqlite/statement_cache.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

static void drop(struct statement_cache *statements, unsigned place)
{
    (void)sqlite3_finalize(statements->kept[place].stmt);
    sqlite3_free(statements->kept[place].sql);
    memset(&statements->kept[place], 0, sizeof statements->kept[place]);
}

void statement_cache_end(struct statement_cache *statements)
{
    for (unsigned i = 0; i < STATEMENT_CACHE_SIZE; i++)
        drop(statements, i);
}

// The index of an unused statement, or STATEMENT_CACHE_SIZE.
static unsigned find(const struct statement_cache *statements, const char *sql)
{
    for (unsigned i = 0; i < STATEMENT_CACHE_SIZE; i++)
        if (statements->kept[i].sql && strcmp(statements->kept[i].sql, sql) == 0 &&
            !statements->kept[i].is_taken)
            return i;
    return STATEMENT_CACHE_SIZE;
}

// The index of a free or replaceable entry; STATEMENT_CACHE_SIZE if all are in use.
static unsigned find_room(const struct statement_cache *statements)
{
    unsigned best = STATEMENT_CACHE_SIZE;
    for (unsigned i = 0; i < STATEMENT_CACHE_SIZE; i++) {
        if (!statements->kept[i].stmt)
            return i;
        if (!statements->kept[i].is_taken &&
            (best == STATEMENT_CACHE_SIZE ||
             statements->kept[i].used < statements->kept[best].used))
            best = i;
    }
    return best;
}

enum status statement_cache_acquire(struct statement_cache *statements, sqlite3 *db,
                                    sqlite3_str *sql, sqlite3_stmt **out, struct error *err)
{
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return error_no_memory(err, "store");
    unsigned place = find(statements, text);
    if (place < STATEMENT_CACHE_SIZE) {
        sqlite3_free(text);
        statements->kept[place].used = ++statements->clock;
        statements->kept[place].is_taken = true;
        *out = statements->kept[place].stmt;
        return STATUS_OK;
    }
    enum status status = database_prepare(db, out, text, true, err);
    place = find_room(statements);
    if (status != STATUS_OK || place == STATEMENT_CACHE_SIZE) {
        sqlite3_free(text);
        return status;
    }
    drop(statements, place);
    statements->kept[place].sql = text;
    statements->kept[place].stmt = *out;
    statements->kept[place].used = ++statements->clock;
    statements->kept[place].is_taken = true;
    return STATUS_OK;
}

void statement_cache_release(struct statement_cache *statements, sqlite3_stmt *stmt)
{
    for (unsigned i = 0; stmt && i < STATEMENT_CACHE_SIZE; i++) {
        if (statements->kept[i].stmt != stmt)
            continue;
        (void)sqlite3_reset(stmt);
        (void)sqlite3_clear_bindings(stmt);
        statements->kept[i].is_taken = false;
        return;
    }
    (void)sqlite3_finalize(stmt);
}
