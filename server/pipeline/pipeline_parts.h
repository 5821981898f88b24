// Internal structs of the copy/compute pipeline (pipeline.h), which overlaps copies to the device,
// kernels, and copies of their results on three streams.  A chunk is the content of one
// pinned slot; a group is the consecutive chunks that fill one device buffer.  Shared by
// pipeline.c, which creates the pipeline, and run.c, which runs jobs.
#ifndef INFERSTAT_SERVER_PIPELINE_PIPELINE_PARTS_H
#define INFERSTAT_SERVER_PIPELINE_PIPELINE_PARTS_H

#include "server/pipeline/pipeline.h"
#include "server/pipeline/result_drain.h"
#include "server/pipeline/timeline.h"

// A device buffer: a group's input and the output of its kernels.
struct buffer {
    void *in, *out;                // group_bytes, result_bytes; `out` NULL where that is 0
    struct device_event *filled;   // copy stream: the group's last copy
    struct device_event *computed; // compute stream: its kernels
    struct device_event *fetched;  // out stream: the copy of its results
};

struct pipeline {
    struct device *device;
    struct pipeline_plan plan;
    bool failed; // set by a run when the device failed: no more work can be queued
    struct device_stream *copy, *compute, *out;
    struct slot_pool *slots;
    struct buffer buffers[PIPELINE_BUFFERS_MAX];
    struct result_drain *drain; // NULL without buffers
    struct timeline *timeline;  // NULL without overlap_tracking
};

// Bytes of a job's chunk; 0 after the last.
static inline size_t pipeline_chunk_size(const struct pipeline_job *job, uint64_t chunk)
{
    if (job->chunks_max > 0 && chunk >= job->chunks_max)
        return 0;
    return job->chunk_size(job->context, chunk);
}

#endif
