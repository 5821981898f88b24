#include "server/workload/llm/text_stream.h"

#include <stdint.h>
#include <string.h>

#include "common/core/base/text.h"

static size_t write_replacement(char *out)
{
    return text_encode(out, 0xfffd);
}

// True if the pending bytes begin a character that has more bytes: with the least or the greatest
// bytes that may continue a character they are one.
static bool is_incomplete(const struct text_stream *stream)
{
    char least[4] = {'\x80', '\x80', '\x80', '\x80'};
    char most[4] = {'\xbf', '\xbf', '\xbf', '\xbf'};
    memcpy(least, stream->pending, stream->pending_size);
    memcpy(most, stream->pending, stream->pending_size);
    return text_character(least, sizeof least, NULL) > stream->pending_size ||
           text_character(most, sizeof most, NULL) > stream->pending_size;
}

static bool is_control(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
}

size_t text_stream_put(struct text_stream *stream, char byte, char out[TEXT_STREAM_OUT_SIZE])
{
    uint32_t code = 0;
    stream->pending[stream->pending_size++] = byte;
    const size_t size = stream->pending_size;
    const size_t length = text_character(stream->pending, size, &code);
    if (length == 0 && is_incomplete(stream))
        return 0;
    stream->pending_size = 0;
    if (length == 0 && size > 1) { // the bytes before this one are malformed
        const size_t written = write_replacement(out);
        return written + text_stream_put(stream, byte, out + written);
    }
    if (length == 0 || (stream->terminal && is_control(code)))
        return write_replacement(out);
    memcpy(out, stream->pending, length);
    return length;
}

size_t text_stream_finish(struct text_stream *stream, char out[TEXT_STREAM_OUT_SIZE])
{
    const bool incomplete = stream->pending_size > 0;
    stream->pending_size = 0;
    return incomplete ? write_replacement(out) : 0;
}
