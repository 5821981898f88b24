// The metrics page as a whole, made of a store with hostile names: it stays valid, has every part,
// and is cut where it would be too long.
#include <ctype.h>

#include "common/core/base/text.h"
#include "common/core/delivery/delivery.h"
#include "common/store/query/query_list.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "server/collector/exporters/metrics_page.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)

enum { HOSTS = 3, DEVICES = 4 };

static struct metrics_page page;
static struct result *tables[METRICS_PAGE_TABLES];
static struct totals *totals;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct inventory inventory;

static void add_sample(int64_t run, const char *device, int64_t started_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, started_ns);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, rows_name(db, device));
    record_set_int(&record, DEVICE_MEMORY_BYTES, 1);
    record_set_real(&record, DEVICE_SLOWDOWN, 90);
    (void)rows_add(db, run, &record);
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, rows_name(db, device));
    record_set_int(&record, DEVICE_SAMPLE_DURATION_NS, SECOND);
    record_set_real(&record, DEVICE_SAMPLE_GPU_UTIL, 0.5);
    record_set_real(&record, DEVICE_SAMPLE_ENERGY, 7.25);
    record_set_int(&record, DEVICE_SAMPLE_ECC_UNCORRECTED, 2);
    record_set_int(&record, DEVICE_SAMPLE_PROCESSES, 3);
    (void)rows_add(db, run, &record);
    record_init(&record, RECORD_KIND_HOST_SAMPLE, started_ns);
    record_set_real(&record, HOST_SAMPLE_CPU_UTIL, 0.25);
    record_set_int(&record, HOST_SAMPLE_NETWORK_ERRORS, 1);
    (void)rows_add(db, run, &record);
}

static void add_request(int64_t run, const char *model, const char *device, int64_t started_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, started_ns);
    for (unsigned i = INFERENCE_REQUEST; i <= INFERENCE_HOST_MEMORY; i++)
        if (!record_kind_info(RECORD_KIND_INFERENCE)->columns[i].maybe)
            record_set_int(&record, i, 1);
    record_set_name(&record, INFERENCE_MODEL, rows_name(db, model));
    record_set_name(&record, INFERENCE_DEVICE, rows_name(db, device));
    record_set_int(&record, INFERENCE_TTFT_NS, 1000);
    record_set_int(&record, INFERENCE_E2E_NS, 2000);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, 2);
    (void)rows_add(db, run, &record);
}

static const char *const hosts[HOSTS] = {"gpu\"01\"", "a\\b\nc{x=\"y\"} 1", "\xF0\x9F\x94\xA5=,#"};

TEST_FIXTURE(set_up)
{
    const int64_t now_ns = clock_wall_ns() - 2 * SECOND;
    store_make(state);
    for (int64_t run = 1; run <= HOSTS; run++) {
        rows_run(db, run, hosts[run - 1], now_ns - 100 * SECOND, now_ns);
        for (unsigned d = 0; d < DEVICES; d++) {
            const char *device = format_text("dev\n%u\\", d);
            add_sample(run, device,
                       d == 3 ? now_ns - 1000 * SECOND : now_ns); // the last one is old
        }
    }
    exec("UPDATE run SET \"end\" = 0, owner = 1;"
         "INSERT INTO alert(rule, model, host, device, state, severity, started_ns, resolved_ns,"
         " is_told, was_lost, stepped_ns, held_ns, critical_held_ns, good_ns, lost_ns) VALUES"
         " ('slow', 'm\"', 'gpu\"01\"', NULL, 2, 1, 1, NULL, 0, 0, 1, 0, 0, 0, 0),"
         " ('hot', NULL, 'a', 'd', 1, 0, 1, NULL, 0, 0, 1, 0, 0, 0, 0),"
         " ('over', NULL, 'a', 'd', 4, 0, 1, 5, 0, 0, 1, 0, 0, 0, 0)");
    (void)store_read();
    struct error err;
    inventory = (struct inventory){.hosts = NULL};
    store_set_live(store);
    expect_ok(inventory_begin(&inventory, store, &err), &err);
    return 0;
}

static void read_query(enum query_kind kind, unsigned table)
{
    struct error err;
    const struct query query = {.kind = kind};
    expect_ok(store_query(store, &query, &tables[table], &err), &err);
}

static void add_records(void)
{
    exec("UPDATE run SET stored = 30;"
         "INSERT INTO range(run, stream, first, last, state, reason) VALUES (1, 0, 1, 10, 1, 1)");
    for (int64_t run = 1; run <= HOSTS; run++)
        for (unsigned d = 0; d < DEVICES; d++)
            add_request(run, format_text("mod\"el{%u}", d), format_text("dev\n%u\\", d),
                        clock_wall_ns() - 2 * SECOND);
}

static void read_page(size_t series, uint64_t lines)
{
    struct error err;
    bool more;
    expect_ok(totals_new(&totals, store, series, &err), &err);
    add_records();
    expect_ok(totals_feed(totals, store, 1000, &lock, &more, &err), &err);
    expect_ok(inventory_read(&inventory, store, clock_wall_ns(), tables, &err), &err);
    read_query(QUERY_PING, METRICS_PAGE_PING);
    read_query(QUERY_DEVICE_HEALTH, METRICS_PAGE_DEVICES);
    read_query(QUERY_HOST_HEALTH, METRICS_PAGE_HOST_SAMPLES);
    read_query(QUERY_ALERTS, METRICS_PAGE_ALERTS);
    page = (struct metrics_page){
        .totals = totals, .can_write = true, .started_seconds = 1.5, .series_max = lines};
    page.stored[RECORD_KIND_INFERENCE] = 12;
    page.rejected[REFUSAL_QUOTA] = 5;
    for (unsigned i = 0; i < METRICS_PAGE_TABLES; i++)
        page.tables[i] = tables[i];
}

static char *write_page(bool is_openmetrics)
{
    struct metrics_text text;
    char *bytes = NULL;
    size_t size;
    assert_int_equal(metrics_text_open(&text, is_openmetrics), STATUS_OK);
    metrics_page_write(&text, &page);
    assert_int_equal(metrics_text_close(&text, &bytes, &size), STATUS_OK);
    assert_int_equal(strlen(bytes), size);
    return bytes;
}

static void free_page(void)
{
    totals_free(totals);
    inventory_deinit(&inventory);
    for (unsigned i = 0; i < METRICS_PAGE_TABLES; i++)
        result_free(tables[i]);
}

// Skips a name; NULL where there is none.
static const char *skip_name(const char *at)
{
    if (!isalpha((unsigned char)*at) && *at != '_')
        return NULL;
    while (isalnum((unsigned char)*at) || *at == '_')
        at++;
    return at;
}

// Skips "{name="value",...}" after a sample's name.
static const char *skip_labels(const char *at)
{
    if (*at != '{')
        return at;
    do {
        at = skip_name(at + 1);
        if (!at || at[0] != '=' || at[1] != '"')
            return NULL;
        for (at += 2; *at && *at != '"'; at++)
            if (*at == '\\' && !strchr("\\\"n", *++at))
                return NULL;
        at += *at == '"';
    } while (*at == ',');
    return *at == '}' ? at + 1 : NULL;
}

// Checks each line, that families are in one piece, and that no sample occurs twice.
static size_t expect_valid(char *text, bool is_openmetrics)
{
    static char *seen[20000], *families[1000];
    size_t lines = 0, family_count = 0;
    char *rest = NULL, *family = text;
    assert_true(text_is_utf8(text, strlen(text)));
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strcmp(line, "# EOF") == 0) {
            assert_true(is_openmetrics);
            assert_null(strtok_r(NULL, "\n", &rest));
            break;
        }
        if (strncmp(line, "# HELP ", 7) == 0) {
            family = line + 7;
            *strchr(family, ' ') = '\0';
            for (size_t i = 0; i < family_count; i++)
                assert_string_not_equal(families[i], family);
            families[family_count++] = family;
            continue;
        }
        if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_memory_equal(line + 7, family, strlen(family));
            continue;
        }
        const char *end = skip_name(line);
        if (!end)
            fail_msg("%s", line);
        assert_memory_equal(line, family, strlen(family)); // in its family
        end = skip_labels(end);
        if (!end || *end != ' ' || end[1 + strcspn(end + 1, " ")] != '\0')
            fail_msg("%s", line);
        char *after = NULL;
        (void)strtod(end + 1, &after);
        assert_int_equal(*after, '\0');
        line[end - line] = '\0';
        for (size_t i = 0; i < lines; i++)
            if (strcmp(seen[i], line) == 0)
                fail_msg("twice: %s", line);
        seen[lines++] = line;
        assert_in_range(lines, 0, COUNT_OF(seen) - 1);
    }
    return lines;
}

TEST_CASE(test_hostile_names)
{
    read_page(100, 100000);
    for (unsigned format = 0; format < 2; format++) {
        char *text = write_page(format == 1);
        assert_true(expect_valid(text, format == 1) > 500);
        free(text);
    }
    free_page();
}

static void expect_lines(const char *text, const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strstr(text, format_text("\n%s\n", lines[i])))
            fail_msg("not there: %s", lines[i]);
}

// On the first page that has them, counters and histograms are zero.
TEST_CASE(test_first_page)
{
    static const char *const lines[] = {
        "inferstat_requests_total{host=\"a\\\\b\\nc{x=\\\"y\\\"} 1\",model=\"mod\\\"el{1}\",device="
        "\"dev\\n1\\\\\"} 0",
        "inferstat_request_duration_seconds_count{host=\"a\\\\b\\nc{x=\\\"y\\\"} "
        "1\",model=\"mod\\\"el{1}"
        "\",device=\"dev\\n1\\\\\"} 0",
    };
    read_page(100, 100000);
    char *text = write_page(false);
    expect_lines(text, lines, COUNT_OF(lines));
    assert_null(strstr(text, "inferstat_load_duration_seconds"));
    free(text);
    free_page();
}

TEST_CASE(test_what_it_says)
{
#define HOST    "host=\"gpu\\\"01\\\"\""
#define DEVICE0 HOST ",device=\"dev\\n0\\\\\""
    static const char *const lines[] = {
        "inferstat_collector_up 1",
        "process_start_time_seconds 1.5",
        "inferstat_collector_open_runs 3",
        "inferstat_collector_records_total{kind=\"inference\"} 12",
        "inferstat_collector_rejected_total{reason=\"quota\"} 5",
        "inferstat_requests_total{" HOST ",model=\"mod\\\"el{0}\",device=\"dev\\n0\\\\\"} 1",
        "inferstat_output_tokens_total{" HOST ",model=\"mod\\\"el{0}\",device=\"dev\\n0\\\\\"} 2",
        "inferstat_loads_total{" HOST ",model=\"mod\\\"el{0}\",device=\"dev\\n0\\\\\"} 0",
        "inferstat_request_time_per_output_token_seconds_sum{" HOST
        ",model=\"mod\\\"el{0}\",device=\"dev\\n0\\\\\"} 1e-06",
        "inferstat_alert{rule=\"slow\",severity=\"critical\",state=\"firing\"," HOST
        ",model=\"m\\\"\"} 1",
        "inferstat_alert{rule=\"hot\",severity=\"warning\",state=\"pending\",host=\"a\",device="
        "\"d\"} "
        "1",
        "inferstat_host_open_runs{" HOST "} 1",
        "inferstat_stored_records_total{" HOST "} 30",
        "inferstat_lost_records_total{" HOST ",reason=\"spool_full\"} 10",
        "inferstat_lost_records_total{" HOST ",reason=\"ring_full\"} 0",
        "inferstat_coverage_ratio{" HOST "} 0.75",
        "inferstat_coverage_ratio{host=\"\xF0\x9F\x94\xA5=,#\"} 1",
        "inferstat_host_cpu_util_ratio{" HOST "} 0.25",
        "inferstat_device_gpu_util_ratio{" DEVICE0 "} 0.5",
        "inferstat_device_slowdown_celsius{" DEVICE0 "} 90",
        "inferstat_device_energy_joules_total{" DEVICE0 "} 7.25",
        "inferstat_device_ecc_uncorrected_errors_total{" DEVICE0 "} 2",
        "inferstat_device_processes{" DEVICE0 "} 3",
        "inferstat_collector_cut_rows 0",
        "inferstat_collector_folded_series 0",
    };
    read_page(100, 100000);
    totals_show(totals);
    char *text = write_page(false);
    expect_lines(text, lines, COUNT_OF(lines));
    // A sample that is no longer new has no gauges, but its device is still described.
    assert_null(strstr(text, "inferstat_device_gpu_util_ratio{" HOST ",device=\"dev\\n3"));
    assert_non_null(strstr(text, "inferstat_device_info{" HOST ",device=\"dev\\n3"));
    assert_null(strstr(text, "rule=\"over\""));
    assert_null(strstr(text, "network_errors"));
    assert_null(strstr(text, " nan"));
    free(text);
    page.can_write = false;
    text = write_page(true);
    assert_non_null(strstr(text, "\ninferstat_collector_up 0\n"));
    assert_non_null(strstr(text, "# TYPE inferstat_host info\n"));
    assert_non_null(strstr(text, "# TYPE inferstat_requests counter\n"));
    free(text);
    free_page();
}

// The limit is kept, and what is missing is counted.
TEST_CASE(test_cut)
{
    static const char *const lines[] = {
        "inferstat_collector_series_limit 300",
        "inferstat_collector_folded_series 10",
        "inferstat_requests_total{host=\"other\",model=\"other\",device=\"other\"} 10",
    };
    read_page(2, 300);
    totals_show(totals);
    char *text = write_page(false);
    expect_lines(text, lines, COUNT_OF(lines));
    assert_null(strstr(text, "inferstat_collector_cut_rows 0"));
    const size_t written = expect_valid(text, false);
    assert_in_range(written, 100, 300 + 90); // and the collector's own
    free(text);
    free_page();
}

// A row takes the lines that it becomes: a reason's one, stored records' two.
TEST_CASE(test_lines_of_records)
{
    read_page(1, HOSTS * (DELIVERY_REASON_COUNT + 2));
    for (unsigned i = 0; i < METRICS_PAGE_TABLES; i++)
        page.tables[i] = i == INVENTORY_RECORDS ? tables[i] : NULL;
    totals_free(totals);
    struct error err;
    expect_ok(totals_new(&totals, store, 1, &err), &err);
    page.totals = totals;
    for (unsigned less = 0; less < 2; less++) {
        page.series_max -= less;
        char *text = write_page(false);
        assert_non_null(strstr(text, format_text("inferstat_collector_cut_rows %u\n", less)));
        free(text);
    }
    free_page();
}

// Nothing is known yet.
TEST_CASE(test_empty)
{
    struct error err;
    expect_ok(totals_new(&totals, store, 1, &err), &err);
    page = (struct metrics_page){.totals = totals, .series_max = 1000};
    for (unsigned format = 0; format < 2; format++) {
        char *text = write_page(format == 1);
        (void)expect_valid(text, format == 1);
        free(text);
    }
    totals_free(totals);
    inventory_deinit(&inventory);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_hostile_names, test_first_page, test_what_it_says,
               test_cut, test_lines_of_records, test_empty)
