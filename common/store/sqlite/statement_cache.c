#include "common/store/sqlite/statement_cache.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

void statement_cache_end(struct statement_cache *statements)
{
    for (unsigned i = 0; i < STATEMENT_CACHE_SIZE; i++)
        (void)sqlite3_finalize(statements->kept[i].stmt);
    *statements = (struct statement_cache){0};
}

// The index of an unused statement with that text, or else of a free or replaceable entry;
// STATEMENT_CACHE_SIZE if all are in use.
static unsigned find(const struct statement_cache *statements, const char *sql, bool *is_it)
{
    unsigned best = STATEMENT_CACHE_SIZE;
    *is_it = false;
    for (unsigned i = 0; i < STATEMENT_CACHE_SIZE && !*is_it; i++) {
        if (statements->kept[i].is_taken)
            continue;
        *is_it =
            statements->kept[i].stmt && strcmp(sqlite3_sql(statements->kept[i].stmt), sql) == 0;
        if (*is_it || best == STATEMENT_CACHE_SIZE ||
            statements->kept[i].used < statements->kept[best].used)
            best = i;
    }
    return best;
}

enum status statement_cache_acquire(struct statement_cache *statements, sqlite3 *db,
                                    sqlite3_str *sql, sqlite3_stmt **out, struct error *err)
{
    bool is_it = false;
    enum status status = STATUS_OK;
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return error_no_memory(err, "store");
    const unsigned place = find(statements, text, &is_it);
    if (is_it)
        *out = statements->kept[place].stmt;
    else
        status = database_prepare(db, out, text, true, err);
    sqlite3_free(text);
    if (status != STATUS_OK || place == STATEMENT_CACHE_SIZE)
        return status;
    if (!is_it)
        (void)sqlite3_finalize(statements->kept[place].stmt);
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
