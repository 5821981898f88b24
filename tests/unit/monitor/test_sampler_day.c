// A day of the sampler, with a clock of the test's own and a driver that hangs, loses devices, is
// loaded again and has trouble at times drawn by INFERSTAT_TEST_SEED.  The test knows what it did:
// every event must be found with its start and end within a period, and no other; every sample must
// be one that the driver gave.
#include "tests/support/test.h"

#include <math.h>

#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/monitor/sampler/sampler.h"
#include "tests/support/folder.h"

enum {
    DEVICES = 4,
    SLOTS = 72, // of 20 minutes, each with at most one event of a device
    EVENTS_MAX = 4 * DEVICES * SLOTS,
    RING_RECORDS = 4096,
};

static const int64_t second_ns = 1000000000, slot_s = 1200, day_s = 86400;
static const int64_t wall_start_ns = INT64_C(1700000000000000000);
static const double tolerance_s = 1.3; // a period, and the time that a reading takes

enum trouble {
    CALM,
    THROTTLED,
    FLICKERING,
    NARROW,
    CORRECTED,
    UNCORRECTED,
    STRANGER,
    XID,
    PULLED,
    TROUBLES
};

static const char *const trouble_names[TROUBLES] = {
    [THROTTLED] = "throttling",
    [FLICKERING] = "throttling",
    [NARROW] = "pcie_downgrade",
    [CORRECTED] = "ecc_corrected",
    [UNCORRECTED] = "ecc_uncorrected",
    [STRANGER] = "foreign_process",
    [XID] = "xid",
    [PULLED] = "device_lost",
};

// An event, as injected and as recorded.  Times in seconds of the day.
struct happening {
    const char *name;
    int device; // -1: the host
    double start, end;
    bool begun, ended; // recorded
};

static struct {
    uint64_t seed;
    double now; // seconds of the day

    // What each device does in each slot.
    struct slot {
        enum trouble trouble;
        double start, end;
    } slots[DEVICES][SLOTS];
    double joules[DEVICES];       // used in all
    double counter_zero[DEVICES]; // where its counter was 0
    int64_t errors[DEVICES][2];
    double ticked; // until when the above are known

    // The driver.
    bool is_asked;
    int threads; // in the driver
    double answer_at;
    struct gpu_snapshot snapshot;
    struct gpu_reading readings[DEVICES];
    int lock_fd;
    int64_t serial[DEVICES]; // of readings given
    bool xid_given[DEVICES][SLOTS];

    struct happening events[EVENTS_MAX];
    size_t event_count;
    int64_t sample_count[DEVICES];
    double energy_seen[DEVICES];
} sim;

static double draw(double low, double high)
{
    sim.seed = sim.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(sim.seed >> 11) / 9007199254740992.0;
}

// ---- What happens ---------------------------------------------------------

// The driver hangs for an hour twice, for half a minute now and then, and is slow at times.
static const struct {
    double start, end;
} hangs[] = {{4.05 * 3600, 5.05 * 3600},
             {13.1 * 3600, 14.1 * 3600},
             {20000.5, 20030.0},
             {70000.2, 70012.7},
             {30000.0, 30001.8}},
  reloads[] = {{8.5 * 3600, 8.5 * 3600 + 20}, {22.5 * 3600, 22.5 * 3600 + 5}};

enum { HANGS = sizeof hangs / sizeof *hangs, RELOADS = sizeof reloads / sizeof *reloads };

static void expect(const char *name, int device, double start, double end)
{
    assert_true(sim.event_count < EVENTS_MAX);
    sim.events[sim.event_count++] =
        (struct happening){.name = name, .device = device, .start = start, .end = end};
}

// True if something of all devices happens in that slot.
static bool is_reserved(int slot)
{
    const double start = (double)slot * (double)slot_s, end = start + (double)slot_s;
    for (int i = 0; i < HANGS; i++)
        if (hangs[i].start < end && hangs[i].end > start)
            return true;
    for (int i = 0; i < RELOADS; i++)
        if (reloads[i].start < end && reloads[i].end > start)
            return true;
    return false;
}

static void plan(void)
{
    for (int i = 0; i < HANGS; i++)
        if (hangs[i].end - hangs[i].start > 2.0)
            expect("driver_hang", -1, hangs[i].start, hangs[i].end);
    for (int d = 0; d < DEVICES; d++) {
        for (int i = 0; i < RELOADS; i++)
            expect("device_lost", d, reloads[i].start, reloads[i].end);
        for (int s = 0; s < SLOTS; s++) {
            struct slot *slot = &sim.slots[d][s];
            if (is_reserved(s) || draw(0, 1) < 0.3)
                continue;
            slot->trouble = (enum trouble)(1 + (int)draw(0, TROUBLES - 1.001));
            slot->start = (double)s * (double)slot_s + draw(60, 500);
            slot->end = slot->start + draw(8, 400);
            if (slot->trouble == XID)
                slot->end = slot->start;
            expect(trouble_names[slot->trouble], d, slot->start, slot->end);
        }
    }
}

static const struct slot *slot_of(int device, double at)
{
    const int slot = (int)(at / (double)slot_s);
    return &sim.slots[device][slot < SLOTS ? slot : SLOTS - 1];
}

static bool has(int device, enum trouble trouble, double at)
{
    const struct slot *slot = slot_of(device, at);
    return slot->trouble == trouble && at >= slot->start && at < slot->end;
}

static bool is_gone(int device, double at)
{
    for (int i = 0; i < RELOADS; i++)
        if (at >= reloads[i].start && at < reloads[i].end)
            return true;
    return has(device, PULLED, at);
}

// Loads of some minutes with pauses; at a pause the link is slow at once, the utilisation only a
// second later.  A narrow link can be seen only under load.
static bool is_loaded(int device, double at)
{
    return slot_of(device, at)->trouble == NARROW || fmod(at + device * 77.0, 300.0) < 240.0;
}

// Moves the counters on to `at`, in eighths of a second.
static void tick(double at)
{
    for (; sim.ticked + 0.125 <= at; sim.ticked += 0.125) {
        for (int d = 0; d < DEVICES; d++) {
            const double watts = is_loaded(d, sim.ticked) ? 600.0 : 80.0;
            sim.joules[d] += watts / 8.0;
            if (is_gone(d, sim.ticked)) {
                sim.counter_zero[d] = sim.joules[d];
                sim.errors[d][0] = sim.errors[d][1] = 0;
            }
            if (sim.joules[d] - sim.counter_zero[d] > 5e6) // the counter wraps
                sim.counter_zero[d] = sim.joules[d];
            sim.errors[d][0] += has(d, CORRECTED, sim.ticked);
            sim.errors[d][1] += has(d, UNCORRECTED, sim.ticked);
        }
    }
}

// ---- The driver -----------------------------------------------------------

static void fill(struct gpu_reading *reading, int d, double at)
{
    memset(reading, 0, sizeof *reading);
    (void)snprintf(reading->info.uuid, sizeof reading->info.uuid, "GPU-%d", d);
    (void)snprintf(reading->info.name, sizeof reading->info.name, "cuda:%d", d);
    reading->info.pcie = (struct pcie_link){.generation_max = 5, .width_max = 16};
    struct record *sample = &reading->sample;
    record_init(sample, RECORD_KIND_DEVICE_SAMPLE, wall_start_ns + (int64_t)(at * 1e9));
    const bool loaded = is_loaded(d, at);
    const struct slot *slot = slot_of(d, at);
    const bool is_edge = fabs(at - slot->start) < 3.0 || fabs(at - slot->end) < 3.0;
    if (is_edge || draw(0, 1) < 0.98) { // now and then nothing is told
        record_set_real(sample, DEVICE_SAMPLE_GPU_UTIL, is_loaded(d, at - 1) ? 0.95 : 0.0);
        record_set_int(sample, DEVICE_SAMPLE_PCIE_WIDTH, has(d, NARROW, at) ? 8 : 16);
        record_set_int(sample, DEVICE_SAMPLE_PCIE_GENERATION, loaded ? 5 : 1);
    }
    const bool held =
        has(d, THROTTLED, at) || (has(d, FLICKERING, at) && fmod(at - slot->start, 6.0) < 3.0);
    record_set_int(sample, DEVICE_SAMPLE_THROTTLE, held ? 0x40 : loaded ? 0x2 : 0x1);
    record_set_int(sample, DEVICE_SAMPLE_ECC_CORRECTED, sim.errors[d][0]);
    record_set_int(sample, DEVICE_SAMPLE_ECC_UNCORRECTED, sim.errors[d][1]);
    record_set_real(sample, DEVICE_SAMPLE_ENERGY, sim.joules[d] - sim.counter_zero[d]);
    record_set_int(sample, DEVICE_SAMPLE_MEMORY_USED, ++sim.serial[d]);
    reading->processes_known = true;
    reading->processes[reading->process_count++] = (struct gpu_process){.pid = 50 + d};
    if (has(d, STRANGER, at))
        reading->processes[reading->process_count++] = (struct gpu_process){.pid = 999};
}

static enum status sim_start(void **out, void *context, int lock_fd, struct error *err)
{
    (void)err;
    *out = context;
    sim.lock_fd = lock_fd;
    return STATUS_OK;
}

static void sim_request(void *driver, bool slow)
{
    (void)driver;
    (void)slow;
    assert_false(sim.is_asked); // a second call while one goes on
    sim.is_asked = true;
    sim.threads++;
    assert_int_equal(sim.threads, 1);
    sim.answer_at = sim.now + draw(0.001, 0.15);
    for (int i = 0; i < HANGS; i++)
        if (sim.now >= hangs[i].start && sim.now < hangs[i].end)
            sim.answer_at = hangs[i].end;
    sim.snapshot.began_ns = (uint64_t)(sim.now * 1e9) + (uint64_t)second_ns;
}

static enum driver_state sim_collect(void *driver, struct gpu_snapshot **out)
{
    (void)driver;
    assert_true(sim.is_asked);
    if (sim.now < sim.answer_at)
        return DRIVER_BUSY;
    struct gpu_snapshot *snapshot = &sim.snapshot;
    const double at = sim.answer_at;
    tick(at);
    snapshot->ended_ns = (uint64_t)(at * 1e9) + (uint64_t)second_ns;
    snapshot->gpus = sim.readings;
    snapshot->count = snapshot->xid_count = 0;
    for (int d = 0; d < DEVICES; d++) {
        const struct slot *slot = slot_of(d, at);
        bool *is_given = &sim.xid_given[d][slot - sim.slots[d]];
        if (slot->trouble == XID && at >= slot->start && !*is_given) {
            struct gpu_xid *xid = &snapshot->xids[snapshot->xid_count++];
            *xid = (struct gpu_xid){
                .code = 79, .count = 1, .at_ns = wall_start_ns + (int64_t)(at * 1e9)};
            (void)snprintf(xid->uuid, sizeof xid->uuid, "GPU-%d", d);
            *is_given = true;
        }
        if (!is_gone(d, at))
            fill(&sim.readings[snapshot->count++], d, at);
    }
    *out = snapshot;
    sim.is_asked = false;
    sim.threads--;
    return DRIVER_READ;
}

static void sim_stop(void *driver, bool is_hung)
{
    (void)driver;
    assert_false(is_hung);
    fork_safe_lock_close(sim.lock_fd);
}

static const struct driver_ops sim_ops = {
    .start = sim_start, .request = sim_request, .collect = sim_collect, .stop = sim_stop};

// ---- What was recorded ----------------------------------------------------

static int device_number(struct names *names, const struct record *record, unsigned column)
{
    if (!record_has(record, column))
        return -1;
    const char *name = names_text(names, record->values[column].name, NULL);
    assert_int_equal(strncmp(name, "cuda:", 5), 0);
    return name[5] - '0';
}

static double seconds_of(int64_t wall_ns)
{
    return (double)(wall_ns - wall_start_ns) / 1e9;
}

static void check_event(struct names *names, const struct record *record)
{
    const char *name = names_text(names, record->values[EVENT_EVENT].name, NULL);
    const int device = device_number(names, record, EVENT_DEVICE);
    const double start = seconds_of(record->started_ns);
    const bool ends = record_has(record, EVENT_DURATION_NS);
    const double end = start + (ends ? (double)record->values[EVENT_DURATION_NS].i / 1e9 : 0.0);
    for (size_t i = 0; i < sim.event_count; i++) {
        struct happening *event = &sim.events[i];
        if (event->device != device || strcmp(event->name, name) != 0 ||
            fabs(event->start - start) > tolerance_s || (ends ? event->ended : event->begun))
            continue;
        double late = fabs(end - event->end);
        if (ends && strcmp(name, "throttling") == 0 && late > tolerance_s)
            late -= 3.0; // it may have ended with a pause
        if (ends && late > tolerance_s)
            fail_msg("%s of device %d: ends at %.2f, not %.2f", name, device, end, event->end);
        event->begun = true;
        event->ended = ends;
        return;
    }
    fail_msg("an event that nobody made: %s of device %d, %.2f to %.2f", name, device, start, end);
}

static void check_sample(struct names *names, const struct record *record)
{
    const int d = device_number(names, record, DEVICE_SAMPLE_DEVICE);
    assert_in_range(d, 0, DEVICES - 1);
    sim.sample_count[d]++;
    assert_int_equal(record->values[DEVICE_SAMPLE_MEMORY_USED].i, sim.sample_count[d]);
    const double start = seconds_of(record->started_ns);
    if (!record_has(record, DEVICE_SAMPLE_DURATION_NS)) {
        assert_false(record_has(record, DEVICE_SAMPLE_ENERGY_USED));
        return;
    }
    const double seconds = (double)record->values[DEVICE_SAMPLE_DURATION_NS].i / 1e9;
    assert_true(seconds > 0.0);
    assert_true(seconds < 3700);
    assert_true(start + seconds <= sim.now + 0.001);
    if (record_has(record, DEVICE_SAMPLE_ENERGY_USED)) {
        const double joules = record->values[DEVICE_SAMPLE_ENERGY_USED].r;
        sim.energy_seen[d] += joules;
        assert_true(joules <= 600.0 * (seconds + 1.0));
    }
}

static void check_records(struct ring *ring, struct names *names, bool is_done)
{
    while (ring_released(ring) < ring_produced(ring)) {
        const uint64_t number = ring_released(ring) + 1;
        struct record record;
        const struct record *there = ring_at(ring, number);
        memcpy(&record, there, offsetof(struct record, values) + there->used);
        if (record.kind == RECORD_KIND_EVENT)
            check_event(names, &record);
        else if (record.kind == RECORD_KIND_DEVICE_SAMPLE)
            check_sample(names, &record);
        ring_release(ring, number);
    }
    assert_int_equal(ring_dropped(ring), 0);
    if (!is_done)
        return;
    for (size_t i = 0; i < sim.event_count; i++)
        if (!sim.events[i].ended)
            fail_msg("not found: %s of device %d, %.2f to %.2f", sim.events[i].name,
                     sim.events[i].device, sim.events[i].start, sim.events[i].end);
    for (int d = 0; d < DEVICES; d++) {
        assert_int_equal(sim.sample_count[d], sim.serial[d]); // none was left out
        assert_true(sim.sample_count[d] > (day_s - 2 * 3600) * 8 / 10);
        // All energy but that of its resets, none that was not used.
        assert_true(sim.energy_seen[d] <= sim.joules[d]);
        assert_true(sim.energy_seen[d] > sim.joules[d] * 0.8);
    }
}

TEST_CASE(test_day)
{
    const char *seed = getenv("INFERSTAT_TEST_SEED");
    char folder[FOLDER_PATH_SIZE];
    sim.seed = seed ? strtoull(seed, NULL, 10) : 1;
    (void)printf("INFERSTAT_TEST_SEED=%llu\n", (unsigned long long)sim.seed);
    folder_make(folder);
    plan();

    void *ring_memory = aligned_alloc(64, (ring_size(RING_RECORDS) + 63) / 64 * 64);
    void *name_memory = aligned_alloc(64, (names_area_size() + 63) / 64 * 64);
    assert_non_null(ring_memory);
    assert_non_null(name_memory);
    memset(ring_memory, 0, ring_size(RING_RECORDS));
    memset(name_memory, 0, names_area_size());
    struct ring *ring;
    struct names *names;
    assert_int_equal(ring_init(&ring, ring_memory, RING_RECORDS), STATUS_OK);
    assert_int_equal(names_open(&names, name_memory, NULL, NULL), STATUS_OK);
    struct device_registry *registry = calloc(1, sizeof *registry);
    assert_non_null(registry);
    device_registry_init(registry);
    _Atomic uint32_t device_count = 0;

    const struct sampler_settings settings = {
        .output = {.ring = ring,
                   .names = names,
                   .registry = registry,
                   .device_count = &device_count},
        .interval_ms = 1000,
        .host = "host",
        .collector = folder,
        .driver = &sim_ops,
        .driver_context = &sim,
        .host_root = folder,
    };
    struct sampler *sampler;
    assert_int_equal(sampler_open(&sampler, &settings, NULL), STATUS_OK);
    for (int64_t step = 0; step < day_s * 5; step++) {
        sim.now = (double)step / 5.0;
        sampler_step(sampler, (uint64_t)(sim.now * 1e9) + (uint64_t)second_ns,
                     wall_start_ns + (int64_t)(sim.now * 1e9));
        check_records(ring, names, false);
    }
    sampler_close(sampler);
    check_records(ring, names, true);
    assert_int_equal(device_count, DEVICES);

    device_registry_deinit(registry);
    free(registry);
    names_close(names);
    free(ring_memory);
    free(name_memory);
    folder_remove(folder);
}

TEST_MAIN(test_day)
