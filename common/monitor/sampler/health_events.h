// Detection of trouble: events of devices and of the host, from their readings.  Pure: no clock,
// no I/O; times are those of the readings.
//
// Most events last.  One begins at the first of several successive readings that show it, and ends
// at the first of several that do not: so short pauses do not divide it.  It is reported when it is
// certain to have begun, and again when it has ended, each with the time at which that first
// showed. A reading that does not tell (no value, no load) neither begins nor ends an event.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/record.h"
#include "common/devices/gpu_reading.h"

enum health_kind {
    HEALTH_THROTTLING,       // clocks are held back; code: all of THROTTLE_REASONS seen
    HEALTH_PCIE_DOWNGRADE,   // under load the link has fewer lanes or a lower generation than it
                             // could; code: lanes
    HEALTH_ECC_CORRECTED,    // memory errors, code of them
    HEALTH_ECC_UNCORRECTED,  // the same
    HEALTH_FOREIGN_PROCESS,  // processes other than the user of the device are on it; code: the pid
                             // of the first of them
    HEALTH_DEVICE_LOST,      // the device was there and is not
    HEALTH_MEMORY_PRESSURE,  // of the host: tasks wait for memory
    HEALTH_CGROUP_THROTTLED, // of the host: this process's control group exceeds its quota
    HEALTH_DRIVER_HANG,      // of the host: a call of the driver does not return
    HEALTH_XID,              // the driver reported an error; lasts no time; code: its number
    HEALTH_KINDS,
};

// The name in records.
const char *health_kind_name(enum health_kind kind);

enum { HEALTH_DETAIL_SIZE = 112 };

struct health_event {
    enum health_kind kind;
    int64_t started_ns;
    int64_t duration_ns; // negative: it has begun
    int64_t code;        // negative: none
    char detail[HEALTH_DETAIL_SIZE];
};

// Receives events in the order in which they are detected.
struct health_sink {
    void (*add)(const void *context, const struct health_event *event, uint32_t device);
    const void *context;
    uint32_t device; // id of the device's name; 0: of the host
};

// State of one device or of the host; initialise it with zeros.
struct health_detector {
    struct health_watch {
        unsigned int bad, good; // successive readings that showed it, and that did not
        bool is_active;
        // Of the first of those; of counted errors good_ns is that of the last bad one.
        int64_t bad_ns, good_ns;
        int64_t code;
        char detail[HEALTH_DETAIL_SIZE];
    } watches[HEALTH_KINDS];
    bool has_counters;
    int64_t corrected, uncorrected; // of the reading before; negative: unknown
    int64_t counters_ns;            // time of that reading
    int64_t user;                   // pid of the process that the device belongs to; 0: none yet
};

// A reading of a device, of which this process may be the user: `own_pid`.  A lost one ends the
// device's other events.
void health_detect_device(struct health_detector *detector, const struct gpu_reading *reading,
                          int64_t own_pid, const struct health_sink *sink);

// The device is missing from a reading of all devices at `at_ns`.
void health_detect_lost(struct health_detector *detector, int64_t at_ns,
                        const struct health_sink *sink);

// The host, by a record of kind host_sample whose period ended at `at_ns`.
void health_detect_host(struct health_detector *detector, const struct record *sample,
                        int64_t at_ns, const struct health_sink *sink);

// The driver: whether a call that began at `at_ns` hangs, or a hanging one returned at `at_ns`.
void health_detect_hang(struct health_detector *detector, bool hangs, int64_t at_ns,
                        const struct health_sink *sink);

// Ends all events, at `at_ns` at the latest, and forgets what was seen: the device is taken away on
// purpose, or gets another name.
void health_detector_end(struct health_detector *detector, int64_t at_ns,
                         const struct health_sink *sink);

// Ends the events for which a reading without them was seen: no more readings follow.
void health_detector_finish(struct health_detector *detector, const struct health_sink *sink);
