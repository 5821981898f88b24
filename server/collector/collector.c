#include "server/collector/collector.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/store/sqlite/file_mode.h"
#include "common/store/sqlite/lock.h"
#include "common/store/store.h"
#include "common/store/schema/file_probe.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/wire/peer_folder.h"
#include "common/wire/rules_file.h"
#include "server/collector/services/services.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer.h"

// What the collector holds at most, whatever its peers do:
//
//   inbox                  4 MiB, and one message more
//   rollups                a memtable per kind (rollup_memtable.h): 18 MB of inferences
//   Acks, replies          8 and 32 MiB
//   runs (writer.c)        16 MiB, and half a kilobyte for each run that is not over
//   the writer's pages     16 MiB, its log's index 1 MiB; readers' pages 2 MiB each
//   recent requests        30 MB, once NOW has been asked for (recent.h)
//   a group's Acks         a few hundred kilobytes
//   sockets (listener.h)   20 MiB received, 35 MiB unsent, 1 KB a connection
//
// Under full load from 500 producers some 90 MB are resident, idle 10.
enum {
    FOLDER_MODE = 0750,
    OTHER_DESCRIPTORS = 256, // beside connections, a generous estimate
};

struct collector {
    const struct options *options;
    struct endpoints endpoints;
    struct lock locks[ENDPOINTS_MAX + 1]; // of the ipc folders, and of the store
    struct quota *quota;
    struct channels *channels;
    struct writer *writer;
    struct ingest *ingest;
    struct query_service *queries;
    struct live *live;
    struct alerts *alerts;
    struct exporter *exporter;
};

// Creates the store's folder if it is missing; with `all` its parents, too.  Otherwise the
// parent must exist, so that a mistyped path creates no tree.
static enum status make_store_folder(const char *db, bool all, struct error *err)
{
    char folder[PATH_MAX], above[PATH_MAX];
    files_folder_of(folder, sizeof folder, db);
    files_folder_of(above, sizeof above, folder);
    if (!all && access(folder, F_OK) != 0 && access(above, F_OK) != 0)
        return error_set(err, STATUS_NOT_FOUND, "store %s: there is no folder %s (make it first)",
                         db, above);
    enum status status = files_make_folder(folder, FOLDER_MODE, err);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, status, "store %s", db);
}

// Logs the warning of a store, if it has one, before this collector changes it.
static void warn_of_store(const char *db)
{
    struct error err;
    struct store *store = NULL;
    if (store_open(&store, db, &err) != STATUS_OK)
        return; // new, of an older version, or the writer reports the error
    if (store_warning(store)[0])
        log_write(LOG_LEVEL_WARNING, "%s", store_warning(store));
    store_close(store);
}

// Locks the store, unless the file is not a store, and restricts who may read it before SQLite
// makes its log and index.
static enum status lock_store(const struct options *options, struct lock *lock, struct error *err)
{
    enum status status = file_probe_check(options->db, err);
    if (status == STATUS_NOT_FOUND)
        status = make_store_folder(options->db, options->db_is_default, err);
    else if (status == STATUS_OK)
        warn_of_store(options->db);
    if (status == STATUS_OK)
        status = lock_acquire_store(lock, options->db, err);
    if (status == STATUS_OK)
        file_mode_restrict(options->db, options->group_read);
    return status;
}

// Checks that no other user can take over the sockets in an ipc folder.
static enum status check_folder(const char *folder, struct error *err)
{
    int fd;
    struct peer_trust trust;
    enum status status = peer_trust_init(&trust, NULL, err);
    if (status == STATUS_OK)
        status = peer_open_folder(&fd, &trust, folder, NULL, err);
    if (status == STATUS_OK)
        (void)close(fd);
    return status;
}

// Creates an ipc folder and locks it, so that a second collector cannot take over its sockets.
static enum status lock_folder(const struct address *address, struct lock *lock, struct error *err)
{
    char path[PATH_MAX];
    if (!address->is_ipc)
        return STATUS_OK;
    enum status status = files_make_folder(address->place, FOLDER_MODE, err);
    if (status == STATUS_OK)
        status = check_folder(address->place, err);
    if (status == STATUS_OK)
        status = files_join(path, sizeof path, address->place, "lock", err);
    if (status == STATUS_OK)
        status = lock_acquire(lock, path, err);
    if (status == STATUS_OK)
        return STATUS_OK;
    return error_prefix(err, status,
                        status == STATUS_BUSY ? "ipc://%s: another collector listens there"
                                              : "ipc://%s: cannot listen there",
                        address->place);
}

static enum status acquire_locks(struct collector *collector, struct error *err)
{
    enum status status = lock_store(collector->options, &collector->locks[ENDPOINTS_MAX], err);
    for (unsigned i = 0; i < collector->endpoints.count && status == STATUS_OK; i++)
        status = lock_folder(&collector->endpoints.addresses[i], &collector->locks[i], err);
    return status;
}

// Creates what the threads share, and opens the authorized keys, if the collector has keys.
static enum status open_shared(struct collector *collector, const struct wire_keypair *keys,
                               struct error *err)
{
    const struct options *options = collector->options;
    struct endpoints *endpoints = &collector->endpoints;
    enum status status = channels_new(&collector->channels, err);
    if (status == STATUS_OK)
        status = quota_new(&collector->quota, &options->quota, options->retention.bytes,
                           options->limits.store_names, err);
    if (status == STATUS_OK)
        status = listener_new(&endpoints->listener, err);
    if (status != STATUS_OK)
        return status;
    collector->channels->quota = collector->quota;
    endpoints->rejects = &collector->channels->rejects;
    endpoints->quota = collector->quota;
    if (!options->key[0])
        return STATUS_OK;
    endpoints->keys = *keys;
    return access_open(&endpoints->access, options->authorized_keys, err);
}

// Connections use descriptors.  If the process's limit is too low, allows fewer connections, so
// that the store does not run out of descriptors.
static void allow_connections(struct collector *collector)
{
    struct rlimit limit;
    const rlim_t sockets = (rlim_t)ADDRESS_SERVICES * collector->endpoints.count;
    const rlim_t wanted = sockets * collector->options->limits.connections + OTHER_DESCRIPTORS;
    collector->endpoints.connections_max = collector->options->limits.connections;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted)
        return;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= OTHER_DESCRIPTORS + sockets)
        return;
    collector->endpoints.connections_max =
        (unsigned)((limit.rlim_cur - OTHER_DESCRIPTORS) / sockets);
    log_write(LOG_LEVEL_INFO,
              "each socket takes up to %u connections, as this process may have %llu files open "
              "(LimitNOFILE or ulimit -n allow more)",
              collector->endpoints.connections_max, (unsigned long long)limit.rlim_cur);
}

// The same for a store that the writer has just created.
static enum status secure_new_store(struct collector *collector, struct error *err)
{
    file_mode_restrict(collector->options->db, collector->options->group_read);
    return lock_new_store(&collector->locks[ENDPOINTS_MAX], err);
}

// In this order: the writer creates the store before others read it, and each thread has bound
// its sockets before the next starts.
static enum status start_threads(struct collector *collector, struct error *err)
{
    const struct options *options = collector->options;
    const struct endpoints *endpoints = &collector->endpoints;
    const struct writer_config writer = {.path = options->db,
                                         .channels = collector->channels,
                                         .access = endpoints->access,
                                         .limits = options->limits,
                                         .retention = options->retention,
                                         .no_rollups = options->rollups != 0};
    enum status status = writer_start(&collector->writer, &writer, err);
    if (status == STATUS_OK)
        status = secure_new_store(collector, err);
    if (status == STATUS_OK)
        status = live_start(&collector->live, endpoints, options->db, collector->channels, err);
    if (status == STATUS_OK)
        status = query_service_start(&collector->queries, endpoints, options->db,
                                     options->files_under, collector->channels, err);
    if (status == STATUS_OK)
        status = alerts_start(&collector->alerts, &options->alerts, options->db,
                              collector->channels, err);
    if (status == STATUS_OK && options->metrics.is_on)
        status = exporter_start(&collector->exporter, &options->metrics, options->db,
                                endpoints->listener, collector->channels, err);
    if (status == STATUS_OK)
        status = ingest_start(&collector->ingest, endpoints, writer_store_uuid(collector->writer),
                              collector->channels, err);
    return status;
}

// Stops the readers of the store before the writer, whose last step is a checkpoint.
static void stop_threads(struct collector *collector)
{
    alerts_stop(collector->alerts);
    live_stop(collector->live);
    exporter_stop(collector->exporter);
    query_service_stop(collector->queries);
    if (collector->ingest) {
        ingest_stop(collector->ingest);
    } else if (collector->writer) { // ingest never started: stop the writer here
        struct job *stop = collector->channels->stop;
        if (queue_push(collector->channels->inbox, stop, sizeof *stop))
            collector->channels->stop = NULL;
    }
    writer_join(collector->writer);
    ingest_join(collector->ingest);
}

// Stops and frees everything; `release` is called for the locks at the end.
static void end(struct collector *collector, void (*release)(struct lock *lock))
{
    stop_threads(collector);
    channels_free(collector->channels);
    quota_free(collector->quota);
    listener_free(collector->endpoints.listener);
    access_close(collector->endpoints.access);
    explicit_bzero(&collector->endpoints.keys, sizeof collector->endpoints.keys);
    for (unsigned i = 0; i <= ENDPOINTS_MAX; i++)
        release(&collector->locks[i]);
    free(collector);
}

enum status collector_start(struct collector **out, const struct options *options,
                            const struct wire_keypair *keys, struct error *err)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return error_no_memory(err, "collector");
    for (unsigned i = 0; i <= ENDPOINTS_MAX; i++)
        collector->locks[i] = LOCK_NONE;
    collector->options = options;
    memcpy(collector->endpoints.addresses, options->listen, sizeof options->listen);
    collector->endpoints.count = options->listen_count;
    allow_connections(collector);
    enum status status = acquire_locks(collector, err);
    if (status == STATUS_OK)
        status = open_shared(collector, keys, err);
    if (status == STATUS_OK)
        status = start_threads(collector, err);
    if (status != STATUS_OK) {
        end(collector, lock_withdraw);
        return status;
    }
    *out = collector;
    return STATUS_OK;
}

void collector_poll(struct collector *collector)
{
    if (collector->endpoints.access)
        access_poll(collector->endpoints.access);
}

enum status collector_reload(struct collector *collector, struct error *err)
{
    struct alert_file file;
    const struct options *options = collector->options;
    struct access *access = collector->endpoints.access;
    enum status status = rules_file_read(&file, options->alerts.file, err);
    if (status == STATUS_OK)
        status = rules_file_check(&file, options->alerts.file, err);
    if (status == STATUS_OK)
        status = exporter_check(&options->metrics, options->insecure, err);
    if (status == STATUS_OK && access)
        status = access_reload(access, err);
    if (status == STATUS_OK)
        status = exporter_reload(collector->exporter, err);
    alerts_replace(collector->alerts, &file, status == STATUS_OK ? NULL : err);
    if (status != STATUS_OK)
        alert_file_deinit(&file);
    return status;
}

bool collector_is_alive(struct collector *collector, uint64_t within_ns)
{
    const uint64_t now_ns = clock_monotonic_ns();
    const uint64_t heartbeats[] = {atomic_load(&collector->channels->ingest_beat_ns),
                                   atomic_load(&collector->channels->writer_beat_ns)};
    for (unsigned i = 0; i < sizeof heartbeats / sizeof *heartbeats; i++)
        if (now_ns > heartbeats[i] && now_ns - heartbeats[i] > within_ns)
            return false;
    return true;
}

void collector_stop(struct collector *collector)
{
    if (collector)
        end(collector, lock_release);
}
