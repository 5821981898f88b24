// Weight upload: copies parts of a file ("pieces", one per tensor) to device memory through the
// streaming pipeline (pipeline.h), so that reading and copying overlap, and measures both.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H

#include "server/pipeline/pipeline.h"
#include "server/workload/llm/byte_source.h"

struct transfer;

// Metrics of a transfer; zero before it ran.
struct transfer_figures {
    uint64_t started_ns; // monotonic
    uint64_t bytes;      // read
    uint64_t read_ns;    // time during which at least one thread was reading
    struct pipeline_plan plan;
    struct pipeline_figures pipeline;
};

// A lower bound of the duration: the longer of the measured times of reading and copying.  0 when
// neither was measured.
uint64_t transfer_floor_ns(const struct transfer_figures *figures);

// Creates an empty list of pieces.  Fails with STATUS_NOMEM.
MUST_CHECK enum status transfer_new(struct transfer **out, struct error *err);
void transfer_free(struct transfer *transfer); // accepts NULL

// Adds a piece: `bytes` bytes at `offset` of the file, to be copied to `to` on the device.
// `name`, truncated to 63 bytes, is for messages.
MUST_CHECK enum status transfer_add(struct transfer *transfer, const char *name, uint64_t offset,
                                    uint64_t bytes, void *to, struct error *err);

// Copies all pieces and waits for them.  `cancelled`, if not NULL, is polled between chunks and
// ends it with STATUS_CANCELLED.  Fails with STATUS_IO or STATUS_CORRUPT on a failed read,
// STATUS_INVALID on chunk or pool sizes from the environment that are out of range (tuning.h),
// STATUS_NOMEM, or STATUS_IO when the device fails.  `figures` are valid in any case.
MUST_CHECK enum status transfer_run(struct transfer *transfer, struct device *device,
                                    const struct byte_source *source, bool (*cancelled)(void),
                                    struct transfer_figures *figures, struct error *err);

#endif
