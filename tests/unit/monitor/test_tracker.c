// Trackers end to end: what an engine says is what a collector gets, over real
// sockets.
#include <math.h>
#include <time.h>

#include "common/core/stats/sketch.h"
#include "common/monitor/inferstat.h"
#include "common/wire/message.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

static int begin(void **state)
{
    (void)set_up(state);
    struct fixture *fixture = *state;
    fixture->collector = fake_collector_open(fixture->folder);
    (void)open_monitor(fixture);
    fixture->model = inferstat_name(fixture->monitor, "stories");
    fixture->device = inferstat_name(fixture->monitor, "cpu");
    return 0;
}

// Closes the monitor: everything must be there afterwards.
static void finish(struct fixture *fixture)
{
    struct inferstat_totals totals;
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    const struct fake_state seen = seen_by(fixture->collector);
    assert_true(seen.closed);
    assert_int_equal(totals.produced, totals.acknowledged);
    assert_int_equal(totals.produced, seen.records);
}

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static int64_t value(const struct fake_row *row, unsigned column)
{
    if (!(row->present >> column & 1))
        fail_msg("column %u is absent", column);
    return row->values[column].i;
}

static bool has(const struct fake_row *row, unsigned column)
{
    return row->present >> column & 1;
}

static struct fake_row row_of(struct fixture *fixture, enum record_kind kind, unsigned index)
{
    struct fake_row row;
    if (!fake_collector_row(fixture->collector, kind, index, &row))
        fail_msg("no row %u of kind %u", index, kind);
    return row;
}

static const char *const stage_names[] = {"device_selection", "file_opening", "read_header",
                                          "tokenizer_init", "model_building"};

// A delay shows in the stage it was in and in no other; the rest is in no stage.
STATE_CASE(test_load_stages, struct fixture *fixture)
{
    for (unsigned slow = 0; slow < COUNT_OF(stage_names); slow++) {
        struct inferstat_load *load =
            inferstat_load_begin(fixture->monitor, fixture->model, fixture->device);
        for (unsigned i = 0; i < COUNT_OF(stage_names); i++) {
            inferstat_load_start_stage(load, stage_names[i]);
            if (i == slow)
                sleep_ms(30);
        }
        inferstat_load_end_stage(load);
        sleep_ms(10);
        inferstat_load_set_model_bytes(load, 1000 + slow);
        inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
    }
    finish(fixture);

    const unsigned stages = COUNT_OF(stage_names);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD), stages);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD_STAGE),
                     stages * stages);
    for (unsigned slow = 0; slow < stages; slow++) {
        const struct fake_row load = row_of(fixture, RECORD_KIND_LOAD, slow);
        assert_string_equal(load.values[LOAD_MODEL].text, "stories");
        assert_string_equal(load.values[LOAD_DEVICE].text, "cpu");
        assert_int_equal(value(&load, LOAD_STATUS), RECORD_STATUS_OK);
        assert_int_equal(value(&load, LOAD_MODEL_BYTES), 1000 + slow);
        assert_false(has(&load, LOAD_ERROR));
        assert_false(has(&load, LOAD_DEVICE_MEMORY_BEFORE));
        assert_true(value(&load, LOAD_HOST_MEMORY_BEFORE) > 0);
        int64_t sum = 0;
        for (unsigned i = 0; i < stages; i++) {
            const struct fake_row stage =
                row_of(fixture, RECORD_KIND_LOAD_STAGE, slow * stages + i);
            assert_int_equal(value(&stage, LOAD_STAGE_PARENT), (int64_t)load.number);
            assert_int_equal(stage.stream, load.stream);
            assert_int_equal(value(&stage, LOAD_STAGE_ORDINAL), i);
            assert_string_equal(stage.values[LOAD_STAGE_STAGE].text, stage_names[i]);
            const int64_t duration = value(&stage, LOAD_STAGE_DURATION_NS);
            sum += duration;
            if (i == slow)
                assert_true(duration >= (int64_t)(29 * MS));
            assert_true(stage.started_ns >= load.started_ns);
        }
        const int64_t total = value(&load, LOAD_DURATION_NS);
        assert_true(sum <= total);
        assert_true(total - sum >= (int64_t)(9 * MS)); // the sleep that was in no stage
    }
}

STATE_CASE(test_load_that_fails, struct fixture *fixture)
{
    inferstat_set_device_memory(fixture->monitor, 777);
    struct inferstat_load *load = inferstat_load_begin(fixture->monitor, 0, fixture->device);
    inferstat_load_start_stage(load, "file_opening");
    inferstat_set_device_memory(fixture->monitor, 999);
    inferstat_load_set_page_cache_ratio(load, 0.25);
    inferstat_load_set_page_cache_ratio(load, 1.5); // makes no sense: ignored
    inferstat_load_set_storage_rate(load, 2e9);
    inferstat_load_set_h2d_rate(load, (double)NAN);
    inferstat_load_end(load, INFERSTAT_RESULT_ERROR, "bad magic \xff in file");

    load = inferstat_load_begin(fixture->monitor, 0, fixture->device);
    inferstat_load_set_model(load, fixture->model);
    inferstat_load_end(load, INFERSTAT_RESULT_CANCELLED, NULL);
    // The longest reason takes a second slot of the ring; what is longer is cut.
    char reason[301];
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    load = inferstat_load_begin(fixture->monitor, fixture->model, fixture->device);
    inferstat_load_start_stage(load, "file_opening");
    inferstat_load_end(load, INFERSTAT_RESULT_ERROR, reason);
    finish(fixture);

    const struct fake_row failed = row_of(fixture, RECORD_KIND_LOAD, 0);
    assert_string_equal(failed.values[LOAD_MODEL].text, "unknown");
    assert_int_equal(value(&failed, LOAD_STATUS), RECORD_STATUS_ERROR);
    assert_string_equal(failed.values[LOAD_ERROR].text, "bad magic \\xFF in file");
    assert_int_equal(value(&failed, LOAD_DEVICE_MEMORY_BEFORE), 777);
    assert_int_equal(value(&failed, LOAD_DEVICE_MEMORY_AFTER), 999);
    assert_true(fabs(failed.values[LOAD_PAGE_CACHE_RATIO].r - 0.25) < 1e-12);
    assert_true(fabs(failed.values[LOAD_STORAGE_RATE].r - 2e9) < 1);
    assert_false(has(&failed, LOAD_H2D_RATE));
    reason[255] = '\0';
    const struct fake_row long_reason = row_of(fixture, RECORD_KIND_LOAD, 2);
    assert_string_equal(long_reason.values[LOAD_ERROR].text, reason);
    const struct fake_row stage = row_of(fixture, RECORD_KIND_LOAD_STAGE, 1);
    assert_int_equal(value(&stage, LOAD_STAGE_PARENT), long_reason.number);
    const struct fake_row cancelled = row_of(fixture, RECORD_KIND_LOAD, 1);
    assert_int_equal(value(&cancelled, LOAD_STATUS), RECORD_STATUS_CANCELLED);
    assert_string_equal(cancelled.values[LOAD_MODEL].text, "stories");
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD_STAGE), 2);
}

// More stages than are kept: the last one has the rest of the time.
STATE_CASE(test_many_stages, struct fixture *fixture)
{
    struct inferstat_load *load =
        inferstat_load_begin(fixture->monitor, fixture->model, fixture->device);
    for (int i = 0; i < 40; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "stage%d", i);
        inferstat_load_start_stage(load, name);
        sleep_ms(1);
    }
    inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
    finish(fixture);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD_STAGE), 32);
    int64_t sum = 0;
    for (unsigned i = 0; i < 32; i++) {
        const struct fake_row stage = row_of(fixture, RECORD_KIND_LOAD_STAGE, i);
        sum += value(&stage, LOAD_STAGE_DURATION_NS);
    }
    const struct fake_row last = row_of(fixture, RECORD_KIND_LOAD_STAGE, 31);
    assert_string_equal(last.values[LOAD_STAGE_STAGE].text, "stage31");
    assert_true(value(&last, LOAD_STAGE_DURATION_NS) >= (int64_t)(9 * MS));
    const struct fake_row whole = row_of(fixture, RECORD_KIND_LOAD, 0);
    assert_true(sum <= value(&whole, LOAD_DURATION_NS));
}

STATE_CASE(test_startup, struct fixture *fixture)
{
    struct inferstat_startup *startup = inferstat_startup_begin(fixture->monitor);
    inferstat_startup_start_stage(startup, "options");
    sleep_ms(5);
    inferstat_startup_start_stage(startup, "listen");
    sleep_ms(20);
    inferstat_startup_end(startup);
    struct inferstat_summary summary;
    inferstat_get_summary(fixture->monitor, &summary);
    assert_true(summary.has_startup);
    assert_true(summary.startup_ns >= 25 * MS);
    finish(fixture);

    const struct fake_row row = row_of(fixture, RECORD_KIND_STARTUP, 0);
    const struct fake_row first = row_of(fixture, RECORD_KIND_LOAD_STAGE, 0);
    const struct fake_row second = row_of(fixture, RECORD_KIND_LOAD_STAGE, 1);
    assert_true(value(&row, STARTUP_MEMORY_START_BYTES) > 0);
    assert_true(value(&row, STARTUP_MEMORY_READY_BYTES) > 0);
    assert_int_equal(value(&first, LOAD_STAGE_PARENT), (int64_t)row.number);
    assert_int_equal(value(&second, LOAD_STAGE_PARENT), (int64_t)row.number);
    assert_true(value(&first, LOAD_STAGE_DURATION_NS) >= (int64_t)(5 * MS));
    assert_true(value(&second, LOAD_STAGE_DURATION_NS) >= (int64_t)(20 * MS));
    assert_true(value(&first, LOAD_STAGE_DURATION_NS) + value(&second, LOAD_STAGE_DURATION_NS) <=
                value(&row, STARTUP_DURATION_NS));
}

// ---- Inferences -------------------------------------------------------------------

// How an engine may use the tracker, and what must come of it.
struct use {
    const char *what;
    bool prefill, generation;
    unsigned tokens, counted; // tokens first, then counted ones
    enum inferstat_finish finish;
    bool ttft, decode, gaps;
};

static const struct use uses[] = {
    {"nothing", false, false, 0, 0, INFERSTAT_FINISH_CANCELLED, false, false, false},
    {"prefill only", true, false, 0, 0, INFERSTAT_FINISH_ERROR, false, false, false},
    {"generation without tokens", true, true, 0, 0, INFERSTAT_FINISH_STOP, false, false, false},
    {"one token", true, false, 1, 0, INFERSTAT_FINISH_STOP, true, false, false},
    {"two tokens", true, false, 2, 0, INFERSTAT_FINISH_LENGTH, true, true, true},
    {"many tokens", true, true, 250, 0, INFERSTAT_FINISH_LENGTH, true, true, true},
    {"no prefill", false, false, 5, 0, INFERSTAT_FINISH_STOP, true, true, true},
    {"counted after generation", true, true, 0, 7, INFERSTAT_FINISH_STOP, true, true, false},
    {"counted alone", true, false, 0, 7, INFERSTAT_FINISH_STOP, true, true, false},
    {"one counted", true, false, 0, 1, INFERSTAT_FINISH_STOP, true, false, false},
    {"tokens then counted", true, false, 3, 4, INFERSTAT_FINISH_CANCELLED, true, true, true},
};

static void use_tracker(struct inferstat_inference *inference, const struct use *use)
{
    if (use->prefill)
        inferstat_inference_start_prefill(inference);
    if (use->generation)
        inferstat_inference_start_generation(inference);
    for (unsigned i = 0; i < use->tokens; i++)
        inferstat_inference_token(inference);
    if (use->counted > 0)
        inferstat_inference_count_tokens(inference, use->counted);
    inferstat_inference_end(inference, use->finish);
}

static void check_use(const struct fake_row *row, const struct use *use, unsigned request)
{
    const int64_t e2e = value(row, INFERENCE_E2E_NS);
    const int64_t queue = value(row, INFERENCE_QUEUE_NS);
    const int64_t prefill = value(row, INFERENCE_PREFILL_NS);
    assert_int_equal(value(row, INFERENCE_REQUEST), request);
    assert_int_equal(value(row, INFERENCE_FINISH), (int64_t)use->finish);
    assert_int_equal(value(row, INFERENCE_GENERATED_TOKENS), use->tokens + use->counted);
    assert_int_equal(value(row, INFERENCE_PROMPT_TOKENS), 12);
    assert_int_equal(value(row, INFERENCE_CACHED_PROMPT_TOKENS), 5);
    assert_int_equal(value(row, INFERENCE_CONCURRENT), 1);
    assert_true(value(row, INFERENCE_HOST_MEMORY) > 0);
    assert_false(has(row, INFERENCE_DEVICE_MEMORY));
    assert_int_equal(has(row, INFERENCE_TTFT_NS), use->ttft);
    assert_int_equal(has(row, INFERENCE_DECODE_NS), use->decode);
    assert_int_equal(has(row, INFERENCE_ITL_MAX_NS), use->gaps);
    assert_int_equal(has(row, INFERENCE_ITL_P99_NS), use->gaps);
    assert_true(queue >= 0 && prefill >= 0 && queue + prefill <= e2e);
    if (use->ttft)
        assert_int_equal(value(row, INFERENCE_TTFT_NS), queue + prefill);
    if (use->decode)
        assert_int_equal(value(row, INFERENCE_TTFT_NS) + value(row, INFERENCE_DECODE_NS), e2e);
    if (use->gaps) {
        assert_true(value(row, INFERENCE_ITL_P99_NS) <= value(row, INFERENCE_ITL_MAX_NS));
        assert_true(value(row, INFERENCE_ITL_MAX_NS) <= value(row, INFERENCE_DECODE_NS));
    }
}

STATE_CASE(test_inference_uses, struct fixture *fixture)
{
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    for (unsigned i = 0; i < COUNT_OF(uses); i++) {
        inferstat_inference_begin(inference,
                                  &(struct inferstat_request){.model = fixture->model,
                                                              .device = fixture->device,
                                                              .request = i,
                                                              .prompt_tokens = 12,
                                                              .cached_prompt_tokens = 5});
        use_tracker(inference, &uses[i]);
        inferstat_inference_end(inference, INFERSTAT_FINISH_STOP); // once is enough
        inferstat_inference_token(inference);                      // nobody asked
        inferstat_inference_count_tokens(inference, 3);
    }
    inferstat_inference_free(inference);
    finish(fixture);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_INFERENCE),
                     COUNT_OF(uses));
    for (unsigned i = 0; i < COUNT_OF(uses); i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_INFERENCE, i);
        print_message("  %s\n", uses[i].what);
        check_use(&row, &uses[i], i);
    }
}

// The request's time is split where the engine says; arrival may lie before begin.
STATE_CASE(test_inference_times, struct fixture *fixture)
{
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    const uint64_t arrival = inferstat_clock_ns() - 40 * MS;
    inferstat_set_device_memory(fixture->monitor, 4321);
    inferstat_inference_begin(inference, &(struct inferstat_request){.model = fixture->model,
                                                                     .device = fixture->device,
                                                                     .arrival_ns = arrival});
    inferstat_inference_set_prompt(inference, 3, 9); // no more cached than there are
    inferstat_inference_start_prefill(inference);
    sleep_ms(20);
    inferstat_inference_token(inference);
    sleep_ms(10);
    inferstat_inference_token(inference);
    sleep_ms(30);
    inferstat_inference_token(inference);
    sleep_ms(50); // after the last token: nobody's time
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    // One in the future arrives now.
    inferstat_inference_begin(inference, &(struct inferstat_request){.arrival_ns = UINT64_MAX});
    inferstat_inference_end(inference, (enum inferstat_finish)77);
    inferstat_inference_free(inference);
    finish(fixture);

    const struct fake_row row = row_of(fixture, RECORD_KIND_INFERENCE, 0);
    const int64_t queue = value(&row, INFERENCE_QUEUE_NS);
    const int64_t prefill = value(&row, INFERENCE_PREFILL_NS);
    const int64_t decode = value(&row, INFERENCE_DECODE_NS);
    const int64_t max = value(&row, INFERENCE_ITL_MAX_NS);
    assert_int_equal(value(&row, INFERENCE_CACHED_PROMPT_TOKENS), 3);
    assert_int_equal(value(&row, INFERENCE_DEVICE_MEMORY), 4321);
    assert_true(queue >= (int64_t)(40 * MS));
    assert_true(prefill >= (int64_t)(20 * MS));
    assert_true(decode >= (int64_t)(40 * MS));
    assert_true(max >= (int64_t)(30 * MS) && max <= decode - (int64_t)(10 * MS));
    assert_int_equal(queue + prefill + decode, value(&row, INFERENCE_E2E_NS));
    // The 99th percentile of two gaps, by the nearest rank, is the longer.
    const int64_t p99 = value(&row, INFERENCE_ITL_P99_NS);
    assert_true(llabs(p99 - max) <= max / 100);
    const struct fake_row odd = row_of(fixture, RECORD_KIND_INFERENCE, 1);
    assert_int_equal(value(&odd, INFERENCE_FINISH), RECORD_FINISH_ERROR);
    assert_true(value(&odd, INFERENCE_E2E_NS) < (int64_t)SECOND);
    assert_string_equal(odd.values[INFERENCE_MODEL].text, "unknown");
}

// Why a request failed: what is longer than 255 bytes is cut at a character; a request that is
// refused before it is computed has the tokens of its prompt.
STATE_CASE(test_requests_that_fail, struct fixture *fixture)
{
    static const struct {
        const char *error, *recorded; // recorded NULL: absent
    } cases[] = {
        {"a prompt of 90 tokens does not fit", "a prompt of 90 tokens does not fit"},
        {"bad \xff byte", "bad \\xFF byte"},
        {"", NULL},
        {NULL, NULL},
    };
    char longest[301], cut[256];
    memset(longest, 'r', sizeof longest - 1);
    memcpy(longest + 253, "\xe2\x82\xac", 3);
    longest[sizeof longest - 1] = '\0';
    (void)snprintf(cut, sizeof cut, "%.253s", longest);
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    const struct inferstat_request request = {
        .model = fixture->model, .device = fixture->device, .prompt_tokens = 90};
    for (unsigned i = 0; i <= COUNT_OF(cases); i++) {
        inferstat_inference_begin(inference, &request);
        inferstat_inference_fail(inference, i < COUNT_OF(cases) ? cases[i].error : longest);
        inferstat_inference_fail(inference, "ended: records nothing");
    }
    inferstat_inference_begin(inference, &request);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP); // after records of two slots
    inferstat_inference_free(inference);
    finish(fixture);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_INFERENCE),
                     COUNT_OF(cases) + 2);
    for (unsigned i = 0; i <= COUNT_OF(cases); i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_INFERENCE, i);
        const char *recorded = i < COUNT_OF(cases) ? cases[i].recorded : cut;
        assert_int_equal(value(&row, INFERENCE_FINISH), RECORD_FINISH_ERROR);
        assert_int_equal(value(&row, INFERENCE_PROMPT_TOKENS), 90);
        assert_int_equal(has(&row, INFERENCE_ERROR), recorded != NULL);
        if (recorded)
            assert_string_equal(row.values[INFERENCE_ERROR].text, recorded);
    }
    const struct fake_row last = row_of(fixture, RECORD_KIND_INFERENCE, COUNT_OF(cases) + 1);
    assert_int_equal(value(&last, INFERENCE_FINISH), RECORD_FINISH_STOP);
    assert_false(has(&last, INFERENCE_ERROR));
}

STATE_CASE(test_begin_twice_and_free_midway, struct fixture *fixture)
{
    const struct inferstat_request request = {.model = fixture->model, .device = fixture->device};
    struct inferstat_inference *first = inferstat_inference_new(fixture->monitor);
    struct inferstat_inference *second = inferstat_inference_new(fixture->monitor);
    inferstat_inference_begin(first, &request);
    inferstat_inference_begin(second, &request);
    inferstat_inference_token(first);
    inferstat_inference_begin(first, &request);
    inferstat_inference_end(first, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(second);
    inferstat_inference_free(first);
    finish(fixture);
    static const struct {
        int finish, tokens, concurrent;
    } wanted[] = {{RECORD_FINISH_CANCELLED, 1, 2},
                  {RECORD_FINISH_STOP, 0, 2},
                  {RECORD_FINISH_CANCELLED, 0, 1}};
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_INFERENCE), 3);
    for (unsigned i = 0; i < COUNT_OF(wanted); i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_INFERENCE, i);
        assert_int_equal(value(&row, INFERENCE_FINISH), wanted[i].finish);
        assert_int_equal(value(&row, INFERENCE_GENERATED_TOKENS), wanted[i].tokens);
        assert_int_equal(value(&row, INFERENCE_CONCURRENT), wanted[i].concurrent);
    }
}

// The gaps of all requests arrive as sketches that add up to every gap there was.
STATE_CASE(test_itl_records_add_up, struct fixture *fixture)
{
    const uint32_t other = inferstat_name(fixture->monitor, "other");
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    uint64_t gaps[2] = {0, 0};
    uint64_t random = 7;
    for (unsigned i = 0; i < 60; i++) {
        const bool is_other = i / 10 % 2;
        inferstat_inference_begin(
            inference, &(struct inferstat_request){.model = is_other ? other : fixture->model,
                                                   .device = fixture->device});
        const uint64_t tokens = test_random(&random) % 300;
        for (uint64_t token = 0; token < tokens; token++) {
            // Gaps from nanoseconds to half a millisecond, so that a sketch fills
            // more than one record.
            const uint64_t until =
                inferstat_clock_ns() + (UINT64_C(1) << test_random(&random) % 19);
            while (test_random(&random) % 2 && inferstat_clock_ns() < until) {
                // Busy, as an engine would be.
            }
            inferstat_inference_token(inference);
        }
        gaps[is_other] += tokens > 1 ? tokens - 1 : 0;
        inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    }
    inferstat_inference_free(inference);
    finish(fixture);

    struct sketch *sums[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(sketch_new(&sums[i]), STATUS_OK);
    const unsigned count = fake_collector_count(fixture->collector, RECORD_KIND_ITL);
    for (unsigned i = 0; i < count; i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_ITL, i);
        const bool is_other = strcmp(row.values[ITL_MODEL].text, "other") == 0;
        assert_string_equal(row.values[ITL_DEVICE].text, "cpu");
        assert_true(value(&row, ITL_DURATION_NS) > 0);
        assert_int_equal(
            sketch_decode(sums[is_other], row.values[ITL_SKETCH].text, row.values[ITL_SKETCH].size),
            STATUS_OK);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sketch_count(sums[i]), gaps[i]);
        sketch_free(sums[i]);
    }
}

// The tokens of a request that goes on for more than a second are recorded meanwhile.
STATE_CASE(test_long_requests_are_seen, struct fixture *fixture)
{
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    inferstat_inference_begin(
        inference, &(struct inferstat_request){.model = fixture->model, .device = fixture->device});
    const uint64_t until = inferstat_clock_ns() + 10 * SECOND;
    while (fake_collector_count(fixture->collector, RECORD_KIND_ITL) < 2 &&
           inferstat_clock_ns() < until) {
        inferstat_inference_token(inference);
        sleep_ms(2);
    }
    assert_true(fake_collector_count(fixture->collector, RECORD_KIND_ITL) >= 2);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_INFERENCE), 0);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(inference);
    finish(fixture);
    const struct fake_row request = row_of(fixture, RECORD_KIND_INFERENCE, 0);
    struct sketch *sum;
    int64_t behind = 0;
    assert_int_equal(sketch_new(&sum), STATUS_OK);
    for (unsigned i = 0; i < fake_collector_count(fixture->collector, RECORD_KIND_ITL); i++) {
        const struct fake_row row = row_of(fixture, RECORD_KIND_ITL, i);
        assert_true(row.started_ns + (int64_t)(100 * MS) >= behind); // one after the other
        behind = row.started_ns + value(&row, ITL_DURATION_NS);
        assert_int_equal(
            sketch_decode(sum, row.values[ITL_SKETCH].text, row.values[ITL_SKETCH].size),
            STATUS_OK);
    }
    assert_int_equal(sketch_count(sum), value(&request, INFERENCE_GENERATED_TOKENS) - 1);
    sketch_free(sum);
}

// ---- Operations, devices, models ----------------------------------------------------

STATE_CASE(test_operations, struct fixture *fixture)
{
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, fixture->monitor, inferstat_name(fixture->monitor, "encode"));
    sleep_ms(5);
    timer.items = 64;
    timer.bytes = 4096;
    timer.device = fixture->device;
    const uint64_t duration = inferstat_timer_end(&timer, "{\"batch\": 3}");
    (void)inferstat_timer_end(&timer, NULL); // ended: records nothing
    assert_true(duration >= 5 * MS);
    inferstat_timer_begin(&timer, fixture->monitor, 60000); // no such name
    static char long_text[1000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    (void)inferstat_timer_end(&timer, long_text);
    static const char *const errors[] = {"no such voice", NULL, long_text};
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        inferstat_timer_begin(&timer, fixture->monitor, inferstat_name(fixture->monitor, "encode"));
        (void)inferstat_timer_fail(&timer, errors[i]);
    }
    finish(fixture);

    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_OPERATION), 5);
    const struct fake_row failed = row_of(fixture, RECORD_KIND_OPERATION, 2);
    assert_string_equal(failed.values[OPERATION_ERROR].text, "no such voice");
    assert_false(has(&failed, OPERATION_EXTRA));
    const struct fake_row unknown = row_of(fixture, RECORD_KIND_OPERATION, 3);
    assert_string_equal(unknown.values[OPERATION_ERROR].text, "unknown");
    const struct fake_row longest = row_of(fixture, RECORD_KIND_OPERATION, 4);
    assert_int_equal(longest.values[OPERATION_ERROR].size, 255);
    const struct fake_row row = row_of(fixture, RECORD_KIND_OPERATION, 0);
    assert_string_equal(row.values[OPERATION_OPERATION].text, "encode");
    assert_string_equal(row.values[OPERATION_DEVICE].text, "cpu");
    assert_int_equal(value(&row, OPERATION_DURATION_NS), (int64_t)duration);
    assert_int_equal(value(&row, OPERATION_ITEMS), 64);
    assert_int_equal(value(&row, OPERATION_BYTES), 4096);
    assert_string_equal(row.values[OPERATION_EXTRA].text, "{\"batch\": 3}");
    const struct fake_row plain = row_of(fixture, RECORD_KIND_OPERATION, 1);
    assert_string_equal(plain.values[OPERATION_OPERATION].text, "unknown");
    assert_false(has(&plain, OPERATION_DEVICE));
    assert_false(has(&plain, OPERATION_ITEMS));
    assert_false(has(&plain, OPERATION_ERROR));
    assert_int_equal(plain.values[OPERATION_EXTRA].size, 255);
}

STATE_CASE(test_operation_begun_elsewhere, struct fixture *fixture)
{
    const uint64_t begun = inferstat_clock_ns();
    sleep_ms(5);
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, fixture->monitor, inferstat_name(fixture->monitor, "encode"));
    timer.started_ns = begun;
    const uint64_t duration = inferstat_timer_end(&timer, NULL);
    assert_true(duration >= 5 * MS);
    finish(fixture);
    const struct fake_row row = row_of(fixture, RECORD_KIND_OPERATION, 0);
    assert_int_equal(value(&row, OPERATION_DURATION_NS), (int64_t)duration);
}

// Column, member, value, and whether the value may not have been measured.
#define PIPELINE_FIGURES(X)                                                                        \
    X(ITEMS, items, 64, false)                                                                     \
    X(DURATION_NS, duration_ns, 5 * MS, false)                                                     \
    X(CHUNK_BYTES, chunk_bytes, 1 << 20, false)                                                    \
    X(POOL_SIZE, pool_size, 3, false)                                                              \
    X(PREFETCH, prefetch, 8, false)                                                                \
    X(BYTES_H2D, bytes_h2d, 1 << 25, false)                                                        \
    X(BATCH_ITEMS, batch_items, 16, true)                                                          \
    X(COPY_BUSY_NS, copy_busy_ns, 1001, true)                                                      \
    X(COMPUTE_BUSY_NS, compute_busy_ns, 1002, true)                                                \
    X(BOTH_BUSY_NS, both_busy_ns, 1003, true)                                                      \
    X(EXPOSED_COPY_NS, exposed_copy_ns, 1004, true)                                                \
    X(COPY_STARVED_NS, copy_starved_ns, 1005, true)                                                \
    X(IDLE_NS, idle_ns, 1009, true)                                                                \
    X(POOL_ACQUIRES, pool_acquires, 32, true)                                                      \
    X(POOL_WAITS, pool_waits, 2, true)                                                             \
    X(POOL_WAIT_NS, pool_wait_ns, 1006, true)                                                      \
    X(WAITS_64US, pool_waits_below_64us, 1, true)                                                  \
    X(WAITS_4096US, pool_waits_below_4096us, 2, true)                                              \
    X(POOL_AVAILABLE_MIN, pool_available_min, 1, true)                                             \
    X(POOL_AVAILABLE_MAX, pool_available_max, 3, true)                                             \
    X(ITEM_P50_NS, item_p50_ns, 1007, true)                                                        \
    X(ITEM_P99_NS, item_p99_ns, 1008, true)                                                        \
    X(UNMEASURED_CHUNKS, unmeasured_chunks, 7, true)

STATE_CASE(test_pipelines, struct fixture *fixture)
{
    struct inferstat_pipeline pipeline;
    inferstat_pipeline_init(&pipeline);
    pipeline.workload = inferstat_name(fixture->monitor, "encode");
    pipeline.device = fixture->device;
    pipeline.model = inferstat_name(fixture->monitor, "iqp-16-f64");
    pipeline.result = INFERSTAT_RESULT_CANCELLED;
    pipeline.sync = INFERSTAT_SYNC_PERIODIC;
#define FILL(column, member, figure, may_lack) pipeline.member = figure;
    PIPELINE_FIGURES(FILL)
    inferstat_add_pipeline(fixture->monitor, &pipeline);
    // What cannot be is taken for what is nearest.
    pipeline.result = (enum inferstat_result)77;
    pipeline.sync = (enum inferstat_sync)77;
    pipeline.items = -5;
    pipeline.bytes_h2d = UINT64_MAX;
    pipeline.started_ns = UINT64_MAX;
    inferstat_add_pipeline(fixture->monitor, &pipeline);
    inferstat_add_pipeline(NULL, &pipeline);
    inferstat_add_pipeline(fixture->monitor, NULL);
    inferstat_pipeline_init(NULL);
    inferstat_pipeline_init(&pipeline);
    inferstat_add_pipeline(fixture->monitor, &pipeline);
    finish(fixture);

    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_PIPELINE), 3);
    const struct fake_row row = row_of(fixture, RECORD_KIND_PIPELINE, 0);
    assert_string_equal(row.values[PIPELINE_WORKLOAD].text, "encode");
    assert_string_equal(row.values[PIPELINE_DEVICE].text, "cpu");
    assert_string_equal(row.values[PIPELINE_MODEL].text, "iqp-16-f64");
    assert_int_equal(value(&row, PIPELINE_STATUS), 2);
    assert_int_equal(value(&row, PIPELINE_SYNC), 1);
    static const struct {
        unsigned column;
        int64_t value;
        bool may_lack;
    } figures[] = {
#define FIGURE(column, member, figure, may_lack) {PIPELINE_##column, figure, may_lack},
        PIPELINE_FIGURES(FIGURE)};
    for (size_t i = 0; i < COUNT_OF(figures); i++)
        assert_int_equal(value(&row, figures[i].column), figures[i].value);
    assert_false(has(&row, PIPELINE_ITEM_P95_NS));

    const struct fake_row odd = row_of(fixture, RECORD_KIND_PIPELINE, 1);
    assert_int_equal(value(&odd, PIPELINE_STATUS), INFERSTAT_RESULT_ERROR);
    assert_int_equal(value(&odd, PIPELINE_SYNC), INFERSTAT_SYNC_PERIODIC);
    assert_int_equal(value(&odd, PIPELINE_ITEMS), 0);
    assert_int_equal(value(&odd, PIPELINE_BYTES_H2D), MESSAGE_VALUE_MAX);

    // What was not measured is absent, never 0.
    const struct fake_row bare = row_of(fixture, RECORD_KIND_PIPELINE, 2);
    for (size_t i = 0; i < COUNT_OF(figures); i++)
        assert_int_equal(has(&bare, figures[i].column), !figures[i].may_lack);
    assert_false(has(&bare, PIPELINE_MODEL));
    assert_int_equal(value(&bare, PIPELINE_DURATION_NS), 0);
}

// Figures that cannot be must not cost the whole batch they would travel in.
STATE_CASE(test_absurd_figures, struct fixture *fixture)
{
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, fixture->monitor, inferstat_name(fixture->monitor, "encode"));
    timer.items = INT64_MAX;
    timer.bytes = INT64_MIN;
    (void)inferstat_timer_end(&timer, NULL);
    finish(fixture);
    const struct fake_row row = row_of(fixture, RECORD_KIND_OPERATION, 0);
    assert_int_equal(value(&row, OPERATION_ITEMS), MESSAGE_VALUE_MAX);
    assert_false(has(&row, OPERATION_BYTES));
}

STATE_CASE(test_devices_and_models, struct fixture *fixture)
{
    struct inferstat_device device;
    inferstat_device_init(&device);
    device.name = "cpu";
    device.memory_bytes = 1 << 30;
    assert_int_equal(inferstat_add_device(fixture->monitor, &device), fixture->device);
    device.ordinal = 1;
    device.name = "H200";
    device.uuid = "GPU-1234";
    device.compute_capability = "9.0";
    device.pcie_generation = 5;
    device.h2d_bytes_per_second = 5.5e10;
    device.flops_per_second = (double)INFINITY; // cannot be: absent
    assert_true(inferstat_add_device(fixture->monitor, &device) > 0);
    struct inferstat_model model;
    inferstat_model_init(&model);
    model.name = "stories";
    assert_int_equal(inferstat_add_model(fixture->monitor, &model), fixture->model);
    model.format = "gguf";
    model.digest = "sha256:00";
    model.parameters = 260000;
    model.kv_bytes_per_token = 0; // recurrent: it keeps none
    (void)inferstat_add_model(fixture->monitor, &model);
    model.weight_bytes_per_token = 250000;
    model.kv_bytes_per_token = INT64_C(1) << 53; // the most that the wire takes
    (void)inferstat_add_model(fixture->monitor, &model);
    finish(fixture);

    const struct fake_row plain = row_of(fixture, RECORD_KIND_DEVICE, 0);
    assert_int_equal(value(&plain, DEVICE_MEMORY_BYTES), 1 << 30);
    assert_int_equal(plain.present, UINT64_C(1) << DEVICE_ORDINAL | UINT64_C(1) << DEVICE_NAME |
                                        UINT64_C(1) << DEVICE_MEMORY_BYTES);
    const struct fake_row full = row_of(fixture, RECORD_KIND_DEVICE, 1);
    assert_string_equal(full.values[DEVICE_UUID].text, "GPU-1234");
    assert_string_equal(full.values[DEVICE_COMPUTE_CAPABILITY].text, "9.0");
    assert_int_equal(value(&full, DEVICE_PCIE_GENERATION), 5);
    assert_true(has(&full, DEVICE_H2D));
    assert_false(has(&full, DEVICE_FLOPS));
    const struct fake_row unknown = row_of(fixture, RECORD_KIND_MODEL, 0);
    assert_string_equal(unknown.values[MODEL_FORMAT].text, "unknown");
    assert_false(has(&unknown, MODEL_PARAMETERS));
    assert_false(has(&unknown, MODEL_KV_BYTES) || has(&unknown, MODEL_WEIGHT_BYTES));
    const struct fake_row none = row_of(fixture, RECORD_KIND_MODEL, 1);
    assert_true(has(&none, MODEL_KV_BYTES));
    assert_int_equal(value(&none, MODEL_KV_BYTES), 0);
    const struct fake_row known = row_of(fixture, RECORD_KIND_MODEL, 2);
    assert_string_equal(known.values[MODEL_DIGEST].text, "sha256:00");
    assert_int_equal(value(&known, MODEL_PARAMETERS), 260000);
    assert_int_equal(value(&known, MODEL_KV_BYTES), INT64_C(1) << 53);
    assert_int_equal(value(&known, MODEL_WEIGHT_BYTES), 250000);
}

TEST_MAIN_EACH(begin, tear_down, test_load_stages, test_load_that_fails, test_many_stages,
               test_startup, test_inference_uses, test_inference_times, test_requests_that_fail,
               test_begin_twice_and_free_midway, test_itl_records_add_up,
               test_long_requests_are_seen, test_operations, test_operation_begun_elsewhere,
               test_pipelines, test_absurd_figures, test_devices_and_models)
