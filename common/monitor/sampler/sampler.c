#include "common/monitor/sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/crc32c.h"
#include "common/devices/host.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/sampler/device_samples.h"
#include "common/sys/files.h"
#include "common/sys/proc_file.h"

static const uint64_t hang_ns = UINT64_C(2000000000);
static const uint64_t first_hang_ns = UINT64_C(30000000000);
static const uint64_t slow_ns = UINT64_C(60000000000); // between readings of all there is

struct sampler {
    struct sampler_settings settings;
    uint64_t interval_ns;
    uint64_t next_ns; // monotonic, of the next reading
    bool wait_logged; // it was logged why this process does not sample

    void *driver;          // NULL: this process does not sample
    bool is_reading;       // a reading was requested
    bool has_read;         // one has ended
    uint64_t requested_ns; // monotonic, and by the wall clock
    int64_t requested_wall_ns;
    uint64_t slow_at_ns; // when the next slow reading is due
    bool hangs;

    struct host *host;
    struct device_samples *devices;
    struct health_detector events; // of the host
    struct health_sink sink;       // of the host
};

enum status sampler_open(struct sampler **out, const struct sampler_settings *settings,
                         struct error *err)
{
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return error_no_memory(err, "devices");
    sampler->settings = *settings;
    sampler->sink = (struct health_sink){sampler_output_event, &sampler->settings.output, 0};
    sampler->interval_ns = settings->interval_ms * UINT64_C(1000000);
    enum status status = host_open(&sampler->host, settings->host_root, err);
    if (status == STATUS_OK)
        status = device_samples_open(&sampler->devices, &settings->output, sampler->interval_ns,
                                     getpid(), err);
    if (status != STATUS_OK) {
        sampler_close(sampler);
        return status;
    }
    *out = sampler;
    return STATUS_OK;
}

int64_t sampler_own_memory(const struct sampler *sampler)
{
    return device_samples_own_memory(sampler->devices);
}

void sampler_close(struct sampler *sampler)
{
    if (!sampler)
        return;
    if (sampler->driver)
        sampler->settings.driver->stop(sampler->driver, sampler->hangs);
    health_detector_finish(&sampler->events, &sampler->sink);
    device_samples_close(sampler->devices);
    host_close(sampler->host);
    free(sampler);
}

static void log_wait(struct sampler *sampler, enum inferstat_log_level level, const char *what,
                     const char *why)
{
    if (!sampler->wait_logged)
        log_sink_write(&sampler->settings.output.log, level, "devices: not sampled: %s%s%s", what,
                       *why ? ": " : "", why);
    sampler->wait_logged = true;
}

// Starts the driver thread if no other process of this user samples the host for the collector.
// Other hosts may share the folder; the boot tells them apart.
static bool start_driver(struct sampler *sampler)
{
    char folder[4096], path[4096], name[96], boot[64];
    struct error err;
    const char *root = sampler->settings.host_root;
    if (!proc_file_read(boot, sizeof boot, root ? root : "", "proc/sys/kernel/random/boot_id"))
        boot[0] = '\0';
    const char *host = sampler->settings.host, *collector = sampler->settings.collector;
    const uint32_t of = crc32c(crc32c(0, host, strlen(host) + 1), collector, strlen(collector));
    (void)snprintf(name, sizeof name, "devices-%ld-%.*s-%08x.lock", (long)geteuid(),
                   (int)strspn(boot, "0123456789abcdef-"), boot, of);
    if ((runfile_user_folder(folder, sizeof folder, &err) != STATUS_OK &&
         runfile_default_folder(folder, sizeof folder, &err) != STATUS_OK) ||
        files_join(path, sizeof path, folder, name, &err) != STATUS_OK) {
        log_wait(sampler, INFERSTAT_LOG_WARNING, err.text, "");
        return false;
    }
    const int fd = fork_safe_lock_acquire(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0) {
        if (errno == EWOULDBLOCK)
            log_wait(sampler, INFERSTAT_LOG_INFO,
                     "another process of this user samples them; this one will when that ends", "");
        else
            log_wait(sampler, INFERSTAT_LOG_WARNING, path, strerror(errno));
        return false;
    }
    const struct driver_ops *ops = sampler->settings.driver;
    if (ops->start(&sampler->driver, sampler->settings.driver_context, fd, &err) != STATUS_OK) {
        fork_safe_lock_close(fd);
        log_wait(sampler, INFERSTAT_LOG_WARNING, err.text, "");
        return false;
    }
    log_sink_write(&sampler->settings.output.log, INFERSTAT_LOG_INFO,
                   "devices: sampling this host every %.1f s", (double)sampler->interval_ns / 1e9);
    return true;
}

static void set_hangs(struct sampler *sampler, bool hangs, int64_t at_ns)
{
    sampler->hangs = hangs;
    health_detect_hang(&sampler->events, hangs, at_ns, &sampler->sink);
}

static void collect(struct sampler *sampler, uint64_t now, int64_t wall_ns)
{
    struct gpu_snapshot *snapshot;
    const enum driver_state state = sampler->settings.driver->collect(sampler->driver, &snapshot);
    const uint64_t intervals = 2 * sampler->interval_ns;
    const uint64_t patience_ns = !sampler->has_read    ? first_hang_ns
                                 : intervals > hang_ns ? intervals
                                                       : hang_ns;
    if (state == DRIVER_BUSY) {
        if (!sampler->hangs && now - sampler->requested_ns > patience_ns)
            set_hangs(sampler, true, sampler->requested_wall_ns);
        return;
    }
    sampler->is_reading = false;
    if (sampler->hangs)
        set_hangs(sampler, false, wall_ns);
    if (state == DRIVER_FAILED)
        return;
    if (!sampler->has_read && snapshot->count == 0)
        log_sink_write(&sampler->settings.output.log, INFERSTAT_LOG_INFO,
                       "devices: no GPU is found; the host is sampled");
    sampler->has_read = true;
    device_samples_add(sampler->devices, snapshot, wall_ns);
}

static void sample_host(struct sampler *sampler, uint64_t now, int64_t wall_ns)
{
    struct record sample;
    host_read(sampler->host, &sample, now, wall_ns);
    if ((sample.present & ~(UINT64_C(1) << HOST_SAMPLE_DURATION_NS)) == 0)
        return; // nothing can be read
    (void)ring_push(sampler->settings.output.ring, &sample, 1);
    health_detect_host(&sampler->events, &sample, wall_ns, &sampler->sink);
}

static void request(struct sampler *sampler, uint64_t now, int64_t wall_ns)
{
    const bool slow = now >= sampler->slow_at_ns;
    if (slow)
        sampler->slow_at_ns = now + slow_ns;
    sampler->settings.driver->request(sampler->driver, slow);
    sampler->is_reading = true;
    sampler->requested_ns = now;
    sampler->requested_wall_ns = wall_ns;
}

void sampler_step(struct sampler *sampler, uint64_t monotonic_ns, int64_t wall_ns)
{
    if (sampler->is_reading)
        collect(sampler, monotonic_ns, wall_ns);
    if (monotonic_ns < sampler->next_ns)
        return;
    sampler->next_ns += sampler->interval_ns;
    if (sampler->next_ns <= monotonic_ns)
        sampler->next_ns = monotonic_ns + sampler->interval_ns;
    if (!sampler->driver && !start_driver(sampler))
        return;
    sample_host(sampler, monotonic_ns, wall_ns);
    if (!sampler->is_reading)
        request(sampler, monotonic_ns, wall_ns);
}
