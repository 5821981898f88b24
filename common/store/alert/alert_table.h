// Alerts in the store: the tables alert (a row per episode of a group of a rule) and alert_silence;
// schema.h has their columns.
#pragma once

#include "common/core/query/result.h"
#include "common/store/alert/alert_row.h"

struct sqlite3;
struct store;

// Accepts one of zeros.
void alert_pass_deinit(struct alert_pass *pass);

// Reads the open alerts into `out`, a struct alert_pass.  This is a session_work (session.h).
MUST_CHECK enum status alert_table_load(struct store *store, const struct query *query, void *out,
                                        struct error *err);

// Writes all rows of `pass`, a struct alert_pass, queues what hooks are to be told
// (alert_queue_tell), and notes the free space of the disk and which rules cannot be read.  Removes
// the oldest rows beyond the limits above. In the caller's transaction; this is a job_change
// (job.h).
MUST_CHECK enum status alert_table_save(struct sqlite3 *db, const void *pass, struct error *err);

// Executes a QUERY_ALERT_EDIT of `actor` in a transaction of its own, and creates its answer, of
// one row: id, until_ns? (of a silence).  Returns STATUS_NO_DATA if there is no such alert or
// silence, STATUS_INVALID if the collector has no such rule, STATUS_FULL if there are too many
// silences.
MUST_CHECK enum status alert_table_edit(struct sqlite3 *db, const struct query *query,
                                        const char *actor, struct result **out, struct error *err);

// The same on a file that no collector has open: session_change_file.
MUST_CHECK enum status alert_table_edit_file(const char *path, const struct query *query,
                                             struct result **out, struct error *err);
