// Definition of struct inferstat_monitor, the opaque handle of the public API (inferstat.h), and
// helpers for the trackers: the modules that measure startups, loads, inferences, operations and
// pipelines, and write the records of them.
#pragma once

#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/monitor/background.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/inferstat.h"
#include "common/monitor/runfile/names.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"
#include "common/monitor/thread_slot.h"
#include "common/sys/clock.h"
#include "common/wire/address.h"
#include "common/wire/message.h"
#include "common/wire/trust.h"

struct replay;

// The application's callbacks for events (inferstat_listen).
enum { LISTENERS_MAX = 16 };

struct listeners {
    _Atomic uint32_t count;  // active listeners, read without the lock
    pthread_mutex_t lock;    // guards the members below
    pthread_cond_t returned; // a call of a listener that is being removed has returned
    struct listener {
        inferstat_listener *function; // NULL: free
        void *context;
        uint32_t serial;  // distinguishes successive listeners of this slot
        uint32_t running; // calls in progress
        int leaving;      // being removed: no new calls
    } places[LISTENERS_MAX];
    uint32_t next_serial;
};

struct inferstat_monitor {
    // Read by every call and rarely written.
    struct thread_slots slots;
    struct sampled sampled;
    bool logging;                      // the application has set a log function
    uint32_t unknown_name;             // id of the name "unknown", which replaces invalid ids
    struct names *names;               // the run's names, in the run file or in `area`
    struct runfile *file;              // NULL: nothing is reported
    _Atomic uint64_t startup_ns;       // duration of the last startup plus 1; 0: none
    _Atomic uint64_t counted_since_ns; // monotonic; from there on the summary counts
    struct listeners listeners;

    struct log_sink log;
    struct device_registry registry; // devices of inferstat_add_device
    char cuda[32];                   // options.cuda
    void *area;                      // memory of the names if there is no run file
    struct background *background;

    // Where records are sent; unused without `file`.
    struct address address;
    struct trust_source trust; // options and environment, as of inferstat_open
    char *run_folder;
    char *spool_folder;    // NULL: there is no spool
    struct spool *spool;   // used only by the background thread while that runs
    struct replay *replay; // sends the records of dead processes; NULL: it could not start
};

// False for NULL and in a fork()ed child, where calls do nothing.
static inline bool monitor_is_live(const struct inferstat_monitor *monitor)
{
    return monitor && !atomic_load_explicit(&monitor->slots.silent, memory_order_relaxed);
}

// Converts the monotonic time `ns` to wall-clock time.
static inline int64_t monitor_wall_ns(const struct inferstat_monitor *monitor, uint64_t ns)
{
    return (int64_t)ns +
           atomic_load_explicit(&monitor->sampled.wall_offset_ns, memory_order_relaxed);
}

// Clamps a value from the application to what the collector accepts: the collector rejects a
// whole batch for one invalid value.
static inline int64_t monitor_plausible(int64_t value)
{
    if (value < 0)
        return 0;
    return value < MESSAGE_VALUE_MAX ? value : MESSAGE_VALUE_MAX;
}

// Sets a column to the clamped value; a negative value leaves the column absent.
static inline void monitor_set_optional(struct record *record, unsigned column, int64_t value)
{
    if (value >= 0)
        record_set_int(record, column, monitor_plausible(value));
}

// Sets a column to the value, which is not clamped; a negative or infinite value or NaN leaves
// the column absent.
static inline void monitor_set_optional_real(struct record *record, unsigned column, double value)
{
    if (value >= 0 && value <= DBL_MAX)
        record_set_real(record, column, value);
}

// Returns `name` if it is a valid id, else the id of "unknown".
static inline uint32_t monitor_known_name(const struct inferstat_monitor *monitor, uint32_t name)
{
    return name - 1 < names_count(monitor->names) ? name : monitor->unknown_name;
}

enum { MONITOR_TEXT_MAX = 255 };

// Sets a TEXT column from an application's text: invalid UTF-8 is escaped, and text beyond
// MONITOR_TEXT_MAX bytes, or that does not fit into the record, is cut at a character.
// NULL and "" leave the column absent.
void monitor_set_text(struct record *record, unsigned column, const char *text);
