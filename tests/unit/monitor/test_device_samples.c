// What is recorded of readings of devices that no driver of the tests plays: instances that are
// taken away, devices that power down, and errors without end; and who samples.
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/monitor/sampler/device_samples.h"
#include "common/monitor/sampler/sampler.h"
#include "tests/support/folder.h"

enum { RING_RECORDS = 4096, DEVICES = 2, CODES = 3 };

#define SECOND  INT64_C(1000000000)
#define AT(s)   (INT64_C(1700000000000000000) + (s)*SECOND)
#define MEMORY  (INT64_C(1) << 30)
#define THERMAL 0x20 // a reason of throttling

static void *ring_memory, *name_memory;
static struct ring *ring;
static struct names *names;
static struct device_registry registry;
static _Atomic uint32_t device_count;
static struct device_samples *samples;
static struct gpu_reading gpus[DEVICES];
static struct gpu_snapshot snapshot;
static struct sampler_output output;
static double joules; // of the energy counter; negative: it is not told

static void *zeroed(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(memory);
    return memset(memory, 0, (size + 63) / 64 * 64);
}

// Two devices, the second an instance of the first.
TEST_FIXTURE(set_up)
{
    (void)state;
    ring_memory = zeroed(ring_size(RING_RECORDS));
    name_memory = zeroed(names_area_size());
    device_registry_init(&registry);
    assert_int_equal(ring_init(&ring, ring_memory, RING_RECORDS), STATUS_OK);
    assert_int_equal(names_open(&names, name_memory, NULL, NULL), STATUS_OK);
    output = (struct sampler_output){
        .ring = ring, .names = names, .registry = &registry, .device_count = &device_count};
    assert_int_equal(device_samples_open(&samples, &output, (uint64_t)SECOND, 1, NULL), STATUS_OK);
    memset(gpus, 0, sizeof gpus);
    snapshot = (struct gpu_snapshot){.gpus = gpus};
    joules = -1;
    for (int i = 0; i < DEVICES; i++) {
        struct gpu_info *info = &gpus[i].info;
        (void)snprintf(info->uuid, sizeof info->uuid, "%s-0", i ? "MIG" : "GPU");
        (void)snprintf(info->parent_uuid, sizeof info->parent_uuid, "%s", i ? "GPU-0" : "");
        (void)snprintf(info->name, sizeof info->name, "cuda:0%s", i ? ":0" : "");
        info->memory_bytes = MEMORY;
    }
    return 0;
}

TEST_FIXTURE(tear_down)
{
    (void)state;
    device_samples_close(samples);
    names_close(names);
    device_registry_deinit(&registry);
    free(ring_memory);
    free(name_memory);
    return 0;
}

// Reads the first `count` devices; `throttle` negative: they are powered down.
static void read_devices(int64_t at_ns, unsigned count, int64_t throttle)
{
    snapshot.began_ns = (uint64_t)at_ns;
    snapshot.ended_ns = (uint64_t)at_ns + 1;
    snapshot.count = count;
    for (unsigned i = 0; i < count; i++) {
        record_init(&gpus[i].sample, RECORD_KIND_DEVICE_SAMPLE, at_ns);
        if (throttle >= 0)
            record_set_int(&gpus[i].sample, DEVICE_SAMPLE_THROTTLE, throttle);
        if (throttle >= 0)
            record_set_real(&gpus[i].sample, DEVICE_SAMPLE_POWER, 100);
        if (joules >= 0)
            record_set_real(&gpus[i].sample, DEVICE_SAMPLE_ENERGY, joules);
    }
    device_samples_add(samples, &snapshot, at_ns);
    snapshot.xid_count = 0;
}

// Takes the next record of a kind from the ring; false if there is none.
static bool next_record(enum record_kind kind, struct record *out)
{
    while (ring_released(ring) < ring_produced(ring)) {
        const uint64_t number = ring_released(ring) + 1;
        const struct record *there = ring_at(ring, number);
        memset(out, 0, sizeof *out);
        memcpy(out, there, offsetof(struct record, values) + there->used);
        ring_release(ring, number);
        if (out->kind == kind)
            return true;
    }
    return false;
}

static const char *name_in(const struct record *record, unsigned column)
{
    return names_text(names, record->values[column].name, NULL);
}

static int64_t duration_of(const struct record *event)
{
    return record_has(event, EVENT_DURATION_NS) ? event->values[EVENT_DURATION_NS].i : -1;
}

TEST_CASE(events_of_an_instance_end_with_it)
{
    struct record event;
    read_devices(AT(0), 2, THERMAL);
    read_devices(AT(10), 1, THERMAL);
    read_devices(AT(11), 1, THERMAL);
    for (int i = 0; i < DEVICES; i++) {
        assert_true(next_record(RECORD_KIND_EVENT, &event));
        assert_string_equal(name_in(&event, EVENT_EVENT), "throttling");
        assert_int_equal(duration_of(&event), -1);
    }
    assert_true(next_record(RECORD_KIND_EVENT, &event));
    assert_string_equal(name_in(&event, EVENT_EVENT), "throttling");
    assert_string_equal(name_in(&event, EVENT_DEVICE), "cuda:0:0");
    assert_int_equal(event.started_ns, AT(0));
    assert_int_equal(duration_of(&event), 10 * SECOND);
    assert_false(next_record(RECORD_KIND_EVENT, &event)); // the instance is not lost
}

TEST_CASE(no_sample_of_what_is_powered_down)
{
    struct record record = {0};
    read_devices(AT(0), 1, -1);
    read_devices(AT(1), 1, -1);
    read_devices(AT(2), 1, 0);
    read_devices(AT(3), 1, -1);
    read_devices(AT(4), 1, 0);
    assert_true(next_record(RECORD_KIND_DEVICE, &record));
    for (int i = 0; i < 2; i++) {
        assert_true(next_record(RECORD_KIND_DEVICE_SAMPLE, &record));
        assert_int_equal(record.started_ns, AT(2 + 2 * i));
        assert_false(record_has(&record, DEVICE_SAMPLE_DURATION_NS)); // begins anew
    }
    assert_false(next_record(RECORD_KIND_EVENT, &record));
}

// Energy is that of the counter; of a device that never told one, power x time.
TEST_CASE(power_is_no_energy_where_there_is_a_counter)
{
    static const struct {
        double counter, used; // negative: absent
    } readings[] = {{-1, -1}, {-1, 100}, {500, -1}, {570, 70}, {-1, -1},
                    {-1, -1}, {-1, -1},  {900, -1}, {960, 60}, {10, -1}};
    struct record record = {0};
    for (size_t i = 0; i < COUNT_OF(readings); i++) {
        joules = readings[i].counter;
        read_devices(AT((int64_t)i), 1, 0);
        assert_true(next_record(RECORD_KIND_DEVICE_SAMPLE, &record));
        const bool has_used = record_has(&record, DEVICE_SAMPLE_ENERGY_USED);
        const double used = has_used ? record.values[DEVICE_SAMPLE_ENERGY_USED].r : -1;
        if (fabs(used - readings[i].used) > 0.01)
            fail_msg("reading %zu: %g J", i, used);
    }
}

// A device that reports 20 errors a second for 10 minutes, and one that reports a single one.
TEST_CASE(a_flood_of_errors_is_counted)
{
    enum { SECONDS = 600, RATE = 20 };
    struct record event;
    int64_t told = 0, records = 0, others = 0;
    for (int s = 0; s < SECONDS; s++) {
        for (int i = 0; i < RATE; i++)
            snapshot.xids[snapshot.xid_count++] = (struct gpu_xid){
                .uuid = "GPU-0", .code = 31 + i % CODES, .count = 1, .at_ns = AT(s)};
        if (s == 300)
            snapshot.xids[snapshot.xid_count++] =
                (struct gpu_xid){.uuid = "MIG-0", .code = 79, .count = 1, .at_ns = AT(s)};
        read_devices(AT(s), 2, 0);
    }
    device_samples_close(samples);
    samples = NULL;
    while (next_record(RECORD_KIND_EVENT, &event)) {
        long long more = 0;
        char detail[256] = "";
        assert_string_equal(name_in(&event, EVENT_EVENT), "xid");
        if (strcmp(name_in(&event, EVENT_DEVICE), "cuda:0:0") == 0) {
            assert_int_equal(event.values[EVENT_CODE].i, 79);
            assert_int_equal(event.started_ns, AT(300));
            others++;
            continue;
        }
        records++;
        assert_in_range(event.values[EVENT_CODE].i, 31, 33);
        assert_in_range(duration_of(&event), 0, 60 * SECOND);
        if (record_has(&event, EVENT_DETAIL)) {
            size_t size;
            const char *text = record_get_text(&event, EVENT_DETAIL, &size);
            memcpy(detail, text, size);
            assert_int_equal(sscanf(detail, "%lld errors", &more), 1);
        }
        told += more > 0 ? more : 1;
    }
    assert_int_equal(told, SECONDS * RATE);
    assert_int_equal(others, 1);
    assert_in_range(records, 20, 130);
}

// ---- Who samples ----------------------------------------------------------

static enum status start(void **out, void *context, int lock_fd, struct error *err)
{
    (void)err;
    *out = context;
    *(int *)context = lock_fd;
    return STATUS_OK;
}

static void request(void *fd, bool slow)
{
    (void)fd, (void)slow;
}

static enum driver_state collect(void *fd, struct gpu_snapshot **out)
{
    (void)fd, (void)out;
    return DRIVER_BUSY;
}

static void stop(void *fd, bool is_hung)
{
    (void)is_hung;
    fork_safe_lock_close(*(int *)fd);
}

// Hosts that share the user's folder sample each for themselves; of two processes of one user
// on one host, one does.
TEST_CASE(one_process_of_a_host_samples)
{
    static const struct driver_ops ops = {
        .start = start, .request = request, .collect = collect, .stop = stop};
    static const char *const boots[] = {"b0075d3a", "b0075d3a", "0ca11ed5"};
    struct sampler *samplers[COUNT_OF(boots)];
    int fds[COUNT_OF(boots)];
    char folder[FOLDER_PATH_SIZE], roots[COUNT_OF(boots)][FOLDER_PATH_SIZE];
    folder_make(folder);
    for (size_t i = 0; i < COUNT_OF(boots); i++) {
        char command[4 * FOLDER_PATH_SIZE], name[16];
        (void)snprintf(name, sizeof name, "host%zu", i);
        folder_path(roots[i], folder, name);
        (void)snprintf(command, sizeof command,
                       "d=%s/proc/sys/kernel/random; mkdir -p $d && echo %s > $d/boot_id", roots[i],
                       boots[i]);
        assert_int_equal(system(command), 0);
        fds[i] = -1;
        const struct sampler_settings settings = {.output = output,
                                                  .interval_ms = 1000,
                                                  .host = "host",
                                                  .collector = folder,
                                                  .driver = &ops,
                                                  .driver_context = &fds[i],
                                                  .host_root = roots[i]};
        assert_int_equal(sampler_open(&samplers[i], &settings, NULL), STATUS_OK);
        sampler_step(samplers[i], (uint64_t)SECOND, AT(0));
    }
    assert_true(fds[0] >= 0);
    assert_int_equal(fds[1], -1);
    assert_true(fds[2] >= 0);
    sampler_close(samplers[0]);
    sampler_step(samplers[1], (uint64_t)(2 * SECOND), AT(1));
    assert_true(fds[1] >= 0);
    sampler_close(samplers[1]);
    sampler_close(samplers[2]);
    folder_remove(folder);
}

TEST_MAIN_EACH(set_up, tear_down, events_of_an_instance_end_with_it,
               no_sample_of_what_is_powered_down, power_is_no_energy_where_there_is_a_counter,
               a_flood_of_errors_is_counted, one_process_of_a_host_samples)
