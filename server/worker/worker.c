#include "server/worker/worker.h"

#include <string.h>

#include "common/sys/process.h"
#include "common/sys/stop.h"

// How long the program waits at exit for the collector to commit the remaining records.
#define CLOSE_TIMEOUT_NS UINT64_C(2000000000)

int worker_fail(const struct error *err)
{
    log_write(LOG_LEVEL_ERROR, "%s", err->text);
    return err->status == STATUS_INVALID ? WORKER_USAGE : WORKER_UNREACHABLE;
}

static void log_of_library(void *context, enum inferstat_log_level level, const char *text)
{
    (void)context;
    static const enum log_level levels[] = {
        [INFERSTAT_LOG_ERROR] = LOG_LEVEL_ERROR,
        [INFERSTAT_LOG_WARNING] = LOG_LEVEL_WARNING,
        [INFERSTAT_LOG_INFO] = LOG_LEVEL_INFO,
    };
    log_write(levels[level], "%s", text);
}

enum status worker_open_monitor(struct inferstat_monitor **out,
                                const struct worker_options *options, struct error *err)
{
    struct inferstat_options settings;
    char cuda[DEVICE_NAME_SIZE];
    inferstat_options_init(&settings);
    settings.collector = options->collector;
    settings.collector_user = options->collector_user;
    settings.report = !options->no_report;
    settings.spool_folder = options->spool;
    if (options->spool_bytes > 0)
        settings.spool_bytes = (uint64_t)options->spool_bytes;
    if (options->ring_records > 0)
        settings.ring_records = options->ring_records;
    settings.key_file = options->key;
    settings.server_key = options->server_key;
    settings.insecure = options->insecure;
    settings.device_ms = (uint32_t)(options->device_interval_ns / 1000000);
    settings.cuda = device_cuda_version(cuda);
    settings.program = "inferstat-worker " INFERSTAT_VERSION;
    settings.log = log_of_library;

    if (stop_install(err) != STATUS_OK)
        return err->status;
    struct inferstat_error why;
    enum inferstat_status status = inferstat_open(out, &settings, &why);
    if (status == INFERSTAT_OK)
        return STATUS_OK;
    return error_set(err, status == INFERSTAT_INVALID ? STATUS_INVALID : STATUS_IO, "%s", why.text);
}

void worker_close_monitor(struct inferstat_monitor *monitor, struct inferstat_totals *totals)
{
    memset(totals, 0, sizeof *totals);
    if (inferstat_close(monitor, CLOSE_TIMEOUT_NS, totals) == INFERSTAT_UNFINISHED)
        log_write(LOG_LEVEL_WARNING,
                  "the collector has committed %llu of %llu records: the rest stays on this host",
                  (unsigned long long)totals->acknowledged, (unsigned long long)totals->produced);
}

void worker_write_totals(struct json_writer *json, const struct inferstat_totals *totals)
{
    json_write_uint(json, "records_produced", totals->produced);
    json_write_uint(json, "records_acknowledged", totals->acknowledged);
    json_write_uint(json, "records_dropped", totals->dropped);
}

void worker_write_settings(struct json_writer *json)
{
    struct process_settings settings;
    process_settings_read(&settings, NULL);
    const char *const members[][2] = {{"cpu_governor", settings.cpu_governor},
                                      {"huge_pages", settings.huge_pages},
                                      {"allocator", settings.allocator},
                                      {"build_flags", settings.build_flags}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        json_write_text(json, members[i][0], *members[i][1] ? members[i][1] : NULL);
}

void worker_write_fingerprint(struct json_writer *json)
{
    struct process_host host;
    process_host_read(&host);
    json_write_begin(json, "fingerprint");
    json_write_text(json, "cpu", *host.cpu ? host.cpu : NULL);
    json_write_text(json, "kernel", host.kernel);
    worker_write_settings(json);
    json_write_end(json);
}

const char *worker_status_word(enum status status)
{
    return status == STATUS_OK ? "ok" : status == STATUS_CANCELLED ? "cancelled" : "error";
}

void worker_write_maybe(struct json_writer *json, const char *key, uint64_t value, bool is_known)
{
    if (is_known)
        json_write_uint(json, key, value);
    else
        json_write_text(json, key, NULL);
}

void worker_log_device(const struct device_description *device)
{
    log_write(device->fell_back ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "device %s: %s (kernels: %s, threads: %u)", device->name, device->reason,
              device->kernels, device->threads);
}
