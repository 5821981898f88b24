#include "common/monitor/delivery/orphans.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/sys/files.h"

#define MEMORY_MAX (UINT64_C(256) << 20)

enum { TOTAL_SPOOLS = 16, BLOCK_SIZE = 512 };

enum step { STEP_MOVE, STEP_GIVE_UP, STEP_REMOVE, STEPS };

// What a dead run takes.
struct item {
    int64_t started_ns;          // 0: only its spool is left
    struct orphans_place *place; // NULL: not counted any more, since it is unusable
    uint64_t file_bytes, spool_bytes;
};

struct tidy {
    const struct orphans_folders *folders;
    const struct orphans_bounds *bounds;
    const struct log_sink *log;
    struct item *items; // the oldest first
    size_t count;
    uint64_t memory, total; // bytes
};

struct orphans_bounds orphans_default_bounds(const char *runs, uint64_t spool_bytes)
{
    struct statfs about;
    struct orphans_bounds bounds = {.memory_max = UINT64_MAX};
    const uint64_t spool = spool_bytes > SPOOL_BYTES_DEFAULT ? spool_bytes : SPOOL_BYTES_DEFAULT;
    bounds.total_max = spool < UINT64_MAX / TOTAL_SPOOLS ? TOTAL_SPOOLS * spool : UINT64_MAX;
    if (statfs(runs, &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC)) {
        const uint64_t half = (uint64_t)about.f_blocks * (uint64_t)about.f_bsize / 2;
        bounds.memory_max = half > 0 && half < MEMORY_MAX ? half : MEMORY_MAX;
    }
    return bounds;
}

// ---- What there is ----------------------------------------------------------------

static bool is_in_memory(const struct item *item)
{
    return item->place->has_file && !item->place->on_disk;
}

// The path of the run's file; false: it has none.
static bool find_file(char path[ORPHANS_PATH_SIZE], const struct tidy *tidy,
                      const struct item *item)
{
    return item->place->has_file &&
           orphans_file_path(path, tidy->folders, item->place, NULL) == STATUS_OK;
}

static uint64_t folder_bytes(const char *path)
{
    uint64_t bytes = 0;
    struct stat about;
    DIR *entries = opendir(path);
    for (const struct dirent *entry; entries && (entry = readdir(entries));)
        if (fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode))
            bytes += (uint64_t)about.st_blocks * BLOCK_SIZE;
    if (entries)
        (void)closedir(entries);
    return bytes;
}

static void leave_out(struct tidy *tidy, const struct item *item)
{
    tidy->total -= item->file_bytes + item->spool_bytes;
    tidy->memory -= is_in_memory(item) ? item->file_bytes : 0;
}

// Adds what the run takes now.
static void measure(struct tidy *tidy, struct item *item)
{
    char path[ORPHANS_PATH_SIZE];
    struct stat about;
    item->file_bytes = item->spool_bytes = 0;
    if (find_file(path, tidy, item) && lstat(path, &about) == 0)
        item->file_bytes = (uint64_t)about.st_blocks * BLOCK_SIZE;
    if (item->place->has_spool &&
        orphans_spool_path(path, tidy->folders, item->place, NULL) == STATUS_OK)
        item->spool_bytes = folder_bytes(path);
    tidy->total += item->file_bytes + item->spool_bytes;
    tidy->memory += is_in_memory(item) ? item->file_bytes : 0;
}

// Adds the dead runs, and frees the parts of their files that hold no record: runfile_attach does.
static void add_items(struct tidy *tidy, const struct orphans_list *list)
{
    tidy->items = calloc(list->count + 1, sizeof *tidy->items);
    for (size_t i = 0; tidy->items && i < list->count; i++) {
        struct item item = {.place = &list->places[i]};
        char path[ORPHANS_PATH_SIZE];
        struct runfile *file;
        if (find_file(path, tidy, &item)) {
            if (runfile_attach(&file, path, NULL) != STATUS_OK)
                continue; // it lives, or is unusable
            item.started_ns = runfile_run(file)->started_ns;
            runfile_close(file);
        }
        measure(tidy, &item);
        tidy->items[tidy->count++] = item;
    }
    if (tidy->count > 0)
        qsort(tidy->items, tidy->count, sizeof *tidy->items, array_compare_first);
}

// ---- Steps ------------------------------------------------------------------------

// Each returns false if the run is unusable.

static void say(const struct tidy *tidy, const struct runfile *file, enum inferstat_log_level level,
                uint64_t records, const char *what)
{
    char uuid[37];
    text_from_uuid(uuid, runfile_run(file)->uuid);
    log_sink_write(tidy->log, level,
                   "run %s (process %" PRId64 ") had left %" PRIu64 " records: %s", uuid,
                   runfile_run(file)->pid, records, what);
}

// Copies the parts of a file that are allocated.
static bool copy_parts(int from, int to)
{
    struct stat about;
    if (fstat(from, &about) != 0 || ftruncate(to, about.st_size) != 0)
        return false;
    for (off_t at = 0; (at = lseek(from, at, SEEK_DATA)) >= 0;) {
        const off_t end = lseek(from, at, SEEK_HOLE);
        if (end < 0 || lseek(to, at, SEEK_SET) != at)
            return false;
        while (at < end)
            if (sendfile(to, from, &at, (size_t)(end - at)) <= 0)
                return false;
    }
    return fsync(to) == 0;
}

// Copies the file at `from`, of which the caller has the lock, to `to`, locked while it is copied.
static bool copy_file(const char *from, const char *to)
{
    char making[ORPHANS_PATH_SIZE + 4];
    (void)snprintf(making, sizeof making, "%s.new", to);
    (void)unlink(making); // of a process that was killed here
    const int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const int target = fork_safe_lock_acquire(making, O_RDWR | O_CREAT | O_EXCL, 0600);
    const bool done = source >= 0 && target >= 0 && copy_parts(source, target) &&
                      rename(making, to) == 0 && files_sync_folder(to);
    if (target >= 0 && !done)
        (void)unlink(making);
    fork_safe_lock_close(target);
    if (source >= 0)
        (void)close(source);
    return done;
}

static bool move(const struct tidy *tidy, struct item *item)
{
    const char *folder = tidy->folders->spools;
    const struct item moved = {.place = &(struct orphans_place){.has_file = true, .on_disk = true}};
    char from[ORPHANS_PATH_SIZE], to[ORPHANS_PATH_SIZE];
    struct runfile *file;
    memcpy(moved.place->uuid, item->place->uuid, sizeof moved.place->uuid);
    if (!folder || runfile_make_folder(folder, NULL) != STATUS_OK ||
        !spool_has_room(folder, SPOOL_FREE_DEFAULT, item->file_bytes) ||
        !find_file(from, tidy, item) || !find_file(to, tidy, &moved))
        return true;
    if (runfile_attach(&file, from, NULL) != STATUS_OK)
        return false;
    if (copy_file(from, to) && unlink(from) == 0) {
        say(tidy, file, INFERSTAT_LOG_INFO, runfile_counts(file).unreleased,
            "moved from memory to the folder of spools");
        item->place->on_disk = true;
    }
    runfile_close(file);
    return true;
}

// Releases all records, and notes for the replay which ones these were.
static void drop_records(struct orphan *orphan)
{
    for (uint32_t i = 0; i < runfile_stream_count(orphan->file); i++) {
        const struct runfile_stream stream = runfile_stream(orphan->file, i);
        uint64_t released = ring_released(stream.ring);
        if (orphan->spool && spool_position(orphan->spool, i).spooled > 0 &&
            spool_position(orphan->spool, i).released < released)
            released = spool_position(orphan->spool, i).released;
        if (released == ring_produced(stream.ring))
            continue;
        if (atomic_load_explicit(&stream.header->given_up, memory_order_relaxed) == 0)
            atomic_store_explicit(&stream.header->given_up, released + 1, memory_order_relaxed);
        ring_release(stream.ring, ring_produced(stream.ring));
    }
    // The note is on the disk before anything is removed.
    if (!files_sync(runfile_path(orphan->file)))
        return;
    // From now on its file is all that there is of the run, also if that was made from the spool.
    orphan->partial = false;
    atomic_store_explicit(&runfile_state(orphan->file)->partial, 0, memory_order_relaxed);
    atomic_store_explicit(&runfile_state(orphan->file)->spooled, 0, memory_order_relaxed);
    spool_remove(orphan->spool);
    orphan->spool = NULL;
    runfile_trim(orphan->file);
}

// Drops the records of the run or, if it has none and `remove_empty`, removes it.
static bool give_up(const struct tidy *tidy, struct item *item, bool remove_empty)
{
    struct orphan orphan;
    if (orphan_open(&orphan, tidy->folders, item->place, NULL) != STATUS_OK)
        return false;
    const uint64_t records = orphan_records(&orphan);
    if (records > 0) {
        say(tidy, orphan.file, INFERSTAT_LOG_WARNING, records,
            "dropped and counted, as what dead runs of this user left takes too much");
        drop_records(&orphan);
        item->place->has_file = true;
    } else if (remove_empty) {
        say(tidy, orphan.file, INFERSTAT_LOG_WARNING, records,
            "removed, as what dead runs of this user left takes too much; its losses stay "
            "uncounted");
        orphan_remove(&orphan);
        return true;
    }
    orphan_close(&orphan);
    return true;
}

// ---- All --------------------------------------------------------------------------

// Whether the step with this run may lead to a bound that is exceeded.
static bool helps(const struct tidy *tidy, const struct item *item, enum step step)
{
    return (tidy->memory > tidy->bounds->memory_max && is_in_memory(item)) ||
           (tidy->total > tidy->bounds->total_max && step != STEP_MOVE);
}

static bool is_over(const struct tidy *tidy)
{
    return tidy->memory > tidy->bounds->memory_max || tidy->total > tidy->bounds->total_max;
}

void orphans_tidy(const struct orphans_folders *folders, const struct orphans_bounds *bounds,
                  const struct log_sink *log)
{
    struct orphans_list list;
    struct tidy tidy = {.folders = folders, .bounds = bounds, .log = log};
    if (orphans_find(&list, folders, NULL) != STATUS_OK)
        return;
    add_items(&tidy, &list);
    for (enum step step = STEP_MOVE; step < STEPS; step++) {
        for (size_t i = 0; i < tidy.count && is_over(&tidy); i++) {
            struct item *item = &tidy.items[i];
            if (!item->place || !helps(&tidy, item, step))
                continue;
            leave_out(&tidy, item);
            if (step == STEP_MOVE ? move(&tidy, item) : give_up(&tidy, item, step == STEP_REMOVE))
                measure(&tidy, item);
            else
                item->place = NULL;
        }
    }
    free(tidy.items);
    orphans_deinit(&list);
}
