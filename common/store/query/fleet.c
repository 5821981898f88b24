#include "common/store/query/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/core/record/throttle.h"
#include "common/core/stats/stats.h"
#include "common/store/read/device_names.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"

#define REQUESTS (1U << FLEET_OF_REQUESTS)
#define LOADS    (1U << FLEET_OF_LOADS)

// How a number is told, when it is otherwise than with the peers, and which way is bad.
static const struct {
    const char *what;
    const char *mark; // before each value
    enum unit unit;
    bool less_is_worse;
    bool relative;          // whether `least` is a share of the peers' value
    double least;           // a smaller difference is none
    unsigned matter;        // for which subjects: bits of enum fleet_subject
    enum fleet_number best; // what the device supports; 0: nothing says it
} numbers[FLEET_TOLD] = {
    [FLEET_PCIE_WIDTH] = {"PCIe ", "x", UNIT_NONE, true, true, 0.01, REQUESTS | LOADS,
                          FLEET_PCIE_WIDTH_MAX},
    [FLEET_PCIE_GENERATION] = {"PCIe ", "gen ", UNIT_NONE, true, false, 0.5, REQUESTS | LOADS,
                               FLEET_PCIE_GENERATION_MAX},
    [FLEET_THROTTLED] = {"throttled ", "", UNIT_RATIO, false, false, 0.1, REQUESTS, 0},
    [FLEET_SM_CLOCK] = {"clock ", "", UNIT_HERTZ, true, true, 0.03, REQUESTS, 0},
    [FLEET_MEMORY_CLOCK] = {"memory clock ", "", UNIT_HERTZ, true, true, 0.03, REQUESTS, 0},
    [FLEET_TEMPERATURE] = {"temperature ", "", UNIT_CELSIUS, false, false, 10, REQUESTS, 0},
    [FLEET_H2D] = {"copies to the device ", "", UNIT_BYTES_PER_SECOND, true, true, 0.1,
                   REQUESTS | LOADS, 0},
    [FLEET_BANDWIDTH] = {"device memory ", "", UNIT_BYTES_PER_SECOND, true, true, 0.05, REQUESTS,
                         0},
    [FLEET_CONCURRENT] = {"requests at once ", "", UNIT_COUNT, false, true, 0.2, REQUESTS, 0},
    [FLEET_PROMPT] = {"prompts of ", "", UNIT_TOKENS, false, true, 0.2, REQUESTS, 0},
    [FLEET_ITEMS] = {"batches of ", "", UNIT_COUNT, true, true, 0.2, REQUESTS, 0},
    [FLEET_PAGE_CACHE] = {"page cache ", "", UNIT_RATIO, true, false, 0.2, LOADS, 0},
    [FLEET_DEVICE_MEMORY] = {"device memory in use ", "", UNIT_BYTES, false, true, 0.2, REQUESTS,
                             0},
    [FLEET_HOST_MEMORY] = {"host memory ", "", UNIT_BYTES, true, true, 0.1, REQUESTS | LOADS, 0},
    [FLEET_CPU_COUNT] = {"processors ", "", UNIT_COUNT, true, true, 0.1, REQUESTS | LOADS, 0},
};

static const struct {
    const char *what;
    const char *column; // of a run
} texts[FLEET_TEXTS] = {
    [FLEET_GOVERNOR] = {"governor ", "cpu_governor"},
    [FLEET_DRIVER] = {"driver ", "driver"},
    [FLEET_CUDA] = {"CUDA ", "cuda"},
    [FLEET_KERNEL] = {"kernel ", "kernel"},
    [FLEET_CPU] = {"processor ", "cpu"},
    [FLEET_VERSION] = {"version ", "worker_version"},
    [FLEET_HUGE_PAGES] = {"huge pages ", "huge_pages"},
    [FLEET_ALLOCATOR] = {"allocator ", "allocator"},
};

void fleet_facts_init(struct fleet_facts *facts)
{
    *facts = (struct fleet_facts){.numbers = {0}};
    for (unsigned i = 0; i < FLEET_NUMBERS; i++)
        facts->numbers[i] = (double)NAN;
}

// ---- Numbers ------------------------------------------------------------------------

// The median of what is known of the others; NaN where nothing is.
static double usual_number(enum fleet_number number, const struct fleet_facts *const *others,
                           size_t count, double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(others[i]->numbers[number]))
            scratch[known++] = others[i]->numbers[number];
    stats_sort(scratch, known);
    return stats_median(scratch, known);
}

static bool differs(enum fleet_number number, double value, double usual, bool is_worse)
{
    const double difference = numbers[number].less_is_worse ? usual - value : value - usual;
    const double least =
        numbers[number].relative ? numbers[number].least * fabs(usual) : numbers[number].least;
    return is_worse ? difference >= least && difference > 0
                    : difference <= -least && difference < 0;
}

// False where one of the two is not known.
static bool is_below_its_best(enum fleet_number number, const struct fleet_facts *host)
{
    const enum fleet_number best = numbers[number].best;
    return best && host->numbers[number] < host->numbers[best];
}

static void append_number(char *reason, enum fleet_number number, const struct fleet_facts *host,
                          double usual)
{
    char value[UNIT_TEXT_SIZE], peers[UNIT_TEXT_SIZE], maximum[UNIT_TEXT_SIZE], line[256];
    char more[THROTTLE_TEXT_SIZE + 8] = "";
    const enum fleet_number best = numbers[number].best;
    const int64_t reasons = isnan(host->numbers[FLEET_THROTTLE_REASONS])
                                ? 0
                                : (int64_t)host->numbers[FLEET_THROTTLE_REASONS];
    if (is_below_its_best(number, host))
        (void)snprintf(more, sizeof more, " of %s%s", numbers[number].mark,
                       unit_format(maximum, numbers[number].unit, host->numbers[best]));
    if (number == FLEET_THROTTLED && throttle_bits(reasons)) {
        char why[THROTTLE_TEXT_SIZE];
        (void)snprintf(more, sizeof more, " by %s", throttle_text(why, reasons));
    }
    (void)snprintf(line, sizeof line, "%s%s%s%s", numbers[number].what, numbers[number].mark,
                   unit_format(value, numbers[number].unit, host->numbers[number]), more);
    if (!isnan(usual))
        (void)text_append(line, sizeof line, "", " (peers %s%s)", numbers[number].mark,
                          unit_format(peers, numbers[number].unit, usual));
    (void)text_append(reason, FLEET_REASON_SIZE, ", ", "%s", line);
}

// ---- Texts ---------------------------------------------------------------------------

// The text of more than half of the others that have one, or NULL.
static const char *usual_text(enum fleet_text text, const struct fleet_facts *const *others,
                              size_t count)
{
    const char *candidate = NULL; // Boyer and Moore's vote
    size_t votes = 0, known = 0, same = 0;
    for (size_t i = 0; i < count; i++) {
        const char *one = others[i]->texts[text];
        if (!one[0])
            continue;
        known++;
        if (votes == 0)
            candidate = one;
        if (strcmp(candidate, one) == 0)
            votes++;
        else
            votes--;
    }
    for (size_t i = 0; candidate && i < count; i++)
        same += strcmp(candidate, others[i]->texts[text]) == 0;
    return 2 * same > known ? candidate : NULL;
}

static void append_text(char *reason, enum fleet_text text, const struct fleet_facts *host,
                        const struct fleet_facts *const *others, size_t count)
{
    const char *usual = usual_text(text, others, count);
    if (!usual || !host->texts[text][0] || strcmp(usual, host->texts[text]) == 0)
        return;
    (void)text_append(reason, FLEET_REASON_SIZE, ", ", "%s%s (peers %s)", texts[text].what,
                      host->texts[text], usual);
}

char *fleet_reason(char *text, enum fleet_subject subject, bool is_worse,
                   const struct fleet_facts *host, const struct fleet_facts *const *others,
                   size_t count)
{
    text[0] = '\0';
    double *scratch = calloc(count ? count : 1, sizeof *scratch);
    if (!scratch)
        return text;
    for (unsigned i = 0; i < FLEET_TOLD; i++) {
        const enum fleet_number number = (enum fleet_number)i;
        if (!(numbers[i].matter >> subject & 1) || isnan(host->numbers[i]))
            continue;
        const double usual = usual_number(number, others, count, scratch);
        if (isnan(usual) ? is_worse && is_below_its_best(number, host)
                         : differs(number, host->numbers[i], usual, is_worse))
            append_number(text, number, host, usual);
    }
    free(scratch);
    for (unsigned i = 0; i < FLEET_TEXTS; i++)
        append_text(text, (enum fleet_text)i, host, others, count);
    return text;
}

// ---- Reading --------------------------------------------------------------------------

// Clocks of an idle device say nothing.
#define BUSY "coalesce(s.gpu_util_ratio, 1) >= 0.05"

#define OR_BIT(bit, text)  " | " #bit
#define MAX_BIT(bit, text) "max(s.throttle_reasons & " #bit ") | "
#define THROTTLED          "s.throttle_reasons & (0" THROTTLE_REASONS(OR_BIT) ")"
#define REASONS            THROTTLE_REASONS(MAX_BIT) "0"

enum source { RUNS, DEVICES, SAMPLES };

// A link under load; idle ones are slower.  The least value counts if it was seen in about a tenth
// of the samples or more: the first ones of a load may still see the slow link.  Without load the
// best value counts.
#define LOADED(column)                                                                             \
    "iif(s." column " > 0 AND coalesce(s.gpu_util_ratio, 1) >= 0.5, s." column ", NULL)"
#define LINK(column)                                                                               \
    "iif(count(" LOADED(                                                                           \
        column) ") = 0, nullif(max(s." column "), 0),"                                             \
                " iif(max(" LOADED(column) ") - avg(" LOADED(column) ") >= 0.1 * (max(" LOADED(    \
                    column) ")"                                                                    \
                            " - min(" LOADED(column) ")), min(" LOADED(column) "), max(" LOADED(   \
                                column) ")))"

// What a row of each source says.  Of a run's devices with one name the lowest values count.
static const struct {
    enum source source;
    enum fleet_number number;
    const char *sql;
} columns[] = {
    {RUNS, FLEET_HOST_MEMORY, "t.host_memory_bytes"},
    {RUNS, FLEET_CPU_COUNT, "t.cpu_count"},
    {DEVICES, FLEET_PCIE_WIDTH, "min(pcie_width)"},
    {DEVICES, FLEET_PCIE_GENERATION, "min(pcie_generation)"},
    {DEVICES, FLEET_PCIE_WIDTH_MAX, "min(pcie_width_max)"},
    {DEVICES, FLEET_PCIE_GENERATION_MAX, "min(pcie_generation_max)"},
    {DEVICES, FLEET_H2D, "min(h2d_bytes_per_second)"},
    {DEVICES, FLEET_BANDWIDTH, "min(memory_bandwidth_bytes_per_second)"},
    {SAMPLES, FLEET_PCIE_WIDTH, LINK("pcie_width")},
    {SAMPLES, FLEET_PCIE_GENERATION, LINK("pcie_generation")},
    {SAMPLES, FLEET_TEMPERATURE, "avg(s.temperature_celsius)"},
    {SAMPLES, FLEET_DEVICE_MEMORY, "avg(s.memory_used_bytes)"},
    {SAMPLES, FLEET_SM_CLOCK, "avg(s.sm_clock_hz) FILTER (WHERE " BUSY ")"},
    {SAMPLES, FLEET_MEMORY_CLOCK, "avg(s.memory_clock_hz) FILTER (WHERE " BUSY ")"},
    {SAMPLES, FLEET_THROTTLED, "avg((" THROTTLED ") <> 0)"},
    {SAMPLES, FLEET_THROTTLE_REASONS, REASONS},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

struct reading {
    struct store *store;
    const struct query_filter *filter;
    struct groups *places;
    enum source source;
};

enum { COLUMN_HOST, COLUMN_DEVICE, FIRST_COLUMN };

static void set_facts(struct fleet_facts *facts, enum source source, sqlite3_stmt *row)
{
    int place = FIRST_COLUMN;
    for (unsigned i = 0; i < COLUMNS; i++) {
        if (columns[i].source != source)
            continue;
        if (sqlite3_column_type(row, place) != SQLITE_NULL)
            facts->numbers[columns[i].number] = sqlite3_column_double(row, place);
        place++;
    }
    for (unsigned i = 0; source == RUNS && i < FLEET_TEXTS; i++)
        reader_copy_text(facts->texts[i], FLEET_TEXT_SIZE, row, place + (int)i);
}

// A run's facts are those of all devices of its host.
static enum status on_facts(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct reading *reading = context;
    const int64_t keys[] = {sqlite3_column_int64(row, COLUMN_HOST),
                            sqlite3_column_int64(row, COLUMN_DEVICE)};
    (void)err;
    struct group *own = reading->source == RUNS ? NULL : groups_get(reading->places, keys);
    if (own)
        set_facts(own->data, reading->source, row);
    for (size_t i = 0; reading->source == RUNS && i < groups_count(reading->places); i++) {
        const struct group *place = groups_at(reading->places, i);
        if (place->keys[0] == keys[0])
            set_facts(place->data, RUNS, row);
    }
    return STATUS_OK;
}

static sqlite3_str *begin_select(struct reading *reading, enum source source, const char *keys)
{
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    reading->source = source;
    if (source == SAMPLES) {
        sqlite3_str_appendall(sql, "WITH ");
        device_names_append(sql);
        sqlite3_str_appendall(sql, " ");
    }
    sqlite3_str_appendf(sql, "SELECT %s", keys);
    for (unsigned i = 0; i < COLUMNS; i++)
        if (columns[i].source == source)
            sqlite3_str_appendf(sql, ", %s", columns[i].sql);
    for (unsigned i = 0; source == RUNS && i < FLEET_TEXTS; i++)
        sqlite3_str_appendf(sql, ", t.%s", texts[i].column);
    return sql;
}

// Of each host the newest run that the window covers and that loaded or answered.
static enum status read_runs(struct reading *reading, struct error *err)
{
    sqlite3_str *sql = begin_select(reading, RUNS, "t.host, 0");
    sqlite3_str_appendf(sql,
                        " FROM run t WHERE t.run IN (SELECT max(t.run) FROM (SELECT * FROM run"
                        " ORDER BY run DESC LIMIT %d) t",
                        FLEET_RUNS_MAX);
    filter_where(sql, RECORD_KIND_RUN, reading->filter);
    sqlite3_str_appendf(sql,
                        " AND coalesce((SELECT max(g.kind IN (%d, %d) AND g.stored > 0)"
                        " FROM ledger g WHERE g.run = t.run), 1) GROUP BY t.host)",
                        RECORD_KIND_LOAD, RECORD_KIND_INFERENCE);
    return reader_scan(reading->store, sql, reading->filter, on_facts, reading, err);
}

static enum status read_devices(struct reading *reading, struct error *err)
{
    sqlite3_str *sql = begin_select(reading, DEVICES, "host, name");
    sqlite3_str_appendf(sql,
                        " FROM (SELECT t.host, d.*, d.run ="
                        " first_value(d.run) OVER (PARTITION BY t.host, d.name ORDER BY d.id DESC)"
                        " AS is_newest FROM (SELECT * FROM device ORDER BY id DESC LIMIT %d) d"
                        " JOIN run t ON t.run = d.run",
                        FLEET_RUNS_MAX);
    filter_where(sql, RECORD_KIND_RUN, reading->filter);
    sqlite3_str_appendall(sql, ") WHERE is_newest GROUP BY host, name");
    return reader_scan(reading->store, sql, reading->filter, on_facts, reading, err);
}

// Appends the samples between two times in slices of the same length, of each the first ones.
static void append_slices(sqlite3_str *sql, int64_t first_ns, int64_t last_ns)
{
    const int64_t step = last_ns / FLEET_SLICES - first_ns / FLEET_SLICES + 1;
    int64_t since_ns = first_ns, until_ns = first_ns;
    for (unsigned i = 1; i <= FLEET_SLICES && until_ns < last_ns; i++) {
        until_ns = saturate_add(since_ns, step);
        if (i == FLEET_SLICES || until_ns > last_ns)
            until_ns = last_ns;
        sqlite3_str_appendf(sql,
                            "%sSELECT * FROM (SELECT * FROM device_sample WHERE started_ns >= %lld"
                            " AND started_ns < %lld ORDER BY started_ns LIMIT %d)",
                            i > 1 ? " UNION ALL " : "", (long long)since_ns, (long long)until_ns,
                            FLEET_SLICE_SAMPLES);
        since_ns = until_ns;
    }
}

// Each sample counts for the device that it is of, by the name that requests have for it: another
// run may have sampled it, by another name.  It does not count for a name that means other devices.
static enum status read_slices(struct reading *reading, int64_t first_ns, int64_t last_ns,
                               struct error *err)
{
    static const char keys[] = "r.host, coalesce(m.used, s.device)";
    sqlite3_str *sql = begin_select(reading, SAMPLES, keys);
    sqlite3_str_appendall(sql, " FROM (");
    append_slices(sql, first_ns, last_ns);
    sqlite3_str_appendall(sql, ") s CROSS JOIN run r ON r.run = s.run"
                               " LEFT JOIN same_device m ON m.run = s.run AND m.sampled = s.device"
                               " WHERE m.used OR (r.host, s.device) NOT IN"
                               " (SELECT host, name FROM used) GROUP BY 1, 2");
    return reader_scan(reading->store, sql, NULL, on_facts, reading, err);
}

static enum status read_samples(struct reading *reading, struct error *err)
{
    int64_t first_ns = 0, last_ns = 0; // before which the last one is
    sqlite3 *db = reading->store->db;
    enum status status =
        database_integer(db, "SELECT min(started_ns) FROM device_sample", &first_ns, err);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT max(started_ns) FROM device_sample", &last_ns, err);
    last_ns = saturate_add(last_ns, 1);
    if (reading->filter->since_ns && reading->filter->since_ns > first_ns)
        first_ns = reading->filter->since_ns;
    if (reading->filter->until_ns && reading->filter->until_ns < last_ns)
        last_ns = reading->filter->until_ns;
    if (status != STATUS_OK || first_ns >= last_ns)
        return status;
    return read_slices(reading, first_ns, last_ns, err);
}

enum status fleet_read(struct groups *places, struct store *store,
                       const struct query_filter *filter, struct error *err)
{
    struct reading reading = {.store = store, .filter = filter, .places = places};
    for (size_t i = 0; i < groups_count(places); i++)
        fleet_facts_init(groups_at(places, i)->data);
    enum status status = read_runs(&reading, err);
    if (status == STATUS_OK)
        status = read_devices(&reading, err);
    if (status == STATUS_OK)
        status = read_samples(&reading, err);
    return status;
}
