// Weight upload: copies the tensors of a model file to device memory.  It uses the streaming
// pipeline (server/pipeline/pipeline.h), so that reading and copying overlap, and measures both.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H

#include "server/pipeline/pipeline.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf.h"

// Metrics of a transfer; zero before it ran.
struct transfer_figures {
    uint64_t started_ns; // monotonic clock
    uint64_t bytes;      // read from the file
    uint64_t read_ns;    // time during which at least one thread was reading
    struct pipeline_plan plan;
    struct pipeline_figures pipeline;
};

// Returns a lower bound of the transfer's duration: the longer one of the measured times of reading
// and of copying.  0: neither was measured.
uint64_t transfer_floor_ns(const struct transfer_figures *figures);

// A tensor to copy.
struct transfer_piece {
    const struct gguf_tensor *from; // borrowed
    void *to;                       // `from->bytes` bytes on the device
    uint64_t first_chunk;           // first chunk of the piece in the transfer; set by transfer_run
};

// Copies all pieces and waits for the copies.  `cancelled`, if not NULL, is polled between chunks;
// once it returns true, the transfer ends with STATUS_CANCELLED.  Fails with STATUS_IO or
// STATUS_CORRUPT if a read fails, STATUS_INVALID if a chunk or pool size from the environment is
// out of range (tuning.h), STATUS_NOMEM, or STATUS_IO if the device fails.  `*figures` is valid
// also after a failure.
MUST_CHECK enum status transfer_run(struct transfer_piece *pieces, size_t count,
                                    struct device *device, const struct byte_source *source,
                                    bool (*cancelled)(void), struct transfer_figures *figures,
                                    struct error *err);

#endif
