#include "common/store/sealed_loss.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/fingerprint.h"
#include "common/store/seal_columns.h"
#include "common/store/sealed_runs.h"

static enum status read_runs(sqlite3 *db, const struct sealed_segment *segment,
                             struct sealed_runs *out, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    *out = (struct sealed_runs){NULL, 0};
    enum status status =
        database_prepare(db, &stmt, "SELECT runs FROM main.sealed WHERE id = ?", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, segment->id);
    const int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    else if (rc == SQLITE_ROW)
        status = sealed_runs_read(out, segment, sqlite3_column_blob(stmt, 0),
                                  (size_t)sqlite3_column_bytes(stmt, 0));
    else
        status = STATUS_CORRUPT;
    if (status == STATUS_NOMEM)
        (void)error_set(err, status, "store: out of memory");
    else if (status == STATUS_CORRUPT)
        (void)sealed_is_damaged(segment, "whose they are is not known", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status tell_ledgers(sqlite3 *db, const struct sealed_segment *segment,
                                const struct sealed_runs *runs, enum sealed_loss loss,
                                struct error *err)
{
    static const char *const texts[] = {
        [SEALED_EXPIRED] = "UPDATE ledger SET expired = expired + ?3, gone_sum ="
                           " fingerprint_add(gone_sum, ?4) WHERE run = ?1 AND kind = ?2",
        [SEALED_CLEARED] = "UPDATE ledger SET cleared = cleared + ?3, gone_sum ="
                           " fingerprint_add(gone_sum, ?4) WHERE run = ?1 AND kind = ?2",
    };
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(db, &stmt, texts[loss], false, err);
    for (uint32_t i = 0; i < runs->count && status == STATUS_OK; i++) {
        (void)sqlite3_bind_int64(stmt, 1, runs->list[i].run);
        (void)sqlite3_bind_int64(stmt, 2, segment->kind);
        (void)sqlite3_bind_int64(stmt, 3, runs->list[i].rows);
        (void)sqlite3_bind_int64(stmt, 4, fingerprint_signed(runs->list[i].sum));
        status = database_run(db, stmt, err);
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status sealed_lose(sqlite3 *db, const struct sealed_segment *segment, enum sealed_loss loss,
                        bool whatever, int64_t *rows, struct error *err)
{
    struct sealed_runs runs;
    enum status status = read_runs(db, segment, &runs, err);
    *rows = 0;
    for (uint32_t i = 0; i < runs.count; i++)
        *rows += runs.list[i].rows;
    if (status == STATUS_CORRUPT && whatever)
        status = STATUS_OK;
    if (status == STATUS_OK)
        status = tell_ledgers(db, segment, &runs, loss, err);
    sealed_runs_deinit(&runs);
    return status == STATUS_OK ? sealed_remove(db, segment, err) : status;
}

// ---- Damage ---------------------------------------------------------------------------

static enum status read_columns(const struct sealed_segment *segment, struct seal_reader *reader,
                                struct error *err)
{
    const char *names[SEAL_COLUMNS_MAX];
    const unsigned count = seal_columns((enum record_kind)segment->kind, names);
    struct seal_column column;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        const int place = seal_reader_find(reader, names[i]);
        if (place >= 0)
            status = seal_reader_column(reader, (unsigned)place, &column);
    }
    if (status == STATUS_NOMEM)
        return error_set(err, status, "store: out of memory");
    return status == STATUS_OK ? status
                               : sealed_is_damaged(segment, "their bytes make no sense", err);
}

enum status sealed_check(sqlite3 *db, const struct sealed_segment *segment, struct error *err)
{
    struct seal_reader *reader = NULL;
    enum status status = sealed_load(db, segment, &reader, err);
    if (status == STATUS_OK && (segment->kind < 0 || segment->kind >= RECORD_KIND_COUNT ||
                                !seal_has_kind((enum record_kind)segment->kind)))
        status = sealed_is_damaged(segment, "they are of no kind", err);
    if (status == STATUS_OK)
        status = read_columns(segment, reader, err);
    seal_reader_free(reader);
    return status;
}
