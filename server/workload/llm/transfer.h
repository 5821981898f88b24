// Pieces of a file on their way to a device's memory: through the pipeline, so that
// reading one part goes on while another is copied, and what that took is known.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_TRANSFER_H

#include "server/pipeline/pipeline.h"
#include "server/workload/llm/byte_source.h"

struct transfer;

// What a transfer did.  Zero before it ran.
struct transfer_figures {
    uint64_t started_ns; // monotonic
    uint64_t bytes;      // read
    uint64_t read_ns;    // time in which at least one thread read
    struct pipeline_plan plan;
    struct pipeline_figures pipeline;
};

// The least that it could take: the longer of reading and of copying, each at the rate that
// was measured.  0 where neither was.
uint64_t transfer_floor_ns(const struct transfer_figures *figures);

// An empty list of pieces.  Fails with STATUS_NOMEM.
MUST_CHECK enum status transfer_new(struct transfer **out, struct error *err);
void transfer_free(struct transfer *transfer); // accepts NULL

// Adds `bytes` bytes from `offset` of the file on, to go to `to` on the device.
// `name`, copied and cut at 63 bytes, is for messages.
MUST_CHECK enum status transfer_add(struct transfer *transfer, const char *name, uint64_t offset,
                                    uint64_t bytes, void *to, struct error *err);

// Brings every piece over, and returns when all are there.  `cancelled`, where not NULL,
// is asked between chunks and ends it with STATUS_CANCELLED.  Fails as the source, the
// pipeline and the device do; with STATUS_INVALID where the environment asks for chunks
// or slots that cannot be (tuning.h).  `figures` are valid in any case.
MUST_CHECK enum status transfer_run(struct transfer *transfer, struct device *device,
                                    const struct byte_source *source, bool (*cancelled)(void),
                                    struct transfer_figures *figures, struct error *err);

#endif
