#include "tests/support/spool_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_line(bool holds, int line)
{
    if (holds)
        return;
    (void)fprintf(stderr, "spool_rig.c:%d: the property does not hold\n", line);
    abort();
}

#define check(holds) check_line(holds, __LINE__)

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static void fill_operation(struct record *out, uint64_t random)
{
    char text[RECORD_SIZE];
    const size_t size = random >> 8 & 0xff; // some take two slots of a ring
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + mix(random + i) % 26);
    record_init(out, RECORD_KIND_OPERATION, 0);
    record_set_name(out, OPERATION_OPERATION, 1 + (uint32_t)(random >> 20) % RIG_NAMES);
    record_set_int(out, OPERATION_DURATION_NS, (int64_t)random);
    if (size > 0)
        (void)record_set_text(out, OPERATION_EXTRA, text, size);
}

static void fill_itl(struct record *out, uint64_t random)
{
    unsigned char blob[128];
    for (size_t i = 0; i < sizeof blob; i++)
        blob[i] = (unsigned char)mix(random + i);
    record_init(out, RECORD_KIND_ITL, 0);
    record_set_name(out, ITL_MODEL, 1 + (uint32_t)(random >> 20) % 3);
    record_set_name(out, ITL_DEVICE, 1);
    record_set_int(out, ITL_DURATION_NS, (int64_t)random);
    (void)record_set_blob(out, ITL_SKETCH, blob, 1 + (random >> 8) % sizeof blob);
}

static void fill_inference(struct record *out, uint64_t random)
{
    record_init(out, RECORD_KIND_INFERENCE, 0);
    record_set_name(out, INFERENCE_MODEL, 1 + (uint32_t)(random >> 20) % 7);
    record_set_name(out, INFERENCE_DEVICE, 2);
    for (unsigned i = INFERENCE_DEVICE + 1; i < INFERENCE_ERROR; i++)
        record_set_int(out, i, (int64_t)mix(random + i));
}

void rig_record(struct record *out, uint32_t stream, uint64_t number)
{
    static void (*const fill[])(struct record *, uint64_t) = {fill_operation, fill_inference,
                                                              fill_operation, fill_itl};
    const uint64_t random = mix((uint64_t)stream << 48 | number);
    memset(out, 0, sizeof *out);
    fill[random & 3](out, random);
    out->started_ns = (int64_t)(number * 1000 + stream);
}

const struct record *rig_get(const void *stream, uint64_t number)
{
    static struct record record;
    rig_record(&record, *(const uint32_t *)stream, number);
    return &record;
}

bool rig_is_record(const struct record *record, uint32_t stream, uint64_t number)
{
    struct record wanted;
    rig_record(&wanted, stream, number);
    return record->used == wanted.used &&
           memcmp(record, &wanted, offsetof(struct record, values) + wanted.used) == 0;
}

struct runfile_run rig_run(void)
{
    struct runfile_run run = {.pid = 4711, .started_ns = 42};
    for (unsigned i = 0; i < sizeof run.uuid; i++)
        run.uuid[i] = (unsigned char)(0x10 + i);
    (void)snprintf(run.program, sizeof run.program, "engine 1.0");
    (void)snprintf(run.collector, sizeof run.collector, "tcp://collector:5571");
    (void)snprintf(run.host.host, sizeof run.host.host, "host-1");
    (void)snprintf(run.host.cpu, sizeof run.host.cpu, "a processor \xe2\x82\xac");
    run.host.cpu_count = 64;
    run.host.memory_bytes = INT64_C(1) << 40;
    return run;
}

static void *names_area;

struct names *rig_names(void)
{
    const size_t size = (names_area_size() + 63) / 64 * 64;
    struct names *names = NULL;
    names_area = aligned_alloc(64, size);
    check(names_area != NULL);
    memset(names_area, 0, size);
    check(names_open(&names, names_area, NULL, NULL) == STATUS_OK);
    for (unsigned i = 1; i <= RIG_NAMES; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "name-%u-%.*s", i, (int)(i % 40),
                       "0123456789012345678901234567890123456789");
        check(names_add(names, text) == i);
    }
    return names;
}

void rig_names_free(struct names *names)
{
    names_close(names);
    free(names_area);
}

struct rig_faults rig_faults;

// Whether this call is to fail; errno is set then.
static bool fails(void)
{
    const uint64_t call = ++rig_faults.calls;
    if (rig_faults.fail_at == 0 || call < rig_faults.fail_at ||
        call - rig_faults.fail_at >= rig_faults.fail_count)
        return false;
    errno = rig_faults.fault;
    return true;
}

static int rig_open(int folder, const char *name, int flags, mode_t mode)
{
    return fails() ? -1 : openat(folder, name, flags, mode);
}

static bool is_interrupted(void)
{
    static unsigned calls;
    if (!rig_faults.interrupt || ++calls % 2 != 0)
        return false;
    errno = EINTR;
    return true;
}

static size_t shortened(size_t size)
{
    return size > rig_faults.short_by ? size - rig_faults.short_by : size;
}

static ssize_t rig_read(int fd, void *bytes, size_t size, off_t offset)
{
    return fails() || is_interrupted() ? -1 : pread(fd, bytes, shortened(size), offset);
}

static ssize_t rig_write(int fd, const void *bytes, size_t size, off_t offset)
{
    if (is_interrupted())
        return -1;
    if (fails()) { // after a part of it
        (void)!pwrite(fd, bytes, size / 2, offset);
        errno = rig_faults.fault;
        return -1;
    }
    return pwrite(fd, bytes, shortened(size), offset);
}

static int rig_truncate(int fd, off_t size)
{
    return fails() ? -1 : ftruncate(fd, size);
}

static int rig_sync(int fd)
{
    (void)fd;
    return fails() || is_interrupted() ? -1 : 0;
}

static int rig_sync_folder(int fd)
{
    (void)fd;
    return fails() ? -1 : 0;
}

static int rig_remove(int folder, const char *name)
{
    return fails() ? -1 : unlinkat(folder, name, 0);
}

static int rig_space(int fd, struct statvfs *out)
{
    const int result = fails() ? -1 : fstatvfs(fd, out);
    if (result == 0 && rig_faults.free_bytes > 0)
        out->f_bavail = rig_faults.free_bytes / out->f_frsize;
    return result;
}

const struct spool_io rig_io = {
    .open = rig_open,
    .read = rig_read,
    .write = rig_write,
    .truncate = rig_truncate,
    .sync = rig_sync,
    .sync_folder = rig_sync_folder,
    .remove = rig_remove,
    .space = rig_space,
};

static bool take_range(void *context, const struct delivery_range *range)
{
    struct rig_model *model = context;
    check(range->stream < RIG_STREAMS && range->first <= range->last);
    check(range->first > model->released[range->stream]);
    check(range->last <= model->spooled[range->stream]);
    check(range->since_ns <= range->until_ns);
    check(range->reason == DELIVERY_SPOOL_FULL || range->reason == DELIVERY_SPOOL_DAMAGED);
    for (size_t i = 0; i < model->lost_count; i++)
        check(model->lost[i].stream != range->stream || model->lost[i].last < range->first ||
              model->lost[i].first > range->last);
    check(model->lost_count < RIG_LOST_MAX);
    model->lost[model->lost_count++] = *range;
    return true;
}

void rig_take_lost(struct rig_model *model, struct spool *spool)
{
    static struct rig_model before;
    before = *model;
    model->lost_count = 0;
    check(spool_each_lost(spool, take_range, model));
    check(model->lost_count == 0 || spool_losses(spool) > 0);
    for (size_t i = 0; i < before.lost_count; i++) // what is lost stays so until it is released
        for (uint64_t end = before.lost[i].last; end >= before.lost[i].first; end--)
            check(end <= model->released[before.lost[i].stream] ||
                  rig_is_lost(model, before.lost[i].stream, end));
}

bool rig_is_lost(const struct rig_model *model, uint32_t stream, uint64_t number)
{
    for (size_t i = 0; i < model->lost_count; i++)
        if (model->lost[i].stream == stream && model->lost[i].first <= number &&
            model->lost[i].last >= number)
            return true;
    return false;
}

uint64_t rig_check(struct rig_model *model, struct spool *spool)
{
    uint64_t count = 0;
    rig_take_lost(model, spool);
    for (uint32_t stream = 0; stream < RIG_STREAMS; stream++) {
        check(spool_position(spool, stream).spooled == model->spooled[stream]);
        check(!spool_at(spool, stream, model->spooled[stream] + 1));
        for (uint64_t number = model->released[stream] + 1; number <= model->spooled[stream];
             number++) {
            const struct record *record = spool_at(spool, stream, number);
            check(!record || rig_is_record(record, stream, number));
            if (!record && !rig_is_lost(model, stream, number))
                rig_take_lost(model, spool);
            check(rig_is_lost(model, stream, number) == !record);
            count += record != NULL;
        }
    }
    return count;
}

void rig_attach(struct rig_model *model, const struct spool *spool)
{
    model->lost_count = 0;
    for (uint32_t stream = 0; stream < RIG_STREAMS; stream++) {
        const struct spool_position position = spool_position(spool, stream);
        check(position.released <= model->released[stream]);
        check(position.spooled <= model->spooled[stream] ||
              position.spooled <= model->tried[stream]);
        model->released[stream] = position.released;
        model->spooled[stream] = position.spooled;
    }
}

static uint64_t bytes_found;

static int add_bytes(const char *path, const struct stat *about, int type, struct FTW *ftw)
{
    (void)ftw;
    const size_t size = strlen(path);
    if (type == FTW_F && size > 4 && strcmp(path + size - 4, ".seg") == 0)
        bytes_found += (uint64_t)about->st_size;
    return 0;
}

uint64_t rig_disk_bytes(const char *path)
{
    bytes_found = 0;
    (void)nftw(path, add_bytes, 8, FTW_PHYS);
    return bytes_found;
}
