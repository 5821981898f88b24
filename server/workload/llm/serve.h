// LLM serving loop: generates text for prompts with a loaded model, one request at a time.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_SERVE_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "common/monitor/inferstat.h"
#include "server/workload/llm/load.h"
#include "server/workload/llm/prompts.h"
#include "server/workload/llm/token_sampler.h"

struct llm_serve_options {
    uint64_t requests; // 0: until prompts end or a stop is requested
    uint32_t tokens;   // generated per request, at most
    double rate;       // arrivals per second, evenly spaced; 0: each after the one before ended
    uint32_t context;  // positions; 0: the model's own, at most LLAMA_CONTEXT_DEFAULT
    struct token_sampler_options sampler;
    bool terminal; // text goes to a terminal: no control characters
    // Writes text as it is generated, whole UTF-8 characters; a newline follows each request's
    // text.  Returns 0, or an errno, which ends serving; EINTR when a stop was requested.
    int (*write)(void *context, const char *text, size_t size);
    void *write_context;
    // Called with the reason when a request failed; serving continues.
    void (*failed)(void *context, uint64_t request, const char *why);
    void *failed_context;
    // Called after each finished request with the number of tokens after its first one and the
    // time of decoding them, both 0 when it failed; false ends serving.  May be NULL.
    bool (*served)(void *context, uint64_t tokens, uint64_t ns);
    void *served_context;
};

// Metrics from the server's own counters and clock, independent of the recorded telemetry.
struct llm_figures {
    uint64_t requests, completed, failed, cancelled;
    uint64_t prompt_tokens, generated_tokens;
    uint64_t e2e_ns, ttft_ns, decode_ns; // sums
    uint64_t first_tokens;               // requests with a first token, summed in ttft_ns
    uint64_t decoded_tokens;             // tokens after each request's first, timed in decode_ns
    uint64_t decoded_requests;           // requests with more than one token
    double tpot_ns;                      // decode time per token, summed over decoded_requests
    uint64_t duration_ns;                // from the first request's arrival to the end
};

struct llm_server;

// Allocates the session, the sampler and the request tracker.  Borrows all arguments.
MUST_CHECK enum status llm_server_new(struct llm_server **out, const struct llm *llm,
                                      const struct llm_serve_options *options,
                                      struct inferstat_monitor *monitor, struct error *err);

// Accepts NULL.
void llm_server_free(struct llm_server *server);

// Serves the requests, or until stop_requested() (common/sys/stop.h), which cancels the request in
// progress, also during its prefill.  With a rate, requests arrive on schedule and queue; a
// request whose prompt is read only after its scheduled time arrives when it is read.  A prompt
// line that is too long counts as a failed request.  Fails with STATUS_IO when prompts cannot be
// read or text cannot be written, STATUS_NO_DATA when there was no prompt.
MUST_CHECK enum status llm_server_run(struct llm_server *server, struct prompts *prompts,
                                      struct llm_figures *figures, struct error *err);

#endif
