#include "common/store/seal_columns.h"

#include <assert.h>

#include "common/store/excess.h"

bool seal_has_kind(enum record_kind kind)
{
    return kind == RECORD_KIND_INFERENCE;
}

bool seal_stays(enum record_kind kind, unsigned *column, int64_t *value)
{
    *column = SEAL_FIRST + INFERENCE_FINISH;
    *value = RECORD_FINISH_ERROR;
    return kind == RECORD_KIND_INFERENCE;
}

unsigned seal_columns(enum record_kind kind, const char *names[SEAL_COLUMNS_MAX])
{
    const struct record_kind_info *info = record_kind_info(kind);
    assert(SEAL_FIRST + info->column_count <= SEAL_COLUMNS_MAX);
    names[SEAL_RUN] = "run";
    names[SEAL_ID] = "id";
    names[SEAL_STREAM] = "stream";
    names[SEAL_NUMBER] = "number";
    names[SEAL_STARTED] = "started_ns";
    for (int i = EXCESS_RECEIVED; i < (int)info->column_count; i++) {
        const struct excess *excess = excess_find(kind, i);
        names[SEAL_FIRST + i] = excess ? excess->kept : excess_name(kind, i);
    }
    return SEAL_FIRST + info->column_count;
}

unsigned seal_group(enum record_kind kind)
{
    const int model = record_column_find(kind, "model");
    return model < 0 ? SEAL_RUN : SEAL_FIRST + (unsigned)model;
}

unsigned seal_behind(enum record_kind kind)
{
    (void)kind;
    return SEAL_RECEIVED;
}

#define AT(column) (SEAL_FIRST + (column))

// Times of an inference hang together: what is computed of a prompt makes the prefill, and
// tokens the decoding; the gaps between tokens are about the decoding over its tokens.
// A record is sent when the inference has ended.
static const struct seal_guess of_inferences[] = {
    {AT(INFERENCE_REQUEST), SEAL_SAME_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {AT(INFERENCE_CACHED_PROMPT_TOKENS), SEAL_LINE, SEAL_NONE, AT(INFERENCE_PROMPT_TOKENS),
     SEAL_NONE, SEAL_NONE},
    {AT(INFERENCE_TTFT_NS), SEAL_LINE, AT(INFERENCE_QUEUE_NS), AT(INFERENCE_PROMPT_TOKENS),
     SEAL_NONE, SEAL_NONE},
    {AT(INFERENCE_TTFT_NS), SEAL_LINE, AT(INFERENCE_QUEUE_NS), AT(INFERENCE_PROMPT_TOKENS),
     AT(INFERENCE_CACHED_PROMPT_TOKENS), SEAL_NONE},
    {AT(INFERENCE_E2E_NS), SEAL_LINE, AT(INFERENCE_TTFT_NS), AT(INFERENCE_GENERATED_TOKENS),
     SEAL_NONE, SEAL_NONE},
    {AT(INFERENCE_ITL_MAX_NS), SEAL_RATE, SEAL_NONE, AT(INFERENCE_E2E_NS), AT(INFERENCE_TTFT_NS),
     AT(INFERENCE_GENERATED_TOKENS)},
    {AT(INFERENCE_ITL_P99_NS), SEAL_RATE, SEAL_NONE, AT(INFERENCE_E2E_NS), AT(INFERENCE_TTFT_NS),
     AT(INFERENCE_GENERATED_TOKENS)},
    {AT(INFERENCE_ITL_P99_NS), SEAL_LINE, SEAL_NONE, AT(INFERENCE_ITL_MAX_NS), SEAL_NONE,
     SEAL_NONE},
    {AT(INFERENCE_HOST_MEMORY), SEAL_SEEN, SEAL_NONE, AT(INFERENCE_MODEL), SEAL_NONE, SEAL_NONE},
    {AT(INFERENCE_HOST_MEMORY), SEAL_SEEN, SEAL_NONE, AT(INFERENCE_MODEL), SEAL_RUN, SEAL_NONE},
    {AT(INFERENCE_DEVICE_MEMORY), SEAL_SEEN, SEAL_NONE, AT(INFERENCE_MODEL), SEAL_RUN, SEAL_NONE},
    {SEAL_RECEIVED, SEAL_BATCH, SEAL_STARTED, AT(INFERENCE_E2E_NS), SEAL_NONE, SEAL_RUN},
};

enum { INFERENCE_GUESSES = sizeof of_inferences / sizeof *of_inferences };
_Static_assert(sizeof of_inferences / sizeof *of_inferences < SEAL_GUESSES_MAX, "one more");

// Batches arrive as a whole.
unsigned seal_guesses(enum record_kind kind, struct seal_guess guesses[SEAL_GUESSES_MAX])
{
    unsigned count = 0;
    guesses[count++] =
        (struct seal_guess){SEAL_ID, SEAL_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE};
    guesses[count++] = (struct seal_guess){SEAL_NUMBER, SEAL_SAME_NEXT, SEAL_NONE,
                                           SEAL_NONE,   SEAL_NONE,      SEAL_NONE};
    guesses[count++] = (struct seal_guess){SEAL_RECEIVED, SEAL_BATCH, SEAL_STARTED,
                                           SEAL_NONE,     SEAL_NONE,  SEAL_RUN};
    for (unsigned i = 0; kind == RECORD_KIND_INFERENCE && i < INFERENCE_GUESSES; i++)
        guesses[count++] = of_inferences[i];
    return count;
}
