#include "client/cli/output/columns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_SHOWN = 8, COLUMNS_MAX = 24 };

// The number is the column's `minor` (table.h).
#define LEFT(key, title, minor)                                                                    \
    {                                                                                              \
        key, title, SHOWN_PLAIN, TABLE_LEFT, minor                                                 \
    }
#define RIGHT(key, title, minor)                                                                   \
    {                                                                                              \
        key, title, SHOWN_PLAIN, TABLE_RIGHT, minor                                                \
    }
#define RUN(key, title, minor)                                                                     \
    {                                                                                              \
        key, title, SHOWN_RUN, TABLE_LEFT, minor                                                   \
    }
#define YES_NO(key, title, minor)                                                                  \
    {                                                                                              \
        key, title, SHOWN_YES_NO, TABLE_LEFT, minor                                                \
    }

static const struct shown_column run_columns[] = {
    LEFT("started_ns", "started", 0),
    RUN("run", "run", 0),
    LEFT("host", "host", 1),
    RIGHT("pid", "pid", 3),
    LEFT("end", "end", 0),
    RIGHT("produced", "produced", 0),
    RIGHT("stored", "stored", 0),
    RIGHT("in_flight", "in flight", 1),
    RIGHT("lost", "lost", 0),
    RIGHT("coverage_ratio", "coverage", 1),
    YES_NO("balanced", "balanced", 0),
    {"clock_offset_ns", "clock", SHOWN_CLOCK, TABLE_RIGHT, 3},
    LEFT("last_activity", "last activity", 2),
    LEFT("worker_version", "version", 4),
};

static const struct shown_column device_columns[] = {
    LEFT("started_ns", "started", 0),
    RUN("run", "run", 1),
    LEFT("host", "host", 0),
    RIGHT("ordinal", "no.", 2),
    LEFT("name", "device", 0),
    RIGHT("memory_bytes", "memory", 0),
    LEFT("compute_capability", "compute", 2),
    RIGHT("pcie_generation", "PCIe", 2),
    RIGHT("pcie_width", "lanes", 2),
    RIGHT("memory_bandwidth_bytes_per_second", "bandwidth", 1),
    RIGHT("h2d_bytes_per_second", "h2d", 1),
    RIGHT("flops_per_second", "arithmetic", 1),
};

static const struct shown_column model_columns[] = {
    LEFT("started_ns", "started", 0),
    LEFT("name", "model", 0),
    LEFT("quantisation", "type", 0),
    RIGHT("file_bytes", "size", 0),
};

static const struct shown_column startup_columns[] = {
    LEFT("started_ns", "started", 0),
    RUN("run", "run", 0),
    LEFT("host", "host", 0),
    RIGHT("duration_ns", "total", 0),
    RIGHT("memory_start_bytes", "memory at start", 0),
    RIGHT("memory_ready_bytes", "memory when ready", 0),
};

static const struct shown_column load_columns[] = {
    LEFT("started_ns", "started", 0),   LEFT("host", "host", 1),
    LEFT("model", "model", 0),          LEFT("device", "device", 2),
    LEFT("status", "status", 0),        RIGHT("duration_ns", "total", 0),
    RIGHT("model_bytes", "weights", 3), RIGHT("load_bytes_per_second", "rate", 2),
    RIGHT("floor_ns", "floor", 3),      RIGHT("memory_delta_bytes", "memory", 3),
    LEFT("error", "error", 0),
};

static const struct shown_column load_stage_columns[] = {
    LEFT("started_ns", "started", 0), LEFT("host", "host", 0),         LEFT("model", "model", 0),
    LEFT("stage", "stage", 0),        RIGHT("duration_ns", "took", 0),
};

static const struct shown_column inference_columns[] = {
    LEFT("started_ns", "started", 0),
    LEFT("host", "host", 2),
    LEFT("model", "model", 0),
    LEFT("device", "device", 3),
    RIGHT("request", "request", 5),
    LEFT("finish", "finish", 3),
    RIGHT("prompt_tokens", "prompt", 2),
    RIGHT("generated_tokens", "generated", 0),
    RIGHT("tokens_per_second", "speed", 0),
    RIGHT("ttft_ns", "ttft", 0),
    RIGHT("e2e_ns", "e2e", 1),
    RIGHT("queue_ns", "queue", 4),
    RIGHT("itl_p99_ns", "itl p99", 2),
    RIGHT("host_memory_bytes", "memory", 4),
};

static const struct shown_column itl_columns[] = {
    LEFT("started_ns", "started", 0), LEFT("host", "host", 0),         LEFT("model", "model", 0),
    LEFT("device", "device", 0),      RIGHT("duration_ns", "span", 0),
};

static const struct shown_column operation_columns[] = {
    LEFT("started_ns", "started", 0),
    LEFT("host", "host", 0),
    LEFT("operation", "operation", 0),
    LEFT("device", "device", 2),
    RIGHT("duration_ns", "total", 0),
    RIGHT("items", "items", 1),
    RIGHT("bytes", "bytes", 2),
    RIGHT("items_per_second", "rate", 1),
    RIGHT("host_memory_bytes", "memory", 3),
    LEFT("extra", "extra", 2),
};

static const struct shown_column pipeline_columns[] = {
    LEFT("started_ns", "started", 0),
    LEFT("host", "host", 1),
    LEFT("workload", "workload", 0),
    LEFT("model", "model", 1),
    LEFT("device", "device", 2),
    LEFT("status", "status", 0),
    RIGHT("items", "items", 2),
    RIGHT("batch_items", "batch", 3),
    RIGHT("duration_ns", "total", 0),
    RIGHT("items_per_second", "rate", 0),
    RIGHT("overlap_ratio", "overlap", 0),
    RIGHT("exposed_copy_ns", "exposed copy", 1),
    RIGHT("copy_starved_ns", "copy starved", 1),
    RIGHT("pool_starvation_ratio", "pool waits", 1),
    RIGHT("pool_wait_ns", "waited", 2),
    RIGHT("chunk_bytes", "chunk", 3),
    RIGHT("pool_size", "pool", 3),
    LEFT("sync", "sync", 3),
    RIGHT("pool_acquires", "acquired", 4),
    RIGHT("pool_available_min", "least free", 4),
    RIGHT("pool_available_max", "most free", 4),
    RIGHT("copy_busy_ns", "copying", 4),
    RIGHT("compute_busy_ns", "computing", 4),
    RIGHT("idle_ns", "idle", 4),
};

static const struct shown_column device_sample_columns[] = {
    LEFT("started_ns", "started", 0),
    LEFT("host", "host", 0),
    LEFT("device", "device", 0),
    RIGHT("gpu_util_ratio", "busy", 0),
    RIGHT("memory_used_bytes", "memory", 0),
    RIGHT("temperature_celsius", "temperature", 0),
    RIGHT("power_watts", "power", 0),
    RIGHT("sm_clock_hz", "clock", 0),
};

static const struct shown_column process_sample_columns[] = {
    LEFT("started_ns", "started", 0),
    RUN("run", "run", 0),
    LEFT("host", "host", 0),
    RIGHT("cpu_ratio", "cpu", 0),
    RIGHT("host_memory_bytes", "memory", 0),
    RIGHT("device_memory_bytes", "device memory", 0),
};

#define COLUMNS(columns)                                                                           \
    {                                                                                              \
        columns, sizeof columns / sizeof *columns                                                  \
    }

static const struct columns all[RECORD_KIND_COUNT] = {
    [RECORD_KIND_RUN] = COLUMNS(run_columns),
    [RECORD_KIND_DEVICE] = COLUMNS(device_columns),
    [RECORD_KIND_MODEL] = COLUMNS(model_columns),
    [RECORD_KIND_STARTUP] = COLUMNS(startup_columns),
    [RECORD_KIND_LOAD] = COLUMNS(load_columns),
    [RECORD_KIND_LOAD_STAGE] = COLUMNS(load_stage_columns),
    [RECORD_KIND_INFERENCE] = COLUMNS(inference_columns),
    [RECORD_KIND_ITL] = COLUMNS(itl_columns),
    [RECORD_KIND_OPERATION] = COLUMNS(operation_columns),
    [RECORD_KIND_PIPELINE] = COLUMNS(pipeline_columns),
    [RECORD_KIND_DEVICE_SAMPLE] = COLUMNS(device_sample_columns),
    [RECORD_KIND_PROCESS_SAMPLE] = COLUMNS(process_sample_columns),
};

const struct columns *columns_of(enum record_kind kind)
{
    assert((unsigned)kind < RECORD_KIND_COUNT);
    return &all[kind];
}

enum status columns_new_table(struct table **out, const struct columns *view)
{
    struct table_column columns[COLUMNS_MAX];
    assert(view->count <= COLUMNS_MAX);
    for (unsigned i = 0; i < view->count; i++) {
        const struct shown_column *column = &view->columns[i];
        columns[i] = (struct table_column){
            .title = column->title,
            .align = column->align,
            .minor = column->minor,
            .may_shrink = column->align == TABLE_LEFT && strcmp(column->key, "started_ns") != 0,
        };
    }
    return table_new(out, columns, view->count);
}

// The offset of a host's clock from the collector's, with its error bound.
static char *clock_text(int64_t offset_ns, int64_t error_ns)
{
    char offset[UNIT_TEXT_SIZE], error[UNIT_TEXT_SIZE] = "?", *text = NULL;
    (void)unit_format_int(offset, UNIT_DURATION, offset_ns);
    if (error_ns >= 0)
        (void)unit_format_int(error, UNIT_DURATION, error_ns);
    if (asprintf(&text, "%s%s \xc2\xb1%s", offset_ns >= 0 ? "+" : "", offset, error) < 0)
        return NULL;
    return text;
}

char *columns_cell(const struct shown_column *column, const struct result *result, size_t row)
{
    int place = result_find(result, column->key);
    struct value value = result_cell(result, row, (unsigned)place);
    enum unit unit = place < 0 ? UNIT_NONE : result_column(result, (unsigned)place)->unit;
    if (column->style == SHOWN_RUN && value.type == VALUE_TEXT && value.text.size > RUN_SHOWN)
        value.text.size = RUN_SHOWN;
    if (column->style == SHOWN_YES_NO && value.type == VALUE_INT)
        return strdup(value.i ? "yes" : "no");
    if (column->style == SHOWN_CLOCK && value.type == VALUE_INT)
        return clock_text(value.i, result_integer(result, row, "clock_error_ns", -1));
    return table_cell_text(value, unit);
}

void columns_add_row(const struct columns *view, struct table *table, const struct result *result,
                     size_t row)
{
    for (unsigned i = 0; i < view->count; i++)
        table_take(table, columns_cell(&view->columns[i], result, row));
}
