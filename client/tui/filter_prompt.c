#include "client/tui/filter_prompt.h"

#include <stdio.h>
#include <string.h>

#include "client/tui/update.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

void filter_prompt_set(struct model *model, const struct query_filter *filter)
{
    char text[PROMPT_SIZE];
    const struct query_filter none = {0};
    model->given = filter ? *filter : none;
    // A time that has no text is no reason to show another one's records.
    if (query_text_write_filter(text, sizeof text, &model->given, NULL) != STATUS_OK)
        (void)snprintf(text, sizeof text, "(as the command line says)");
    model_filter(model, &model->given, text);
}

void filter_prompt_open(struct model *model)
{
    prompt_open(&model->prompt, model->filter_text);
    model->overlay = OVERLAY_FILTER;
}

// What is asked for has no operations, stages, workloads and statuses to filter by.
static enum status check(const struct query_filter *filter, struct error *err)
{
    static const enum query_dimension others[] = {QUERY_BY_OPERATION, QUERY_BY_STAGE,
                                                  QUERY_BY_WORKLOAD, QUERY_BY_STATUS};
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        if (filter->by[others[i]][0])
            return error_set(err, STATUS_INVALID, "what the dashboard shows has no %s",
                             query_dimension_name(others[i]));
    return STATUS_OK;
}

static enum status read_filter(const struct model *model, struct query_filter *filter,
                               struct query_place *place, struct error *err)
{
    int64_t now_ns = model->wall_now_ns;
    enum status status =
        query_text_read_filter(filter, model->prompt.text, model->when, &now_ns, place, err);
    if (status != STATUS_OK)
        return status;
    *place = (struct query_place){0, model->prompt.size};
    return check(filter, err);
}

static unsigned apply(struct model *model)
{
    struct query_filter filter;
    struct prompt *prompt = &model->prompt;
    struct error err = {0};
    if (read_filter(model, &filter, &prompt->place, &err) != STATUS_OK) {
        (void)text_escape(prompt->error, sizeof prompt->error, err.text, strlen(err.text));
        return 0;
    }
    model_filter(model, &filter, prompt->text);
    model->overlay = OVERLAY_NONE;
    model->paused = false; // the screen is to show what was asked for
    return EFFECT_FILTER | EFFECT_ASK | EFFECT_PACE;
}

static unsigned give_back(struct model *model)
{
    const struct query_filter given = model->given;
    filter_prompt_set(model, &given);
    model->overlay = OVERLAY_NONE;
    model->paused = false;
    return EFFECT_FILTER | EFFECT_ASK | EFFECT_PACE;
}

static const struct {
    enum action action;
    void (*edit)(struct prompt *prompt);
} edits[] = {
    {ACTION_LEFT, prompt_left},
    {ACTION_RIGHT, prompt_right},
    {ACTION_HOME, prompt_home},
    {ACTION_END, prompt_end},
    {ACTION_ERASE_BEFORE, prompt_erase_before},
    {ACTION_ERASE_BEHIND, prompt_erase_behind},
    {ACTION_EMPTY, prompt_empty},
};

unsigned filter_prompt_act(struct model *model, enum action action, uint32_t code)
{
    if (action == ACTION_APPLY)
        return apply(model);
    if (action == ACTION_UNFILTER)
        return give_back(model);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        if (edits[i].action == action)
            edits[i].edit(&model->prompt);
    if (action == ACTION_NONE)
        (void)prompt_insert(&model->prompt, code);
    return 0;
}
