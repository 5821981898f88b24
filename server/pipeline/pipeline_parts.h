// What a pipeline is made of.  For pipeline.c, which builds it, and run.c, which
// streams with it.
#ifndef INFERSTAT_SERVER_PIPELINE_PIPELINE_PARTS_H
#define INFERSTAT_SERVER_PIPELINE_PIPELINE_PARTS_H

#include "server/pipeline/pipeline.h"
#include "server/pipeline/result_drain.h"
#include "server/pipeline/timeline.h"

// A device buffer: what a group is copied into, and what its kernels write.
struct buffer {
    void *in, *out;                // group_bytes, result_bytes; `out` NULL where that is 0
    struct device_event *filled;   // copy stream: the group's last copy
    struct device_event *computed; // compute stream: its kernels
    struct device_event *fetched;  // out stream: the copy of its results
};

struct pipeline {
    struct device *device;
    struct pipeline_plan plan;
    bool failed; // the device did: what was queued is done, but nothing can be any more
    struct device_stream *copy, *compute, *out;
    struct slot_pool *slots;  // that are filled; NULL where jobs lend memory
    struct slot_pool *tokens; // slots without memory, for lent memory: bound what is queued
    struct buffer buffers[PIPELINE_BUFFERS_MAX];
    struct result_drain *drain; // NULL without buffers
    struct timeline *timeline;  // NULL where overlap is not tracked
};

#endif
