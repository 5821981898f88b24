// What a collector takes of one run, of one key and in all.
#ifndef INFERSTAT_COLLECTOR_THREADS_LIMITS_H
#define INFERSTAT_COLLECTOR_THREADS_LIMITS_H

#include <stdint.h>

struct limits {
    uint32_t names;        // of one run; more are not kept, and records with them refused
    uint32_t runs_per_key; // that are not over; peers without keys count as one
    uint32_t connections;  // to one socket
    uint32_t store_names;  // of all runs together, each once; beyond it new ones are not kept
};

enum {
    LIMITS_NAMES = 65535, // what the protocol allows
    LIMITS_RUNS_PER_KEY = 4096,
    LIMITS_CONNECTIONS = 4096,
    LIMITS_RUNS_MOST = 1000000, // what may be asked for
    LIMITS_CONNECTIONS_MOST = 65535,
    LIMITS_STORE_NAMES = 1000000,
    // Bytes of a batch.  A larger one is refused once it has been read; the sockets
    // let pass twice as much (socket.h).
    LIMITS_BATCH_BYTES = 4 * 1024 * 1024,
};

#define LIMITS_DEFAULT                                                                             \
    ((struct limits){.names = LIMITS_NAMES,                                                        \
                     .runs_per_key = LIMITS_RUNS_PER_KEY,                                          \
                     .connections = LIMITS_CONNECTIONS,                                            \
                     .store_names = LIMITS_STORE_NAMES})

#endif
