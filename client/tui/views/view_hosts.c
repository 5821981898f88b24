// Hosts and their devices: their newest samples, and means and extremes of the window.
#include "client/tui/view.h"

#include <string.h>

#include "common/core/query/result.h"

enum panel_number { PANEL_HOSTS, PANEL_DEVICES, PANELS };

static const struct grid_column host_columns[] = {
    {"host", "host", GRID_NAME, true, 6, 30, 0},
    {"trouble", "events", GRID_UNIT, true, 7, 60, 2},
    {"CPU", "cpu_util_ratio", GRID_UNIT, false, 6, 0, 0},
    {"mean", "cpu_util_mean_ratio", GRID_UNIT, false, 6, 0, 3},
    {"load 1m", "load_1m", GRID_UNIT, false, 7, 0, 5},
    {"available", "memory_available_bytes", GRID_UNIT, false, 9, 0, 0},
    {"memory", "memory_total_bytes", GRID_UNIT, false, 9, 0, 4},
    {"pressure CPU", "cpu_pressure_ratio", GRID_UNIT, false, 7, 0, 6},
    {"memory", "memory_pressure_ratio", GRID_UNIT, false, 7, 0, 1},
    {"I/O", "io_pressure_ratio", GRID_UNIT, false, 7, 0, 6},
    {"devices", "devices", GRID_UNIT, false, 7, 0, 7},
    {"sampled", "sampled_ns", GRID_CLOCK, true, 8, 8, 8},
};
static const char *const host_identity[] = {"host", NULL};

static const struct grid_column device_columns[] = {
    {"host", "host", GRID_NAME, true, 6, 24, 0},
    {"device", "device", GRID_NAME, true, 6, 24, 0},
    {"trouble", "events", GRID_UNIT, true, 7, 60, 2},
    {"util", "gpu_util_ratio", GRID_UNIT, false, 6, 0, 0},
    {"mean", "gpu_util_mean_ratio", GRID_UNIT, false, 6, 0, 8},
    {"used", "memory_used_bytes", GRID_UNIT, false, 9, 0, 0},
    {"of", "memory_bytes", GRID_UNIT, false, 9, 0, 4},
    {"temp", "temperature_celsius", GRID_UNIT, false, 6, 0, 1},
    {"slowdown", "slowdown_celsius", GRID_UNIT, false, 8, 0, 9},
    {"power", "power_watts", GRID_UNIT, false, 7, 0, 3},
    {"limit", "power_cap_watts", GRID_UNIT, false, 7, 0, 7},
    {"clock", "sm_clock_hz", GRID_UNIT, false, 9, 0, 5},
    {"max", "sm_clock_max_hz", GRID_UNIT, false, 9, 0, 10},
    {"throttled", "throttled_mean_ratio", GRID_UNIT, false, 9, 0, 3},
    {"PCIe", "pcie_width", GRID_UNIT, false, 4, 0, 6},
    {"width", "pcie_width_max", GRID_UNIT, false, 5, 0, 11},
    {"ECC", "ecc_uncorrected", GRID_LOSS, false, 4, 0, 9},
    {"processes", "processes", GRID_UNIT, true, 9, 30, 12},
    {"sampled", "sampled_ns", GRID_CLOCK, true, 8, 8, 13},
};
static const char *const device_identity[] = {"host", "device", NULL};

// A narrow link, or a temperature close to that at which the device slows down.
static bool deserves_look(const struct result *result, size_t row, const struct grid_column *column)
{
    enum { CLOSE_CELSIUS = 3 };
    if (strcmp(column->key, "pcie_width") == 0)
        return result_number(result, row, "pcie_width", 0) <
               result_number(result, row, "pcie_width_max", 0);
    return strcmp(column->key, "temperature_celsius") == 0 &&
           result_number(result, row, "temperature_celsius", 0) + CLOSE_CELSIUS >=
               result_number(result, row, "slowdown_celsius", 1e9);
}

// What has trouble is seen without scrolling, however large the fleet is.
static bool has_trouble(const struct result *result, size_t row)
{
    return result_get(result, row, "events").type != VALUE_NULL;
}

static const struct grid host_grid = {.columns = host_columns,
                                      .count = sizeof host_columns / sizeof *host_columns,
                                      .identity = host_identity,
                                      .is_urgent = has_trouble};
static const struct grid device_grid = {.columns = device_columns,
                                        .count = sizeof device_columns / sizeof *device_columns,
                                        .deserves_look = deserves_look,
                                        .identity = device_identity,
                                        .is_urgent = has_trouble};

static const struct panel panels[PANELS] = {
    [PANEL_HOSTS] = {.title = "Hosts",
                     .none = "no host samples: inferstat-worker watch makes them",
                     .polled = POLL_HOSTS,
                     .grid = &host_grid},
    [PANEL_DEVICES] = {.title = "Devices",
                       .none = "no device samples: inferstat-worker watch makes them",
                       .polled = POLL_DEVICES,
                       .grid = &device_grid},
};

static int rows_of(const struct model *model, enum panel_number number, int most)
{
    const size_t rows = view_panel_rows(model, &panels[number]);
    return rows < (size_t)most ? (int)rows : most;
}

static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE_AND_HEADING = 2 };
    const struct layout_want hosts = {
        3, TITLE_AND_HEADING + rows_of(model, PANEL_HOSTS, body.height * 4 / 10), 0, false};
    const struct layout_want devices = {4, TITLE_AND_HEADING + 4, 1, true};
    const struct layout_want wants[] = {hosts, devices};
    layout_stack(body, wants, PANELS, out);
}

const struct view view_hosts = {
    .name = "Hosts",
    .polls = POLL(HOSTS) | POLL(DEVICES),
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = view_empty_requests_draw,
};
