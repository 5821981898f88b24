// Token sampling: chooses the next token from a model's logits by temperature and top-p (nucleus).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct token_sampler;

struct token_sampler_options {
    double temperature; // 0 or more; 0: greedy, the token with the largest logit
    double top_p; // above 0, at most 1; choose among the likeliest tokens of this total probability
    uint64_t seed;
};

// Creates a sampler for a vocabulary of `count` tokens.  Fails only with STATUS_NOMEM.
MUST_CHECK enum status token_sampler_new(struct token_sampler **out,
                                         const struct token_sampler_options *options, size_t count,
                                         struct error *err);

// Accepts NULL.
void token_sampler_free(struct token_sampler *sampler);

// Chooses a token and sets `*id`; `logits` has one number per token of the vocabulary.  The same
// seed and logits give the same choices.  Allocates nothing.  Fails with STATUS_CORRUPT if a logit
// is NaN or infinite.
MUST_CHECK enum status token_sampler_pick(struct token_sampler *sampler, const float *logits,
                                          uint32_t *id, struct error *err);
