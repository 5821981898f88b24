#include "common/core/base/text_pattern.h"

#include <stdbool.h>
#include <string.h>

// Of ASCII, whatever the locale.
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex_letter(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_hex(char c)
{
    return is_digit(c) || is_hex_letter(c);
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The length of the UUID at the start of `text`; 0: there is none.
static size_t uuid_size(const char *text, size_t size)
{
    enum { UUID_SIZE = 36 };
    if (size < UUID_SIZE || (size > UUID_SIZE && is_word(text[UUID_SIZE])))
        return 0;
    for (size_t i = 0; i < UUID_SIZE; i++) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !is_hex(text[i]))
            return 0;
    }
    return UUID_SIZE;
}

// Likewise of an address with two colons or more, and a digit.
static size_t address_size(const char *text, size_t size)
{
    size_t used = 0, colons = 0, digits = 0;
    while (used < size && (is_hex(text[used]) || text[used] == ':' || text[used] == '.'))
        used++;
    if (used < size && is_word(text[used]))
        return 0;
    while (used > 0 && !is_hex(text[used - 1])) // of the sentence
        used--;
    for (size_t i = 0; i < used; i++) {
        colons += text[i] == ':';
        digits += is_digit(text[i]);
    }
    return colons >= 2 && digits > 0 ? used : 0;
}

static bool is_id(const char *word, size_t size)
{
    size_t hex = 0, hex_letters = 0, digit_runs = 0;
    for (size_t i = 0; i < size; i++) {
        hex += is_hex(word[i]);
        hex_letters += is_hex_letter(word[i]);
        digit_runs += is_digit(word[i]) && (i == 0 || !is_digit(word[i - 1]));
    }
    return digit_runs > 1 || (size > 2 && word[0] == '0' && word[1] == 'x') ||
           (digit_runs > 0 && hex == size && size >= 4 && hex_letters >= 2);
}

// Appends a "#", which joins the one before it.
static void put_blank(char *out, size_t *used)
{
    if (*used > 1 && out[*used - 2] == '#' && strchr(".,:-", out[*used - 1]))
        (*used)--;
    else if (*used == 0 || out[*used - 1] != '#')
        out[(*used)++] = '#';
}

static void put_word(char *out, size_t *used, const char *word, size_t size)
{
    if (is_id(word, size)) {
        put_blank(out, used);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        if (is_digit(word[i]))
            put_blank(out, used);
        else
            out[(*used)++] = word[i];
    }
}

size_t text_pattern(char *out, const char *text, size_t size)
{
    size_t used = 0, at = 0;
    while (at < size) {
        size_t length = uuid_size(text + at, size - at);
        if (length == 0)
            length = address_size(text + at, size - at);
        if (length > 0) {
            put_blank(out, &used);
        } else if (!is_word(text[at])) {
            out[used++] = text[at];
            length = 1;
        } else {
            while (at + length < size && is_word(text[at + length]))
                length++;
            put_word(out, &used, text + at, length);
        }
        at += length;
    }
    out[used] = '\0';
    return used;
}
