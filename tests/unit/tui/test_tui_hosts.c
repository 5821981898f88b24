// The views Hosts and Ledger: the table that joins hosts and devices, and what comes first.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "client/tui/machines.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

// Hosts in trouble come first, each before its devices; the cursor stays on its row.
TEST_CASE(what_has_trouble_comes_first)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    const struct result *machines = model_answer(model, POLL_MACHINES);
    fixture_key(model, '2');
    size_t row;
    assert_true(view_selected(model, 0, &row));
    assert_true(result_is(machines, row, "host", "gpu-18"));
    assert_int_equal(result_integer(machines, row, "is_host", 0), 1);
    for (int i = 0; i < 2; i++)
        fixture_key(model, KEY_CODE_DOWN);
    assert_true(view_selected(model, 0, &row));
    assert_true(result_is(machines, row, "device", "cuda:1"));
    assert_true(result_is(machines, row, "pcie", "x8!"));
    assert_true(result_is(machines, row, "trouble", "! throttling, PCIe width, XID 48"));
    fixture_free(model);
}

static void answer_hosts(struct model *model, const char *text)
{
    fixture_answer(model, POLL_HOSTS, text);
    fixture_answer(model, POLL_DEVICES, "host|device\n");
    fixture_answer(model, POLL_EVENTS, "host|device|event\n");
    fixture_round(model, STATUS_OK, NULL);
}

// Details stay at their row, wherever it goes, and say when it is gone; the poller hears of it.
TEST_CASE(an_open_detail_keeps_its_row)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_key(model, '2');
    answer_hosts(model, "host|events|cpu_util_ratio\na|-|0.1\nb|-|0.2\n");
    fixture_key(model, '\r');
    assert_string_equal(model->scope.machine.by[QUERY_BY_HOST], "a");
    answer_hosts(model, "host|events|cpu_util_ratio\na|-|0.1\nb|disk|0.2\n"); // b comes first
    assert_string_equal(model->scope.machine.by[QUERY_BY_HOST], "a");
    fixture_answer(model, POLL_HOSTS, "host|events|cpu_util_ratio\nb|disk|0.2\n");
    assert_int_equal(fixture_event(model, (struct event){.kind = EVENT_ROUND}),
                     EFFECT_SCOPE | EFFECT_ASK);
    assert_string_equal(model->scope.machine.by[QUERY_BY_HOST], "");
    assert_true(fixture_shows(model, "The row is no longer among those that are shown"));
    answer_hosts(model, "host|events|cpu_util_ratio\nb|-|0.2\na|-|0.1\n"); // it is back
    assert_string_equal(model->scope.machine.by[QUERY_BY_HOST], "a");
    fixture_key(model, KEY_CODE_ESCAPE);
    answer_hosts(model, "host|events|cpu_util_ratio\nb|-|0.2\n");
    size_t row;
    assert_true(view_selected(model, 0, &row)); // held no more
    fixture_free(model);
}

// The details of a device begin with the processes that use it, where they are known, and the
// models on its host.
TEST_CASE(a_detail_tells_who_uses_a_device)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_key(model, '2');
    fixture_answer(model, POLL_NOW,
                   "model|host|state|group_size|group_by\nm|-|ok|2|model\nm|a|ok|-|model\n"
                   "m|b|slow|-|model\nn|a|slow|-|model\nold|a|ended|-|model\n-|a|down|-|model\n");
    fixture_answer(model, POLL_HOSTS, "host|events\na|-\nc|-\n");
    fixture_answer(model, POLL_DEVICES,
                   "host|device|gpu_util_ratio:ratio|processes\n"
                   "a|cuda:0|0.25|vllm 4711 70.0 GB, 512\na|cuda:1|0.25|-\nc|cuda:0|0.5|-\n");
    fixture_answer(model, POLL_EVENTS, "host|device|event\n");
    fixture_round(model, STATUS_OK, NULL);
    static const char processes[] = "\n processes                      vllm 4711 70.0 GB, 512\n",
                      models[] = "\n models on the host             m ok, n slow\n";
    static const struct {
        bool has_processes, has_models;
    } rows[] = {{false, true}, {true, true}, {false, true}, {false, false}, {false, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fixture_key(model, '\r');
        assert_int_equal(fixture_shows(model, processes), rows[i].has_processes);
        assert_int_equal(fixture_shows(model, "processes"), rows[i].has_processes);
        assert_int_equal(fixture_shows(model, models), rows[i].has_models);
        assert_int_equal(fixture_shows(model, "models on"), rows[i].has_models);
        fixture_key(model, KEY_CODE_ESCAPE);
        fixture_key(model, KEY_CODE_DOWN);
    }
    fixture_free(model);
}

// A row's details tell each figure once, and no two by one name.
TEST_CASE(a_detail_tells_each_figure_once)
{
    static const char *const lines[] = {
        "\n memory_used_ratio              50.0 %", "\n memory_used_bytes              4.0 GB",
        "\n memory                         8.0 GB", "\n gpu_util                       25.0 %",
        "\n trouble                        ! throttled"};
    static const char *const absent[] = {"\n util ", "\n pcie ", "\n events ", "\n as_of ",
                                         "\n memory_used "};
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_key(model, '2');
    fixture_answer(model, POLL_HOSTS, "host|events\na|-\n");
    fixture_answer(model, POLL_DEVICES,
                   "host|device|gpu_util_ratio:ratio|memory_used_bytes:bytes|memory_used_ratio:"
                   "ratio|memory_bytes:bytes|pcie_width|pcie_width_max|events|as_of_ns:unix_ns\n"
                   "a|cuda:0|0.25|4294967296|0.5|8589934592|8|16|throttled|5\n");
    fixture_answer(model, POLL_EVENTS, "host|device|event\n");
    fixture_round(model, STATUS_OK, NULL);
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, '\r');
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        assert_true(fixture_shows(model, lines[i]));
    for (size_t i = 0; i < COUNT_OF(absent); i++)
        assert_false(fixture_shows(model, absent[i]));
    fixture_free(model);
}

// Without samples in a window of the past a sampler may well run; with some, they are its last
// ones.
TEST_CASE(a_past_window_without_samples_asks_for_no_sampler)
{
    static const char *const texts[] = {"no samples: inferstat-worker watch makes them",
                                        "no samples in this window (0: up to now)"};
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_key(model, '2');
    for (int is_past = 0; is_past < 2; is_past++) {
        answer_hosts(model, "host|events\n");
        assert_true(fixture_shows(model, texts[is_past]));
        fixture_key(model, '[');
    }
    answer_hosts(model, "host|cpu_util_ratio|cpu_util_mean_ratio:ratio\na|0.25|0.125\n");
    assert_true(fixture_shows(model, "last samples and means of the window"));
    assert_true(fixture_shows(model, "\n of all time · "));
    assert_true(fixture_shows(model, "25%") && fixture_shows(model, "12.5 %"));
    fixture_free(model);
}

// Hosts, devices and events are joined at the end of their round.
TEST_CASE(machines_are_joined_once_a_round)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_answer(model, POLL_HOSTS, "host|events|cpu_util_ratio\nalone|-|0.1\n");
    fixture_answer(model, POLL_DEVICES, "host|device\n");
    assert_true(result_row_count(model_answer(model, POLL_MACHINES)) > 1);
    fixture_round(model, STATUS_OK, NULL);
    assert_int_equal(result_row_count(model_answer(model, POLL_MACHINES)), 1);
    assert_true(result_is(model_answer(model, POLL_MACHINES), 0, "host", "alone"));
    fixture_free(model);
}

// A device that repeats an error, however often, hides no other's; of its own the newest is told.
TEST_CASE(many_errors_hide_none)
{
    static char text[65536] = "host|device|event|code\n";
    size_t used = strlen(text);
    for (int i = 0; i < 900; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "a|cuda:0|xid|%d\n", 1000 - i);
    (void)snprintf(text + used, sizeof text - used, "a|-|disk_full|-\nb|cuda:0|xid|79\n");
    struct result *devices = fixture_result("host|device\na|cuda:0\nb|cuda:0\n");
    struct result *events = fixture_result(text);
    struct result *joined = machines_join(&(struct machines){.devices = devices, .events = events});
    assert_int_equal(result_row_count(joined), 4);
    assert_true(result_is(joined, 1, "trouble", "! XID 1000"));
    assert_true(result_is(joined, 3, "trouble", "! XID 79"));
    result_free(joined);
    result_free(events);
    result_free(devices);
}

// The ledger tells how fast the store grows, and runs that lost records come first.
TEST_CASE(the_ledger_tells_losses_and_growth)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    size_t row;
    fixture_key(model, '8');
    fixture_answer(model, POLL_RUNS,
                   "host|pid|dropped|unnumbered|balanced|run\na|1|0|0|1|r1\nb|2|3|0|1|r2\n");
    assert_true(view_selected(model, 0, &row));
    assert_int_equal(row, 1);
    assert_true(model->first_size > 0);
    model->first_size_ns = model->wall_now_ns - INT64_C(1800000000000);
    model->first_size = model_figure(model, "store_bytes", 0) - 1024 * 1024;
    assert_true(fixture_shows(model, "+2.0 MB/h"));
    fixture_free(model);
}

// Each of the answers may be missing; devices without a sample of their host have one all the same.
TEST_CASE(answers_may_be_missing)
{
    struct result *devices =
        fixture_result("host|device|pcie_width|pcie_width_max|gpu_util_ratio\n"
                       "b|cuda:0|16|16|0.5\na|cuda:0|-|-|-\nb|cuda:1|8|16|1\n");
    struct result *hosts = fixture_result("host|events|cpu_util_ratio\na|disk\nc|-|0.25\n");
    // A sampler that closed is no trouble, one that is gone is.
    struct result *ended = fixture_result("host|events|sampler_ended_ns|sampler_closed\n"
                                          "a|-|5|1\nb|-|-|-\nc|-|5|-\nd|disk|5|-\n");
    struct result *marked = machines_join(&(struct machines){.hosts = ended});
    static const char *const order[][2] = {
        {"c", "! not sampled"}, {"d", "! disk, not sampled"}, {"a", NULL}, {"b", NULL}};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        assert_true(result_is(marked, i, "host", order[i][0]));
        assert_int_equal(result_integer(marked, i, "in_trouble", 0), order[i][1] != NULL);
        assert_true(order[i][1] ? result_is(marked, i, "trouble", order[i][1])
                                : result_get(marked, i, "trouble").type == VALUE_NULL);
    }
    result_free(marked);
    result_free(ended);
    static const struct {
        bool has_hosts, has_devices;
        const char *rows; // host, and device of those
    } cases[] = {{true, true, "a a/cuda:0 c b b/cuda:0 b/cuda:1 "},
                 {true, false, "a c "},
                 {false, true, "b b/cuda:0 b/cuda:1 a a/cuda:0 "},
                 {false, false, ""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct machines machines = {.hosts = cases[i].has_hosts ? hosts : NULL,
                                          .devices = cases[i].has_devices ? devices : NULL};
        struct result *joined = machines_join(&machines);
        char text[256] = "";
        for (size_t row = 0; joined && row < result_row_count(joined); row++) {
            char host[32], device[32];
            const bool is_host = result_integer(joined, row, "is_host", 0) == 1;
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s%s%s ",
                           result_text(host, sizeof host, joined, row, "host"), is_host ? "" : "/",
                           is_host ? ""
                                   : result_text(device, sizeof device, joined, row, "device"));
        }
        assert_string_equal(text, cases[i].rows);
        result_free(joined);
    }
    result_free(hosts);
    result_free(devices);
}

TEST_MAIN(an_open_detail_keeps_its_row, what_has_trouble_comes_first, many_errors_hide_none,
          machines_are_joined_once_a_round, the_ledger_tells_losses_and_growth,
          answers_may_be_missing, a_past_window_without_samples_asks_for_no_sampler,
          a_detail_tells_each_figure_once, a_detail_tells_who_uses_a_device)
