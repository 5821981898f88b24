// Imports the baselines of a file, each in one batch: its samples with their checksums, and the
// names that they refer to.
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session.h"

// Of all samples of one baseline.
#define SAMPLE_BYTES_MAX (INT64_C(256) << 20)

// Copies the name; empty where it is not a valid one.
static void copy_name(char name[QUERY_KEY_SIZE], sqlite3_stmt *row)
{
    struct query query = {.kind = QUERY_BASELINE_DELETE};
    struct error err;
    const char *text = (const char *)sqlite3_column_text(row, 1);
    const size_t size = (size_t)sqlite3_column_bytes(row, 1);
    name[0] = '\0';
    if (!text || size >= sizeof query.baseline.name || strlen(text) != size)
        return;
    memcpy(query.baseline.name, text, size);
    if (query_check(&query, &err) == STATUS_OK)
        memcpy(name, query.baseline.name, QUERY_KEY_SIZE);
}

enum here { HERE_NONE, HERE_OTHER, HERE_SAME };

static enum status look_here(struct importing *importing, const struct baseline *baseline,
                             int64_t *here, struct error *err)
{
    return database_integerf(importing->store->db, here, err,
                             "SELECT 1 + (created_ns = %lld AND since_ns = %lld AND until_ns = %lld"
                             " AND filter = %Q) FROM baseline WHERE name = %Q",
                             (long long)baseline->created_ns, (long long)baseline->since_ns,
                             (long long)baseline->until_ns, baseline->filter, baseline->name);
}

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

// `bytes` is the size of its samples.
static enum status import_baseline(struct importing *importing, const char *name, int64_t bytes,
                                   struct error *err)
{
    struct baseline *baseline = NULL;
    int64_t here = HERE_NONE;
    if (!name[0])
        return error_set(err, STATUS_INVALID, "a name that no baseline can have");
    if (bytes > SAMPLE_BYTES_MAX)
        return error_set(err, STATUS_INVALID, "it has more samples than a baseline can");
    enum status status = baseline_load(&baseline, importing->from, name, err);
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
                           name);
    if (status == STATUS_OK && here == HERE_NONE)
        status = send(importing, baseline, err);
    baseline_free(baseline);
    return status;
}

enum status import_send_baselines(struct importing *importing, struct error *err)
{
    sqlite3_stmt *row = NULL;
    int64_t id = 0;
    enum status status = database_prepare(
        importing->from->db, &row,
        "SELECT b.id, b.name, (SELECT coalesce(sum(length(s.samples)), 0) FROM baseline_sample s"
        " WHERE s.baseline = b.id) FROM baseline b WHERE b.id > ? ORDER BY b.id LIMIT 1",
        false, err);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && sqlite3_bind_int64(row, 1, id) == SQLITE_OK &&
           (rc = sqlite3_step(row)) == SQLITE_ROW) {
        char name[QUERY_KEY_SIZE];
        id = sqlite3_column_int64(row, 0);
        copy_name(name, row);
        const int64_t bytes = sqlite3_column_int64(row, 2);
        (void)sqlite3_reset(row);
        status = import_baseline(importing, name, bytes, err);
        if (status == STATUS_INVALID || status == STATUS_CORRUPT) {
            importing->baselines_refused++;
            import_note(importing->baseline_note, name[0] ? name : "?", err->text);
            status = STATUS_OK;
        }
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_finalize(row);
    return status;
}
