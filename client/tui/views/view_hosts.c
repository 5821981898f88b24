// Hosts, each followed by its devices: their newest samples, and the trouble that lasts; of a
// window that has ended its last samples, and means.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/query/result.h"

static const struct grid_column columns[] = {
    {"host / device", "host", GRID_TREE, true, 13, 28, 0},
    {"trouble", "trouble", GRID_MARKED, true, 10, 60, 2},
    {"CPU, GPU", "util_ratio", GRID_DRAWN, false, 9, 14, 1},
    {"CPU mean", "cpu_util_mean_ratio", GRID_UNIT, false, 8, 0, 2},
    {"GPU mean", "gpu_util_mean_ratio", GRID_UNIT, false, 8, 0, 1},
    {"memory", "memory_used_ratio", GRID_DRAWN, false, 9, 14, 1},
    {"temp", "temperature_celsius", GRID_UNIT, false, 6, 0, 2},
    {"hottest", "temperature_max_celsius", GRID_UNIT, false, 7, 0, GRID_RANK_LUXURY},
    {"slowdown", "slowdown_celsius", GRID_UNIT, false, 8, 0, 7},
    {"power", "power_watts", GRID_UNIT, false, 7, 0, 3},
    {"power mean", "power_mean_watts", GRID_UNIT, false, 10, 0, 4},
    {"limit", "power_cap_watts", GRID_UNIT, false, 7, 0, 6},
    {"clock", "sm_clock_hz", GRID_UNIT, false, 7, 0, 5},
    {"PCIe", "pcie", GRID_MARKED, true, 4, 5, 2},
    {"throttled", "throttled_ratio", GRID_UNIT, false, 9, 0, 6},
    {"throttled mean", "throttled_mean_ratio", GRID_UNIT, false, 14, 0, 7},
    {"ECC", "ecc_uncorrected", GRID_LOSS, false, 3, 0, 8},
    {"pressure", "memory_pressure_ratio", GRID_UNIT, false, 8, 0, 4},
    {"pressure mean", "memory_pressure_mean_ratio", GRID_UNIT, false, 13, 0, 5},
    {"of CPU", "cpu_pressure_ratio", GRID_UNIT, false, 7, 0, 7},
    {"of I/O", "io_pressure_ratio", GRID_UNIT, false, 7, 0, 7},
    {"proc CPU", "processes_cpu_ratio", GRID_UNIT, false, 8, 0, 4},
    {"proc mem", "processes_memory_bytes", GRID_UNIT, false, 9, 0, 4},
    {"load", "load_1m", GRID_UNIT, false, 5, 0, 8},
    {"used", "memory_used_bytes", GRID_UNIT, false, 9, 0, 8},
    {"processes", "processes", GRID_UNIT, true, 9, 30, 11},
    {"sampled", "sampled_ns", GRID_CLOCK, true, 8, 8, 12},
};
static const char *const identity[] = {"host", "device", NULL};

// A temperature close to that at which the device slows down.
static bool deserves_look(const struct result *result, size_t row, const struct grid_column *column)
{
    enum { CLOSE_CELSIUS = 3 };
    return strcmp(column->key, "temperature_celsius") == 0 &&
           result_number(result, row, "temperature_celsius", -1e9) + CLOSE_CELSIUS >=
               result_number(result, row, "slowdown_celsius", 1e9);
}

static bool is_host(const struct result *result, size_t row)
{
    return result_integer(result, row, "is_host", 0) == 1;
}

// Devices are behind their host.
static bool is_in_group(const struct result *result, size_t group, size_t row)
{
    (void)group;
    return !is_host(result, row);
}

// Of a large fleet, the devices in trouble are shown.
static bool is_kept(const struct result *result, size_t row)
{
    return result_get(result, row, "trouble").type != VALUE_NULL;
}

static void name_of(char *text, size_t size, const struct result *result, size_t row,
                    bool has_group)
{
    char host[256], device[256];
    (void)result_text(host, sizeof host, result, row, "host");
    (void)result_text(device, sizeof device, result, row, "device");
    if (is_host(result, row))
        (void)snprintf(text, size, "%s", host);
    else if (has_group)
        (void)snprintf(text, size, "%s", device);
    else
        (void)snprintf(text, size, "%s %s", host, device);
}

// A bar and its percentage.
static void draw_bar(const struct grid_column *column, struct canvas *canvas, struct rect area,
                     int x, int y, int width, double scale, const struct result *result, size_t row)
{
    enum { TEXT = 5 };
    char text[16];
    const double share = result_number(result, row, column->key, NAN);
    (void)scale;
    if (!isfinite(share))
        return;
    (void)snprintf(text, sizeof text, "%.0f%%", 100 * share);
    if (share > 0 && width > TEXT)
        plot_bar(canvas, area, x, y, width - TEXT, STYLE_BAR, 0, share < 1 ? share : 1);
    canvas_fit(canvas, area, x, y, width, ALIGN_RIGHT, STYLE_PLAIN, text);
}

static const struct grid grid = {
    GRID_COLUMNS(columns), .draw = draw_bar,           .deserves_look = deserves_look,
    .identity = identity,  .omits_absent = true,       .small = 200,
    .is_group = is_host,   .is_in_group = is_in_group, .is_kept = is_kept,
    .name_of = name_of,
};

static void facts(const struct model *model, struct rect area, struct segments *facts)
{
    const struct result *machines = model_answer(model, POLL_MACHINES);
    unsigned hosts = 0, troubled = 0, devices = 0;
    (void)area;
    if (model_is_past(model))
        segments_add(facts, 0, STYLE_PLAIN, "last samples and means of the window");
    for (size_t row = 0; machines && row < result_row_count(machines); row++) {
        hosts += is_host(machines, row);
        devices += !is_host(machines, row);
        troubled += result_integer(machines, row, "in_trouble", 0) == 1;
    }
    segments_add(facts, 1, STYLE_PLAIN, hosts == 1 ? "%u host" : "%u hosts", hosts);
    segments_add(facts, 2, STYLE_PLAIN, devices == 1 ? "%u device" : "%u devices", devices);
    if (troubled > 0)
        segments_add(facts, 0, STYLE_WARNING, "%u in trouble", troubled);
}

static const struct panel panel = {.title = "Hosts and devices",
                                   .none = "no samples: inferstat-worker watch makes them",
                                   .polled = POLL_MACHINES,
                                   .grid = &grid,
                                   .facts = facts};

const struct view view_hosts = {
    .name = "Hosts",
    .polls = POLL(HOSTS) | POLL(DEVICES) | POLL(EVENTS),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
