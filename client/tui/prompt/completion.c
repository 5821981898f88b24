#include "client/tui/prompt/completion.h"

#include <stdio.h>
#include <string.h>

#include "client/tui/view.h"
#include "common/core/base/text.h"

// The word before the cursor, and the words found that begin with it.
struct search {
    const char *word;
    size_t size;
    char common[QUERY_TEXT_SIZE]; // what they all begin with
    char *list;                   // names of them, PROMPT_CHOICES_SIZE bytes
    unsigned count;
};

static bool is_listed(const char *list, const char *word, size_t size)
{
    for (const char *at = list; (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (at[size] == ' ' || !at[size]))
            return true;
    return false;
}

static void consider(struct search *search, const char *word)
{
    const size_t size = strlen(word);
    if (size >= sizeof search->common || strncasecmp(word, search->word, search->size) != 0 ||
        word[strcspn(word, " \"'")] || is_listed(search->list, word, size))
        return;
    if (search->count++ == 0)
        (void)snprintf(search->common, sizeof search->common, "%s", word);
    size_t same = 0;
    while (search->common[same] && search->common[same] == word[same])
        same++;
    search->common[text_cut(search->common, strlen(search->common), same)] = '\0';
    (void)text_append(search->list, PROMPT_CHOICES_SIZE, " ", "%s", word);
}

static void consider_names(struct search *search, const struct model *model, const char *key)
{
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        const struct result *result = model_answer(model, (enum polled_query)polled);
        const int column = result ? result_find(result, key) : -1;
        for (size_t row = 0; column >= 0 && row < result_row_count(result); row++) {
            const struct value value = result_cell(result, row, (unsigned)column);
            if (value.type == VALUE_TEXT && strlen(value.text.bytes) == value.text.size)
                consider(search, value.text.bytes);
        }
    }
}

void completion_complete(struct model *model)
{
    static const enum query_dimension names[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE};
    static const char *const others[] = {"run=", "since", "until"};
    struct prompt *prompt = &model->prompt;
    struct search search = {.list = prompt->choices};
    size_t from = prompt->cursor;
    while (from > 0 && !strchr(" =", prompt->text[from - 1]))
        from--;
    search.word = prompt->text + from;
    search.size = prompt->cursor - from;
    prompt->choices[0] = '\0';
    const bool is_value = from > 0 && prompt->text[from - 1] == '=';
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const char *name = query_dimension_name(names[i]);
        const size_t size = strlen(name);
        char condition[32];
        (void)snprintf(condition, sizeof condition, "%s=", name);
        if (!is_value || (from > size && strncmp(search.word - size - 1, condition, size + 1) == 0))
            consider_names(&search, model, name);
        if (!is_value)
            consider(&search, condition);
    }
    for (unsigned i = 0; !is_value && i < sizeof others / sizeof *others; i++)
        consider(&search, others[i]);
    if (search.count > 0)
        prompt_replace(prompt, from, search.common);
    if (search.count == 1)
        prompt->choices[0] = '\0';
}
