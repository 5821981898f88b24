// Decides which runs of a file are imported, by their audit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/audit/audit.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session.h"

// ---- Which runs ---------------------------------------------------------------------------

static enum status add_coming(struct importing *importing, struct coming coming, struct error *err)
{
    if (!ARRAY_RESERVE(&importing->runs, &importing->run_room, importing->run_count + 1))
        return error_no_memory(err, "store");
    importing->runs[importing->run_count++] = coming;
    return STATUS_OK;
}

struct coming *import_find_run(struct importing *importing, int64_t from)
{
    if (importing->at_run && importing->at_run->from == from)
        return importing->at_run;
    struct coming *run =
        array_find(importing->runs, importing->run_count, sizeof *importing->runs, from);
    if (run)
        importing->at_run = run;
    return run;
}

// Whether this store has all ranges that the file has stored of the run.
static enum status is_covered(struct importing *importing, int64_t from, int64_t to, bool *covered,
                              struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        importing->from->db, &row,
        "SELECT stream, first, last FROM range WHERE run = ? AND state = 0", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, from);
    int rc = SQLITE_DONE;
    *covered = true;
    while (*covered && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        (void)sqlite3_bind_int64(importing->covered, 1, to);
        for (int i = 0; i < 3; i++)
            (void)sqlite3_bind_int64(importing->covered, 2 + i, sqlite3_column_int64(row, i));
        *covered = sqlite3_step(importing->covered) == SQLITE_ROW;
        (void)sqlite3_reset(importing->covered);
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_finalize(row);
    return status;
}

// A run whose UUID is here already.
static enum status validate_known(struct importing *importing, const char *uuid, int64_t from,
                                  int64_t to, int64_t gone, struct error *err)
{
    bool covered = false;
    enum status status = STATUS_OK;
    if (gone > 0)
        status = is_covered(importing, from, to, &covered, err);
    if (status != STATUS_OK)
        return status;
    if (gone > 0 && covered) {
        return add_coming(importing, (struct coming){.from = from, .to = to, .is_here = true}, err);
    }
    importing->there++;
    if (gone > 0)
        import_note(importing, uuid, "this store knows less of this run: it was left as it is");
    return STATUS_OK;
}

static enum status validate_run(struct importing *importing, const struct audit_run *run,
                                struct error *err)
{
    struct store *from = importing->from;
    unsigned char bytes[16];
    char uuid[37];
    (void)sqlite3_bind_int64(from->uuid, 1, run->run);
    const char *text = sqlite3_step(from->uuid) == SQLITE_ROW
                           ? (const char *)sqlite3_column_text(from->uuid, 0)
                           : NULL;
    const bool has_uuid = text && text_to_uuid(bytes, text);
    (void)sqlite3_reset(from->uuid);
    char number[32];
    (void)snprintf(number, sizeof number, "run number %lld", (long long)run->run);
    if (!has_uuid || audit_verdict(run) == AUDIT_UNBALANCED || run->is_gone_unknown) {
        importing->refused++;
        import_note(importing, number,
                    !has_uuid           ? "it has no UUID"
                    : run->findings > 0 ? (run->finding ? run->finding : "unbalanced")
                                        : "it is unknown which of its records are missing");
        return STATUS_OK;
    }
    text_from_uuid(uuid, bytes);
    (void)sqlite3_bind_text(importing->find, 1, uuid, -1, SQLITE_STATIC);
    const int rc = sqlite3_step(importing->find);
    const int64_t to = rc == SQLITE_ROW ? sqlite3_column_int64(importing->find, 0) : 0;
    const int64_t gone = rc == SQLITE_ROW ? sqlite3_column_int64(importing->find, 1) : 0;
    (void)sqlite3_reset(importing->find);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return database_error(importing->store->db, "store", err);
    if (rc == SQLITE_ROW)
        return validate_known(importing, uuid, run->run, to, gone, err);
    struct coming coming = {.from = run->run};
    memcpy(coming.hashes, run->hashes, sizeof coming.hashes);
    return add_coming(importing, coming, err);
}

enum status import_validate_runs(struct importing *importing, struct error *err)
{
    static const struct query_filter all;
    enum status status = STATUS_OK;
    bool more = true;
    for (int64_t after = 0; more && status == STATUS_OK;) {
        struct audit audit;
        status = audit_page(&audit, importing->from, &all, after, AUDIT_RUNS_MAX, err);
        for (size_t i = 0; i < audit.run_count && status == STATUS_OK; i++)
            status = validate_run(importing, &audit.runs[i], err);
        for (size_t i = 0; i < audit.orphan_count; i++) {
            importing->refused++;
            import_note(importing, "a run that is not there",
                        audit.orphans[i].finding ? audit.orphans[i].finding : "");
        }
        more = audit.more && audit.last > after;
        after = audit.last;
        audit_deinit(&audit);
    }
    return status;
}
