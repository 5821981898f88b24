#include "server/workload/llm/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/stop.h"
#include "server/workload/llm/text_stream.h"

struct llm_server {
    const struct llm *llm;
    struct llm_serve_options options;
    struct inferstat_monitor *monitor;
    struct llama_session *session;
    struct token_sampler *sampler;
    struct inferstat_inference *inference;
    float *logits; // one a token of the vocabulary
    struct llm_figures figures;
    bool reader_gone;
    int listener;
};

// ---- Getting ready --------------------------------------------------------

// The figures are the records' own: each is added up when it is made.
static void add_up(void *context, const struct inferstat_event *event)
{
    struct llm_figures *figures = context;
    if (event->kind != INFERSTAT_EVENT_INFERENCE)
        return;
    figures->prompt_tokens += event->prompt_tokens;
    figures->generated_tokens += event->generated_tokens;
    figures->e2e_ns += event->duration_ns;
    figures->ttft_ns += event->ttft_ns;
    figures->first_tokens += event->generated_tokens > 0;
    if (event->generated_tokens > 1) {
        figures->decode_ns += event->decode_ns;
        figures->decoded_tokens += event->generated_tokens - 1;
    }
}

static size_t context_of(const struct llm_serve_options *options, const struct llm *llm)
{
    return options->context > 0 ? options->context : llama_default_context(llm->llama);
}

enum status llm_server_new(struct llm_server **out, const struct llm *llm,
                           const struct llm_serve_options *options,
                           struct inferstat_monitor *monitor, struct error *err)
{
    struct llm_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_set(err, STATUS_NOMEM, "requests: out of memory");
    server->llm = llm;
    server->options = *options;
    server->monitor = monitor;
    uint32_t vocabulary = tokenizer_count(llm->tokenizer);
    server->logits = calloc(vocabulary, sizeof *server->logits);
    enum status status = STATUS_OK;
    if (!server->logits)
        status = error_set(err, STATUS_NOMEM, "requests: out of memory");
    if (status == STATUS_OK)
        status = llama_session_new(&server->session, llm->llama, context_of(options, llm), err);
    if (status == STATUS_OK)
        status = token_sampler_new(&server->sampler, &options->sampler, vocabulary, err);
    if (status != STATUS_OK) {
        llm_server_free(server);
        return status;
    }
    server->inference = inferstat_inference_new(monitor);
    server->listener = inferstat_listen(monitor, add_up, &server->figures);
    *out = server;
    return STATUS_OK;
}

void llm_server_free(struct llm_server *server)
{
    if (!server)
        return;
    inferstat_unlisten(server->monitor, server->listener);
    inferstat_inference_free(server->inference);
    token_sampler_free(server->sampler);
    llama_session_free(server->session);
    free(server->logits);
    free(server);
}

// ---- Text -----------------------------------------------------------------

static void write_text(struct llm_server *server, const char *text, size_t size)
{
    if (size > 0 && !server->reader_gone &&
        !server->options.write(server->options.write_context, text, size))
        server->reader_gone = true;
}

// Writes what a token completes, in one piece where it is not very long.
static void write_token(struct llm_server *server, struct text_stream *stream, uint32_t id)
{
    struct token_piece piece = tokenizer_piece(server->llm->tokenizer, id);
    char out[64 * TEXT_STREAM_OUT_SIZE];
    size_t size = 0;
    for (size_t i = 0; i < piece.size; i++) {
        if (size > sizeof out - TEXT_STREAM_OUT_SIZE) {
            write_text(server, out, size);
            size = 0;
        }
        size += text_stream_put(stream, (unsigned char)piece.data[i], out + size);
    }
    write_text(server, out, size);
}

static void finish_text(struct llm_server *server, struct text_stream *stream)
{
    char out[TEXT_STREAM_OUT_SIZE];
    size_t size = text_stream_finish(stream, out);
    write_text(server, out, size);
    write_text(server, "\n", 1);
}

// ---- One request ----------------------------------------------------------

static bool must_stop(const struct llm_server *server)
{
    return stop_requested() || server->reader_gone;
}

// Generates tokens from the scores in `logits` until the model, a limit or a wish
// ends it; says which.  The token that ends an answer is no output.
static enum status generate(struct llm_server *server, enum inferstat_finish *finish,
                            struct error *err)
{
    struct text_stream stream = {.terminal = server->options.terminal};
    size_t context = llama_session_context(server->session);
    enum status status = STATUS_OK;
    *finish = INFERSTAT_FINISH_LENGTH;
    for (uint32_t n = 0; n < server->options.tokens; n++) {
        uint32_t id;
        status = token_sampler_pick(server->sampler, server->logits, &id, err);
        if (status != STATUS_OK)
            break;
        if (tokenizer_is_end(server->llm->tokenizer, id)) {
            *finish = INFERSTAT_FINISH_STOP;
            break;
        }
        inferstat_inference_token(server->inference);
        write_token(server, &stream, id);
        if (must_stop(server)) {
            *finish = INFERSTAT_FINISH_CANCELLED;
            break;
        }
        if (n + 1 == server->options.tokens || llama_session_position(server->session) == context)
            break;
        status = llama_session_eval(server->session, &id, 1, server->logits, err);
        if (status != STATUS_OK)
            break;
    }
    finish_text(server, &stream);
    return status;
}

// Encodes the prompt, computes it and generates the answer.
static enum status answer(struct llm_server *server, const char *prompt, size_t size,
                          enum inferstat_finish *finish, struct error *err)
{
    struct token_list tokens = {0};
    enum status status =
        tokenizer_encode(server->llm->tokenizer, prompt, size,
                         (struct encode_options){.add_special = true}, &tokens, err);
    if (status == STATUS_OK && tokens.count == 0)
        status = error_set(err, STATUS_INVALID, "the prompt is empty");
    if (status == STATUS_OK && tokens.count > llama_session_context(server->session))
        status =
            error_set(err, STATUS_INVALID, "a prompt of %zu tokens does not fit a context of %zu",
                      tokens.count, llama_session_context(server->session));
    if (status == STATUS_OK) {
        inferstat_inference_set_prompt(server->inference, (uint32_t)tokens.count, 0);
        inferstat_inference_start_prefill(server->inference);
        llama_session_reset(server->session);
        status = llama_session_eval(server->session, tokens.ids, tokens.count, server->logits, err);
    }
    free(tokens.ids);
    return status == STATUS_OK ? generate(server, finish, err) : status;
}

static void serve_one(struct llm_server *server, uint64_t request, uint64_t arrival_ns,
                      const char *prompt, size_t size)
{
    struct error err = {0};
    enum inferstat_finish finish = INFERSTAT_FINISH_ERROR;
    inferstat_inference_begin(server->inference,
                              &(struct inferstat_request){.model = server->llm->model_number,
                                                          .device = server->llm->device_number,
                                                          .request = request,
                                                          .arrival_ns = arrival_ns});
    enum status status = answer(server, prompt, size, &finish, &err);
    if (status != STATUS_OK)
        finish = INFERSTAT_FINISH_ERROR;
    inferstat_inference_end(server->inference, finish);

    server->figures.requests++;
    server->figures.failed += finish == INFERSTAT_FINISH_ERROR;
    server->figures.cancelled += finish == INFERSTAT_FINISH_CANCELLED;
    server->figures.completed +=
        finish == INFERSTAT_FINISH_STOP || finish == INFERSTAT_FINISH_LENGTH;
    if (status != STATUS_OK)
        server->options.failed(server->options.failed_context, request, err.text);
}

// ---- All requests ---------------------------------------------------------

// Sleeps until the library's clock says `deadline_ns`, or a stop is asked for.
static void wait_until(uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = inferstat_clock_ns();
        if (now >= deadline_ns || stop_requested())
            return;
        uint64_t left = deadline_ns - now;
        struct timespec timeout = {.tv_sec = (time_t)(left / 1000000000U),
                                   .tv_nsec = (long)(left % 1000000000U)};
        struct pollfd stop = {.fd = stop_fd(), .events = POLLIN};
        if (ppoll(&stop, 1, &timeout, NULL) < 0 && errno != EINTR)
            return;
    }
}

// When request number `index` arrives; 0: as soon as the one before is done.
static uint64_t arrival_of(const struct llm_server *server, uint64_t start_ns, uint64_t index)
{
    if (server->options.rate <= 0.0)
        return 0;
    return start_ns + (uint64_t)((double)index * 1e9 / server->options.rate);
}

enum status llm_server_run(struct llm_server *server, struct prompts *prompts,
                           struct llm_figures *figures, struct error *err)
{
    const struct llm_serve_options *options = &server->options;
    enum status status = STATUS_OK;
    uint64_t start_ns = inferstat_clock_ns();
    for (uint64_t i = 0; options->requests == 0 || i < options->requests; i++) {
        const char *prompt;
        size_t size;
        status = prompts_next(prompts, &prompt, &size, err);
        if (status != STATUS_OK)
            break;
        uint64_t arrival_ns = arrival_of(server, start_ns, i);
        wait_until(arrival_ns);
        if (must_stop(server))
            break;
        serve_one(server, i + 1, arrival_ns, prompt, size);
    }
    server->figures.duration_ns = inferstat_clock_ns() - start_ns;
    *figures = server->figures;
    if (server->reader_gone)
        return error_set(err, STATUS_IO, "the text cannot be written: its reader is gone");
    return status == STATUS_NO_DATA || status == STATUS_CANCELLED ? STATUS_OK : status;
}
