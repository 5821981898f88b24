#include "tests/support/test.h"

#include <unistd.h>

#include "common/devices/host.h"
#include "common/sys/files.h"
#include "tests/support/folder.h"

// Trees of /proc and /sys, made file by file.
static char root[FOLDER_PATH_SIZE];
static struct host *host;
static uint64_t now_ns;

static const int64_t wall_ns = INT64_C(1700000000000000000);
static const uint64_t second_ns = UINT64_C(1000000000);

TEST_FIXTURE(set_up)
{
    folder_make(root);
    now_ns = 5 * second_ns;
    return host_open(&host, root, NULL);
}

TEST_FIXTURE(tear_down)
{
    host_close(host);
    folder_remove(root);
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[FOLDER_PATH_SIZE + 128], parent[sizeof path];
    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    files_folder_of(parent, sizeof parent, path);
    assert_int_equal(files_make_folder(parent, 0700, NULL), STATUS_OK);
    write_text(path, text);
}

static void drop(const char *name)
{
    assert_int_equal(unlink(format_text("%s/%s", root, name)), 0);
}

// Reads the host two seconds after the reading before.
static struct record read_host(void)
{
    struct record sample;
    now_ns += 2 * second_ns;
    host_read(host, &sample, now_ns, wall_ns);
    assert_int_equal(sample.kind, RECORD_KIND_HOST_SAMPLE);
    return sample;
}

// The columns that are present, and REAL values rounded to thousandths: "name=value ...".
static const char *text_of(const struct record *sample)
{
    static char text[2048];
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_HOST_SAMPLE);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *column = &info->columns[i];
        if (!record_has(sample, i) || i == HOST_SAMPLE_DURATION_NS)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=", used ? " " : "",
                                 column->name);
        if (column->type == COLUMN_REAL)
            used += (size_t)snprintf(text + used, sizeof text - used, "%.3g", sample->values[i].r);
        else
            used += (size_t)snprintf(text + used, sizeof text - used, "%lld",
                                     (long long)sample->values[i].i);
    }
    return text;
}

TEST_CASE(test_nothing_there)
{
    for (int i = 0; i < 3; i++) {
        const struct record sample = read_host();
        assert_string_equal(text_of(&sample), "");
    }
}

static void put_host(void)
{
    put("proc/stat", "cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1\ncpu1 2\ncpu2 3\nintr 5\n");
    put("proc/loadavg", "2.50 1.00 0.50 1/200 999\n");
    put("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 5 kB\nMemAvailable: 400 kB\n"
                        "SwapTotal: 300 kB\nSwapFree: 100 kB\n");
    put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n");
    put("proc/pressure/memory", "some avg10=0.00 total=10\nfull avg10=0.00 total=5\n");
    put("proc/pressure/io", "some avg10=0.00 total=0\nfull avg10=0.00 total=0\n");
    put("proc/diskstats", "   8       0 sda 10 0 1000 5 20 0 2000 5 0 500 10\n"
                          "   8       1 sda1 10 0 1000 5 20 0 2000 5 0 500 10\n"
                          " 253       0 dm-0 10 0 1000 5 20 0 2000 5 0 500 10\n"
                          " 259       0 nvme0n1 10 0 0 5 20 0 0 5 0 100 10 0 0 0 0\n");
    put("sys/block/sda/device", "");
    put("sys/block/nvme0n1/device", "");
    put("proc/net/dev",
        "Inter-|   Receive                          |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs\n"
        "    lo: 9000 10 0 0 0 0 0 0 9000 10 0 0 0 0 0 0\n"
        "  eth0: 1000 10 1 2 0 0 0 0 5000 10 3 4 0 0 0 0\n"
        "docker0:7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n");
    put("sys/class/net/eth0/device", "");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000\n");
    put("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "3000000\n");
    put("proc/self/cgroup", "0::/a\n");
    put("sys/fs/cgroup/a/memory.max", "500000\n");
    put("sys/fs/cgroup/a/memory.current", "300000\n");
    put("sys/fs/cgroup/a/memory.stat", "inactive_file 100000\nactive_file 0\n");
    put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_periods 100\nnr_throttled 10\n");
}

#define STATE                                                                                      \
    "load_1m=2.5 cpu_frequency_hz=2000000000 memory_total_bytes=1024000 "                          \
    "memory_available_bytes=409600 swap_used_bytes=204800"
#define CGROUP                                                                                     \
    " cgroup_memory_limit_bytes=500000 cgroup_memory_used_bytes=200000 cgroup_cpu_quota=1.5"

TEST_CASE(test_two_readings)
{
    put_host();
    struct record sample = read_host();
    assert_string_equal(text_of(&sample), STATE CGROUP);
    assert_false(record_has(&sample, HOST_SAMPLE_DURATION_NS));
    assert_int_equal(sample.started_ns, wall_ns);

    put("proc/stat", "cpu  160 0 80 890 70 0 0 0 7 0\ncpu0 1\ncpu1 2\ncpu2 3\nintr 5\n");
    put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n");
    put("proc/pressure/memory", "some avg10=0.00 total=200010\nfull avg10=0.00 total=100005\n");
    put("proc/pressure/io", "some avg10=0.00 total=9000000\nfull avg10=0.00 total=2000000\n");
    put("proc/diskstats", "   8       0 sda 10 0 1100 5 20 0 2200 5 0 600 10\n"
                          "   8       1 sda1 10 0 9999 5 20 0 9999 5 0 9999 10\n"
                          "   8      16 sdb 10 0 7777 5 20 0 7777 5 0 7777 10\n"
                          " 259       0 nvme0n1 10 0 100 5 20 0 0 5 0 1100 10 0 0 0 0\n");
    put("sys/block/sdb/device", "");
    put("proc/net/dev", "  eth0: 3000 10 1 3 0 0 0 0 5400 10 5 4 0 0 0 0\n"
                        "docker0:9999 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n");
    put("sys/fs/cgroup/a/cpu.stat", "nr_periods 120\nnr_throttled 15\n");
    sample = read_host();
    assert_string_equal(
        text_of(&sample),
        "cpu_util_ratio=0.45 " STATE " cpu_pressure_ratio=0.25 memory_pressure_ratio=0.1 "
        "io_pressure_ratio=1 memory_stalled_ratio=0.05 io_stalled_ratio=1 "
        "disk_read_bytes_per_second=5.12e+04 disk_write_bytes_per_second=5.12e+04 "
        "disk_busy_ratio=0.5 network_rx_bytes_per_second=1e+03 network_tx_bytes_per_second=200 "
        "network_errors=3" CGROUP " cgroup_throttled_ratio=0.25");
    assert_int_equal(sample.values[HOST_SAMPLE_DURATION_NS].i, 2 * second_ns);
    assert_int_equal(sample.started_ns, wall_ns - 2 * (int64_t)second_ns);
}

// Counters that fall, in a container that was moved or after a reset, make no rate.
TEST_CASE(test_backwards)
{
    put_host();
    (void)read_host();
    put("proc/stat", "cpu  90 0 50 800 50 0 0 0 7 0\n");
    put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    put("proc/pressure/memory", "some avg10=0.00 total=9\nfull avg10=0.00 total=4\n");
    drop("proc/pressure/io");
    put("proc/diskstats", "   8       0 sda 10 0 1100 5 20 0 2200 5 0 600 10\n"
                          " 259       0 nvme0n1 10 0 0 5 20 0 0 5 0 99 10 0 0 0 0\n");
    put("proc/net/dev", "  eth0: 3000 10 1 1 0 0 0 0 4999 10 5 4 0 0 0 0\n");
    put("sys/fs/cgroup/a/cpu.stat", "nr_periods 99\nnr_throttled 10\n");
    drop("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
    drop("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq");
    struct record sample = read_host();
    assert_string_equal(text_of(&sample),
                        "load_1m=2.5 memory_total_bytes=1024000 memory_available_bytes=409600 "
                        "swap_used_bytes=204800 disk_read_bytes_per_second=2.56e+04 "
                        "disk_write_bytes_per_second=5.12e+04 disk_busy_ratio=0.05" CGROUP);
    // From there on they count again.
    put("proc/stat", "cpu  91 0 50 801 50 0 0 0 7 0\n");
    sample = read_host();
    assert_true(record_has(&sample, HOST_SAMPLE_CPU_UTIL));
    assert_float_equal(sample.values[HOST_SAMPLE_CPU_UTIL].r, 0.5, 1e-9);
}

// Without a physical interface, as in a container, the others count.
TEST_CASE(test_container)
{
    put("proc/net/dev", "    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n"
                        "  eth0: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
                        "  eth1: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n");
    (void)read_host();
    put("proc/net/dev", "  eth0: 30 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n"
                        "  eth1: 30 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n");
    struct record sample = read_host();
    assert_string_equal(text_of(&sample), "network_rx_bytes_per_second=20 "
                                          "network_tx_bytes_per_second=0 network_errors=0");
}

// v1 counts throttling under the same names.
TEST_CASE(test_cgroup_v1)
{
    put("proc/self/cgroup", "9:memory:/m\n3:cpu,cpuacct:/c\n");
    put("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096000\n");
    put("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "4096\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "8192\n");
    put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu,cpuacct/c/cpu.stat", "nr_periods 10\nnr_throttled 0\n");
    (void)read_host();
    put("sys/fs/cgroup/cpu,cpuacct/c/cpu.stat", "nr_periods 30\nnr_throttled 20\n");
    struct record sample = read_host();
    assert_string_equal(text_of(&sample),
                        "cgroup_memory_limit_bytes=4096000 cgroup_memory_used_bytes=4096 "
                        "cgroup_cpu_quota=0.5 cgroup_throttled_ratio=1");
}

// Files that are empty, huge, cut off or other than the kernel writes them.
TEST_CASE(test_bad_files)
{
    static const char *const names[] = {
        "proc/stat",
        "proc/loadavg",
        "proc/meminfo",
        "proc/pressure/cpu",
        "proc/pressure/io",
        "proc/pressure/memory",
        "proc/diskstats",
        "proc/net/dev",
        "proc/self/cgroup",
        "sys/fs/cgroup/a/memory.max",
        "sys/fs/cgroup/a/cpu.max",
        "sys/fs/cgroup/a/cpu.stat",
    };
    enum { HUGE_SIZE = 1 << 20 };
    char *huge = malloc(HUGE_SIZE + 1);
    assert_non_null(huge);
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "cpu",
        "-1 -2 -3",
        "cpu  -5 -5 -5 -5 -5\n",
        "max max",
        "cpu  99999999999999999999 99999999999999999999 1 1\n",
        "some total=\nfull total=-5\n",
        "some",
        "MemTotal: 99999999999999999999 kB\nSwapTotal: 1 kB",
        "eth0: -1 0 0 0 0 0 0 0 -1 0 0 0 0\n",
        "nan nan inf 1e999",
    };
    for (size_t i = 0; i <= COUNT_OF(texts); i++) {
        memset(huge, i % 2 ? 'x' : '7', HUGE_SIZE);
        huge[HUGE_SIZE] = '\0';
        for (size_t j = 0; j < COUNT_OF(names); j++)
            put(names[j], i < COUNT_OF(texts) ? texts[i] : huge);
        for (int j = 0; j < 2; j++) {
            const struct record sample = read_host();
            for (unsigned k = 0; k < HOST_SAMPLE_COLUMNS; k++) {
                const bool is_real =
                    record_kind_info(RECORD_KIND_HOST_SAMPLE)->columns[k].type == COLUMN_REAL;
                if (record_has(&sample, k) &&
                    (is_real ? !(sample.values[k].r >= 0.0) : sample.values[k].i < 0))
                    fail_msg("text %zu: column %u", i, k);
            }
        }
    }
    free(huge);
}

// More disks than have a place.
TEST_CASE(test_many_disks)
{
    static char text[64 * 1024];
    for (int round = 0; round < 2; round++) {
        size_t used = 0;
        for (int i = 0; i < 300; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "8 0 disk%d 1 0 %d 1 1 0 0 1 0 %d 1\n", i, round, round);
            put(format_text("sys/block/disk%d/device", i), "");
        }
        put("proc/diskstats", text);
        const struct record sample = read_host();
        assert_int_equal(record_has(&sample, HOST_SAMPLE_DISK_READ), round == 1);
    }
}

TEST_MAIN_EACH(set_up, tear_down, test_nothing_there, test_two_readings, test_backwards,
               test_container, test_cgroup_v1, test_bad_files, test_many_disks)
