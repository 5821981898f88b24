// Converter from the metrics of a pipeline run (server/pipeline/pipeline.h) to its telemetry
// record.
#ifndef INFERSTAT_SERVER_WORKLOAD_PIPELINE_RECORD_H
#define INFERSTAT_SERVER_WORKLOAD_PIPELINE_RECORD_H

#include "common/monitor/inferstat.h"
#include "server/pipeline/pipeline.h"

// Fills the fields of `*out` that `plan` and `figures` determine.  Metrics that the plan disables
// stay absent.  The caller sets workload, model, device, result, start, items and batch_items.
void pipeline_record(struct inferstat_pipeline *out, const struct pipeline_plan *plan,
                     const struct pipeline_figures *figures);

#endif
