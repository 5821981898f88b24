#include "server/workload/llm/text_stream.h"

#include <string.h>

static const char replacement[3] = {'\xef', '\xbf', '\xbd'};

static size_t write_replacement(char *out)
{
    memcpy(out, replacement, sizeof replacement);
    return sizeof replacement;
}

// Size of the character that a lead byte starts; 0 if it is no lead byte.
static size_t character_size(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// True when `byte` may follow the `size` pending bytes.  After some leads
// the second byte's range is narrower: no overlong forms, no surrogates, nothing
// beyond U+10FFFF.
static bool may_follow(const unsigned char *pending, size_t size, unsigned char byte)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (size == 1) {
        switch (pending[0]) {
        case 0xe0:
            low = 0xa0;
            break;
        case 0xed:
            high = 0x9f;
            break;
        case 0xf0:
            low = 0x90;
            break;
        case 0xf4:
            high = 0x8f;
            break;
        default:
            break;
        }
    }
    return byte >= low && byte <= high;
}

static bool is_control(const unsigned char *character, size_t size)
{
    if (size == 1)
        return (character[0] < 0x20 && character[0] != '\n' && character[0] != '\t') ||
               character[0] == 0x7f;
    return size == 2 && character[0] == 0xc2 && character[1] < 0xa0; // C1
}

static size_t write_character(struct text_stream *stream, char *out)
{
    size_t size = stream->pending_size;
    stream->pending_size = 0;
    if (stream->terminal && is_control(stream->pending, size))
        return write_replacement(out);
    memcpy(out, stream->pending, size);
    return size;
}

size_t text_stream_put(struct text_stream *stream, unsigned char byte,
                       char out[TEXT_STREAM_OUT_SIZE])
{
    size_t written = 0;
    if (stream->pending_size > 0 && !may_follow(stream->pending, stream->pending_size, byte))
        written = text_stream_finish(stream, out);
    if (stream->pending_size == 0 && character_size(byte) == 0)
        return written + write_replacement(out + written);
    stream->pending[stream->pending_size++] = byte;
    if (stream->pending_size == character_size(stream->pending[0]))
        written += write_character(stream, out + written);
    return written;
}

size_t text_stream_finish(struct text_stream *stream, char out[TEXT_STREAM_OUT_SIZE])
{
    bool incomplete = stream->pending_size > 0;
    stream->pending_size = 0;
    return incomplete ? write_replacement(out) : 0;
}
