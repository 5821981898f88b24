// New runs, and new names of runs.
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "server/collector/writer/writer_runs_inside.h"

static enum status find_name(struct runs *runs, const char *text, size_t size, int64_t *id,
                             struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    enum status status = STATUS_OK;
    *id = 0;
    statement_text(statements, STATEMENT_NAME_FIND, 1, text, size);
    while (statement_row(statements, STATEMENT_NAME_FIND, &status, err))
        *id = sqlite3_column_int64(statements->list[STATEMENT_NAME_FIND], 0);
    return status;
}

enum status runs_has_name(struct runs *runs, struct wire_bytes name, bool *known, struct error *err)
{
    int64_t id;
    enum status status = find_name(runs, name.bytes, name.size, &id, err);
    *known = id != 0;
    return status;
}

static enum status intern(struct runs *runs, const char *text, size_t size, int64_t *id,
                          struct error *err)
{
    struct statement_cache *statements = &runs->statements;
    statement_text(statements, STATEMENT_NAME_ADD, 1, text, size);
    enum status status = statement_run(statements, STATEMENT_NAME_ADD, err);
    if (status == STATUS_OK)
        status = find_name(runs, text, size, id, err);
    if (status == STATUS_OK && *id > runs->last_name)
        runs->last_name = *id;
    return status;
}

static void bind_optional(struct statement_cache *statements, enum statement which, int place,
                          struct wire_bytes text)
{
    if (text.size)
        statement_text(statements, which, place, text.bytes, text.size);
    else
        statement_null(statements, which, place);
}

static void bind_required(struct statement_cache *statements, int place, struct wire_bytes text)
{
    statement_text(statements, STATEMENT_RUN_ADD, place, text.bytes, text.size);
}

static void bind_hello(struct statement_cache *statements, const struct message_hello *hello,
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

static void bind_key(struct statement_cache *statements, enum statement which, int place,
                     char *text, const unsigned char *key)
{
    if (key)
        statement_text(statements, which, place, wire_key_text(text, key), WIRE_KEY_TEXT_SIZE - 1);
    else
        statement_null(statements, which, place);
}

enum status runs_add(struct runs *runs, const struct message_hello *hello, const unsigned char *key,
                     int64_t received_ns, struct run **out, struct error *err)
{
    struct statement_cache *statements = &runs->statements;
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
        return error_no_memory(err, "writer");
    memcpy(run->uuid, hello->run, MESSAGE_RUN_SIZE);
    run->id = sqlite3_last_insert_rowid(statements->db);
    run->heard_ns = received_ns;
    run->told_ns = hello->started_ns;
    run->flushed_heard_ns = received_ns;
    run->device_count = hello->device_count;
    run->complete = true;
    run->has_key = key != NULL;
    if (key)
        memcpy(run->key, key, sizeof run->key);
    runs_insert(runs, run);
    *out = run;
    return STATUS_OK;
}

enum status runs_count_unfinished(struct runs *runs, const unsigned char *key, int64_t since_ns,
                                  int64_t *count, struct error *err)
{
    struct statement_cache *statements = &runs->statements;
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
    struct statement_cache *statements = &runs->statements;
    run_count_devices(run, hello->device_count);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 1, hello->cpu_governor);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 2, hello->container);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 3, hello->driver);
    bind_optional(statements, STATEMENT_RUN_DESCRIBE, 4, hello->cuda);
    statement_int(statements, STATEMENT_RUN_DESCRIBE, 5, run->id);
    return statement_run(statements, STATEMENT_RUN_DESCRIBE, err);
}

// The store's id of a name of the run, 0 when it is beyond a limit.  The stored names are
// always the run's first ones, without a gap.
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
    struct statement_cache *statements = &runs->statements;
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
        status = error_no_memory(err, "writer");
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
