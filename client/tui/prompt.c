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

static void insert(struct prompt *prompt, uint32_t code)
{
    char bytes[4];
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const size_t size = is_control ? 0 : text_encode(bytes, code);
    if (size == 0 || prompt->size + size >= PROMPT_SIZE)
        return;
    char *at = prompt->text + prompt->cursor;
    memmove(at + size, at, prompt->size - prompt->cursor + 1);
    memcpy(at, bytes, size);
    prompt->size += size;
    prompt->cursor += size;
    forgive(prompt);
}

void prompt_left(struct prompt *prompt)
{
    if (prompt->cursor == 0)
        return;
    do
        prompt->cursor--;
    while (prompt->cursor > 0 && ((unsigned char)prompt->text[prompt->cursor] & 0xc0) == 0x80);
}

// Bytes of the character behind the cursor; 0 at the end.
static size_t size_behind(const struct prompt *prompt)
{
    return text_character(prompt->text + prompt->cursor, prompt->size - prompt->cursor, NULL);
}

// Deletes the `size` bytes behind the cursor.
static void erase(struct prompt *prompt, size_t size)
{
    char *at = prompt->text + prompt->cursor;
    memmove(at, at + size, prompt->size - prompt->cursor - size + 1);
    prompt->size -= size;
    if (size > 0)
        forgive(prompt);
}

void prompt_edit(struct prompt *prompt, enum action action, uint32_t code)
{
    const size_t before = prompt->cursor;
    switch ((int)action) {
    case ACTION_NONE:
        insert(prompt, code);
        break;
    case ACTION_LEFT:
        prompt_left(prompt);
        break;
    case ACTION_RIGHT:
        prompt->cursor += size_behind(prompt);
        break;
    case ACTION_HOME:
        prompt->cursor = 0;
        break;
    case ACTION_END:
        prompt->cursor = prompt->size;
        break;
    case ACTION_ERASE_BEFORE:
        prompt_left(prompt);
        erase(prompt, before - prompt->cursor);
        break;
    case ACTION_ERASE_BEHIND:
        erase(prompt, size_behind(prompt));
        break;
    case ACTION_EMPTY:
        prompt_open(prompt, "");
        break;
    default:
        break;
    }
}
