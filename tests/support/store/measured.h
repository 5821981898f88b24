// Runs with requests and loads of known speed, put straight into a store's tables: what
// comparisons are tested with.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;

// One run.  Texts that are NULL, and numbers that are 0, have an ordinary value.
struct measured {
    int run; // its number, and a part of its UUID
    const char *host, *version, *cpu, *driver;
    const char *model, *digest, *quantisation;
    const char *device;
    int pcie_width;      // 0: not known
    int64_t sm_clock_hz; // 0: no samples of the device
    unsigned requests, loads;
    double slowness; // all times are so many times the ordinary ones
    double noise;    // relative deviation of times
    int prompt_tokens, generated_tokens;
    double page_cache_ratio; // of loads; below 0: not known
    int64_t started_ns;      // each request begins when the one before ended
};

// False where SQLite would not.
bool measured_add(struct sqlite3 *db, const struct measured *run);
