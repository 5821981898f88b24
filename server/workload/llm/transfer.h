// Weight upload: copies tensors of a file to device memory through the streaming pipeline
// (pipeline.h), so that reading and copying overlap, and measures both.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H

#include "server/pipeline/pipeline.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf.h"

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

// A tensor to copy.
struct transfer_piece {
    const struct gguf_tensor *from; // borrowed
    void *to;                       // `from->bytes` bytes on the device
    uint64_t first_chunk;           // set by transfer_run: the piece's first among those of all
};

// Copies all pieces and waits for them.  `cancelled`, if not NULL, is polled between chunks and
// ends it with STATUS_CANCELLED.  Fails with STATUS_IO or STATUS_CORRUPT on a failed read,
// STATUS_INVALID on chunk or pool sizes from the environment that are out of range (tuning.h),
// STATUS_NOMEM, or STATUS_IO when the device fails.  `figures` are valid in any case.
MUST_CHECK enum status transfer_run(struct transfer_piece *pieces, size_t count,
                                    struct device *device, const struct byte_source *source,
                                    bool (*cancelled)(void), struct transfer_figures *figures,
                                    struct error *err);

#endif
