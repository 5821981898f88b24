// Incremental UTF-8 decoder: assembles the bytes of generated tokens into whole characters.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Maximum number of bytes that one call writes.
enum { TEXT_STREAM_OUT_SIZE = 8 };

// Decoder state.  Initialise with zeroes.
struct text_stream {
    bool terminal;   // set by the caller: control characters but newline and tab become U+FFFD
    char pending[4]; // bytes of an incomplete character
    unsigned char pending_size; // number of these bytes
};

// Adds `byte` and writes the characters that are now complete to `out`.  A malformed sequence
// becomes U+FFFD.  Returns the number of bytes written; 0 while a character is incomplete.
size_t text_stream_put(struct text_stream *stream, char byte, char out[TEXT_STREAM_OUT_SIZE]);

// Ends the text: writes U+FFFD for an incomplete character.  Returns the number of bytes written.
size_t text_stream_finish(struct text_stream *stream, char out[TEXT_STREAM_OUT_SIZE]);
