#include "common/monitor/runfile/runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/sys/files.h"

enum {
    PATH_ROOM = 4096,
    FREE_PARTS = 32, // a ring takes at most this part of the free space, or has the least slots
};

static const char file_magic[8] = "inferrun";
static const uint64_t stream_magic = UINT64_C(0x316d616572747369); // "istream1"

struct runfile_header {
    char magic[8];
    uint32_t version;
    uint32_t header_size;
    uint32_t page_size;
    uint32_t ring_records;
    uint64_t names_offset, names_size;
    uint64_t streams_offset, stream_size;
    struct runfile_run run;
    char spool[RUNFILE_SPOOL_SIZE];
    _Alignas(64) struct runfile_state state;
};

_Static_assert(sizeof(struct runfile_header) <= RUNFILE_HEADER_SIZE, "the header has its page");
_Static_assert(sizeof(struct runfile_stream_header) <= RUNFILE_STREAM_HEADER,
               "room for a stream's");
_Static_assert(RUNFILE_HEADER_SIZE % 64 == 0 && RUNFILE_STREAM_HEADER % 64 == 0, "alignment");

struct runfile {
    char path[PATH_ROOM];
    int lock_fd;
    int fd;                        // mapped and grown through this one, which holds no lock
    struct runfile_header *header; // mapped: header and names
    struct names *names;
    _Atomic uint32_t stream_count;
    struct runfile_stream streams[DELIVERY_STREAMS_MAX];
    size_t mapped[DELIVERY_STREAMS_MAX]; // bytes of each stream's place
};

// ---- Layout -----------------------------------------------------------------

static size_t round_up(size_t size, size_t step)
{
    return (size + step - 1) / step * step;
}

// Computes the layout from page size and ring capacity.
static void lay_out(struct runfile_header *header, uint32_t page_size, uint32_t ring_records)
{
    header->version = RUNFILE_VERSION;
    header->header_size = RUNFILE_HEADER_SIZE;
    header->page_size = page_size;
    header->ring_records = ring_records;
    header->names_offset = RUNFILE_HEADER_SIZE;
    header->names_size = names_area_size();
    header->streams_offset = round_up(RUNFILE_HEADER_SIZE + names_area_size(), page_size);
    header->stream_size = round_up(RUNFILE_STREAM_HEADER + ring_size(ring_records), page_size);
}

static uint64_t stream_offset(const struct runfile_header *header, uint32_t stream)
{
    return header->streams_offset + stream * header->stream_size;
}

static bool allocate(int fd, uint64_t offset, uint64_t size)
{
    int fault;
    do
        fault = posix_fallocate(fd, (off_t)offset, (off_t)size);
    while (fault == EINTR);
    return fault == 0;
}

static bool back_names(void *context, size_t offset, size_t size)
{
    struct runfile *file = context;
    return allocate(file->fd, file->header->names_offset + offset, size);
}

static void *map(int fd, uint64_t offset, uint64_t size, int flags)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, (off_t)offset);
    return memory == MAP_FAILED ? NULL : memory;
}

// ---- Creating -------------------------------------------------------------------

static struct runfile *new_runfile(void)
{
    struct runfile *file = calloc(1, sizeof *file);
    if (file) {
        file->fd = -1;
        file->lock_fd = -1;
    }
    return file;
}

static enum status fail(struct error *err, const char *path, const char *what)
{
    const int fault = errno;
    enum status status = STATUS_IO;
    if (fault == EACCES || fault == EROFS)
        status = STATUS_DENIED;
    else if (fault == ENOENT)
        status = STATUS_NOT_FOUND;
    return error_set(err, status, "run file %s: %s: %s", path, what, strerror(fault));
}

// Creates the file at `path`, locked through one descriptor and open through another.
static enum status create_locked(struct runfile *file, const char *path, struct error *err)
{
    file->lock_fd = fork_safe_lock_acquire(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file->lock_fd < 0)
        return fail(err, path, "cannot be created");
    file->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return file->fd < 0 ? fail(err, path, "cannot be opened") : STATUS_OK;
}

static enum status fill_header(struct runfile *file, const struct runfile_run *run,
                               uint32_t ring_records, struct error *err)
{
    struct runfile_header layout = {.version = 0};
    lay_out(&layout, (uint32_t)sysconf(_SC_PAGESIZE), ring_records);
    if (ftruncate(file->fd, (off_t)layout.streams_offset) != 0)
        return fail(err, file->path, "cannot be grown");
    if (!allocate(file->fd, 0, RUNFILE_HEADER_SIZE))
        return error_set(err, STATUS_IO,
                         "run file %s: no room on the file system (name another folder)",
                         file->path);
    file->header = map(file->fd, 0, layout.streams_offset, 0);
    if (!file->header)
        return fail(err, file->path, "cannot be mapped");

    lay_out(file->header, layout.page_size, ring_records);
    file->header->run = *run;
    memcpy(file->header->magic, file_magic, sizeof file_magic);
    char *area = (char *)file->header + file->header->names_offset;
    enum status status = names_open(&file->names, area, back_names, file);
    if (status != STATUS_OK)
        return error_set(err, status, "run file %s: no room for names", file->path);
    return STATUS_OK;
}

// Renames the file to its final name; never replaces an existing file.
static enum status rename_file(const struct runfile *file, const char *making, struct error *err)
{
    if (renameat2(AT_FDCWD, making, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0)
        return STATUS_OK;
    if (errno == EEXIST)
        return error_set(err, STATUS_BUSY, "run file %s: already exists", file->path);
    if (errno != EINVAL || rename(making, file->path) != 0) // EINVAL: not supported there
        return fail(err, file->path, "cannot be renamed");
    return STATUS_OK;
}

enum status runfile_create(struct runfile **out, const char *folder, const struct runfile_run *run,
                           uint32_t ring_records, struct error *err)
{
    struct runfile *file = new_runfile();
    if (!file)
        return error_no_memory(err, "run file");

    // The file gets its final name after it is initialised and locked.
    char uuid[37], name[64], new_name[64], making[PATH_ROOM];
    text_from_uuid(uuid, run->uuid);
    (void)snprintf(name, sizeof name, "%s.run", uuid);
    (void)snprintf(new_name, sizeof new_name, "%s.run.new", uuid);
    enum status status = files_join(file->path, sizeof file->path, folder, name, err);
    if (status == STATUS_OK)
        status = files_join(making, sizeof making, folder, new_name, err);
    if (status == STATUS_OK)
        status = create_locked(file, making, err);
    if (status == STATUS_OK) {
        status = fill_header(file, run, ring_records, err);
        if (status == STATUS_OK)
            status = rename_file(file, making, err);
        if (status != STATUS_OK)
            (void)unlink(making);
    }
    if (status != STATUS_OK) {
        runfile_close(file);
        return status;
    }
    *out = file;
    return STATUS_OK;
}

// Deallocates the whole pages of a part of the file; they read as 0.
static void punch(const struct runfile *file, uint64_t offset, uint64_t size)
{
    const uint64_t page_size = file->header->page_size;
    const uint64_t end = (offset + size) / page_size * page_size;
    offset = (offset + page_size - 1) / page_size * page_size;
    if (offset < end)
        (void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                        (off_t)(end - offset));
}

void runfile_trim(struct runfile *file)
{
    const uint32_t count = runfile_stream_count(file);
    for (uint32_t i = 0; i < count; i++) {
        struct ring_part parts[2];
        ring_free_parts(file->streams[i].ring, parts);
        const uint64_t offset = stream_offset(file->header, i) + RUNFILE_STREAM_HEADER;
        for (unsigned part = 0; part < 2; part++)
            punch(file, offset + parts[part].offset, parts[part].size);
    }
}

void runfile_close(struct runfile *file)
{
    if (!file)
        return;
    const uint32_t count = atomic_load_explicit(&file->stream_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        (void)munmap(file->streams[i].header, file->mapped[i]);
    names_close(file->names);
    if (file->header)
        (void)munmap(file->header, file->header->streams_offset);
    if (file->fd >= 0)
        (void)close(file->fd);
    fork_safe_lock_close(file->lock_fd);
    free(file);
}

void runfile_remove(struct runfile *file)
{
    if (file)
        (void)unlink(file->path);
    runfile_close(file);
}

// ---- Opening the file of a dead process -------------------------------------------

const struct runfile_text runfile_texts[RUNFILE_TEXTS] = {
#define RUN_TEXT(member)                                                                           \
    {                                                                                              \
        offsetof(struct runfile_run, member), sizeof(((struct runfile_run *)NULL)->member)         \
    }
    RUN_TEXT(program),           RUN_TEXT(collector),      RUN_TEXT(host.host),
    RUN_TEXT(host.os),           RUN_TEXT(host.kernel),    RUN_TEXT(host.cpu),
    RUN_TEXT(host.cpu_governor), RUN_TEXT(host.container),
#undef RUN_TEXT
};

// Whether all texts are terminated and UTF-8.
static bool run_is_valid(const struct runfile_run *run)
{
    for (size_t i = 0; i < RUNFILE_TEXTS; i++) {
        const char *text = (const char *)run + runfile_texts[i].offset;
        const size_t size = strnlen(text, runfile_texts[i].size);
        if (size == runfile_texts[i].size || (size > 0 && !text_is_utf8(text, size)))
            return false;
    }
    return true;
}

// Whether this is a run file, of any version.
static bool is_run_file(const struct runfile_header *header)
{
    return memcmp(header->magic, file_magic, sizeof file_magic) == 0;
}

static bool is_known_version(uint32_t version)
{
    return version >= RUNFILE_VERSION_MIN && version <= RUNFILE_VERSION;
}

// Checks the header against the layout that follows from page size and ring capacity.
static bool header_is_valid(const struct runfile_header *header, uint64_t file_size)
{
    const uint32_t page_size = header->page_size;
    const uint32_t records = header->ring_records;
    if (!is_run_file(header) || !is_known_version(header->version) || page_size < 4096 ||
        page_size > (1U << 20) || page_size % (uint32_t)sysconf(_SC_PAGESIZE) != 0 || records < 2 ||
        records > (1U << 20) || (records & (records - 1)) != 0)
        return false;
    struct runfile_header wanted = {.version = 0};
    lay_out(&wanted, page_size, records);
    const uint32_t streams = atomic_load_explicit(&header->state.streams, memory_order_acquire);
    return header->header_size == wanted.header_size &&
           header->names_offset == wanted.names_offset && header->names_size == wanted.names_size &&
           header->streams_offset == wanted.streams_offset &&
           header->stream_size == wanted.stream_size && streams <= DELIVERY_STREAMS_MAX &&
           file_size >= stream_offset(&wanted, streams) && run_is_valid(&header->run) &&
           memchr(header->spool, '\0', sizeof header->spool);
}

static enum status set_path(struct runfile *file, const char *path, struct error *err)
{
    if (strlen(path) >= sizeof file->path)
        return error_set(err, STATUS_INVALID, "run file: path is too long");
    memcpy(file->path, path, strlen(path) + 1);
    return STATUS_OK;
}

static enum status corrupt(struct error *err, const struct runfile *file, const char *what)
{
    return error_set(err, STATUS_CORRUPT, "run file %s: %s", file->path, what);
}

// Reads and validates the header, which says how large the rest is.
static enum status read_header(struct runfile_header *out, const struct runfile *file,
                               struct error *err)
{
    struct stat about;
    if (fstat(file->fd, &about) != 0)
        return fail(err, file->path, "cannot be read");
    if (!S_ISREG(about.st_mode) || about.st_size < RUNFILE_HEADER_SIZE)
        return corrupt(err, file, "too short, or not a regular file");
    if (pread(file->fd, out, sizeof *out, 0) != (ssize_t)sizeof *out)
        return fail(err, file->path, "cannot be read");
    if (is_run_file(out) && !is_known_version(out->version))
        return error_set(err, STATUS_UNSUPPORTED,
                         "run file %s: unsupported version %" PRIu32 " (replay it with the program "
                         "that wrote it)",
                         file->path, out->version);
    // Size last: the file of a live process grows before its header is updated.
    if (fstat(file->fd, &about) != 0 || !header_is_valid(out, (uint64_t)about.st_size))
        return corrupt(err, file, "invalid header");
    return STATUS_OK;
}

static enum status attach_header(struct runfile *file, struct error *err)
{
    struct runfile_header header;
    const enum status status = read_header(&header, file, err);
    if (status != STATUS_OK)
        return status;
    file->header = map(file->fd, 0, header.streams_offset, 0);
    return file->header ? STATUS_OK : fail(err, file->path, "cannot be mapped");
}

enum status runfile_look(struct runfile_run *out, const char *path, struct error *err)
{
    struct runfile *file = new_runfile();
    struct runfile_header header;
    if (!file)
        return error_no_memory(err, "run file");
    enum status status = set_path(file, path, err);
    if (status == STATUS_OK) {
        // O_NONBLOCK: it may be a FIFO.
        file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        status =
            file->fd < 0 ? fail(err, path, "cannot be opened") : read_header(&header, file, err);
    }
    if (status == STATUS_OK)
        *out = header.run;
    runfile_close(file);
    return status;
}

static enum status attach_streams(struct runfile *file, struct error *err)
{
    const struct runfile_header *header = file->header;
    const uint32_t count = atomic_load_explicit(&header->state.streams, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct runfile_stream *stream = &file->streams[i];
        stream->header = map(file->fd, stream_offset(header, i), header->stream_size, 0);
        if (!stream->header)
            return fail(err, file->path, "cannot be mapped");
        file->mapped[i] = header->stream_size;
        atomic_store_explicit(&file->stream_count, i + 1, memory_order_release);
        if (stream->header->magic != stream_magic || stream->header->stream != i)
            return corrupt(err, file, "invalid header of a stream");
        char *memory = (char *)stream->header + RUNFILE_STREAM_HEADER;
        if (ring_attach(&stream->ring, memory, header->stream_size - RUNFILE_STREAM_HEADER) !=
                STATUS_OK ||
            ring_capacity(stream->ring) > header->ring_records)
            return corrupt(err, file, "invalid header of a ring");
    }
    return STATUS_OK;
}

// The locked file may have been removed while this process waited for the lock.
static enum status check_owner(const struct runfile *file, struct error *err)
{
    struct stat about;
    if (fstat(file->lock_fd, &about) != 0)
        return fail(err, file->path, "cannot be read");
    if (about.st_nlink == 0)
        return error_set(err, STATUS_NOT_FOUND, "run file %s: was removed", file->path);
    if (about.st_uid != geteuid())
        return error_set(err, STATUS_DENIED, "run file %s: it belongs to another user", file->path);
    return STATUS_OK;
}

static enum status open_locked(struct runfile *file, struct error *err)
{
    file->lock_fd = fork_safe_lock_acquire(file->path, O_RDWR, 0);
    if (file->lock_fd < 0 && errno == EWOULDBLOCK)
        return error_set(err, STATUS_BUSY, "run file %s: its process is alive", file->path);
    if (file->lock_fd < 0)
        return fail(err, file->path, "cannot be opened");
    enum status status = check_owner(file, err);
    if (status != STATUS_OK)
        return status;
    file->fd = open(file->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return file->fd < 0 ? fail(err, file->path, "cannot be opened") : STATUS_OK;
}

enum status runfile_attach(struct runfile **out, const char *path, struct error *err)
{
    struct runfile *file = new_runfile();
    if (!file)
        return error_no_memory(err, "run file");
    enum status status = set_path(file, path, err);
    if (status == STATUS_OK)
        status = open_locked(file, err);
    if (status == STATUS_OK)
        status = attach_header(file, err);
    if (status == STATUS_OK &&
        names_attach(&file->names, (char *)file->header + file->header->names_offset) != STATUS_OK)
        status = corrupt(err, file, "invalid names");
    if (status == STATUS_OK)
        status = attach_streams(file, err);
    if (status != STATUS_OK) {
        runfile_close(file);
        return status;
    }
    runfile_trim(file);
    *out = file;
    return STATUS_OK;
}

// ---- Accessors ------------------------------------------------------------------

const char *runfile_path(const struct runfile *file)
{
    return file->path;
}

const struct runfile_run *runfile_run(const struct runfile *file)
{
    return &file->header->run;
}

struct runfile_state *runfile_state(struct runfile *file)
{
    return &file->header->state;
}

struct names *runfile_names(struct runfile *file)
{
    return file->names;
}

const char *runfile_spool(const struct runfile *file)
{
    return file->header->spool;
}

enum status runfile_set_spool(struct runfile *file, const char *folder, struct error *err)
{
    const size_t size = strlen(folder) + 1;
    if (size > sizeof file->header->spool)
        return error_set(err, STATUS_INVALID, "spool folder: its path has more than %d bytes",
                         RUNFILE_SPOOL_SIZE - 1);
    memcpy(file->header->spool, folder, size);
    return STATUS_OK;
}

// ---- Streams --------------------------------------------------------------------

// Allocates the place of stream `stream`, for a ring of as many slots as the options say or, where
// they would take more than a part of what is free, half as many, and so on.  Returns its size in
// bytes; 0: no room.
static size_t allocate_stream(const struct runfile *file, uint32_t stream, uint32_t *records)
{
    const struct runfile_header *header = file->header;
    const uint64_t offset = stream_offset(header, stream);
    struct statvfs space;
    uint64_t part = UINT64_MAX;
    if (fstatvfs(file->fd, &space) == 0)
        part = (uint64_t)space.f_bavail * space.f_frsize / FREE_PARTS;
    for (*records = header->ring_records;; *records /= 2) {
        const bool is_least = *records <= RUNFILE_RING_MIN;
        const size_t size = RUNFILE_STREAM_HEADER + ring_size(*records);
        if ((is_least || ring_size(*records) <= part) && allocate(file->fd, offset, size))
            return ftruncate(file->fd, (off_t)(offset + header->stream_size)) == 0 ? size : 0;
        if (is_least)
            return 0;
    }
}

enum status runfile_add_stream(struct runfile *file, struct runfile_stream *out, struct error *err)
{
    struct runfile_header *header = file->header;
    const uint32_t count = atomic_load_explicit(&file->stream_count, memory_order_relaxed);
    if (count == DELIVERY_STREAMS_MAX)
        return error_set(err, STATUS_FULL, "run file %s: has the maximum of %d streams", file->path,
                         DELIVERY_STREAMS_MAX);
    uint32_t records;
    const size_t size = allocate_stream(file, count, &records);
    if (size == 0)
        return error_set(err, STATUS_FULL,
                         "run file %s: no room for another thread's records on the file system",
                         file->path);

    // MAP_POPULATE: no page faults later in the engine's threads.
    struct runfile_stream stream = {.header = NULL};
    stream.header = map(file->fd, stream_offset(header, count), size, MAP_POPULATE);
    if (!stream.header)
        return error_set(err, STATUS_FULL, "run file %s: cannot be mapped: %s", file->path,
                         strerror(errno));
    char *memory = (char *)stream.header + RUNFILE_STREAM_HEADER;
    enum status status = ring_init(&stream.ring, memory, records);
    if (status != STATUS_OK) {
        (void)munmap(stream.header, size);
        return error_set(err, status, "run file %s: a ring cannot hold %u records", file->path,
                         records);
    }
    stream.header->stream = count;
    stream.header->magic = stream_magic;
    file->streams[count] = stream;
    file->mapped[count] = size;
    atomic_store_explicit(&file->stream_count, count + 1, memory_order_release);
    atomic_store_explicit(&header->state.streams, count + 1, memory_order_release);
    *out = stream;
    return STATUS_OK;
}

uint32_t runfile_stream_count(const struct runfile *file)
{
    return atomic_load_explicit(&file->stream_count, memory_order_acquire);
}

struct runfile_stream runfile_stream(const struct runfile *file, uint32_t stream)
{
    return file->streams[stream];
}

struct runfile_counts runfile_counts(const struct runfile *file)
{
    struct runfile_counts counts = {
        .no_room = atomic_load_explicit(&file->header->state.streamless, memory_order_relaxed)};
    counts.dropped = counts.no_room;
    const uint32_t count = runfile_stream_count(file);
    for (uint32_t i = 0; i < count; i++) {
        const struct ring *ring = file->streams[i].ring;
        counts.produced += ring_produced(ring);
        counts.unreleased += ring_produced(ring) - ring_released(ring);
        counts.dropped += ring_dropped(ring);
    }
    return counts;
}

char *runfile_activity_text(char *text, size_t size, const struct runfile *file, uint32_t stream)
{
    static const char *const words[ACTIVITY_COUNT] = {
        [ACTIVITY_STARTUP] = "startup",     [ACTIVITY_LOAD] = "load",
        [ACTIVITY_PREFILL] = "prefill",     [ACTIVITY_DECODE] = "decode",
        [ACTIVITY_OPERATION] = "operation", [ACTIVITY_INFERENCE] = "inference",
    };
    const struct runfile_stream_header *header = file->streams[stream].header;
    const uint64_t activity = atomic_load_explicit(&header->activity, memory_order_relaxed);
    const uint64_t what = activity & 0xff;
    if (what == ACTIVITY_IDLE || what >= ACTIVITY_COUNT) {
        text[0] = '\0';
        return text;
    }
    const char *name = names_text(file->names, (uint32_t)(activity >> 8), NULL);
    char request[32] = "";
    if (what == ACTIVITY_PREFILL || what == ACTIVITY_DECODE || what == ACTIVITY_INFERENCE)
        (void)snprintf(request, sizeof request, " request %" PRIu64,
                       atomic_load_explicit(&header->request, memory_order_relaxed));
    (void)snprintf(text, size, *name ? "%s %s%s" : "%s%s%s", words[what], name, request);
    return text;
}
