#include "server/collector/exporters/metrics_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"

// A sample whose period ended earlier is no longer shown, so that graphs of a device that is gone
// end, as those of a target that is gone do in Prometheus.
#define STALE_NS INT64_C(300000000000)

enum { NAME_SIZE = 96 };

enum part {
    PART_SERIES,
    PART_HOSTS,
    PART_MODELS,
    PART_REQUESTS,
    PART_RECORDS,
    PART_DEVICES,
    PART_ALERTS,
    PARTS
};

struct writing {
    struct metrics_text *text;
    const struct metrics_page *page;
    uint64_t left;     // lines
    size_t cut[PARTS]; // rows that were left out
    bool has_failed;   // out of memory
};

// ---- Rows of a table ----------------------------------------------------------------------------

// A label and the column that it is taken from.
struct label {
    const char *name, *column;
};

// The rows of a table that are written, each with the text of its labels.
struct rows {
    const struct result *table;
    size_t count;
    size_t *places; // in the table
    struct metrics_labels *labels;
};

static void add_label(struct metrics_labels *labels, const char *name, struct value value)
{
    char number[TEXT_NUMBER_SIZE];
    if (value.type == VALUE_TEXT) {
        metrics_labels_add(labels, name, value.text.bytes);
    } else if (value.type == VALUE_INT) {
        (void)snprintf(number, sizeof number, "%" PRId64, value.i);
        metrics_labels_add(labels, name, number);
    } else if (value.type == VALUE_REAL) {
        metrics_labels_add(labels, name, text_from_real(number, value.r));
    }
}

static void rows_deinit(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        metrics_labels_deinit(&rows->labels[i]);
    free(rows->places);
    free(rows->labels);
}

static bool is_fresh(const struct result *table, size_t row)
{
    const int64_t as_of_ns = result_integer(table, row, "as_of_ns", 0);
    return result_integer(table, row, "sampled_ns", INT64_MIN / 2) >= as_of_ns - STALE_NS;
}

// Selects the rows of a table, each of which will take at most `lines` lines: those that were
// sampled lately, if `fresh_only`, as far as lines are left; counts the others as cut.
static void rows_init(struct rows *rows, struct writing *writing, const struct result *table,
                      enum part part, const struct label *labels, size_t label_count,
                      unsigned lines, bool fresh_only)
{
    const size_t count = table ? result_row_count(table) : 0;
    *rows = (struct rows){.table = table,
                          .places = calloc(count + 1, sizeof *rows->places),
                          .labels = calloc(count + 1, sizeof *rows->labels)};
    writing->has_failed = writing->has_failed || !rows->places || !rows->labels;
    for (size_t i = 0; i < count && !writing->has_failed; i++) {
        if (fresh_only && !is_fresh(table, i))
            continue;
        if (writing->left < lines) {
            writing->cut[part]++;
            continue;
        }
        writing->left -= lines;
        struct metrics_labels *of_row = &rows->labels[rows->count];
        for (size_t l = 0; l < label_count; l++)
            add_label(of_row, labels[l].name, result_get(table, i, labels[l].column));
        writing->has_failed = writing->has_failed || of_row->text.has_failed;
        rows->places[rows->count++] = i;
    }
}

// A column of numbers, and the family that its values become.
struct column {
    const char *column, *name;
    enum metrics_type type;
    double scale;
    const char *help;
};

static void write_column(struct writing *writing, const struct rows *rows,
                         const struct column *column)
{
    metrics_text_family(writing->text, column->name, column->type, column->help);
    for (size_t i = 0; i < rows->count; i++)
        metrics_text_real(writing->text, metrics_labels_text(&rows->labels[i]),
                          result_number(rows->table, rows->places[i], column->column, (double)NAN) *
                              column->scale);
}

static void write_columns(struct writing *writing, const struct rows *rows,
                          const struct column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        write_column(writing, rows, &columns[i]);
}

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// Writes the rows of a table as an info family with all labels, and the columns as families with
// the first `key_count` labels.
static void write_facts(struct writing *writing, const struct result *table, enum part part,
                        const char *name, const char *help, const struct label *labels,
                        size_t label_count, size_t key_count, const struct column *columns,
                        size_t count)
{
    struct rows rows;
    rows_init(&rows, writing, table, part, labels, label_count, 1, false);
    metrics_text_family(writing->text, name, METRICS_INFO, help);
    for (size_t i = 0; i < rows.count; i++)
        metrics_text_count(writing->text, metrics_labels_text(&rows.labels[i]), 1);
    rows_deinit(&rows);
    rows_init(&rows, writing, table, part, labels, key_count, (unsigned)count, false);
    write_columns(writing, &rows, columns, count);
    rows_deinit(&rows);
}

// ---- Samples of devices and hosts ---------------------------------------------------------------

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

// Writes the columns of a kind of samples.
static void write_samples(struct writing *writing, const struct rows *rows, enum record_kind kind,
                          const char *prefix)
{
    const struct record_kind_info *info = record_kind_info(kind);
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *of = &info->columns[i];
        char name[NAME_SIZE];
        struct column column = {of->name, of->name, METRICS_GAUGE, 1, of->meaning};
        for (size_t s = 0; s < COUNT_OF(special); s++) {
            if (strcmp(special[s].column, of->name) != 0)
                continue;
            column.name = special[s].name;
            column.type = special[s].type;
        }
        if (of->type == COLUMN_NAME || !column.name)
            continue;
        (void)snprintf(name, sizeof name, "%s%s", prefix, column.name);
        column.name = name;
        write_column(writing, rows, &column);
    }
}

static void write_devices(struct writing *writing)
{
    static const struct label labels[] = {{"host", "host"},
                                          {"device", "device"},
                                          {"uuid", "uuid"},
                                          {"parent_uuid", "parent_uuid"},
                                          {"driver", "driver"}};
    enum { KEYS = 2 };
    static const struct column facts[] = {
        {"power_cap_watts", "inferstat_device_power_cap_watts", METRICS_GAUGE, 1,
         "most power it may draw"},
        {"slowdown_celsius", "inferstat_device_slowdown_celsius", METRICS_GAUGE, 1,
         "temperature at which it slows down"},
        {"sm_clock_max_hz", "inferstat_device_sm_clock_max_hz", METRICS_GAUGE, 1,
         "highest clock the multiprocessors may have"},
        {"pcie_generation_max", "inferstat_device_pcie_generation_max", METRICS_GAUGE, 1,
         "PCIe generation at best"},
        {"pcie_width_max", "inferstat_device_pcie_width_max", METRICS_GAUGE, 1,
         "PCIe lanes at best"},
    };
    static const struct column sampled[] = {
        {"sampled_ns", "inferstat_device_sampled_timestamp_seconds", METRICS_GAUGE, 1e-9,
         "when the newest sample ended, by the host's clock"},
        {"throttled_ratio", "inferstat_device_throttled", METRICS_GAUGE, 1,
         "1 if clocks are held back, else 0"},
    };
    const struct result *table = writing->page->tables[METRICS_PAGE_DEVICES];
    struct rows rows;
    write_facts(writing, table, PART_DEVICES, "inferstat_device", "a device of the last 24 hours",
                labels, COUNT_OF(labels), KEYS, facts, COUNT_OF(facts));
    rows_init(&rows, writing, table, PART_DEVICES, labels, KEYS,
              DEVICE_SAMPLE_COLUMNS + COUNT_OF(sampled), true);
    write_columns(writing, &rows, sampled, COUNT_OF(sampled));
    write_samples(writing, &rows, RECORD_KIND_DEVICE_SAMPLE, "inferstat_device_");
    rows_deinit(&rows);
}

// ---- Hosts, models, alerts, records -------------------------------------------------------------

static void write_hosts(struct writing *writing)
{
    static const struct label labels[] = {
        {"host", "host"},     {"os", "os"},           {"kernel", "kernel"},
        {"cpu", "cpu"},       {"cpus", "cpu_count"},  {"container", "container"},
        {"driver", "driver"}, {"version", "version"},
    };
    static const struct column facts[] = {
        {"runs_open", "inferstat_host_open_runs", METRICS_GAUGE, 1,
         "processes that report from the host now"},
        {"clock_offset_ns", "inferstat_host_clock_offset_seconds", METRICS_GAUGE, 1e-9,
         "the host's clock less the collector's, estimated"},
    };
    static const struct column sampled = {"sampled_ns", "inferstat_host_sampled_timestamp_seconds",
                                          METRICS_GAUGE, 1e-9,
                                          "when the newest sample ended, by the host's clock"};
    struct rows rows;
    write_facts(writing, writing->page->tables[INVENTORY_HOSTS], PART_HOSTS, "inferstat_host",
                "a host of the last 24 hours, by its newest run", labels, COUNT_OF(labels), 1,
                facts, COUNT_OF(facts));
    rows_init(&rows, writing, writing->page->tables[METRICS_PAGE_HOST_SAMPLES], PART_HOSTS, labels,
              1, HOST_SAMPLE_COLUMNS + 1, true);
    write_column(writing, &rows, &sampled);
    write_samples(writing, &rows, RECORD_KIND_HOST_SAMPLE, "inferstat_host_");
    rows_deinit(&rows);
}

static void write_models(struct writing *writing)
{
    static const struct label labels[] = {
        {"model", "model"},
        {"format", "format"},
        {"architecture", "architecture"},
        {"quantisation", "quantisation"},
    };
    static const struct column facts[] = {
        {"parameters", "inferstat_model_parameters", METRICS_GAUGE, 1, "number of weights"},
        {"file_bytes", "inferstat_model_file_bytes", METRICS_GAUGE, 1, "size of the model's file"},
    };
    write_facts(writing, writing->page->tables[INVENTORY_MODELS], PART_MODELS, "inferstat_model",
                "a model loaded by runs of the last 24 hours", labels, COUNT_OF(labels), 1, facts,
                COUNT_OF(facts));
}

static void write_alerts(struct writing *writing)
{
    static const struct label labels[] = {
        {"rule", "rule"}, {"severity", "severity"}, {"state", "state"},
        {"host", "host"}, {"model", "model"},       {"device", "device"},
    };
    struct rows rows;
    rows_init(&rows, writing, writing->page->tables[METRICS_PAGE_ALERTS], PART_ALERTS, labels,
              COUNT_OF(labels), 1, false);
    metrics_text_family(writing->text, "inferstat_alert", METRICS_GAUGE,
                        "1 for each alert that is pending, firing or without data");
    for (size_t i = 0; i < rows.count; i++)
        metrics_text_count(writing->text, metrics_labels_text(&rows.labels[i]), 1);
    rows_deinit(&rows);
}

static void write_running(struct writing *writing)
{
    static const struct label keys[] = {{"host", "host"}, {"model", "model"}};
    static const struct column columns[] = {
        {"running_requests", "inferstat_running_requests", METRICS_GAUGE, 1,
         "requests in progress, as the open processes sampled them last"},
        {"waiting_requests", "inferstat_waiting_requests", METRICS_GAUGE, 1,
         "of the running requests, those not yet computed on"},
    };
    struct rows rows;
    rows_init(&rows, writing, writing->page->tables[INVENTORY_REQUESTS], PART_REQUESTS, keys,
              COUNT_OF(keys), COUNT_OF(columns), false);
    write_columns(writing, &rows, columns, COUNT_OF(columns));
    rows_deinit(&rows);
}

static void write_records(struct writing *writing)
{
    static const struct label keys[] = {{"host", "host"}, {"reason", "reason"}};
    struct metrics_text *text = writing->text;
    struct rows rows;
    rows_init(&rows, writing, writing->page->tables[INVENTORY_RECORDS], PART_RECORDS, keys,
              COUNT_OF(keys), 2, false);
    enum { STORED, LOST, COVERAGE, FAMILIES };
    for (unsigned family = STORED; family < FAMILIES; family++) {
        if (family == STORED)
            metrics_text_family(text, "inferstat_stored_records", METRICS_COUNTER,
                                "records of the host that were stored");
        else if (family == LOST)
            metrics_text_family(text, "inferstat_lost_records", METRICS_COUNTER,
                                "records of the host that were produced but never stored");
        else
            metrics_text_family(text, "inferstat_coverage_ratio", METRICS_GAUGE,
                                "stored / (stored + lost) of all records of the host");
        for (size_t i = 0; i < rows.count; i++) {
            const char *labels = metrics_labels_text(&rows.labels[i]);
            const double count = result_number(rows.table, rows.places[i], "count", 0);
            const double lost = result_number(rows.table, rows.places[i], "lost", -1);
            if ((lost < 0) == (family == LOST)) // it has the losses for one reason
                metrics_text_real(text, labels,
                                  family == COVERAGE ? count / (count + lost) : count);
        }
    }
    rows_deinit(&rows);
}

// ---- Totals
// ---------------------------------------------------------------------------------------

// Sketches resolve 1 %, so that the bucket of a value beside an edge is not certain.
#define FROM_SKETCHES                                                                              \
    "; of requests and loads before the collector's start, those within 1 % of an edge may be in"  \
    " the bucket beside it"
#define RESOLVES "; times below 0.001 are not told apart" FROM_SKETCHES

static const struct {
    const char *name, *help;
} histograms[TOTALS_HISTOGRAM_COUNT] = {
    [TOTALS_E2E] = {"inferstat_request_duration_seconds",
                    "from a request's arrival to its last token or result" RESOLVES},
    [TOTALS_TTFT] = {"inferstat_request_time_to_first_token_seconds",
                     "from a request's arrival to its first token" RESOLVES},
    [TOTALS_TPOT] = {"inferstat_request_time_per_output_token_seconds",
                     "a request's mean time of a token after the first" RESOLVES},
    [TOTALS_LOAD] = {"inferstat_load_duration_seconds",
                     "whole load of a model, also one that failed; times below 0.1 are not told"
                     " apart" FROM_SKETCHES},
};

// Counters of the records of a histogram, of which there must be some.
enum { OF_HISTOGRAM = -1 }; // its own count
static const struct {
    int counter; // enum totals_counter
    enum totals_histogram of;
    const char *name, *help;
} counters[] = {
    {OF_HISTOGRAM, TOTALS_E2E, "inferstat_requests", "requests that ended"},
    {TOTALS_FAILED, TOTALS_E2E, "inferstat_request_errors", "requests that failed"},
    {TOTALS_CANCELLED, TOTALS_E2E, "inferstat_request_cancellations",
     "requests that were cancelled"},
    {TOTALS_PROMPT_TOKENS, TOTALS_E2E, "inferstat_prompt_tokens", "tokens of prompts"},
    {TOTALS_OUTPUT_TOKENS, TOTALS_E2E, "inferstat_output_tokens", "tokens put out"},
    {TOTALS_ITEMS, TOTALS_E2E, "inferstat_items",
     "items (images, windows of sound) of models that make no tokens"},
    {OF_HISTOGRAM, TOTALS_LOAD, "inferstat_loads", "loads of models"},
    {TOTALS_LOADS_FAILED, TOTALS_LOAD, "inferstat_load_errors",
     "loads that failed; initially those whose records have not expired"},
};

static void write_all_totals(struct writing *writing, const struct metrics_labels *labels)
{
    const struct totals *totals = writing->page->totals;
    struct metrics_text *text = writing->text;
    for (size_t c = 0; c < COUNT_OF(counters); c++) {
        metrics_text_family(text, counters[c].name, METRICS_COUNTER, counters[c].help);
        for (size_t i = 0; i < totals_count(totals); i++) {
            const struct totals_series *series = totals_at(totals, i);
            const uint64_t of = series->bins[counters[c].of].count;
            if (of > 0)
                metrics_text_count(text, metrics_labels_text(&labels[i]),
                                   counters[c].counter == OF_HISTOGRAM
                                       ? of
                                       : series->counters[counters[c].counter]);
        }
    }
    for (unsigned h = 0; h < TOTALS_HISTOGRAM_COUNT; h++) {
        metrics_text_family(text, histograms[h].name, METRICS_HISTOGRAM, histograms[h].help);
        for (size_t i = 0; i < totals_count(totals); i++) {
            const struct totals_bins *bins = &totals_at(totals, i)->bins[h];
            if (bins->count > 0)
                metrics_text_histogram(text, metrics_labels_text(&labels[i]),
                                       totals_edges[h].seconds, totals_edges[h].count, bins->counts,
                                       bins->sum_seconds);
        }
    }
}

static void write_totals(struct writing *writing)
{
    const struct totals *totals = writing->page->totals;
    const size_t count = totals_count(totals);
    const uint64_t before = writing->text->samples;
    struct metrics_labels *labels = calloc(count + 1, sizeof *labels);
    writing->has_failed = writing->has_failed || !labels;
    for (size_t i = 0; i < count && labels; i++) {
        const struct totals_series *series = totals_at(totals, i);
        metrics_labels_add(&labels[i], "host", series->host);
        metrics_labels_add(&labels[i], "model", series->model);
        metrics_labels_add(&labels[i], "device", series->device);
        writing->has_failed = writing->has_failed || labels[i].text.has_failed;
    }
    if (labels)
        write_all_totals(writing, labels);
    for (size_t i = 0; i < count && labels; i++)
        metrics_labels_deinit(&labels[i]);
    free(labels);
    const uint64_t written = writing->text->samples - before;
    writing->left -= written < writing->left ? written : writing->left;
    writing->cut[PART_SERIES] = totals_folded(totals);
}

// ---- The collector itself
// -------------------------------------------------------------------------

static void write_own(struct writing *writing)
{
    static const struct column columns[] = {
#define OWN(column, name, help) {column, "inferstat_collector_" name, METRICS_GAUGE, 1, help}
        OWN("runs_open", "open_runs", "processes that report now"),
        OWN("store_bytes", "store_bytes", "the store's file and its write-ahead log"),
        OWN("log_bytes", "log_bytes", "the store's write-ahead log"),
        OWN("disk_free_bytes", "disk_free_bytes", "free space beside the store"),
        OWN("memory_bytes", "memory_bytes", "resident memory"),
        OWN("queue_messages", "queue_messages", "messages waiting for the writer"),
        OWN("queue_bytes", "queue_bytes", "their size"),
        OWN("unsent_bytes", "unsent_bytes", "answers that peers have not taken"),
#undef OWN
        {"uptime_ns", "inferstat_collector_uptime_seconds", METRICS_GAUGE, 1e-9,
         "time since the start"},
        {"commits", "inferstat_collector_commits", METRICS_COUNTER, 1, "commits"},
        {"commit_p50_ns", "inferstat_collector_commit_p50_seconds", METRICS_GAUGE, 1e-9,
         "median of the last 1024 commits"},
        {"commit_p99_ns", "inferstat_collector_commit_p99_seconds", METRICS_GAUGE, 1e-9,
         "99th percentile of the last 1024 commits"},
    };
    const struct metrics_page *page = writing->page;
    const struct {
        const char *name, *help;
        double value;
    } values[] = {
        {"inferstat_collector_up", "1 if the last commit succeeded, else 0", page->can_write},
        {"inferstat_collector_scrape_seconds", "processor time of the scrape before this one",
         page->last_scrape_seconds},
        {"inferstat_collector_refresh_seconds",
         "time of the last reading of hosts, devices and losses", page->last_refresh_seconds},
        {"inferstat_collector_series_limit", "option --metrics-series", (double)page->series_max},
    };
    struct rows rows;
    rows_init(&rows, writing, page->tables[METRICS_PAGE_PING], PART_SERIES, NULL, 0, 0, false);
    write_columns(writing, &rows, columns, COUNT_OF(columns));
    rows_deinit(&rows);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        metrics_text_family(writing->text, values[i].name, METRICS_GAUGE, values[i].help);
        metrics_text_real(writing->text, NULL, values[i].value);
    }
    metrics_text_family(writing->text, "inferstat_collector_scrapes", METRICS_COUNTER,
                        "pages of metrics written");
    metrics_text_count(writing->text, NULL, page->scrapes);
}

// Writes one sample with one label.
static void write_labelled(struct writing *writing, const char *name, const char *value, double of)
{
    struct metrics_labels labels = {.text = {.bytes = NULL}};
    metrics_labels_add(&labels, name, value);
    metrics_text_real(writing->text, metrics_labels_text(&labels), of);
    writing->has_failed = writing->has_failed || labels.text.has_failed;
    metrics_labels_deinit(&labels);
}

static void write_ingest(struct writing *writing)
{
    static const char prefix[] = "rejected_";
    const struct result *ping = writing->page->tables[METRICS_PAGE_PING];
    metrics_text_family(writing->text, "inferstat_build", METRICS_INFO, "the collector's version");
    write_labelled(writing, "version", INFERSTAT_VERSION, 1);
    metrics_text_family(writing->text, "inferstat_collector_records", METRICS_COUNTER,
                        "records stored, by kind");
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++)
        write_labelled(writing, "kind", record_kind_info((enum record_kind)i)->name,
                       (double)writing->page->committed[i]);
    metrics_text_family(writing->text, "inferstat_collector_rejected", METRICS_COUNTER,
                        "messages, connections and names that were rejected, by reason");
    for (unsigned i = 0; ping && i < result_column_count(ping); i++) {
        const char *key = result_column(ping, i)->key;
        if (strncmp(key, prefix, sizeof prefix - 1) == 0)
            write_labelled(writing, "reason", key + sizeof prefix - 1,
                           result_number(ping, 0, key, (double)NAN));
    }
}

static void write_cut(struct writing *writing)
{
    static const char *const names[PARTS] = {
        [PART_SERIES] = "series",     [PART_HOSTS] = "hosts",     [PART_MODELS] = "models",
        [PART_REQUESTS] = "requests", [PART_RECORDS] = "records", [PART_DEVICES] = "devices",
        [PART_ALERTS] = "alerts",
    };
    metrics_text_family(writing->text, "inferstat_collector_cut", METRICS_GAUGE,
                        "what the limit of series (--metrics-series) left out of this page: hosts,"
                        " models, ...; part=\"series\": hosts, models and devices whose requests"
                        " are counted together in host=\"other\"");
    for (unsigned i = 0; i < PARTS; i++)
        write_labelled(writing, "part", names[i], (double)writing->cut[i]);
}

void metrics_page_write(struct metrics_text *text, const struct metrics_page *page)
{
    struct writing writing = {.text = text, .page = page, .left = page->series_max};
    write_own(&writing);
    write_ingest(&writing);
    write_totals(&writing);
    write_alerts(&writing);
    write_running(&writing);
    write_hosts(&writing);
    write_models(&writing);
    write_records(&writing);
    write_devices(&writing);
    write_cut(&writing);
    metrics_text_end(text);
    text->has_failed = text->has_failed || writing.has_failed;
}
