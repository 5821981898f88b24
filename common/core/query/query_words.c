#include "common/core/query/query_words.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"

// Whether the character ends a word that is not in quotes.
static bool is_end(char c)
{
    return strchr(" \t\r\n=,\"'\\", c); // also the text's end
}

size_t query_column(const char *line, size_t at)
{
    size_t column = 1;
    for (size_t i = 0; i < at && line[i] != '\0'; i++)
        column += ((unsigned char)line[i] & 0xc0) != 0x80;
    return column;
}

struct reading {
    struct query_word *word;
    const char *line;
    size_t at; // the next byte of the line
    size_t size;
    struct error *err;
};

// Fails at `size` bytes from `at` on.
static enum status refuse(struct reading *reading, size_t at, size_t size, const char *why)
{
    reading->word->place = (struct query_place){at, size};
    return error_set(reading->err, STATUS_INVALID, "%s", why);
}

static enum status append(struct reading *reading, const char *bytes, size_t size)
{
    if (size >= QUERY_TEXT_SIZE - reading->size)
        return refuse(reading, reading->word->place.at, reading->at - reading->word->place.at,
                      "the name is too long (at most 255 bytes)");
    memcpy(reading->word->text + reading->size, bytes, size);
    reading->size += size;
    return STATUS_OK;
}

static bool parse_hex(struct reading *reading, unsigned most, uint32_t *out)
{
    char digits[8] = "";
    const size_t size = strspn(reading->line + reading->at, "0123456789abcdefABCDEF");
    memcpy(digits, reading->line + reading->at, size < most ? size : most);
    *out = (uint32_t)strtoul(digits, NULL, 16);
    reading->at += strlen(digits);
    return size > 0;
}

static enum status parse_escape(struct reading *reading)
{
    const size_t from = reading->at - 1;
    const char kind = reading->line[reading->at++];
    uint32_t code;
    char bytes[4] = {kind};
    size_t size = 1;
    switch (kind) {
    case 'n':
        bytes[0] = '\n';
        break;
    case 't':
        bytes[0] = '\t';
        break;
    case 'x':
        if (!parse_hex(reading, 2, &code) || code == 0)
            return refuse(reading, from, reading->at - from, "\\x is to be \\x01 to \\xFF");
        bytes[0] = (char)code;
        break;
    case 'u':
        size = 0;
        if (reading->line[reading->at] == '{') {
            reading->at++;
            size = parse_hex(reading, 6, &code) ? text_encode(bytes, code) : 0;
        }
        if (size == 0 || reading->line[reading->at] != '}')
            return refuse(reading, from, reading->at - from, "\\u is to be \\u{1} to \\u{10FFFF}");
        reading->at++;
        break;
    case '\\':
    case '"':
    case '\'':
        break;
    default:
        return refuse(reading, from, kind ? 2 : 1,
                      "unknown escape (one of \\\\ \\\" \\' \\n \\t \\xNN \\u{NNNN})");
    }
    return append(reading, bytes, size);
}

static enum status parse_quoted(struct reading *reading, char quote)
{
    const char *line = reading->line;
    const size_t from = reading->at++;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && line[reading->at] != quote) {
        if (line[reading->at] == '\0')
            return refuse(reading, from, 1, "the quote has no end");
        if (line[reading->at++] == '\\')
            status = parse_escape(reading);
        else
            status = append(reading, &line[reading->at - 1], 1);
    }
    reading->at += status == STATUS_OK;
    return status;
}

static enum status parse_plain(struct reading *reading)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !is_end(reading->line[reading->at]))
        status = append(reading, &reading->line[reading->at++], 1);
    return status;
}

enum status query_word_read(struct query_word *word, const char *line, size_t from,
                            struct error *err)
{
    const size_t at = from + strspn(line + from, " \t\r\n");
    *word = (struct query_word){.place = {.at = at}};
    struct reading reading = {.word = word, .line = line, .at = at, .err = err};
    const char first = line[at];
    if (first == '\0')
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (first == '=' || first == ',') {
        word->kind = first == '=' ? QUERY_WORD_EQUALS : QUERY_WORD_COMMA;
        reading.at++;
        status = append(&reading, &first, 1);
    } else if (first == '\\') {
        return refuse(&reading, at, 1, "a backslash stands in quotes only");
    } else {
        word->kind = QUERY_WORD_TEXT;
        word->quoted = first == '"' || first == '\'';
        status = word->quoted ? parse_quoted(&reading, first) : parse_plain(&reading);
    }
    if (status != STATUS_OK)
        return status;
    word->text[reading.size] = '\0';
    word->place.size = reading.at - at;
    if (!text_is_utf8(word->text, reading.size))
        return refuse(&reading, at, reading.at - at, "the name is not UTF-8");
    return STATUS_OK;
}

static bool is_plain(const char *text)
{
    return text[0] != '\0' && text[strspn(text, TEXT_NAME_CHARACTERS ":/+@%")] == '\0';
}

// Writes one character in quotes.  Characters that a terminal does not show as text are escaped
// by text_escape, which parses back.
static size_t quoted_piece(char out[32], const char *text, size_t length)
{
    if (*text == '"' || *text == '\\') {
        out[0] = '\\';
        out[1] = *text;
        return 2;
    }
    return strlen(text_escape(out, 32, text, length));
}

static size_t quoted(char *out, size_t size, const char *text)
{
    size_t used = 0;
    out[used++] = '"';
    for (const char *end = text + strlen(text); text < end;) {
        char piece[32];
        const size_t length = text_character(text, (size_t)(end - text), NULL);
        const size_t taken = length > 0 ? length : 1;
        const size_t piece_size = quoted_piece(piece, text, taken);
        if (piece_size + 2 > size - used) // the closing quote and the end
            return 0;
        memcpy(out + used, piece, piece_size);
        used += piece_size;
        text += taken;
    }
    out[used++] = '"';
    return used;
}

bool query_word_write(char *out, size_t size, size_t *used, const char *text, bool in_quotes)
{
    const size_t room = size - *used;
    size_t added = 0;
    if (!in_quotes && is_plain(text)) {
        added = strlen(text) < room ? strlen(text) : 0;
        memcpy(out + *used, text, added);
    } else if (room > 3) {
        added = quoted(out + *used, room, text);
    }
    if (added > 0)
        *used += added;
    out[*used] = '\0';
    return added > 0;
}
