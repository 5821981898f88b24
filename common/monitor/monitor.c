#include "common/monitor/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/monitor/delivery/replay.h"
#include "common/sys/files.h"

enum {
    RING_RECORDS_MAX = 1 << 20,
    DEVICE_MS_MIN = 100,
    PATH_ROOM = 4096,
    RUN_ROOM = 8 << 20, // free bytes that a file system must have for a run file
};

// orphans_folders.patience_ns: the longest expected back-off of a container that keeps
// crashing on start.
static const int64_t others_patience_ns = INT64_C(3600000000000);

static enum inferstat_status public_status(enum status status)
{
    if (status == STATUS_INVALID || status == STATUS_DENIED)
        return INFERSTAT_INVALID;
    if (status == STATUS_NOMEM)
        return INFERSTAT_NO_MEMORY;
    return status == STATUS_OK ? INFERSTAT_OK : INFERSTAT_IO;
}

// ---- Options --------------------------------------------------------------------

void inferstat_options_init(struct inferstat_options *options)
{
    if (!options)
        return;
    *options = (struct inferstat_options){
        .size = sizeof *options,
        .report = 1,
        .history_operations = 1000,
        .history_inferences = 100,
        .ring_records = 4096,
        .sample_ms = 1000,
        .spool_bytes = SPOOL_BYTES_DEFAULT,
        .spool_free_bytes = SPOOL_FREE_DEFAULT,
    };
}

static enum status check_options(const struct inferstat_options *options, struct error *err)
{
    if (!options || options->size != sizeof *options)
        return error_set(err, STATUS_INVALID,
                         "options: not those of this version of the library (call "
                         "inferstat_options_init first)");
    const uint32_t records = options->ring_records;
    if (records < RUNFILE_RING_MIN || records > RING_RECORDS_MAX || (records & (records - 1)) != 0)
        return error_set(err, STATUS_INVALID,
                         "options: ring_records is %u (a power of two from %d to %d is needed)",
                         records, RUNFILE_RING_MIN, RING_RECORDS_MAX);
    if (options->history_inferences > EVENT_RING_LIMIT_MAX ||
        options->history_operations > EVENT_RING_LIMIT_MAX)
        return error_set(err, STATUS_INVALID, "options: a history keeps at most %d events",
                         EVENT_RING_LIMIT_MAX);
    if (options->device_ms > 0 && options->device_ms < DEVICE_MS_MIN)
        return error_set(err, STATUS_INVALID, "options: device_ms is %u (0 or at least %d)",
                         options->device_ms, DEVICE_MS_MIN);
    return STATUS_OK;
}

// ---- Opening ---------------------------------------------------------------------

static enum status describe_run(struct runfile_run *run, const struct inferstat_options *options,
                                const struct address *address, struct error *err)
{
    memset(run, 0, sizeof *run);
    enum status status = process_random(run->uuid, sizeof run->uuid, err);
    if (status != STATUS_OK)
        return status;
    run->pid = getpid();
    run->started_ns = clock_wall_ns();
    (void)names_clean(run->program, sizeof run->program,
                      options->program ? options->program : "libinferstat " INFERSTAT_VERSION);
    (void)address_text(run->collector, address);
    process_host_read(&run->host);
    return STATUS_OK;
}

// Makes a path absolute, so that other processes can use it; the caller frees it.
static enum status copy_path(char **out, const char *path, struct error *err)
{
    char here[PATH_ROOM] = "";
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return error_set(err, STATUS_IO, "%s: cannot determine the working directory", path);
    if (asprintf(out, "%s%s%s", here, *here ? "/" : "", path) >= 0)
        return STATUS_OK;
    *out = NULL;
    return error_no_memory(err, "monitor");
}

static enum status find_run_folder(struct inferstat_monitor *monitor,
                                   const struct inferstat_options *options, struct error *err)
{
    char folder[PATH_ROOM];
    enum status status = options->run_folder ? runfile_make_folder(options->run_folder, err)
                                             : runfile_default_folder(folder, sizeof folder, err);
    if (status != STATUS_OK)
        return status;
    return copy_path(&monitor->run_folder, options->run_folder ? options->run_folder : folder, err);
}

// A configured folder must be usable now; the default one is created on demand.
static enum status find_spool_folder(struct inferstat_monitor *monitor,
                                     const struct inferstat_options *options, struct error *err)
{
    char folder[PATH_ROOM];
    if (options->spool_folder && !*options->spool_folder)
        return STATUS_OK;
    enum status status =
        options->spool_folder ? files_make_folder(options->spool_folder, 0700, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = spool_default_folder(folder, sizeof folder, options->spool_folder, err);
    if (status != STATUS_OK)
        return status;
    return copy_path(&monitor->spool_folder, folder, err);
}

static enum status open_spool(struct inferstat_monitor *monitor,
                              const struct inferstat_options *options, struct error *err)
{
    if (!monitor->spool_folder)
        return STATUS_OK;
    const struct spool_settings settings = {
        .folder = monitor->spool_folder,
        .bytes_max = options->spool_bytes,
        .free_min = options->spool_free_bytes,
    };
    enum status status = runfile_set_spool(monitor->file, monitor->spool_folder, err);
    if (status == STATUS_OK)
        status =
            spool_open(&monitor->spool, &settings, runfile_run(monitor->file), monitor->names, err);
    return status;
}

// The folder for the run file: that of run files or, if its file system has no room, that of
// spools.
static const char *choose_folder(const struct inferstat_monitor *monitor,
                                 const struct inferstat_options *options)
{
    const char *runs = monitor->run_folder, *spools = monitor->spool_folder;
    if (!spool_has_room(runs, 0, RUN_ROOM)) // dead runs may hold memory that they do not need
        orphans_tidy(&(struct orphans_folders){.runs = runs},
                     &(struct orphans_bounds){UINT64_MAX, UINT64_MAX}, &monitor->log);
    if (spool_has_room(runs, 0, RUN_ROOM) || !spools ||
        runfile_make_folder(spools, NULL) != STATUS_OK ||
        !spool_has_room(spools, options->spool_free_bytes, RUN_ROOM))
        return runs;
    log_sink_write(&monitor->log, INFERSTAT_LOG_WARNING,
                   "%s has less than %d MB free: the records of this run are buffered in %s, which "
                   "is slower (enlarge the file system, in a container with --shm-size)",
                   runs, RUN_ROOM >> 20, spools);
    return spools;
}

static enum status open_run_file(struct inferstat_monitor *monitor,
                                 const struct inferstat_options *options, struct error *err)
{
    struct runfile_run run;
    enum status status = describe_run(&run, options, &monitor->address, err);
    if (status == STATUS_OK)
        status = find_run_folder(monitor, options, err);
    if (status == STATUS_OK)
        status = find_spool_folder(monitor, options, err);
    if (status == STATUS_OK)
        status = runfile_create(&monitor->file, choose_folder(monitor, options), &run,
                                options->ring_records, err);
    if (status != STATUS_OK)
        return status;
    monitor->names = runfile_names(monitor->file);
    return open_spool(monitor, options, err);
}

// Copies the settings now: the program may change its environment while our threads run.
static enum status read_trust(struct inferstat_monitor *monitor,
                              const struct inferstat_options *options, struct error *err)
{
    const struct trust_options trust = {.collector_user = options->collector_user,
                                        .key_file = options->key_file,
                                        .server_key = options->server_key,
                                        .insecure = options->insecure != 0};
    return trust_source_read(&monitor->trust, &trust, err);
}

// Opens everything that reporting needs except the thread.
static enum status open_reporting(struct inferstat_monitor *monitor,
                                  const struct inferstat_options *options, struct error *err)
{
    enum status status = peer_address(&monitor->address, options->collector, err);
    if (status == STATUS_OK)
        status = read_trust(monitor, options, err);
    if (status == STATUS_OK)
        status = open_run_file(monitor, options, err);
    return status;
}

// Starts a replay of what earlier runs left.
static void start_replay(struct inferstat_monitor *monitor, const struct inferstat_options *options)
{
    const struct replay_settings settings = {
        .folders = {.runs = monitor->run_folder,
                    .spools = monitor->spool_folder,
                    .patience_ns = others_patience_ns},
        .own = runfile_run(monitor->file),
        .spool_bytes = options->spool_bytes,
        .trust = &monitor->trust,
        .log = monitor->log,
    };
    struct error err = {.status = STATUS_OK};
    if (replay_start(&monitor->replay, &settings, &err) != STATUS_OK)
        log_sink_write(&monitor->log, INFERSTAT_LOG_WARNING, "replay cannot start: %s", err.text);
}

// Without reporting, names are in ordinary memory.
static enum status open_own_names(struct inferstat_monitor *monitor, struct error *err)
{
    void *area = mmap(NULL, names_area_size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return error_no_memory(err, "monitor");
    monitor->area = area;
    enum status status = names_open(&monitor->names, area, NULL, NULL);
    return status == STATUS_OK ? status : error_set(err, status, "monitor: out of memory");
}

static void free_monitor(struct inferstat_monitor *monitor, bool remove_files)
{
    thread_slots_deinit(&monitor->slots);
    if (remove_files) {
        spool_remove(monitor->spool);
        runfile_remove(monitor->file);
    } else {
        spool_close(monitor->spool);
        runfile_close(monitor->file);
    }
    if (monitor->area) {
        names_close(monitor->names);
        (void)munmap(monitor->area, names_area_size());
    }
    (void)pthread_cond_destroy(&monitor->listeners.returned);
    (void)pthread_mutex_destroy(&monitor->listeners.lock);
    device_registry_deinit(&monitor->registry);
    free(monitor->run_folder);
    free(monitor->spool_folder);
    free(monitor);
}

static struct inferstat_monitor *new_monitor(const struct inferstat_options *options)
{
    struct inferstat_monitor *monitor =
        aligned_alloc(_Alignof(struct inferstat_monitor), sizeof *monitor);
    if (!monitor)
        return NULL;
    memset(monitor, 0, sizeof *monitor);
    const uint32_t limits[EVENT_KINDS] = {
        [INFERSTAT_EVENT_LOAD] = 100,
        [INFERSTAT_EVENT_INFERENCE] = options->history_inferences,
        [INFERSTAT_EVENT_OPERATION] = options->history_operations,
    };
    thread_slots_init(&monitor->slots, limits);
    (void)pthread_mutex_init(&monitor->listeners.lock, NULL);
    (void)pthread_cond_init(&monitor->listeners.returned, NULL);
    device_registry_init(&monitor->registry);
    atomic_store_explicit(&monitor->sampled.device_memory, -1, memory_order_relaxed);
    monitor->logging = options->log != NULL;
    monitor->log = (struct log_sink){options->log, options->log_context};
    (void)names_clean(monitor->cuda, sizeof monitor->cuda, options->cuda ? options->cuda : "");
    return monitor;
}

static enum status start_background(struct inferstat_monitor *monitor,
                                    const struct inferstat_options *options, struct error *err)
{
    const struct background_settings settings = {
        .slots = &monitor->slots,
        .sampled = &monitor->sampled,
        .sample_ms = options->sample_ms,
        .device_ms = options->device_ms,
        .registry = &monitor->registry,
        .publisher = {.file = monitor->file,
                      .spool = monitor->spool,
                      .address = &monitor->address,
                      .trust = &monitor->trust,
                      .cuda = monitor->cuda,
                      .log = monitor->log},
    };
    return background_start(&monitor->background, &settings, err);
}

static enum status open_monitor(struct inferstat_monitor **out,
                                const struct inferstat_options *options, struct error *err)
{
    enum status status = check_options(options, err);
    if (status != STATUS_OK)
        return status;
    struct inferstat_monitor *monitor = new_monitor(options);
    if (!monitor)
        return error_no_memory(err, "monitor");
    status = options->report ? open_reporting(monitor, options, err) : open_own_names(monitor, err);
    if (status == STATUS_OK) {
        monitor->unknown_name = names_add(monitor->names, "unknown");
        status = monitor->unknown_name
                     ? thread_slots_open(&monitor->slots, monitor->file, err)
                     : error_set(err, STATUS_IO, "run file: no room for names on its file system");
    }
    if (status == STATUS_OK)
        status = start_background(monitor, options, err);
    if (status != STATUS_OK) {
        free_monitor(monitor, true);
        return status;
    }
    if (monitor->file)
        start_replay(monitor, options);
    atomic_store_explicit(&monitor->counted_since_ns, clock_monotonic_ns(), memory_order_relaxed);
    *out = monitor;
    return STATUS_OK;
}

enum inferstat_status inferstat_open(struct inferstat_monitor **out,
                                     const struct inferstat_options *options,
                                     struct inferstat_error *err)
{
    if (!out)
        return INFERSTAT_INVALID;
    *out = NULL;
    struct error reason = {.status = STATUS_OK};
    const enum inferstat_status status = public_status(open_monitor(out, options, &reason));
    if (err) {
        err->status = status;
        _Static_assert(sizeof err->text >= sizeof reason.text, "the text fits");
        memcpy(err->text, reason.text, sizeof reason.text);
    }
    return status;
}

// ---- Closing ---------------------------------------------------------------------

static void sum_up(struct inferstat_monitor *monitor, uint64_t acknowledged,
                   struct inferstat_totals *totals)
{
    *totals = (struct inferstat_totals){.acknowledged = acknowledged};
    if (!monitor->file)
        return;
    const struct runfile_counts counts = runfile_counts(monitor->file);
    totals->produced = counts.produced;
    totals->dropped = counts.dropped;
}

// Logs what an unfinished close leaves behind.
static void log_unfinished(const struct inferstat_monitor *monitor,
                           const struct inferstat_totals *sums, uint64_t in_rings)
{
    const char *path = runfile_path(monitor->file);
    const uint64_t left = sums->produced - sums->acknowledged;
    if (left == 0)
        log_sink_write(&monitor->log, INFERSTAT_LOG_WARNING,
                       "the end of the run was not acknowledged: %s stays", path);
    else
        log_sink_write(&monitor->log, INFERSTAT_LOG_WARNING,
                       "%llu records were not acknowledged and stay in %s: the next run here that "
                       "lives for a second or two sends them, or \"inferstat spool flush\"",
                       (unsigned long long)left, in_rings ? path : spool_path(monitor->spool));
}

enum inferstat_status inferstat_close(struct inferstat_monitor *monitor, uint64_t timeout_ns,
                                      struct inferstat_totals *totals)
{
    struct inferstat_totals sums = {.produced = 0};
    enum inferstat_status status = INFERSTAT_OK;
    if (monitor_is_live(monitor)) {
        const uint64_t begun = clock_monotonic_ns();
        replay_stop(monitor->replay);
        if (monitor->file)
            atomic_store_explicit(&runfile_state(monitor->file)->ended_ns, clock_wall_ns(),
                                  memory_order_relaxed);
        const uint64_t taken = clock_monotonic_ns() - begun;
        const uint64_t left = timeout_ns > taken ? timeout_ns - taken : 0;
        const struct background_end end = background_stop(monitor->background, left);
        sum_up(monitor, end.acknowledged, &sums);
        // A run without records need not be kept.
        const bool nothing = sums.produced == 0 && sums.dropped == 0;
        if (!end.finished && !nothing) {
            log_unfinished(monitor, &sums, end.in_rings);
            runfile_trim(monitor->file);
        }
        free_monitor(monitor, end.finished || nothing);
        status = end.finished ? INFERSTAT_OK : INFERSTAT_UNFINISHED;
    }
    if (totals)
        *totals = sums;
    return status;
}

void inferstat_get_totals(struct inferstat_monitor *monitor, struct inferstat_totals *totals)
{
    if (!totals)
        return;
    *totals = (struct inferstat_totals){.produced = 0};
    if (monitor_is_live(monitor))
        sum_up(monitor, background_acknowledged(monitor->background), totals);
}

// ---- Names, devices, models ---------------------------------------------------------

uint32_t inferstat_name(struct inferstat_monitor *monitor, const char *text)
{
    return monitor_is_live(monitor) ? names_add(monitor->names, text) : 0;
}

uint64_t inferstat_clock_ns(void)
{
    return clock_monotonic_ns();
}

void monitor_set_text(struct record *record, unsigned column, const char *text)
{
    char clean[MONITOR_TEXT_MAX + 1];
    if (!text || !*text)
        return;
    const size_t size = names_clean(clean, sizeof clean, text);
    (void)record_set_text(record, column, clean, size);
}

void inferstat_device_init(struct inferstat_device *device)
{
    if (!device)
        return;
    *device = (struct inferstat_device){
        .pcie_generation = -1,
        .pcie_width = -1,
        .pcie_generation_max = -1,
        .pcie_width_max = -1,
        .memory_bandwidth_bytes_per_second = -1,
        .h2d_bytes_per_second = -1,
        .flops_per_second = -1,
        .power_cap_watts = -1,
        .slowdown_celsius = -1,
        .sm_clock_max_hz = -1,
        .memory_clock_max_hz = -1,
    };
}

uint32_t inferstat_add_device(struct inferstat_monitor *monitor,
                              const struct inferstat_device *device)
{
    if (!device || !monitor_is_live(monitor))
        return 0;
    const uint32_t name = monitor_known_name(monitor, names_add(monitor->names, device->name));
    if (!monitor->file)
        return name;

    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, clock_wall_ns());
    record_set_int(&record, DEVICE_ORDINAL, device->ordinal);
    record_set_name(&record, DEVICE_NAME, name);
    record_set_int(&record, DEVICE_MEMORY_BYTES, monitor_plausible(device->memory_bytes));
    monitor_set_optional(&record, DEVICE_PCIE_GENERATION, device->pcie_generation);
    monitor_set_optional(&record, DEVICE_PCIE_WIDTH, device->pcie_width);
    monitor_set_optional(&record, DEVICE_PCIE_GENERATION_MAX, device->pcie_generation_max);
    monitor_set_optional(&record, DEVICE_PCIE_WIDTH_MAX, device->pcie_width_max);
    monitor_set_optional_real(&record, DEVICE_MEMORY_BANDWIDTH,
                              device->memory_bandwidth_bytes_per_second);
    monitor_set_optional_real(&record, DEVICE_H2D, device->h2d_bytes_per_second);
    monitor_set_optional_real(&record, DEVICE_FLOPS, device->flops_per_second);
    monitor_set_optional_real(&record, DEVICE_POWER_CAP, device->power_cap_watts);
    monitor_set_optional(&record, DEVICE_SM_CLOCK_MAX, device->sm_clock_max_hz);
    monitor_set_optional(&record, DEVICE_MEMORY_CLOCK_MAX, device->memory_clock_max_hz);
    monitor_set_text(&record, DEVICE_COMPUTE_CAPABILITY, device->compute_capability);
    monitor_set_text(&record, DEVICE_UUID, device->uuid);
    monitor_set_optional_real(&record, DEVICE_SLOWDOWN, device->slowdown_celsius);
    monitor_set_text(&record, DEVICE_PARENT_UUID, device->parent_uuid);
    device_registry_add(&monitor->registry, &record);
    atomic_fetch_add_explicit(&runfile_state(monitor->file)->devices, 1, memory_order_relaxed);
    (void)thread_slot_push(&monitor->slots, thread_slot_current(&monitor->slots), &record, 1);
    return name;
}

void inferstat_model_init(struct inferstat_model *model)
{
    if (model)
        *model = (struct inferstat_model){.parameters = -1,
                                          .file_bytes = -1,
                                          .context = -1,
                                          .kv_bytes_per_token = -1,
                                          .weight_bytes_per_token = -1};
}

uint32_t inferstat_add_model(struct inferstat_monitor *monitor, const struct inferstat_model *model)
{
    if (!model || !monitor_is_live(monitor))
        return 0;
    const uint32_t name = monitor_known_name(monitor, names_add(monitor->names, model->name));
    if (!monitor->file)
        return name;

    struct record record;
    record_init(&record, RECORD_KIND_MODEL, clock_wall_ns());
    record_set_name(&record, MODEL_NAME, name);
    monitor_set_optional(&record, MODEL_PARAMETERS, model->parameters);
    monitor_set_optional(&record, MODEL_FILE_BYTES, model->file_bytes);
    monitor_set_optional(&record, MODEL_CONTEXT, model->context);
    monitor_set_optional(&record, MODEL_KV_BYTES, model->kv_bytes_per_token);
    monitor_set_optional(&record, MODEL_WEIGHT_BYTES, model->weight_bytes_per_token);
    monitor_set_text(&record, MODEL_FORMAT,
                     model->format && *model->format ? model->format : "unknown");
    monitor_set_text(&record, MODEL_ARCHITECTURE, model->architecture);
    monitor_set_text(&record, MODEL_QUANTISATION, model->quantisation);
    monitor_set_text(&record, MODEL_DIGEST, model->digest);
    (void)thread_slot_push(&monitor->slots, thread_slot_current(&monitor->slots), &record, 1);
    return name;
}

void inferstat_set_device_memory(struct inferstat_monitor *monitor, int64_t bytes)
{
    if (!monitor_is_live(monitor))
        return;
    atomic_store_explicit(&monitor->sampled.device_memory_set, true, memory_order_relaxed);
    // Released after the flag: who sees the value sees the flag.
    atomic_store_explicit(&monitor->sampled.device_memory,
                          bytes < 0 ? -1 : monitor_plausible(bytes), memory_order_release);
}

void inferstat_set_queued_requests(struct inferstat_monitor *monitor, uint32_t model,
                                   uint32_t count)
{
    if (!monitor_is_live(monitor))
        return;
    const unsigned int place =
        thread_slots_place(&monitor->slots, monitor_known_name(monitor, model));
    const int64_t before =
        atomic_exchange_explicit(&monitor->slots.queued[place], count, memory_order_relaxed);
    // Every request's end reads that cache line: it is not written without need.
    if (before != count)
        atomic_fetch_add_explicit(&monitor->sampled.queued_requests, count - before,
                                  memory_order_relaxed);
}
