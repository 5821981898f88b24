#include "server/collector/writer_runs.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/text.h"
#include "common/store/database.h"
#include "common/store/schema.h"
#include "server/collector/limits.h"
#include "server/collector/writer_statements.h"

enum { BUCKETS = 1024 };

struct runs {
    struct statements statements;
    struct run *buckets[BUCKETS];
    int64_t last_id;
    int64_t last_name;  // highest id of a name: so many are in the store
    uint32_t names_max; // of one run
    int64_t store_names_max;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "writer: out of memory");
}

// ---- The cache -----------------------------------------------------------------------

// Run identities are random: their first bytes are as good as a hash.
static struct run **bucket_of(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE])
{
    return &runs->buckets[(uuid[0] | (unsigned)uuid[1] << 8) % BUCKETS];
}

enum status runs_new(struct runs **out, sqlite3 *db, struct error *err)
{
    struct runs *runs = calloc(1, sizeof *runs);
    if (!runs)
        return out_of_memory(err);
    enum status status = statements_init(&runs->statements, db, err);
    if (status == STATUS_OK)
        status = runs_look_again(runs, err);
    runs_limit_names(runs, LIMITS_NAMES, LIMITS_STORE_NAMES);
    if (status != STATUS_OK) {
        runs_free(runs);
        return status;
    }
    *out = runs;
    return STATUS_OK;
}

enum status runs_look_again(struct runs *runs, struct error *err)
{
    sqlite3 *db = runs->statements.db;
    enum status status = database_integer(db, "SELECT max(run) FROM run", &runs->last_id, err);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT max(id) FROM name", &runs->last_name, err);
    return status;
}

void runs_limit_names(struct runs *runs, uint32_t count, int64_t in_store)
{
    runs->names_max = count;
    runs->store_names_max = in_store;
}

bool runs_names_are_full(const struct runs *runs)
{
    return runs->last_name >= runs->store_names_max;
}

void runs_forget(struct runs *runs)
{
    for (size_t i = 0; i < BUCKETS; i++) {
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
    for (size_t i = 0; i < BUCKETS; i++) {
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

void runs_each(struct runs *runs, void (*take)(void *context, struct run *run), void *context)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct run *run = runs->buckets[i]; run; run = run->next_in_bucket)
            take(context, run);
}

uint32_t runs_open_count(const struct runs *runs)
{
    uint32_t count = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct run *run = runs->buckets[i]; run; run = run->next_in_bucket)
            count += run->delivery.end == RECORD_RUN_END_OPEN;
    return count;
}

int64_t runs_last_id(const struct runs *runs)
{
    return runs->last_id;
}

// ---- Reading from the store ------------------------------------------------------------

static char *copy_text(const unsigned char *text)
{
    return text ? strdup((const char *)text) : NULL;
}

static enum status read_range(struct runs *runs, const struct run *run, size_t place,
                              struct error *err)
{
    struct statements *statements = &runs->statements;
    struct run_stream *stream = &run->streams[place];
    sqlite3_stmt *row = statements->list[STATEMENT_RANGE_LAST];
    statement_int(statements, STATEMENT_RANGE_LAST, 1, run->id);
    statement_int(statements, STATEMENT_RANGE_LAST, 2, run->delivery.lanes[place].stream);
    enum status status = STATUS_OK;
    while (statement_row(statements, STATEMENT_RANGE_LAST, &status, err)) {
        stream->range = (struct run_range){
            .first = (uint64_t)sqlite3_column_int64(row, 0),
            .last = (uint64_t)sqlite3_column_int64(row, 1),
            .state = sqlite3_column_int(row, 2),
            .reason = (enum delivery_reason)sqlite3_column_int(row, 3),
            .detail = copy_text(sqlite3_column_text(row, 4)),
            .since_ns = sqlite3_column_int64(row, 5),
            .until_ns = sqlite3_column_int64(row, 6),
        };
    }
    return status;
}

static enum status read_streams(struct runs *runs, struct run *run, struct error *err)
{
    struct statements *statements = &runs->statements;
    sqlite3_stmt *row = statements->list[STATEMENT_STREAMS];
    statement_int(statements, STATEMENT_STREAMS, 1, run->id);
    enum status status = STATUS_OK, added = STATUS_OK;
    while (statement_row(statements, STATEMENT_STREAMS, &status, err)) {
        const struct delivery_lane lane = {
            .stream = (uint32_t)sqlite3_column_int64(row, 0),
            .next = (uint64_t)sqlite3_column_int64(row, 1),
            .produced = (uint64_t)sqlite3_column_int64(row, 2),
            .unnumbered = (uint64_t)sqlite3_column_int64(row, 3),
        };
        if (added == STATUS_OK)
            added = delivery_run_restore(&run->delivery, &lane);
        if (added == STATUS_OK)
            added = run_make_streams(run, err);
        if (added != STATUS_OK)
            continue;
        struct run_stream *stream = &run->streams[run->stream_count - 1];
        stream->activity = copy_text(sqlite3_column_text(row, 4));
        stream->activity_since_ns = sqlite3_column_int64(row, 5);
    }
    if (status == STATUS_OK && added != STATUS_OK)
        status = out_of_memory(err);
    for (size_t i = 0; i < run->stream_count && status == STATUS_OK; i++)
        status = read_range(runs, run, i, err);
    return status;
}

static enum status read_names(struct runs *runs, struct run *run, struct error *err)
{
    struct statements *statements = &runs->statements;
    sqlite3_stmt *row = statements->list[STATEMENT_RUN_NAMES];
    statement_int(statements, STATEMENT_RUN_NAMES, 1, run->id);
    enum status status = STATUS_OK, added = STATUS_OK;
    while (statement_row(statements, STATEMENT_RUN_NAMES, &status, err))
        if (added == STATUS_OK)
            added = run_append_name(run, sqlite3_column_int64(row, 1));
    return status == STATUS_OK && added != STATUS_OK ? out_of_memory(err) : status;
}

// Takes the row of STATEMENT_RUN_FIND.
static struct run *read_run(sqlite3_stmt *row, const unsigned char uuid[MESSAGE_RUN_SIZE])
{
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    memcpy(run->uuid, uuid, MESSAGE_RUN_SIZE);
    run->id = sqlite3_column_int64(row, 0);
    run->delivery.end = (enum record_run_end)sqlite3_column_int(row, 1);
    run->delivery.ended_ns = sqlite3_column_int64(row, 2);
    run->heard_ns = sqlite3_column_int64(row, 3);
    run->flushed_heard_ns = run->heard_ns;
    run->stored = sqlite3_column_int64(row, 4);
    run->delivery.duplicates = sqlite3_column_int64(row, 5);
    run->refused = sqlite3_column_int64(row, 6);
    run->clock_suspects = sqlite3_column_int64(row, 7);
    run->unknown_columns = sqlite3_column_int64(row, 8);
    run->activity = copy_text(sqlite3_column_text(row, 9));
    run->device_count = sqlite3_column_int64(row, 10);
    run->clock_offset_ns = sqlite3_column_int64(row, 11);
    run->clock_error_ns = sqlite3_column_int64(row, 12);
    run->produced = (uint64_t)sqlite3_column_int64(row, 14);
    const char *key = (const char *)sqlite3_column_text(row, 13);
    run->has_key = key != NULL;
    // A key that is none is nobody's: the run goes on with no one.
    if (key && !wire_key_parse(run->key, key))
        memset(run->key, 0, sizeof run->key);
    return run;
}

static enum status read_from_store(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                                   struct run **out, struct error *err)
{
    struct statements *statements = &runs->statements;
    char text[37];
    text_from_uuid(text, uuid);
    statement_text(statements, STATEMENT_RUN_FIND, 1, text, strlen(text));
    enum status status = STATUS_OK;
    struct run *run = NULL;
    bool found = false;
    while (statement_row(statements, STATEMENT_RUN_FIND, &status, err)) {
        if (found)
            continue; // a UUID is unique
        found = true;
        run = read_run(statements->list[STATEMENT_RUN_FIND], uuid);
    }
    if (status == STATUS_OK && found && !run)
        status = out_of_memory(err);
    if (status != STATUS_OK) {
        run_free(run);
        return status;
    }
    *out = run;
    return STATUS_OK;
}

// Reads what a run that was let go of, or was never asked for, has in the store.
static enum status complete(struct runs *runs, struct run *run, struct error *err)
{
    const uint32_t told = run->names_told;
    if (run->complete)
        return STATUS_OK;
    enum status status = read_streams(runs, run, err);
    if (status == STATUS_OK)
        status = read_names(runs, run, err);
    // Names that were told and not kept are known all the same.
    while (status == STATUS_OK && run->delivery.names_known < told)
        if (run_append_name(run, 0) != STATUS_OK)
            status = out_of_memory(err);
    if (status != STATUS_OK) {
        run_lighten(run);
        run->names_told = told;
        return status;
    }
    run->complete = true;
    return STATUS_OK;
}

static void insert_run(struct runs *runs, struct run *run)
{
    struct run **bucket = bucket_of(runs, run->uuid);
    run->next_in_bucket = *bucket;
    *bucket = run;
    if (run->id > runs->last_id)
        runs->last_id = run->id;
}

// Finds a run with or without its streams and names.
static enum status look_up(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                           struct run **out, struct error *err)
{
    *out = NULL;
    for (struct run *run = *bucket_of(runs, uuid); run; run = run->next_in_bucket) {
        if (memcmp(run->uuid, uuid, MESSAGE_RUN_SIZE) == 0) {
            *out = run;
            return STATUS_OK;
        }
    }
    enum status status = read_from_store(runs, uuid, out, err);
    if (status == STATUS_OK && *out)
        insert_run(runs, *out);
    return status;
}

enum status runs_find(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                      struct run **out, struct error *err)
{
    enum status status = look_up(runs, uuid, out, err);
    if (status == STATUS_OK && *out)
        status = complete(runs, *out, err);
    if (status != STATUS_OK)
        *out = NULL;
    return status;
}

size_t runs_size(const struct runs *runs, size_t *complete_count)
{
    size_t size = 0;
    *complete_count = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (const struct run *run = runs->buckets[i]; run; run = run->next_in_bucket) {
            size += run_size(run);
            *complete_count += run->complete;
        }
    }
    return size;
}

// Those at or below the share together fit in the limit: so the small are never let
// go of because of the large.
void runs_trim(struct runs *runs, size_t limit)
{
    size_t count;
    if (runs_size(runs, &count) <= limit || count == 0)
        return;
    const size_t share = limit / count;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct run *run = runs->buckets[i]; run; run = run->next_in_bucket)
            if (run->complete && !run_is_dirty(run) && run_size(run) > share)
                run_lighten(run);
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
        loaded = look_up(runs, uuid, &run, err);
        if (loaded == STATUS_OK && run)
            run->heard_at_ns = now_ns;
    }
    return status == STATUS_OK ? loaded : status;
}

// A run that has said Hello, whatever of it is in the store.
struct greeting {
    unsigned char uuid[MESSAGE_RUN_SIZE];
    bool replayed;
};

static enum status greet_again(struct runs *runs, const struct greeting *greetings, size_t count,
                               uint64_t now_ns, struct error *err)
{
    enum status status = runs_load_open(runs, now_ns, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct run *run = NULL; // none: its Hello was rolled back
        status = look_up(runs, greetings[i].uuid, &run, err);
        if (run) {
            run->delivery.greeted = true;
            run->delivery.replayed = greetings[i].replayed;
        }
    }
    return status;
}

enum status runs_reload(struct runs *runs, uint64_t now_ns, struct error *err)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct run *run = runs->buckets[i]; run; run = run->next_in_bucket)
            count += run->delivery.greeted;
    struct greeting *greetings = calloc(count ? count : 1, sizeof *greetings);
    for (size_t i = 0; i < BUCKETS && greetings; i++) {
        for (const struct run *run = runs->buckets[i]; run; run = run->next_in_bucket) {
            if (!run->delivery.greeted)
                continue;
            memcpy(greetings[used].uuid, run->uuid, MESSAGE_RUN_SIZE);
            greetings[used++].replayed = run->delivery.replayed;
        }
    }
    runs_forget(runs);
    enum status status = greet_again(runs, greetings, used, now_ns, err);
    free(greetings);
    return status;
}

// ---- Adding ------------------------------------------------------------------------------

static enum status find_name(struct runs *runs, const char *text, size_t size, int64_t *id,
                             struct error *err)
{
    struct statements *statements = &runs->statements;
    enum status status = STATUS_OK;
    *id = 0;
    statement_text(statements, STATEMENT_NAME_FIND, 1, text, size);
    while (statement_row(statements, STATEMENT_NAME_FIND, &status, err))
        *id = sqlite3_column_int64(statements->list[STATEMENT_NAME_FIND], 0);
    return status;
}

enum status runs_know_name(struct runs *runs, struct wire_bytes name, bool *known,
                           struct error *err)
{
    int64_t id;
    enum status status = find_name(runs, name.bytes, name.size, &id, err);
    *known = id != 0;
    return status;
}

static enum status intern(struct runs *runs, const char *text, size_t size, int64_t *id,
                          struct error *err)
{
    struct statements *statements = &runs->statements;
    statement_text(statements, STATEMENT_NAME_ADD, 1, text, size);
    enum status status = statement_run(statements, STATEMENT_NAME_ADD, err);
    if (status == STATUS_OK)
        status = find_name(runs, text, size, id, err);
    if (status == STATUS_OK && *id > runs->last_name)
        runs->last_name = *id;
    return status;
}

static void bind_optional(struct statements *statements, enum statement which, int place,
                          struct wire_bytes text)
{
    if (text.size)
        statement_text(statements, which, place, text.bytes, text.size);
    else
        statement_null(statements, which, place);
}

static void bind_required(struct statements *statements, int place, struct wire_bytes text)
{
    statement_text(statements, STATEMENT_RUN_ADD, place, text.bytes, text.size);
}

static void bind_hello(struct statements *statements, const struct message_hello *hello,
                       const char *uuid, int64_t host, int64_t received_ns)
{
    statement_int(statements, STATEMENT_RUN_ADD, 1, hello->started_ns);
    statement_int(statements, STATEMENT_RUN_ADD, 2, received_ns);
    statement_int(statements, STATEMENT_RUN_ADD, 3, received_ns);
    statement_text(statements, STATEMENT_RUN_ADD, 4, uuid, strlen(uuid));
    statement_int(statements, STATEMENT_RUN_ADD, 5, host);
    statement_int(statements, STATEMENT_RUN_ADD, 6, hello->pid);
    bind_required(statements, 7, hello->worker_version);
    statement_int(statements, STATEMENT_RUN_ADD, 8, hello->protocol);
    bind_required(statements, 9, hello->os);
    bind_required(statements, 10, hello->kernel);
    bind_required(statements, 11, hello->cpu);
    statement_int(statements, STATEMENT_RUN_ADD, 12, hello->cpu_count);
    bind_optional(statements, STATEMENT_RUN_ADD, 13, hello->cpu_governor);
    statement_int(statements, STATEMENT_RUN_ADD, 14, hello->host_memory_bytes);
    bind_optional(statements, STATEMENT_RUN_ADD, 15, hello->container);
    statement_int(statements, STATEMENT_RUN_ADD, 16, hello->device_count);
    bind_optional(statements, STATEMENT_RUN_ADD, 17, hello->driver);
    bind_optional(statements, STATEMENT_RUN_ADD, 18, hello->cuda);
}

static void bind_key(struct statements *statements, enum statement which, int place, char *text,
                     const unsigned char *key)
{
    if (key)
        statement_text(statements, which, place, wire_key_text(text, key), WIRE_KEY_TEXT_SIZE - 1);
    else
        statement_null(statements, which, place);
}

enum status runs_add(struct runs *runs, const struct message_hello *hello, const unsigned char *key,
                     int64_t received_ns, struct run **out, struct error *err)
{
    struct statements *statements = &runs->statements;
    int64_t host = 0;
    enum status status = intern(runs, hello->host.bytes, hello->host.size, &host, err);
    if (status != STATUS_OK)
        return status;
    char uuid[37], text[WIRE_KEY_TEXT_SIZE];
    text_from_uuid(uuid, hello->run);
    bind_hello(statements, hello, uuid, host, received_ns);
    bind_key(statements, STATEMENT_RUN_ADD, 19, text, key);
    status = statement_run(statements, STATEMENT_RUN_ADD, err);
    if (status != STATUS_OK)
        return status;
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return out_of_memory(err);
    memcpy(run->uuid, hello->run, MESSAGE_RUN_SIZE);
    run->id = sqlite3_last_insert_rowid(statements->db);
    run->heard_ns = received_ns;
    run->flushed_heard_ns = received_ns;
    run->device_count = hello->device_count;
    run->complete = true;
    run->has_key = key != NULL;
    if (key)
        memcpy(run->key, key, sizeof run->key);
    insert_run(runs, run);
    *out = run;
    return STATUS_OK;
}

enum status runs_count_unfinished(struct runs *runs, const unsigned char *key, int64_t since_ns,
                                  int64_t *count, struct error *err)
{
    struct statements *statements = &runs->statements;
    char text[WIRE_KEY_TEXT_SIZE];
    enum status status = STATUS_OK;
    bind_key(statements, STATEMENT_RUN_UNFINISHED, 1, text, key);
    statement_int(statements, STATEMENT_RUN_UNFINISHED, 2, since_ns);
    while (statement_row(statements, STATEMENT_RUN_UNFINISHED, &status, err))
        *count = sqlite3_column_int64(statements->list[STATEMENT_RUN_UNFINISHED], 0);
    return status;
}

enum status runs_describe(struct runs *runs, struct run *run, const struct message_hello *hello,
                          struct error *err)
{
    struct statements *statements = &runs->statements;
    run_count_devices(run, hello->device_count);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 1, hello->cpu_governor);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 2, hello->container);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 3, hello->driver);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 4, hello->cuda);
    statement_int(statements, STATEMENT_RUN_DESCRIBE, 5, run->id);
    return statement_run(statements, STATEMENT_RUN_DESCRIBE, err);
}

// The store's id of a name of the run, 0 where it is beyond a limit.  Those that are
// kept are the first without a hole.
static enum status keep_name(struct runs *runs, const struct run *run, struct wire_bytes text,
                             int64_t *id, struct error *err)
{
    *id = 0;
    if (run->names_kept < run->delivery.names_known || run->names_kept >= runs->names_max)
        return STATUS_OK;
    if (runs_names_are_full(runs))
        return find_name(runs, text.bytes, text.size, id, err);
    return intern(runs, text.bytes, text.size, id, err);
}

static enum status add_name(struct runs *runs, struct run *run, struct wire_bytes text,
                            struct error *err)
{
    struct statements *statements = &runs->statements;
    int64_t name = 0;
    enum status status = keep_name(runs, run, text, &name, err);
    if (status == STATUS_OK && name != 0) {
        statement_int(statements, STATEMENT_RUN_NAME_ADD, 1, run->id);
        statement_int(statements, STATEMENT_RUN_NAME_ADD, 2,
                      (int64_t)run->delivery.names_known + 1);
        statement_int(statements, STATEMENT_RUN_NAME_ADD, 3, name);
        status = statement_run(statements, STATEMENT_RUN_NAME_ADD, err);
    }
    if (status == STATUS_OK && run_append_name(run, name) != STATUS_OK)
        status = out_of_memory(err);
    return status;
}

enum status run_add_names(struct runs *runs, struct run *run, uint32_t first,
                          const struct wire_bytes *names, size_t count, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t number = first + (uint64_t)i;
        if (number == (uint64_t)run->delivery.names_known + 1 && number <= MESSAGE_NAMES_MAX)
            status = add_name(runs, run, names[i], err);
    }
    return status;
}

// ---- Ranges ----------------------------------------------------------------------------------

static enum status save_range(struct runs *runs, const struct run *run, size_t place,
                              struct error *err)
{
    struct statements *statements = &runs->statements;
    struct run_range *range = &run->streams[place].range;
    if (!range->dirty)
        return STATUS_OK;
    statement_int(statements, STATEMENT_RANGE_SAVE, 1, run->id);
    statement_int(statements, STATEMENT_RANGE_SAVE, 2, run->delivery.lanes[place].stream);
    statement_int(statements, STATEMENT_RANGE_SAVE, 3, (int64_t)range->first);
    statement_int(statements, STATEMENT_RANGE_SAVE, 4, (int64_t)range->last);
    statement_int(statements, STATEMENT_RANGE_SAVE, 5, range->state);
    for (int column = 6; column <= 7; column++)
        statement_null(statements, STATEMENT_RANGE_SAVE, column);
    if (range->state == SCHEMA_RANGE_DROPPED)
        statement_int(statements, STATEMENT_RANGE_SAVE, 6, (int64_t)range->reason);
    if (range->detail)
        statement_text(statements, STATEMENT_RANGE_SAVE, 7, range->detail, strlen(range->detail));
    statement_int(statements, STATEMENT_RANGE_SAVE, 8, range->since_ns);
    statement_int(statements, STATEMENT_RANGE_SAVE, 9, range->until_ns);
    range->dirty = false;
    return statement_run(statements, STATEMENT_RANGE_SAVE, err);
}

// Whether what follows is of the same kind as the range, and so extends it.
static bool same_kind(const struct run_range *range, int state, enum delivery_reason reason,
                      const char *detail, size_t size)
{
    if (range->first == 0 || range->state != state)
        return false;
    if (state == SCHEMA_RANGE_STORED)
        return true;
    const char *before = range->detail ? range->detail : "";
    return range->reason == reason && strlen(before) == size &&
           (size == 0 || memcmp(before, detail, size) == 0);
}

static enum status new_range(struct runs *runs, struct run *run, size_t place, int state,
                             const struct delivery_range *range, const char *detail,
                             size_t detail_size, struct error *err)
{
    char *copy = NULL;
    if (detail_size) {
        copy = strndup(detail, detail_size);
        if (!copy)
            return out_of_memory(err);
    }
    struct run_stream *stream = &run->streams[place];
    enum status status = save_range(runs, run, place, err);
    free(stream->range.detail);
    stream->range = (struct run_range){.first = range->first,
                                       .last = range->last,
                                       .state = state,
                                       .reason = range->reason,
                                       .detail = copy,
                                       .since_ns = range->since_ns,
                                       .until_ns = range->until_ns};
    return status;
}

enum status run_record_range(struct runs *runs, struct run *run, size_t place, int state,
                             const struct delivery_range *range, const char *detail,
                             size_t detail_size, struct error *err)
{
    enum status status = STATUS_OK;
    struct run_stream *stream = &run->streams[place];
    if (same_kind(&stream->range, state, range->reason, detail, detail_size)) {
        stream->range.last = range->last;
        if (range->since_ns < stream->range.since_ns)
            stream->range.since_ns = range->since_ns;
        if (range->until_ns > stream->range.until_ns)
            stream->range.until_ns = range->until_ns;
    } else {
        status = new_range(runs, run, place, state, range, detail, detail_size, err);
    }
    stream->range.dirty = true;
    stream->dirty = true;
    run->dirty = true;
    return status;
}

// ---- Writing -----------------------------------------------------------------------------------

static void bind_activity(struct statements *statements, const struct run_stream *stream)
{
    statement_null(statements, STATEMENT_STREAM_SAVE, 6);
    statement_null(statements, STATEMENT_STREAM_SAVE, 7);
    if (!stream->activity)
        return;
    statement_text(statements, STATEMENT_STREAM_SAVE, 6, stream->activity,
                   strlen(stream->activity));
    statement_int(statements, STATEMENT_STREAM_SAVE, 7, stream->activity_since_ns);
}

static enum status save_streams(struct runs *runs, struct run *run, uint64_t *produced,
                                struct error *err)
{
    struct statements *statements = &runs->statements;
    enum status status = STATUS_OK;
    *produced = 0;
    for (size_t i = 0; i < run->stream_count && status == STATUS_OK; i++) {
        struct run_stream *stream = &run->streams[i];
        struct delivery_lane *lane = &run->delivery.lanes[i];
        *produced += lane->produced;
        if (!stream->dirty && !lane->changed)
            continue;
        statement_int(statements, STATEMENT_STREAM_SAVE, 1, run->id);
        statement_int(statements, STATEMENT_STREAM_SAVE, 2, lane->stream);
        statement_int(statements, STATEMENT_STREAM_SAVE, 3, (int64_t)lane->next);
        statement_int(statements, STATEMENT_STREAM_SAVE, 4, (int64_t)lane->produced);
        statement_int(statements, STATEMENT_STREAM_SAVE, 5, (int64_t)lane->unnumbered);
        bind_activity(statements, stream);
        status = statement_run(statements, STATEMENT_STREAM_SAVE, err);
        if (status == STATUS_OK)
            status = save_range(runs, run, i, err);
        stream->dirty = false;
        lane->changed = false;
    }
    return status;
}

static enum status save_ledger(struct runs *runs, struct run *run, struct error *err)
{
    struct statements *statements = &runs->statements;
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        if (run->stored_by_kind[kind] == 0)
            continue;
        statement_int(statements, STATEMENT_LEDGER_ADD, 1, run->id);
        statement_int(statements, STATEMENT_LEDGER_ADD, 2, (int64_t)kind);
        statement_int(statements, STATEMENT_LEDGER_ADD, 3, run->stored_by_kind[kind]);
        status = statement_run(statements, STATEMENT_LEDGER_ADD, err);
        run->stored_by_kind[kind] = 0;
    }
    return status;
}

static void bind_clock(struct statements *statements, const struct run *run)
{
    statement_null(statements, STATEMENT_RUN_UPDATE, 12);
    statement_null(statements, STATEMENT_RUN_UPDATE, 13);
    if (run->clock_error_ns == 0)
        return;
    statement_int(statements, STATEMENT_RUN_UPDATE, 12, run->clock_offset_ns);
    statement_int(statements, STATEMENT_RUN_UPDATE, 13, run->clock_error_ns);
}

static enum status save_run(struct runs *runs, struct run *run, struct error *err)
{
    struct statements *statements = &runs->statements;
    enum status status = run->complete ? save_streams(runs, run, &run->produced, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = save_ledger(runs, run, err);
    if (status != STATUS_OK)
        return status;
    const int64_t values[] = {(int64_t)run->delivery.end,
                              0,
                              run->heard_ns,
                              (int64_t)run->produced,
                              run->stored,
                              run->delivery.duplicates,
                              run->refused,
                              run->clock_suspects,
                              run->unknown_columns};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        statement_int(statements, STATEMENT_RUN_UPDATE, (int)i + 1, values[i]);
    if (run->delivery.ended_ns)
        statement_int(statements, STATEMENT_RUN_UPDATE, 2, run->delivery.ended_ns);
    else
        statement_null(statements, STATEMENT_RUN_UPDATE, 2);
    if (run->activity)
        statement_text(statements, STATEMENT_RUN_UPDATE, 10, run->activity, strlen(run->activity));
    else
        statement_null(statements, STATEMENT_RUN_UPDATE, 10);
    statement_int(statements, STATEMENT_RUN_UPDATE, 11, run->device_count);
    bind_clock(statements, run);
    statement_int(statements, STATEMENT_RUN_UPDATE, 14, run->id);
    status = statement_run(statements, STATEMENT_RUN_UPDATE, err);
    run->flushed_heard_ns = run->heard_ns;
    run->dirty = false;
    run->delivery.changed = false;
    return status;
}

bool runs_are_dirty(const struct runs *runs)
{
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct run *run = runs->buckets[i]; run; run = run->next_in_bucket)
            if (run_is_dirty(run))
                return true;
    return false;
}

enum status runs_flush(struct runs *runs, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct run *run = runs->buckets[i]; run && status == STATUS_OK;
             run = run->next_in_bucket)
            if (run_is_dirty(run))
                status = save_run(runs, run, err);
    return status;
}
