// libinferstat: an instrumentation API for inference engines.
//
// A process opens a monitor.  Trackers of the monitor measure the startup, each model load,
// inference and operation.  A tracker that ends writes a record into the calling thread's
// ring buffer (a load or startup, also one record for each of its stages).  A background
// thread of the library sends the records to the collector, which commits and acknowledges
// them.  No call except inferstat_close waits for the collector.  When a ring is full, the
// record is dropped; the collector is told how many were dropped.
//
// A run is the time from inferstat_open to inferstat_close, or until the process dies.
//
//     struct inferstat_options options;
//     inferstat_options_init(&options);
//     struct inferstat_monitor *monitor;
//     struct inferstat_error err;
//     if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK)
//         fprintf(stderr, "%s\n", err.text);      // monitor is NULL: every call
//                                                 // below accepts that and does nothing
//     uint32_t model = inferstat_name(monitor, "stories260K");
//     uint32_t device = inferstat_name(monitor, "cpu");
//     struct inferstat_inference *inference = inferstat_inference_new(monitor);
//     inferstat_inference_begin(inference, &(struct inferstat_request){
//         .model = model, .device = device, .request = 1, .prompt_tokens = 12});
//     inferstat_inference_start_prefill(inference);
//     while (generate_token())
//         inferstat_inference_token(inference);
//     inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
//     inferstat_inference_free(inference);
//     inferstat_close(monitor, 2000000000, NULL);
//
// Durability: a record is in the thread's ring when the call that creates it (_end or
// _add_) returns.  The rings are in the run file, a memory-mapped file on tmpfs.  So a killed
// process loses no record.  While the collector is unreachable, the library moves records
// from the rings to the spool, a write-ahead log on disk: when a ring is half full, and every
// two seconds.  A ring slot is freed when its record is committed by the collector or synced
// to the spool.  If the host goes down, only records that were in neither are lost.
//
// Records of a dead process are sent, under its run, by the next process that opens a monitor
// on the host with the same folders, or by `inferstat spool flush`.  The collector then marks
// the run as killed and stores the last activity of each of its threads.  Until then a user's dead
// runs take at most 256 MiB of tmpfs, or half of the tmpfs if that is less; beyond it the oldest
// are moved to the spool folder.  In all they take at most 4 GiB, or 16 times spool_bytes if that
// is more; beyond it the oldest records are dropped and reported as lost.
//
// Threads: any number of threads may use a monitor at once.  A tracker belongs to one
// thread at a time.  A thread's first record allocates its ring buffer, with a lock, a
// system call and memory; later records need none of them.  When a thread exits, the next
// new thread reuses its ring.  A ring takes at most a 32nd of the free space of its file
// system, or has 64 slots; where less than 8 MB are free, the run file is in the spool folder.
// At most 1023 threads have a ring at a time; records of further threads are counted as
// dropped (no_room).  No other call with a monitor may run concurrently with its inferstat_open
// or inferstat_close.
//
// fork(): in the child, calls with the parent's monitor do nothing; the parent is not
// affected.  The child may open its own monitor, which begins another run.  vfork() and
// posix_spawn() are safe.  exec closes the library's files.
//
// Times are in nanoseconds, memory in bytes.  Strings are UTF-8 and are copied.  Every
// function accepts NULL for the monitor or tracker: it then does nothing and returns 0 or
// NULL.
//
// The name of the host is INFERSTAT_HOST if that is set, else that of the system.
#ifndef INFERSTAT_H
#define INFERSTAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define INFERSTAT_API __attribute__((visibility("default")))
#else
#define INFERSTAT_API
#endif

struct inferstat_monitor;
struct inferstat_load;
struct inferstat_startup;
struct inferstat_inference;

enum inferstat_status {
    INFERSTAT_OK,
    INFERSTAT_INVALID,    // an argument or option is invalid
    INFERSTAT_NO_MEMORY,  // out of memory
    INFERSTAT_IO,         // the run file or the socket could not be created
    INFERSTAT_UNFINISHED, // inferstat_close timed out before everything was acknowledged
};

struct inferstat_error {
    enum inferstat_status status;
    char text[512]; // "what failed: why (what to do)"
};

// ---- Monitor --------------------------------------------------------------

enum inferstat_log_level { INFERSTAT_LOG_ERROR, INFERSTAT_LOG_WARNING, INFERSTAT_LOG_INFO };

struct inferstat_options {
    size_t size;                 // sizeof(struct inferstat_options), set by _init
    const char *collector;       // address; NULL: the environment variable INFERSTAT_COLLECTOR,
                                 // else the sockets in the default folder
    const char *run_folder;      // folder of the run file; NULL: INFERSTAT_RUN_DIR, else tmpfs;
                                 // rejected if any user may delete files in it
    const char *program;         // name and version to report; NULL: "libinferstat VERSION"
    int report;                  // 0: keep local history only, publish nothing, open no socket
    uint32_t history_operations; // local history: last operations kept (default 1000, 0 is none,
                                 // 2^20 at most)
    uint32_t history_inferences; // last inferences kept (default 100; same range)
    uint32_t ring_records; // slots of a thread's ring, if there is room (default 4096; a power
                           // of two from 64 to 2^20); a record with a long text takes two
    uint32_t sample_ms;    // sampling interval of memory and processor use (default 1000,
                           // 0: at the start only)
    // Folder of the spool (see Durability).  NULL: INFERSTAT_SPOOL, else
    // $XDG_STATE_HOME/inferstat/spool, else ~/.local/state/inferstat/spool, for root
    // /var/lib/inferstat/spool; "": no spool.
    const char *spool_folder;
    uint64_t spool_bytes;      // size limit of this run's spool; beyond it the oldest records are
                               // dropped and reported as lost (default 256 MiB, at least 4 MiB)
    uint64_t spool_free_bytes; // free space that the spool leaves on the file system (default,
                               // UINT64_MAX: 1 GiB, or 5 % of the file system if less)
    // Authentication for collectors on other hosts; see inferstat-worker(1).
    const char *key_file;   // NULL: INFERSTAT_KEY, else ~/.config/inferstat/key
    const char *server_key; // the collector's key in Z85, or a file of keys; NULL:
                            // INFERSTAT_SERVER_KEY, else known_collectors
    int insecure;           // not 0: allow unencrypted TCP to other hosts
    // Callback for log lines (collector unreachable, reachable again; [LOAD] and [INFER]
    // lines at info), one line each.  May be called from any thread.  NULL: no log.
    void (*log)(void *context, enum inferstat_log_level level, const char *text);
    void *log_context;
    // User name or number: who may run the collector at an ipc address, beside root and the user
    // of this process.  NULL: INFERSTAT_COLLECTOR_USER, else no other user.  Nothing is sent to a
    // folder that belongs to another user, unless root has given it to that user by making it in a
    // folder of its own, such as /run/inferstat.
    const char *collector_user;
    // Sampling interval of the host and of all GPUs, by their drivers, with what goes wrong on them
    // (default 0: off; else at least 100).  A thread of its own calls the drivers: one that hangs
    // stops nothing else, also not inferstat_close.  One process of a user on a host samples; the
    // others take over when it ends.
    uint32_t device_ms;
    const char *cuda; // version of the CUDA runtime that the program uses, such as "12.8"; it is
                      // reported where an NVIDIA driver is loaded.  NULL: none
};

INFERSTAT_API void inferstat_options_init(struct inferstat_options *options);

// Opens a monitor.  An unreachable collector is no error.  On failure `*out` is NULL.
INFERSTAT_API enum inferstat_status inferstat_open(struct inferstat_monitor **out,
                                                   const struct inferstat_options *options,
                                                   struct inferstat_error *err);

struct inferstat_totals {
    uint64_t produced;     // records written to a ring (0 without `report`)
    uint64_t acknowledged; // of them, those that the collector has acknowledged
    uint64_t dropped;      // records not written: the ring was full, or the thread had none
};

// Ends the run: sends the remaining records, waits up to `timeout_ns` until the collector
// has committed the records and the end of the run, and frees the monitor.  All trackers
// must have ended; no other thread may use the monitor.  `totals` may be NULL.
//
// Returns INFERSTAT_UNFINISHED if the time passed first.  Then it writes the unacknowledged
// records to the spool, which may take longer than `timeout_ns`; without a spool, or when the
// spool is full, they stay in the run file.  The log names the file, which the next process
// sends.  If the host restarts before that, the run counts as killed.
//
// A run file that remains after inferstat_close needs only the memory of its records.  The
// run file of a killed process needs 1 MB (with rings of 4096 slots) for each of its threads
// that has written a record, and 1 MB for the background thread.
INFERSTAT_API enum inferstat_status inferstat_close(struct inferstat_monitor *monitor,
                                                    uint64_t timeout_ns,
                                                    struct inferstat_totals *totals);

// Reads the current totals.  Any thread.
INFERSTAT_API void inferstat_get_totals(struct inferstat_monitor *monitor,
                                        struct inferstat_totals *totals);

// Interns the name of a model, device, operation or stage and returns its id; the same text
// has the same id.  Returns 0 for NULL and "", and when the run has 65,535 names or 4 MiB of
// text.  Text over 255 bytes is cut.  Takes a lock: call it once and keep the id.
INFERSTAT_API uint32_t inferstat_name(struct inferstat_monitor *monitor, const char *text);

// The library's monotonic clock, in nanoseconds.  arrival_ns and the started_ns of a timer or
// a pipeline are times of this clock.
INFERSTAT_API uint64_t inferstat_clock_ns(void);

// ---- Devices and models ---------------------------------------------------

// Negative numbers (but `ordinal` and `memory_bytes`) and NULL texts are absent in the record;
// inferstat_device_init sets them.
struct inferstat_device {
    uint32_t ordinal;
    const char *name;
    const char *uuid;
    int64_t memory_bytes; // 0: unknown
    const char *compute_capability;
    int pcie_generation, pcie_width, pcie_generation_max, pcie_width_max;
    double memory_bandwidth_bytes_per_second;
    double h2d_bytes_per_second; // copies from host to device
    double flops_per_second;
    double power_cap_watts;                       // most power it may draw
    int64_t sm_clock_max_hz, memory_clock_max_hz; // highest clocks it may have
    double slowdown_celsius;                      // temperature at which it slows down
    const char *parent_uuid;                      // of a MIG instance: the UUID of its GPU
};

INFERSTAT_API void inferstat_device_init(struct inferstat_device *device);

// Records that the run uses a device, and returns the id of its name.  Samples of the device with
// that UUID get the same name.
INFERSTAT_API uint32_t inferstat_add_device(struct inferstat_monitor *monitor,
                                            const struct inferstat_device *device);

struct inferstat_model {
    const char *name;
    const char *digest;
    const char *format; // NULL is recorded as "unknown"
    const char *architecture;
    const char *quantisation;
    int64_t parameters, file_bytes, context; // context: tokens; absent when negative
    // Bytes of KV cache per token of the context, read again for each later token: 2 (keys
    // and values) * layers * KV heads * head dimension * bytes per element.  If negative it is
    // absent, and MBU (memory bandwidth utilisation) counts only the weights.
    int64_t kv_bytes_per_token;
    // Bytes of weights that the computation of a token reads: all but the embedding table, of which
    // it reads a row, unless that is the output matrix, too.  If negative it is absent, and MBU
    // counts all weights.
    int64_t weight_bytes_per_token;
};

INFERSTAT_API void inferstat_model_init(struct inferstat_model *model);

// Records a model's description, and returns the id of its name.
INFERSTAT_API uint32_t inferstat_add_model(struct inferstat_monitor *monitor,
                                           const struct inferstat_model *model);

// Sets the device memory in use, in bytes, which later records report; negative: unknown.  Until
// it is called, records report what the driver says, if this process samples devices (device_ms).
// Any thread; wait-free.
INFERSTAT_API void inferstat_set_device_memory(struct inferstat_monitor *monitor, int64_t bytes);

// ---- Startup --------------------------------------------------------------

// Begins the startup of the process, which ends when the process is ready to serve.  A stage
// lasts until the next stage starts or the startup ends.
INFERSTAT_API struct inferstat_startup *inferstat_startup_begin(struct inferstat_monitor *monitor);
INFERSTAT_API void inferstat_startup_start_stage(struct inferstat_startup *startup,
                                                 const char *stage);
// The process is ready: records the startup with its stages and frees the tracker.
INFERSTAT_API void inferstat_startup_end(struct inferstat_startup *startup);
// The startup failed: frees the tracker without a record.
INFERSTAT_API void inferstat_startup_abandon(struct inferstat_startup *startup);

// ---- Loads ----------------------------------------------------------------

enum inferstat_result { INFERSTAT_RESULT_OK, INFERSTAT_RESULT_ERROR, INFERSTAT_RESULT_CANCELLED };

// Begins a model load; allocates its tracker.  A load has at most 32 stages; the time of
// further ones is added to the last.  NULL when out of memory.
INFERSTAT_API struct inferstat_load *inferstat_load_begin(struct inferstat_monitor *monitor,
                                                          uint32_t model, uint32_t device);

// Starts the stage named `stage`, at the instant at which the running stage, if any, ends.
// Time before the first stage, and after inferstat_load_end_stage, is in no stage and is
// shown as "other".
INFERSTAT_API void inferstat_load_start_stage(struct inferstat_load *load, const char *stage);
INFERSTAT_API void inferstat_load_end_stage(struct inferstat_load *load);

// Sets the model if it is known only after the load has begun.
INFERSTAT_API void inferstat_load_set_model(struct inferstat_load *load, uint32_t model);
// Sets the device if it is chosen only after the load has begun.
INFERSTAT_API void inferstat_load_set_device(struct inferstat_load *load, uint32_t device);
INFERSTAT_API void inferstat_load_set_model_bytes(struct inferstat_load *load, int64_t bytes);
// Sets the share of the model's file that was in the page cache before the load, 0..1.
INFERSTAT_API void inferstat_load_set_page_cache_ratio(struct inferstat_load *load, double ratio);
INFERSTAT_API void inferstat_load_set_storage_rate(struct inferstat_load *load,
                                                   double bytes_per_second);
// Sets the rate of copies from host to device.
INFERSTAT_API void inferstat_load_set_h2d_rate(struct inferstat_load *load,
                                               double bytes_per_second);

// Ends the running stage and the load, records the load with its stages, and frees the
// tracker.  `error` says why the load failed, cut to 255 bytes; NULL: it did not fail.
INFERSTAT_API void inferstat_load_end(struct inferstat_load *load, enum inferstat_result result,
                                      const char *error);

// ---- Inferences -----------------------------------------------------------

enum inferstat_finish {
    INFERSTAT_FINISH_STOP,      // the model ended its answer
    INFERSTAT_FINISH_LENGTH,    // a limit on tokens or context was reached
    INFERSTAT_FINISH_CANCELLED, // the caller gave up
    INFERSTAT_FINISH_ERROR,
};

struct inferstat_request {
    uint32_t model, device; // ids from inferstat_name
    uint64_t request;       // the engine's own request number
    uint64_t arrival_ns;    // inferstat_clock_ns() at arrival; 0: now
    uint32_t prompt_tokens;
    uint32_t cached_prompt_tokens; // part of prompt_tokens: found in a cache, not computed
    // Items of the batch (images, windows of sound), of a model that makes no tokens; 0: it makes
    // tokens.  With items the record has queue_ns and e2e_ns, and no tokens or times of tokens; its
    // computation starts with inferstat_inference_begin, or with _start_prefill if that is called.
    uint32_t items;
};

// Creates a reusable tracker for one request at a time: begin, end, begin, end.  Only _new
// and _free allocate or free memory.  No call between them allocates or makes a system call,
// except for a thread's first record (see Threads above).  NULL when out of memory.
INFERSTAT_API struct inferstat_inference *
inferstat_inference_new(struct inferstat_monitor *monitor);
INFERSTAT_API void inferstat_inference_free(struct inferstat_inference *inference);

// A request has arrived.
INFERSTAT_API void inferstat_inference_begin(struct inferstat_inference *inference,
                                             const struct inferstat_request *request);

// Sets the prompt's length in tokens, if the tokenizer runs after inferstat_inference_begin.
INFERSTAT_API void inferstat_inference_set_prompt(struct inferstat_inference *inference,
                                                  uint32_t prompt_tokens,
                                                  uint32_t cached_prompt_tokens);

// Ends the request's time in the queue and starts its prefill, the computation of the prompt.
// Without this call a request that generates tokens counts no queue time, and it counts as waiting
// until its first token; one of items is computed from inferstat_inference_begin on.
INFERSTAT_API void inferstat_inference_start_prefill(struct inferstat_inference *inference);

// Ends prefill: the first token is generated.  Only engines that call _count_tokens need it;
// the first call of _token does the same.
INFERSTAT_API void inferstat_inference_start_generation(struct inferstat_inference *inference);

// Counts one generated token and measures its inter-token latency; reads the clock once.
INFERSTAT_API void inferstat_inference_token(struct inferstat_inference *inference);

// Counts `count` generated tokens without latencies.  Reads the clock only for the first
// token of a request.
INFERSTAT_API void inferstat_inference_count_tokens(struct inferstat_inference *inference,
                                                    uint32_t count);

// Ends the request and records it.  The request's end is the time of its last token, or now
// if that time is not known.
INFERSTAT_API void inferstat_inference_end(struct inferstat_inference *inference,
                                           enum inferstat_finish finish);

// Ends a request that failed (INFERSTAT_FINISH_ERROR).  `error` says why, cut to 255 bytes;
// NULL: unknown.
INFERSTAT_API void inferstat_inference_fail(struct inferstat_inference *inference,
                                            const char *error);

// Sets how many requests for a model (a name of inferstat_name) wait in the engine's own queue
// without a tracker, for engines that begin a request (with its arrival_ns) only when they compute
// it.  They count as in progress and as waiting: in samples of the process, and in
// concurrent_requests of requests that end.  The requests of the first 64 models of a process are
// counted by model; the models after them share one count, which each call replaces.  Any thread;
// lock-free.
INFERSTAT_API void inferstat_set_queued_requests(struct inferstat_monitor *monitor, uint32_t model,
                                                 uint32_t count);

// ---- Operations -----------------------------------------------------------

// Timer of an operation, such as tokenising; in the caller's memory.  Between _begin and _end
// the caller may set `started_ns` to an earlier time, and `device`, `items` and `bytes`.
struct inferstat_timer {
    struct inferstat_monitor *monitor;
    uint64_t started_ns;        // inferstat_clock_ns() at the start
    uint32_t operation, device; // ids from inferstat_name; device 0: none
    int64_t items, bytes;       // processed; absent when negative
};

INFERSTAT_API void inferstat_timer_begin(struct inferstat_timer *timer,
                                         struct inferstat_monitor *monitor, uint32_t operation);
// Records the operation.  `extra` is short JSON text (at most 255 bytes), or NULL.
// Returns the duration in nanoseconds.
INFERSTAT_API uint64_t inferstat_timer_end(struct inferstat_timer *timer, const char *extra);
// Records an operation that failed.  `error` says why, cut to 255 bytes; NULL or "": unknown.
// Returns the duration in nanoseconds.
INFERSTAT_API uint64_t inferstat_timer_fail(struct inferstat_timer *timer, const char *error);

// ---- Pipelines ------------------------------------------------------------

enum inferstat_sync {
    INFERSTAT_SYNC_EVENTS,   // a slot is refilled after the event of its own copy
    INFERSTAT_SYNC_PERIODIC, // slots are reused after periodic synchronisation of whole streams
};

// One execution of a pipeline that copies data to a device in chunks, through a pool of slots
// in pinned host memory.  Busy times are measured with timed events on the device: the length
// of the union of the intervals in which a copy or kernel ran.  -1 means "not measured":
// the value is absent in the record.  inferstat_pipeline_init sets all measured values to -1.
struct inferstat_pipeline {
    uint32_t workload, device; // ids from inferstat_name
    uint32_t model;            // id of the model loaded or computed with; 0: none
    enum inferstat_result result;
    uint64_t started_ns;  // inferstat_clock_ns() at its start; 0: now minus duration_ns
    uint64_t duration_ns; // until the last result
    int64_t items;        // items processed
    int64_t batch_items;  // items per batch; absent when negative
    uint64_t chunk_bytes; // size of a slot
    uint32_t pool_size;   // number of slots
    uint32_t prefetch;    // most chunks filled ahead
    enum inferstat_sync sync;
    uint64_t bytes_h2d; // copied from host to device
    int64_t copy_busy_ns, compute_busy_ns, both_busy_ns;
    int64_t exposed_copy_ns; // a copy to the device ran and no kernel did
    int64_t copy_starved_ns; // no copy ran because no slot was filled, though slots were free
    int64_t idle_ns;         // neither copy nor kernel ran, between the first and the last of them
    int64_t pool_acquires;   // slots acquired
    int64_t pool_waits, pool_wait_ns; // acquires that waited for a free slot; their total time
    int64_t pool_waits_below_64us, pool_waits_below_4096us; // the shorter ones of pool_waits
    int64_t pool_available_min, pool_available_max;         // free slots
    int64_t item_p50_ns, item_p95_ns, item_p99_ns; // from an item's first copy to its result
    int64_t unmeasured_chunks;                     // chunks without measured times
    uint32_t source; // id of the name of what its items came from, such as "file"; 0: unknown
};

INFERSTAT_API void inferstat_pipeline_init(struct inferstat_pipeline *pipeline);

// Records an execution of a pipeline: succeeded, failed or cancelled.
INFERSTAT_API void inferstat_add_pipeline(struct inferstat_monitor *monitor,
                                          const struct inferstat_pipeline *pipeline);

// ---- Local history: the last events, inside this process ------------------

// An event is a load, inference or operation that has ended.
enum inferstat_event_kind {
    INFERSTAT_EVENT_LOAD,
    INFERSTAT_EVENT_INFERENCE,
    INFERSTAT_EVENT_OPERATION,
};

struct inferstat_event {
    enum inferstat_event_kind kind;
    const char *name;     // model or operation; borrowed, valid until the monitor is closed
    int64_t started_ns;   // wall clock: since 1970, UTC
    uint64_t duration_ns; // load, operation: duration; inference: end to end
    uint64_t ttft_ns;     // inference; 0: absent
    uint64_t decode_ns;   // inference; 0: absent
    uint64_t prompt_tokens, generated_tokens; // inference
    uint64_t items;                           // inference; 0: absent
    double tokens_per_second;                 // inference; negative: absent
    int64_t host_memory_bytes;
    int status; // load: enum inferstat_result; inference: enum inferstat_finish
};

// A callback for each event, called on the thread that ended it; it must be fast.
typedef void inferstat_listener(void *context, const struct inferstat_event *event);

// Adds a listener.  Returns a handle above 0 for inferstat_unlisten, or 0 if there are 16
// listeners already.
INFERSTAT_API int inferstat_listen(struct inferstat_monitor *monitor, inferstat_listener *listener,
                                   void *context);
// Removes the listener with this handle.  When the call returns, the listener is not running
// on another thread and will not run again.
INFERSTAT_API void inferstat_unlisten(struct inferstat_monitor *monitor, int handle);

// Copies the last events of a kind, at most `count`, oldest first, and returns their number.
// The history has the last 100 loads; history_operations and history_inferences set the
// other limits.  Any thread.
INFERSTAT_API size_t inferstat_history(struct inferstat_monitor *monitor,
                                       enum inferstat_event_kind kind,
                                       struct inferstat_event *events, size_t count);

// Computes the mean duration of an operation in the local history.  Returns 0 and leaves
// `*mean_ns` unchanged when the history has none.
INFERSTAT_API int inferstat_operation_mean(struct inferstat_monitor *monitor, const char *operation,
                                           double *mean_ns);

struct inferstat_summary {
    int64_t host_memory_bytes;   // of this process
    int64_t device_memory_bytes; // negative: unknown
    double cpu_ratio;            // CPU time per wall-clock time of this process, 2: two busy
                                 // processors; negative: not sampled yet
    int has_load, has_inference, has_startup;
    struct inferstat_event last_load, last_inference;
    uint64_t startup_ns;
    // Tokens after the first by decode time, both summed over the local history; negative: none.
    double mean_tokens_per_second;
    // Since inferstat_open or the last inferstat_clear.
    uint64_t generated_tokens;
    uint64_t inferences, loads, operations;
    // Throughput: requests that ended, and their generated tokens, per second of wall time since
    // then.  A request's own speed is mean_tokens_per_second.
    double request_rate, output_token_rate;
};

INFERSTAT_API void inferstat_get_summary(struct inferstat_monitor *monitor,
                                         struct inferstat_summary *summary);

// The current resident memory of this process; negative when it cannot be read.
INFERSTAT_API int64_t inferstat_process_memory(void);

// Clears the local history and the summary's counts.  Records for the collector are not
// affected.
INFERSTAT_API void inferstat_clear(struct inferstat_monitor *monitor);

#ifdef __cplusplus
}
#endif

#endif
