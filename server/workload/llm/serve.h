// Serving requests with a loaded model, one after the other.
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
    uint64_t requests; // 0: until there are no more prompts or a stop is asked for
    uint32_t tokens;   // at most so many a request
    double rate;       // requests a second, at even distances; 0: the next when one is done
    size_t context;    // positions; 0: the model's own, at most LLAMA_CONTEXT_DEFAULT
    struct token_sampler_options sampler;
    bool terminal; // text goes to a terminal: no control characters
    // Takes the text as it is generated, whole UTF-8 characters; a newline ends each
    // request's.  Answers 0 or an errno that ends the serving; EINTR where a stop was
    // asked for while it waited.
    int (*write)(void *context, const char *text, size_t size);
    void *write_context;
    // Is told why a request failed; the others are served on.
    void (*failed)(void *context, uint64_t request, const char *why);
    void *failed_context;
    // Called for each ended request with the number of tokens it decoded after the first one
    // and their time, both 0 if it failed; returns false to end serving.  May be NULL.
    bool (*served)(void *context, uint64_t tokens, uint64_t ns);
    void *served_context;
};

// What was done, as the server itself saw it: its own count and its own clock, not
// what the library recorded.
struct llm_figures {
    uint64_t requests, completed, failed, cancelled;
    uint64_t prompt_tokens, generated_tokens;
    uint64_t e2e_ns, ttft_ns, decode_ns; // sums
    uint64_t first_tokens;               // requests with a first token: those ttft_ns adds up
    uint64_t decoded_tokens;             // tokens after each request's first: those decode_ns made
    uint64_t decoded_requests;           // requests with more than one token
    double tpot_ns;                      // sum of those requests' decode time a token
    uint64_t duration_ns;                // from the first request's arrival to the end
};

struct llm_server;

// Gets ready: keys and values, sampler, tracker.  Borrows all it is given.
MUST_CHECK enum status llm_server_new(struct llm_server **out, const struct llm *llm,
                                      const struct llm_serve_options *options,
                                      struct inferstat_monitor *monitor, struct error *err);

// Accepts NULL.
void llm_server_free(struct llm_server *server);

// Serves until done or until stop_requested() (common/sys/stop.h); the request
// under way is then recorded as cancelled, without waiting for the end of its prompt.
// With a rate, requests arrive by the clock whether or not the one before is done, and
// queue; one whose prompt comes later arrives with it.  A line that is too long is a
// request that failed.  Fails with STATUS_IO where prompts cannot be read or text cannot
// be written, with STATUS_NO_DATA where there was no prompt at all.
MUST_CHECK enum status llm_server_run(struct llm_server *server, struct prompts *prompts,
                                      struct llm_figures *figures, struct error *err);

#endif
