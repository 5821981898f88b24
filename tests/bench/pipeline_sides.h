// What bench_pipeline compares: the pipeline in several ways, and what it cannot beat.
//
// All move the same chunks.  Memory is of the same size wherever it plays the same part:
// as many slots, as many buffers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/pipeline/pipeline.h"

#define MB ((size_t)1024 * 1024)

enum { SIDES_GROUP_CHUNKS = 2 };

enum side {
    // The pipeline:
    SIDE_LENT,     // from pinned memory, copies only
    SIDE_FILLED,   // with threads that fill each slot from plain memory, copies only
    SIDE_COMPUTED, // lent memory with kernels that read each group
    SIDE_PERIODIC, // the same with periodic synchronisation
    SIDE_BLIND,    // the same without instruments
    SIDES_PIPELINES,
    // Yardsticks:
    SIDE_BARE = SIDES_PIPELINES, // one stream that copies chunk after chunk
    SIDE_FILL,                   // as many threads as fill, no device
    SIDE_FILL_AND_COPY,          // both of those at once; neither waits for the other
    SIDE_COPY_AND_COMPUTE,       // copies on one stream, kernels on another, likewise
    SIDE_COUNT
};

struct sides_options {
    const char *device;
    size_t chunk_bytes;
    uint64_t chunks; // of a run, a multiple of SIDES_GROUP_CHUNKS
};

struct side_run {
    double bytes_per_second;
    double processor_seconds;         // of all threads
    struct pipeline_figures pipeline; // zero of yardsticks
};

// Opens the device and its memory, makes the kernels a quarter longer than the copies they
// hide, chooses how many threads fill by what a run measured, and runs every pipeline once.
// Any fault ends the program.
void sides_open(const struct sides_options *options);
void sides_close(void);

bool sides_are_of_cpu(void);
unsigned int sides_fillers(void);

void side_measure(enum side side, uint64_t chunks, struct side_run *out);

// How far the overlap timeline is from stamps of the host's clock that copies and kernels
// take themselves: the largest relative error of copy, compute and both.  CPU alone.
double sides_timeline_error(void);
