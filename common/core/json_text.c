#include "common/core/json_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/core/text.h"

// The escapes that have a letter of their own; NULL where there is none.
static const char *short_escape(uint32_t code)
{
    static const char *const escapes[] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
    };
    return code < sizeof escapes / sizeof *escapes ? escapes[code] : NULL;
}

size_t json_text_piece(char out[JSON_PIECE_SIZE], const char *text, size_t size)
{
    uint32_t code = 0;
    const size_t length = text_character(text, size, &code);
    const char *escape = length > 0 ? short_escape(code) : "\\ufffd";
    if (escape) {
        (void)snprintf(out, JSON_PIECE_SIZE, "%s", escape);
    } else if (text_is_unsafe(code)) { // none is beyond U+FFFF
        (void)snprintf(out, JSON_PIECE_SIZE, "\\u%04x", (unsigned)code & 0xffff);
    } else {
        memcpy(out, text, length);
        out[length] = '\0';
    }
    return length > 0 ? length : 1;
}
