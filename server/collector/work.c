#include "server/collector/work.h"

#include <stdlib.h>

#include "common/wire/codec.h"

void work_free(void *item)
{
    struct work *work = item;
    if (!work)
        return;
    if (work->kind == WORK_MESSAGE)
        message_free(&work->message);
    share_give(work->peer, work->records);
    free(work);
}

void answer_free(void *item)
{
    struct answer *answer = item;
    if (!answer)
        return;
    free(answer->bytes);
    free(answer);
}

struct answer *answer_encode(const struct work_return *to, const struct message *message)
{
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return NULL;
    answer->to = *to;
    if (codec_encode(&answer->bytes, &answer->size, message, NULL) != STATUS_OK) {
        answer_free(answer);
        return NULL;
    }
    return answer;
}
