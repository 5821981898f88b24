#include "server/workload/llm/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "common/sys/stop.h"
#include "server/workload/llm/text_stream.h"

struct llm_server {
    const struct llm *llm;
    struct llm_serve_options options;
    struct llama_session *session;
    struct token_sampler *sampler;
    struct inferstat_monitor *monitor;
    struct inferstat_inference *inference;
    float *logits; // one per token of the vocabulary
    struct llm_figures figures;
    struct prompts *prompts; // of the current run
    uint64_t start_ns;       // likewise
    bool enough;             // `served` ended serving
    bool silent;             // writing has failed
    int write_error;         // errno, unless it was a stop
};

// A request in progress, timed by the server's own clock readings.
struct request {
    uint64_t number;
    uint64_t arrival_ns; // 0: now
    const char *prompt;
    size_t size;
    uint64_t first_ns, last_ns; // of the tokens written; 0: none yet
    uint64_t generated;
};

// ---- Creating --------------------------------------------------------

enum status llm_server_new(struct llm_server **out, const struct llm *llm,
                           const struct llm_serve_options *options,
                           struct inferstat_monitor *monitor, struct error *err)
{
    struct llm_server *server = calloc(1, sizeof *server);
    if (!server)
        return error_no_memory(err, "requests");
    server->llm = llm;
    server->options = *options;
    uint32_t vocabulary = tokenizer_count(llm->tokenizer);
    server->logits = calloc(vocabulary, sizeof *server->logits);
    size_t context = options->context;
    if (context == 0)
        context = llama_default_context(llama_get_config(llm->llama));
    enum status status = server->logits ? STATUS_OK : error_no_memory(err, "requests");
    if (status == STATUS_OK)
        status = llama_session_new(&server->session, llm->llama, context, err);
    if (status == STATUS_OK)
        status = token_sampler_new(&server->sampler, &options->sampler, vocabulary, err);
    if (status != STATUS_OK) {
        llm_server_free(server);
        return status;
    }
    server->monitor = monitor;
    inferstat_set_device_memory(monitor, device_memory_used(llm->device));
    server->inference = inferstat_inference_new(monitor);
    llama_session_set_cancelled(server->session, stop_requested);
    *out = server;
    return STATUS_OK;
}

void llm_server_free(struct llm_server *server)
{
    if (!server)
        return;
    inferstat_inference_free(server->inference);
    token_sampler_free(server->sampler);
    llama_session_free(server->session);
    free(server->logits);
    free(server);
}

// ---- Text -----------------------------------------------------------------

static void write_text(struct llm_server *server, const char *text, size_t size)
{
    if (size == 0 || server->silent)
        return;
    int error = server->options.write(server->options.write_context, text, size);
    if (error == 0)
        return;
    server->silent = true;
    if (error != EINTR || !stop_requested())
        server->write_error = error;
}

static void write_token(struct llm_server *server, struct text_stream *stream, uint32_t id)
{
    char piece[TOKEN_SIZE_MAX];
    size_t piece_size = tokenizer_piece(server->llm->tokenizer, id, piece);
    char out[64 * TEXT_STREAM_OUT_SIZE];
    size_t size = 0;
    for (size_t i = 0; i < piece_size; i++) {
        if (size > sizeof out - TEXT_STREAM_OUT_SIZE) {
            write_text(server, out, size);
            size = 0;
        }
        size += text_stream_put(stream, piece[i], out + size);
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
    return stop_requested() || server->write_error != 0;
}

// With a rate, requests arrive while others are served: tells the library how many have arrived
// after request `number` (from 1) by `now_ns` and wait.
static void report_queue(const struct llm_server *server, uint64_t number, uint64_t now_ns)
{
    const struct llm_serve_options *options = &server->options;
    if (options->rate <= 0.0)
        return;
    const double arrived = (double)(now_ns - server->start_ns) * options->rate / 1e9 + 1.0;
    uint64_t count = arrived > (double)number ? (uint64_t)(arrived - (double)number) : 0;
    if (options->requests > 0 && count > options->requests - number)
        count = options->requests - number;
    if (count > UINT32_MAX)
        count = UINT32_MAX;
    if (count > 0)
        count = prompts_count_ready(server->prompts, count);
    inferstat_set_queued_requests(server->monitor, server->llm->model_number, (uint32_t)count);
}

// Reports a token to the library, counts it here independently, and writes it.
static void put_token(struct llm_server *server, struct request *request,
                      struct text_stream *stream, uint32_t id)
{
    inferstat_inference_token(server->inference);
    request->last_ns = clock_monotonic_ns();
    if (request->generated++ == 0)
        request->first_ns = request->last_ns;
    write_token(server, stream, id);
    if (server->options.rate > 0.0)
        prompts_poll(server->prompts);
    report_queue(server, request->number, request->last_ns);
}

// Generates tokens from `logits` until an end token, a limit or a stop request, reported in
// `*finish`.  The end token is not written.
static enum status generate(struct llm_server *server, struct request *request,
                            enum inferstat_finish *finish, struct error *err)
{
    struct text_stream stream = {.terminal = server->options.terminal};
    size_t context = llama_session_context(server->session);
    enum status status = STATUS_OK;
    for (;;) {
        uint32_t id;
        status = token_sampler_pick(server->sampler, server->logits, &id, err);
        if (status != STATUS_OK)
            break;
        if (tokenizer_is_end(server->llm->tokenizer, id)) {
            *finish = INFERSTAT_FINISH_STOP;
            break;
        }
        put_token(server, request, &stream, id);
        // A stop request during the last token does not cancel a complete answer.
        if (request->generated == server->options.tokens ||
            llama_session_position(server->session) == context) {
            *finish = INFERSTAT_FINISH_LENGTH;
            break;
        }
        if (must_stop(server)) {
            *finish = INFERSTAT_FINISH_CANCELLED;
            break;
        }
        status = llama_session_eval(server->session, &id, 1, server->logits, err);
        if (status != STATUS_OK)
            break;
    }
    finish_text(server, &stream);
    return status;
}

// Says whether --context would help.
static enum status too_long(const struct llm_server *server, size_t tokens, struct error *err)
{
    const size_t context = llama_session_context(server->session);
    const size_t most = llama_get_config(server->llm->llama)->context;
    char advice[48] = "the model's most";
    if (context < most)
        (void)snprintf(advice, sizeof advice, "--context N, up to %zu", most);
    return error_set(err, STATUS_INVALID,
                     "a prompt of %zu tokens does not fit a context of %zu (%s)", tokens, context,
                     advice);
}

static enum status answer(struct llm_server *server, struct request *request,
                          enum inferstat_finish *finish, struct error *err)
{
    struct token_list tokens = {0};
    enum status status = chat_template_encode(server->llm->chat, server->llm->tokenizer,
                                              request->prompt, request->size, &tokens, err);
    if (status == STATUS_OK) { // also of a prompt that is refused
        server->figures.prompt_tokens += tokens.count;
        inferstat_inference_set_prompt(server->inference, (uint32_t)tokens.count, 0);
    }
    if (status == STATUS_OK && tokens.count == 0)
        status = error_set(err, STATUS_INVALID, "the prompt is empty");
    if (status == STATUS_OK && tokens.count > llama_session_context(server->session))
        status = too_long(server, tokens.count, err);
    if (status == STATUS_OK) {
        inferstat_inference_start_prefill(server->inference);
        llama_session_reset(server->session);
        status = layer_profile_start_phase(server->options.profile, PROFILE_PREFILL, err);
    }
    if (status == STATUS_OK)
        status = llama_session_eval(server->session, tokens.ids, tokens.count, server->logits, err);
    if (status == STATUS_OK)
        status = layer_profile_start_phase(server->options.profile, PROFILE_DECODE, err);
    free(tokens.ids);
    return status == STATUS_OK ? generate(server, request, finish, err) : status;
}

static bool is_complete(enum inferstat_finish finish)
{
    return finish == INFERSTAT_FINISH_STOP || finish == INFERSTAT_FINISH_LENGTH;
}

// Counts the figures independently of the records, so that the two can be compared.
static void count(struct llm_figures *figures, const struct request *request,
                  enum inferstat_finish finish)
{
    uint64_t end_ns = request->last_ns ? request->last_ns : clock_monotonic_ns();
    figures->requests++;
    figures->failed += finish == INFERSTAT_FINISH_ERROR;
    figures->cancelled += finish == INFERSTAT_FINISH_CANCELLED;
    figures->completed += is_complete(finish);
    figures->generated_tokens += request->generated;
    figures->e2e_ns += end_ns - request->arrival_ns;
    if (request->generated > 0) {
        figures->first_tokens++;
        figures->ttft_ns += request->first_ns - request->arrival_ns;
    }
    if (request->generated > 1) {
        uint64_t decode_ns = request->last_ns - request->first_ns;
        figures->decode_ns += decode_ns;
        figures->decoded_tokens += request->generated - 1;
        figures->tpot_ns += (double)decode_ns / (double)(request->generated - 1);
        figures->decoded_requests++;
    }
}

static void report(struct llm_server *server, const struct request *request,
                   enum inferstat_finish finish)
{
    const struct llm_serve_options *options = &server->options;
    const bool decoded = is_complete(finish) && request->generated > 1;
    if (options->served && finish != INFERSTAT_FINISH_CANCELLED &&
        !options->served(options->served_context, decoded ? request->generated - 1 : 0,
                         decoded ? request->last_ns - request->first_ns : 0))
        server->enough = true;
}

// Serves a request; `status` and `err` tell whether its prompt could be read.
static void serve_one(struct llm_server *server, struct request *request, enum status status,
                      struct error *err)
{
    enum inferstat_finish finish = INFERSTAT_FINISH_ERROR;
    const struct inferstat_request description = {.model = server->llm->model_number,
                                                  .device = server->llm->device_number,
                                                  .request = request->number,
                                                  .arrival_ns = request->arrival_ns};
    if (request->arrival_ns == 0)
        request->arrival_ns = clock_monotonic_ns();
    report_queue(server, request->number, clock_monotonic_ns());
    inferstat_inference_begin(server->inference, &description);
    if (status == STATUS_OK)
        status = answer(server, request, &finish, err);
    if (status != STATUS_OK)
        finish = status == STATUS_CANCELLED ? INFERSTAT_FINISH_CANCELLED : INFERSTAT_FINISH_ERROR;
    if (finish == INFERSTAT_FINISH_ERROR)
        inferstat_inference_fail(server->inference, err->text);
    else
        inferstat_inference_end(server->inference, finish);
    layer_profile_end_request(server->options.profile, server->monitor);
    count(&server->figures, request, finish);
    if (finish == INFERSTAT_FINISH_ERROR)
        server->options.failed(server->options.failed_context, request->number, err->text);
    report(server, request, finish);
}

// ---- All requests ---------------------------------------------------------

// Sleeps until `deadline_ns` (monotonic) or a stop request.
static void wait_until(uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = clock_monotonic_ns();
        if (now >= deadline_ns || stop_requested())
            return;
        const struct timespec timeout = clock_timespec(deadline_ns - now);
        struct pollfd stop = {.fd = stop_fd(), .events = POLLIN};
        if (ppoll(&stop, 1, &timeout, NULL) < 0 && errno != EINTR)
            return;
    }
}

// Arrival time of request `index`: as scheduled, but not before its prompt arrived; 0: after the
// previous request.
static uint64_t arrival_of(const struct llm_server *server, uint64_t index)
{
    if (server->options.rate <= 0.0)
        return 0;
    uint64_t scheduled = server->start_ns + (uint64_t)((double)index * 1e9 / server->options.rate);
    uint64_t ready = prompts_ready_ns(server->prompts);
    return ready > scheduled ? ready : scheduled;
}

static enum status serve_all(struct llm_server *server, struct error *err)
{
    const struct llm_serve_options *options = &server->options;
    for (uint64_t i = 0; !server->enough && (options->requests == 0 || i < options->requests);
         i++) {
        struct request request = {.number = i + 1};
        enum status status = prompts_next(server->prompts, &request.prompt, &request.size, err);
        // A line that is too long fails its request only.
        if (status != STATUS_OK && status != STATUS_INVALID)
            return status;
        request.arrival_ns = arrival_of(server, i);
        wait_until(request.arrival_ns);
        if (must_stop(server))
            return STATUS_OK;
        serve_one(server, &request, status, err);
    }
    return STATUS_OK;
}

enum status llm_server_run(struct llm_server *server, struct prompts *prompts,
                           struct llm_figures *figures, struct error *err)
{
    server->start_ns = clock_monotonic_ns();
    server->prompts = prompts;
    enum status status = serve_all(server, err);
    inferstat_set_queued_requests(server->monitor, server->llm->model_number, 0);
    server->figures.duration_ns = clock_monotonic_ns() - server->start_ns;
    *figures = server->figures;
    if (server->write_error == EPIPE)
        return error_set(err, STATUS_IO, "the text cannot be written: its reader is gone");
    if (server->write_error)
        return error_set(err, STATUS_IO, "the text cannot be written: %s",
                         strerror(server->write_error));
    if (status == STATUS_CANCELLED || (status == STATUS_NO_DATA && figures->requests > 0))
        return STATUS_OK;
    return status;
}
