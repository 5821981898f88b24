#include "common/core/record/throttle.h"
#include "common/core/base/text.h"

char *throttle_text(char *text, int64_t reasons)
{
    static const struct {
        int64_t bit;
        const char *text;
    } known[] = {
#define THROTTLE_REASON(number, words) {number, words},
        THROTTLE_REASONS(THROTTLE_REASON)};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (reasons & known[i].bit)
            (void)text_append(text, THROTTLE_TEXT_SIZE, ", ", "%s", known[i].text);
    return text;
}
