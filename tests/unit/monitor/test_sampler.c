// The sampler of a whole monitor, with GPUs of the test's own in place of common/devices/gpu.c:
// names, device memory, drivers that hang while the engine works and while it ends.
#include "tests/support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/devices/gpu.h"
#include "common/monitor/monitor.h"
#include "common/sys/clock.h"
#include "tests/support/monitor_fixture.h"

// ---- GPUs -----------------------------------------------------------------

struct gpu_set {
    int opened;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    bool hangs; // guarded by `lock`
    _Atomic int inside, inside_most, sets;
    _Atomic bool is_stranger_there;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

static void set_hangs(bool hangs)
{
    (void)pthread_mutex_lock(&driver.lock);
    driver.hangs = hangs;
    (void)pthread_cond_broadcast(&driver.freed);
    (void)pthread_mutex_unlock(&driver.lock);
}

static void enter(void)
{
    const int inside = atomic_fetch_add(&driver.inside, 1) + 1;
    if (inside > atomic_load(&driver.inside_most))
        atomic_store(&driver.inside_most, inside);
    (void)pthread_mutex_lock(&driver.lock);
    while (driver.hangs)
        (void)pthread_cond_wait(&driver.freed, &driver.lock);
    (void)pthread_mutex_unlock(&driver.lock);
    atomic_fetch_sub(&driver.inside, 1);
}

enum status gpu_set_open(struct gpu_set **out, const char *root)
{
    assert(!root);
    *out = calloc(1, sizeof **out);
    atomic_fetch_add(&driver.sets, 1);
    return *out ? STATUS_OK : STATUS_NOMEM;
}

void gpu_set_close(struct gpu_set *set)
{
    if (!set)
        return;
    enter();
    atomic_fetch_sub(&driver.sets, 1);
    free(set);
}

void gpu_snapshot_deinit(struct gpu_snapshot *snapshot)
{
    free(snapshot->gpus);
    *snapshot = (struct gpu_snapshot){.count = 0};
}

enum status gpu_set_read(struct gpu_set *set, struct gpu_snapshot *snapshot, bool slow)
{
    (void)set;
    (void)slow;
    snapshot->began_ns = clock_monotonic_ns();
    enter();
    if (!snapshot->gpus)
        snapshot->gpus = calloc(2, sizeof *snapshot->gpus);
    if (!snapshot->gpus)
        return STATUS_NOMEM;
    snapshot->count = 2;
    for (unsigned i = 0; i < 2; i++) {
        struct gpu_reading *reading = &snapshot->gpus[i];
        memset(reading, 0, sizeof *reading);
        (void)snprintf(reading->info.uuid, sizeof reading->info.uuid, "GPU-%u", i);
        (void)snprintf(reading->info.name, sizeof reading->info.name, "cuda:%u", i);
        reading->info.memory_bytes = 1000;
        reading->info.slowdown_celsius = 90.0;
        record_init(&reading->sample, RECORD_KIND_DEVICE_SAMPLE, clock_wall_ns());
        record_set_real(&reading->sample, DEVICE_SAMPLE_POWER, 100.0);
        reading->processes_known = true;
        reading->processes[reading->process_count++] =
            (struct gpu_process){.pid = getpid(), .memory_bytes = 300, .name = "engine"};
        if (i == 1 && atomic_load(&driver.is_stranger_there))
            reading->processes[reading->process_count++] =
                (struct gpu_process){.pid = getpid() + 1, .memory_bytes = -1, .name = "\x1b[31m"};
    }
    snapshot->ended_ns = clock_monotonic_ns();
    return STATUS_OK;
}

// ---- Helpers --------------------------------------------------------------

static void wait_for_rows(struct fixture *fixture, enum record_kind kind, unsigned count)
{
    for (int i = 0; i < 1200 && fake_collector_count(fixture->collector, kind) < count; i++)
        (void)usleep(50000);
    assert_true(fake_collector_count(fixture->collector, kind) >= count);
}

static struct fake_row row_of(struct fixture *fixture, enum record_kind kind, unsigned index)
{
    struct fake_row row;
    assert_true(fake_collector_row(fixture->collector, kind, index, &row));
    return row;
}

static void begin(struct fixture *fixture)
{
    set_hangs(false);
    atomic_store(&driver.inside_most, 0);
    atomic_store(&driver.is_stranger_there, false);
    fixture->collector = fake_collector_open(fixture->folder);
    fixture->options.device_ms = 100;
}

// Nothing of the sampler is left.
static void expect_idle(void)
{
    for (int i = 0; i < 1200 && atomic_load(&driver.sets) > 0; i++)
        (void)usleep(50000);
    assert_int_equal(atomic_load(&driver.sets), 0);
    assert_true(atomic_load(&driver.inside_most) <= 1);
}

// ---- Cases ----------------------------------------------------------------

// A device has the application's name and facts; another one, whose name the application uses, one
// that tells it apart.
STATE_CASE(test_names, struct fixture *fixture)
{
    begin(fixture);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    struct inferstat_device device;
    inferstat_device_init(&device);
    device.name = "cuda:0";
    device.uuid = "GPU-1";
    device.memory_bytes = 900;
    device.memory_bandwidth_bytes_per_second = 5e9;
    (void)inferstat_add_device(monitor, &device);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 6);
    const struct fake_row first = row_of(fixture, RECORD_KIND_DEVICE_SAMPLE, 4);
    const struct fake_row second = row_of(fixture, RECORD_KIND_DEVICE_SAMPLE, 5);
    assert_string_equal(first.values[DEVICE_SAMPLE_DEVICE].text, "host:cuda:0");
    assert_string_equal(second.values[DEVICE_SAMPLE_DEVICE].text, "cuda:0");
    // Power times the period, without a counter.
    assert_true(second.present >> DEVICE_SAMPLE_DURATION_NS & 1);
    const double joules = (double)second.values[DEVICE_SAMPLE_DURATION_NS].i / 1e9 * 100.0;
    assert_true(second.values[DEVICE_SAMPLE_ENERGY_USED].r > joules * 0.999);
    assert_true(second.values[DEVICE_SAMPLE_ENERGY_USED].r < joules * 1.001);

    bool is_merged = false;
    const unsigned count = fake_collector_count(fixture->collector, RECORD_KIND_DEVICE);
    for (unsigned i = 0; i < count; i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_DEVICE, i);
        is_merged = is_merged || (row.present >> DEVICE_SLOWDOWN & 1 &&
                                  row.values[DEVICE_MEMORY_BANDWIDTH].r > 4e9 &&
                                  row.values[DEVICE_MEMORY_BYTES].i == 900 &&
                                  strcmp(row.values[DEVICE_UUID].text, "GPU-1") == 0);
    }
    assert_true(is_merged);
    assert_in_range(count, 3, 4); // ours, and those of the sampler, once or twice
    assert_true(fake_collector_count(fixture->collector, RECORD_KIND_HOST_SAMPLE) > 0);
    assert_int_equal(close_monitor(fixture, 2 * SECOND, NULL), INFERSTAT_OK);
    expect_idle();
}

// The driver tells what this process uses until the application does.
STATE_CASE(test_device_memory, struct fixture *fixture)
{
    struct inferstat_summary summary;
    begin(fixture);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 4);
    inferstat_get_summary(monitor, &summary);
    assert_int_equal(summary.device_memory_bytes, 600);
    inferstat_set_device_memory(monitor, 77);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 10);
    inferstat_get_summary(monitor, &summary);
    assert_int_equal(summary.device_memory_bytes, 77);
}

// All processes of a device are recorded together when one more is there, with harmless names.
STATE_CASE(test_processes, struct fixture *fixture)
{
    begin(fixture);
    (void)open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 6);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_DEVICE_PROCESS), 2);
    atomic_store(&driver.is_stranger_there, true);
    wait_for_rows(fixture, RECORD_KIND_EVENT, 1);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_DEVICE_PROCESS), 4);
    const struct fake_row row = row_of(fixture, RECORD_KIND_DEVICE_PROCESS, 3);
    assert_int_equal(row.started_ns, row_of(fixture, RECORD_KIND_DEVICE_PROCESS, 2).started_ns);
    assert_int_equal(row.values[DEVICE_PROCESS_PID].i, getpid() + 1);
    assert_false(row.present >> DEVICE_PROCESS_MEMORY & 1);
    const struct fake_row event = row_of(fixture, RECORD_KIND_EVENT, 0);
    assert_string_equal(event.values[EVENT_EVENT].text, "foreign_process");
    assert_string_equal(event.values[EVENT_DEVICE].text, "cuda:1");
    assert_int_equal(event.values[EVENT_CODE].i, getpid() + 1);
}

// A device that the application describes late has its name from then on; an event ends under the
// name under which it began.
STATE_CASE(test_named_late, struct fixture *fixture)
{
    begin(fixture);
    atomic_store(&driver.is_stranger_there, true);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 4);
    wait_for_rows(fixture, RECORD_KIND_EVENT, 1);
    struct inferstat_device device;
    inferstat_device_init(&device);
    device.name = "gpu";
    device.uuid = "GPU-1";
    (void)inferstat_add_device(monitor, &device);
    wait_for_rows(fixture, RECORD_KIND_EVENT, 3);
    static const char *const names[] = {"cuda:1", "cuda:1", "gpu"};
    for (unsigned i = 0; i < 3; i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_EVENT, i);
        assert_string_equal(row.values[EVENT_DEVICE].text, names[i]);
        assert_int_equal(row.present >> EVENT_DURATION_NS & 1, i == 1);
    }
    assert_int_equal(atomic_load(&runfile_state(monitor->file)->devices), 2);
}

// Of two monitors of a user one samples, also where their run files are in different folders.
STATE_CASE(test_two_run_folders, struct fixture *fixture)
{
    char other[FOLDER_PATH_SIZE];
    struct inferstat_monitor *second = NULL;
    begin(fixture);
    (void)open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 2);
    fixture->options.run_folder = folder_path(other, fixture->folder, "other");
    struct lines *lines = log_lines(fixture);
    assert_int_equal(inferstat_open(&second, &fixture->options, NULL), INFERSTAT_OK);
    wait_for(lines, &lines->waits, 1);
    assert_int_equal(inferstat_close(second, 2 * SECOND, NULL), INFERSTAT_OK);
}

// While the driver hangs there are samples of the host, and the engine records on; the monitor
// ends at once; no second thread enters the driver, also not of another monitor, which takes over
// when the call returns.
STATE_CASE(test_hang, struct fixture *fixture)
{
    begin(fixture);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 4);
    set_hangs(true);
    wait_for_rows(fixture, RECORD_KIND_EVENT, 1);
    const struct fake_row event = row_of(fixture, RECORD_KIND_EVENT, 0);
    assert_string_equal(event.values[EVENT_EVENT].text, "driver_hang");
    assert_false(event.present >> EVENT_DURATION_NS & 1);
    assert_false(event.present >> EVENT_DEVICE & 1);

    const unsigned samples = fake_collector_count(fixture->collector, RECORD_KIND_DEVICE_SAMPLE);
    const unsigned hosts = fake_collector_count(fixture->collector, RECORD_KIND_HOST_SAMPLE);
    operate(monitor, inferstat_name(monitor, "work"), 10);
    wait_for_rows(fixture, RECORD_KIND_OPERATION, 10);
    wait_for_rows(fixture, RECORD_KIND_HOST_SAMPLE, hosts + 3);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_DEVICE_SAMPLE), samples);

    const uint64_t before = clock_monotonic_ns();
    assert_int_equal(close_monitor(fixture, 60 * SECOND, NULL), INFERSTAT_OK);
    assert_true(clock_monotonic_ns() - before < 30 * SECOND);

    (void)open_monitor(fixture);
    (void)usleep(400000);
    assert_int_equal(atomic_load(&driver.inside), 1);
    set_hangs(false);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, samples + 4);
    assert_int_equal(close_monitor(fixture, 2 * SECOND, NULL), INFERSTAT_OK);
    expect_idle();
}

// A hang that ends is recorded again, with its duration; what was read before and after has no gap
// of samples that nobody took.
STATE_CASE(test_hang_ends, struct fixture *fixture)
{
    begin(fixture);
    (void)open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 4);
    set_hangs(true);
    wait_for_rows(fixture, RECORD_KIND_EVENT, 1);
    set_hangs(false);
    wait_for_rows(fixture, RECORD_KIND_EVENT, 2);
    const struct fake_row begun = row_of(fixture, RECORD_KIND_EVENT, 0);
    const struct fake_row ended = row_of(fixture, RECORD_KIND_EVENT, 1);
    assert_int_equal(begun.started_ns, ended.started_ns);
    assert_true(ended.values[EVENT_DURATION_NS].i >= 2 * (int64_t)SECOND);
}

// A fork while a driver hangs: the child has no thread, and its calls do nothing.
STATE_CASE(test_fork, struct fixture *fixture)
{
    begin(fixture);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    wait_for_rows(fixture, RECORD_KIND_DEVICE_SAMPLE, 2);
    set_hangs(true);
    const pid_t child = fork();
    if (child == 0) {
        inferstat_set_device_memory(monitor, 5);
        (void)inferstat_close(monitor, 0, NULL);
        _exit(0);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    set_hangs(false);
    assert_int_equal(close_monitor(fixture, 2 * SECOND, NULL), INFERSTAT_OK);
    expect_idle();
}

// An interval that would be nothing but sampling is refused.
STATE_CASE(test_options, struct fixture *fixture)
{
    struct inferstat_error err;
    fixture->options.device_ms = 99;
    assert_int_equal(inferstat_open(&fixture->monitor, &fixture->options, &err), INFERSTAT_INVALID);
    assert_string_equal(err.text, "options: device_ms is 99 (0 or at least 100)");
}

TEST_MAIN_EACH(set_up, tear_down, test_names, test_device_memory, test_processes, test_named_late,
               test_two_run_folders, test_hang, test_hang_ends, test_fork, test_options)
