// Command-line interface of `inferstat-worker`, the program that runs GPU workloads and records
// their telemetry: the commands, and the options, exit codes and functions that they share.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/json_writer.h"
#include "common/monitor/inferstat.h"
#include "common/sys/log.h"
#include "common/sys/option_table.h"
#include "server/device/device.h"

// The --wait option: a thread that waits for a device sleeps or spins.
enum worker_wait { WORKER_WAIT_BLOCK, WORKER_WAIT_SPIN };

// Options of every command, before or after its name.
struct worker_options {
    // Address of the collector, and who may run it.  NULL: default, as in struct inferstat_options.
    const char *collector, *collector_user;
    bool no_report;      // measure, but send no records
    const char *spool;   // directory of spools (records kept on disk); NULL: default, "": none
    int64_t spool_bytes; // size limit of the spool; 0: default
    // For a collector on another host.  `key`: file of the user's key; `server_key`: the
    // collector's public key, or a file of keys.  NULL: default, as in struct inferstat_options.
    const char *key, *server_key;
    bool insecure;                // allow an unencrypted connection
    struct device_options device; // `spin` follows from `wait`
    int wait;                     // enum worker_wait
    int64_t device_interval_ns;   // between samples of host and GPUs; 0: none
    int log_level;                // enum log_level; negative: not given
    bool help, version;
    uint32_t ring_records; // of struct inferstat_options, set by a command; 0: default
};

// Exit codes.
enum {
    WORKER_DONE = 0,
    WORKER_CHECK_FAILED = 1, // a request failed or a result is wrong
    WORKER_USAGE = 2,        // wrong command line or option value
    WORKER_NO_DATA = 3,      // no prompt
    WORKER_UNREACHABLE = 4,  // any other error: a file, a device or the output cannot be used
    WORKER_STOPPED = 130, // a command other than `llm` was interrupted; the shell's code for SIGINT
};

// A command.  The values of its options are stored as `options` says before `run` is called.
struct worker_command {
    const char *name;
    const char *summary;
    const char *words; // arguments in the help's usage line, "OUT.gguf"; "": none
    struct option_table options;
    // Runs the command with `count` positional arguments `words`; returns the exit code.
    int (*run)(const struct worker_options *options, char *const *words, int count);
};

extern const struct worker_command command_encode;
extern const struct worker_command command_gemm;
extern const struct worker_command command_llm;
extern const struct worker_command command_make_model;
extern const struct worker_command command_tokenize;
extern const struct worker_command command_watch;
extern const struct worker_command command_zoo;

// Logs an error and returns its exit code: WORKER_USAGE for STATUS_INVALID, else
// WORKER_UNREACHABLE.
int worker_fail(const struct error *err);

// Opens the process's monitor (common/monitor/inferstat.h) with `options`.  The monitor's messages
// go to the log.  From then on, stop signals are handled (common/sys/stop.h).
MUST_CHECK enum status worker_open_monitor(struct inferstat_monitor **out,
                                           const struct worker_options *options, struct error *err);

// Closes the monitor: waits at most 2 s until the collector has committed all records, then logs a
// warning if some remain.  Fills `*totals`.  `monitor` may be NULL.
void worker_close_monitor(struct inferstat_monitor *monitor, struct inferstat_totals *totals);

// Writes the totals as members of a JSON object.
void worker_write_totals(struct json_writer *json, const struct inferstat_totals *totals);

// Writes the settings of the host and of this process that change results as members of a JSON
// object: cpu_governor, huge_pages, allocator and build_flags, null where unknown.
void worker_write_settings(struct json_writer *json);

// Writes them as the member `fingerprint`, with the processor and the kernel's release.
void worker_write_fingerprint(struct json_writer *json);

// The member `status` of a workload's object: "ok", "cancelled" or "error".
const char *worker_status_word(enum status status);

// Writes a member of a JSON object: `value`, or null if it is not known.
void worker_write_maybe(struct json_writer *json, const char *key, uint64_t value, bool is_known);

// Logs the name of the chosen device and the reason for the choice.  It is a warning if another
// device failed to open first.
void worker_log_device(const struct device_description *device);
