// Resource limits of a collector: per run, per owner of runs, per socket and per store.
#pragma once

#include <stdint.h>

struct limits {
    uint32_t names;        // names of a run; further ones are stored as "other"
    uint32_t runs_per_key; // open or recently silent runs of an owner
    uint32_t connections;  // connections of a socket
    uint32_t store_names;  // distinct names in the store; further ones are stored as "other"
};

enum {
    LIMITS_NAMES = 65535,            // default of names; the protocol's limit
    LIMITS_RUNS_PER_KEY = 4096,      // default
    LIMITS_CONNECTIONS = 4096,       // default
    LIMITS_RUNS_MOST = 1000000,      // largest accepted option value of runs_per_key
    LIMITS_CONNECTIONS_MOST = 65535, // largest accepted option value of connections
    LIMITS_STORE_NAMES = 1000000,    // default of store_names
    LIMITS_OPEN_RUNS = 16384,        // open runs of all owners
    LIMITS_OPEN_SHARE = 4, // an owner's runs may be so many times what is left of LIMITS_OPEN_RUNS
    // Bytes of a batch.  A larger one is rejected after it was decoded; the sockets accept messages
    // that are 64 KiB larger (listener.h).
    LIMITS_BATCH_BYTES = 4 * 1024 * 1024,
};

#define LIMITS_DEFAULT                                                                             \
    ((struct limits){.names = LIMITS_NAMES,                                                        \
                     .runs_per_key = LIMITS_RUNS_PER_KEY,                                          \
                     .connections = LIMITS_CONNECTIONS,                                            \
                     .store_names = LIMITS_STORE_NAMES})
