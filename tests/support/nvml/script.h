// The script of a management library for tests: what its devices do.  INFERSTAT_TEST_NVML_SCRIPT
// names the file, a line for each setting and action; `#` begins a comment.  Times are seconds
// since the process first initialised the library, of the monotonic clock or, where
// INFERSTAT_TEST_NVML_CLOCK is set, of its value; a script that has changed by a later
// initialisation is read again, and begins again.
//
//   gpus N                     devices, 1 to 16 (default 1)
//   uuid TEXT                  what a UUID begins with; the number follows with 12 hexadecimal
//                              digits (default GPU-00000000-0000-0000-0000-)
//   name TEXT, driver TEXT     may contain \xNN
//   delay MIN MAX              microseconds that each call sleeps
//   noise RATIO                utilisation, power and temperature vary by it, up and down
//   missing FUNCTION           a function that answers that it is not there
//   [at T] gpu N|all FIELD VALUE    sets a figure; `none`: not supported.  The fields are below
//   [at T] process N PID BYTES      a process on a device; 0 bytes: it has ended, none: unknown
//   [at T] xid N CODE          the driver reports an error
//   [at T] error N|all RESULT  all functions of a device answer this; 0: no longer
//   [at T] mig N COUNT         the device has instances
//   [at T] unplug N, plug N    the last devices vanish, from N on; come back
//   [at T] hang S              the next call takes S seconds
//   [at T] driver-unload, driver-load    everything answers that there is no driver; again one
//   broken                     the library cannot be initialised
//   processes-535              functions of processes fill the larger struct of some drivers
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

enum { GPUS_MAX = 16, INSTANCES_MAX = 7, PROCESSES_MAX = 8, ACTIONS_MAX = 4096, XIDS_MAX = 512 };
enum { UNKNOWN_BYTES = -1 };

// X(field, value at the start); memory in bytes, clocks in MHz, power in watts, ratios in percent.
#define FIELDS(X)                                                                                  \
    X(util, 10)                                                                                    \
    X(memory_util, 5)                                                                              \
    X(encoder, 0)                                                                                  \
    X(decoder, 0)                                                                                  \
    X(memory_total, 151397597184.0)                                                                \
    X(memory_used, 1073741824.0)                                                                   \
    X(memory_reserved, 536870912.0)                                                                \
    X(temperature, 40)                                                                             \
    X(memory_temperature, 45)                                                                      \
    X(slowdown, 92)                                                                                \
    X(power, 120)                                                                                  \
    X(power_limit, 650.5)                                                                          \
    X(energy, 7000000)                                                                             \
    X(sm_clock, 1980)                                                                              \
    X(memory_clock, 3201)                                                                          \
    X(sm_clock_max, 1980)                                                                          \
    X(memory_clock_max, 3201)                                                                      \
    X(pcie_generation, 5)                                                                          \
    X(pcie_width, 16)                                                                              \
    X(pcie_generation_max, 5)                                                                      \
    X(pcie_width_max, 16)                                                                          \
    X(pcie_rx, 1000)                                                                               \
    X(pcie_tx, 2000)                                                                               \
    X(throttle, 0)                                                                                 \
    X(ecc_corrected, 0)                                                                            \
    X(ecc_uncorrected, 0)                                                                          \
    X(retired, 0)                                                                                  \
    X(remapped, 0)                                                                                 \
    X(fan, 30)                                                                                     \
    X(sm_active, 8)                                                                                \
    X(tensor_active, 4)                                                                            \
    X(dram_active, 6)                                                                              \
    X(capability, 9)

enum field {
#define FIELD_NUMBER(name, value) FIELD_##name,
    FIELDS(FIELD_NUMBER)
#undef FIELD_NUMBER
        FIELD_COUNT
};

struct process {
    unsigned int pid;
    double bytes;
};

struct gpu {
    double values[FIELD_COUNT];
    bool is_missing[FIELD_COUNT];
    struct process processes[PROCESSES_MAX];
    int error;
    unsigned int instances;
    char places[INSTANCES_MAX]; // their addresses are the handles of its instances
};

struct action {
    double at;
    char words[4][64];
};

struct fake {
    struct gpu gpus[GPUS_MAX];
    unsigned int gpu_count, plugged;
    struct action actions[ACTIONS_MAX];
    unsigned int action_count, next_action;
    struct {
        unsigned int gpu, code;
    } xids[XIDS_MAX];
    unsigned int xid_count;
    char uuid[64], name[64], driver[64], missing[32][64];
    unsigned int missing_count;
    double delay_us[2], noise, began, energy_at, hang_s;
    bool is_read, is_broken, is_unloaded, has_processes_535;
    unsigned int initialised, seed;
    struct stat script; // when it was read
};

// What the script has said so far.
extern struct fake fake;

// Reads the script, unless it is the one that was read.  A line that is none ends the program.
void script_read(void);

// Does what the script says until now, and draws the power meanwhile.
void script_play(void);
