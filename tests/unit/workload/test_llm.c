// Requests, as the worker serves them: what is recorded of them and what is written.  A monitor
// that reports to nobody tells.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/sys/process.h"
#include "common/sys/stop.h"
#include "server/workload/llm/serve.h"
#include "server/workload/llm/text_stream.h"
#include "server/workload/llm/token_sampler.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/workload/llm_fixture.h"
#include "tests/unit/workload/model_files.h"

// ---- Requests -------------------------------------------------------------

struct heard {
    char text[65536];
    size_t size;
    unsigned int failures, lines;
    size_t gone_after; // bytes after which the reader is gone; 0: never
    int gone_error;    // as which errno; 0: EPIPE
    int pipe;          // gets a line while the first request is served; 0: none
    unsigned int texts;
    uint64_t line_ns;  // when
    size_t stop_after; // bytes after which a stop is asked for; 0: never
    char why[512];
};

// While the first answer is written, the second prompt comes; then some time passes.
static void send_line(struct heard *heard)
{
    enum { PAUSE_NS = 50000000 };
    if (++heard->texts == 4) {
        clock_sleep_until_ns(clock_monotonic_ns() + PAUSE_NS);
        heard->line_ns = clock_monotonic_ns();
        assert_int_equal(write(heard->pipe, "second\n", 7), 7);
    } else if (heard->texts == 6) {
        clock_sleep_until_ns(clock_monotonic_ns() + PAUSE_NS);
        (void)close(heard->pipe);
        heard->pipe = 0;
    }
}

static int hear(void *context, const char *text, size_t size)
{
    struct heard *heard = context;
    assert_true(heard->size + size < sizeof heard->text);
    memcpy(heard->text + heard->size, text, size);
    heard->size += size;
    heard->lines += size == 1 && *text == '\n';
    if (heard->stop_after && heard->size >= heard->stop_after)
        stop_request();
    if (heard->pipe)
        send_line(heard);
    if (!heard->gone_after || heard->size < heard->gone_after)
        return 0;
    return heard->gone_error ? heard->gone_error : EPIPE;
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
    assert_int_equal(
        synthetic_write(path, &synthetic_shapes[SYNTHETIC_TINY], TENSOR_F32, 1, 1, NULL),
        STATUS_OK);
    return start_with(path);
}

static void end(struct serving *s)
{
    llm_free(s->llm);
    close_monitor(s->monitor);
    free(s);
}

static void serve_prompts(struct serving *s, struct llm_serve_options options,
                          struct prompts *prompts)
{
    struct llm_server *server = NULL;
    options.write = hear;
    options.write_context = &s->heard;
    options.failed = hear_failure;
    options.failed_context = &s->heard;
    if (options.sampler.top_p == 0.0)
        options.sampler.top_p = 1.0;
    if (llm_server_new(&server, s->llm, &options, s->monitor, &s->err) != STATUS_OK)
        fail_msg("%s", s->err.text);
    s->status = llm_server_run(server, prompts, &s->figures, &s->err);
    llm_server_free(server);
    prompts_free(prompts);
}

static void serve_file(struct serving *s, struct llm_serve_options options, const char *path)
{
    struct prompts *prompts = NULL;
    assert_int_equal(prompts_from_file(&prompts, path, false, -1, NULL), STATUS_OK);
    serve_prompts(s, options, prompts);
}

// Serves the lines of `lines`, or "hello" where NULL.
static void serve(struct serving *s, struct llm_serve_options options, const char *lines)
{
    struct prompts *prompts = NULL;
    if (lines) {
        serve_file(s, options, model_files_write("prompts", lines, strlen(lines)));
        return;
    }
    assert_int_equal(prompts_from_text(&prompts, "hello", NULL), STATUS_OK);
    serve_prompts(s, options, prompts);
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

TEST_CASE(requests_are_counted)
{
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
    // By a clock of its own, read outside of the library's.
    assert_true(s->figures.e2e_ns >= e2e_ns);
    assert_true(s->figures.duration_ns >= s->figures.e2e_ns);
    assert_int_equal(s->figures.decoded_requests, 3);
    assert_true(s->figures.tpot_ns > 0.0);
    end(s);
}

struct told {
    unsigned int requests, without, enough;
    uint64_t tokens;
};

static bool hear_served(void *context, uint64_t tokens, uint64_t ns)
{
    struct told *told = context;
    told->requests++;
    told->without += tokens == 0 && ns == 0;
    told->tokens += tokens;
    return told->requests < told->enough;
}

// Each request that came to its end is told of, failed ones without tokens, until that is
// enough.
TEST_CASE(requests_are_told_of_until_it_is_enough)
{
    for (unsigned int enough = 1; enough <= 4; enough++) {
        struct serving *s = start();
        struct told told = {.enough = enough};
        serve(s,
              (struct llm_serve_options){
                  .tokens = 5, .context = 24, .served = hear_served, .served_context = &told},
              "first\n"
              "a prompt that is too long for the positions there are, as it goes on and on\n"
              "third\n");
        const unsigned int served = enough < 3 ? enough : 3;
        const unsigned int failed = enough > 1;
        assert_int_equal(s->figures.requests, served);
        assert_int_equal(s->figures.failed, failed);
        assert_int_equal(told.requests, served);
        assert_int_equal(told.without, failed);
        assert_int_equal(told.tokens, s->figures.decoded_tokens);
        assert_int_equal(told.tokens, 4 * (served - failed));
        end(s);
    }
}

// The text is the pieces of the tokens the model likes best.
TEST_CASE(text_is_what_the_model_says)
{
    struct serving *s = start();
    uint32_t ids[20];
    generate(s, "hello", ids, COUNT_OF(ids));
    serve(s, (struct llm_serve_options){.tokens = 20, .requests = 1}, NULL);
    char expected[1024];
    size_t size = 0;
    struct text_stream stream = {0};
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        char piece[TOKEN_SIZE_MAX];
        size_t piece_size = tokenizer_piece(s->llm->tokenizer, ids[i], piece);
        for (size_t j = 0; j < piece_size; j++)
            size += text_stream_put(&stream, piece[j], expected + size);
    }
    size += text_stream_finish(&stream, expected + size);
    expected[size++] = '\n';
    assert_int_equal(s->heard.size, size);
    assert_memory_equal(s->heard.text, expected, size);
    end(s);
}

// An end-of-text token ends the answer, is not counted and not written.
TEST_CASE(end_token_stops)
{
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
    unsigned char *data = read_file(model_files_path("served.gguf"), &size);
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

TEST_CASE(context_ends_an_answer)
{
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 1000, .context = 12, .requests = 1}, NULL);
    struct inferstat_event event = last_event(s->monitor, INFERSTAT_EVENT_INFERENCE);
    assert_int_equal(event.status, INFERSTAT_FINISH_LENGTH);
    // The last token is said when there is no room to compute with it.
    assert_int_equal(event.prompt_tokens + event.generated_tokens, 12 + 1);
    end(s);
}

// A prompt that does not fit fails; those around it are served.
TEST_CASE(one_failure_is_one)
{
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

TEST_CASE(same_seed_same_text)
{
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
TEST_CASE(queues_are_real)
{
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

TEST_CASE(rate_spreads_requests)
{
    struct serving *s = start();
    serve(s, (struct llm_serve_options){.tokens = 1, .requests = 4, .rate = 50}, NULL);
    assert_int_equal(s->figures.completed, 4);
    assert_true(s->figures.duration_ns >= 60000000); // the fourth arrives after 3/50 s
    end(s);
}

// A line of a pipe arrives when it is there, not when the clock would have had it; what
// it then waits for the one before is its own.
TEST_CASE(late_line_arrives_late)
{
    struct serving *s = start();
    const char *path = model_files_path("late");
    assert_int_equal(mkfifo(path, 0600), 0);
    struct prompts *prompts = NULL;
    assert_int_equal(prompts_from_file(&prompts, path, false, -1, NULL), STATUS_OK);
    s->heard.pipe = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(s->heard.pipe, "first\n", 6), 6);
    serve_prompts(s, (struct llm_serve_options){.tokens = 20, .rate = 1e6}, prompts);
    uint64_t now = clock_monotonic_ns();
    assert_int_equal(s->status, STATUS_OK);
    assert_int_equal(s->figures.requests, 2);
    struct inferstat_event event = last_event(s->monitor, INFERSTAT_EVENT_INFERENCE);
    assert_true(event.duration_ns <= now - s->heard.line_ns);
    assert_true(event.ttft_ns >= 50000000);
    end(s);
}

// A line too long for a prompt is a request that failed; no line at all is no data.
TEST_CASE(odd_files_of_prompts)
{
    struct serving *s = start();
    size_t size = (16 << 20) + 20;
    char *lines = malloc(size);
    memset(lines, 'x', size);
    memcpy(lines, "a\n", 2);
    memcpy(lines + size - 3, "\nb\n", 3);
    serve_file(s, (struct llm_serve_options){.tokens = 2}, model_files_write("odd", lines, size));
    assert_int_equal(s->status, STATUS_OK);
    assert_int_equal(s->figures.requests, 3);
    assert_int_equal(s->figures.completed, 2);
    assert_int_equal(s->figures.failed, 1);
    assert_non_null(strstr(s->heard.why, "a line of more than"));
    struct inferstat_event events[3];
    assert_int_equal(inferstat_history(s->monitor, INFERSTAT_EVENT_INFERENCE, events, 3), 3);
    assert_int_equal(events[1].status, INFERSTAT_FINISH_ERROR);
    free(lines);

    serve(s, (struct llm_serve_options){.tokens = 2}, "\n\n");
    assert_int_equal(s->status, STATUS_NO_DATA);
    assert_non_null(strstr(s->err.text, "no prompts"));
    assert_int_equal(s->figures.requests, 0);
    end(s);
}

// When the load is over its weights are in memory: the first request brings in none.
TEST_CASE(weights_are_resident_after_the_load)
{
    const char *path = model_files_path("resident.gguf");
    assert_int_equal(
        synthetic_write(path, &synthetic_shapes[SYNTHETIC_15M], TENSOR_F32, 1, 1, NULL), STATUS_OK);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    int64_t weights = info.st_size - 1024 * 1024; // without vocabulary and header
    (void)malloc_trim(0);
    int64_t before = process_memory_bytes();
    struct serving *s = start_with(path);
    assert_true(load_resident - before >= weights);

    struct rusage start_usage;
    struct rusage end_usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &start_usage), 0);
    serve(s, (struct llm_serve_options){.tokens = 4, .requests = 1, .context = 32}, NULL);
    assert_int_equal(getrusage(RUSAGE_SELF, &end_usage), 0);
    assert_int_equal(s->figures.completed, 1);
    assert_true(process_memory_bytes() - load_resident < weights / 4);
    int64_t faults =
        end_usage.ru_minflt - start_usage.ru_minflt + end_usage.ru_majflt - start_usage.ru_majflt;
    assert_true(faults * sysconf(_SC_PAGESIZE) < weights / 4);
    end(s);
}

// What ends together with the text is complete, and what cannot be written says why.
TEST_CASE(a_finished_answer_is_not_cancelled)
{
    struct serving *s = start();
    s->heard.gone_after = 1;
    s->heard.gone_error = ENOSPC;
    serve(s, (struct llm_serve_options){.tokens = 1, .requests = 3, .context = 32}, NULL);
    if (s->heard.size == 1 && s->heard.text[0] == '\n')
        fail_msg("the model's first token is nothing to write");
    assert_int_equal(s->status, STATUS_IO);
    assert_non_null(strstr(s->err.text, "No space left"));
    assert_int_equal(s->figures.requests, 1);
    assert_int_equal(s->figures.completed, 1);
    struct inferstat_event event = last_event(s->monitor, INFERSTAT_EVENT_INFERENCE);
    assert_int_equal(event.status, INFERSTAT_FINISH_LENGTH);
    end(s);
}

TEST_CASE(reader_that_is_gone_ends_it)
{
    struct serving *s = start();
    s->heard.gone_after = 10;
    serve(s, (struct llm_serve_options){.tokens = 100, .requests = 3}, NULL);
    assert_int_equal(s->status, STATUS_IO);
    assert_int_equal(s->figures.requests, 1);
    assert_int_equal(s->figures.cancelled, 1);
    end(s);
}

// Last, as a stop is for good: the request under way is recorded as cancelled.
TEST_CASE(stop_cancels)
{
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
    return TEST_RUN_ONCE(model_files_setup, model_files_teardown, requests_are_counted,
                         requests_are_told_of_until_it_is_enough, text_is_what_the_model_says,
                         end_token_stops, context_ends_an_answer, one_failure_is_one,
                         same_seed_same_text, queues_are_real, rate_spreads_requests,
                         late_line_arrives_late, odd_files_of_prompts,
                         weights_are_resident_after_the_load, a_finished_answer_is_not_cancelled,
                         reader_that_is_gone_ends_it, stop_cancels);
}
