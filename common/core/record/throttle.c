#include "common/core/record/throttle.h"

#include <stdio.h>

static const struct {
    int64_t bit;
    const char *text;
} reasons_known[] = {
#define THROTTLE_REASON(number, words) {number, words},
    THROTTLE_REASONS(THROTTLE_REASON)
#undef THROTTLE_REASON
};

enum { REASON_COUNT = sizeof reasons_known / sizeof *reasons_known };

int64_t throttle_bits(int64_t reasons)
{
    int64_t known = 0;
    for (unsigned i = 0; i < REASON_COUNT; i++)
        known |= reasons_known[i].bit;
    return reasons & known;
}

char *throttle_text(char *text, int64_t reasons)
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < REASON_COUNT; i++) {
        if (!(reasons & reasons_known[i].bit) || used >= THROTTLE_TEXT_SIZE)
            continue;
        const int n = snprintf(text + used, THROTTLE_TEXT_SIZE - used, "%s%s", used ? ", " : "",
                               reasons_known[i].text);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}
