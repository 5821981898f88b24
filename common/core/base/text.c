#include "common/core/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t text_character(const char *text, size_t size, uint32_t *out)
{
    if (size == 0)
        return 0;
    // By length: the bits that mark a lead byte, and the least code of that length.
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char lead = (unsigned char)text[0];
    size_t form = 0;
    while (form < 4 && (lead & forms[form].mask) != forms[form].lead)
        form++;
    const size_t length = form + 1;
    if (form == 4 || length > size)
        return 0;
    uint32_t code = lead & ~forms[form].mask & 0xffU;
    for (size_t i = 1; i < length; i++) {
        const unsigned char next = (unsigned char)text[i];
        if ((next & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (next & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < forms[form].least || code > 0x10ffff || surrogate)
        return 0;
    if (out)
        *out = code;
    return length;
}

size_t text_encode(char out[4], uint32_t code)
{
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    const size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(leads[size] | code);
    return size;
}

bool text_is_utf8(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        const size_t length = text_character(text + at, size - at, NULL);
        if (length == 0 || text[at] == '\0')
            return false;
        at += length;
    }
    return true;
}

size_t text_cut(const char *text, size_t length, size_t size)
{
    if (length <= size)
        return length;
    // Back to the start of the character that would be cut, four bytes at most.
    size_t end = size;
    while (end > 0 && size - end < 4 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

size_t text_copy(char *out, size_t size, const char *text)
{
    const size_t kept = text ? text_cut(text, strlen(text), size - 1) : 0;
    if (kept > 0)
        memcpy(out, text, kept);
    out[kept] = '\0';
    return kept;
}

// What shows nothing and turns the direction of what stands around it (Unicode
// Standard Annex #9), and the byte order mark, which shows nothing at all.
static bool is_hidden(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0x200e || code == 0x200f || code == 0x061c || code == 0xfeff;
}

// Control characters: C0, DEL and C1.
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

uint64_t text_hash(const char *text, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

bool text_is_unsafe(uint32_t code)
{
    return is_control(code) || is_hidden(code);
}

char *text_escape(char *out, size_t out_size, const char *text, size_t size)
{
    if (out_size == 0)
        return out;
    size_t used = 0;
    size_t at = 0;
    while (at < size) {
        uint32_t code = 0;
        size_t length = text_character(text + at, size - at, &code);
        char escaped[16];
        const char *piece = text + at;
        size_t piece_size = length;
        if (length == 0 || is_control(code)) { // one byte at a time
            length = 1;
            piece = escaped;
            piece_size =
                (size_t)snprintf(escaped, sizeof escaped, "\\x%02X", (unsigned char)text[at]);
        } else if (is_hidden(code)) {
            piece = escaped;
            piece_size = (size_t)snprintf(escaped, sizeof escaped, "\\u{%04X}", (unsigned)code);
        }
        if (piece_size >= out_size - used)
            break;
        memcpy(out + used, piece, piece_size);
        used += piece_size;
        at += length;
    }
    out[used] = '\0';
    return out;
}

char *text_escape_new(const char *text, size_t size)
{
    const size_t room = 4 * size + 1; // what one byte becomes
    char *out = malloc(room);
    return out ? text_escape(out, room, text, size) : NULL;
}

// True if a terminal shows each character of the text.
static bool is_plain(const char *text)
{
    for (uint32_t code; *text; text++) {
        const size_t length = text_character(text, strlen(text), &code);
        if (length == 0 || text_is_unsafe(code))
            return false;
        text += length - 1;
    }
    return true;
}

char *text_quote(char *out, size_t out_size, const char *word)
{
    const bool plain = is_plain(word);
    if (*word && *word != '=' && // zsh replaces =word
        word[strspn(word, TEXT_NAME_CHARACTERS ":/@+,=")] == '\0') {
        (void)snprintf(out, out_size, "%s", word);
        return out;
    }
    size_t used = (size_t)snprintf(out, out_size, plain ? "'" : "$'");
    for (; *word && used + 6 <= out_size; word++) {
        const unsigned char byte = (unsigned char)*word;
        const bool is_octal = !plain && (byte < ' ' || byte >= 127);
        used += (size_t)snprintf(out + used, out_size - used,
                                 is_octal                                   ? "\\%03o"
                                 : *word == '\'' && plain                   ? "'\\''"
                                 : !plain && (byte == '\'' || byte == '\\') ? "\\%c"
                                                                            : "%c",
                                 byte);
    }
    (void)snprintf(out + used, out_size - used, "'");
    return out;
}

char *text_append(char *text, size_t size, const char *between, const char *format, ...)
{
    const size_t used = strlen(text);
    const size_t gap = used > 0 ? strlen(between) : 0;
    va_list arguments;
    if (gap >= size - used)
        return text;
    memcpy(text + used, between, gap);
    va_start(arguments, format);
    const int n = vsnprintf(text + used + gap, size - used - gap, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= size - used - gap)
        text[used] = '\0';
    return text;
}

char *text_from_real(char out[TEXT_NUMBER_SIZE], double value)
{
    enum { DIGITS_ENOUGH = 17 }; // for any double, by IEEE 754
    for (int digits = 15; digits <= DIGITS_ENOUGH; digits++) {
        (void)snprintf(out, TEXT_NUMBER_SIZE, "%.*g", digits, value);
        const double back = strtod(out, NULL);
        if (!(back < value) && !(back > value))
            break;
    }
    return out;
}

char *text_from_time(char *out, size_t size, const char *format, int64_t time_ns)
{
    const time_t seconds = (time_t)(time_ns / INT64_C(1000000000));
    struct tm parts = {0};
    (void)gmtime_r(&seconds, &parts); // cannot fail: the years are 1677 to 2262
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" // those of the callers are checked
    if (strftime(out, size, format, &parts) == 0)
        out[0] = '\0';
#pragma GCC diagnostic pop
    return out;
}

void text_from_uuid(char out[37], const unsigned char uuid[16])
{
    char *at = out;
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf(at, 3, "%02x", uuid[i]);
    }
}

bool text_to_uuid(unsigned char uuid[16], const char *text)
{
    if (strlen(text) != 36)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
            return false;
        const char digits[3] = {text[0], text[1], '\0'};
        if (strspn(digits, "0123456789abcdefABCDEF") != 2)
            return false;
        uuid[i] = (unsigned char)strtoul(digits, NULL, 16);
        text += 2;
    }
    return true;
}
