#include "server/collector/threads/reply.h"

#include <string.h>

static enum reply_status reply_status(enum status status)
{
    switch ((int)status) {
    case STATUS_OK:
        return REPLY_OK;
    case STATUS_INVALID:
        return REPLY_INVALID;
    case STATUS_NO_DATA:
        return REPLY_NO_DATA;
    case STATUS_DENIED:
        return REPLY_DENIED;
    case STATUS_TIMEOUT:
    case STATUS_FULL:
        return REPLY_TOO_LARGE;
    default:
        return REPLY_FAILED;
    }
}

struct answer *reply_encode(const struct job_return *to, uint64_t id, enum status status,
                            struct result *result, const struct error *why)
{
    struct message message = {.kind = MESSAGE_REPLY,
                              .reply = {.id = id, .status = reply_status(status)}};
    if (status == STATUS_OK) {
        message.reply.result = result;
    } else {
        message.reply.error = (struct wire_bytes){strlen(why->text), why->text};
        message.reply.expired_ns = status == STATUS_NO_DATA ? why->expired_ns : 0;
    }
    struct answer *answer = answer_encode(to, &message);
    if (answer || status != STATUS_OK)
        return answer;
    static const char too_large[] = "the answer is too large (ask for fewer rows)";
    message.reply = (struct message_reply){
        .id = id, .status = REPLY_TOO_LARGE, .error = {sizeof too_large - 1, too_large}};
    return answer_encode(to, &message);
}
