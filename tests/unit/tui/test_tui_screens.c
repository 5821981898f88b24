// Whole screens compared with text: tests/golden/tui/NAME.txt.  To take new ones,
// after looking at them: INFERSTAT_GOLDEN_UPDATE=1 test_tui_screens
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <unistd.h>

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"
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
    scene_normal(model);
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
    scene_normal(model);
    fixture_key(model, ' ');
    tick(model, 12);
}

// The details of a host that stands out.
static void machine(struct model *model)
{
    char points[4096];
    int used = snprintf(points, sizeof points, "started_ns:unix_ns|mean\n");
    scene_normal(model);
    fixture_answer(model, POLL_FLEET,
                   "host|device|metric|verdict|deviation_ratio|reason\n"
                   "gpu-17|cuda:0|ttft_ns|worse|0.5|-\n"
                   "gpu-18|cuda:1|tokens_per_second|worse|-0.066|PCIe x8 of x16\n"
                   "gpu-18|cuda:0|ttft_ns|as others|0.001|-\n");
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
    scene_normal(model);
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

// The last samples of a window that has ended, and its means.
static void machines_before(struct model *model)
{
    scene_normal(model);
    fixture_key(model, '2');
    fixture_key(model, '[');
    fixture_answer(
        model, POLL_HOSTS,
        "host|events|cpu_util_ratio:ratio|cpu_util_mean_ratio:ratio|memory_available_bytes:bytes|"
        "memory_total_bytes:bytes|memory_pressure_ratio:ratio|memory_pressure_mean_ratio:ratio|"
        "sampled_ns:unix_ns\n"
        "gpu-17|-|0.125|0.375|17179869184|34359738368|0.01|0.2|1774785299000000000\n");
    fixture_answer(model, POLL_DEVICES,
                   "host|device|events|gpu_util_ratio:ratio|gpu_util_mean_ratio:ratio|"
                   "memory_used_bytes:bytes|memory_bytes:bytes|temperature_celsius:celsius|"
                   "temperature_max_celsius:celsius|power_watts:watts|power_mean_watts:watts|"
                   "throttled_ratio:ratio|throttled_mean_ratio:ratio|sampled_ns:unix_ns|"
                   "window_ns:ns|pcie_width|pcie_width_max\n"
                   "gpu-17|cuda:0|-|0.97|0.5|75161927680|150323855360|61|92|540.5|410|0|0.25|"
                   "1774785299000000000|300000000000|8|16\n");
    fixture_round(model, STATUS_OK, NULL);
}

static void nothing(struct model *model)
{
    scene_normal(model);
    fixture_answer(model, POLL_LOADS, NULL);
    fixture_answer(model, POLL_COMPARE, NULL);
}

// An alert that is silenced, and one that fires beside it.
static void silenced(struct model *model)
{
    scene_alerts(model);
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
    scene_many(model);
    fixture_key(model, KEY_CODE_F2);
    for (int i = 0; i < 6; i++)
        fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, KEY_CODE_RIGHT);
}

static void fault(struct model *model)
{
    scene_normal(model);
    fixture_round(model, STATUS_CORRUPT, "store.db: page 7 is damaged");
}

static void file(struct model *model)
{
    scene_normal(model);
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
    scene_normal(model);
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
    scene_normal(model);
    press(model, "4");
    scene_stages(model);
}

static void loads_failed(struct model *model)
{
    scene_losses(model);
    press(model, "4");
    scene_stages(model);
}

static void compact(struct model *model)
{
    scene_many(model);
    model->compact = true;
}

static void compact_quiet(struct model *model)
{
    scene_normal(model);
    model->compact = true;
}

static void empty_file(struct model *model)
{
    file(model);
    scene_empty(model);
}

static void cleared(struct model *model)
{
    scene_normal(model);
    fixture_event(model, (struct event){.kind = EVENT_CHANGED, .cleared = 152});
}

// A model that makes no tokens, beside one that does.
static void items(struct model *model)
{
    scene_normal(model);
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
    scene_fleet(model);
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
    scene_normal(model);
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
    scene_normal(model);
    press(model, FILTERED);
    scene_empty(model);
}

// How a scene is drawn, as tests/golden/tui/SCENE-FORM.txt.  ASCII: of such characters alone. MONO:
// with the looks that a terminal without colours gives the characters, below the screen.
enum {
    W60 = 1 << 0,
    W80 = 1 << 1,
    W120 = 1 << 2,
    W200 = 1 << 3,
    ASCII = 1 << 4,
    MONO = 1 << 5,
    ALL = W60 | W80 | W120 | W200 | ASCII | MONO,
    LINES80 = 1 << 6,
    LINES40 = 1 << 7,
    SMALL = 1 << 8,
    SIZES = 1 << 9,  // drawn at every size, too
    AGAIN = 1 << 10, // answered after the keys
};

static const struct {
    const char *name;
    int width, height;
} forms[] = {
    {"60x16", 60, 16},   {"80x24", 80, 24},       {"120x40", 120, 40},
    {"200x60", 200, 60}, {"ascii-80x24", 80, 24}, {"mono-80x24", 80, 24},
    {"80x3", 80, 3},     {"40x3", 40, 3},         {"10x2", 10, 2},
};

static const struct {
    const char *name;
    void (*fill)(struct model *model);
    const char *keys; // pressed then
    unsigned how;
} scenes[] = {
    {"connecting", nothing_yet, "", W80 | SIZES},
    {"nobody", nobody, "", W80 | SIZES},
    {"first-answer", first_answer, "", W80},
    {"normal", scene_normal, "", ALL | SIZES},
    {"empty", scene_empty, "", W60 | W80 | SIZES},
    {"empty-file", empty_file, "", W80},
    {"file", file, "", W80},
    {"losses", scene_losses, "", W80 | W200 | MONO},
    {"names", scene_names, "", W80 | ASCII | SIZES},
    {"fleet", scene_fleet, "", ALL | SIZES},
    {"fleet-open", scene_fleet, "o", W200 | SIZES},
    {"fleet-closed", scene_fleet, LEFT, W80},
    {"fleet-sorted", scene_fleet, ">>>>>>>>j", W120 | MONO},
    {"fleet-named", scene_fleet, "sI", W80},
    {"why", why, "", ALL | SIZES},
    {"why-asked", why_asked, "", W80},
    {"many", scene_many, "", W80 | W120},
    {"lost-contact", lost_contact, "", W80 | MONO},
    {"long-lost", long_lost, "", W60},
    {"paused", paused, "", W80 | MONO},
    {"fault", fault, "", W80},
    {"unwritable", scene_unwritable, "", W80},
    {"items", items, "", W80 | W120 | SIZES},
    {"sorted", scene_many, ">>>>>>>", W80},
    {"unfolded", scene_many, "o", W120},
    {"detail", scene_many, "jj\r", ALL | SIZES},
    {"detail-request", scene_normal, "3j\r", ALL | SIZES},
    {"detail-load", loads, "\r", ALL | SIZES},
    {"detail-machine", machine, "", ALL | SIZES},
    {"detail-device", equipped, "2jj\r", ALL | SIZES},
    {"detail-alert", scene_alerts, "7\r", ALL | SIZES},
    {"detail-alert-device", scene_alerts, "7j\r", W80},
    {"detail-compare", scene_normal, "6\r", W80},
    {"search", scene_many, "/gpu-1", W80 | SIZES},
    {"past", scene_many, "[", ALL | SIZES | AGAIN},
    {"averages", scene_many, "ttt", W120 | AGAIN},
    {"hosts", scene_normal, "2", ALL | SIZES},
    {"hosts-equipped", equipped, "2", W80 | W120 | W200 | MONO | SIZES},
    {"hosts-past", machines_before, "", W80 | W120 | W200},
    {"requests", scene_normal, "3", ALL | SIZES},
    {"requests-paged", scene_normal, "3" PAGE_DOWN, W60},
    {"requests-items", items, "3m", W80},
    {"requests-failed", scene_losses, "3", W80 | W120 | MONO | SIZES},
    {"explained", explained, "", ALL | SIZES},
    {"chooser", scene_normal, "v", ALL | SIZES},
    {"chooser-models", scene_many, "vj\r", W80 | SIZES},
    {"chooser-none", scene_normal, "vjjj\r", W60},
    {"loads", loads, "", ALL | SIZES},
    {"loads-none", nothing, "4", W60},
    {"loads-before", loads, "d", W80 | W120 | SIZES},
    {"loads-alone", loads_failed, "d", W80},
    {"loads-failed", loads_failed, "", W80 | MONO},
    {"compare", scene_normal, "6", ALL | SIZES},
    {"compare-none", nothing, "6", W60},
    {"alerts", scene_alerts, "7", ALL | SIZES},
    {"alerts-silenced", silenced, "7", W120 | SIZES},
    {"alerts-silenced-now", silenced, "", W80},
    {"alerts-none", scene_normal, "7", W80},
    {"alerts-now", scene_alerts, "", W120 | MONO},
    {"silence", scene_alerts, "7S", W80},
    {"ledger", scene_normal, "8", ALL | SIZES},
    {"ledger-losses", scene_losses, "8", ALL | SIZES},
    {"help", scene_normal, "?", ALL | SIZES},
    {"question", scene_normal, "c", W60 | W80 | SIZES},
    {"question-filtered", scene_normal, FILTERED "c", W80 | AGAIN},
    {"setup", setup, "", ALL | SIZES},
    {"prompt", scene_normal, "\\", W60 | W80},
    {"prompt-error", scene_normal, "\\where modle=x since 1h\r", W80 | SIZES},
    {"prompt-long", prompt_long, "", ASCII | SIZES},
    {"filtered", scene_normal, FILTERED, W80 | W120 | SIZES | AGAIN},
    {"filtered-empty", filtered_empty, "", W80},
    {"cleared", cleared, "", W80},
    {"pipelines", scene_pipelines, "5", ALL | SIZES},
    {"pipelines-unmeasured", scene_pipelines, "5jj", W80 | SIZES},
    {"pipelines-sorted", scene_pipelines, "5>>>>>>>I", W60},
    {"pipelines-filtered", scene_pipelines, "\\host=gpu-17\r5", W60 | AGAIN},
    {"pipelines-none", scene_normal, "5", W60},
    {"pipelines-empty", scene_empty, "5", W60 | SIZES},
    {"compact", compact, "", LINES80 | SIZES},
    {"compact-quiet", compact_quiet, "", LINES40},
    {"export", scene_normal, "e", W80},
    {"too-small", scene_normal, "", SMALL},
};

// A dashboard as in the scene.
static void play(struct model *model, size_t scene, int width, int height)
{
    fixture_model(model, width, height);
    scenes[scene].fill(model);
    press(model, scenes[scene].keys);
    if (scenes[scene].how & AGAIN)
        scenes[scene].fill(model);
}

// Files do not end in empty lines, as screens may.
static void trim(char *text)
{
    size_t size = strlen(text);
    while (size > 1 && text[size - 1] == '\n' && text[size - 2] == '\n')
        text[--size] = '\0';
}

// Whether the scene in that form is as in its file.
static bool is_as_it_was(size_t scene, size_t form)
{
    char path[512];
    struct model model;
    (void)snprintf(path, sizeof path, GOLDEN_FOLDER "/%s-%s.txt", scenes[scene].name,
                   forms[form].name);
    play(&model, scene, forms[form].width, forms[form].height);
    char *screen = fixture_screen(&model, 1u << form == ASCII);
    trim(screen);
    if (1u << form == MONO) {
        char *text = screen, *looks = fixture_looks(&model);
        trim(looks);
        assert_true(asprintf(&screen, "%s%s", text, looks) > 0);
        free(looks);
        free(text);
    }
    if (getenv("INFERSTAT_GOLDEN_UPDATE"))
        write_text(path, screen);
    char *golden = access(path, R_OK) == 0 ? read_file(path, NULL) : NULL;
    const bool is_same = golden && strcmp(golden, screen) == 0;
    if (!is_same)
        (void)fprintf(stderr, "%s differs.  Expected:\n%sDrawn:\n%s", path,
                      golden ? golden : "(no file)\n", screen);
    free(golden);
    free(screen);
    model_deinit(&model);
    return is_same;
}

TEST_CASE(screens_are_as_they_were)
{
    unsigned wrong = 0;
    for (size_t scene = 0; scene < COUNT_OF(scenes); scene++)
        for (size_t form = 0; form < COUNT_OF(forms); form++)
            wrong += scenes[scene].how & 1u << form && !is_as_it_was(scene, form);
    assert_int_equal(wrong, 0);
}

// No screen of any size reads or writes outside of itself (sanitizers watch), is
// wider or higher than it may be, or holds a control character.
TEST_CASE(every_size_draws)
{
    for (size_t i = 0; i < COUNT_OF(scenes); i++) {
        struct model model;
        if (!(scenes[i].how & SIZES))
            continue;
        play(&model, i, 80, 24);
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
