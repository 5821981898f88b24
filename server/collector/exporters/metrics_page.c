#include "server/collector/exporters/metrics_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

// A sample whose period ended earlier is no longer shown, so that graphs of a device that is gone
// end, as those of a target that is gone do in Prometheus.
#define STALE_NS INT64_C(300000000000)

enum { NAME_SIZE = 96, LABELS_MAX = METRICS_LABELS_MAX + 1, COLUMNS_MAX = 16 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

struct writing {
    struct metrics_text *text;
    const struct metrics_page *page;
    uint64_t left; // lines
    size_t cut;    // rows that were left out
};

// ---- Sections -----------------------------------------------------------------------------------

// A column of numbers, and the family that its values become.
struct column {
    const char *column; // NULL: each row has the value 1
    const char *name;   // of the family, but for "inferstat_"
    enum metrics_type type;
    const char *help;
};

// A table of which each row becomes a sample of several families.
struct section {
    unsigned table;
    bool fresh_only;                    // only rows that were sampled lately
    const char *labels[LABELS_MAX];     // columns; ends with NULL
    struct column columns[COLUMNS_MAX]; // ends with a name of NULL
    enum record_kind samples;           // further columns: all of this kind; of a run: none
    const char *prefix;                 // of their names
};

#define COUNTED " since the collector's start"

static const struct section sections[] = {
    {METRICS_PAGE_PING,
     .columns = {{"runs_open", "collector_open_runs", METRICS_GAUGE, "processes that report now"},
                 {"store_bytes", "collector_store_bytes", METRICS_GAUGE,
                  "the store's file and its write-ahead log"},
                 {"log_bytes", "collector_log_bytes", METRICS_GAUGE, "the store's write-ahead log"},
                 {"disk_free_bytes", "collector_disk_free_bytes", METRICS_GAUGE,
                  "free space beside the store"},
                 {"queue_messages", "collector_queue_messages", METRICS_GAUGE,
                  "messages waiting for the writer"},
                 {"queue_bytes", "collector_queue_bytes", METRICS_GAUGE, "their size"},
                 {"unsent_bytes", "collector_unsent_bytes", METRICS_GAUGE,
                  "answers that peers have not taken"},
                 {"commits", "collector_commits", METRICS_COUNTER, "commits" COUNTED},
                 {"commit_p50_ns", "collector_commit_p50_seconds", METRICS_GAUGE,
                  "median of the last 1024 commits"},
                 {"commit_p99_ns", "collector_commit_p99_seconds", METRICS_GAUGE,
                  "99th percentile of the last 1024 commits"}}},
    {METRICS_PAGE_ALERTS, .labels = {"rule", "severity", "state", "host", "model", "device"},
     .columns = {{NULL, "alert", METRICS_GAUGE,
                  "1 for each alert that is pending, firing or without data"}}},
    {INVENTORY_REQUESTS, .labels = {"host", "model"},
     .columns = {{"running_requests", "running_requests", METRICS_GAUGE,
                  "requests in progress, as the open processes sampled them last"},
                 {"waiting_requests", "waiting_requests", METRICS_GAUGE,
                  "of the running requests, those not yet computed on"}}},
    {INVENTORY_HOSTS,
     .labels = {"host", "os", "kernel", "cpu", "cpu_count", "container", "driver", "version"},
     .columns = {{NULL, "host", METRICS_INFO, "a host of the last 24 hours, by its newest run"}}},
    {INVENTORY_HOSTS, .labels = {"host"},
     .columns = {{"runs_open", "host_open_runs", METRICS_GAUGE,
                  "processes that report from the host now"},
                 {"clock_offset_ns", "host_clock_offset_seconds", METRICS_GAUGE,
                  "the host's clock less the collector's, estimated"}}},
    {METRICS_PAGE_HOST_SAMPLES, .fresh_only = true, .labels = {"host"},
     .samples = RECORD_KIND_HOST_SAMPLE, .prefix = "host_"},
    {INVENTORY_MODELS, .labels = {"model", "format", "architecture", "quantisation"},
     .columns = {{NULL, "model", METRICS_INFO, "a model loaded by runs of the last 24 hours"}}},
    {INVENTORY_RECORDS, .labels = {"host", "reason"},
     .columns =
         {{"stored", "stored_records", METRICS_COUNTER,
           "records of the host that were stored" COUNTED "; imported ones are not counted"},
          {"lost", "lost_records", METRICS_COUNTER,
           "records of the host that were produced but never stored, reported" COUNTED},
          {"coverage", "coverage_ratio", METRICS_GAUGE,
           "stored / (stored + lost) of all records of the host's runs that the store has"}}},
    {METRICS_PAGE_DEVICES, .labels = {"host", "device", "uuid", "parent_uuid", "driver"},
     .columns = {{NULL, "device", METRICS_INFO, "a device of the last 24 hours"}}},
    {METRICS_PAGE_DEVICES, .labels = {"host", "device"},
     .columns = {{"slowdown_celsius", "device_slowdown_celsius", METRICS_GAUGE,
                  "temperature at which it slows down"},
                 {"pcie_width_max", "device_pcie_width_max", METRICS_GAUGE, "PCIe lanes at best"}}},
    {METRICS_PAGE_DEVICES, .fresh_only = true, .labels = {"host", "device"},
     .columns = {{"throttled_ratio", "device_throttled", METRICS_GAUGE,
                  "1 if clocks are held back, else 0"}},
     .samples = RECORD_KIND_DEVICE_SAMPLE, .prefix = "device_"},
};

// Columns of samples that have another name or type than gauge; without a name they are not
// written: what a period used or lost is no gauge.
static const struct {
    const char *column, *name;
    enum metrics_type type;
} special[] = {
    {"duration_ns", NULL, METRICS_GAUGE},
    {"energy_used_joules", NULL, METRICS_GAUGE},
    {"network_errors", NULL, METRICS_GAUGE},
    {"energy_joules", "energy_joules", METRICS_COUNTER},
    {"ecc_corrected", "ecc_corrected_errors", METRICS_COUNTER},
    {"ecc_uncorrected", "ecc_uncorrected_errors", METRICS_COUNTER},
    {"process_count", "processes", METRICS_GAUGE},
    {"load_1m", "load_average", METRICS_GAUGE},
};

// The rows of a section that are written, and the places of columns of its table.
struct rows {
    const struct section *section;
    const struct result *table; // NULL: not read yet
    size_t count;               // of the first that are fresh
    int labels[LABELS_MAX], sampled_ns, as_of_ns;
};

// True if the row may be written: if it was sampled lately.
static bool is_fresh(const struct rows *rows, size_t row)
{
    const struct value sampled_ns = result_cell(rows->table, row, (unsigned)rows->sampled_ns);
    const struct value as_of_ns = result_cell(rows->table, row, (unsigned)rows->as_of_ns);
    return !rows->section->fresh_only ||
           (sampled_ns.type == VALUE_INT && sampled_ns.i >= as_of_ns.i - STALE_NS);
}

// The most lines that a row becomes.
static uint64_t lines_of(const struct rows *rows, size_t row)
{
    const struct section *section = rows->section;
    uint64_t lines = section->prefix ? record_kind_info(section->samples)->column_count : 0;
    for (const struct column *of = section->columns; of->name; of++)
        lines += !of->column || result_get(rows->table, row, of->column).type != VALUE_NULL;
    return lines;
}

// Selects the rows for which there are lines left; counts the others as cut.
static struct rows select_rows(struct writing *writing, const struct section *section)
{
    struct rows rows = {.section = section, .table = writing->page->tables[section->table]};
    uint64_t lines = 0;
    if (!rows.table)
        return rows;
    rows.sampled_ns = result_find(rows.table, "sampled_ns");
    rows.as_of_ns = result_find(rows.table, "as_of_ns");
    for (unsigned i = 0; section->labels[i]; i++)
        rows.labels[i] = result_find(rows.table, section->labels[i]);
    for (size_t i = 0; i < result_row_count(rows.table); i++) {
        if (!is_fresh(&rows, i))
            continue;
        lines += lines_of(&rows, i);
        rows.count += lines <= writing->left;
        writing->cut += lines > writing->left;
    }
    return rows;
}

// Takes the samples that were written, of which there were `before` before, from the lines left.
static void count_lines(struct writing *writing, uint64_t before)
{
    const uint64_t written = writing->text->samples - before;
    writing->left -= written < writing->left ? written : writing->left;
}

// Sets the labels of a row; `number` holds the text of one that is a number.
static void set_labels(struct metrics_labels *labels, char number[TEXT_NUMBER_SIZE],
                       const struct rows *rows, size_t row)
{
    for (labels->count = 0; rows->section->labels[labels->count]; labels->count++) {
        const unsigned i = labels->count;
        const struct value value = result_cell(rows->table, row, (unsigned)rows->labels[i]);
        labels->of[i].name = rows->section->labels[i];
        labels->of[i].value = value.type == VALUE_TEXT ? value.text.bytes : "";
        if (value.type == VALUE_INT) {
            (void)snprintf(number, TEXT_NUMBER_SIZE, "%" PRId64, value.i);
            labels->of[i].value = number;
        }
    }
}

static void write_column(struct writing *writing, const struct rows *rows, const char *prefix,
                         const struct column *column)
{
    struct metrics_labels labels;
    char name[NAME_SIZE], number[TEXT_NUMBER_SIZE];
    if (rows->count == 0)
        return;
    const int place = column->column ? result_find(rows->table, column->column) : -1;
    const size_t size = column->column ? strlen(column->column) : 0;
    const double scale = size > 3 && strcmp(column->column + size - 3, "_ns") == 0 ? 1e-9 : 1;
    (void)snprintf(name, sizeof name, "inferstat_%s%s", prefix, column->name);
    metrics_text_family(writing->text, name, column->type, column->help);
    for (size_t row = 0, left = rows->count; left > 0; row++) {
        if (!is_fresh(rows, row))
            continue;
        left--;
        const struct value cell = result_cell(rows->table, row, (unsigned)place);
        const double value = column->column ? value_number(cell, (double)NAN) * scale : 1;
        set_labels(&labels, number, rows, row);
        metrics_text_sample(writing->text, &labels, value);
    }
}

static void write_samples(struct writing *writing, const struct rows *rows)
{
    const struct record_kind_info *info = record_kind_info(rows->section->samples);
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *of = &info->columns[i];
        struct column column = {of->name, of->name, METRICS_GAUGE, of->meaning};
        for (size_t s = 0; s < COUNT_OF(special); s++) {
            if (strcmp(special[s].column, of->name) != 0)
                continue;
            column.name = special[s].name;
            column.type = special[s].type;
        }
        if (of->type != COLUMN_NAME && column.name)
            write_column(writing, rows, rows->section->prefix, &column);
    }
}

static void write_section(struct writing *writing, const struct section *section)
{
    const uint64_t before = writing->text->samples;
    const struct rows rows = select_rows(writing, section);
    for (const struct column *column = section->columns; column->name; column++)
        write_column(writing, &rows, "", column);
    if (section->prefix)
        write_samples(writing, &rows);
    count_lines(writing, before);
}

// ---- Totals -------------------------------------------------------------------------------------

// What counters and histograms of requests and loads count.
#define TOTALS                                                                                     \
    "; counted" COUNTED ", when their records are stored (late ones too, imported ones not)"
#define RESOLVES(low, high) "; times below " low " and above " high " are not told apart" TOTALS

struct family {
    const char *name, *help;
};

static const struct family counters[TOTALS_COUNTER_COUNT] = {
    [TOTALS_REQUESTS] = {"inferstat_requests", "requests that ended" TOTALS},
    [TOTALS_FAILED] = {"inferstat_request_errors", "requests that failed" TOTALS},
    [TOTALS_CANCELLED] = {"inferstat_request_cancellations", "requests that were cancelled" TOTALS},
    [TOTALS_PROMPT_TOKENS] = {"inferstat_prompt_tokens", "tokens of prompts" TOTALS},
    [TOTALS_OUTPUT_TOKENS] = {"inferstat_output_tokens", "tokens put out" TOTALS},
    [TOTALS_ITEMS] = {"inferstat_items",
                      "items (images, windows of sound) of models that make no tokens" TOTALS},
    [TOTALS_LOADS] = {"inferstat_loads", "loads of models" TOTALS},
    [TOTALS_LOADS_FAILED] = {"inferstat_load_errors", "loads that failed" TOTALS},
};

static const struct family histograms[TOTALS_HISTOGRAM_COUNT] = {
    [TOTALS_E2E] = {"inferstat_request_duration_seconds",
                    "from a request's arrival to its last token or result" RESOLVES("0.001",
                                                                                    "81.92")},
    [TOTALS_TTFT] = {"inferstat_request_time_to_first_token_seconds",
                     "from a request's arrival to its first token" RESOLVES("0.001", "10")},
    [TOTALS_TPOT] = {"inferstat_request_time_per_output_token_seconds",
                     "a request's mean time of a token after the first" RESOLVES("0.001", "2.5")},
    [TOTALS_LOAD] = {"inferstat_load_duration_seconds",
                     "whole load of a model, also one that failed" RESOLVES("0.1", "300")},
};

static struct metrics_labels labels_of(const struct totals_series *series)
{
    return (struct metrics_labels){
        3, {{"host", series->host}, {"model", series->model}, {"device", series->device}}};
}

static void write_totals(struct writing *writing)
{
    static const struct totals_bins zero;
    const struct totals *totals = writing->page->totals;
    struct metrics_text *text = writing->text;
    const uint64_t before = text->samples;
    for (unsigned c = 0; c < TOTALS_COUNTER_COUNT; c++) {
        metrics_text_family(text, counters[c].name, METRICS_COUNTER, counters[c].help);
        for (size_t i = 0; i < totals_count(totals); i++) {
            const struct totals_series *series = totals_at(totals, i);
            const struct metrics_labels labels = labels_of(series);
            metrics_text_sample(text, &labels, series->is_shown ? (double)series->counters[c] : 0);
        }
    }
    for (unsigned h = 0; h < TOTALS_HISTOGRAM_COUNT; h++) {
        metrics_text_family(text, histograms[h].name, METRICS_HISTOGRAM, histograms[h].help);
        for (size_t i = 0; i < totals_count(totals); i++) {
            const struct totals_series *series = totals_at(totals, i);
            const struct totals_bins *bins = series->bins[h].is_shown ? &series->bins[h] : &zero;
            const struct metrics_labels labels = labels_of(series);
            if (series->bins[h].count > 0)
                metrics_text_histogram(text, &labels, totals_edges[h].seconds,
                                       totals_edges[h].count, bins->counts, bins->sum_seconds);
        }
    }
    count_lines(writing, before);
}

// ---- The collector itself -----------------------------------------------------------------------

static void write_own(struct writing *writing)
{
    const struct metrics_page *page = writing->page;
    const struct {
        const char *name;
        enum metrics_type type;
        const char *help;
        double value;
    } values[] = {
        {"process_start_time_seconds", METRICS_GAUGE,
         "when the collector started, since the epoch: counters begin at zero then",
         page->started_seconds},
        {"process_cpu_seconds", METRICS_COUNTER, "the collector's processor time",
         page->cpu_seconds},
        {"process_resident_memory_bytes", METRICS_GAUGE, "the collector's resident memory",
         page->memory_bytes},
        {"inferstat_collector_up", METRICS_GAUGE, "1 if the last commit succeeded, else 0",
         page->can_write},
        {"inferstat_collector_scrapes", METRICS_COUNTER, "pages of metrics written",
         (double)page->scrapes},
        {"inferstat_collector_scrape_cpu_seconds", METRICS_COUNTER,
         "processor time of the scrapes before this one", page->scrape_cpu_seconds},
        {"inferstat_collector_refreshed_timestamp_seconds", METRICS_GAUGE,
         "when hosts, models, devices, alerts and losses were all read last",
         page->refreshed_seconds},
        {"inferstat_collector_refresh_seconds", METRICS_GAUGE, "how long that took",
         page->refresh_seconds},
        {"inferstat_collector_series_limit", METRICS_GAUGE, "option --metrics-series",
         (double)page->series_max},
        {"inferstat_collector_folded_series", METRICS_GAUGE,
         "models on devices beyond the limit (--metrics-series): their requests are counted"
         " together in host=\"other\"",
         (double)totals_folded(page->totals)},
        {"inferstat_collector_cut_rows", METRICS_GAUGE,
         "hosts, models, devices, alerts and losses that the limit left out", (double)writing->cut},
    };
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        metrics_text_family(writing->text, values[i].name, values[i].type, values[i].help);
        metrics_text_sample(writing->text, NULL, values[i].value);
    }
}

static void write_labelled(struct writing *writing, const char *name, const char *value, double of)
{
    const struct metrics_labels labels = {1, {{name, value}}};
    metrics_text_sample(writing->text, &labels, of);
}

static void write_ingest(struct writing *writing)
{
    metrics_text_family(writing->text, "inferstat_build", METRICS_INFO, "the collector's version");
    write_labelled(writing, "version", INFERSTAT_VERSION, 1);
    metrics_text_family(writing->text, "inferstat_collector_records", METRICS_COUNTER,
                        "records received and stored" COUNTED ", by kind");
    for (unsigned i = RECORD_KIND_RUN + 1; i < RECORD_KIND_COUNT; i++)
        write_labelled(writing, "kind", record_kind_info((enum record_kind)i)->name,
                       (double)writing->page->stored[i]);
    metrics_text_family(writing->text, "inferstat_collector_rejected", METRICS_COUNTER,
                        "messages, connections and names that were rejected" COUNTED ", by reason");
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        write_labelled(writing, "reason", refusal_key((enum refusal)i),
                       (double)writing->page->rejected[i]);
}

void metrics_page_write(struct metrics_text *text, const struct metrics_page *page)
{
    struct writing writing = {.text = text, .page = page, .left = page->series_max};
    write_ingest(&writing);
    write_totals(&writing);
    for (size_t i = 0; i < COUNT_OF(sections); i++)
        write_section(&writing, &sections[i]);
    write_own(&writing); // behind what it counts
}
