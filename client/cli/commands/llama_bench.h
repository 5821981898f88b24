// Converter of llama-bench results ("llama-bench -o json" or jsonl) to a store file, which
// `inferstat import` then imports.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

// True if `path` is a readable file of at most 64 MB whose first character is '[' or '{', white
// space aside.
bool llama_bench_is_json(const char *path);

// Writes the results in the file `path` to a new store file `into`.  A result is a test with
// several samples (repetitions).  Each result becomes one run with a model record.  The run's UUID
// is a hash of the result, so that importing a result twice gives one run.  Each sample of a result
// becomes an inference record; its e2e_ns is the sample's time:
//
//   prompt tests      (n_gen 0) prefill_ns is also the sample's time; no generated tokens
//   generation tests  (n_prompt 0) the sample's time is divided into n_gen equal steps: the first
//                     is ttft_ns, the sum of the others is decode_ns, so that tokens_per_second
//                     equals llama-bench's
//   combined tests    (neither is 0) the other times are not known
//
// The n_depth tokens of a test count as cached prompt tokens.  llama-bench reports neither the
// host nor the memory of its process, so the host is named "llama-bench" and the host memory of
// the records is 0.  Returns STATUS_INVALID if a result is invalid (`err` names the result and its
// JSON member), STATUS_NO_DATA if there are none, STATUS_IO if `path` is not readable.
MUST_CHECK enum status llama_bench_convert(const char *path, const char *into, struct error *err);
