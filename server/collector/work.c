#include "server/collector/work.h"

#include <stdlib.h>

#include "common/store/baseline.h"
#include "common/wire/codec.h"
#include "server/collector/import_order.h"
#include "server/collector/queue.h"

void work_free(void *item)
{
    struct work *work = item;
    if (!work)
        return;
    if (work->kind == WORK_MESSAGE)
        message_free(&work->message);
    if (work->order) // nobody took it up
        import_order_done(work->order, STATUS_CANCELLED,
                          &(struct error){.text = "the collector is ending"});
    share_give(work->peer, work->records);
    baseline_free(work->baseline);
    free(work->query);
    free(work);
}

struct work *work_of_baseline(const struct work_return *from, const struct message_query *asked,
                              struct baseline *baseline)
{
    struct work *work = calloc(1, sizeof *work);
    struct query *query = malloc(sizeof *query);
    if (!work || !query) {
        free(work);
        free(query);
        baseline_free(baseline);
        return NULL;
    }
    *query = asked->query;
    work->kind = WORK_BASELINE;
    work->from = *from;
    work->query_id = asked->id;
    work->query = query;
    work->baseline = baseline;
    return work;
}

enum status work_hand(struct queue *inbox, struct work *work, struct error *err)
{
    if (!work)
        return error_set(err, STATUS_NOMEM, "out of memory");
    if (queue_push(inbox, work, sizeof *work))
        return STATUS_OK;
    work_free(work);
    return error_set(err, STATUS_BUSY, "the writer is behind (try again)");
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
