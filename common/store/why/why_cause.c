#include "common/store/why/why_cause.h"

#include <assert.h>

static const struct {
    const char *name, *words;
} causes[WHY_CAUSE_COUNT] = {
#define WHY_CAUSE_TEXTS(suffix, text, words) [WHY_##suffix] = {text, words},
    WHY_CAUSES(WHY_CAUSE_TEXTS)
#undef WHY_CAUSE_TEXTS
};

const char *why_cause_name(enum why_cause_kind kind)
{
    assert((unsigned)kind < WHY_CAUSE_COUNT);
    return causes[kind].name;
}

const char *why_cause_words(enum why_cause_kind kind)
{
    assert((unsigned)kind < WHY_CAUSE_COUNT);
    return causes[kind].words;
}
