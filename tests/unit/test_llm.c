// Loads and requests, as the worker runs them: what is recorded of them and what is
// written.  A monitor that reports to nobody tells.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/parse.h"
#include "common/sys/stop.h"
#include "server/workload/llm/load.h"
#include "server/workload/llm/serve.h"
#include "server/workload/llm/text_stream.h"
#include "server/workload/llm/token_sampler.h"
#include "tests/support/test.h"
#include "tests/unit/model_files.h"
#include "tests/unit/vectors.h"

// ---- A monitor ------------------------------------------------------------

static char load_line[2048]; // the last [LOAD] line

static void keep_line(void *context, enum inferstat_log_level level, const char *text)
{
    (void)context;
    if (level == INFERSTAT_LOG_INFO && strncmp(text, "[LOAD]", 6) == 0)
        (void)snprintf(load_line, sizeof load_line, "%s", text);
}

static struct inferstat_monitor *open_monitor(void)
{
    struct inferstat_options options;
    struct inferstat_monitor *monitor = NULL;
    struct inferstat_error err;
    inferstat_options_init(&options);
    options.report = 0;
    options.log = keep_line;
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK)
        fail_msg("%s", err.text);
    return monitor;
}

static void close_monitor(struct inferstat_monitor *monitor)
{
    assert_int_equal(inferstat_close(monitor, 0, NULL), INFERSTAT_OK);
}

static struct inferstat_event last_event(struct inferstat_monitor *monitor,
                                         enum inferstat_event_kind kind)
{
    struct inferstat_event event;
    assert_int_equal(inferstat_history(monitor, kind, &event, 1), 1);
    return event;
}

// ---- Loads ----------------------------------------------------------------

static const char *const stages[] = {"device_selection", "file_opening", "read_header",
                                     "tokenizer_init", "model_building"};

// The duration the last [LOAD] line gives `name`.
static int64_t duration_of(const char *name)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "%s=", name);
    const char *found = strstr(load_line, wanted);
    if (!found) {
        fail_msg("no %s in '%s'", name, load_line);
        return 0;
    }
    char text[32];
    found += strlen(wanted);
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(found, ",] "), found);
    int64_t ns;
    assert_int_equal(parse_duration(&ns, text, name, NULL), STATUS_OK);
    return ns;
}

static enum status load(struct llm **llm, struct inferstat_monitor *monitor,
                        struct llm_load_options options, struct error *err)
{
    options.device.threads = 1;
    return llm_load(llm, &options, monitor, err);
}

static void load_is_recorded(void **state)
{
    (void)state;
    const char *path = model_files_path("recorded.model.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, true, 1, NULL), STATUS_OK);
    struct inferstat_monitor *monitor = open_monitor();
    struct llm *llm = NULL;
    assert_int_equal(load(&llm, monitor, (struct llm_load_options){.path = path}, NULL), STATUS_OK);
    struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
    assert_string_equal(event.name, "recorded.model");
    assert_int_equal(event.status, INFERSTAT_RESULT_OK);
    int64_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(stages); i++)
        sum += duration_of(stages[i]);
    // The line rounds each of them, "1.04ms" to "1.0ms" at worst.
    assert_true((double)sum <= (double)event.duration_ns * 1.05);
    assert_non_null(strstr(load_line, "model=recorded.model"));
    llm_free(llm);
    llm_free(NULL);
    close_monitor(monitor);
}

// A delay inside a stage is that stage's and no other's.  Others may be slow by
// themselves on a busy machine, though not each time.
static void delay_shows_in_its_stage(void **state)
{
    (void)state;
    enum { DELAY_NS = 200000000, ATTEMPTS = 5 };
    const char *path = model_files_path("delayed.gguf");
    assert_int_equal(synthetic_write(path, &model_files_smallest, true, 1, NULL), STATUS_OK);
    struct inferstat_monitor *monitor = open_monitor();
    for (size_t delayed = 0; delayed < COUNT_OF(stages); delayed++) {
        bool others_quick = false;
        for (int attempt = 0; attempt < ATTEMPTS && !others_quick; attempt++) {
            struct llm *llm = NULL;
            struct llm_load_options options = {
                .path = path, .delay_stage = stages[delayed], .delay_ns = DELAY_NS};
            assert_int_equal(load(&llm, monitor, options, NULL), STATUS_OK);
            llm_free(llm);
            others_quick = true;
            for (size_t i = 0; i < COUNT_OF(stages); i++) {
                if (i == delayed)
                    assert_true(duration_of(stages[i]) >= DELAY_NS);
                else
                    others_quick = others_quick && duration_of(stages[i]) < DELAY_NS;
            }
        }
        assert_true(others_quick);
    }
    assert_true(llm_is_stage("read_header"));
    assert_false(llm_is_stage("other"));
    close_monitor(monitor);
}

static bool always(void)
{
    return true;
}

static void failed_loads_are_recorded(void **state)
{
    (void)state;
    const char *none = model_files_path("none.gguf");
    const char *text = model_files_write("text.gguf", "hello, world", 12);
    const char *odd = model_files_write("odd\xff\x1b.gguf", "hello, world", 12);
    const struct {
        struct llm_load_options options;
        enum status status;
        int result;
        const char *says, *name, *last_stage;
    } cases[] = {
        {{.path = none},
         STATUS_NOT_FOUND,
         INFERSTAT_RESULT_ERROR,
         "none.gguf: cannot open",
         "none",
         "file_opening"},
        {{.path = text},
         STATUS_CORRUPT,
         INFERSTAT_RESULT_ERROR,
         "text.gguf: not a GGUF file",
         "text",
         "read_header"},
        {{.path = text, .device.spec = "cuda"},
         STATUS_UNSUPPORTED,
         INFERSTAT_RESULT_ERROR,
         "no cuda back end",
         "text",
         "device_selection"},
        {{.path = odd},
         STATUS_CORRUPT,
         INFERSTAT_RESULT_ERROR,
         "not a GGUF file",
         "odd\\xFF\\x1B",
         "read_header"},
        {{.path = text, .cancelled = always},
         STATUS_CANCELLED,
         INFERSTAT_RESULT_CANCELLED,
         "stopped",
         "text",
         "device_selection"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct inferstat_monitor *monitor = open_monitor();
        struct llm *llm = NULL;
        struct error err = {0};
        assert_int_equal(load(&llm, monitor, cases[i].options, &err), cases[i].status);
        assert_null(llm);
        assert_non_null(strstr(err.text, cases[i].says));
        struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
        assert_int_equal(event.status, cases[i].result);
        assert_string_equal(event.name, cases[i].name);
        assert_non_null(strstr(load_line, cases[i].says));
        assert_non_null(strstr(load_line, cases[i].last_stage));
        close_monitor(monitor);
    }
}

// ---- Requests -------------------------------------------------------------

struct heard {
    char text[65536];
    size_t size;
    unsigned int failures, lines;
    size_t gone_after; // bytes after which the reader is gone; 0: never
    size_t stop_after; // bytes after which a stop is asked for; 0: never
    char why[512];
};

static bool hear(void *context, const char *text, size_t size)
{
    struct heard *heard = context;
    assert_true(heard->size + size < sizeof heard->text);
    memcpy(heard->text + heard->size, text, size);
    heard->size += size;
    heard->lines += size == 1 && *text == '\n';
    if (heard->stop_after && heard->size >= heard->stop_after)
        stop_request();
    return !heard->gone_after || heard->size < heard->gone_after;
}

static void hear_failure(void *context, uint64_t request, const char *why)
{
    struct heard *heard = context;
    (void)request;
    heard->failures++;
    (void)snprintf(heard->why, sizeof heard->why, "%s", why);
}

struct serving {
    struct inferstat_monitor *monitor;
    struct llm *llm;
    struct heard heard;
    struct llm_figures figures;
    enum status status;
    struct error err;
};

static struct serving *start_with(const char *path)
{
    struct serving *s = calloc(1, sizeof *s);
    s->monitor = open_monitor();
    assert_int_equal(load(&s->llm, s->monitor, (struct llm_load_options){.path = path}, NULL),
                     STATUS_OK);
    return s;
}

static struct serving *start(void)
{
    const char *path = model_files_path("served.gguf");
    assert_int_equal(synthetic_write(path, synthetic_find("tiny"), false, 1, NULL), STATUS_OK);
    return start_with(path);
}

static void end(struct serving *s)
{
    llm_free(s->llm);
    close_monitor(s->monitor);
    free(s);
}

// Serves the lines of `prompts`, or "hello" where NULL.
static void serve(struct serving *s, struct llm_serve_options options, const char *lines)
{
    struct prompts *prompts = NULL;
    struct llm_server *server = NULL;
    options.write = hear;
    options.write_context = &s->heard;
    options.failed = hear_failure;
    options.failed_context = &s->heard;
    if (options.sampler.top_p == 0.0)
        options.sampler.top_p = 1.0;
    if (lines)
        assert_int_equal(prompts_from_file(&prompts,
                                           model_files_write("prompts", lines, strlen(lines)),
                                           false, -1, NULL),
                         STATUS_OK);
    else
        assert_int_equal(prompts_from_text(&prompts, "hello", NULL), STATUS_OK);
    if (llm_server_new(&server, s->llm, &options, s->monitor, &s->err) != STATUS_OK)
        fail_msg("%s", s->err.text);
    s->status = llm_server_run(server, prompts, &s->figures, &s->err);
    llm_server_free(server);
    prompts_free(prompts);
}

// What greedy generation gives, computed without the server.
static void generate(const struct serving *s, const char *prompt, uint32_t *ids, size_t count)
{
    struct llama_session *session = NULL;
    struct token_list list;
    float *logits = calloc(tokenizer_count(s->llm->tokenizer), sizeof *logits);
    assert_int_equal(llama_session_new(&session, s->llm->llama, 128, NULL), STATUS_OK);
    assert_int_equal(tokenizer_encode(s->llm->tokenizer, prompt, strlen(prompt),
                                      (struct encode_options){.add_special = true}, &list, NULL),
                     STATUS_OK);
    assert_int_equal(llama_session_eval(session, list.ids, list.count, logits, NULL), STATUS_OK);
    for (size_t i = 0; i < count; i++) {
        ids[i] = 0;
        for (uint32_t j = 1; j < tokenizer_count(s->llm->tokenizer); j++)
            if (logits[j] > logits[ids[i]])
                ids[i] = j;
        assert_int_equal(llama_session_eval(session, &ids[i], 1, logits, NULL), STATUS_OK);
    }
    llama_session_free(session);
    free(list.ids);
    free(logits);
}

static void requests_are_counted(void **state)
{
    (void)state;
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 20}, "first\nthe second one\nthird\n");
    assert_int_equal(s->status, STATUS_OK);
    assert_int_equal(s->figures.requests, 3);
    assert_int_equal(s->figures.completed, 3);
    assert_int_equal(s->figures.generated_tokens, 60);
    assert_int_equal(s->figures.decoded_tokens, 57);
    assert_int_equal(s->figures.first_tokens, 3);
    assert_true(s->heard.lines >= 3);
    struct inferstat_event events[8];
    size_t count = inferstat_history(s->monitor, INFERSTAT_EVENT_INFERENCE, events, 8);
    assert_int_equal(count, 3);
    uint64_t prompt_tokens = 0;
    uint64_t e2e_ns = 0;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(events[i].generated_tokens, 20);
        assert_int_equal(events[i].status, INFERSTAT_FINISH_LENGTH);
        assert_string_equal(events[i].name, "served");
        prompt_tokens += events[i].prompt_tokens;
        e2e_ns += events[i].duration_ns;
    }
    assert_int_equal(s->figures.prompt_tokens, prompt_tokens);
    assert_int_equal(s->figures.e2e_ns, e2e_ns);
    assert_true(s->figures.duration_ns >= e2e_ns);
    end(s);
}

// The text is the pieces of the tokens the model likes best.
static void text_is_what_the_model_says(void **state)
{
    (void)state;
    struct serving *s = start();
    uint32_t ids[20];
    generate(s, "hello", ids, COUNT_OF(ids));
    serve(s, (struct llm_serve_options){.tokens = 20, .requests = 1}, NULL);
    char expected[1024];
    size_t size = 0;
    struct text_stream stream = {0};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        struct token_piece piece = tokenizer_piece(s->llm->tokenizer, ids[i]);
        for (size_t j = 0; j < piece.size; j++)
            size += text_stream_put(&stream, (unsigned char)piece.data[j], expected + size);
    }
    size += text_stream_finish(&stream, expected + size);
    expected[size++] = '\n';
    assert_int_equal(s->heard.size, size);
    assert_memory_equal(s->heard.text, expected, size);
    end(s);
}

// An end-of-text token ends the answer, is not counted and not written.
static void end_token_stops(void **state)
{
    (void)state;
    struct serving *s = start();
    uint32_t ids[8];
    generate(s, "hello", ids, COUNT_OF(ids));
    end(s);
    size_t n = 1; // the first token that differs from all before
    while (n < COUNT_OF(ids) && ids[n] == ids[0])
        n++;
    if (n == COUNT_OF(ids))
        n = 0; // it says one thing only: then it says nothing
    size_t size;
    unsigned char *data = vectors_file(model_files_path("served.gguf"), &size);
    size_t at = model_files_find_key(data, size, "tokenizer.ggml.eos_token_id");
    memcpy(data + at, &ids[n], sizeof ids[n]);
    const char *path = model_files_write("ending.gguf", data, size);
    free(data);

    s = start_with(path);
    serve(s, (struct llm_serve_options){.tokens = 8, .requests = 1}, NULL);
    struct inferstat_event event = last_event(s->monitor, INFERSTAT_EVENT_INFERENCE);
    assert_int_equal(event.status, INFERSTAT_FINISH_STOP);
    assert_int_equal(event.generated_tokens, n);
    assert_int_equal(s->figures.completed, 1);
    end(s);
}

static void context_ends_an_answer(void **state)
{
    (void)state;
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 1000, .context = 12, .requests = 1}, NULL);
    struct inferstat_event event = last_event(s->monitor, INFERSTAT_EVENT_INFERENCE);
    assert_int_equal(event.status, INFERSTAT_FINISH_LENGTH);
    // The last token is said when there is no room to compute with it.
    assert_int_equal(event.prompt_tokens + event.generated_tokens, 12 + 1);
    end(s);
}

// A prompt that does not fit fails; those around it are served.
static void one_failure_is_one(void **state)
{
    (void)state;
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 2, .context = 12},
          "a\nthis one is far too long to fit\nb\n");
    assert_int_equal(s->status, STATUS_OK);
    assert_int_equal(s->figures.requests, 3);
    assert_int_equal(s->figures.completed, 2);
    assert_int_equal(s->figures.failed, 1);
    assert_int_equal(s->heard.failures, 1);
    assert_non_null(strstr(s->heard.why, "does not fit a context of 12"));
    struct inferstat_event events[3];
    assert_int_equal(inferstat_history(s->monitor, INFERSTAT_EVENT_INFERENCE, events, 3), 3);
    assert_int_equal(events[1].status, INFERSTAT_FINISH_ERROR);
    assert_int_equal(events[1].generated_tokens, 0);
    end(s);
}

static void same_seed_same_text(void **state)
{
    (void)state;
    struct heard texts[3];
    static const uint64_t seeds[] = {5, 5, 6};
    for (size_t i = 0; i < 3; i++) {
        struct serving *s = start();
        struct token_sampler_options sampler = {.temperature = 1, .top_p = 0.9, .seed = seeds[i]};
        serve(s, (struct llm_serve_options){.tokens = 30, .requests = 2, .sampler = sampler}, NULL);
        texts[i] = s->heard;
        end(s);
    }
    assert_int_equal(texts[0].size, texts[1].size);
    assert_memory_equal(texts[0].text, texts[1].text, texts[0].size);
    assert_true(texts[0].size != texts[2].size ||
                memcmp(texts[0].text, texts[2].text, texts[0].size) != 0);
}

// With a rate, requests arrive by the clock: those that come while another is
// served wait, and their waiting counts.
static void queues_are_real(void **state)
{
    (void)state;
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 20, .requests = 4, .rate = 1e6}, NULL);
    struct inferstat_event events[4];
    assert_int_equal(inferstat_history(s->monitor, INFERSTAT_EVENT_INFERENCE, events, 4), 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(events[i].duration_ns > events[i - 1].duration_ns);
        assert_true(events[i].ttft_ns > events[i - 1].ttft_ns);
        // All it waited for is in it: the requests before it took that long.
        assert_true(events[i].ttft_ns + 1000 * i >= events[i - 1].duration_ns);
    }
    end(s);
}

static void rate_spreads_requests(void **state)
{
    (void)state;
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 1, .requests = 4, .rate = 50}, NULL);
    assert_int_equal(s->figures.completed, 4);
    assert_true(s->figures.duration_ns >= 60000000); // the fourth arrives after 3/50 s
    end(s);
}

static void reader_that_is_gone_ends_it(void **state)
{
    (void)state;
    struct serving *s = start();
    s->heard.gone_after = 10;
    serve(s, (struct llm_serve_options){.tokens = 100, .requests = 3}, NULL);
    assert_int_equal(s->status, STATUS_IO);
    assert_int_equal(s->figures.requests, 1);
    assert_int_equal(s->figures.cancelled, 1);
    end(s);
}

// Last, as a stop is for good: the request under way is recorded as cancelled.
static void stop_cancels(void **state)
{
    (void)state;
    struct serving *s = start();
    s->heard.stop_after = 10;
    serve(s, (struct llm_serve_options){.tokens = 100}, NULL);
    assert_int_equal(s->status, STATUS_OK);
    assert_int_equal(s->figures.requests, 1);
    assert_int_equal(s->figures.cancelled, 1);
    struct inferstat_event event = last_event(s->monitor, INFERSTAT_EVENT_INFERENCE);
    assert_int_equal(event.status, INFERSTAT_FINISH_CANCELLED);
    assert_in_range(event.generated_tokens, 1, 99);
    assert_int_equal(s->figures.generated_tokens, event.generated_tokens);
    end(s);
}

int main(void)
{
    if (stop_install(NULL) != STATUS_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_is_recorded),
        cmocka_unit_test(delay_shows_in_its_stage),
        cmocka_unit_test(failed_loads_are_recorded),
        cmocka_unit_test(requests_are_counted),
        cmocka_unit_test(text_is_what_the_model_says),
        cmocka_unit_test(end_token_stops),
        cmocka_unit_test(context_ends_an_answer),
        cmocka_unit_test(one_failure_is_one),
        cmocka_unit_test(same_seed_same_text),
        cmocka_unit_test(queues_are_real),
        cmocka_unit_test(rate_spreads_requests),
        cmocka_unit_test(reader_that_is_gone_ends_it),
        cmocka_unit_test(stop_cancels),
    };
    return cmocka_run_group_tests(tests, model_files_setup, model_files_teardown);
}
