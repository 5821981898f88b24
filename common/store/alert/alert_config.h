// The collector's rules and hooks in the store: the table alert_config (schema.h), with what is
// wrong with them.  All functions change rows in the caller's transaction; the first two are a
// job_change (job.h).
#pragma once

#include "common/core/base/error.h"
#include "common/store/alert/alert_row.h"

struct sqlite3;

// The key of a rule's text in the table meta, before its name.
#define ALERT_RULE_KEY "rule:"

// Replaces the names of rules and hooks, and the texts of rules, by those of `file`, a struct
// alert_file, which is right.  Removes the calls of hooks that are gone.
MUST_CHECK enum status alert_config_save(struct sqlite3 *db, const void *file, struct error *err);

// Notes that the file could not be read again: why, as text.
MUST_CHECK enum status alert_config_note_file(struct sqlite3 *db, const void *why,
                                              struct error *err);

// Notes the health of the rules where it is not the one noted.
MUST_CHECK enum status alert_config_save_health(struct sqlite3 *db, const struct alert_pass *pass,
                                                struct error *err);

// Returns STATUS_NO_DATA, and suggests the nearest name, if the collector has rules but none of the
// name.
MUST_CHECK enum status alert_config_check_rule(struct sqlite3 *db, const char *name,
                                               struct error *err);
