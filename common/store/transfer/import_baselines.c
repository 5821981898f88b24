// Imports the baselines of a file, each in one batch: its samples with their checksums, and the
// names that they refer to.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session_state.h"

// Of all samples of one baseline.
#define SAMPLE_BYTES_MAX (INT64_C(256) << 20)

// A baseline of the file.
struct kept {
    int64_t id;
    int64_t bytes; // of its samples
    char name[QUERY_KEY_SIZE];
};

static void refuse(struct importing *importing, const char *name, const char *why)
{
    char note[QUERY_KEY_SIZE + ERROR_TEXT_SIZE + 8];
    importing->baselines_refused++;
    if (importing->baseline_note[0])
        return;
    (void)snprintf(note, sizeof note, "%s: %s", name, why);
    (void)text_escape(importing->baseline_note, sizeof importing->baseline_note, note,
                      strlen(note));
}

// ---- Which there are --------------------------------------------------------------------

// Copies the name; empty where it is not a valid one.
static void take_name(struct kept *kept, sqlite3_stmt *row)
{
    struct query query = {.kind = QUERY_BASELINE_DELETE};
    struct error err;
    const char *name = (const char *)sqlite3_column_text(row, 1);
    const size_t size = (size_t)sqlite3_column_bytes(row, 1);
    kept->name[0] = '\0';
    if (!name || size >= sizeof query.baseline.name || strlen(name) != size)
        return;
    memcpy(query.baseline.name, name, size);
    if (query_check(&query, &err) == STATUS_OK)
        memcpy(kept->name, query.baseline.name, sizeof kept->name);
}

// Reads the baseline after `*kept`; id 0: there is none.
static enum status next_kept(struct importing *importing, struct kept *kept, struct error *err)
{
    sqlite3 *db = importing->from->db;
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        db, &row,
        "SELECT b.id, b.name, (SELECT coalesce(sum(length(s.samples)), 0) FROM baseline_sample s"
        " WHERE s.baseline = b.id) FROM baseline b WHERE b.id > ? ORDER BY b.id LIMIT 1",
        false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, kept->id);
    const int rc = sqlite3_step(row);
    kept->id = 0;
    if (rc == SQLITE_ROW) {
        kept->id = sqlite3_column_int64(row, 0);
        kept->bytes = sqlite3_column_int64(row, 2);
        take_name(kept, row);
    } else if (rc != SQLITE_DONE) {
        status = database_error(db, "store", err);
    }
    (void)sqlite3_finalize(row);
    return status;
}

// ---- What is here already ---------------------------------------------------------------

enum here { HERE_NONE, HERE_SAME, HERE_OTHER };

static enum status look_here(struct importing *importing, const struct baseline *baseline,
                             enum here *here, struct error *err)
{
    sqlite3 *db = importing->store->db;
    sqlite3_stmt *row = NULL;
    enum status status =
        database_prepare(db, &row,
                         "SELECT created_ns = ?2 AND since_ns = ?3 AND until_ns = ?4"
                         " AND filter = ?5 FROM baseline WHERE name = ?1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(row, 1, baseline->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(row, 2, baseline->created_ns);
    (void)sqlite3_bind_int64(row, 3, baseline->since_ns);
    (void)sqlite3_bind_int64(row, 4, baseline->until_ns);
    (void)sqlite3_bind_text(row, 5, baseline->filter, -1, SQLITE_STATIC);
    const int rc = sqlite3_step(row);
    *here = rc != SQLITE_ROW ? HERE_NONE : sqlite3_column_int(row, 0) ? HERE_SAME : HERE_OTHER;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(row);
    return status;
}

// ---- One of them ------------------------------------------------------------------------

// Adds the names of a group of samples: its subject and its device.
static enum status add_names(struct importing *importing, const struct sample_key *key,
                             struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        importing->from->db, &row,
        "SELECT CASE WHEN (?1 = 0 OR import_is_text(a.text, 1, ?3)) AND (?2 = 0 OR"
        " import_is_text(b.text, 1, ?3)) THEN NULL ELSE '" IMPORT_FAULT_NAME "' END, 0, a.text,"
        " b.text FROM (SELECT 1) LEFT JOIN name a ON a.id = ?1 LEFT JOIN name b ON b.id = ?2",
        false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, key->subject);
    (void)sqlite3_bind_int64(row, 2, key->device);
    (void)sqlite3_bind_int(row, 3, IMPORT_NAME_MAX);
    if (sqlite3_step(row) != SQLITE_ROW)
        status = database_error(importing->from->db, "store", err);
    else if (sqlite3_column_type(row, IMPORT_COLUMN_FAULT) != SQLITE_NULL)
        status = error_set(err, STATUS_INVALID, "%s", IMPORT_FAULT_NAME);
    else
        status = import_add(importing, IMPORT_SAMPLED, 0, row, err);
    (void)sqlite3_finalize(row);
    return status;
}

static enum status send(struct importing *importing, struct baseline *baseline, struct error *err)
{
    struct import_batch *batch = &importing->batch;
    enum status status = STATUS_OK;
    batch->kind = RECORD_KIND_RUN;
    batch->baseline = baseline;
    import_rows_close(&importing->rows); // of a baseline that was refused
    for (size_t i = 0; i < samples_count(&baseline->samples) && status == STATUS_OK; i++)
        status = add_names(importing, &samples_at(&baseline->samples, i)->key, err);
    if (status == STATUS_OK)
        status = import_send(importing, err);
    batch->baseline = NULL;
    importing->baselines += status == STATUS_OK;
    return status;
}

static enum status take(struct importing *importing, const struct kept *kept, struct error *err)
{
    struct baseline *baseline = NULL;
    enum here here = HERE_NONE;
    if (!kept->name[0])
        return error_set(err, STATUS_INVALID, "a name that no baseline can have");
    if (kept->bytes > SAMPLE_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "it has more samples than a baseline can");
    enum status status = baseline_load(&baseline, importing->from, kept->name, err);
    if (status == STATUS_OK && (strlen(baseline->filter) > IMPORT_TEXT_MAX ||
                                !text_is_utf8(baseline->filter, strlen(baseline->filter))))
        status = error_set(err, STATUS_INVALID, "its filter is too long, or not UTF-8");
    if (status == STATUS_OK)
        status = look_here(importing, baseline, &here, err);
    importing->baselines_there += here == HERE_SAME;
    if (status == STATUS_OK && here == HERE_OTHER)
        status = error_set(err, STATUS_INVALID,
                           "this store has another of that name (forget that with inferstat"
                           " baseline delete %s, and import again)",
                           kept->name);
    if (status == STATUS_OK && here == HERE_NONE)
        status = send(importing, baseline, err);
    baseline_free(baseline);
    return status;
}

enum status import_send_baselines(struct importing *importing, struct error *err)
{
    struct kept kept = {.id = 0};
    enum status status = next_kept(importing, &kept, err);
    while (status == STATUS_OK && kept.id != 0) {
        status = take(importing, &kept, err);
        if (status == STATUS_INVALID || status == STATUS_CORRUPT) {
            refuse(importing, kept.name[0] ? kept.name : "?", err->text);
            status = STATUS_OK;
        }
        if (status == STATUS_OK)
            status = next_kept(importing, &kept, err);
    }
    return status;
}
