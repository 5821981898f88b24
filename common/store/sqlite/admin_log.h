// Audit log of administrators' acts, in the store's table admin: who did what, when, with which
// outcome.  It also has what retention deleted.  The table keeps the newest ADMIN_LOG_ROWS rows.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct sqlite3;

enum {
    ADMIN_LOG_ROWS = 16384,
    ADMIN_ACTOR_SIZE = 80, // terminating NULs included
    ADMIN_DETAIL_SIZE = 256,
    ADMIN_OUTCOME_SIZE = 128,
};

// An act; the caller sets `actor`, the functions below set the other members.
struct admin_act {
    char actor[ADMIN_ACTOR_SIZE]; // "key NAME", "user NAME", "user NAME, file"
    const char *action;           // static: "clear"; NULL: nothing to log, do not add it
    char detail[ADMIN_DETAIL_SIZE];
    char outcome[ADMIN_OUTCOME_SIZE]; // "ok", or why it failed
    int64_t rows;                     // number of rows changed
};

// Sets `actor` to "user NAME" followed by `place`, which is ", file" or "".  A user whom the host's
// own file of users does not name is "user 1000".
void admin_act_set_user(char actor[ADMIN_ACTOR_SIZE], uint32_t uid, const char *place);

// Sets `action`, which is static, and `detail`, which is cut if it is too long.
void admin_act_set(struct admin_act *act, const char *action, const char *detail);

// Describes an administrator's query: sets `action` and `detail`.  Queries that are not logged, as
// they only read, have no action: it is NULL.  Copies are logged.  Texts that are too long are cut.
void admin_act_of_query(struct admin_act *act, const struct query *query);

// Sets `outcome` from the status of the act and its error, and `rows`.
void admin_act_end(struct admin_act *act, enum status status, const struct error *why,
                   int64_t rows);

// Inserts the act into the table, in the current transaction or one of its own, and writes it to
// the program's log (log.h).  A failure is only written there: the act is done.
void admin_log_add(struct sqlite3 *db, const struct admin_act *act);

// For an act of this process's user on a store file: sets `actor`, and calls admin_act_end and
// admin_log_add.
void admin_log_add_own(struct sqlite3 *db, struct admin_act *act, enum status status,
                       const struct error *why, int64_t rows);

// Notes in the table that retention deleted `rows` rows.  `what` says what they are.  The table has
// one row per day and `what`, to which later calls of that day add.
void admin_log_retention(struct sqlite3 *db, const char *what, int64_t rows);
