// Importer for llama-bench results ("llama-bench -o json" or jsonl): converts them to a
// bundle, a store file for `inferstat import`.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_LLAMA_BENCH_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_LLAMA_BENCH_H

#include <stdbool.h>

#include "common/core/base/error.h"

// True if the file is readable and begins with '[' or '{'.
bool llama_bench_is_json(const char *path);

// Writes the results in `path` to the bundle `into`.  Each result becomes a run whose UUID is a
// hash of the result, so that importing a result twice gives the same run.  Each sample of a
// result becomes an inference:
//
//   prompt tests      prefill_ns is the sample's time; no generated tokens
//   generation tests  the sample's time is divided into n_gen equal steps: the first is
//                     ttft_ns, the others are decode_ns, so that tokens_per_second equals
//                     llama-bench's
//   combined tests    only e2e_ns is known
//
// n_depth tokens count as cached prompt tokens.  The host is named "llama-bench" and memory sizes
// are 0, because llama-bench does not report them.  STATUS_INVALID names the invalid result and
// key.
MUST_CHECK enum status llama_bench_convert(const char *path, const char *into, struct error *err);

#endif
