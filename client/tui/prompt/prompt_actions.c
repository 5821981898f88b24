#include "client/tui/prompt/prompt_actions.h"

#include <stdio.h>
#include <string.h>

#include "client/tui/grid_rows.h"
#include "client/tui/lists.h"
#include "client/tui/update.h"
#include "client/tui/view.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

// What the dashboard asks for has models, hosts, devices and runs to filter by.
static enum status check_filter(const struct query_filter *filter, struct error *err)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && i != QUERY_BY_MODEL && i != QUERY_BY_HOST && i != QUERY_BY_DEVICE &&
            i != QUERY_BY_RUN)
            return error_set(err, STATUS_INVALID, "what the dashboard shows has no %s",
                             query_dimension_name((enum query_dimension)i));
    return STATUS_OK;
}

static enum status read_filter(const struct model *model, struct query_filter *filter,
                               struct query_place *place, struct error *err)
{
    int64_t now_ns = model_reference_ns(model);
    enum status status =
        query_text_read_filter(filter, model->prompt.text, model->when, &now_ns, place, err);
    if (status != STATUS_OK)
        return status;
    *place = (struct query_place){0, model->prompt.size};
    return check_filter(filter, err);
}

void prompts_open(struct model *model, enum overlay overlay, const char *text)
{
    prompt_open(&model->prompt, text);
    model->overlay = overlay;
}

// True if the text is of conditions and times; else it is one that rows have.
static bool is_query(const char *text)
{
    static const char *const clauses[] = {"where", "since", "until"};
    bool is = strchr(text, '=') != NULL;
    for (unsigned i = 0; i < sizeof clauses / sizeof *clauses; i++) {
        const size_t size = strlen(clauses[i]);
        is |= strncmp(text, clauses[i], size) == 0 && (text[size] == ' ' || !text[size]);
    }
    return is;
}

// The screen is to show what was asked for, also after a pause.
static unsigned apply(struct model *model)
{
    struct query_filter filter = {0};
    struct prompt *prompt = &model->prompt;
    struct error err = {0};
    const bool has_filter = is_query(prompt->text);
    if (has_filter && read_filter(model, &filter, &prompt->place, &err) != STATUS_OK) {
        (void)text_escape(prompt->error, sizeof prompt->error, err.text, strlen(err.text));
        return 0;
    }
    prompt_history_add(&model->filters, prompt->text);
    if (has_filter)
        model_filter(model, &filter, prompt->text);
    else
        model_filter_rows(model, prompt->text);
    lists_keep(model);
    model->overlay = OVERLAY_NONE;
    model->paused = false;
    return EFFECT_SCOPE | EFFECT_ASK | EFFECT_PACE;
}

void prompts_find(struct model *model, int step)
{
    const struct list list = list_focused(model);
    if (!model->search[0])
        model_notify(model, "nothing is searched for: / searches");
    else if (!list.grid)
        model_notify(model, "this panel has no rows to search");
    else if (!grid_rows_find(list.grid, list.state, list.result, model->search, step, list.page))
        model_notify(model, "not found");
}

static unsigned search(struct model *model)
{
    model->overlay = OVERLAY_NONE;
    prompt_history_add(&model->searches, model->prompt.text);
    (void)text_escape(model->search, sizeof model->search, model->prompt.text, model->prompt.size);
    if (model->search[0])
        prompts_find(model, 0);
    return 0;
}

static unsigned clear(struct model *model)
{
    if (strcmp(model->prompt.text, model_clear_word(model)) != 0) {
        (void)snprintf(model->prompt.error, sizeof model->prompt.error,
                       "nothing is cleared until the text is exactly that");
        return 0;
    }
    model->overlay = OVERLAY_NONE;
    model->paused = false; // the screen is to show what the clear has done
    model_notify(model, "clearing ...");
    model->change = (struct query){.kind = QUERY_CLEAR, .filter = model->scope.filter};
    return EFFECT_CHANGE | EFFECT_PACE;
}

// Builds the change of the alert in a row, without its reason.
static void prepare_edit(struct model *model, size_t row, bool silences)
{
    static const enum query_dimension names[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE};
    const int64_t two_hours_ns = INT64_C(7200000000000);
    const struct result *alerts = model_answer(model, POLL_ALERTS);
    struct query *query = &model->change;
    *query = (struct query){.kind = QUERY_ALERT_EDIT};
    query->alert.edit = silences ? QUERY_ALERT_SILENCE : QUERY_ALERT_ACK;
    query->alert.id = silences ? 0 : result_integer(alerts, row, "id", 0);
    if (!silences)
        return;
    query->alert.for_ns = two_hours_ns;
    const struct value rule = result_get(alerts, row, "rule");
    (void)snprintf(query->alert.rule, sizeof query->alert.rule, "%s",
                   rule.type == VALUE_TEXT ? rule.text.bytes : "");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        (void)queries_copy_name(&query->filter, names[i], alerts, row);
}

void prompts_open_alert(struct model *model, enum overlay overlay)
{
    size_t row;
    const bool has_alerts = view_current(model) == &view_alerts &&
                            model->views[view_shown(model)].focus == 0 &&
                            view_selected(model, 0, &row);
    const char *why = model_why_unchangeable(model);
    if (why) {
        model_notify(model, why);
    } else if (!has_alerts) {
        model_notify(model, "there is no open alert at the cursor (the view Alerts has them)");
    } else {
        prepare_edit(model, row, overlay == OVERLAY_SILENCE);
        prompts_open(model, overlay, "");
    }
}

static unsigned edit_alert(struct model *model)
{
    (void)snprintf(model->change.alert.text, sizeof model->change.alert.text, "%.1000s",
                   model->prompt.text);
    model->overlay = OVERLAY_NONE;
    return EFFECT_CHANGE;
}

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

// Completes the word before the prompt's cursor, as far as that is clear, to a name that the
// dashboard's answers have: of the dimension after "model=" and the like, else of any, or the start
// of a condition.  model->prompt.choices tells the possible words if there are several.
static void complete(struct model *model)
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

static unsigned apply_prompt(struct model *model)
{
    if (model->overlay == OVERLAY_ACKNOWLEDGE || model->overlay == OVERLAY_SILENCE)
        return edit_alert(model);
    if (model->overlay == OVERLAY_SEARCH)
        return search(model);
    if (model->overlay == OVERLAY_CLEAR)
        return clear(model);
    if (model->overlay == OVERLAY_FILTER)
        return apply(model);
    model->overlay = OVERLAY_NONE; // the screen is exported without the prompt
    return EFFECT_EXPORT;
}

unsigned prompts_act(struct model *model, enum action action, uint32_t code)
{
    const unsigned effects = action == ACTION_APPLY ? apply_prompt(model) : 0;
    model->is_changing |= (effects & EFFECT_CHANGE) != 0;
    if (action == ACTION_APPLY)
        return effects;
    const bool has_history = model->overlay == OVERLAY_FILTER || model->overlay == OVERLAY_SEARCH;
    if (action == ACTION_CANCEL && model->overlay == OVERLAY_EXPORT)
        model->written[0] = '\0'; // a file that was asked about is asked about again
    if (action == ACTION_CANCEL)
        model->overlay = OVERLAY_NONE;
    else if (action == ACTION_COMPLETE && has_history)
        complete(model);
    else if ((action == ACTION_UP || action == ACTION_DOWN) && has_history)
        prompt_history_step(model->overlay == OVERLAY_FILTER ? &model->filters : &model->searches,
                            &model->prompt, action == ACTION_UP ? 1 : -1);
    else
        prompt_edit(&model->prompt, action, code);
    return 0;
}
