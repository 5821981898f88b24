// Converts results of llama-bench ("llama-bench -o json" or jsonl) to a bundle.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_LLAMA_BENCH_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_LLAMA_BENCH_H

#include <stdbool.h>

#include "common/core/base/error.h"

// Whether the file may be JSON: it can be read and begins with '[' or '{'.
bool llama_bench_is_json(const char *path);

// Writes the bundle `into` from the results in `path`.  Each result becomes a run; its
// identity is a hash of the result, so the same results give the same runs.
// Each of its samples is an inference:
//
//   prompt tests      prefill_ns is the sample, without any generated token
//   generation tests  the sample is divided into n_gen steps alike; the first ends at
//                     the first token (ttft_ns), the others are decode_ns, so that
//                     tokens_per_second is what llama-bench says it is
//   both in one       only e2e_ns is known
//
// Tokens of the depth (n_depth) count as cached ones of the prompt.  What llama-bench
// does not say (host, memory) is "llama-bench" or 0.  STATUS_INVALID names the result
// and the key at fault.
MUST_CHECK enum status llama_bench_convert(const char *path, const char *into, struct error *err);

#endif
