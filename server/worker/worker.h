// Commands of the worker program, and their common options, exit codes and helpers.
#ifndef INFERSTAT_SERVER_WORKER_WORKER_H
#define INFERSTAT_SERVER_WORKER_WORKER_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "common/core/query/json_writer.h"
#include "common/monitor/inferstat.h"
#include "common/sys/log.h"
#include "common/sys/option_table.h"
#include "server/device/device.h"

// The --wait option: a thread that waits for a device sleeps or spins.
enum worker_wait { WORKER_WAIT_BLOCK, WORKER_WAIT_SPIN };

// Options of every command, before or after its name.
struct worker_options {
    const char *collector;
    bool no_report;
    const char *spool;   // folder; NULL: the default, "": none
    int64_t spool_bytes; // 0: the default
    const char *key, *server_key;
    bool insecure;
    struct device_options device; // `spin` follows from `wait`
    int wait;                     // enum worker_wait
    enum log_level log_level;
    bool help, version;
};

// Exit codes.
enum {
    WORKER_DONE = 0,
    WORKER_CHECK_FAILED = 1, // a request failed or a result is wrong
    WORKER_USAGE = 2,
    WORKER_NO_DATA = 3, // no prompt
    WORKER_UNREACHABLE = 4,
    WORKER_STOPPED = 130, // a bounded run was interrupted; the shell's code for SIGINT
};

// A command.  Options are parsed into the target of `options` before `run` is called; `run` gets
// the positional arguments in `words`.
struct worker_command {
    const char *name;
    const char *summary;
    const char *words; // positional arguments in the help, "OUT.gguf"; "": none
    const struct option_table *options;
    int (*run)(const struct worker_options *options, char *const *words, int count);
};

extern const struct worker_command command_encode;
extern const struct worker_command command_llm;
extern const struct worker_command command_make_model;

// Prints an error and returns the exit code of its status.
int worker_fail(const struct error *err);

// Handles stop signals from now on (common/sys/stop.h) and opens the process's monitor with these
// options; its messages go to the log.
MUST_CHECK enum status worker_open_monitor(struct inferstat_monitor **out,
                                           const struct worker_options *options, struct error *err);

// Closes it within a deadline and fills `totals`.  Accepts NULL.
void worker_close_monitor(struct inferstat_monitor *monitor, struct inferstat_totals *totals);

// Writes the totals as members of a JSON object.
void worker_write_totals(struct json_writer *json, const struct inferstat_totals *totals);

// Logs which device was chosen and why; as a warning when another one failed before.
void worker_log_device(const struct device_description *device);

#endif
