#include "common/core/query/loss_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

enum { REASONS_MAX = 16 };

static const char prefix[] = "dropped_";

struct loss {
    const char *reason;
    int64_t count;
};

// Whatever reasons the answer knows, also those newer than this program.
static size_t collect(struct loss *losses, const struct result *result, size_t row)
{
    size_t count = 0;
    for (unsigned i = 0; i < result_column_count(result) && count < REASONS_MAX; i++) {
        const char *key = result_column(result, i)->key;
        const struct value value = result_cell(result, row, i);
        if (strncmp(key, prefix, sizeof prefix - 1) == 0 && value.type == VALUE_INT && value.i > 0)
            losses[count++] = (struct loss){key + sizeof prefix - 1, value.i};
    }
    return count;
}

const char *loss_text(char text[LOSS_TEXT_SIZE], const struct result *result, size_t row)
{
    struct loss losses[REASONS_MAX];
    const size_t count = collect(losses, result, row);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t most = i;
        for (size_t j = i; j < count; j++)
            if (losses[j].count > losses[most].count)
                most = j;
        const struct loss loss = losses[most];
        losses[most] = losses[i];
        char reason[128];
        (void)text_escape(reason, sizeof reason, loss.reason, strlen(loss.reason));
        const int size = snprintf(text + used, LOSS_TEXT_SIZE - used, "%s%" PRId64 " %s",
                                  used ? ", " : "", loss.count, reason);
        if (size < 0 || (size_t)size >= LOSS_TEXT_SIZE - used)
            break;
        used += (size_t)size;
    }
    return text;
}
