#include "client/tui/prompt/prompt.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

void prompt_open(struct prompt *prompt, const char *text)
{
    *prompt = (struct prompt){0};
    prompt->size = text_copy(prompt->text, PROMPT_SIZE, text);
    prompt->cursor = prompt->size;
}

static void forgive(struct prompt *prompt)
{
    prompt->error[0] = prompt->choices[0] = '\0';
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
    if (action == ACTION_NONE)
        insert(prompt, code);
    else if (action == ACTION_LEFT)
        prompt_left(prompt);
    else if (action == ACTION_RIGHT)
        prompt->cursor += size_behind(prompt);
    else if (action == ACTION_HOME || action == ACTION_END)
        prompt->cursor = action == ACTION_HOME ? 0 : prompt->size;
    else if (action == ACTION_ERASE_BEHIND)
        erase(prompt, size_behind(prompt));
    else if (action == ACTION_EMPTY)
        prompt_open(prompt, "");
    if (action != ACTION_ERASE_BEFORE)
        return;
    prompt_left(prompt);
    erase(prompt, before - prompt->cursor);
}

void prompt_replace(struct prompt *prompt, size_t from, const char *text)
{
    const size_t size = strlen(text), behind = prompt->size - prompt->cursor;
    if (from + size + behind >= PROMPT_SIZE)
        return;
    memmove(prompt->text + from + size, prompt->text + prompt->cursor, behind + 1);
    memcpy(prompt->text + from, text, size);
    prompt->size = from + size + behind;
    prompt->cursor = from + size;
}

void prompt_history_add(struct prompt_history *history, const char *text)
{
    unsigned at = 0;
    if (!text[0] || strlen(text) >= PROMPT_HISTORY_SIZE)
        return;
    while (at < history->count && strcmp(history->lines[at], text) != 0)
        at++;
    if (at == history->count && history->count < PROMPT_HISTORY_MAX)
        history->count++;
    if (at == PROMPT_HISTORY_MAX)
        at--; // the oldest goes
    memmove(history->lines + 1, history->lines, at * sizeof *history->lines);
    (void)snprintf(history->lines[0], PROMPT_HISTORY_SIZE, "%s", text);
}

void prompt_history_step(const struct prompt_history *history, struct prompt *prompt, int step)
{
    char own[PROMPT_HISTORY_SIZE];
    const unsigned line = prompt->line + (unsigned)step;
    if (line > history->count) // also before the first
        return;
    const char *kept = prompt->line == 0 ? prompt->text : prompt->own;
    (void)snprintf(own, sizeof own, "%.255s", kept);
    prompt_open(prompt, line == 0 ? own : history->lines[line - 1]);
    memcpy(prompt->own, own, sizeof own);
    prompt->line = line;
}
