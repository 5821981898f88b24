// What a CUDA device does, by CUPTI's activity records.  One trace at a time.
#pragma once

#include <cupti.h>
#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "tests/support/gpu/activity.h"

// What a record says: copies from the host are copies; kernels, and copies and fills
// within the device, are compute.  False: of none of these.
bool cupti_activity(const CUpti_Activity *record, struct activity *out);

// Begins to record.  Fails with STATUS_UNSUPPORTED where CUPTI cannot (another tool
// traces; no rights), saying what it said.
MUST_CHECK enum status cupti_trace_start(struct error *err);

// Ends it and copies what was recorded; work that is to be in it has been waited for.
// Fails with STATUS_IO where records were lost.
MUST_CHECK enum status cupti_trace_stop(struct activity *list, size_t room, size_t *count,
                                        struct error *err);
