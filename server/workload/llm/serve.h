// LLM serving loop: generates text for prompts, one request at a time, and records telemetry of it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/inferstat.h"
#include "server/workload/llm/layer_profile.h"
#include "server/workload/llm/load.h"
#include "server/workload/llm/prompts.h"
#include "server/workload/llm/token_sampler.h"

struct llm_serve_options {
    uint64_t requests; // number to serve; 0: until prompts end or a stop is requested
    uint32_t tokens;   // maximum number of tokens generated per request
    double rate;       // arrivals per second, evenly spaced; 0: a request arrives when the one
                       // before it has ended
    uint32_t context;  // positions; 0: the model's own, at most LLAMA_CONTEXT_DEFAULT
    struct token_sampler_options sampler;
    bool terminal; // `write` writes to a terminal: control characters are replaced
    // Writes generated text, in whole UTF-8 characters; a newline follows each request's text.
    // Returns 0, or an errno, which ends serving.  EINTR after a stop request is no error.
    int (*write)(void *context, const char *text, size_t size);
    void *write_context;
    // Called when a request has failed, with the reason; serving continues.
    void (*failed)(void *context, uint64_t request, const char *why);
    void *failed_context;
    // Called when a request has ended, unless it was cancelled.  `tokens` is the number of tokens
    // generated after the first one, and `ns` the time of decoding them; both are 0 if the request
    // failed.  Returns false to end serving.  May be NULL.
    bool (*served)(void *context, uint64_t tokens, uint64_t ns);
    void *served_context;
    struct layer_profile *profile; // of the model, borrowed; NULL: it is not profiled
};

// Metrics from the server's own counters and clock, to check the recorded telemetry against.
//   e2e     end to end: from a request's arrival to its last token, or to its end if it has none
//   ttft    time to first token: from a request's arrival to its first token
//   decode  from a request's first token to its last
//   tpot    time per output token: decode / (tokens of the request - 1)
struct llm_figures {
    uint64_t requests, completed, failed, cancelled;
    uint64_t prompt_tokens, generated_tokens;
    uint64_t e2e_ns, ttft_ns, decode_ns; // summed over the requests
    uint64_t first_tokens;               // requests with at least one token; ttft_ns sums these
    uint64_t decoded_tokens;   // tokens except each request's first; decode_ns times these
    uint64_t decoded_requests; // requests with more than one token
    double tpot_ns;            // summed over decoded_requests
    uint64_t duration_ns;      // of llm_server_run
};

struct llm_server;

// Creates a server: allocates its session, sampler and request tracker.  Copies `*options`; borrows
// `llm` and `monitor` (may be NULL) until llm_server_free.  Fails as llama_session_new and
// token_sampler_new do.
MUST_CHECK enum status llm_server_new(struct llm_server **out, const struct llm *llm,
                                      const struct llm_serve_options *options,
                                      struct inferstat_monitor *monitor, struct error *err);

// Accepts NULL.
void llm_server_free(struct llm_server *server);

// Call it once per server.  Serves the requests, until all are done, `served` returns false, or
// stop_requested() (common/sys/stop.h) is true.  A stop cancels the request in progress, also
// during its prefill.  With a rate, requests arrive at their scheduled times and queue.  A request
// arrives later than scheduled if its prompt is read later.  A prompt line that is too long counts
// as a failed request.  Fails with STATUS_IO if prompts cannot be read or text cannot be written,
// STATUS_NO_DATA if there was no prompt.
MUST_CHECK enum status llm_server_run(struct llm_server *server, struct prompts *prompts,
                                      struct llm_figures *figures, struct error *err);
