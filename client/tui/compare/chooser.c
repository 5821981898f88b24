#include "client/tui/compare/chooser.h"

#include <stdio.h>
#include <string.h>

void chooser_open(struct model *model)
{
    model->chooser = (struct chooser){.cursor = model->scope.comparison.kind};
    model->overlay = OVERLAY_CHOOSER;
}

// The different texts of a column, without the one that side A has.
static size_t find_names(const struct chooser *chooser, const struct result *result,
                         const char *key, const char *choices[CHOOSER_MAX])
{
    const char *taken = chooser->step == CHOOSER_B ? chooser->draft.names[0] : "";
    size_t count = 0;
    for (size_t row = 0; result && row < result_row_count(result) && count < CHOOSER_MAX; row++) {
        const struct value name = result_get(result, row, key);
        bool is_new = name.type == VALUE_TEXT && name.text.size < QUERY_TEXT_SIZE &&
                      strcmp(name.text.bytes, taken) != 0;
        for (size_t i = 0; is_new && i < count; i++)
            is_new = strcmp(choices[i], name.text.bytes) != 0;
        if (is_new)
            choices[count++] = name.text.bytes;
    }
    return count;
}

size_t chooser_choices(const struct model *model, const char *choices[CHOOSER_MAX])
{
    const struct chooser *chooser = &model->chooser;
    const struct result *overview = model_answer(model, POLL_OVERVIEW);
    if (chooser->step == CHOOSER_KIND) {
        for (unsigned kind = 0; kind < COMPARISON_KINDS; kind++)
            choices[kind] = comparison_kind_text((enum comparison_kind)kind);
        return COMPARISON_KINDS;
    }
    switch (chooser->draft.kind) {
    case COMPARISON_WINDOWS:
        for (unsigned i = 0; i < comparison_earlier_count(); i++)
            choices[i] = comparison_earlier_text(i);
        return comparison_earlier_count();
    case COMPARISON_MODELS:
        return find_names(chooser, overview, "model", choices);
    case COMPARISON_HOSTS:
        return find_names(chooser, overview, "host", choices);
    case COMPARISON_BASELINE:
    case COMPARISON_BASELINES:
    case COMPARISON_KINDS:
        break;
    }
    return find_names(chooser, model_answer(model, POLL_BASELINES), "baseline", choices);
}

static bool choose(struct model *model, const char *choice)
{
    struct chooser *chooser = &model->chooser;
    const size_t place = chooser->cursor;
    struct comparison *draft = &chooser->draft;
    const bool is_last = chooser->step == CHOOSER_B ||
                         (chooser->step == CHOOSER_A && comparison_sides(draft->kind) < 2);
    if (chooser->step == CHOOSER_KIND)
        draft->kind = (enum comparison_kind)place;
    else if (draft->kind == COMPARISON_WINDOWS)
        draft->earlier = (unsigned)place;
    else
        (void)snprintf(draft->names[chooser->step - CHOOSER_A], QUERY_TEXT_SIZE, "%s", choice);
    if (!is_last) {
        *chooser = (struct chooser){chooser->step + 1, 0, *draft};
        return false;
    }
    model->overlay = OVERLAY_NONE;
    model->paused = false;
    model->scope.comparison = *draft;
    model_forget(model, POLL(COMPARE)); // the answer about another choice
    return true;
}

bool chooser_act(struct model *model, enum action action)
{
    enum { PAGE = 8 };
    const char *choices[CHOOSER_MAX];
    struct chooser *chooser = &model->chooser;
    const size_t count = chooser_choices(model, choices), last = count > 0 ? count - 1 : 0;
    if (chooser->cursor > last) // the answer has fewer names now
        chooser->cursor = last;
    const size_t ahead = last - chooser->cursor;
    if (action == ACTION_APPLY && count > 0)
        return choose(model, choices[chooser->cursor]);
    if (action == ACTION_CANCEL && chooser->step == CHOOSER_KIND)
        model->overlay = OVERLAY_NONE;
    else if (action == ACTION_CANCEL)
        *chooser = (struct chooser){chooser->step - 1, 0, chooser->draft};
    else if (action == ACTION_UP && chooser->cursor > 0)
        chooser->cursor--;
    else if (action == ACTION_DOWN && ahead > 0)
        chooser->cursor++;
    else if (action == ACTION_PAGE_UP)
        chooser->cursor -= chooser->cursor < PAGE ? chooser->cursor : PAGE;
    else if (action == ACTION_PAGE_DOWN)
        chooser->cursor += ahead < PAGE ? ahead : PAGE;
    else if (action == ACTION_HOME || action == ACTION_END)
        chooser->cursor = action == ACTION_HOME ? 0 : last;
    return false;
}
