#include "client/cli/output/columns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static char *yes_no_text(const struct column *column, const struct result *result, size_t row)
{
    const struct value value = result_get(result, row, column->key);
    return value.type == VALUE_INT ? strdup(value.i ? "yes" : "no")
                                   : column_value(column, result, row);
}

// A clock's offset from the collector's, with the row's clock_error_ns: "+1.2ms ±0.3ms".
static char *clock_text(const struct column *column, const struct result *result, size_t row)
{
    char offset[UNIT_TEXT_SIZE], error[UNIT_TEXT_SIZE] = "?", *text = NULL;
    const struct value value = result_get(result, row, column->key);
    const int64_t error_ns = result_integer(result, row, "clock_error_ns", -1);
    if (value.type != VALUE_INT)
        return column_value(column, result, row);
    (void)unit_format_int(offset, UNIT_DURATION, value.i);
    if (error_ns >= 0)
        (void)unit_format_int(error, UNIT_DURATION, error_ns);
    if (asprintf(&text, "%s%s \xc2\xb1%s", value.i >= 0 ? "+" : "", offset, error) < 0)
        return NULL;
    return text;
}

// Why a run has lost records.
static void add_losses(struct table *table, const struct result *result, size_t row)
{
    char losses[LOSS_TEXT_SIZE], line[LOSS_TEXT_SIZE + 16];
    (void)snprintf(line, sizeof line, "    lost: %s", result_loss_text(losses, result, row));
    if (losses[0])
        table_add_below(table, line);
}

// Why the record's work failed.
static void add_error(struct table *table, const struct result *result, size_t row)
{
    table_add_cell_below(table, "    error: ", result, row, "error");
}

static const struct column run_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"run", "run", COLUMN_LEFT(0), .cell = column_run},
    {"host", "host", COLUMN_LEFT(1)},
    {"pid", "pid", COLUMN_RIGHT(3)},
    {"end", "end", COLUMN_LEFT(0)},
    {"produced", "produced", COLUMN_RIGHT(0)},
    {"stored", "stored", COLUMN_RIGHT(0)},
    {"in_flight", "in flight", COLUMN_RIGHT(1)},
    {"lost", "lost", COLUMN_RIGHT(0)},
    {"coverage_ratio", "coverage", COLUMN_RIGHT(1)},
    {"balanced", "balanced", COLUMN_LEFT(0), .cell = yes_no_text},
    {"clock_offset_ns", "clock", COLUMN_RIGHT(3), .cell = clock_text},
    {"last_activity", "last activity", COLUMN_LEFT(2)},
    {"worker_version", "version", COLUMN_LEFT(4)},
};

static const struct column device_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"run", "run", COLUMN_LEFT(1), .cell = column_run},
    {"host", "host", COLUMN_LEFT(0)},
    {"ordinal", "no.", COLUMN_RIGHT(2)},
    {"name", "device", COLUMN_LEFT(0)},
    {"memory_bytes", "memory", COLUMN_RIGHT(0)},
    {"compute_capability", "compute", COLUMN_LEFT(2)},
    {"pcie_generation", "PCIe", COLUMN_RIGHT(2)},
    {"pcie_width", "lanes", COLUMN_RIGHT(2)},
    {"memory_bandwidth_bytes_per_second", "bandwidth", COLUMN_RIGHT(1)},
    {"h2d_bytes_per_second", "h2d", COLUMN_RIGHT(1)},
    {"flops_per_second", "arithmetic", COLUMN_RIGHT(1)},
    {"runs", "runs", COLUMN_RIGHT(1)},
};

static const struct column model_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"name", "model", COLUMN_LEFT(0)},
    {"quantisation", "type", COLUMN_LEFT(0)},
    {"file_bytes", "size", COLUMN_RIGHT(0)},
};

static const struct column startup_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"run", "run", COLUMN_LEFT(0), .cell = column_run},
    {"host", "host", COLUMN_LEFT(0)},
    {"duration_ns", "total", COLUMN_RIGHT(0)},
    {"memory_start_bytes", "memory at start", COLUMN_RIGHT(0)},
    {"memory_ready_bytes", "memory when ready", COLUMN_RIGHT(0)},
};

static const struct column load_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(1)},
    {"model", "model", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(2)},
    {"status", "status", COLUMN_LEFT(0)},
    {"duration_ns", "total", COLUMN_RIGHT(0)},
    {"model_bytes", "weights", COLUMN_RIGHT(3)},
    {"load_bytes_per_second", "rate", COLUMN_RIGHT(2)},
    {"floor_ns", "floor", COLUMN_RIGHT(3)},
    {"memory_delta_bytes", "memory", COLUMN_RIGHT(3)},
    {"error", "error", COLUMN_LEFT(0), .is_optional = true},
};

static const struct column load_stage_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)}, {"host", "host", COLUMN_LEFT(0)},
    {"model", "model", COLUMN_LEFT(0)},        {"stage", "stage", COLUMN_LEFT(0)},
    {"duration_ns", "took", COLUMN_RIGHT(0)},
};

static const struct column inference_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(2)},
    {"model", "model", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(3)},
    {"request", "request", COLUMN_RIGHT(5)},
    {"finish", "finish", COLUMN_LEFT(3)},
    {"prompt_tokens", "prompt", COLUMN_RIGHT(2)},
    {"generated_tokens", "output tokens", COLUMN_RIGHT(0)},
    {"tokens_per_second", "t/s", COLUMN_RIGHT(0)},
    {"ttft_ns", "TTFT", COLUMN_RIGHT(0)},
    {"items", "items", COLUMN_RIGHT(2), .is_optional = true},
    {"items_per_second", "rate", COLUMN_RIGHT(1), .is_optional = true},
    {"e2e_ns", "E2E", COLUMN_RIGHT(1)},
    {"queue_ns", "queue", COLUMN_RIGHT(4)},
    {"itl_p99_ns", "ITL p99", COLUMN_RIGHT(2)},
    {"host_memory_bytes", "memory", COLUMN_RIGHT(4)},
};

static const struct column itl_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)}, {"host", "host", COLUMN_LEFT(0)},
    {"model", "model", COLUMN_LEFT(0)},        {"device", "device", COLUMN_LEFT(0)},
    {"duration_ns", "span", COLUMN_RIGHT(0)},
};

static const struct column operation_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(0)},
    {"operation", "operation", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(2)},
    {"duration_ns", "total", COLUMN_RIGHT(0)},
    {"items", "items", COLUMN_RIGHT(1)},
    {"bytes", "bytes", COLUMN_RIGHT(2)},
    {"items_per_second", "rate", COLUMN_RIGHT(1)},
    {"host_memory_bytes", "memory", COLUMN_RIGHT(3)},
    {"extra", "extra", COLUMN_LEFT(2)},
};

static const struct column pipeline_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(1)},
    {"workload", "workload", COLUMN_LEFT(0)},
    {"model", "model", COLUMN_LEFT(1)},
    {"device", "device", COLUMN_LEFT(2)},
    {"status", "status", COLUMN_LEFT(0)},
    {"items", "items", COLUMN_RIGHT(2)},
    {"batch_items", "batch", COLUMN_RIGHT(3)},
    {"duration_ns", "total", COLUMN_RIGHT(0)},
    {"items_per_second", "rate", COLUMN_RIGHT(0)},
    {"overlap_ratio", "overlap", COLUMN_RIGHT(0)},
    {"exposed_copy_ns", "exposed copy", COLUMN_RIGHT(1)},
    {"copy_starved_ns", "copy starved", COLUMN_RIGHT(1)},
    {"pool_starvation_ratio", "pool waits", COLUMN_RIGHT(1)},
    {"pool_wait_ns", "waited", COLUMN_RIGHT(2)},
    {"chunk_bytes", "chunk", COLUMN_RIGHT(3)},
    {"pool_size", "pool", COLUMN_RIGHT(3)},
    {"sync", "sync", COLUMN_LEFT(3)},
    {"pool_acquires", "acquired", COLUMN_RIGHT(4)},
    {"pool_available_min", "least free", COLUMN_RIGHT(4)},
    {"pool_available_max", "most free", COLUMN_RIGHT(4)},
    {"copy_busy_ns", "copying", COLUMN_RIGHT(4)},
    {"compute_busy_ns", "computing", COLUMN_RIGHT(4)},
    {"idle_ns", "idle", COLUMN_RIGHT(4)},
};

static const struct column device_sample_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},
    {"gpu_util_ratio", "util", COLUMN_RIGHT(0)},
    {"memory_used_bytes", "memory", COLUMN_RIGHT(0)},
    {"temperature_celsius", "temperature", COLUMN_RIGHT(0)},
    {"power_watts", "power", COLUMN_RIGHT(0)},
    {"sm_clock_hz", "clock", COLUMN_RIGHT(0)},
    {"energy_used_joules", "energy", COLUMN_RIGHT(2)},
    {"memory_util_ratio", "memory util", COLUMN_RIGHT(2)},
    {"throttled_ratio", "throttled", COLUMN_RIGHT(1)},
};

static const struct column process_sample_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"run", "run", COLUMN_LEFT(0), .cell = column_run},
    {"host", "host", COLUMN_LEFT(0)},
    {"cpu_ratio", "cpu", COLUMN_RIGHT(0)},
    {"host_memory_bytes", "host memory", COLUMN_RIGHT(0)},
    {"device_memory_bytes", "device memory", COLUMN_RIGHT(0)},
    {"running_requests", "running", COLUMN_RIGHT(1)},
    {"waiting_requests", "waiting", COLUMN_RIGHT(1)},
    {"model", "model", COLUMN_LEFT(1)},
};

static const struct column host_sample_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(0)},
    {"cpu_util_ratio", "cpu", COLUMN_RIGHT(0)},
    {"load_1m", "load", COLUMN_RIGHT(1)},
    {"memory_available_bytes", "available", COLUMN_RIGHT(0)},
    {"memory_used_ratio", "memory", COLUMN_RIGHT(0)},
    {"memory_pressure_ratio", "memory pressure", COLUMN_RIGHT(2)},
    {"io_pressure_ratio", "I/O pressure", COLUMN_RIGHT(2)},
    {"disk_busy_ratio", "disk", COLUMN_RIGHT(1)},
    {"network_rx_bytes_per_second", "received", COLUMN_RIGHT(1)},
    {"network_tx_bytes_per_second", "sent", COLUMN_RIGHT(1)},
};

static const struct column device_process_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)}, {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},      {"pid", "pid", COLUMN_RIGHT(0)},
    {"name", "process", COLUMN_LEFT(0)},       {"memory_bytes", "memory", COLUMN_RIGHT(0)},
};

static const struct column event_columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},  {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},       {"event", "event", COLUMN_LEFT(0)},
    {"duration_ns", "lasted", COLUMN_RIGHT(0)}, {"detail", "detail", COLUMN_LEFT(1)},
};

static const struct columns all[RECORD_KIND_COUNT] = {
    [RECORD_KIND_RUN] = {COLUMNS_OF(run_columns), add_losses},
    [RECORD_KIND_DEVICE] = {COLUMNS_OF(device_columns), NULL},
    [RECORD_KIND_MODEL] = {COLUMNS_OF(model_columns), NULL},
    [RECORD_KIND_STARTUP] = {COLUMNS_OF(startup_columns), NULL},
    [RECORD_KIND_LOAD] = {COLUMNS_OF(load_columns), NULL},
    [RECORD_KIND_LOAD_STAGE] = {COLUMNS_OF(load_stage_columns), NULL},
    [RECORD_KIND_INFERENCE] = {COLUMNS_OF(inference_columns), add_error},
    [RECORD_KIND_ITL] = {COLUMNS_OF(itl_columns), NULL},
    [RECORD_KIND_OPERATION] = {COLUMNS_OF(operation_columns), add_error},
    [RECORD_KIND_PIPELINE] = {COLUMNS_OF(pipeline_columns), NULL},
    [RECORD_KIND_DEVICE_SAMPLE] = {COLUMNS_OF(device_sample_columns), NULL},
    [RECORD_KIND_PROCESS_SAMPLE] = {COLUMNS_OF(process_sample_columns), NULL},
    [RECORD_KIND_HOST_SAMPLE] = {COLUMNS_OF(host_sample_columns), NULL},
    [RECORD_KIND_DEVICE_PROCESS] = {COLUMNS_OF(device_process_columns), NULL},
    [RECORD_KIND_EVENT] = {COLUMNS_OF(event_columns), NULL},
};

const struct columns *columns_of(enum record_kind kind)
{
    assert((unsigned)kind < RECORD_KIND_COUNT);
    return &all[kind];
}

unsigned columns_by_group(struct column *out, const struct query *query)
{
    for (unsigned i = 0; i < query->group_count; i++) {
        const char *name = query_dimension_name(query->group_by[i]);
        out[i] = (struct column){
            .key = name,
            .title = name,
            .cell = query->group_by[i] == QUERY_BY_RUN ? column_run : NULL,
        };
    }
    return query->group_count;
}
