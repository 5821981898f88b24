#include "tests/support/store/power_vfs.h"

#include <pthread.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"

enum { SECTOR_SIZE = 512, FILES_MAX = 8, NAME_SIZE = 64 };

enum step_kind {
    STEP_CREATE,
    STEP_WRITE,
    STEP_TRUNCATE,
    STEP_SYNC,
    STEP_DELETE,
    STEP_RENAME,
    STEP_FOLDER
};

struct step {
    enum step_kind kind;
    unsigned file;        // but for STEP_FOLDER: the folder was synced
    unsigned to;          // STEP_RENAME: what it is from then on
    sqlite3_int64 offset; // STEP_TRUNCATE: the new size
    int size;
    unsigned char *bytes;
};

struct power_tape {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    void (*before)(void *context, size_t steps);
    void *context;
    pthread_mutex_t lock;
    struct step *steps;
    size_t count, room;
    char names[FILES_MAX][NAME_SIZE]; // last parts of the paths
    unsigned name_count;
};

// An open file: this, then the real one's.
struct power_file {
    sqlite3_file base;
    struct power_tape *tape; // NULL: one that no crash survives anyway
    unsigned file;
    bool is_new_log; // a journal or log whose first sync is one of the folder, too
    sqlite3_file real[];
};

static void die(const char *what)
{
    (void)fprintf(stderr, "power: %s\n", what);
    abort();
}

// ---- The tape ---------------------------------------------------------------------

static unsigned file_number(struct power_tape *tape, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    unsigned file = 0;
    while (file < tape->name_count && strcmp(tape->names[file], name) != 0)
        file++;
    if (file == FILES_MAX || strlen(name) >= NAME_SIZE)
        die("more files than expected");
    if (file == tape->name_count)
        (void)snprintf(tape->names[tape->name_count++], NAME_SIZE, "%s", name);
    return file;
}

static void keep(struct power_tape *tape, struct step step, const void *bytes)
{
    if (!tape)
        return;
    tape->before(tape->context, power_tape_steps(tape));
    if (bytes) {
        step.bytes = malloc((size_t)step.size);
        if (!step.bytes)
            die("out of memory");
        memcpy(step.bytes, bytes, (size_t)step.size);
    }
    (void)pthread_mutex_lock(&tape->lock);
    if (tape->count == tape->room) {
        tape->room = tape->room ? 2 * tape->room : 4096;
        tape->steps = realloc(tape->steps, tape->room * sizeof *tape->steps);
        if (!tape->steps)
            die("out of memory");
    }
    tape->steps[tape->count++] = step;
    (void)pthread_mutex_unlock(&tape->lock);
}

size_t power_tape_steps(struct power_tape *tape)
{
    (void)pthread_mutex_lock(&tape->lock);
    const size_t count = tape->count;
    (void)pthread_mutex_unlock(&tape->lock);
    return count;
}

void power_tape_sync_folder(struct power_tape *tape)
{
    keep(tape, (struct step){.kind = STEP_FOLDER}, NULL);
}

void power_tape_sync_file(struct power_tape *tape, const char *path)
{
    keep(tape, (struct step){.kind = STEP_SYNC, .file = file_number(tape, path)}, NULL);
}

void power_tape_rename(struct power_tape *tape, const char *from, const char *to)
{
    keep(tape,
         (struct step){
             .kind = STEP_RENAME, .file = file_number(tape, from), .to = file_number(tape, to)},
         NULL);
}

static bool ends_with(const char *name, const char *ending)
{
    const size_t size = strlen(name), tail = strlen(ending);
    return size >= tail && strcmp(name + size - tail, ending) == 0;
}

size_t power_tape_syncs(struct power_tape *tape, const char *ending)
{
    size_t syncs = 0;
    (void)pthread_mutex_lock(&tape->lock);
    for (size_t i = 0; i < tape->count; i++)
        syncs +=
            tape->steps[i].kind == STEP_SYNC && ends_with(tape->names[tape->steps[i].file], ending);
    (void)pthread_mutex_unlock(&tape->lock);
    return syncs;
}

// ---- Files that are on the tape -----------------------------------------------------

static struct power_file *own(sqlite3_file *file)
{
    return (struct power_file *)file;
}

static sqlite3_file *real(sqlite3_file *file)
{
    return own(file)->real;
}

static int power_close(sqlite3_file *file)
{
    return real(file)->pMethods->xClose(real(file));
}

static int power_read(sqlite3_file *file, void *out, int size, sqlite3_int64 offset)
{
    return real(file)->pMethods->xRead(real(file), out, size, offset);
}

static int power_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    keep(own(file)->tape,
         (struct step){.kind = STEP_WRITE, .file = own(file)->file, .offset = offset, .size = size},
         bytes);
    return real(file)->pMethods->xWrite(real(file), bytes, size, offset);
}

static int power_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    keep(own(file)->tape,
         (struct step){.kind = STEP_TRUNCATE, .file = own(file)->file, .offset = size}, NULL);
    return real(file)->pMethods->xTruncate(real(file), size);
}

// Nothing here waits for the disk: the tape knows what that disk would hold.
static int power_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    keep(own(file)->tape, (struct step){.kind = STEP_SYNC, .file = own(file)->file}, NULL);
    if (own(file)->is_new_log)
        power_tape_sync_folder(own(file)->tape);
    own(file)->is_new_log = false;
    return SQLITE_OK;
}

static int power_file_size(sqlite3_file *file, sqlite3_int64 *out)
{
    return real(file)->pMethods->xFileSize(real(file), out);
}

static int power_lock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xLock(real(file), level);
}

static int power_unlock(sqlite3_file *file, int level)
{
    return real(file)->pMethods->xUnlock(real(file), level);
}

static int power_check_lock(sqlite3_file *file, int *out)
{
    return real(file)->pMethods->xCheckReservedLock(real(file), out);
}

static int power_control(sqlite3_file *file, int op, void *argument)
{
    return real(file)->pMethods->xFileControl(real(file), op, argument);
}

static int power_sector_size(sqlite3_file *file)
{
    return real(file)->pMethods->xSectorSize(real(file));
}

static int power_device(sqlite3_file *file)
{
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

static int power_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return real(file)->pMethods->xShmMap(real(file), page, size, extend, out);
}

static int power_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}

static void power_shm_barrier(sqlite3_file *file)
{
    real(file)->pMethods->xShmBarrier(real(file));
}

static int power_shm_unmap(sqlite3_file *file, int remove)
{
    return real(file)->pMethods->xShmUnmap(real(file), remove);
}

// Version 2: without mapped reading, which no tape sees.
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = power_close,
    .xRead = power_read,
    .xWrite = power_write,
    .xTruncate = power_truncate,
    .xSync = power_sync,
    .xFileSize = power_file_size,
    .xLock = power_lock,
    .xUnlock = power_unlock,
    .xCheckReservedLock = power_check_lock,
    .xFileControl = power_control,
    .xSectorSize = power_sector_size,
    .xDeviceCharacteristics = power_device,
    .xShmMap = power_shm_map,
    .xShmLock = power_shm_lock,
    .xShmBarrier = power_shm_barrier,
    .xShmUnmap = power_shm_unmap,
};

// ---- The VFS ------------------------------------------------------------------------

static struct power_tape *tape_of(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static int power_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    struct power_tape *tape = tape_of(vfs);
    struct power_file *mine = own(file);
    const int tracked = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
    int was_there = 1;
    if (path)
        (void)tape->real->xAccess(tape->real, path, SQLITE_ACCESS_EXISTS, &was_there);
    struct stat about;
    if (was_there && path && (flags & SQLITE_OPEN_MAIN_DB) && stat(path, &about) == 0)
        was_there = about.st_size > 0; // made for SQLite just now
    *mine = (struct power_file){0};
    const int rc = tape->real->xOpen(tape->real, path, mine->real, flags, out);
    if (rc != SQLITE_OK)
        return rc;
    mine->base.pMethods = &methods;
    if (!path || !(flags & tracked))
        return rc;
    mine->tape = tape;
    mine->file = file_number(tape, path);
    mine->is_new_log = !was_there && !(flags & SQLITE_OPEN_MAIN_DB);
    if (!was_there)
        keep(tape, (struct step){.kind = STEP_CREATE, .file = mine->file}, NULL);
    return rc;
}

static int power_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct power_tape *tape = tape_of(vfs);
    keep(tape, (struct step){.kind = STEP_DELETE, .file = file_number(tape, path)}, NULL);
    if (sync)
        power_tape_sync_folder(tape);
    return tape->real->xDelete(tape->real, path, sync);
}

static int power_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    return tape_of(vfs)->real->xAccess(tape_of(vfs)->real, path, flags, out);
}

static int power_full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    return tape_of(vfs)->real->xFullPathname(tape_of(vfs)->real, path, size, out);
}

static int power_randomness(sqlite3_vfs *vfs, int size, char *out)
{
    return tape_of(vfs)->real->xRandomness(tape_of(vfs)->real, size, out);
}

static int power_sleep(sqlite3_vfs *vfs, int microseconds)
{
    return tape_of(vfs)->real->xSleep(tape_of(vfs)->real, microseconds);
}

static int power_time(sqlite3_vfs *vfs, double *out)
{
    return tape_of(vfs)->real->xCurrentTime(tape_of(vfs)->real, out);
}

static int power_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    return tape_of(vfs)->real->xCurrentTimeInt64(tape_of(vfs)->real, out);
}

static int power_last_error(sqlite3_vfs *vfs, int size, char *out)
{
    return tape_of(vfs)->real->xGetLastError(tape_of(vfs)->real, size, out);
}

struct power_tape *power_tape_start(void (*before)(void *context, size_t steps), void *context)
{
    struct power_tape *tape = calloc(1, sizeof *tape);
    if (!tape || sqlite3_initialize() != SQLITE_OK)
        die("out of memory");
    (void)pthread_mutex_init(&tape->lock, NULL);
    tape->before = before;
    tape->context = context;
    tape->real = sqlite3_vfs_find("unix");
    if (!tape->real)
        die("no VFS of the system's");
    tape->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(struct power_file) + tape->real->szOsFile,
        .mxPathname = tape->real->mxPathname,
        .zName = "power",
        .pAppData = tape,
        .xOpen = power_open,
        .xDelete = power_delete,
        .xAccess = power_access,
        .xFullPathname = power_full_path,
        .xRandomness = power_randomness,
        .xSleep = power_sleep,
        .xCurrentTime = power_time,
        .xGetLastError = power_last_error,
        .xCurrentTimeInt64 = power_time_ms,
    };
    if (sqlite3_vfs_register(&tape->vfs, 1) != SQLITE_OK)
        die("cannot register");
    return tape;
}

void power_tape_stop(struct power_tape *tape)
{
    (void)sqlite3_vfs_unregister(&tape->vfs);
    (void)sqlite3_vfs_register(tape->real, 1);
}

void power_tape_free(struct power_tape *tape)
{
    for (size_t i = 0; i < tape->count; i++)
        free(tape->steps[i].bytes);
    free(tape->steps);
    (void)pthread_mutex_destroy(&tape->lock);
    free(tape);
}

// ---- After the loss of power --------------------------------------------------------

struct image {
    size_t size, room;
    unsigned char *bytes;
};

static void resize(struct image *image, size_t size)
{
    if (!image->bytes || size > image->room) {
        image->room = 2 * size + SECTOR_SIZE;
        image->bytes = realloc(image->bytes, image->room);
        if (!image->bytes)
            die("out of memory");
    }
    if (size > image->size)
        memset(image->bytes + image->size, 0, size - image->size);
    image->size = size;
}

static void put(struct image *image, size_t offset, const unsigned char *bytes, size_t size)
{
    if (size == 0)
        return;
    if (!image->bytes || offset + size > image->size)
        resize(image, offset + size);
    memcpy(image->bytes + offset, bytes, size);
}

// Of a write some sectors: its first ones, or any.
static void put_sectors(struct image *image, const struct step *step, uint64_t *random,
                        bool only_first)
{
    const size_t first = (size_t)step->offset, end = first + (size_t)step->size;
    const size_t sectors = (end + SECTOR_SIZE - 1) / SECTOR_SIZE - first / SECTOR_SIZE;
    const size_t kept = (size_t)(test_random(random) % (sectors + 1));
    for (size_t i = 0; i < sectors; i++) {
        const size_t sector = (first / SECTOR_SIZE + i) * SECTOR_SIZE;
        const size_t from = sector > first ? sector : first;
        const size_t to = sector + SECTOR_SIZE < end ? sector + SECTOR_SIZE : end;
        if (only_first ? i < kept : test_random(random) % 2 == 0)
            put(image, from, step->bytes + (from - first), to - from);
    }
}

static void apply(struct image *image, const struct step *step)
{
    if (step->kind == STEP_WRITE)
        put(image, (size_t)step->offset, step->bytes, (size_t)step->size);
    else if (step->kind == STEP_TRUNCATE)
        resize(image, (size_t)step->offset);
}

// A step that no sync came after.  Returns whether any behind it may have reached the
// disk; `luck` is how many are to.
static bool apply_some(struct image *image, const struct step *step, enum power_mercy mercy,
                       size_t luck, uint64_t *random)
{
    const bool torn = step->kind == STEP_WRITE && test_random(random) % 2 == 0;
    switch (mercy) {
    case POWER_ALL:
        apply(image, step);
        return true;
    case POWER_UP_TO:
        if (luck > 0)
            apply(image, step);
        else if (torn)
            put_sectors(image, step, random, true);
        return luck > 0;
    case POWER_ANY:
        if (torn)
            put_sectors(image, step, random, false);
        else if (test_random(random) % 2 == 0)
            apply(image, step);
        return true;
    case POWER_NOTHING:
    case POWER_MERCIES:
        break;
    }
    return false;
}

// Before this step, what files there are is on the disk; file systems keep that order.
static size_t entries_until(const struct power_tape *tape, size_t cut, enum power_mercy mercy,
                            uint64_t *random)
{
    size_t synced = cut;
    while (synced > 0 && tape->steps[synced - 1].kind != STEP_FOLDER)
        synced--;
    if (mercy == POWER_NOTHING)
        return synced;
    return mercy == POWER_ALL ? cut : synced + (size_t)(test_random(random) % (cut - synced + 1));
}

static bool is_of(const struct step *step, unsigned file, enum step_kind kind)
{
    return step->kind == kind && step->file == file;
}

// The life of a file that is found after the cut: the steps from `first` up to `end`, of
// the name `file`, and before `renamed` of the name that it had until then.
struct life {
    unsigned file, before;
    size_t first, renamed, end;
};

static bool is_step_of(const struct life *life, const struct step *step, size_t at)
{
    return step->kind != STEP_FOLDER &&
           step->file == (at < life->renamed ? life->before : life->file);
}

// Where the file of that name was made; false where there is none.
static bool find_birth(const struct power_tape *tape, unsigned file, size_t entries, size_t *first)
{
    bool exists = false;
    for (size_t i = 0; i < entries; i++) {
        if (is_of(&tape->steps[i], file, STEP_CREATE)) {
            exists = true;
            *first = i + 1;
        } else if (is_of(&tape->steps[i], file, STEP_DELETE) ||
                   is_of(&tape->steps[i], file, STEP_RENAME)) {
            exists = false;
        }
    }
    return exists;
}

static bool find_life(const struct power_tape *tape, unsigned file, size_t entries, size_t cut,
                      struct life *life)
{
    *life = (struct life){.file = file, .before = file};
    bool exists = find_birth(tape, file, entries, &life->first);
    for (size_t i = entries; i-- > 0 && !exists;)
        if (tape->steps[i].kind == STEP_RENAME && tape->steps[i].to == file) {
            life->before = tape->steps[i].file;
            life->renamed = i;
            exists = find_birth(tape, life->before, i, &life->first);
            break;
        }
    life->end = life->first;
    while (exists && life->end < cut && !is_of(&tape->steps[life->end], file, STEP_DELETE))
        life->end++;
    return exists;
}

static void make_image(const struct power_tape *tape, const struct life *life,
                       enum power_mercy mercy, uint64_t *random, struct image *image)
{
    size_t lasting = life->end, unsynced = 0;
    while (lasting > life->first && !(is_step_of(life, &tape->steps[lasting - 1], lasting - 1) &&
                                      tape->steps[lasting - 1].kind == STEP_SYNC))
        lasting--;
    for (size_t i = life->first; i < life->end; i++) {
        if (!is_step_of(life, &tape->steps[i], i))
            continue;
        if (i < lasting)
            apply(image, &tape->steps[i]);
        else
            unsynced++;
    }
    size_t luck = (size_t)(test_random(random) % (unsynced + 1));
    for (size_t i = lasting; i < life->end; i++) {
        if (!is_step_of(life, &tape->steps[i], i))
            continue;
        if (!apply_some(image, &tape->steps[i], mercy, luck, random))
            break;
        luck -= luck > 0;
    }
}

static void write_image(const struct image *image, const char *folder, const char *name)
{
    char path[FOLDER_PATH_SIZE];
    FILE *out = fopen(folder_path(path, folder, name), "wb");
    if (!out || (image->size && fwrite(image->bytes, 1, image->size, out) != image->size) ||
        fclose(out) != 0)
        die("cannot write the files anew");
}

void power_tape_replay(struct power_tape *tape, size_t cut, enum power_mercy mercy, uint64_t seed,
                       const char *folder)
{
    uint64_t random = seed * 2 + 1;
    const size_t entries = entries_until(tape, cut, mercy, &random);
    for (unsigned file = 0; file < tape->name_count; file++) {
        struct image image = {0};
        struct life life;
        if (!find_life(tape, file, entries, cut, &life))
            continue;
        make_image(tape, &life, mercy, &random, &image);
        write_image(&image, folder, tape->names[file]);
        free(image.bytes);
    }
}
