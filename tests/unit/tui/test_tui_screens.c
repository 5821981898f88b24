// Whole screens compared with text: tests/golden/tui/NAME.txt.  To take new ones,
// after looking at them: INFERSTAT_GOLDEN_UPDATE=1 test_tui_screens
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <unistd.h>

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_fixture.h"
#include "common/core/base/glyph.h"

static void nothing_yet(struct model *model)
{
    (void)model;
}

static void nobody(struct model *model)
{
    fixture_round(model, STATUS_UNREACHABLE, "no answer");
}

static void first_answer(struct model *model)
{
    fixture_answer(model, POLL_SUMMARY,
                   "runs|runs_open|hosts|models|inferences|loads\n"
                   "1|1|1|1|5|1\n");
}

static void tick(struct model *model, uint64_t seconds)
{
    struct event event = {.kind = EVENT_TICK,
                          .now_ns = FIXTURE_NOW_NS + seconds * UINT64_C(1000000000),
                          .wall_now_ns = FIXTURE_WALL_NS + (int64_t)seconds * 1000000000};
    (void)model_update(model, &event);
}

static void lost_contact(struct model *model)
{
    fixture_normal(model);
    nobody(model);
    tick(model, 5);
}

static void long_lost(struct model *model)
{
    lost_contact(model);
    tick(model, 3725);
}

static void paused(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, ' ');
    tick(model, 12);
}

// The details of a host that stands out.
static void machine(struct model *model)
{
    char points[4096];
    int used = snprintf(points, sizeof points, "started_ns:unix_ns|mean\n");
    fixture_normal(model);
    fixture_answer(model, POLL_FLEET,
                   "host|metric|verdict|deviation_ratio|reason\n"
                   "gpu-17|ttft_ns|worse|0.5|-\n"
                   "gpu-18|tokens_per_second|worse|-0.066|PCIe x8 of x16\n"
                   "gpu-18|ttft_ns|as others|0.001|-\n");
    fixture_key(model, '2');
    fixture_key(model, KEY_CODE_ENTER);
    for (int i = 0; i < 60; i++)
        used += snprintf(points + used, sizeof points - (size_t)used, "%lld|%.2f\n",
                         (long long)(FIXTURE_WALL_NS - (i + 1) * INT64_C(2000000000)),
                         0.4 + 0.1 * (i % 5));
    fixture_answer(model, POLL_MACHINE_USE, points);
    fixture_answer(model, POLL_MACHINE_MORE, points);
}

// Hosts and devices with all that the view has columns for.
static void equipped(struct model *model)
{
    fixture_normal(model);
    fixture_answer(
        model, POLL_HOSTS,
        "host|events|cpu_util_ratio:ratio|memory_available_bytes:bytes|memory_total_bytes:bytes|"
        "memory_used_ratio:ratio|memory_pressure_ratio:ratio|cpu_pressure_ratio:ratio|"
        "io_pressure_ratio:ratio|load_1m|devices|sampled_ns:unix_ns|processes_cpu_ratio:ratio|"
        "processes_memory_bytes:bytes\n"
        "gpu-17|-|0.125|17179869184|34359738368|0.5|0.0|0.02|0.11|3.25|2|1774785599000000000|3.7|"
        "4294967296\n");
    fixture_answer(
        model, POLL_DEVICES,
        "host|device|events|gpu_util_ratio:ratio|memory_used_bytes:bytes|memory_bytes:bytes|"
        "memory_used_ratio:ratio|temperature_celsius:celsius|slowdown_celsius:celsius|"
        "power_watts:watts|power_cap_watts:watts|sm_clock_hz:hz|sm_clock_max_hz:hz|"
        "throttled_ratio:ratio|ecc_uncorrected:count|pcie_width|pcie_width_max|processes|"
        "sampled_ns:unix_ns\n"
        "gpu-17|cuda:0|-|0.97|75161927680|150323855360|0.5|61|95|540.5|700|1980000000|1980000000|"
        "0|0|16|16|vllm 4711 70.0 GB|1774785599000000000\n"
        "gpu-17|cuda:1|throttling, ecc_uncorrected|0.4|1073741824|150323855360|0.007|94|95|650|"
        "700|990000000|1980000000|0.31|3|8|16|vllm 4711 1.0 GB, 512|1774785599000000000\n");
    fixture_round(model, STATUS_OK, NULL);
}

// An alert that is silenced, and one that fires beside it.
static void silenced(struct model *model)
{
    fixture_alerts(model);
    fixture_answer(
        model, POLL_ALERTS,
        "id|rule|model|host|device|state|severity|since_ns:unix_ns|resolved_ns:unix_ns|value|"
        "threshold|unit|why|acknowledged_ns:unix_ns|acknowledged_by|silenced_until_ns:unix_ns|"
        "rule_text\n"
        "8|device_hot|-|gpu-18|cuda:3|firing|critical|1774785400000000000|-|94|92|celsius|-|-|-|"
        "1774792800000000000|-\n"
        "7|disk_full|-|gpu-19|-|firing|warning|1774785300000000000|-|3600000000000|"
        "86400000000000|ns|-|-|-|-|-\n");
}

static void setup(struct model *model)
{
    fixture_many(model);
    fixture_key(model, KEY_CODE_F2);
    for (int i = 0; i < 6; i++)
        fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, KEY_CODE_RIGHT);
}

static void fault(struct model *model)
{
    fixture_normal(model);
    fixture_round(model, STATUS_CORRUPT, "store.db: page 7 is damaged");
}

static void file(struct model *model)
{
    fixture_normal(model);
    (void)snprintf(model->name, sizeof model->name, "/var/lib/inferstat/store.db");
    model->is_file = true;
}

// Presses keys: characters, or one of these for a key that is none.
#define PAGE_DOWN "\x01"
#define BACK_TAB  "\x02"
#define LEFT      "\x03"

static void press(struct model *model, const char *keys)
{
    static const uint32_t codes[] = {0, KEY_CODE_PAGE_DOWN, KEY_CODE_BACK_TAB, KEY_CODE_LEFT};
    for (; *keys; keys++)
        fixture_key(model, (unsigned char)*keys < COUNT_OF(codes) ? codes[(unsigned char)*keys]
                                                                  : (unsigned char)*keys);
}

// A request whose details are open: explained, with a load and other requests at the time.
static void explained(struct model *model)
{
    fixture_normal(model);
    press(model, "3\r");
    fixture_answer(model, POLL_EXPLANATION,
                   "run|started_ns|took_ns:ns|median_ns:ns|excess_ns:ns|peers|"
                   "queue_excess_ns:ns|tokens_excess_ns:ns|load_excess_ns:ns|throttle_excess_ns:ns|"
                   "throttle_reasons|blame|note\n"
                   "r|1774785598000000000|728300000|220100000|508200000|61|120000|-80000000|"
                   "431000000|157000000|4|load|-\n");
    fixture_answer(model, POLL_LOADS_THEN,
                   "run|stream|number|started_ns|duration_ns:ns|model|device\n"
                   "s|1|1|1774785597000000000|1400000000|qwen-72b|cuda:0\n"
                   "s|1|2|1774785590000000000|1400000000|long-ago|cuda:0\n");
    fixture_answer(model, POLL_EVENTS_THEN,
                   "run|started_ns|duration_ns:ns|event|device\n"
                   "s|1774785598200000000|-|throttling|cuda:0\n");
    char requests[4096];
    int used = snprintf(requests, sizeof requests, "%s",
                        "run|started_ns|e2e_ns:ns|model|device\n"
                        "r|1774785598000000000|728300000|synthetic-15m|cpu\n");
    for (int i = 0; i < 10; i++)
        used += snprintf(requests + used, sizeof requests - (size_t)used,
                         "q|%lld|300000000|synthetic-15m|cpu\n",
                         1774785598000000000LL + i * 70000000LL);
    fixture_answer(model, POLL_REQUESTS_THEN, requests);
}

static void loads(struct model *model)
{
    fixture_normal(model);
    press(model, "4");
    fixture_stages(model);
}

static void loads_failed(struct model *model)
{
    fixture_losses(model);
    press(model, "4");
    fixture_stages(model);
}

static void compact(struct model *model)
{
    fixture_many(model);
    model->compact = true;
}

static void compact_quiet(struct model *model)
{
    fixture_normal(model);
    model->compact = true;
}

static void empty_file(struct model *model)
{
    file(model);
    fixture_empty(model);
}

static void cleared(struct model *model)
{
    fixture_normal(model);
    fixture_event(model, (struct event){.kind = EVENT_CHANGED, .cleared = 152});
}

// A model that makes no tokens, beside one that does.
static void items(struct model *model)
{
    fixture_normal(model);
    fixture_answer(model, POLL_SUMMARY,
                   "runs|runs_open|hosts|models|inferences|loads|tokens_per_second:tokens/s|"
                   "items_per_second:items/s\n2|2|1|2|61200|0|44.37|31250.5\n");
    fixture_answer(model, POLL_OVERVIEW,
                   "host|device|model|runs_open|inferences|generated_tokens|"
                   "tokens_per_second:tokens/s|ttft_mean_ns:ns|e2e_mean_ns:ns|e2e_p50_ns:ns|"
                   "e2e_p95_ns:ns|items|items_per_second:items/s|coverage_ratio:ratio\n"
                   "gpu-17|cpu|ds-cnn|1|61072|-|-|-|256300|255000|301000|488576|31250.5|1.0\n"
                   "gpu-17|cpu|synthetic-15m|1|128|4096|44.37|29700000|728300000|-|-|-|-|1.0\n");
    fixture_answer(model, POLL_INFERENCES,
                   "host|started_ns:unix_ns|model|device|finish|queue_ns:ns|e2e_ns:ns|items|"
                   "items_per_second:items/s|tokens_per_second:tokens/s|generated_tokens\n"
                   "gpu-17|1774785599000000000|ds-cnn|cpu|stop|0|250000|8|32000|-|-\n"
                   "gpu-17|1774785598000000000|ds-cnn|cpu|stop|0|320000|8|25000|-|-\n"
                   "gpu-17|1774785597000000000|synthetic-15m|cpu|stop|0|728300000|-|-|44.37|32\n");
}

// The causes of the row at the cursor, and before they are known.
static void why_asked(struct model *model)
{
    fixture_fleet(model);
    press(model, "jjw");
}

static void why(struct model *model)
{
    why_asked(model);
    fixture_answer(
        model, POLL_WHY,
        "model|host|cause|explained_ns:ns|share_ratio:ratio|text|evidence|metric|verdict|usual|"
        "p50_ns:ns|usual_p50_ns:ns|p95_ns:ns|usual_p95_ns:ns\n"
        "llama-70b|gpu01|concurrency|310000000|0.66|73 % more concurrent requests: 7 at a time, "
        "usually 4, so that each waits for the others longer than it computes|inferstat avg "
        "ttft_ns --step 1m --model llama-70b --host gpu01|ttft_ns|WORSE|the same hour of 9 days|"
        "717000000|250000000|4400000000|900000000\n"
        "llama-70b|gpu01|throttling|90000000|0.19|cuda:0 throttled for 31 % of the time: software "
        "thermal|inferstat events --host gpu01|ttft_ns|WORSE|-|717000000|250000000|4400000000|"
        "900000000\n"
        "-|gpu01|losses|-|-|records were lost: 7|inferstat summary --host gpu01|-|-|-|-|-|-|-\n");
}

// A text longer than the line, the cursor in the middle of it.
static void prompt_long(struct model *model)
{
    fixture_normal(model);
    press(model, "\\");
    for (int i = 0; i < 12; i++)
        press(model, "0123456789");
    fixture_key(model, 0x65E5);
    fixture_key(model, 0x672C);
    for (int i = 0; i < 12; i++)
        press(model, "abcdefghij");
    for (int i = 0; i < 121; i++)
        press(model, LEFT);
}

#define FILTERED "\\model=synthetic-15m since 1h\r"

// What matches nothing is no empty store.
static void filtered_empty(struct model *model)
{
    fixture_normal(model);
    press(model, FILTERED);
    fixture_empty(model);
}

// ASCII: only such characters; SIZES: drawn at every size, too; AGAIN: answered after the keys;
// MONO: with the looks that a terminal without colours gives the characters, below the screen.
enum { ASCII = 1, SIZES = 2, AGAIN = 4, MONO = 8 };

static const struct {
    const char *name;
    void (*fill)(struct model *model);
    const char *keys; // pressed then
    int width, height;
    unsigned how;
} cases[] = {
    {"connecting-80x24", nothing_yet, "", 80, 24, SIZES},
    {"nobody-80x24", nobody, "", 80, 24, SIZES},
    {"first-answer-80x24", first_answer, "", 80, 24, 0},
    {"normal-80x24", fixture_normal, "", 80, 24, SIZES},
    {"normal-60x16", fixture_normal, "", 60, 16, 0},
    {"normal-120x40", fixture_normal, "", 120, 40, 0},
    {"normal-200x60", fixture_normal, "", 200, 60, 0},
    {"normal-ascii-80x24", fixture_normal, "", 80, 24, ASCII},
    {"empty-80x24", fixture_empty, "", 80, 24, SIZES},
    {"empty-60x16", fixture_empty, "", 60, 16, 0},
    {"empty-file-80x24", empty_file, "", 80, 24, 0},
    {"file-80x24", file, "", 80, 24, 0},
    {"losses-80x24", fixture_losses, "", 80, 24, 0},
    {"losses-200x60", fixture_losses, "", 200, 60, 0},
    {"names-80x24", fixture_names, "", 80, 24, SIZES},
    {"names-ascii-120x40", fixture_names, "", 120, 40, ASCII},
    {"fleet-60x16", fixture_fleet, "", 60, 16, SIZES},
    {"fleet-80x24", fixture_fleet, "", 80, 24, 0},
    {"fleet-120x40", fixture_fleet, "", 120, 40, 0},
    {"fleet-200x60", fixture_fleet, "o", 200, 60, SIZES},
    {"fleet-closed-80x24", fixture_fleet, LEFT, 80, 24, 0},
    {"fleet-ascii-80x24", fixture_fleet, "", 80, 24, ASCII},
    {"fleet-sorted-120x40", fixture_fleet, ">>>>>>>>", 120, 40, 0},
    {"why-80x24", why, "", 80, 24, SIZES},
    {"why-120x40", why, "", 120, 40, 0},
    {"why-asked-80x24", why_asked, "", 80, 24, 0},
    {"many-80x24", fixture_many, "", 80, 24, 0},
    {"many-120x40", fixture_many, "", 120, 40, 0},
    {"lost-contact-80x24", lost_contact, "", 80, 24, 0},
    {"long-lost-60x16", long_lost, "", 60, 16, 0},
    {"paused-80x24", paused, "", 80, 24, 0},
    {"fault-80x24", fault, "", 80, 24, 0},
    {"unwritable-80x24", fixture_unwritable, "", 80, 24, 0},
    {"items-80x24", items, "", 80, 24, SIZES},
    {"items-120x40", items, "", 120, 40, 0},
    {"sorted-80x24", fixture_many, ">>>>>>>", 80, 24, 0},
    {"unfolded-120x40", fixture_many, "o", 120, 40, 0},
    {"detail-80x24", fixture_many, "jj\r", 80, 24, SIZES},
    {"detail-request-120x40", fixture_normal, "3j\r", 120, 40, SIZES},
    {"search-80x24", fixture_many, "/gpu-1", 80, 24, SIZES},
    {"past-80x24", fixture_many, "[", 80, 24, SIZES | AGAIN},
    {"past-120x40", fixture_many, "ttt", 120, 40, AGAIN},
    {"hosts-80x24", fixture_normal, "2", 80, 24, SIZES},
    {"hosts-60x16", fixture_normal, "2", 60, 16, 0},
    {"hosts-120x40", fixture_normal, "2jj", 120, 40, 0},
    {"detail-machine-120x40", machine, "", 120, 40, SIZES},
    {"hosts-200x60", fixture_normal, "2", 200, 60, 0},
    {"hosts-equipped-80x24", equipped, "2", 80, 24, 0},
    {"hosts-equipped-120x40", equipped, "2", 120, 40, SIZES},
    {"hosts-equipped-200x60", equipped, "2", 200, 60, 0},
    {"hosts-equipped-detail-80x24", equipped, "2jj\r", 80, 24, SIZES},
    {"hosts-ascii-80x24", fixture_normal, "2", 80, 24, ASCII},
    {"requests-80x24", fixture_normal, "3", 80, 24, SIZES},
    {"requests-60x16", fixture_normal, "3" PAGE_DOWN, 60, 16, 0},
    {"requests-120x40", fixture_normal, "3", 120, 40, 0},
    {"requests-200x60", fixture_normal, "3", 200, 60, 0},
    {"requests-items-80x24", items, "3m", 80, 24, 0},
    {"requests-ascii-80x24", fixture_normal, "3", 80, 24, ASCII},
    {"requests-failed-80x24", fixture_losses, "3", 80, 24, SIZES},
    {"requests-failed-120x40", fixture_losses, "3", 120, 40, 0},
    {"explained-80x24", explained, "", 80, 24, SIZES},
    {"explained-60x16", explained, "", 60, 16, 0},
    {"explained-120x40", explained, "", 120, 40, 0},
    {"explained-200x60", explained, "", 200, 60, 0},
    {"explained-ascii-80x24", explained, "", 80, 24, ASCII},
    {"chooser-80x24", fixture_normal, "v", 80, 24, SIZES},
    {"chooser-models-80x24", fixture_many, "vj\r", 80, 24, SIZES},
    {"chooser-none-60x16", fixture_normal, "vjjj\r", 60, 16, 0},
    {"loads-80x24", loads, "", 80, 24, SIZES},
    {"loads-60x16", loads, "", 60, 16, 0},
    {"loads-120x40", loads, "", 120, 40, 0},
    {"loads-200x60", loads, "", 200, 60, 0},
    {"loads-before-80x24", loads, "d", 80, 24, SIZES},
    {"loads-before-120x40", loads, "d", 120, 40, 0},
    {"loads-ascii-120x40", loads, "", 120, 40, ASCII},
    {"loads-alone-80x24", loads_failed, "d", 80, 24, 0},
    {"loads-failed-80x24", loads_failed, "", 80, 24, 0},
    {"compare-80x24", fixture_normal, "6", 80, 24, SIZES},
    {"compare-120x40", fixture_normal, "6", 120, 40, 0},
    {"compare-200x60", fixture_normal, "6", 200, 60, 0},
    {"alert-detail-80x24", fixture_alerts, "7\r", 80, 24, SIZES},
    {"compare-detail-80x24", fixture_normal, "6\r", 80, 24, 0},
    {"compare-60x16", fixture_normal, "6", 60, 16, 0},
    {"compare-ascii-80x24", fixture_normal, "6", 80, 24, ASCII},
    {"alerts-80x24", fixture_alerts, "7", 80, 24, SIZES},
    {"alerts-60x16", fixture_alerts, "7", 60, 16, 0},
    {"alerts-120x40", fixture_alerts, "7", 120, 40, 0},
    {"alerts-silenced-120x40", silenced, "7", 120, 40, SIZES},
    {"alerts-silenced-now-80x24", silenced, "", 80, 24, 0},
    {"alerts-none-80x24", fixture_normal, "7", 80, 24, 0},
    {"silence-80x24", fixture_alerts, "7S", 80, 24, 0},
    {"alerts-now-120x40", fixture_alerts, "", 120, 40, 0},
    {"ledger-80x24", fixture_normal, "8", 80, 24, SIZES},
    {"ledger-losses-120x40", fixture_losses, "8", 120, 40, 0},
    {"ledger-losses-60x16", fixture_losses, "8", 60, 16, 0},
    {"help-80x24", fixture_normal, "?", 80, 24, SIZES},
    {"help-120x40", fixture_normal, "?", 120, 40, 0},
    {"question-80x24", fixture_normal, "c", 80, 24, SIZES},
    {"question-60x16", fixture_normal, "c", 60, 16, 0},
    {"question-filtered-80x24", fixture_normal, FILTERED "c", 80, 24, AGAIN},
    {"alerts-200x60", fixture_alerts, "7", 200, 60, 0},
    {"alerts-ascii-80x24", fixture_alerts, "7", 80, 24, ASCII},
    {"ledger-60x16", fixture_normal, "8", 60, 16, 0},
    {"ledger-losses-200x60", fixture_losses, "8", 200, 60, SIZES},
    {"ledger-ascii-80x24", fixture_losses, "8", 80, 24, ASCII},
    {"setup-ascii-80x24", setup, "", 80, 24, ASCII},
    {"setup-80x24", setup, "", 80, 24, SIZES},
    {"setup-60x16", setup, "", 60, 16, 0},
    {"prompt-80x24", fixture_normal, "\\", 80, 24, 0},
    {"prompt-60x16", fixture_normal, "\\", 60, 16, 0},
    {"prompt-error-80x24", fixture_normal, "\\where modle=x since 1h\r", 80, 24, SIZES},
    {"prompt-long-ascii-80x24", prompt_long, "", 80, 24, ASCII | SIZES},
    {"filtered-80x24", fixture_normal, FILTERED, 80, 24, SIZES | AGAIN},
    {"filtered-120x40", fixture_normal, FILTERED, 120, 40, AGAIN},
    {"filtered-empty-80x24", filtered_empty, "", 80, 24, 0},
    {"cleared-80x24", cleared, "", 80, 24, 0},
    {"pipelines-80x24", fixture_pipelines, "5", 80, 24, SIZES},
    {"pipelines-unmeasured-80x24", fixture_pipelines, "5jj", 80, 24, SIZES},
    {"pipelines-60x16", fixture_pipelines, "5", 60, 16, 0},
    {"pipelines-120x40", fixture_pipelines, "5", 120, 40, 0},
    {"pipelines-200x60", fixture_pipelines, "5", 200, 60, 0},
    {"pipelines-ascii-80x24", fixture_pipelines, "5", 80, 24, ASCII},
    {"pipelines-sorted-60x16", fixture_pipelines, "5>>>>>>>I", 60, 16, 0},
    {"pipelines-filtered-60x16", fixture_pipelines, "\\host=gpu-17\r5", 60, 16, AGAIN},
    {"pipelines-none-60x16", fixture_normal, "5", 60, 16, 0},
    {"pipelines-empty-60x16", fixture_empty, "5", 60, 16, SIZES},
    {"compact-80x3", compact, "", 80, 3, SIZES},
    {"compact-quiet-40x3", compact_quiet, "", 40, 3, 0},
    {"export-80x24", fixture_normal, "e", 80, 24, 0},
    {"alerts-now-mono-80x24", fixture_alerts, "", 80, 24, MONO},
    {"fleet-mono-80x24", fixture_fleet, ">j", 80, 24, MONO},
    {"hosts-mono-80x24", fixture_normal, "2", 80, 24, MONO},
    {"requests-mono-80x24", fixture_losses, "3", 80, 24, MONO},
    {"loads-mono-80x24", loads_failed, "", 80, 24, MONO},
    {"pipelines-mono-80x24", fixture_pipelines, "5", 80, 24, MONO},
    {"compare-mono-80x24", fixture_normal, "6", 80, 24, MONO},
    {"alerts-mono-80x24", fixture_alerts, "7", 80, 24, MONO},
    {"ledger-mono-80x24", fixture_losses, "8", 80, 24, MONO},
    {"too-small-40x10", fixture_normal, "", 40, 10, 0},
    {"too-small-10x2", fixture_normal, "", 10, 2, 0},
};

// Files do not end in empty lines, as screens may.
static void trim(char *text)
{
    size_t size = strlen(text);
    while (size > 1 && text[size - 1] == '\n' && text[size - 2] == '\n')
        text[--size] = '\0';
}

TEST_CASE(screens_are_as_they_were)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, GOLDEN_FOLDER "/%s.txt", cases[i].name);
        struct model model;
        fixture_model(&model, cases[i].width, cases[i].height);
        cases[i].fill(&model);
        press(&model, cases[i].keys);
        if (cases[i].how & AGAIN)
            cases[i].fill(&model);
        char *screen = fixture_screen(&model, cases[i].how & ASCII);
        trim(screen);
        if (cases[i].how & MONO) {
            char *text = screen, *looks = fixture_looks(&model);
            trim(looks);
            assert_true(asprintf(&screen, "%s%s", text, looks) > 0);
            free(looks);
            free(text);
        }
        if (getenv("INFERSTAT_GOLDEN_UPDATE"))
            write_text(path, screen);
        char *golden = access(path, R_OK) == 0 ? read_file(path, NULL) : NULL;
        if (!golden || strcmp(golden, screen) != 0) {
            (void)fprintf(stderr, "%s differs.  Expected:\n%sDrawn:\n%s", path,
                          golden ? golden : "(no file)\n", screen);
            wrong++;
        }
        free(golden);
        free(screen);
        model_deinit(&model);
    }
    assert_int_equal(wrong, 0);
}

// No screen of any size reads or writes outside of itself (sanitizers watch), is
// wider or higher than it may be, or holds a control character.
TEST_CASE(every_size_draws)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model model;
        if (!(cases[i].how & SIZES))
            continue;
        fixture_model(&model, 80, 24);
        cases[i].fill(&model);
        press(&model, cases[i].keys);
        if (cases[i].how & AGAIN)
            cases[i].fill(&model);
        for (int width = 0; width <= 400; width += width < 70 ? 1 : 30) {
            for (int height = 0; height <= 120; height += height < 30 ? 1 : 15) {
                struct event event = {.kind = EVENT_RESIZE, .x = width, .y = height};
                fixture_event(&model, event);
                char *screen = fixture_screen(&model, width % 2);
                int rows = 0;
                for (char *line = strtok(screen, "\n"); line; line = strtok(NULL, "\n")) {
                    assert_true(glyph_text_width(line) <= width);
                    for (const char *c = line; *c; c++)
                        assert_true((unsigned char)*c >= 0x20 && *c != 0x7F);
                    rows++;
                }
                assert_true(rows <= height);
                free(screen);
            }
        }
        model_deinit(&model);
    }
}

TEST_MAIN(screens_are_as_they_were, every_size_draws)
