// What a comparison of two models says of them side by side: parameters, quantisation, size of the
// file.  Used by the query COMPARE.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/compare/environment.h"

// Facts of one model.  What is unknown, or differs between its runs, is 0 or "".
struct model_facts {
    int64_t parameters, file_bytes;
    char quantisation[QUERY_TEXT_SIZE];
};

// Columns of an answer that has the facts of two models: initializers of struct answer_column.
#define MODEL_FACTS_COLUMNS                                                                        \
    {"before_parameters", UNIT_COUNT}, {"after_parameters", UNIT_COUNT},                           \
        {"parameters_ratio", UNIT_RATIO}, {"before_file_bytes", UNIT_BYTES},                       \
        {"after_file_bytes", UNIT_BYTES}, {"file_bytes_ratio", UNIT_RATIO},                        \
        {"before_quantisation", UNIT_NONE},                                                        \
    {                                                                                              \
        "after_quantisation", UNIT_NONE                                                            \
    }

// Reads the facts of the model from the environment of its records.
MUST_CHECK enum status model_facts_read(struct model_facts *out, struct store *store,
                                        const struct environment *environment, const char *model,
                                        struct error *err);

// Sets these columns in the last row of the answer; a fact that is unknown stays null.
void model_facts_answer(struct result *answer, const struct model_facts facts[2]);
