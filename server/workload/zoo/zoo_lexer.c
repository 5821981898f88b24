#include "server/workload/zoo/zoo_parser.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status(zoo_fail_as)(const struct zoo_parser *parser, enum status status, const char *format,
                         ...)
{
    const struct zoo_layer *layer = parser->layer;
    char text[ERROR_TEXT_SIZE], prefix[ZOO_NAME_SIZE + 32] = "";
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (layer)
        (void)snprintf(prefix, sizeof prefix, "%s (%s): ", layer->name, zoo_kind_name(layer->kind));
    return error_set(parser->err, status, "%s: line %u: %s%s", parser->path, parser->number, prefix,
                     text);
}

static const char *skip_spaces(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

static bool is_arrow(const char *at, const char *end)
{
    return end - at >= 2 && at[0] == '-' && at[1] == '>';
}

static bool is_mark(char byte)
{
    return memchr(",=()*:", byte, 6) != NULL;
}

struct zoo_token zoo_peek(const struct zoo_parser *parser)
{
    const char *at = skip_spaces(parser->at, parser->end);
    const char *end = at;
    if (is_arrow(at, parser->end))
        end += 2;
    else if (at < parser->end && is_mark(*at))
        end++;
    else
        while (end < parser->end && !isspace((unsigned char)*end) && !is_mark(*end) &&
               !is_arrow(end, parser->end))
            end++;
    return (struct zoo_token){at, (size_t)(end - at)};
}

struct zoo_token zoo_next(struct zoo_parser *parser)
{
    const struct zoo_token token = zoo_peek(parser);
    parser->at = token.text + token.size;
    return token;
}

bool zoo_is(const struct zoo_token *token, const char *word)
{
    return token->size == strlen(word) && memcmp(token->text, word, token->size) == 0;
}

const char *zoo_token_text(char text[ZOO_TOKEN_TEXT_SIZE], const struct zoo_token *token)
{
    enum { SHOWN = 40 };
    const int size = token->size < SHOWN ? (int)token->size : SHOWN;
    if (size == 0)
        (void)snprintf(text, ZOO_TOKEN_TEXT_SIZE, "the end of the line");
    else
        (void)snprintf(text, ZOO_TOKEN_TEXT_SIZE, "'%.*s'", size, token->text);
    return text;
}

enum status zoo_expect(struct zoo_parser *parser, const char *word)
{
    const struct zoo_token token = zoo_next(parser);
    char shown[ZOO_TOKEN_TEXT_SIZE];
    if (zoo_is(&token, word))
        return STATUS_OK;
    return zoo_fail(parser, "expected '%s', not %s", word, zoo_token_text(shown, &token));
}

enum status zoo_sizes(struct zoo_parser *parser, const char *what, uint32_t minimum,
                      uint32_t maximum, unsigned int most, uint32_t *out, unsigned int *count)
{
    static const char *const wrong[] = {"", "is not one number", "has more than two numbers",
                                        "is not a size such as 3 or 10x4"};
    const struct zoo_token token = zoo_next(parser);
    const char *at = token.text, *end = at + token.size;
    char shown[ZOO_TOKEN_TEXT_SIZE];
    for (*count = 0;; at++) {
        uint64_t value = 0;
        const char *digits = at;
        for (; at < end && isdigit((unsigned char)*at); at++)
            value = value > UINT32_MAX ? value : value * 10 + (uint64_t)(*at - '0');
        if (at == digits || (at < end && *at != 'x') || *count == most)
            return zoo_fail(parser, "%s: %s %s", what, zoo_token_text(shown, &token),
                            wrong[*count == most ? most : ZOO_SIZES_MAX]);
        if (value < minimum || value > maximum)
            return zoo_fail(parser, "%s: %s is not within %u to %u", what,
                            zoo_token_text(shown, &token), minimum, maximum);
        out[(*count)++] = (uint32_t)value;
        if (at == end)
            return STATUS_OK;
    }
}

enum status zoo_pair(struct zoo_parser *parser, const char *what, uint32_t minimum,
                     uint32_t maximum, uint32_t out[2])
{
    unsigned int count;
    enum status status = zoo_sizes(parser, what, minimum, maximum, 2, out, &count);
    if (status == STATUS_OK)
        out[1] = out[count - 1];
    return status;
}

enum status zoo_number(struct zoo_parser *parser, const char *what, uint32_t minimum,
                       uint32_t maximum, uint32_t *out)
{
    unsigned int count;
    return zoo_sizes(parser, what, minimum, maximum, 1, out, &count);
}

enum status zoo_name(const struct zoo_parser *parser, const struct zoo_token *token, char *out,
                     size_t size)
{
    char shown[ZOO_TOKEN_TEXT_SIZE];
    bool good = token->size > 0 && isalpha((unsigned char)token->text[0]);
    for (size_t i = 0; good && i < token->size; i++)
        good = isalnum((unsigned char)token->text[i]) || token->text[i] == '_' ||
               token->text[i] == '-';
    if (!good || token->size >= size)
        return zoo_fail(parser, "%s is not a name of at most %zu letters, digits, _ and -",
                        zoo_token_text(shown, token), size - 1);
    memcpy(out, token->text, token->size);
    out[token->size] = '\0';
    return STATUS_OK;
}
