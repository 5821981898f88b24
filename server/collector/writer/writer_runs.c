#include "server/collector/writer/writer_runs.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "server/collector/threads/limits.h"
#include "server/collector/writer/writer_runs_inside.h"

// Run ids are random UUIDs: their first bytes serve as a hash.
static unsigned bucket_of(const unsigned char uuid[MESSAGE_RUN_SIZE])
{
    return (uuid[0] | (unsigned)uuid[1] << 8) % RUNS_BUCKETS;
}

struct run *runs_next(const struct runs *runs, const struct run *run)
{
    if (run && run->next_in_bucket)
        return run->next_in_bucket;
    for (unsigned i = run ? bucket_of(run->uuid) + 1 : 0; i < RUNS_BUCKETS; i++)
        if (runs->buckets[i])
            return runs->buckets[i];
    return NULL;
}

enum status runs_new(struct runs **out, sqlite3 *db, struct error *err)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return error_no_memory(err, "writer");
    enum status status = statements_init(&runs->statements, db, err);
    if (status == STATUS_OK)
        status = runs_refresh_ids(runs, err);
    runs->names_max = LIMITS_NAMES;
    if (status != STATUS_OK) {
        runs_free(runs);
        return status;
    }
    *out = runs;
    return STATUS_OK;
}

enum status runs_refresh_ids(struct runs *runs, struct error *err)
{
    runs->has_counted_names = false;
    return database_integerf(runs->statements.db, &runs->last_id, err,
                             "SELECT max(coalesce(max(run), 0), %lld) FROM run",
                             (long long)runs->last_id);
}

void runs_limit_names(struct runs *runs, uint32_t count, struct quota *quota)
{
    runs->names_max = count;
    runs->quota = quota;
}

void runs_forget(struct runs *runs)
{
    runs->has_counted_names = false;
    runs->other = 0;
    for (size_t i = 0; i < RUNS_BUCKETS; i++) {
        while (runs->buckets[i]) {
            struct run *run = runs->buckets[i];
            runs->buckets[i] = run->next_in_bucket;
            run_free(run);
        }
    }
}

void runs_free(struct runs *runs)
{
    if (!runs)
        return;
    runs_forget(runs);
    statements_deinit(&runs->statements);
    free(runs);
}

void runs_evict(struct runs *runs, uint64_t before_ns)
{
    for (size_t i = 0; i < RUNS_BUCKETS; i++) {
        struct run **link = &runs->buckets[i];
        while (*link) {
            struct run *run = *link;
            if (run->delivery.end == RECORD_RUN_END_OPEN || run->heard_at_ns >= before_ns) {
                link = &run->next_in_bucket;
                continue;
            }
            *link = run->next_in_bucket;
            run_free(run);
        }
    }
}

void runs_were_removed(struct runs *runs)
{
    runs->names_removed = true;
    runs_evict(runs, UINT64_MAX);
}

uint32_t runs_open_count(const struct runs *runs)
{
    uint32_t count = 0;
    for (const struct run *run = NULL; (run = runs_next(runs, run));)
        count += run->delivery.end == RECORD_RUN_END_OPEN;
    return count;
}

int64_t runs_last_id(const struct runs *runs)
{
    return runs->last_id;
}

void runs_insert(struct runs *runs, struct run *run)
{
    struct run **bucket = &runs->buckets[bucket_of(run->uuid)];
    run->next_in_bucket = *bucket;
    *bucket = run;
    if (run->id > runs->last_id)
        runs->last_id = run->id;
}

enum status runs_find(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                      struct run **out, struct error *err)
{
    *out = NULL;
    for (struct run *run = runs->buckets[bucket_of(uuid)]; run; run = run->next_in_bucket) {
        if (memcmp(run->uuid, uuid, MESSAGE_RUN_SIZE) == 0) {
            *out = run;
            return STATUS_OK;
        }
    }
    bool is_gone = false;
    enum status status = runs_has_tombstone(runs, uuid, &is_gone, err);
    if (status == STATUS_OK && !is_gone)
        status = runs_read(runs, uuid, out, err);
    if (status == STATUS_OK && *out)
        runs_insert(runs, *out);
    return status;
}

size_t runs_size(const struct runs *runs, size_t *complete_count)
{
    size_t size = 0;
    *complete_count = 0;
    for (const struct run *run = NULL; (run = runs_next(runs, run));) {
        size += run_size(run);
        *complete_count += run->complete;
    }
    return size;
}

// Runs of at most `fair_size` fit in the limit together, so small runs are never trimmed
// because of large ones.
void runs_trim(struct runs *runs, size_t limit)
{
    size_t count;
    if (runs_size(runs, &count) <= limit || count == 0)
        return;
    const size_t fair_size = limit / count;
    for (struct run *run = NULL; (run = runs_next(runs, run));)
        if (run->complete && !run_is_dirty(run) && run_size(run) > fair_size)
            run_drop_details(run);
}

enum status runs_load_open(struct runs *runs, uint64_t now_ns, struct error *err)
{
    struct statements *statements = &runs->statements;
    sqlite3_stmt *row = statements->list[STATEMENT_RUN_OPEN];
    enum status status = STATUS_OK, loaded = STATUS_OK;
    while (statement_row(statements, STATEMENT_RUN_OPEN, &status, err)) {
        unsigned char uuid[MESSAGE_RUN_SIZE];
        struct run *run = NULL;
        const char *text = (const char *)sqlite3_column_text(row, 0);
        if (loaded != STATUS_OK || !text || !text_to_uuid(uuid, text))
            continue;
        loaded = runs_find(runs, uuid, &run, err);
        if (loaded == STATUS_OK && run)
            run->heard_at_ns = now_ns;
    }
    return status == STATUS_OK ? loaded : status;
}

enum status runs_reload(struct runs *runs, uint64_t now_ns, struct error *err)
{
    struct run *before[RUNS_BUCKETS];
    memcpy(before, runs->buckets, sizeof before);
    memset(runs->buckets, 0, sizeof runs->buckets);
    runs_forget(runs); // the counts of names, and ids of names
    enum status status = runs_load_open(runs, now_ns, err);
    for (size_t i = 0; i < RUNS_BUCKETS; i++) {
        while (before[i]) {
            struct run *old = before[i], *run = NULL;
            before[i] = old->next_in_bucket;
            if (old->delivery.greeted && status == STATUS_OK)
                status = runs_find(runs, old->uuid, &run, err);
            if (run) { // else its Hello was rolled back
                run->delivery.greeted = true;
                run->delivery.replayed = old->delivery.replayed;
                run->link = old->link;
            }
            run_free(old);
        }
    }
    return status;
}

bool runs_are_dirty(const struct runs *runs)
{
    for (const struct run *run = NULL; (run = runs_next(runs, run));)
        if (run_is_dirty(run))
            return true;
    return false;
}

enum status runs_flush(struct runs *runs, struct error *err)
{
    enum status status = STATUS_OK;
    for (struct run *run = NULL; status == STATUS_OK && (run = runs_next(runs, run));)
        if (run_is_dirty(run))
            status = runs_save(runs, run, err);
    return status;
}
