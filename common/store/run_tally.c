#include "common/store/run_tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/fingerprint.h"

void run_tally_deinit(struct run_tallies *tallies)
{
    free(tallies->list);
    *tallies = (struct run_tallies){0};
}

enum status run_tally_add(struct run_tallies *tallies, int64_t run, struct error *err)
{
    if (tallies->count == tallies->room) {
        const size_t room = tallies->room ? 2 * tallies->room : 64;
        struct run_tally *grown = realloc(tallies->list, room * sizeof *grown);
        if (!grown)
            return error_set(err, STATUS_NOMEM, "store: out of memory");
        tallies->list = grown;
        tallies->room = room;
    }
    tallies->list[tallies->count++] = (struct run_tally){.run = run};
    return STATUS_OK;
}

// Rows of a run come together: the last one found is looked at first.
struct run_tally *run_tally_find(struct run_tallies *tallies, int64_t run)
{
    if (tallies->at < tallies->count && tallies->list[tallies->at].run == run)
        return &tallies->list[tallies->at];
    size_t low = 0, high = tallies->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (tallies->list[middle].run < run)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == tallies->count || tallies->list[low].run != run)
        return NULL;
    tallies->at = low;
    return &tallies->list[low];
}

enum status run_tally_rows(struct run_tallies *tallies, sqlite3 *db, const char *schema,
                           enum record_kind kind, bool off, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    sqlite3_str_appendf(sql, "SELECT t.run, t.stream, t.number FROM \"%w\".\"%w\" t NOT INDEXED",
                        schema, record_kind_info(kind)->name);
    char *text = sqlite3_str_finish(sql);
    enum status status = text ? database_prepare(db, &stmt, text, false, err)
                              : error_set(err, STATUS_NOMEM, "store: out of memory");
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct run_tally *tally = run_tally_find(tallies, sqlite3_column_int64(stmt, 0));
        if (!tally)
            continue;
        const uint64_t mix =
            fingerprint_of(sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2));
        tally->count += off ? -1 : 1;
        tally->sum += off ? -mix : mix;
    }
    if (rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

int64_t run_tally_bits(uint64_t sum)
{
    int64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return bits;
}
