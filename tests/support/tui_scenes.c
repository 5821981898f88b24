#include "tests/support/tui_scenes.h"

#include <assert.h>
#include <stdio.h>

enum { TEXT_SIZE = 65536 };

#define SUMMARY_COLUMNS                                                                            \
    "runs|runs_open|hosts|models|loads|loads_failed|inferences|inferences_failed|operations|"      \
    "tokens_per_second:tokens/s|store_bytes:bytes|produced|stored|dropped|unnumbered|duplicates|"  \
    "refused|expired|cleared|in_flight|coverage_ratio:ratio"
#define SUMMARY SUMMARY_COLUMNS "\n"

#define OVERVIEW                                                                                   \
    "host|device|model|runs_open|inferences|generated_tokens|tokens_per_second:tokens/s|"          \
    "mean_tokens_per_second:tokens/s|ttft_mean_ns:ns|ttft_p95_ns:ns|e2e_mean_ns:ns|loads|"         \
    "load_mean_ns:ns|host_memory_bytes:bytes|lost|coverage_ratio:ratio\n"

#define LOADS                                                                                      \
    "run|host|stream|number|started_ns:unix_ns|model|device|duration_ns:ns|status|error|"          \
    "model_bytes:bytes|page_cache_ratio:ratio|memory_delta_bytes:bytes|"                           \
    "load_bytes_per_second:bytes/s|host_memory_before_bytes:bytes|host_memory_after_bytes:bytes\n"

#define LOAD_NS    (FIXTURE_WALL_NS - INT64_C(600000000000))
#define STARTUP_NS (LOAD_NS - 110000000)

#define STAGES                                                                                     \
    "run|host|stream|number|started_ns:unix_ns|parent|ordinal|stage|duration_ns:ns|model|device\n"

#define INFERENCES                                                                                 \
    "run|stream|number|host|started_ns:unix_ns|model|device|finish|prompt_tokens|"                 \
    "cached_prompt_tokens|"                                                                        \
    "generated_tokens|queue_ns:ns|prefill_ns:ns|ttft_ns:ns|decode_ns:ns|e2e_ns:ns|itl_p99_ns:ns|"  \
    "itl_max_ns:ns|host_memory_bytes:bytes|tokens_per_second:tokens/s|"                            \
    "prefill_tokens_per_second:tokens/s\n"

#define RUNS_COLUMNS                                                                               \
    "host|pid|started_ns:unix_ns|end|produced|stored|in_flight|dropped|unnumbered|duplicates|"     \
    "balanced|worker_version|last_activity"
#define RUNS RUNS_COLUMNS "\n"

#define PIPELINES                                                                                  \
    "host|started_ns:unix_ns|workload|device|status|items|duration_ns:ns|chunk_bytes:bytes|"       \
    "pool_size|sync|bytes_h2d:bytes|exposed_copy_ns:ns|copy_starved_ns:ns|pool_wait_ns:ns|"        \
    "item_p50_ns:ns|item_p99_ns:ns|overlap_ratio:ratio|pool_starvation_ratio:ratio|"               \
    "items_per_second:items/s|model|compute_busy_ns:ns|both_busy_ns:ns|idle_ns:ns\n"

#define WINDOW                                                                                     \
    "inferences|ttft_p95_ns:ns|e2e_p95_ns:ns|request_rate:requests/s|output_token_rate:tok/s|"     \
    "error_ratio:ratio|window_ns:ns|tpot_p95_ns:ns|tokens_per_second:tokens/s\n"

#define NOW                                                                                        \
    "model|host|state|since_ns:unix_ns|reason|requests|error_ratio:ratio|request_rate:requests/s|" \
    "output_token_rate:tok/s|ttft_p50_ns:ns|ttft_p95_ns:ns|tokens_per_second_p50:tokens/s|"        \
    "item_rate:items/s|e2e_p50_ns:ns|e2e_p95_ns:ns|running_requests|waiting_requests|"             \
    "tpot_p95_ns:ns|gpu_util_ratio:ratio|device_memory_ratio:ratio|joules_per_token|trend|"        \
    "group_by|group_size|group_live\n"

#define HOSTS                                                                                      \
    "host|events|cpu_util_ratio:ratio|memory_available_bytes:bytes|memory_total_bytes:bytes|"      \
    "memory_pressure_ratio:ratio|devices|sampled_ns:unix_ns|processes_cpu_ratio:ratio|"            \
    "processes_memory_bytes:bytes\n"

#define DEVICES                                                                                    \
    "host|device|events|gpu_util_ratio:ratio|memory_used_bytes:bytes|memory_bytes:bytes|"          \
    "temperature_celsius:celsius|slowdown_celsius:celsius|power_watts:watts|pcie_width|"           \
    "pcie_width_max\n"

#define COMPARE                                                                                    \
    "verdict|model|host|device|metric|ratio:ratio|ratio_low:ratio|ratio_high:ratio|before_count:"  \
    "count|after_"                                                                                 \
    "count:count|"                                                                                 \
    "unit|before_median|after_median|p95_verdict|differences|needed_count:count|before_runs:"      \
    "count|"                                                                                       \
    "after_runs:count|before_total|after_total\n"

#define ALERTS                                                                                     \
    "id|rule|model|host|device|state|severity|since_ns:unix_ns|resolved_ns:unix_ns|value|"         \
    "threshold|unit|why|acknowledged_ns:unix_ns|acknowledged_by|silenced_until_ns:unix_ns|"        \
    "rule_text\n"

#define FAILED "kind|model|host|error|count|last_ns:unix_ns\n"
#define FLEET  "model|device|host|metric|verdict|deviation_ratio:ratio|reason\n"

#define STEPS "started_ns:unix_ns|mean|p50|p95\n"

// The columns of an answer, with more behind them.
#define WITH_LOSSES(columns, more) columns##_COLUMNS "|" more "\n"

// `count` inferences of a model, the newest first, whose speed swings.
static void answer_inferences(struct model *model, unsigned count, const char *host,
                              const char *name)
{
    static char text[TEXT_SIZE];
    int used = snprintf(text, sizeof text, INFERENCES);
    for (unsigned i = 0; i < count; i++) {
        unsigned wave = i * 7 % 12, place = (unsigned)used;
        assert(place < sizeof text);
        double speed = 40.25 + wave * 0.75;
        long long decode_ns = (long long)(31e9 / speed);
        used += snprintf(
            text + place, sizeof text - place,
            "r|1|%u|%s|%lld|%s|cpu|%s|%u|0|32|120000|%u|%u|%lld|%lld|26400000|31100000|"
            "134217728|%.2f|412.5\n",
            count - i, host, (long long)(FIXTURE_WALL_NS - (2 + 3 * (int64_t)i) * 1000000000), name,
            i % 5 == 4 ? "stop" : "length", 12 + i % 3, 29000000 + wave * 100000,
            29120000 + wave * 100000, decode_ns, 29120000 + decode_ns, speed);
    }
    fixture_answer(model, POLL_INFERENCES, text);
}

// Times of 1,280 requests: most near 30 ms, some of 110 ms.
static void answer_histogram(struct model *model)
{
    static char text[TEXT_SIZE];
    int used = snprintf(text, sizeof text, "value:ns|count\n");
    for (int i = 0; i < 40; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%d|%d\n", 24000000 + i * 400000,
                         2 + (i < 20 ? i : 40 - i) * 3);
    (void)snprintf(text + used, sizeof text - (size_t)used, "108000000|12\n111000000|28\n");
    fixture_answer(model, POLL_HISTOGRAM, text);
}

static const char load_run[] = "5f0c2f6e-9a51-4c6c-8a4e-0d8f6b2f1a77";

static void answer_load(struct model *model, const char *name)
{
    char text[1024];
    (void)snprintf(text, sizeof text,
                   LOADS "%s|gpu-17|1|8|%lld|%s|cpu|1200000000|ok|-|60922880|1.0|63963136|"
                         "50769066.7|16777216|80740352\n"
                         "before|gpu-17|1|4|%lld|%s|cpu|820000000|ok|-|60922880|0.02|63963136|"
                         "74296195.1|16777216|80740352\n",
                   load_run, (long long)LOAD_NS, name, (long long)(LOAD_NS - 900000000000), name);
    fixture_answer(model, POLL_LOADS, text);
    (void)snprintf(text, sizeof text,
                   "run|stream|number|host|started_ns:unix_ns|duration_ns:ns|memory_start_bytes:"
                   "bytes|memory_ready_bytes:bytes|memory_delta_bytes:bytes\n"
                   "%s|1|9|gpu-17|%lld|1310000000|8388608|80740352|72351744\n"
                   "before|1|5|gpu-17|%lld|900000000|8388608|80740352|72351744\n",
                   load_run, (long long)STARTUP_NS, (long long)(STARTUP_NS - 900000000000));
    fixture_answer(model, POLL_STARTUPS, text);
}

void scene_stages(struct model *model)
{
    static char text[TEXT_SIZE];
    static const struct {
        const char *name;
        int64_t start_ns, duration_ns;
    } stages[] = {
        {"device_selection", 0, 1400000},          {"file_opening", 1500000, 300000},
        {"read_header", 1900000, 14600000},        {"tokenizer_init", 16600000, 122000000},
        {"model_building", 138700000, 1050000000},
    };
    int used = snprintf(text, sizeof text, STAGES);
    for (unsigned i = 0; i < 5; i++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "%s|gpu-17|1|%u|%lld|8|%u|%s|%lld|synthetic-15m|cpu\n", load_run, 3 + i,
                         (long long)(LOAD_NS + stages[i].start_ns), i, stages[i].name,
                         (long long)stages[i].duration_ns);
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "%s|gpu-17|1|1|%lld|9|0|open_prompts|110000000|-|-\n"
                     "%s|gpu-17|1|2|%lld|9|1|load_model|1200000000|-|-\n",
                     load_run, (long long)STARTUP_NS, load_run, (long long)LOAD_NS);
    (void)snprintf(text + used, sizeof text - (size_t)used,
                   "run-2|gpu-17|1|3|1774785000000000000|8|0|device_selection|1400000|broken|cpu\n"
                   "run-2|gpu-17|1|4|1774785000001400000|8|1|file_opening|200000|broken|cpu\n"
                   "run-1|gpu-17|1|4|1774785000001400000|8|1|of_another_run|200000|broken|cpu\n");
    fixture_answer(model, POLL_STAGES, text);
    fixture_answer(model, POLL_STAGES_USUAL,
                   "model|cache|part|stage|count|p50_ns:ns\n"
                   "synthetic-15m|all|total|-|14|990000000\n"
                   "synthetic-15m|all|other|-|14|11000000\n"
                   "synthetic-15m|warm|total|-|12|850000000\n"
                   "synthetic-15m|warm|stage|device_selection|12|1300000\n"
                   "synthetic-15m|warm|stage|read_header|12|14700000\n"
                   "synthetic-15m|warm|stage|tokenizer_init|12|121000000\n"
                   "synthetic-15m|warm|stage|model_building|12|700000000\n"
                   "synthetic-15m|warm|other|-|12|11000000\n");
    fixture_answer(model, POLL_STAGES_BEFORE,
                   STAGES "before|gpu-17|1|3|1774784100000000000|4|0|read_header|14500000|"
                          "synthetic-15m|cpu\n"
                          "before|gpu-17|1|2|1774784100014500000|4|1|model_building|790000000|"
                          "synthetic-15m|cpu\n");
}

// Two and a half minutes, or more, in steps of the window; their figures rise and fall.
static void answer_steps(struct model *model)
{
    static char text[TEXT_SIZE];
    const int64_t step_ns = queries_span(&model->scope, FIXTURE_WALL_NS).step_ns;
    int used = snprintf(text, sizeof text, STEPS);
    for (int i = 0; i < 150; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%lld|%d|%d000000|%d000000\n",
                         (long long)(FIXTURE_WALL_NS - (149 - i) * step_ns), 100 + i * 7 % 40,
                         20 + i * 5 % 11, 30 + i * 5 % 17);
    fixture_answer(model, POLL_TOKENS, text);
    fixture_answer(model, POLL_TTFT, text);
}

// Failed requests in some steps.
static void answer_errors(struct model *model)
{
    char text[1024];
    const int64_t step_ns = queries_span(&model->scope, FIXTURE_WALL_NS).step_ns;
    int used = snprintf(text, sizeof text, STEPS);
    for (int i = 0; i < 12; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%lld|%s|-|-\n",
                         (long long)(FIXTURE_WALL_NS - (70 - i) * step_ns), i < 8 ? "0.2" : "0");
    fixture_answer(model, POLL_ERRORS, text);
}

static void answer_now(struct model *model, const char *name, const char *host)
{
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        NOW "-|-|-|-|-|128|0.0|0.43|13.7|-|30200000|-|-|-|760000000|1|0|22800000|-|-|1.25|-|model|"
            "1|1\n"
            "%s|%s|ok|1774785000000000000|answers; what is usual at this hour is not "
            "known|128|0.0|0.43|13.7|29700000|30200000|44.37|-|728300000|"
            "760000000|1|0|22800000|0.97|0.5|1.25|,,10,12.5,14,13.7,13,12,14,13,14|model|-|-\n",
        name, host);
    fixture_answer(model, POLL_NOW, text);
    fixture_answer(model, POLL_WINDOW,
                   WINDOW "128|30200000|760000000|0.43|13.7|0.0|300000000000|22800000|44.41\n");
    answer_steps(model);
}

static void answer_run(struct model *model)
{
    fixture_answer(model, POLL_RUNS,
                   RUNS "gpu-17|4711|1774785000000000000|open|139|137|2|0|0|0|-|0.1.0|decode\n");
}

void scene_normal(struct model *model)
{
    fixture_answer(model, POLL_SUMMARY,
                   SUMMARY "1|1|1|1|1|0|128|0|0|44.37|1048576|139|137|0|0|0|0|0|0|2|1.0\n");
    fixture_answer(model, POLL_OVERVIEW,
                   OVERVIEW "gpu-17|cpu|synthetic-15m|1|128|4096|44.37|44.41|29700000|30200000|"
                            "728300000|1|1200000000|134217728|0|1.0\n");
    answer_now(model, "synthetic-15m", "gpu-17");
    answer_load(model, "synthetic-15m");
    answer_inferences(model, 128, "gpu-17", "synthetic-15m");
    answer_histogram(model);
    fixture_answer(model, POLL_FAILED, FAILED);
    answer_run(model);
    fixture_answer(model, POLL_HOSTS,
                   HOSTS "gpu-17|-|0.125|17179869184|34359738368|0.0|2|1774785599000000000|3.7|"
                         "4294967296\n"
                         "gpu-18|-|0.75|4294967296|34359738368|0.31|2|1774785599000000000\n");
    fixture_answer(model, POLL_DEVICES,
                   DEVICES "gpu-17|cuda:0|-|0.97|75161927680|150323855360|61|95|540.5|16|16\n"
                           "gpu-18|cuda:0|-|0.91|75161927680|150323855360|62|95|538.0|16|16\n"
                           "gpu-18|cuda:1|throttling, pcie_width|0.4|1073741824|150323855360|"
                           "94|95|650.0|8|16\n"
                           "gpu-19|cuda:0|-|0.0|1073741824|150323855360|35|95|75.0|16|16\n");
    fixture_answer(model, POLL_EVENTS,
                   "started_ns|host|device|event|code\n1774785590000000000|gpu-18|cuda:1|xid|48\n"
                   "1774785580000000000|gpu-18|cuda:1|xid|31\n"
                   "1774785570000000000|gpu-18|-|disk_full|-\n");
    fixture_answer(
        model, POLL_COMPARE,
        COMPARE
        "SAME|synthetic-15m|gpu-1|cuda:0|ttft_ns|1.001|0.995|1.007|400|410|ns|29700000|29730000|"
        "SAME|"
        "driver 550.1 and 560.2|12|3|3|-|-\n"
        "WORSE|synthetic-15m|gpu-1|cuda:0|e2e_ns|1.21|1.15|1.27|400|410|ns|728300000|881200000|"
        "WORSE|"
        "driver 550.1 and 560.2|12|3|3|-|-\n"
        "UNDECIDED|synthetic-15m|gpu-1|cuda:0|duration_ns|-|-|-|1|2|ns|-|-|-|driver 550.1 and "
        "560.2|12|1|"
        "1|-|-\n"
        "UNDECIDED|synthetic-15m|gpu-1|cuda:0|tpot_ns|1.0|0|-|234|229|ns|22000000|22000000|-|"
        "driver 550.1 and 560.2|12|6|6|-|-\n"
        "UNDECIDED|synthetic-15m|gpu-1|cuda:0|busy_output_token_rate|1.0|0.76|1.31|12|12|tok/"
        "s|-|-|-|"
        "driver 550.1 and 560.2|6|6|6|120.5|120.4\n"
        "-|-|gpu-1|cuda:0|sm_clock_hz|0.71|0.71|0.72|300|300|hz|1980000000|1410000000|-|"
        "driver 550.1 and 560.2|80|6|6|-|-\n"
        "-|-|gpu-1|cuda:1|sm_clock_hz|1.0|0.99|1.01|300|300|hz|1980000000|1980000000|-|"
        "driver 550.1 and 560.2|80|6|6|-|-\n"
        "-|-|gpu-1|cuda:0|throttled_ratio|-|-|-|300|300|ratio|-|-|-|"
        "driver 550.1 and 560.2|80|6|6|0|0.82\n");
    fixture_answer(model, POLL_PIPELINES, PIPELINES);
    fixture_round(model, STATUS_OK, NULL);
}

void scene_unwritable(struct model *model)
{
    scene_normal(model);
    fixture_answer(model, POLL_SUMMARY,
                   SUMMARY_COLUMNS
                   "|store_error\n1|1|1|1|1|0|128|0|0|44.37|1048576|139|137|0|0|0|0|"
                   "0|0|2|1.0|store: COMMIT: database or disk is full\n");
}

void scene_empty(struct model *model)
{
    fixture_answer(model, POLL_SUMMARY, SUMMARY "0|0|0|0|0|0|0|0|0|-|40960|0|0|0|0|0|0|0|0|0|-\n");
    fixture_answer(model, POLL_OVERVIEW, OVERVIEW);
    fixture_answer(model, POLL_LOADS, LOADS);
    fixture_answer(model, POLL_STAGES, NULL);
    fixture_answer(model, POLL_INFERENCES, INFERENCES);
    fixture_answer(model, POLL_FAILED, FAILED);
    fixture_answer(model, POLL_HISTOGRAM, NULL);
    fixture_answer(model, POLL_RUNS, RUNS);
    fixture_answer(model, POLL_NOW, NOW);
    fixture_answer(model, POLL_WINDOW, WINDOW);
    fixture_answer(model, POLL_TOKENS, STEPS);
    fixture_answer(model, POLL_TTFT, STEPS);
    fixture_answer(model, POLL_HOSTS, HOSTS);
    fixture_answer(model, POLL_DEVICES, DEVICES);
    fixture_answer(model, POLL_COMPARE, NULL);
    fixture_answer(model, POLL_ALERTS, ALERTS);
    fixture_answer(model, POLL_HISTORY, ALERTS);
    fixture_answer(model, POLL_PIPELINES, PIPELINES);
    fixture_round(model, STATUS_OK, NULL);
}

void scene_many(struct model *model)
{
    static char overview[TEXT_SIZE], runs[TEXT_SIZE], now[TEXT_SIZE];
    static const char *const states[] = {"down", "silent", "errors", "slow", "loading", "idle"};
    scene_normal(model);
    fixture_answer(model, POLL_SUMMARY,
                   SUMMARY "40|38|40|3|120|0|51200|7|0|44.37|73400320|52000|51990|0|0|3|0|0|0|"
                           "10|1.0\n");
    int used = snprintf(overview, sizeof overview, OVERVIEW);
    int runs_used = snprintf(runs, sizeof runs, RUNS);
    int now_used = snprintf(now, sizeof now,
                            NOW "-|-|-|-|-|50000|0.0|60|6780|-|30200000|-|-|-|760000000|80|39|"
                                "22800000|-|-|-|-|model|40|35\n");
    for (int i = 0; i < 40; i++) {
        used += snprintf(overview + used, sizeof overview - (size_t)used,
                         "gpu-%02d|NVIDIA H200|llama-3-8b-q8_0|1|%d|40960|%.2f|%.2f|29700000|"
                         "30200000|728300000|3|1200000000|9663676416|0|1.0\n",
                         i, 1280 - i, 100.0 + (i * 17) % 40, 100.5 + (i * 17) % 40);
        const char *state = i < (int)(sizeof states / sizeof *states) ? states[i]
                            : i > 34                                  ? "ended"
                                                                      : "ok";
        now_used += snprintf(
            now + now_used, sizeof now - (size_t)now_used,
            "llama-3-8b-q8_0|gpu-%02d|%s|1774785360000000000|because|%d|%.2f|1.5|%.2f|"
            "29700000|%d00000|100.1|-|728300000|760000000|2|%d|-|-|-|-|-|model|-|-\n",
            i, state, 1280 - i, i == 2 ? 0.25 : 0.0, 150.0 + (i * 17) % 40, 302 + i * 7, i % 3);
        runs_used +=
            snprintf(runs + runs_used, sizeof runs - (size_t)runs_used,
                     "gpu-%02d|%d|1774785000000000000|%s|1300|1300|0|0|0|0|%s|0.1.0|-\n", i,
                     4000 + i, i % 20 == 19 ? "closed" : "open", i % 20 == 19 ? "1" : "-");
    }
    fixture_answer(model, POLL_OVERVIEW, overview);
    fixture_answer(model, POLL_RUNS, runs);
    fixture_answer(model, POLL_NOW, now);
}

// A model on four hosts, of which one is slow and one is down; another on one host, with errors;
// two that have ended.
void scene_fleet(struct model *model)
{
    scene_normal(model);
    fixture_answer(
        model, POLL_NOW,
        NOW "-|-|-|-|-|3970|0.031|13.23|1341.5|-|910000000|-|-|-|9100000000|21|2|21000000|-|-|1.22|"
            "-|model|8|6\n"
            "llama-70b|-|down|1774785480000000000|gpu03: its process ended without closing|2970|"
            "0.041|9.9|1100|198000000|910000000|22.5|-|-|-|19|2|15000000|0.88|0.64|1.2|"
            "800,900,950,1000,1100,1000,1050,1100,1080,1100,1100|model|4|3\n"
            "llama-70b|gpu03|down|1774785480000000000|its process ended without closing|-|-|-|-|-|"
            "-|-|-|-|-|-|-|-|-|-|-|-|model|-|-\n"
            "llama-70b|gpu01|slow|1774785300000000000|TTFT 717ms, usually 250ms at this hour (9 "
            "days)|360|0.2|1.2|120|717000000|4400000000|4.1|-|-|-|7|2|40000000|0.97|0.66|4.5|"
            "400,400,400,380,390,200,100,120,90,120,120|model|-|-\n"
            "llama-70b|gpu02|ok|1774785000000000000|as usual|1300|0.0|4.4|490|180000000|210000000|"
            "23.1|-|-|-|6|0|15000000|0.85|0.62|1.0|490,490,490,490,490,490,490,490,490,490,490|"
            "model|-|-\n"
            "llama-70b|gpu04|ok|1774785000000000000|as usual|1310|0.0|4.3|490|181000000|212000000|"
            "23.2|-|-|-|6|0|15100000|0.84|0.64|1.0|,,,,490,490,490,490,490,490,490|model|-|-\n"
            "qwen2.5-coder-32b-instruct|gpu02.rack7.example.org|errors|1774785540000000000|12 of "
            "100 requests failed: no room|100|0.12|0.33|31.5|95000000|140000000|31.0|-|-|-|0|0|"
            "31000000|-|-|-|40,40,40,40,30,30,30,0,0,30,30|model|-|-\n"
            "phi-4|gpu05|ok|1774785000000000000|as usual|900|0.0|3.0|210|60000000|82000000|70.2|-|"
            "-|-|2|0|14000000|0.41|0.22|0.4|10,0,0,90,210,210,200,210,190,210,210|model|-|-\n"
            "old-a|gpu05|ended|1774785000000000000|its process closed|-|-|-|-|-|-|-|-|-|-|-|-|-|-|"
            "-|-|-|model|-|-\n"
            "old-b|gpu05|ended|1774785000000000000|its process closed|-|-|-|-|-|-|-|-|-|-|-|-|-|-|"
            "-|-|-|model|-|-\n");
    answer_errors(model);
    fixture_answer(model, POLL_FLEET,
                   FLEET "phi-4|cuda:0|gpu05|tokens_per_second|worse|-0.066|PCIe x8 of x16 "
                         "(peers x16)\n"
                         "phi-4|cuda:0|gpu05|ttft_ns|worse|0.061|PCIe x8 of x16 (peers x16)\n"
                         "phi-4|cuda:0|gpu06|tokens_per_second|better|0.05|-\n");
}

void scene_losses(struct model *model)
{
    scene_normal(model);
    fixture_answer(model, POLL_SUMMARY,
                   WITH_LOSSES(SUMMARY,
                               "dropped_spool_full|dropped_ring_full|dropped_refused|"
                               "refused_messages|refusals") "1203|1|1|1|2|1|128|4|0|44.37|1048576|"
                                                            "1150|1137|9|3|2|1|5123|20|1|0.9896|"
                                                            "8|3|1|15|message_size 12, names 3\n");
    fixture_answer(model, POLL_OVERVIEW,
                   OVERVIEW "gpu-17|cpu|synthetic-15m|1|128|4096|44.37|44.41|29700000|30200000|"
                            "728300000|2|1200000000|134217728|12|0.9896\n");
    fixture_answer(model, POLL_FAILED,
                   FAILED "inference|synthetic-15m|gpu-17|cuda: out of memory (# bytes)|3|"
                          "1774785590000000000\n"
                          "load|broken|gpu-17|broken.gguf: the file ends inside the tensor "
                          "output.weight|1|1774785000000000000\n");
    fixture_answer(model, POLL_LOADS,
                   LOADS "run-2|gpu-17|1|8|1774785000000000000|broken|cpu|2300000|error|"
                         "broken.gguf: the file ends inside the tensor output.weight|0|0.04|"
                         "-4096|-|8388608|8384512\n");
    fixture_answer(
        model, POLL_RUNS,
        WITH_LOSSES(
            RUNS,
            "coverage_ratio:ratio|clock_offset_ns:ns") "gpu-17|4713|1774785000000000000|open|139|"
                                                       "137|1|0|1|0|-|0.1.0|-|0.9928|1200000\n"
                                                       "gpu-17|4712|1774784000000000000|killed|"
                                                       "1000|989|0|9|2|2|0|0.1.0|"
                                                       "stream 1: decode stories260K request "
                                                       "17|0.989|-52000\n"
                                                       "gpu-17|4711|1774600000000000000|closed|11|"
                                                       "11|0|0|0|0|1|0.1.0|-|1.0|-\n");
}

void scene_names(struct model *model)
{
    scene_normal(model);
    const char *name = "千問-模型-七十億-\x1b[31mred\xff-with-a-very-long-name-indeed.gguf";
    char overview[1024];
    (void)snprintf(overview, sizeof overview,
                   OVERVIEW "a-host-name-that-never-seems-to-end.example.org|"
                            "Prozessor mit Überlänge und ünïcödé|%s|1|128|4096|"
                            "44.37|44.41|29700000|30200000|728300000|1|1200000000|134217728|0|1.0\n"
                            "h|d|m|0|0|0|-|-|-|-|-|0|-|-|0|-\n",
                   name);
    fixture_answer(model, POLL_OVERVIEW, overview);
    answer_now(model, name, "a-host-name-that-never-seems-to-end.example.org");
    answer_load(model, name);
    answer_inferences(model, 3, "\x07host\u202e\u0301", name);
}

// The newest first: events, and periodic synchronisation before that; copies alone,
// as a load makes them; a single chunk; one that failed before anything ran.
// Overlap falls for a while; what it hid is exposed then.
static void answer_pipeline_steps(struct model *model)
{
    static char texts[3][TEXT_SIZE];
    static const enum polled_query polls[] = {POLL_OVERLAP, POLL_EXPOSED, POLL_STARVED};
    const int64_t step_ns = queries_span(&model->scope, FIXTURE_WALL_NS).step_ns;
    int used[3];
    for (int k = 0; k < 3; k++)
        used[k] = snprintf(texts[k], TEXT_SIZE, "started_ns:unix_ns|mean\n");
    for (int i = 0; i < 150; i += 2) {
        const bool is_low = i > 90 && i < 120;
        const double means[] = {is_low ? 0.31 : 0.96, is_low ? 1.31e9 : 4.2e7, 1e6 * (i % 20)};
        for (int k = 0; k < 3; k++)
            used[k] += snprintf(texts[k] + used[k], TEXT_SIZE - (size_t)used[k], "%lld|%.3f\n",
                                (long long)(FIXTURE_WALL_NS - (149 - i) * step_ns), means[k]);
    }
    for (int k = 0; k < 3; k++)
        fixture_answer(model, polls[k], texts[k]);
}

void scene_pipelines(struct model *model)
{
    scene_normal(model);
    fixture_answer(
        model, POLL_PIPELINES,
        PIPELINES
        "gpu-17|1774785590000000000|encode|NVIDIA H200|ok|12800|2000000000|"
        "8388608|4|events|838860800|42000000|10000000|6000000|1200000|"
        "1900000|0.9721|0.015|6400.0|iqp 16 qubits f64|1880000000|1458000000|8000000\n"
        "gpu-17|1774785580000000000|encode|NVIDIA H200|ok|12800|3100000000|"
        "8388608|4|periodic|838860800|1310000000|402000000|210000000|"
        "1900000|4100000|0.3164|0.43|4129.032|iqp 16 qubits f64|1500000000|606000000|200000000\n"
        "gpu-18|1774785570000000000|model_load|NVIDIA H200|ok|512|1400000000|"
        "16777216|4|events|8589934592|1390000000|71000000|0|-|-|-|0.61|"
        "365.714|stories-15M|-|-|-\n"
        "gpu-18|1774785560000000000|encode|cpu|cancelled|16|21000000|4194304|"
        "2|events|1048576|9000000|0|0|-|-|0.0|0.0|761.904|angle 20 qubits f32|8000000|0|4000000\n"
        "gpu-18|1774485550000000000|encode|cpu|error|0|0|4194304|2|events|0|"
        "0|0|0|-|-|-|-|-|-|-|-|-\n");
    answer_pipeline_steps(model);
}

void scene_alerts(struct model *model)
{
    scene_normal(model);
    fixture_answer(
        model, POLL_ALERTS,
        ALERTS "7|slow_first_token|llama-3-8b-q8_0|gpu-17|-|firing|critical|"
               "1774785480000000000|-|4700000000|3000000000|ns|"
               "73 % more concurrent requests|-|-|-|avg ttft_ns by model,host over 5m when"
               " p50 > 3s for 2m critical 4.5s least 5\n"
               "6|device_hot|-|gpu-18|cuda:3|firing|warning|1774785400000000000|-|94|"
               "92|celsius|-|-|-|-|-\n"
               "5|load_slow|-|gpu-19|-|pending|warning|1774785300000000000|-|"
               "31000000000|30000000000|ns|-|-|-|-|avg load.duration_ns over 10m when max > 30s\n"
               "4|host_silent|-|gpu-20|-|firing|critical|1774785200000000000|-|"
               "400000000000|120000000000|ns|-|1774785500000000000|root|-|-\n");
    fixture_answer(model, POLL_HISTORY,
                   ALERTS "3|xid|-|gpu-18|cuda:5|resolved|critical|1774785100000000000|"
                          "1774785200000000000|1|0|count|-|-|-|-|-\n");
}
