#include "client/cli/output/columns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_SHOWN = 8, COLUMNS_MAX = 24 };

// A row: key, title, style and alignment, `minor` (table.h).
#define LEFT   SHOWN_PLAIN, TABLE_LEFT
#define RIGHT  SHOWN_PLAIN, TABLE_RIGHT
#define RUN    SHOWN_RUN, TABLE_LEFT
#define YES_NO SHOWN_YES_NO, TABLE_LEFT

static const struct shown_column run_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"run", "run", RUN, 0},
    {"host", "host", LEFT, 1},
    {"pid", "pid", RIGHT, 3},
    {"end", "end", LEFT, 0},
    {"produced", "produced", RIGHT, 0},
    {"stored", "stored", RIGHT, 0},
    {"in_flight", "in flight", RIGHT, 1},
    {"lost", "lost", RIGHT, 0},
    {"coverage_ratio", "coverage", RIGHT, 1},
    {"balanced", "balanced", YES_NO, 0},
    {"clock_offset_ns", "clock", SHOWN_CLOCK, TABLE_RIGHT, 3},
    {"last_activity", "last activity", LEFT, 2},
    {"worker_version", "version", LEFT, 4},
};

static const struct shown_column device_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"run", "run", RUN, 1},
    {"host", "host", LEFT, 0},
    {"ordinal", "no.", RIGHT, 2},
    {"name", "device", LEFT, 0},
    {"memory_bytes", "memory", RIGHT, 0},
    {"compute_capability", "compute", LEFT, 2},
    {"pcie_generation", "PCIe", RIGHT, 2},
    {"pcie_width", "lanes", RIGHT, 2},
    {"memory_bandwidth_bytes_per_second", "bandwidth", RIGHT, 1},
    {"h2d_bytes_per_second", "h2d", RIGHT, 1},
    {"flops_per_second", "arithmetic", RIGHT, 1},
};

static const struct shown_column model_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"name", "model", LEFT, 0},
    {"quantisation", "type", LEFT, 0},
    {"file_bytes", "size", RIGHT, 0},
};

static const struct shown_column startup_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"run", "run", RUN, 0},
    {"host", "host", LEFT, 0},
    {"duration_ns", "total", RIGHT, 0},
    {"memory_start_bytes", "memory at start", RIGHT, 0},
    {"memory_ready_bytes", "memory when ready", RIGHT, 0},
};

static const struct shown_column load_columns[] = {
    {"started_ns", "started", LEFT, 0},   {"host", "host", LEFT, 1},
    {"model", "model", LEFT, 0},          {"device", "device", LEFT, 2},
    {"status", "status", LEFT, 0},        {"duration_ns", "total", RIGHT, 0},
    {"model_bytes", "weights", RIGHT, 3}, {"load_bytes_per_second", "rate", RIGHT, 2},
    {"floor_ns", "floor", RIGHT, 3},      {"memory_delta_bytes", "memory", RIGHT, 3},
    {"error", "error", LEFT, 0},
};

static const struct shown_column load_stage_columns[] = {
    {"started_ns", "started", LEFT, 0}, {"host", "host", LEFT, 0},
    {"model", "model", LEFT, 0},        {"stage", "stage", LEFT, 0},
    {"duration_ns", "took", RIGHT, 0},
};

static const struct shown_column inference_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"host", "host", LEFT, 2},
    {"model", "model", LEFT, 0},
    {"device", "device", LEFT, 3},
    {"request", "request", RIGHT, 5},
    {"finish", "finish", LEFT, 3},
    {"prompt_tokens", "prompt", RIGHT, 2},
    {"generated_tokens", "generated", RIGHT, 0},
    {"tokens_per_second", "speed", RIGHT, 0},
    {"ttft_ns", "ttft", RIGHT, 0},
    {"e2e_ns", "e2e", RIGHT, 1},
    {"queue_ns", "queue", RIGHT, 4},
    {"itl_p99_ns", "itl p99", RIGHT, 2},
    {"host_memory_bytes", "memory", RIGHT, 4},
};

static const struct shown_column itl_columns[] = {
    {"started_ns", "started", LEFT, 0}, {"host", "host", LEFT, 0},
    {"model", "model", LEFT, 0},        {"device", "device", LEFT, 0},
    {"duration_ns", "span", RIGHT, 0},
};

static const struct shown_column operation_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"host", "host", LEFT, 0},
    {"operation", "operation", LEFT, 0},
    {"device", "device", LEFT, 2},
    {"duration_ns", "total", RIGHT, 0},
    {"items", "items", RIGHT, 1},
    {"bytes", "bytes", RIGHT, 2},
    {"items_per_second", "rate", RIGHT, 1},
    {"host_memory_bytes", "memory", RIGHT, 3},
    {"extra", "extra", LEFT, 2},
};

static const struct shown_column pipeline_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"host", "host", LEFT, 1},
    {"workload", "workload", LEFT, 0},
    {"model", "model", LEFT, 1},
    {"device", "device", LEFT, 2},
    {"status", "status", LEFT, 0},
    {"items", "items", RIGHT, 2},
    {"batch_items", "batch", RIGHT, 3},
    {"duration_ns", "total", RIGHT, 0},
    {"items_per_second", "rate", RIGHT, 0},
    {"overlap_ratio", "overlap", RIGHT, 0},
    {"exposed_copy_ns", "exposed copy", RIGHT, 1},
    {"copy_starved_ns", "copy starved", RIGHT, 1},
    {"pool_starvation_ratio", "pool waits", RIGHT, 1},
    {"pool_wait_ns", "waited", RIGHT, 2},
    {"chunk_bytes", "chunk", RIGHT, 3},
    {"pool_size", "pool", RIGHT, 3},
    {"sync", "sync", LEFT, 3},
    {"pool_acquires", "acquired", RIGHT, 4},
    {"pool_available_min", "least free", RIGHT, 4},
    {"pool_available_max", "most free", RIGHT, 4},
    {"copy_busy_ns", "copying", RIGHT, 4},
    {"compute_busy_ns", "computing", RIGHT, 4},
    {"idle_ns", "idle", RIGHT, 4},
};

static const struct shown_column device_sample_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"host", "host", LEFT, 0},
    {"device", "device", LEFT, 0},
    {"gpu_util_ratio", "busy", RIGHT, 0},
    {"memory_used_bytes", "memory", RIGHT, 0},
    {"temperature_celsius", "temperature", RIGHT, 0},
    {"power_watts", "power", RIGHT, 0},
    {"sm_clock_hz", "clock", RIGHT, 0},
};

static const struct shown_column process_sample_columns[] = {
    {"started_ns", "started", LEFT, 0},
    {"run", "run", RUN, 0},
    {"host", "host", LEFT, 0},
    {"cpu_ratio", "cpu", RIGHT, 0},
    {"host_memory_bytes", "memory", RIGHT, 0},
    {"device_memory_bytes", "device memory", RIGHT, 0},
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

enum status columns_print(const struct columns *view, const struct result *result, FILE *out,
                          unsigned width, const char *what, struct error *err)
{
    struct table *table;
    if (columns_new_table(&table, view) != STATUS_OK)
        return error_no_memory(err, what);
    for (size_t row = 0; row < result_row_count(result); row++)
        columns_add_row(view, table, result, row);
    enum status status = table_print(table, out, width, err);
    table_free(table);
    return status;
}
