// New runs, and new names of runs.
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "server/collector/access/quota.h"
#include "server/collector/writer/writer_owner.h"
#include "server/collector/writer/writer_runs_inside.h"

#define RECOUNT_NS UINT64_C(60000000000) // least time between counts of names

static enum status find_name(struct runs *runs, struct wire_bytes text, int64_t *id,
                             struct error *err)
{
    return STATEMENT_INTEGER(&runs->statements, STATEMENT_NAME_FIND, id, err, value_bytes(text));
}

enum status runs_other_name(struct runs *runs, int64_t *id, struct error *err)
{
    static const struct wire_bytes other = {5, "other"};
    enum status status = STATUS_OK;
    if (runs->other == 0) {
        status = STATEMENT_RUN(&runs->statements, STATEMENT_NAME_OTHER, err, value_bytes(other));
        if (status == STATUS_OK)
            status = find_name(runs, other, &runs->other, err);
    }
    *id = runs->other;
    return status;
}

static enum status count_names(struct runs *runs, struct error *err)
{
    sqlite3_stmt *row = runs->statements.list[STATEMENT_NAME_OWNERS];
    enum status status = STATUS_OK;
    quota_reset_names(runs->quota);
    while (statement_row(&runs->statements, STATEMENT_NAME_OWNERS, &status, err))
        quota_add_names(runs->quota, (const char *)sqlite3_column_text(row, 0),
                        (uint64_t)sqlite3_column_int64(row, 1));
    runs->has_counted_names = status == STATUS_OK;
    runs->names_removed = false;
    runs->counted_at_ns = clock_monotonic_ns();
    return status;
}

// Counting takes some 0.3 s for a million names.
static bool counts_are_stale(const struct runs *runs)
{
    return !runs->has_counted_names ||
           (runs->names_removed && clock_monotonic_ns() - runs->counted_at_ns > RECOUNT_NS);
}

// Who brings names: the owner's id in the store, its number in the quota, and of which run.
struct name_source {
    int64_t owner;
    unsigned number;
    const struct run *run; // NULL: the name is a host's
};

// The store's id of a name; that of "other" where it is new, and beyond the limit of names of the
// run or of its owner.
static enum status intern(struct runs *runs, const struct name_source *source,
                          struct wire_bytes text, int64_t *id, struct error *err)
{
    const bool is_host = !source->run;
    enum status status = STATUS_OK;
    *id = 0;
    if (!is_host && source->run->delivery.names_known >= runs->names_max)
        return runs_other_name(runs, id, err);
    status = find_name(runs, text, id, err);
    if (status == STATUS_OK && *id == 0 && counts_are_stale(runs))
        status = count_names(runs, err);
    if (status != STATUS_OK || *id != 0)
        return status;
    if (!quota_take_name(runs->quota, source->number, is_host, clock_monotonic_ns()))
        return runs_other_name(runs, id, err);
    status = STATEMENT_RUN(&runs->statements, STATEMENT_NAME_ADD, err, value_bytes(text),
                           value_int(source->owner));
    *id = sqlite3_last_insert_rowid(runs->statements.db);
    return status;
}

// A text of a description; old producers may send longer ones than are stored.
static struct statement_value described(struct wire_bytes text)
{
    text.size = text_cut(text.bytes, text.size, RUN_TEXT_MAX);
    return value_bytes(text);
}

// NULL for an empty text.
static struct statement_value optional(struct wire_bytes text)
{
    return text.size ? described(text) : (struct statement_value){0};
}

// The peer's owner in the store; `*id` is 0 if the store does not have it.
static enum status find_owner(struct runs *runs, const struct wire_peer *peer, int64_t *id,
                              struct error *err)
{
    char who[PEER_OWNER_SIZE];
    return STATEMENT_INTEGER(&runs->statements, STATEMENT_OWNER_FIND, id, err,
                             value_text(peer_owner_text(who, peer)));
}

enum status runs_has_tombstone(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                               bool *has, struct error *err)
{
    char text[37];
    int64_t count = 0;
    text_from_uuid(text, uuid);
    enum status status = STATEMENT_INTEGER(&runs->statements, STATEMENT_TOMBSTONE_FIND, &count, err,
                                           value_text(text));
    *has = count > 0;
    return status;
}

// Whether the run began before the horizon of an owner whose runs the peer continues.  Root's
// horizon is its own: else others could have root's unsent runs refused.
static enum status is_behind_horizon(struct runs *runs, const struct message_hello *hello,
                                     const struct wire_peer *peer, struct access *access, bool *is,
                                     struct error *err)
{
    sqlite3_stmt *row = runs->statements.list[STATEMENT_HORIZONS];
    enum status status = STATUS_OK;
    STATEMENT_BIND(&runs->statements, STATEMENT_HORIZONS, value_int(hello->started_ns));
    while (statement_row(&runs->statements, STATEMENT_HORIZONS, &status, err)) {
        struct wire_peer owner = {0};
        const char *who = (const char *)sqlite3_column_text(row, 0);
        *is = *is || (who && peer_read_owner(&owner, who) && owner_may_send(&owner, peer, access));
    }
    return status;
}

enum status runs_is_forgotten(struct runs *runs, const struct message_hello *hello,
                              const struct wire_peer *peer, struct access *access, bool *is,
                              struct error *err)
{
    int64_t owner = 0;
    enum status status = runs_has_tombstone(runs, hello->run, is, err);
    if (status == STATUS_OK && !*is)
        status = is_behind_horizon(runs, hello, peer, access, is, err);
    if (status == STATUS_OK && *is)
        status = find_owner(runs, peer, &owner, err);
    if (status != STATUS_OK || !*is)
        return status;
    return STATEMENT_RUN(&runs->statements, STATEMENT_REPLAY_COUNT, err, value_int(owner));
}

static enum status add_owner(struct runs *runs, const struct wire_peer *peer, int64_t *id,
                             struct error *err)
{
    char who[PEER_OWNER_SIZE];
    enum status status = find_owner(runs, peer, id, err);
    if (status != STATUS_OK || *id != 0)
        return status;
    status = STATEMENT_RUN(&runs->statements, STATEMENT_OWNER_ADD, err,
                           value_text(peer_owner_text(who, peer)));
    *id = sqlite3_last_insert_rowid(runs->statements.db);
    return status;
}

// Its id is a new one, also where the latest run was removed: live feeds go on after the last id.
static enum status insert_run(struct runs *runs, const struct message_hello *hello,
                              const unsigned char *key, int64_t owner, int64_t host,
                              int64_t received_ns, struct error *err)
{
    char uuid[37], text[WIRE_KEY_TEXT_SIZE];
    text_from_uuid(uuid, hello->run);
    return STATEMENT_RUN(
        &runs->statements, STATEMENT_RUN_ADD, err, value_int(runs->last_id + 1),
        value_int(hello->started_ns), value_int(received_ns), value_int(received_ns),
        value_text(uuid), value_int(host), value_int(hello->pid), described(hello->worker_version),
        value_int(hello->protocol), described(hello->os), described(hello->kernel),
        described(hello->cpu), value_int(hello->cpu_count), optional(hello->cpu_governor),
        value_int(hello->host_memory_bytes), optional(hello->container),
        value_int(hello->device_count), optional(hello->driver), optional(hello->cuda),
        optional(hello->huge_pages), optional(hello->allocator), optional(hello->build_flags),
        value_text(key ? wire_key_text(text, key) : NULL), value_int(owner));
}

enum status runs_add(struct runs *runs, const struct message_hello *hello,
                     const struct wire_peer *peer, unsigned owner, int64_t received_ns,
                     struct run **out, struct error *err)
{
    const unsigned char *key = peer->kind == PEER_KEY ? peer->key : NULL;
    struct name_source source = {.number = owner};
    int64_t host = 0;
    enum status status = add_owner(runs, peer, &source.owner, err);
    if (status == STATUS_OK)
        status = intern(runs, &source, hello->host, &host, err);
    if (status == STATUS_OK)
        status = insert_run(runs, hello, key, source.owner, host, received_ns, err);
    if (status != STATUS_OK)
        return status;
    struct run *run = calloc(1, sizeof *run);
    if (!run)
        return error_no_memory(err, "writer");
    memcpy(run->uuid, hello->run, MESSAGE_RUN_SIZE);
    run->id = sqlite3_last_insert_rowid(runs->statements.db);
    run->heard_ns = received_ns;
    run->told_ns = hello->started_ns;
    run->flushed_heard_ns = received_ns;
    run->device_count = hello->device_count;
    run->complete = true;
    run->owner = source.owner;
    run->opener = *peer;
    run->began_ns = hello->started_ns > 0 ? hello->started_ns : received_ns;
    runs_insert(runs, run);
    *out = run;
    return STATUS_OK;
}

enum status runs_own(struct runs *runs, struct run *run, const struct wire_peer *peer,
                     struct error *err)
{
    enum status status = add_owner(runs, peer, &run->owner, err);
    if (status != STATUS_OK)
        return status;
    run->opener = *peer;
    return STATEMENT_RUN(&runs->statements, STATEMENT_RUN_OWN, err, value_int(run->owner),
                         value_int(run->id));
}

enum status runs_count_unfinished(struct runs *runs, const struct wire_peer *peer, int64_t since_ns,
                                  int64_t *count, struct error *err)
{
    int64_t owner = 0;
    enum status status = find_owner(runs, peer, &owner, err);
    if (status != STATUS_OK)
        return status;
    return STATEMENT_INTEGER(&runs->statements, STATEMENT_RUN_UNFINISHED, count, err,
                             value_int(owner), value_int(since_ns));
}

enum status runs_describe(struct runs *runs, struct run *run, const struct message_hello *hello,
                          struct error *err)
{
    run_count_devices(run, hello->device_count);
    return STATEMENT_RUN(&runs->statements, STATEMENT_RUN_DESCRIBE, err,
                         optional(hello->cpu_governor), optional(hello->container),
                         optional(hello->driver), optional(hello->cuda),
                         optional(hello->huge_pages), optional(hello->allocator),
                         optional(hello->build_flags), value_int(run->id));
}

// A name beyond a limit is not stored as one of the run's: the producer sends it again to the next
// collector.
static enum status add_name(struct runs *runs, struct run *run, const struct name_source *source,
                            struct wire_bytes text, uint64_t *folded, struct error *err)
{
    int64_t name = 0;
    enum status status = intern(runs, source, text, &name, err);
    if (status == STATUS_OK && name != runs->other) {
        status = STATEMENT_RUN(&runs->statements, STATEMENT_RUN_NAME_ADD, err, value_int(run->id),
                               value_int((int64_t)run->delivery.names_known + 1), value_int(name));
    }
    *folded += status == STATUS_OK && name == runs->other;
    if (status == STATUS_OK && run_append_name(run, name) != STATUS_OK)
        status = error_no_memory(err, "writer");
    return status;
}

enum status run_add_names(struct runs *runs, struct run *run, unsigned owner, uint32_t first,
                          const struct wire_bytes *names, size_t count, uint64_t *folded,
                          struct error *err)
{
    const struct name_source source = {.owner = run->owner, .number = owner, .run = run};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        const uint64_t number = first + (uint64_t)i;
        if (number == (uint64_t)run->delivery.names_known + 1 && number <= MESSAGE_NAMES_MAX)
            status = add_name(runs, run, &source, names[i], folded, err);
    }
    return status;
}
