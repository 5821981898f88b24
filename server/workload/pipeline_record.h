// What a run of a pipeline says of itself, as a record.
#ifndef INFERSTAT_SERVER_WORKLOAD_PIPELINE_RECORD_H
#define INFERSTAT_SERVER_WORKLOAD_PIPELINE_RECORD_H

#include "common/monitor/inferstat.h"
#include "server/pipeline/pipeline.h"

// Fills all that plan and figures say; what the plan had switched off is absent.
// Workload, model, device, result, start, items and those of a batch are the caller's.
void pipeline_record(struct inferstat_pipeline *out, const struct pipeline_plan *plan,
                     const struct pipeline_figures *figures);

#endif
