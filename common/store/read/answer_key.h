// What a key that records are grouped by is called in an answer.
#ifndef INFERSTAT_STORE_READ_ANSWER_KEY_H
#define INFERSTAT_STORE_READ_ANSWER_KEY_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct store;

// Sets the column of the last row: a run's UUID, a status's word, else the name of that id.
// GROUP_KEY_NONE, and what is not known, stay absent.
MUST_CHECK enum status answer_key(struct store *store, struct result *answer, unsigned column,
                                  enum query_dimension dimension, int64_t key, struct error *err);

#endif
