#include "common/monitor/delivery/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/wire/message.h"

enum {
    UUID_TEXT = 36,
    REBUILT_RING_RECORDS = 2, // of a rebuilt file, whose rings stay empty
};

// The age at which an incomplete, unlocked file is removed: its creator holds no lock
// between creating and locking it.
static const int64_t incomplete_max_ns = INT64_C(60000000000);

static const char file_end[] = ".run";
static const char incomplete_end[] = ".run.new";

// ---- Finding ----------------------------------------------------------------------

static enum status add_place(struct orphans_list *list, size_t *room, const char *name,
                             struct orphans_place place)
{
    char uuid[UUID_TEXT + 1] = "";
    memcpy(uuid, name, UUID_TEXT);
    if (!text_to_uuid(place.uuid, uuid))
        return STATUS_OK;
    if (!ARRAY_RESERVE(&list->places, room, list->count + 1))
        return STATUS_NOMEM;
    list->places[list->count++] = place;
    return STATUS_OK;
}

// Removes an incomplete file whose process died while creating it.
static void remove_incomplete(const char *folder, const char *name)
{
    char path[ORPHANS_PATH_SIZE];
    struct stat about;
    if (files_join(path, sizeof path, folder, name, NULL) != STATUS_OK)
        return;
    const int fd = fork_safe_lock_acquire(path, O_RDWR, 0);
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
        clock_wall_ns() - (int64_t)about.st_mtim.tv_sec * INT64_C(1000000000) > incomplete_max_ns)
        (void)unlink(path);
    fork_safe_lock_close(fd);
}

static enum status find_in(struct orphans_list *list, size_t *room, const char *folder,
                           bool on_disk, struct error *err)
{
    DIR *entries = opendir(folder);
    if (!entries)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? STATUS_OK
                   : error_set(err, STATUS_IO, "%s: cannot be read: %s", folder, strerror(errno));
    enum status status = STATUS_OK;
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        const size_t size = strlen(name);
        if (size < UUID_TEXT)
            continue;
        const char *end = name + UUID_TEXT;
        const bool has_file = strcmp(end, file_end) == 0, has_spool = on_disk && !*end;
        if (has_file || has_spool)
            status = add_place(list, room, name,
                               (struct orphans_place){.has_file = has_file,
                                                      .has_spool = has_spool,
                                                      .on_disk = on_disk && has_file});
        else if (strcmp(end, incomplete_end) == 0)
            remove_incomplete(folder, name);
    }
    (void)closedir(entries);
    return status == STATUS_OK ? status : error_no_memory(err, "orphans");
}

static int compare_places(const void *a, const void *b)
{
    return memcmp(((const struct orphans_place *)a)->uuid, ((const struct orphans_place *)b)->uuid,
                  RUNFILE_UUID_SIZE);
}

// Sorts the list and unites what belongs to one run.  A run file that is in both folders was being
// moved to disk when that process died: the one in memory counts.
static void unite_places(struct orphans_list *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->places, list->count, sizeof *list->places, compare_places);
    for (size_t i = 0; i < list->count; i++) {
        const struct orphans_place *place = &list->places[i];
        struct orphans_place *last = kept > 0 ? &list->places[kept - 1] : NULL;
        if (!last || compare_places(last, place) != 0) {
            list->places[kept++] = *place;
            continue;
        }
        const bool in_memory =
            (last->has_file && !last->on_disk) || (place->has_file && !place->on_disk);
        last->on_disk = !in_memory && (last->on_disk || place->on_disk);
        last->has_file = last->has_file || place->has_file;
        last->has_spool = last->has_spool || place->has_spool;
    }
    list->count = kept;
}

enum status orphans_find(struct orphans_list *out, const struct orphans_folders *folders,
                         struct error *err)
{
    size_t room = 0;
    *out = (struct orphans_list){.count = 0};
    enum status status = find_in(out, &room, folders->runs, false, err);
    if (status == STATUS_OK && folders->spools)
        status = find_in(out, &room, folders->spools, true, err);
    if (status != STATUS_OK)
        orphans_deinit(out);
    else
        unite_places(out);
    return status;
}

void orphans_deinit(struct orphans_list *list)
{
    free(list->places);
    *list = (struct orphans_list){.count = 0};
}

static enum status file_path(char path[ORPHANS_PATH_SIZE], const char *folder,
                             const struct orphans_place *place, const char *end, struct error *err)
{
    char name[UUID_TEXT + sizeof file_end];
    text_from_uuid(name, place->uuid);
    (void)strcpy(name + UUID_TEXT, end);
    return files_join(path, ORPHANS_PATH_SIZE, folder, name, err);
}

enum status orphans_file_path(char path[ORPHANS_PATH_SIZE], const struct orphans_folders *folders,
                              const struct orphans_place *place, struct error *err)
{
    return file_path(path, place->on_disk ? folders->spools : folders->runs, place, file_end, err);
}

enum status orphans_spool_path(char path[ORPHANS_PATH_SIZE], const struct orphans_folders *folders,
                               const struct orphans_place *place, struct error *err)
{
    return file_path(path, folders->spools, place, "", err);
}

// ---- Inspecting -------------------------------------------------------------------

enum status orphans_look(const struct orphans_folders *folders, const struct orphans_place *place,
                         struct runfile_run *run, struct spool_totals *spooled, struct error *err)
{
    char path[ORPHANS_PATH_SIZE];
    enum status status = STATUS_OK;
    *spooled = (struct spool_totals){.bytes = 0};
    if (place->has_file) {
        status = orphans_file_path(path, folders, place, err);
        if (status == STATUS_OK)
            status = runfile_look(run, path, err);
    }
    if (status != STATUS_OK || !place->has_spool)
        return status;
    const struct spool_settings settings = {.folder = NULL};
    struct spool *spool;
    status = orphans_spool_path(path, folders, place, err);
    if (status == STATUS_OK)
        status = spool_look(&spool, &settings, path, err);
    if (status == STATUS_OK) {
        if (!place->has_file)
            *run = *spool_run(spool);
        *spooled = spool_totals(spool);
        spool_close(spool);
    }
    // The first append of a live run may be in progress.
    return place->has_file && status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

bool orphans_collector(const struct orphans_folders *folders, const struct orphans_place *place,
                       char *collector)
{
    char path[ORPHANS_PATH_SIZE];
    struct runfile *file;
    if (!place->has_file || orphans_file_path(path, folders, place, NULL) != STATUS_OK ||
        runfile_attach(&file, path, NULL) != STATUS_OK)
        return false;
    memcpy(collector, runfile_run(file)->collector, ADDRESS_TEXT_SIZE);
    runfile_close(file);
    return true;
}

// ---- Opening ----------------------------------------------------------------------

static enum status unusable(struct error *err, const struct runfile *file, const char *why)
{
    return error_set(err, STATUS_CORRUPT, "run file %s: %s", runfile_path(file), why);
}

// Validates the records in the rings, and that rings and spool are consistent.
static enum status check_streams(const struct orphan *orphan, struct error *err)
{
    const uint32_t count = runfile_stream_count(orphan->file);
    if (orphan->spool && spool_stream_count(orphan->spool) > count)
        return unusable(err, orphan->file, "its spool has streams that it lacks");
    for (uint32_t i = 0; i < count; i++) {
        struct ring *ring = runfile_stream(orphan->file, i).ring;
        const uint64_t produced = ring_produced(ring);
        if (produced > MESSAGE_NUMBER_MAX)
            return unusable(err, orphan->file, "record numbers out of range");
        if (orphan->spool && spool_position(orphan->spool, i).spooled > produced)
            return unusable(err, orphan->file, "its spool has records that it never produced");
        for (uint64_t number = ring_released(ring) + 1; number <= produced; number++)
            if (!record_is_sound(ring_at(ring, number)))
                return unusable(err, orphan->file, "invalid record");
    }
    return STATUS_OK;
}

// Opens the spool that the run file refers to.
static enum status attach_spool(struct orphan *orphan, const struct orphans_folders *folders,
                                const struct orphans_place *place, struct error *err)
{
    const struct spool_settings settings = {.free_min = SPOOL_FREE_DEFAULT, .stop = folders->stop};
    const char *folder = runfile_spool(orphan->file);
    char path[ORPHANS_PATH_SIZE];
    if (!*folder ||
        !atomic_load_explicit(&runfile_state(orphan->file)->spooled, memory_order_relaxed))
        return STATUS_OK;
    enum status status = file_path(path, folder, place, "", err);
    if (status == STATUS_OK)
        status = spool_attach(&orphan->spool, &settings, path, runfile_run(orphan->file), err);
    // It may be empty, or another process has replayed and removed it.  But if its folder is not
    // accessible from here, sending only the rest would lose the records in it.
    if (status == STATUS_NOT_FOUND && access(folder, R_OK | X_OK) == 0)
        return STATUS_OK;
    if (status == STATUS_NOT_FOUND)
        return error_set(err, STATUS_DENIED, "run file %s: its spool folder %s is out of reach",
                         runfile_path(orphan->file), folder);
    return status;
}

static enum status open_file(struct orphan *orphan, const struct orphans_folders *folders,
                             const struct orphans_place *place, struct error *err)
{
    char path[ORPHANS_PATH_SIZE];
    enum status status = orphans_file_path(path, folders, place, err);
    if (status == STATUS_OK)
        status = runfile_attach(&orphan->file, path, err);
    if (status != STATUS_OK)
        return status;
    if (memcmp(runfile_run(orphan->file)->uuid, place->uuid, sizeof place->uuid) != 0)
        return unusable(err, orphan->file, "it belongs to another run");
    // A run file rebuilt from a spool is rebuilt again: names cannot be added to it.
    if (atomic_load_explicit(&runfile_state(orphan->file)->partial, memory_order_relaxed)) {
        runfile_remove(orphan->file);
        orphan->file = NULL;
        return STATUS_OK;
    }
    return attach_spool(orphan, folders, place, err);
}

static enum status fill_file(struct orphan *orphan, const char *spool_folder, struct error *err)
{
    struct runfile_state *state = runfile_state(orphan->file);
    atomic_store_explicit(&state->partial, 1, memory_order_relaxed);
    atomic_store_explicit(&state->spooled, 1, memory_order_relaxed);
    atomic_store_explicit(&state->alive_ns, spool_totals(orphan->spool).until_ns,
                          memory_order_relaxed);
    enum status status = runfile_set_spool(orphan->file, spool_folder, err);
    if (status == STATUS_OK)
        status = spool_fill_names(orphan->spool, runfile_names(orphan->file), err);
    for (uint32_t i = 0; status == STATUS_OK && i < spool_stream_count(orphan->spool); i++) {
        struct runfile_stream stream;
        status = runfile_add_stream(orphan->file, &stream, err);
        if (status == STATUS_OK)
            ring_skip_to(stream.ring, spool_position(orphan->spool, i).spooled);
    }
    return status;
}

// Whether the run file may exist elsewhere: the host has not restarted since.
static bool may_have_file(const struct orphans_folders *folders, const struct spool *spool)
{
    const int64_t last_ns = spool_totals(spool).until_ns;
    const int64_t now = clock_wall_ns();
    const int64_t host_started_ns = now - (int64_t)clock_monotonic_ns();
    return last_ns > host_started_ns && last_ns <= now && now - last_ns < folders->patience_ns;
}

// Rebuilds the run file of a run of which only the spool exists.
static enum status open_spool_alone(struct orphan *orphan, const struct orphans_folders *folders,
                                    const struct orphans_place *place, struct error *err)
{
    const struct spool_settings settings = {.free_min = SPOOL_FREE_DEFAULT, .stop = folders->stop};
    char path[ORPHANS_PATH_SIZE];
    enum status status = orphans_spool_path(path, folders, place, err);
    if (status == STATUS_OK)
        status = spool_attach(&orphan->spool, &settings, path, NULL, err);
    if (status == STATUS_OK &&
        memcmp(spool_run(orphan->spool)->uuid, place->uuid, sizeof place->uuid) != 0)
        status = error_set(err, STATUS_CORRUPT, "spool %s: it belongs to another run", path);
    if (status == STATUS_OK && may_have_file(folders, orphan->spool))
        status = error_set(err, STATUS_TIMEOUT,
                           "spool %s: its run file is not in %s; it may be in another "
                           "container, with more records (send it from there; if it is lost, "
                           "\"inferstat spool flush --force\" sends what is here)",
                           path, folders->runs);
    if (status == STATUS_OK)
        status = runfile_create(&orphan->file, folders->runs, spool_run(orphan->spool),
                                REBUILT_RING_RECORDS, err);
    if (status != STATUS_OK)
        return status;
    orphan->partial = true;
    return fill_file(orphan, folders->spools, err);
}

enum status orphan_open(struct orphan *out, const struct orphans_folders *folders,
                        const struct orphans_place *place, struct error *err)
{
    struct orphan orphan = {.file = NULL};
    enum status status = STATUS_OK;
    if (place->has_file)
        status = open_file(&orphan, folders, place, err);
    // No run file: replayed meanwhile, or it was rebuilt from the spool before.
    if (status == STATUS_OK && !orphan.file && folders->spools)
        status = open_spool_alone(&orphan, folders, place, err);
    if (status == STATUS_OK && !orphan.file)
        status = error_set(err, STATUS_NOT_FOUND, "its spool folder is unknown");
    if (status == STATUS_OK)
        status = check_streams(&orphan, err);
    if (status != STATUS_OK) {
        orphan_close(&orphan);
        return status;
    }
    *out = orphan;
    return STATUS_OK;
}

uint64_t orphan_records(const struct orphan *orphan)
{
    const uint64_t spooled = orphan->spool ? spool_totals(orphan->spool).records : 0;
    return spooled + runfile_counts(orphan->file).unreleased;
}

void orphan_close(struct orphan *orphan)
{
    spool_close(orphan->spool);
    if (orphan->partial)
        runfile_remove(orphan->file); // the spool has everything in it
    else
        runfile_close(orphan->file);
    *orphan = (struct orphan){.file = NULL};
}

// The spool first: the run file alone suffices to send Goodbye again.
void orphan_remove(struct orphan *orphan)
{
    spool_remove(orphan->spool);
    runfile_remove(orphan->file);
    *orphan = (struct orphan){.file = NULL};
}
