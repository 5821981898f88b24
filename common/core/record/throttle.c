#include "common/core/record/throttle.h"

#include <stdio.h>

char *throttle_text(char *text, int64_t reasons)
{
    static const struct {
        int64_t bit;
        const char *text;
    } known[] = {
#define THROTTLE_REASON(number, words) {number, words},
        THROTTLE_REASONS(THROTTLE_REASON)};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof known / sizeof *known && used < THROTTLE_TEXT_SIZE; i++) {
        if (!(reasons & known[i].bit))
            continue;
        const int n = snprintf(text + used, THROTTLE_TEXT_SIZE - used, "%s%s", used ? ", " : "",
                               known[i].text);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}
