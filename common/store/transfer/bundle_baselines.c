// Selects the baselines of a bundle: those whose own filter has every name that the bundle's has,
// with the same values.  Their time does not matter.
//
// A baseline stores its filter as text, "model=a, host=b", and a model's name may contain such
// text.  Where the store has a name that does, the filter is ambiguous, and the baseline is left
// out.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/transfer/copy.h"
#include "common/store/sqlite/database.h"

// Whether words begin with a dimension's.
static bool is_dimension(const char *words)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        const char *name = query_dimension_name((enum query_dimension)i);
        const size_t size = strlen(name);
        if (strncmp(words, name, size) == 0 && words[size] == '=')
            return true;
    }
    return false;
}

static bool ends_here(const char *words)
{
    return words[0] == '\0' || (strncmp(words, ", ", 2) == 0 && is_dimension(words + 2));
}

// Whether a filter's words name what another's dimension does.
static bool names_it(const char *words, enum query_dimension dimension, const char *value)
{
    char wanted[QUERY_TEXT_SIZE + 32];
    (void)snprintf(wanted, sizeof wanted, "%s=%s", query_dimension_name(dimension), value);
    for (const char *at = strstr(words, wanted); at; at = strstr(at + 1, wanted)) {
        const bool begins = at == words || (at - words >= 2 && strncmp(at - 2, ", ", 2) == 0);
        if (begins && ends_here(at + strlen(wanted)))
            return true;
    }
    return false;
}

static bool names_all(const char *words, const struct query_filter *filter)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && !names_it(words, (enum query_dimension)i, filter->by[i]))
            return false;
    return true;
}

// What decides, and takes down what was decided.
struct choosing {
    sqlite3 *db;
    const struct query_filter *filter;
    sqlite3_stmt *unclear, *take;
    bool names_any;
};

// Whether the words have a name of the store in them that reads like two of a filter.
static enum status is_unclear(struct choosing *choosing, const char *words, bool *out,
                              struct error *err)
{
    (void)sqlite3_bind_text(choosing->unclear, 1, words, -1, SQLITE_STATIC);
    const int rc = sqlite3_step(choosing->unclear);
    *out = rc == SQLITE_ROW;
    enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                             ? STATUS_OK
                             : database_error(choosing->db, "store", err);
    (void)sqlite3_reset(choosing->unclear);
    return status;
}

static enum status choose(struct choosing *choosing, sqlite3_stmt *row, int64_t *left_out,
                          struct error *err)
{
    const char *words = (const char *)sqlite3_column_text(row, 1);
    bool unclear = false, goes = words && names_all(words, choosing->filter);
    enum status status = STATUS_OK;
    if (goes && choosing->names_any)
        status = is_unclear(choosing, words, &unclear, err);
    goes = goes && !unclear;
    *left_out += !goes;
    if (status != STATUS_OK || !goes)
        return status;
    (void)sqlite3_bind_int64(choosing->take, 1, sqlite3_column_int64(row, 0));
    return database_run(choosing->db, choosing->take, err);
}

static enum status prepare(struct choosing *choosing, sqlite3_stmt **row, struct error *err)
{
    enum status status =
        database_exec(choosing->db, "CREATE TEMP TABLE going(baseline INTEGER PRIMARY KEY)", err);
    if (status == STATUS_OK)
        status = database_prepare(choosing->db, &choosing->unclear,
                                  "SELECT 1 FROM main.name n WHERE instr(n.text, ', ') > 0"
                                  " AND instr(n.text, '=') > 0 AND instr(?1, n.text) > 0 LIMIT 1",
                                  false, err);
    if (status == STATUS_OK)
        status = database_prepare(choosing->db, &choosing->take, "INSERT INTO going VALUES(?)",
                                  false, err);
    if (status == STATUS_OK)
        status =
            database_prepare(choosing->db, row, "SELECT id, filter FROM main.baseline", false, err);
    return status;
}

enum status bundle_baselines(sqlite3 *db, const struct query_filter *filter, int64_t *left_out,
                             struct error *err)
{
    struct choosing choosing = {.db = db, .filter = filter};
    sqlite3_stmt *row = NULL;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        choosing.names_any = choosing.names_any || filter->by[i][0];
    enum status status = prepare(&choosing, &row, err);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        status = choose(&choosing, row, left_out, err);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(row);
    (void)sqlite3_finalize(choosing.unclear);
    (void)sqlite3_finalize(choosing.take);
    return status;
}
