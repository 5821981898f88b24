// The banner: what needs attention, the worst first.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

enum { NAME_SIZE = 96, ITEM_WIDTH = 60, MARGIN = 1 };

const char *view_age_text(char *text, double seconds)
{
    if (seconds < 60)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.0fs", seconds);
    else
        (void)unit_format(text, UNIT_DURATION, seconds * 1e9);
    return text;
}

const char *view_clock_text(char *text, int64_t time_ns)
{
    (void)unit_format_int(text, UNIT_TIME, time_ns);
    const char *space = strchr(text, ' ');
    return space ? space + 1 : text;
}

// What is found: the first SEGMENTS_MAX items, and how many there are.
struct findings {
    struct segments items;
    unsigned count;
};

static void add(struct findings *findings, enum style style, const char *text)
{
    const unsigned rank = findings->count++;
    segments_add_name(&findings->items, rank, style, ITEM_WIDTH, text);
}

// A name after a space; "" if it is null.
static void name_or_nothing(char text[NAME_SIZE], const struct result *result, size_t row,
                            const char *key)
{
    text[0] = '\0';
    if (result_get(result, row, key).type == VALUE_NULL)
        return;
    text[0] = ' ';
    (void)result_text(text + 1, NAME_SIZE - 1, result, row, key);
}

static bool is_same(const struct result *result, size_t a, size_t b, const char *key)
{
    return value_is_same(result_get(result, a, key), result_get(result, b, key));
}

// ---- Alerts -------------------------------------------------------------------------------

// The alerts of one rule, from the first one on: "✗ slow_first_token llama-8b gpu03"; of several
// what they have in common, and how many of what differs: "✗ device_throttled gpu07 (8 devices)".
static void add_rule(struct findings *findings, const struct result *alerts, size_t first,
                     bool critical)
{
    static const char *const keys[] = {"model", "host", "device"};
    char rule[NAME_SIZE], names[3][NAME_SIZE], text[4 * NAME_SIZE + 32];
    const char *differs = "alert";
    size_t count = 1;
    for (unsigned i = 0; i < 3; i++)
        (void)name_or_nothing(names[i], alerts, first, keys[i]);
    for (size_t row = first + 1; row < result_row_count(alerts); row++) {
        if (!model_alert_is_told(alerts, row, critical) || !is_same(alerts, first, row, "rule"))
            continue;
        count++;
        for (unsigned i = 0; i < 3; i++)
            if (!is_same(alerts, first, row, keys[i]))
                names[i][0] = '\0';
    }
    for (unsigned i = 0; i < 3; i++)
        if (!names[i][0] && result_get(alerts, first, keys[i]).type != VALUE_NULL)
            differs = keys[i];
    int size = snprintf(text, sizeof text, "%s %s%s%s%s", critical ? "✗" : "▲",
                        result_text(rule, sizeof rule, alerts, first, "rule"), names[0], names[1],
                        names[2]);
    if (count > 1)
        (void)snprintf(text + size, sizeof text - (size_t)size, " (%zu %ss)", count, differs);
    add(findings, critical ? STYLE_BAD : STYLE_WARNING, text);
}

static void add_alerts(struct findings *findings, const struct model *model, bool critical)
{
    const struct result *alerts =
        model_answer(model, model_is_past(model) ? POLL_HISTORY : POLL_ALERTS);
    for (size_t row = 0; alerts && row < result_row_count(alerts); row++) {
        bool is_first = model_alert_is_told(alerts, row, critical);
        for (size_t i = 0; i < row && is_first; i++)
            is_first =
                !model_alert_is_told(alerts, i, critical) || !is_same(alerts, i, row, "rule");
        if (is_first)
            add_rule(findings, alerts, row, critical);
    }
}

// ---- States -------------------------------------------------------------------------------

// States of NOW that need attention, the worst first.  What is told together: the models of a host
// that is gone, the hosts of a model that is slow.
static const struct {
    const char *state, *sign;
    enum style style;
    const char *together, *members;
} troubles[] = {{RECORD_RUN_DOWN, "✗", STYLE_BAD, "host", "models"},
                {"silent", "✗", STYLE_BAD, "host", "models"},
                {"errors", "✗", STYLE_BAD, "model", "hosts"},
                {"slow", "▲", STYLE_WARNING, "model", "hosts"}};

// "5s", "2m", "3h", "4d".
static const char *round_age(char *text, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    unsigned i = 0;
    while (i < 3 && seconds < units[i].seconds)
        i++;
    (void)snprintf(text, UNIT_TEXT_SIZE, "%lld%c", (long long)(seconds / units[i].seconds),
                   units[i].letter);
    return text;
}

// "12 %", "TTFT 717ms, usually 250ms", "down 2m": what is to be said of the state.
static const char *figure(char *text, size_t size, const struct model *model,
                          const struct result *now, size_t row, unsigned trouble)
{
    char number[UNIT_TEXT_SIZE] = "";
    const int64_t end_ns = queries_span(&model->scope, model->wall_now_ns).until_ns;
    const int64_t since_ns = result_integer(now, row, "since_ns", 0);
    if (strcmp(troubles[trouble].state, "slow") == 0) {
        (void)result_text(text, size, now, row, "reason");
        text[strcspn(text, "(")] = '\0';
        char *hour = strstr(text, " at this hour");
        if (hour)
            *hour = '\0';
        return text;
    }
    const double ratio = result_number(now, row, "error_ratio", NAN);
    const bool has_errors = strcmp(troubles[trouble].state, "errors") == 0;
    if (has_errors)
        (void)unit_format(number, UNIT_RATIO, ratio);
    else if (since_ns > 0 && since_ns <= end_ns)
        (void)round_age(number, (end_ns - since_ns) / 1000000000);
    if (has_errors && !isfinite(ratio))
        (void)snprintf(text, size, "load failed");
    else
        (void)snprintf(text, size, "%s%s%s", troubles[trouble].state, number[0] ? " " : "", number);
    return text;
}

// The same of several rows: the share of failed requests of their group, else what is to be said of
// each of them; the state alone if that differs.
static const char *common_figure(char *text, size_t size, const struct model *model,
                                 const struct result *now, const size_t *rows, size_t count,
                                 unsigned trouble)
{
    char other[4 * NAME_SIZE];
    const bool has_ratio = strcmp(troubles[trouble].state, "errors") == 0;
    for (size_t row = 0; has_ratio && row < result_row_count(now); row++)
        if (model_is_group(now, row) && is_same(now, rows[0], row, troubles[trouble].together) &&
            isfinite(result_number(now, row, "error_ratio", NAN)))
            return figure(text, size, model, now, row, trouble);
    (void)figure(text, size, model, now, rows[0], trouble);
    for (size_t i = 1; i < count; i++)
        if (strcmp(text, figure(other, size, model, now, rows[i], trouble)) != 0)
            (void)snprintf(text, size, "%s", troubles[trouble].state);
    return text;
}

// "✗ llama-70b gpu03 down 2m"; "✗ gpu03 down 2m (3 models)".
static void add_state(struct findings *findings, const struct model *model,
                      const struct result *now, const size_t *rows, size_t count, unsigned trouble)
{
    char name[NAME_SIZE], host[NAME_SIZE], what[NAME_SIZE], text[4 * NAME_SIZE];
    if (result_get(now, rows[0], "model").type == VALUE_NULL)
        (void)snprintf(text, sizeof text, "%s %s: process without a model %s",
                       troubles[trouble].sign, result_text(host, sizeof host, now, rows[0], "host"),
                       figure(what, sizeof what, model, now, rows[0], trouble));
    else if (count > 1)
        (void)snprintf(text, sizeof text, "%s %s %s (%zu %s)", troubles[trouble].sign,
                       result_text(name, sizeof name, now, rows[0], troubles[trouble].together),
                       common_figure(what, sizeof what, model, now, rows, count, trouble), count,
                       troubles[trouble].members);
    else
        (void)snprintf(text, sizeof text, "%s %s %s %s", troubles[trouble].sign,
                       result_text(name, sizeof name, now, rows[0], "model"),
                       result_text(host, sizeof host, now, rows[0], "host"),
                       figure(what, sizeof what, model, now, rows[0], trouble));
    add(findings, troubles[trouble].style, text);
}

// Rows of NOW in a state, of models or of none, without groups; the caller frees them.
static size_t *find_rows(const struct result *now, const char *state, bool has_model, size_t *count)
{
    size_t *rows = calloc(result_row_count(now) + 1, sizeof *rows);
    *count = 0;
    for (size_t row = 0; rows && row < result_row_count(now); row++)
        if (result_is(now, row, "state", state) && !model_is_group(now, row) &&
            has_model == (result_get(now, row, "model").type != VALUE_NULL))
            rows[(*count)++] = row;
    return rows;
}

struct order {
    const struct result *now;
    const char *key;
};

// By name, rows of one name as they are.
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct order *order = context;
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    const struct value one = result_get(order->now, a, order->key);
    const struct value other = result_get(order->now, b, order->key);
    const int names = strcmp(one.type == VALUE_TEXT ? one.text.bytes : "",
                             other.type == VALUE_TEXT ? other.text.bytes : "");
    return names ? names : (a > b) - (a < b);
}

static void add_states(struct findings *findings, const struct model *model, unsigned trouble,
                       bool has_model)
{
    const struct result *now = model_asks_now(model) ? model_answer(model, POLL_NOW) : NULL;
    const char *key = troubles[trouble].together;
    struct order order = {now, key};
    size_t count = 0, members;
    size_t *rows = now ? find_rows(now, troubles[trouble].state, has_model, &count) : NULL;
    if (count > 1)
        qsort_r(rows, count, sizeof *rows, compare_rows, &order);
    for (size_t i = 0; i < count; i += members) {
        members = 1;
        while (i + members < count && is_same(now, rows[i], rows[i + members], key))
            members++;
        add_state(findings, model, now, rows + i, members, trouble);
    }
    free(rows);
}

// ---- Hosts that stand out -------------------------------------------------------------------

bool view_fleet_text(char *text, size_t size, const struct result *fleet, size_t row,
                     bool has_device)
{
    char host[NAME_SIZE], device[NAME_SIZE] = "", metric[NAME_SIZE], reason[2 * NAME_SIZE];
    if (!result_is(fleet, row, "verdict", "worse"))
        return false;
    (void)result_text(metric, sizeof metric, fleet, row, "metric");
    if (has_device)
        name_or_nothing(device, fleet, row, "device");
    const bool has_reason = result_get(fleet, row, "reason").type == VALUE_TEXT;
    (void)result_text(reason, sizeof reason, fleet, row, "reason");
    (void)snprintf(
        text, size, "▲ %s%s %s %+.1f %%%s%s", result_text(host, sizeof host, fleet, row, "host"),
        device, query_metric_short(metric), result_number(fleet, row, "deviation_ratio", 0) * 100,
        has_reason ? ": " : "", has_reason ? reason : "");
    return true;
}

// The answer has the worst first; of a host, only that is told, if the filter covers it: with its
// device, unless others of the host are worse too.
static void add_fleet(struct findings *findings, const struct model *model)
{
    const struct result *fleet = model_is_now(model) ? model_answer(model, POLL_FLEET) : NULL;
    const char *wanted = model->scope.filter.by[QUERY_BY_HOST];
    char text[5 * NAME_SIZE];
    for (size_t row = 0; fleet && row < result_row_count(fleet); row++) {
        size_t i = 0;
        bool is_one = true;
        if (!result_is(fleet, row, "verdict", "worse"))
            break; // those that are not worse follow
        const struct value name = result_get(fleet, row, "host");
        if (*wanted && (name.type != VALUE_TEXT || !query_name_matches(wanted, name.text.bytes)))
            continue;
        while (i < row && !is_same(fleet, i, row, "host"))
            i++;
        if (i < row)
            continue;
        for (; result_is(fleet, i, "verdict", "worse"); i++)
            is_one &= !is_same(fleet, i, row, "host") || is_same(fleet, i, row, "device");
        if (view_fleet_text(text, sizeof text, fleet, row, is_one))
            add(findings, STYLE_WARNING, text);
    }
}

// ---- The line -----------------------------------------------------------------------------

// First what answers no more, as all other figures lack it; then what is bad, then warnings.  What
// has no model, as a sampler, is the last that is bad.
static void find(struct findings *findings, const struct model *model)
{
    enum { GONE = 2 }; // down, silent
    *findings = (struct findings){.items.separator = "   "};
    for (unsigned trouble = 0; trouble < sizeof troubles / sizeof *troubles; trouble++) {
        if (trouble == GONE)
            add_alerts(findings, model, true);
        if (troubles[trouble].style == STYLE_WARNING) {
            for (unsigned gone = 0; gone < GONE; gone++)
                add_states(findings, model, gone, false);
            add_alerts(findings, model, false);
        }
        add_states(findings, model, trouble, true);
    }
    add_fleet(findings, model);
}

// Why the collector cannot write its store; "" where it can.
static const char *store_error(char *text, size_t size, const struct model *model)
{
    const struct result *summary = model_answer(model, POLL_SUMMARY);
    text[0] = '\0';
    if (!summary || result_get(summary, 0, "store_error").type == VALUE_NULL)
        return text;
    return result_text(text, size, summary, 0, "store_error");
}

static bool has_error(const struct model *model)
{
    char text[ERROR_TEXT_SIZE];
    return model->contact == CONTACT_LOST || model->contact == CONTACT_FAULT ||
           store_error(text, sizeof text, model)[0];
}

bool view_banner_is_needed(const struct model *model)
{
    struct findings findings;
    if (model->answered_ns == 0)
        return false;
    if (has_error(model))
        return true;
    find(&findings, model);
    return findings.count > 0;
}

static void draw_error(const struct model *model, struct canvas *canvas, struct rect area)
{
    char text[ERROR_TEXT_SIZE + 64], why[ERROR_TEXT_SIZE];
    char age[UNIT_TEXT_SIZE], clock[UNIT_TEXT_SIZE];
    if (model->contact == CONTACT_LOST)
        (void)snprintf(text, sizeof text, "✗ no answer for %s, reconnecting · showing %s",
                       view_age_text(age, model_age_seconds(model)),
                       view_clock_text(clock, model->answered_at_ns));
    else if (model->contact == CONTACT_FAULT)
        (void)snprintf(text, sizeof text, "✗ %s", model->fault);
    else
        (void)snprintf(text, sizeof text, "✗ the store cannot be written: %s",
                       store_error(why, sizeof why, model));
    canvas_fit(canvas, area, MARGIN, 0, area.width - 2 * MARGIN, ALIGN_LEFT, STYLE_BAD, text);
}

// As many items as fit beside "+3 more"; one more of which a part fits.
void view_banner_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { GAP = 3, MORE = 7, LEAST = 20 };
    struct findings findings;
    const int room = area.width - 2 * MARGIN;
    if (has_error(model)) {
        draw_error(model, canvas, area);
        return;
    }
    find(&findings, model);
    struct segments *items = &findings.items;
    const unsigned all = items->count;
    if (findings.count > all || segments_total_width(items) > room) {
        while (items->count > 0 && segments_total_width(items) > room - GAP - MORE)
            items->count--;
        const int left = room - GAP - MORE - segments_total_width(items) - GAP;
        if (items->count < all && (left >= LEAST || items->count == 0))
            items->items[items->count++].width_max = left;
    }
    const int used = segments_draw(items, canvas, area, MARGIN, 0, room, ALIGN_LEFT);
    char more[32];
    (void)snprintf(more, sizeof more, "+%u more", findings.count - items->count);
    if (items->count < findings.count)
        (void)canvas_put(canvas, area, MARGIN + used + GAP, 0, STYLE_STRONG, more);
}
