#include "client/tui/machines.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/core/record/record.h"

enum { COLUMNS_MAX = 96, TROUBLE_SIZE = 512, XIDS_MAX = 64 };

// Columns of the table that the answers do not have.
enum own { OWN_UTIL, OWN_MEMORY, OWN_PCIE, OWN_TROUBLE, OWN_IS_HOST, OWN_IN_TROUBLE, OWN_COUNT };

static const struct {
    const char *key;
    enum unit unit;
} own_columns[OWN_COUNT] = {
    [OWN_UTIL] = {"util_ratio", UNIT_RATIO}, [OWN_MEMORY] = {"memory_used_ratio", UNIT_RATIO},
    [OWN_PCIE] = {"pcie", UNIT_NONE},        [OWN_TROUBLE] = {"trouble", UNIT_NONE},
    [OWN_IS_HOST] = {"is_host", UNIT_NONE},  [OWN_IN_TROUBLE] = {"in_trouble", UNIT_NONE},
};

struct host {
    struct value name;
    size_t row; // of the hosts' answer; SIZE_MAX: it has none
    bool in_trouble;
};

struct join {
    const struct machines *from;
    struct result *out;
    unsigned own[OWN_COUNT];
    unsigned of_hosts[COLUMNS_MAX], of_devices[COLUMNS_MAX]; // their columns in `out`
    struct host *hosts;
    size_t host_count, slot_count;
    size_t *slots;         // by hash: index of a host, from 1; more than there are hosts
    size_t *host_of;       // by device: index of its host
    size_t xids[XIDS_MAX]; // rows of events: the newest XID of each device that has some
    size_t xid_count;
};

static size_t rows_of(const struct result *result)
{
    return result ? result_row_count(result) : 0;
}

// ---- Columns ------------------------------------------------------------------------

static bool add_columns(struct result *out, const struct result *from, unsigned map[COLUMNS_MAX])
{
    const unsigned count = from ? result_column_count(from) : 0;
    bool is_ok = count <= COLUMNS_MAX;
    for (unsigned i = 0; i < count && is_ok; i++) {
        const struct result_column *column = result_column(from, i);
        if (result_find(out, column->key) < 0)
            is_ok = result_add_column(out, column->key, column->unit) == STATUS_OK;
        map[i] = is_ok ? (unsigned)result_find(out, column->key) : 0;
    }
    return is_ok;
}

static void copy_row(struct join *join, const struct result *from, size_t row,
                     const unsigned map[COLUMNS_MAX])
{
    for (unsigned i = 0; i < result_column_count(from); i++) {
        const struct value value = result_cell(from, row, i);
        if (value.type == VALUE_INT)
            result_set_int(join->out, map[i], value.i);
        else if (value.type == VALUE_REAL)
            result_set_real(join->out, map[i], value.r);
        else if (value.type == VALUE_TEXT) // out of memory shows in result_status
            (void)result_set_text(join->out, map[i], value.text.bytes, value.text.size);
    }
}

// ---- Hosts --------------------------------------------------------------------------

// The index of the host, by its name's hash.
static size_t find_host(struct join *join, struct value name)
{
    size_t at = name.type == VALUE_TEXT ? text_hash(name.text.bytes, name.text.size) : 0;
    at %= join->slot_count;
    while (join->slots[at] > 0 && !value_is_same(join->hosts[join->slots[at] - 1].name, name))
        at = (at + 1) % join->slot_count;
    if (join->slots[at] == 0) {
        join->hosts[join->host_count] = (struct host){.name = name, .row = SIZE_MAX};
        join->slots[at] = ++join->host_count;
    }
    return join->slots[at] - 1;
}

// The newest XID in the window of the device of a row; SIZE_MAX if it has none.
static size_t find_xid(const struct join *join, const struct result *of, size_t row)
{
    const struct result *events = join->from->events;
    const struct value host = result_get(of, row, "host"), device = result_get(of, row, "device");
    for (size_t n = 0; n < join->xid_count; n++)
        if (value_is_same(result_get(events, join->xids[n], "device"), device) &&
            value_is_same(result_get(events, join->xids[n], "host"), host))
            return join->xids[n];
    return SIZE_MAX;
}

// True if the process that sampled it is gone, and did not close.
static bool is_unsampled(const struct result *of, size_t row)
{
    return result_get(of, row, "sampler_ended_ns").type == VALUE_INT &&
           result_get(of, row, "sampler_closed").type == VALUE_NULL;
}

// Of a window that has ended, whose events the answers lack: throttled for a part of it that
// counts.
static bool was_throttled(const struct result *of, size_t row)
{
    return result_number(of, row, "throttled_mean_ratio", 0) >= 0.01;
}

// Likewise: at its end it had fewer PCIe lanes than it can have.
static bool was_downgraded(const struct result *of, size_t row)
{
    return result_get(of, row, "window_ns").type == VALUE_INT &&
           result_integer(of, row, "pcie_width", INT64_MAX) <
               result_integer(of, row, "pcie_width_max", 0);
}

static bool is_in_trouble(const struct result *of, size_t row)
{
    return result_get(of, row, "events").type != VALUE_NULL || is_unsampled(of, row) ||
           was_throttled(of, row) || was_downgraded(of, row);
}

static void find_hosts(struct join *join)
{
    const struct machines *from = join->from;
    for (size_t row = 0; row < rows_of(from->hosts); row++) {
        const size_t host = find_host(join, result_get(from->hosts, row, "host"));
        join->hosts[host].row = row;
        join->hosts[host].in_trouble |= is_in_trouble(from->hosts, row);
    }
    for (size_t row = 0; row < rows_of(from->devices); row++) {
        const size_t host = find_host(join, result_get(from->devices, row, "host"));
        join->host_of[row] = host;
        join->hosts[host].in_trouble |= is_in_trouble(from->devices, row);
    }
    for (size_t row = 0; row < rows_of(from->events) && join->xid_count < XIDS_MAX; row++) {
        if (!result_is(from->events, row, "event", "xid") || // as older collectors answer
            find_xid(join, from->events, row) != SIZE_MAX)
            continue;
        join->xids[join->xid_count++] = row;
        const struct value name = result_get(from->events, row, "host");
        for (size_t i = 0; i < join->host_count; i++)
            join->hosts[i].in_trouble |= value_is_same(join->hosts[i].name, name);
    }
}

// ---- Rows ---------------------------------------------------------------------------

static void set_real(struct join *join, enum own own, double value)
{
    if (isfinite(value))
        result_set_real(join->out, join->own[own], value);
}

// What is wrong now, or was in the window, and its newest XID: "! throttling, XID 48".
static void set_trouble(struct join *join, const struct result *of, size_t row)
{
    char text[TROUBLE_SIZE] = "! ", *words = text + 2;
    const size_t xid = find_xid(join, of, row), size = sizeof text - 2;
    const struct value events = result_get(of, row, "events");
    if (events.type == VALUE_TEXT)
        record_event_words(words, size, events.text.bytes, NULL);
    if (was_throttled(of, row))
        (void)text_append(words, size, ", ", "throttled %.0f %%",
                          result_number(of, row, "throttled_mean_ratio", 0) * 100);
    if (was_downgraded(of, row))
        (void)text_append(words, size, ", ", "PCIe downgrade");
    if (is_unsampled(of, row))
        (void)text_append(words, size, ", ", "not sampled");
    if (xid != SIZE_MAX && !strstr(words, "XID"))
        (void)text_append(words, size, ", ", "XID %lld",
                          (long long)result_integer(join->from->events, xid, "code", 0));
    if (words[0])
        (void)result_set_text(join->out, join->own[OWN_TROUBLE], text, strlen(text));
}

static void add_device(struct join *join, size_t row)
{
    const struct result *devices = join->from->devices;
    if (result_find(devices, "sampled_ns") >= 0 &&
        result_get(devices, row, "sampled_ns").type == VALUE_NULL)
        return; // nothing is known of it but its name
    const int64_t width = result_integer(devices, row, "pcie_width", 0);
    char text[32];
    if (result_add_row(join->out) != STATUS_OK)
        return;
    copy_row(join, devices, row, join->of_devices);
    set_trouble(join, devices, row);
    result_set_int(join->out, join->own[OWN_IS_HOST], 0);
    set_real(join, OWN_UTIL, result_number(devices, row, "gpu_util_ratio", NAN));
    set_real(join, OWN_MEMORY,
             result_number(devices, row, "memory_used_bytes", NAN) /
                 result_number(devices, row, "memory_bytes", NAN));
    if (width <= 0)
        return;
    (void)snprintf(text, sizeof text, "x%lld%s", (long long)width,
                   width < result_integer(devices, row, "pcie_width_max", 0) ? "!" : "");
    (void)result_set_text(join->out, join->own[OWN_PCIE], text, strlen(text));
}

static void add_host(struct join *join, const struct host *host)
{
    const struct result *hosts = join->from->hosts;
    const int name = result_find(join->out, "host");
    if (name < 0 || host->name.type != VALUE_TEXT || result_add_row(join->out) != STATUS_OK)
        return;
    (void)result_set_text(join->out, (unsigned)name, host->name.text.bytes, host->name.text.size);
    result_set_int(join->out, join->own[OWN_IS_HOST], 1);
    result_set_int(join->out, join->own[OWN_IN_TROUBLE], host->in_trouble);
    if (host->row == SIZE_MAX)
        return;
    copy_row(join, hosts, host->row, join->of_hosts);
    set_trouble(join, hosts, host->row);
    set_real(join, OWN_UTIL, result_number(hosts, host->row, "cpu_util_ratio", NAN));
    set_real(join, OWN_MEMORY,
             1 - result_number(hosts, host->row, "memory_available_bytes", NAN) /
                     result_number(hosts, host->row, "memory_total_bytes", NAN));
}

// The devices of each host, in their order, by a list of the next one.
static void add_rows(struct join *join, size_t *first, size_t *next)
{
    const size_t devices = rows_of(join->from->devices);
    for (size_t i = 0; i < join->host_count; i++)
        first[i] = SIZE_MAX;
    for (size_t row = devices; row-- > 0;) {
        next[row] = first[join->host_of[row]];
        first[join->host_of[row]] = row;
    }
    for (int trouble = 1; trouble >= 0; trouble--)
        for (size_t i = 0; i < join->host_count; i++) {
            if (join->hosts[i].in_trouble != (trouble == 1))
                continue;
            add_host(join, &join->hosts[i]);
            for (size_t row = first[i]; row != SIZE_MAX; row = next[row])
                add_device(join, row);
        }
}

static bool prepare(struct join *join)
{
    bool is_ok = result_new(&join->out) == STATUS_OK;
    for (unsigned i = 0; i < OWN_COUNT && is_ok; i++) { // first, where they are found soonest
        is_ok = result_add_column(join->out, own_columns[i].key, own_columns[i].unit) == STATUS_OK;
        join->own[i] = is_ok ? result_column_count(join->out) - 1 : 0;
    }
    return is_ok && add_columns(join->out, join->from->hosts, join->of_hosts) &&
           add_columns(join->out, join->from->devices, join->of_devices);
}

struct result *machines_join(const struct machines *machines)
{
    const size_t devices = rows_of(machines->devices), hosts = rows_of(machines->hosts) + devices;
    struct join join = {.from = machines, .slot_count = 2 * hosts};
    if (hosts == 0)
        return NULL;
    join.hosts = calloc(hosts, sizeof *join.hosts);
    join.slots = calloc(join.slot_count, sizeof *join.slots);
    join.host_of = calloc(devices + 1, sizeof *join.host_of);
    size_t *first = calloc(hosts, sizeof *first), *next = calloc(devices + 1, sizeof *next);
    bool is_ok = join.hosts && join.slots && join.host_of && first && next && prepare(&join);
    if (is_ok) {
        find_hosts(&join);
        add_rows(&join, first, next);
        is_ok = result_status(join.out) == STATUS_OK;
    }
    if (!is_ok) {
        result_free(join.out);
        join.out = NULL;
    }
    free(next);
    free(first);
    free(join.host_of);
    free(join.slots);
    free(join.hosts);
    return join.out;
}
