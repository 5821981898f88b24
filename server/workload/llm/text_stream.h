// Incremental UTF-8 decoder: assembles the bytes of generated tokens into whole characters.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_TEXT_STREAM_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

// Maximum of bytes that one call writes.
enum { TEXT_STREAM_OUT_SIZE = 8 };

// Decoder state, in the caller's memory; all zero: the start of a text.
struct text_stream {
    bool terminal; // control characters other than newline and tab become U+FFFD
    unsigned char pending[4];
    unsigned char pending_size;
};

// Adds one byte and writes the characters that it completes to `out`; malformed sequences become
// U+FFFD.  Returns the number of bytes written, 0 while a character is incomplete.
size_t text_stream_put(struct text_stream *stream, unsigned char byte,
                       char out[TEXT_STREAM_OUT_SIZE]);

// Ends the text: an incomplete character becomes U+FFFD.
size_t text_stream_finish(struct text_stream *stream, char out[TEXT_STREAM_OUT_SIZE]);

#endif
