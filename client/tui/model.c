#include "client/tui/model.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

void model_init(struct model *model, const char *name, double interval_seconds)
{
    *model = (struct model){.interval_seconds = interval_seconds, .scope.window = WINDOW_DEFAULT};
    (void)text_escape(model->name, sizeof model->name, name, strlen(name));
    for (unsigned view = 0; view < MODEL_VIEWS_MAX; view++)
        for (unsigned panel = 0; panel < MODEL_PANELS_MAX; panel++)
            model->views[view].panels[panel] =
                (struct grid_state){.sort = GRID_UNSORTED, .choice = &model->choice};
}

void model_deinit(struct model *model)
{
    for (unsigned polled = 0; polled < POLL_ANSWERS; polled++)
        result_free(model->answers[polled].result);
    *model = (struct model){0};
}

void model_forget(struct model *model, uint64_t queries)
{
    if (queries & (POLL(HOSTS) | POLL(DEVICES) | POLL(EVENTS)))
        queries |= POLL(MACHINES);
    if (queries & POLL(NOW))
        queries |= POLL(ALL_NOW);
    for (unsigned polled = 0; polled < POLL_ANSWERS; polled++) {
        if (!(queries >> polled & 1))
            continue;
        result_free(model->answers[polled].result);
        model->answers[polled] = (struct model_answer){0};
        if (polled < POLL_COUNT)
            model->scope.generations[polled]++;
    }
}

void model_filter(struct model *model, const struct query_filter *filter, const char *text)
{
    if (memcmp(&model->scope.filter, filter, sizeof *filter) != 0)
        model_forget(model, queries_of_filter());
    model->scope.filter = *filter;
    model->choice.only[0] = '\0';
    model->filtered = query_filter_narrows(filter);
    (void)snprintf(model->filter_text, sizeof model->filter_text, "%s",
                   model->filtered ? text : "");
}

void model_filter_rows(struct model *model, const char *text)
{
    model_filter(model, &(struct query_filter){0}, "");
    (void)snprintf(model->choice.only, sizeof model->choice.only, "%s", text);
}

int64_t model_reference_ns(const struct model *model)
{
    return model->scope.now_ns != 0 ? model->scope.now_ns : model->wall_now_ns;
}

bool model_is_now(const struct model *model)
{
    const int64_t day_ns = INT64_C(86400000000000), now_ns = model_reference_ns(model);
    struct query_filter filter = model->scope.filter;
    queries_period(&model->scope, now_ns, &filter);
    return !filter.by[QUERY_BY_DEVICE][0] && !filter.by[QUERY_BY_RUN][0] &&
           filter.since_ns > (filter.until_ns ? filter.until_ns : now_ns) - day_ns - 1;
}

bool model_asks_now(const struct model *model)
{
    const struct query_filter *filter = &model->scope.filter;
    return model_is_now(model) || (!model_is_past(model) && !filter->by[QUERY_BY_DEVICE][0] &&
                                   !filter->by[QUERY_BY_RUN][0]);
}

const struct result *model_answer(const struct model *model, enum polled_query polled)
{
    return model->answers[polled].result;
}

bool model_is_past(const struct model *model)
{
    return !window_is_live(&model->scope.window) || model->scope.filter.until_ns != 0;
}

bool model_alert_is_told(const struct result *alerts, size_t row, bool critical)
{
    const bool fires = result_is(alerts, row, "state", "firing") &&
                       result_get(alerts, row, "acknowledged_ns").type == VALUE_NULL &&
                       result_get(alerts, row, "silenced_until_ns").type == VALUE_NULL;
    return (fires || result_is(alerts, row, "state", "resolved")) &&
           result_is(alerts, row, "severity", "critical") == critical;
}

bool model_is_group(const struct result *now, size_t row)
{
    return result_get(now, row, "group_size").type != VALUE_NULL;
}

// 1: the same name as an alert's; -1: another; 0: the alert, or a row of a group, has none.
static int compare_names(struct value a, struct value b, bool is_group)
{
    if (a.type != VALUE_TEXT || (b.type != VALUE_TEXT && is_group))
        return 0;
    return value_is_same(a, b) ? 1 : -1;
}

static void mark_alert(struct result *now, const char *rule, struct value model, struct value host)
{
    char why[256];
    const int state = result_find(now, "state"), reason = result_find(now, "reason");
    const size_t size = (size_t)snprintf(why, sizeof why, "alert %.200s", rule);
    for (size_t row = 0; state >= 0 && reason >= 0 && row < result_row_count(now); row++) {
        const bool is_group = model_is_group(now, row);
        const int by_model = compare_names(model, result_get(now, row, "model"), is_group);
        const int by_host = compare_names(host, result_get(now, row, "host"), is_group);
        if (by_model < 0 || by_host < 0 || by_model + by_host == 0 ||
            (!result_is(now, row, "state", "ok") && !result_is(now, row, "state", "idle")))
            continue;
        (void)result_replace_text(now, row, (unsigned)state, "alert", 5);
        (void)result_replace_text(now, row, (unsigned)reason, why, size);
    }
}

void model_mark_alerts(struct model *model)
{
    char rule[256];
    struct result *now = model->answers[POLL_NOW].result;
    struct result *alerts = model->answers[POLL_ALERTS].result;
    const int state = alerts ? result_find(alerts, "state") : -1;
    for (size_t row = 0; state >= 0 && row < result_row_count(alerts); row++) {
        if (result_is(alerts, row, "state", "firing") &&
            result_get(alerts, row, "silenced_until_ns").type != VALUE_NULL)
            (void)result_replace_text(alerts, row, (unsigned)state, "silenced", 8);
        if (now && !model_is_past(model) && model_alert_is_told(alerts, row, true))
            mark_alert(now, result_text(rule, sizeof rule, alerts, row, "rule"),
                       result_get(alerts, row, "model"), result_get(alerts, row, "host"));
    }
}

double model_figure(const struct model *model, const char *key, double absent)
{
    const struct result *summary = model_answer(model, POLL_SUMMARY);
    return summary ? result_number(summary, 0, key, absent) : absent;
}

int64_t model_lost(const struct model *model)
{
    return (int64_t)(model_figure(model, "dropped", 0) + model_figure(model, "unnumbered", 0));
}

double model_age_seconds(const struct model *model)
{
    if (model->answered_ns == 0 || model->now_ns < model->answered_ns)
        return 0;
    return (double)(model->now_ns - model->answered_ns) / 1e9;
}

uint64_t model_overdue_ns(const struct model *model)
{
    const double slack_seconds = 0.5;
    if (model->answered_ns == 0 || model->paused || model->contact != CONTACT_OK)
        return 0;
    return model->answered_ns + (uint64_t)((model->interval_seconds + slack_seconds) * 1e9);
}

enum key_context model_key_context(const struct model *model)
{
    static const enum key_context contexts[] = {
        [OVERLAY_NONE] = KEYS_VIEW,       [OVERLAY_HELP] = KEYS_HELP,
        [OVERLAY_DETAIL] = KEYS_HELP,     [OVERLAY_CLEAR] = KEYS_PROMPT,
        [OVERLAY_FILTER] = KEYS_PROMPT,   [OVERLAY_SEARCH] = KEYS_PROMPT,
        [OVERLAY_EXPORT] = KEYS_PROMPT,   [OVERLAY_ACKNOWLEDGE] = KEYS_PROMPT,
        [OVERLAY_SILENCE] = KEYS_PROMPT,  [OVERLAY_SETUP] = KEYS_SETUP,
        [OVERLAY_CHOOSER] = KEYS_CHOOSER, [OVERLAY_WHY] = KEYS_HELP};
    return contexts[model->overlay];
}

const char *model_why_unchangeable(const struct model *model)
{
    if (model->readonly)
        return "the dashboard was started with --readonly";
    if (model->contact == CONTACT_LOST)
        return "there is no answer from the collector";
    return model->is_changing ? "the last change has not been answered yet" : NULL;
}

const char *model_clear_word(const struct model *model)
{
    static const enum query_dimension names[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE,
                                                 QUERY_BY_RUN};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (model->scope.filter.by[names[i]][0])
            return model->scope.filter.by[names[i]];
    return "everything";
}

void model_notify(struct model *model, const char *text)
{
    const uint64_t notice_ns = UINT64_C(5000000000);
    (void)text_escape(model->notice, sizeof model->notice, text, strlen(text));
    model->notice_until_ns = model->now_ns + notice_ns;
}
