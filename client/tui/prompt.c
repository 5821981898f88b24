#include "client/tui/prompt.h"

#include <string.h>

#include "common/core/base/text.h"

void prompt_open(struct prompt *prompt, const char *text)
{
    *prompt = (struct prompt){0};
    prompt->size = text_cut(text, strlen(text), PROMPT_SIZE - 1);
    memcpy(prompt->text, text, prompt->size);
    prompt->cursor = prompt->size;
}

static void forgive(struct prompt *prompt)
{
    prompt->error[0] = '\0';
    prompt->place = (struct query_place){0};
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

bool prompt_insert(struct prompt *prompt, uint32_t code)
{
    char bytes[4];
    const size_t size = is_control(code) ? 0 : text_encode(bytes, code);
    if (size == 0 || prompt->size + size >= PROMPT_SIZE)
        return false;
    char *at = prompt->text + prompt->cursor;
    memmove(at + size, at, prompt->size - prompt->cursor + 1);
    memcpy(at, bytes, size);
    prompt->size += size;
    prompt->cursor += size;
    forgive(prompt);
    return true;
}

void prompt_empty(struct prompt *prompt)
{
    prompt_open(prompt, "");
}

void prompt_left(struct prompt *prompt)
{
    if (prompt->cursor == 0)
        return;
    do
        prompt->cursor--;
    while (prompt->cursor > 0 && ((unsigned char)prompt->text[prompt->cursor] & 0xc0) == 0x80);
}

void prompt_right(struct prompt *prompt)
{
    prompt->cursor +=
        text_character(prompt->text + prompt->cursor, prompt->size - prompt->cursor, NULL);
}

void prompt_home(struct prompt *prompt)
{
    prompt->cursor = 0;
}

void prompt_end(struct prompt *prompt)
{
    prompt->cursor = prompt->size;
}

void prompt_erase_behind(struct prompt *prompt)
{
    char *at = prompt->text + prompt->cursor;
    const size_t size = text_character(at, prompt->size - prompt->cursor, NULL);
    memmove(at, at + size, prompt->size - prompt->cursor - size + 1);
    prompt->size -= size;
    if (size > 0)
        forgive(prompt);
}

void prompt_erase_before(struct prompt *prompt)
{
    if (prompt->cursor == 0)
        return;
    prompt_left(prompt);
    prompt_erase_behind(prompt);
}
