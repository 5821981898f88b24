// inferstat devices [--since WHEN], inferstat hosts [--since WHEN]
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/commands/device_trouble.h"

// ---- Cells ----------------------------------------------------------------------------

// Two figures in one cell: a value and its limit, or mean and extreme.
static const struct {
    const char *key, *other;
} pairs[] = {
    {"memory_used_bytes", "memory_total_bytes"},
    {"temperature_celsius", "slowdown_celsius"},
    {"power_watts", "power_limit_watts"},
    {"sm_clock_hz", "sm_clock_max_hz"},
    {"gpu_util_mean_ratio", "gpu_util_max_ratio"},
    {"memory_used_mean_bytes", "memory_used_max_bytes"},
    {"temperature_mean_celsius", "temperature_max_celsius"},
    {"power_mean_watts", "power_max_watts"},
    {"sm_clock_mean_hz", "sm_clock_min_hz"},
    {"memory_available_bytes", "memory_total_bytes"},
    {"cpu_util_mean_ratio", "cpu_util_max_ratio"},
    {"memory_pressure_mean_ratio", "memory_pressure_max_ratio"},
};

// "61.2/80.0 GB"; the first alone where the second is absent.
static char *pair_text(const struct column *column, const struct result *result, size_t row)
{
    struct column other = {.key = ""};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i].key, column->key) == 0)
            other.key = pairs[i].other;
    char *first = column_value(column, result, row), *second = column_value(&other, result, row);
    char *text = NULL, *unit = first ? strchr(first, ' ') : NULL;
    if (!first || !second || strcmp(first, "-") == 0 || strcmp(second, "-") == 0) {
        free(second);
        return first;
    }
    const char *same = strchr(second, ' ');
    if (unit && same && strcmp(unit, same) == 0)
        *unit = '\0';
    const int length = asprintf(&text, "%s/%s", first, second);
    free(first);
    free(second);
    return length < 0 ? NULL : text;
}

// Generation and lanes of the link: "5 x16", and "5 x8!" below what the device and its slot can do.
static char *pcie_text(const struct column *column, const struct result *result, size_t row)
{
    char *text = NULL;
    const int64_t generation = result_integer(result, row, "pcie_generation", 0);
    const int64_t width = result_integer(result, row, column->key, 0);
    if (width <= 0)
        return strdup("-");
    const char *mark = width < result_integer(result, row, "pcie_width_max", 0) ? "!" : "";
    const int length = generation > 0 ? asprintf(&text, "%lld x%lld%s", (long long)generation,
                                                 (long long)width, mark)
                                      : asprintf(&text, "x%lld%s", (long long)width, mark);
    return length < 0 ? NULL : text;
}

static char *trouble_text(const struct column *column, const struct result *result, size_t row)
{
    char text[TROUBLE_TEXT_SIZE];
    (void)column;
    return strdup(device_trouble_text(text, result, row)[0] ? text : "-");
}

// ---- Tables ---------------------------------------------------------------------------

static const struct column devices_now[] = {
    {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},
    {"gpu_util_ratio", "util", COLUMN_RIGHT(0)},
    {"memory_used_bytes", "memory", COLUMN_RIGHT(0), .cell = pair_text, .is_optional = true},
    {"temperature_celsius", "temp", COLUMN_RIGHT(1), .cell = pair_text, .is_optional = true},
    {"power_watts", "power", COLUMN_RIGHT(3), .cell = pair_text, .is_optional = true},
    {"sm_clock_hz", "clock", COLUMN_RIGHT(4), .cell = pair_text, .is_optional = true},
    {"pcie_width", "PCIe", COLUMN_LEFT(2), .cell = pcie_text, .is_optional = true},
    {"sm_active_ratio", "SM active", COLUMN_RIGHT(6), .is_optional = true},
    {"fan_ratio", "fan", COLUMN_RIGHT(7), .is_optional = true},
    {"events", "trouble", COLUMN_LEFT(0), .cell = trouble_text},
    {"processes", "processes", COLUMN_LEFT(5), .is_optional = true},
};

static const struct column devices_window[] = {
    {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},
    {"samples", "samples", COLUMN_RIGHT(6)},
    {"gpu_util_mean_ratio", "util, max", COLUMN_RIGHT(0), .cell = pair_text},
    {"memory_used_mean_bytes", "memory, max", COLUMN_RIGHT(2), .cell = pair_text},
    {"temperature_mean_celsius", "temp, max", COLUMN_RIGHT(1), .cell = pair_text},
    {"power_mean_watts", "power, max", COLUMN_RIGHT(3), .cell = pair_text},
    {"sm_clock_mean_hz", "clock, min", COLUMN_RIGHT(4), .cell = pair_text},
    {"energy_window_joules", "energy", COLUMN_RIGHT(5)},
    {"throttled_mean_ratio", "throttled", COLUMN_RIGHT(0)},
    {"events", "trouble now", COLUMN_LEFT(0), .cell = trouble_text},
};

static const struct column hosts_now[] = {
    {"host", "host", COLUMN_LEFT(0)},
    {"cpu_util_ratio", "cpu", COLUMN_RIGHT(0)},
    {"load_1m", "load", COLUMN_RIGHT(1)},
    {"memory_available_bytes", "available memory", COLUMN_RIGHT(0), .cell = pair_text},
    {"memory_pressure_ratio", "memory pressure", COLUMN_RIGHT(2)},
    {"io_pressure_ratio", "I/O pressure", COLUMN_RIGHT(2)},
    {"disk_busy_ratio", "disk", COLUMN_RIGHT(3)},
    {"network_rx_bytes_per_second", "received", COLUMN_RIGHT(4)},
    {"network_tx_bytes_per_second", "sent", COLUMN_RIGHT(4)},
    {"cgroup_throttled_ratio", "throttled", COLUMN_RIGHT(2), .is_optional = true},
    {"devices", "devices", COLUMN_RIGHT(3)},
    {"events", "trouble", COLUMN_LEFT(0), .cell = trouble_text},
};

static const struct column hosts_window[] = {
    {"host", "host", COLUMN_LEFT(0)},
    {"samples", "samples", COLUMN_RIGHT(4)},
    {"cpu_util_mean_ratio", "cpu, max", COLUMN_RIGHT(0), .cell = pair_text},
    {"memory_available_min_bytes", "least available", COLUMN_RIGHT(0)},
    {"memory_pressure_mean_ratio", "memory pressure, max", COLUMN_RIGHT(1), .cell = pair_text},
    {"cpu_pressure_mean_ratio", "cpu pressure", COLUMN_RIGHT(2)},
    {"io_pressure_mean_ratio", "I/O pressure", COLUMN_RIGHT(3)},
    {"events", "trouble now", COLUMN_LEFT(0), .cell = trouble_text},
};

// Of a moment and of a window.
static const struct columns device_views[] = {{COLUMNS_OF(devices_now), NULL},
                                              {COLUMNS_OF(devices_window), NULL}};
static const struct columns host_views[] = {{COLUMNS_OF(hosts_now), NULL},
                                            {COLUMNS_OF(hosts_window), NULL}};

// What is in trouble comes first, so that it is never what --limit leaves out.
static enum status show(struct cli *cli, const struct columns views[2], struct error *err)
{
    struct result *result = NULL;
    const struct query_filter *filter = &cli->query.filter;
    const bool is_limited = option_given(&cli->options, OPTION_LIMIT);
    const bool is_table = cli->options.format == FORMAT_TEXT;
    const uint32_t limit = is_limited || !is_table ? cli->query.limit : CLI_ROWS_FOR_PEOPLE;
    struct query all = cli->query;
    all.limit = 0;
    enum status status = cli_ask_for(cli, &all, cli->command->name, "no data", &result, err);
    if (status != STATUS_OK)
        return status;
    struct rows rows = cli_rows(cli, &views[filter->since_ns != 0 || filter->until_ns != 0]);
    const size_t count = result_row_count(result);
    for (int calm = 0; calm <= 1; calm++)
        for (size_t row = 0; row < count && (limit == 0 || rows.count < limit); row++) {
            char text[TROUBLE_TEXT_SIZE];
            if ((device_trouble_text(text, result, row)[0] == '\0') == calm)
                rows_write(&rows, result, row, row + 1);
        }
    status = rows_end(&rows, STATUS_OK, err);
    if (status == STATUS_OK) {
        cli_note_limit(cli, rows.count, count);
        cli_note_file(cli);
    }
    result_free(result);
    return status;
}

enum status command_devices(struct cli *cli, struct error *err)
{
    return show(cli, device_views, err);
}

enum status command_hosts(struct cli *cli, struct error *err)
{
    return show(cli, host_views, err);
}
