// A job whose data can be checked at every place: what fills writes bytes that follow
// from their position, kernels check what they read, the taker what comes out.
#pragma once

#include <stdatomic.h>

#include "server/device/device.h"
#include "tests/support/device_fault.h"
#include "server/pipeline/pipeline.h"

enum { RIG_NEVER = -1 };

struct thread_pool;

struct rig {
    struct pipeline_job job; // to be run; its hooks may be changed
    size_t chunk_bytes, total_bytes;
    uint64_t group_chunks;
    uint64_t fill_delay_max_ns, take_delay_max_ns;
    // Where a callback fails, counted from 0; RIG_NEVER.
    int64_t fill_fails_at, compute_fails_at, take_fails_at;
    uint8_t *source;          // all bytes, page-aligned: for jobs that lend memory
    uint8_t *device_memory;   // for jobs that place
    bool fillers_meet;        // the first waits for a second
    bool anywhere;            // the kernels run on any device: they copy, and check nothing
    atomic_uint filling_most; // fillers seen at once
    atomic_uint filling;
    atomic_uint kernels_queued, kernels_done;
    // What was found.
    atomic_uint wrong_inputs, wrong_results; // groups
    uint64_t taken;                          // groups, all in order
    bool out_of_order;
};

// A job of `total_bytes` that fills, computes and takes all results.
void rig_init(struct rig *rig, size_t chunk_bytes, size_t total_bytes, uint64_t group_chunks);
void rig_deinit(struct rig *rig);

// Makes it lend its memory instead of filling slots.
void rig_lends(struct rig *rig);
// Leaves results on the device.
void rig_keeps_results(struct rig *rig);

uint64_t rig_chunks(const struct rig *rig);
uint64_t rig_groups(const struct rig *rig);
uint8_t rig_byte(uint64_t position);

// Small but whole: slots, fillers and so on as given, the rest to fit the rig.
struct pipeline_plan rig_plan(const struct rig *rig, unsigned int pool, unsigned int fillers,
                              unsigned int prefetch, unsigned int buffers);

// Whether this was built to run on the CUDA back end (RIG_ON_CUDA).
bool rig_on_cuda(void);

// The back end that this was built for, within a fault device where `options` are given.
struct device *rig_device(const struct device_fault_options *options);

// A pipeline for one run; returns what the run did.
enum status rig_run(struct rig *rig, struct device *device, const struct pipeline_plan *plan,
                    struct pipeline_figures *figures, struct error *err);

// Sleeps up to `most_ns`, as `number` decides.
void rig_sleep(uint64_t number, uint64_t most_ns);

// A kernel of the CPU back end that ends once rig_gate_is_open is set.
extern atomic_bool rig_gate_is_open;
enum status rig_gate(const void *arguments, struct thread_pool *pool, struct error *err);
