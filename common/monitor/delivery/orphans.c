#include "common/monitor/delivery/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/wire/message.h"

enum {
    PATH_ROOM = 4096,
    UUID_TEXT = 36,
    MADE_RING_RECORDS = 2, // of a file in whose rings nothing will ever be
};

// The age at which an incomplete, unlocked file is removed: its creator holds no lock
// between creating and locking it.
static const int64_t making_ns = INT64_C(60000000000);

static const char file_end[] = ".run";
static const char store_builder_end[] = ".run.new";

// ---- Finding ----------------------------------------------------------------------

static enum status add_place(struct orphans_list *list, size_t *room, const char *name,
                             bool is_spool)
{
    char uuid[UUID_TEXT + 1] = "";
    struct orphans_place place = {.has_file = !is_spool, .has_spool = is_spool};
    memcpy(uuid, name, UUID_TEXT);
    if (!text_to_uuid(place.uuid, uuid))
        return STATUS_OK;
    if (!ARRAY_RESERVE(&list->places, room, list->count + 1))
        return STATUS_NOMEM;
    list->places[list->count++] = place;
    return STATUS_OK;
}

// Removes a file that was being made when its process died.
static void remove_unmade(const char *folder, const char *name)
{
    char path[PATH_ROOM];
    struct stat about;
    if (files_join(path, sizeof path, folder, name, NULL) != STATUS_OK)
        return;
    const int fd = fork_safe_lock_open(path, O_RDWR, 0);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &about) == 0 &&
        S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
        clock_wall_ns() - (int64_t)about.st_mtim.tv_sec * INT64_C(1000000000) > making_ns)
        (void)unlink(path);
    fork_safe_lock_close(fd);
}

static enum status find_in(struct orphans_list *list, size_t *room, const char *folder,
                           bool is_spool, struct error *err)
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
        if (strcmp(name + UUID_TEXT, is_spool ? "" : file_end) == 0)
            status = add_place(list, room, name, is_spool);
        else if (!is_spool && strcmp(name + UUID_TEXT, store_builder_end) == 0)
            remove_unmade(folder, name);
    }
    (void)closedir(entries);
    return status == STATUS_OK ? status : error_set(err, status, "orphans: out of memory");
}

static int compare_places(const void *a, const void *b)
{
    return memcmp(((const struct orphans_place *)a)->uuid, ((const struct orphans_place *)b)->uuid,
                  RUNFILE_UUID_SIZE);
}

// Makes one of the places of one run.
static void merge_places(struct orphans_list *list)
{
    size_t kept = 0;
    if (list->count)
        qsort(list->places, list->count, sizeof *list->places, compare_places);
    for (size_t i = 0; i < list->count; i++) {
        struct orphans_place *before = kept ? &list->places[kept - 1] : NULL;
        if (before && compare_places(before, &list->places[i]) == 0) {
            before->has_file |= list->places[i].has_file;
            before->has_spool |= list->places[i].has_spool;
        } else {
            list->places[kept++] = list->places[i];
        }
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
        merge_places(out);
    return status;
}

void orphans_deinit(struct orphans_list *list)
{
    free(list->places);
    *list = (struct orphans_list){.count = 0};
}

static enum status file_path(char path[PATH_ROOM], const char *folder,
                             const struct orphans_place *place, const char *end, struct error *err)
{
    char name[UUID_TEXT + sizeof file_end];
    text_from_uuid(name, place->uuid);
    (void)strcpy(name + UUID_TEXT, end);
    return files_join(path, PATH_ROOM, folder, name, err);
}

// ---- Looking ----------------------------------------------------------------------

static enum status look_at_spool(const char *path, bool want_run, struct runfile_run *run,
                                 struct spool_totals *spooled, struct error *err)
{
    const struct spool_settings settings = {.folder = NULL};
    struct spool *spool;
    enum status status = spool_look(&spool, &settings, path, err);
    if (status != STATUS_OK)
        return status;
    if (want_run)
        *run = *spool_run(spool);
    *spooled = spool_totals(spool);
    spool_close(spool);
    return STATUS_OK;
}

enum status orphans_look(const struct orphans_folders *folders, const struct orphans_place *place,
                         struct runfile_run *run, struct spool_totals *spooled, struct error *err)
{
    char path[PATH_ROOM];
    enum status status = STATUS_OK;
    *spooled = (struct spool_totals){.bytes = 0};
    if (place->has_file) {
        status = file_path(path, folders->runs, place, file_end, err);
        if (status == STATUS_OK)
            status = runfile_look(run, path, err);
    }
    if (status != STATUS_OK || !place->has_spool)
        return status;
    status = file_path(path, folders->spools, place, "", err);
    if (status == STATUS_OK)
        status = look_at_spool(path, !place->has_file, run, spooled, err);
    // A living run's first append may be under way.
    return place->has_file && (status == STATUS_NO_DATA || status == STATUS_NOT_FOUND) ? STATUS_OK
                                                                                       : status;
}

bool orphans_collector(const struct orphans_folders *folders, const struct orphans_place *place,
                       char *collector)
{
    char path[PATH_ROOM];
    struct runfile *file;
    if (!place->has_file || file_path(path, folders->runs, place, file_end, NULL) != STATUS_OK ||
        runfile_attach(&file, path, NULL) != STATUS_OK)
        return false;
    memcpy(collector, runfile_run(file)->collector, ADDRESS_TEXT_SIZE);
    runfile_close(file);
    return true;
}

// ---- Taking -----------------------------------------------------------------------

static enum status unusable(struct error *err, const struct runfile *file, const char *why)
{
    return error_set(err, STATUS_CORRUPT, "run file %s: %s", runfile_path(file), why);
}

// Validates the records in the rings, and that ring and spool fit together.
static enum status check_streams(const struct orphan *orphan, struct error *err)
{
    const uint32_t count = runfile_stream_count(orphan->file);
    if (orphan->spool && spool_stream_count(orphan->spool) > count)
        return unusable(err, orphan->file, "its spool has streams that it lacks");
    for (uint32_t i = 0; i < count; i++) {
        struct ring *ring = runfile_stream(orphan->file, i).ring;
        const uint64_t produced = ring_produced(ring);
        if (produced > MESSAGE_NUMBER_MAX)
            return unusable(err, orphan->file, "numbers beyond what can be");
        if (orphan->spool && spool_position(orphan->spool, i).spooled > produced)
            return unusable(err, orphan->file, "its spool has records that it never made");
        for (uint64_t number = ring_released(ring) + 1; number <= produced; number++)
            if (!record_is_sound(ring_at(ring, number)))
                return unusable(err, orphan->file, "a record that cannot be");
    }
    return STATUS_OK;
}

// Opens the spool that the run file speaks of.
static enum status attach_spool(struct orphan *orphan, const struct orphans_folders *folders,
                                const struct orphans_place *place, struct error *err)
{
    const struct spool_settings settings = {.free_min = SPOOL_FREE_DEFAULT, .stop = folders->stop};
    const char *folder = runfile_spool(orphan->file);
    char path[PATH_ROOM];
    if (!*folder ||
        !atomic_load_explicit(&runfile_state(orphan->file)->spooled, memory_order_relaxed))
        return STATUS_OK;
    enum status status = file_path(path, folder, place, "", err);
    if (status == STATUS_OK)
        status = spool_attach(&orphan->spool, &settings, path, runfile_run(orphan->file), err);
    if (status == STATUS_NO_DATA)
        return spool_discard(path, err);
    // Another may have sent and removed it.  But where its folder cannot be seen from
    // here, to send the rest alone would be to give up what it holds.
    if (status == STATUS_NOT_FOUND && access(folder, R_OK | X_OK) == 0)
        return STATUS_OK;
    if (status == STATUS_NOT_FOUND)
        return error_set(err, STATUS_DENIED, "run file %s: its spool in %s is out of reach",
                         runfile_path(orphan->file), folder);
    return status;
}

static enum status open_file(struct orphan *orphan, const struct orphans_folders *folders,
                             const struct orphans_place *place, struct error *err)
{
    char path[PATH_ROOM];
    enum status status = file_path(path, folders->runs, place, file_end, err);
    if (status == STATUS_OK)
        status = runfile_attach(&orphan->file, path, err);
    if (status != STATUS_OK)
        return status;
    if (memcmp(runfile_run(orphan->file)->uuid, place->uuid, sizeof place->uuid) != 0)
        return unusable(err, orphan->file, "it is another run's");
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
    for (uint32_t i = 0; status == STATUS_OK && i < spool_stream_count(orphan->spool); i++)
        status =
            runfile_add_stream_after(orphan->file, spool_position(orphan->spool, i).spooled, err);
    return status;
}

// Whether a run's file may exist elsewhere: the host has not restarted since.
static bool is_left_to_others(const struct orphans_folders *folders, const struct spool *spool)
{
    const int64_t last_ns = spool_totals(spool).until_ns;
    const int64_t now = clock_wall_ns();
    const int64_t host_started_ns = now - (int64_t)clock_monotonic_ns();
    return last_ns > host_started_ns && last_ns <= now && now - last_ns < folders->patience_ns;
}

// Makes a run file for a run of which only the spool is left.
static enum status open_spool_alone(struct orphan *orphan, const struct orphans_folders *folders,
                                    const struct orphans_place *place, struct error *err)
{
    const struct spool_settings settings = {.free_min = SPOOL_FREE_DEFAULT, .stop = folders->stop};
    char path[PATH_ROOM];
    enum status status = file_path(path, folders->spools, place, "", err);
    if (status == STATUS_OK)
        status = spool_attach(&orphan->spool, &settings, path, NULL, err);
    if (status == STATUS_NO_DATA) {
        status = spool_discard(path, err);
        return status == STATUS_OK ? error_set(err, STATUS_NOT_FOUND, "%s: there is nothing", path)
                                   : status;
    }
    if (status == STATUS_OK &&
        memcmp(spool_run(orphan->spool)->uuid, place->uuid, sizeof place->uuid) != 0)
        status = error_set(err, STATUS_CORRUPT, "spool %s: it is another run's", path);
    if (status == STATUS_OK && is_left_to_others(folders, orphan->spool))
        status = error_set(err, STATUS_TIMEOUT,
                           "spool %s: its run file is not in %s, but in another container "
                           "perhaps, with more records (send it from there; where it is lost, "
                           "\"inferstat spool flush --force\" sends what is here)",
                           path, folders->runs);
    if (status == STATUS_OK)
        status = runfile_create(&orphan->file, folders->runs, spool_run(orphan->spool),
                                MADE_RING_RECORDS, err);
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
    // A run file that went meanwhile was sent, with its spool, or made from it.
    if (status == STATUS_OK && !orphan.file && folders->spools)
        status = open_spool_alone(&orphan, folders, place, err);
    if (status == STATUS_OK && !orphan.file)
        status = error_set(err, STATUS_NOT_FOUND, "its spool folder is not known");
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
    uint64_t records = orphan->spool ? spool_totals(orphan->spool).records : 0;
    for (uint32_t i = 0; i < runfile_stream_count(orphan->file); i++) {
        const struct ring *ring = runfile_stream(orphan->file, i).ring;
        records += ring_produced(ring) - ring_released(ring);
    }
    return records;
}

void orphan_close(struct orphan *orphan)
{
    spool_close(orphan->spool);
    if (orphan->partial)
        runfile_remove(orphan->file); // there is nothing in it that the spool does not have
    else
        runfile_close(orphan->file);
    *orphan = (struct orphan){.file = NULL};
}

// The spool first: without it the file is still enough to say goodbye again.
void orphan_remove(struct orphan *orphan)
{
    spool_remove(orphan->spool);
    runfile_remove(orphan->file);
    *orphan = (struct orphan){.file = NULL};
}
