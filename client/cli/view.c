#include "client/cli/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_SHOWN = 8, VIEW_COLUMNS_MAX = 20 };

#define LEFT(key, title)                                                                           \
    {                                                                                              \
        key, title, VIEW_PLAIN, TABLE_LEFT                                                         \
    }
#define RIGHT(key, title)                                                                          \
    {                                                                                              \
        key, title, VIEW_PLAIN, TABLE_RIGHT                                                        \
    }
#define RUN(key, title)                                                                            \
    {                                                                                              \
        key, title, VIEW_RUN, TABLE_LEFT                                                           \
    }
#define YES_NO(key, title)                                                                         \
    {                                                                                              \
        key, title, VIEW_YES_NO, TABLE_LEFT                                                        \
    }

static const struct view_column run_view[] = {
    LEFT("started_ns", "started"),
    RUN("run", "run"),
    LEFT("host", "host"),
    RIGHT("pid", "pid"),
    LEFT("end", "end"),
    RIGHT("produced", "produced"),
    RIGHT("stored", "stored"),
    RIGHT("in_flight", "in flight"),
    RIGHT("dropped", "dropped"),
    RIGHT("unnumbered", "unnumbered"),
    YES_NO("balanced", "balanced"),
    LEFT("last_activity", "last activity"),
    LEFT("worker_version", "version"),
};

static const struct view_column device_view[] = {
    LEFT("started_ns", "started"),
    RUN("run", "run"),
    LEFT("host", "host"),
    RIGHT("ordinal", "no."),
    LEFT("name", "device"),
    RIGHT("memory_bytes", "memory"),
    LEFT("compute_capability", "compute"),
    RIGHT("pcie_generation", "PCIe"),
    RIGHT("pcie_width", "lanes"),
    RIGHT("memory_bandwidth_bytes_per_second", "bandwidth"),
    RIGHT("h2d_bytes_per_second", "h2d"),
    RIGHT("flops_per_second", "arithmetic"),
};

static const struct view_column model_view[] = {
    LEFT("started_ns", "started"), LEFT("host", "host"),
    LEFT("name", "model"),         LEFT("architecture", "architecture"),
    LEFT("quantisation", "type"),  RIGHT("parameters", "parameters"),
    RIGHT("file_bytes", "size"),   RIGHT("context", "context"),
};

static const struct view_column startup_view[] = {
    LEFT("started_ns", "started"),
    RUN("run", "run"),
    LEFT("host", "host"),
    RIGHT("duration_ns", "total"),
    RIGHT("memory_start_bytes", "memory at start"),
    RIGHT("memory_ready_bytes", "memory when ready"),
};

static const struct view_column load_view[] = {
    LEFT("started_ns", "started"),
    LEFT("host", "host"),
    LEFT("model", "model"),
    LEFT("device", "device"),
    LEFT("status", "status"),
    RIGHT("duration_ns", "total"),
    RIGHT("model_bytes", "weights"),
    RIGHT("load_bytes_per_second", "rate"),
    RIGHT("memory_delta_bytes", "memory"),
    LEFT("error", "error"),
};

static const struct view_column load_stage_view[] = {
    LEFT("started_ns", "started"), LEFT("host", "host"),          LEFT("model", "model"),
    LEFT("stage", "stage"),        RIGHT("duration_ns", "total"),
};

static const struct view_column inference_view[] = {
    LEFT("started_ns", "started"),
    LEFT("host", "host"),
    LEFT("model", "model"),
    LEFT("device", "device"),
    RIGHT("request", "request"),
    LEFT("finish", "finish"),
    RIGHT("prompt_tokens", "prompt"),
    RIGHT("generated_tokens", "generated"),
    RIGHT("tokens_per_second", "speed"),
    RIGHT("ttft_ns", "ttft"),
    RIGHT("e2e_ns", "e2e"),
    RIGHT("queue_ns", "queue"),
    RIGHT("itl_p99_ns", "itl p99"),
    RIGHT("host_memory_bytes", "memory"),
};

static const struct view_column itl_view[] = {
    LEFT("started_ns", "started"), LEFT("host", "host"),         LEFT("model", "model"),
    LEFT("device", "device"),      RIGHT("duration_ns", "span"),
};

static const struct view_column operation_view[] = {
    LEFT("started_ns", "started"),
    LEFT("host", "host"),
    LEFT("operation", "operation"),
    LEFT("device", "device"),
    RIGHT("duration_ns", "total"),
    RIGHT("items", "items"),
    RIGHT("bytes", "bytes"),
    RIGHT("items_per_second", "rate"),
    RIGHT("host_memory_bytes", "memory"),
    LEFT("extra", "extra"),
};

static const struct view_column pipeline_view[] = {
    LEFT("started_ns", "started"),
    LEFT("host", "host"),
    LEFT("workload", "workload"),
    LEFT("device", "device"),
    LEFT("status", "status"),
    RIGHT("items", "items"),
    RIGHT("duration_ns", "total"),
    RIGHT("items_per_second", "rate"),
    RIGHT("overlap_ratio", "overlap"),
    RIGHT("exposed_copy_ns", "exposed copy"),
    RIGHT("pool_starvation_ratio", "starved"),
    RIGHT("pool_wait_ns", "waited"),
    RIGHT("chunk_bytes", "chunk"),
    RIGHT("pool_size", "pool"),
    LEFT("sync", "sync"),
};

static const struct view_column device_sample_view[] = {
    LEFT("started_ns", "started"),
    LEFT("host", "host"),
    LEFT("device", "device"),
    RIGHT("gpu_util_ratio", "busy"),
    RIGHT("memory_used_bytes", "memory"),
    RIGHT("temperature_celsius", "temperature"),
    RIGHT("power_watts", "power"),
    RIGHT("sm_clock_hz", "clock"),
};

static const struct view_column process_sample_view[] = {
    LEFT("started_ns", "started"),
    RUN("run", "run"),
    LEFT("host", "host"),
    RIGHT("cpu_ratio", "cpu"),
    RIGHT("host_memory_bytes", "memory"),
    RIGHT("device_memory_bytes", "device memory"),
};

#define VIEW(columns)                                                                              \
    {                                                                                              \
        columns, sizeof columns / sizeof *columns                                                  \
    }

static const struct view views[RECORD_KIND_COUNT] = {
    [RECORD_KIND_RUN] = VIEW(run_view),
    [RECORD_KIND_DEVICE] = VIEW(device_view),
    [RECORD_KIND_MODEL] = VIEW(model_view),
    [RECORD_KIND_STARTUP] = VIEW(startup_view),
    [RECORD_KIND_LOAD] = VIEW(load_view),
    [RECORD_KIND_LOAD_STAGE] = VIEW(load_stage_view),
    [RECORD_KIND_INFERENCE] = VIEW(inference_view),
    [RECORD_KIND_ITL] = VIEW(itl_view),
    [RECORD_KIND_OPERATION] = VIEW(operation_view),
    [RECORD_KIND_PIPELINE] = VIEW(pipeline_view),
    [RECORD_KIND_DEVICE_SAMPLE] = VIEW(device_sample_view),
    [RECORD_KIND_PROCESS_SAMPLE] = VIEW(process_sample_view),
};

const struct view *view_of(enum record_kind kind)
{
    assert((unsigned)kind < RECORD_KIND_COUNT);
    return &views[kind];
}

enum status view_table(struct table **out, const struct view *view)
{
    struct table_column columns[VIEW_COLUMNS_MAX];
    assert(view->count <= VIEW_COLUMNS_MAX);
    for (unsigned i = 0; i < view->count; i++) {
        const struct view_column *column = &view->columns[i];
        columns[i] = (struct table_column){
            .title = column->title,
            .align = column->align,
            .may_shrink = column->align == TABLE_LEFT && strcmp(column->key, "started_ns") != 0,
        };
    }
    return table_new(out, columns, view->count);
}

char *view_cell(const struct view_column *column, const struct result *result, size_t row)
{
    int place = result_find(result, column->key);
    struct value value = result_cell(result, row, (unsigned)place);
    enum unit unit = place < 0 ? UNIT_NONE : result_column(result, (unsigned)place)->unit;
    if (column->style == VIEW_RUN && value.type == VALUE_TEXT && value.text.size > RUN_SHOWN)
        value.text.size = RUN_SHOWN;
    if (column->style == VIEW_YES_NO && value.type == VALUE_INT)
        return strdup(value.i ? "yes" : "no");
    return table_cell_text(value, unit);
}

void view_add_row(const struct view *view, struct table *table, const struct result *result,
                  size_t row)
{
    for (unsigned i = 0; i < view->count; i++)
        table_take(table, view_cell(&view->columns[i], result, row));
}
