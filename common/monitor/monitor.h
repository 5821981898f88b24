// What the parts of libinferstat share: the monitor itself.  Not for applications.
#ifndef INFERSTAT_MONITOR_MONITOR_H
#define INFERSTAT_MONITOR_MONITOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/monitor/history.h"
#include "common/monitor/inferstat.h"
#include "common/monitor/listeners.h"
#include "common/monitor/names.h"
#include "common/monitor/runfile.h"
#include "common/monitor/spool.h"
#include "common/sys/clock.h"
#include "common/wire/address.h"
#include "common/wire/message.h"
#include "common/wire/trust.h"

struct background;
struct replay;
struct seat;

struct inferstat_monitor {
    // Read by every call and seldom written.
    _Atomic bool silent;             // after fork(), in the child: do nothing
    bool logging;                    // somebody wants lines of text
    uint32_t unknown_name;           // stands for names that are none
    uint64_t serial;                 // of this monitor among all the process ever opened
    struct names *names;             // the run file's, or of `area`
    struct runfile *file;            // NULL: nothing is reported
    _Atomic int64_t wall_offset_ns;  // wall clock less monotonic, last sampled
    _Atomic int64_t host_memory;     // of this process, last sampled
    _Atomic int64_t device_memory;   // negative: unknown
    _Atomic uint64_t cpu_ratio_bits; // a double: processors busy; negative: not sampled yet
    _Atomic uint64_t startup_ns;     // duration of the last startup plus 1; 0: none
    struct listeners listeners;

    pthread_mutex_t seats_lock; // guards the list and its marks (seat.h)
    struct seat *seats;
    _Atomic uint32_t streams_freed; // counts up when a thread leaves its stream
    uint32_t limits[HISTORY_KINDS];

    void (*log)(void *context, enum inferstat_log_level level, const char *text);
    void *log_context;
    void *area; // of the names, when there is no run file
    uint32_t sample_ms;
    struct background *background;

    // Where records go; nothing of it without `file`.
    struct address address;
    struct trust_source trust; // as the environment was when it was opened
    char *run_folder;
    char *spool_folder;             // NULL: there is no spool
    struct spool *spool;            // background thread, while it runs
    struct replay *replay;          // NULL: nothing was left by others
    struct inferstat_monitor *next; // in the list of open monitors (seat.c)
};

// Whether calls do anything: not for NULL and not in a fork()ed child.
static inline bool monitor_is_live(const struct inferstat_monitor *monitor)
{
    return monitor && !atomic_load_explicit(&monitor->silent, memory_order_relaxed);
}

// The wall clock at a time of the monotonic one.
static inline int64_t monitor_wall_ns(const struct inferstat_monitor *monitor, uint64_t ns)
{
    return (int64_t)ns + atomic_load_explicit(&monitor->wall_offset_ns, memory_order_relaxed);
}

// A figure from the application as a record can carry it: one that cannot be
// would have the collector refuse its whole batch.
static inline int64_t monitor_plausible(int64_t value)
{
    if (value < 0)
        return 0;
    return value < MESSAGE_VALUE_MAX ? value : MESSAGE_VALUE_MAX;
}

// `name` where it is the number of a name, else that of "unknown".
static inline uint32_t monitor_known_name(const struct inferstat_monitor *monitor, uint32_t name)
{
    return name - 1 < names_count(monitor->names) ? name : monitor->unknown_name;
}

// Hands a line to the application, if it wants any.  Any thread.
void monitor_log(const struct inferstat_monitor *monitor, enum inferstat_log_level level,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

enum { MONITOR_TEXT_MAX = 255 };

// Sets a TEXT column from an application's text: what is not UTF-8 is escaped, and
// what is longer than MONITOR_TEXT_MAX bytes, or does not fit the record, is cut at a
// character.  NULL and "" leave the column absent.
void monitor_set_text(struct record *record, unsigned column, const char *text);

// Adds an event to the calling thread's history (`seat` may be NULL) and tells
// the listeners.
void monitor_event(struct inferstat_monitor *monitor, struct seat *seat,
                   enum inferstat_event_kind kind, struct history_entry *entry);

// An entry of the history as the application sees it.
void monitor_fill_event(const struct inferstat_monitor *monitor, enum inferstat_event_kind kind,
                        const struct history_entry *entry, struct inferstat_event *event);

#endif
