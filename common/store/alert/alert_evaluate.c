#include "common/store/alert/alert_evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/core/record/record.h"
#include "common/store/query/query_list.h"
#include "common/store/why/why.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"
#include "common/sys/log.h"

enum {
    WHY_MOST = 8,         // in a pass, of 0.3 s each at most
    REASON_EVENTS = 1000, // of a run, the newest
};
#define ALERT_UNREAD_NS INT64_C(60000000000)
#define DAY_NS          INT64_C(86400000000000)
#define MOMENT_AGE_NS   INT64_C(60000000000) // an error causes what begins so long after it

struct alert_evaluator {
    const struct alert_file *file;
    const struct alert_turns *turns; // NULL: none
    int64_t listening_ns;
    struct alert_rule_health *health; // of each rule, as the next one
    struct rule_state {
        struct alert_source_state *source; // NULL: none
        bool is_done;                      // in this pass
    } * states;
    bool is_full; // it has been logged that too many alerts are open
    // Causes were looked for of the alerts up to this one, in the order in which they fired.
    int64_t asked_ns, asked_id;
};

// Calls `work` in a turn of the store's readers.
static enum status run_turn(const struct alert_evaluator *evaluator, struct store *store,
                            session_work *work, const struct query *query, void *out,
                            struct error *err)
{
    const struct alert_turns *turns = evaluator->turns;
    if (turns)
        turns->begin(turns->context);
    const enum status status = session_run(store, work, query, out, err);
    if (turns)
        turns->end(turns->context);
    return status;
}

// ---- Reading --------------------------------------------------------------------------

// The AVERAGE of a rule of a metric; `*out` may stay NULL if nothing matches.
static enum status read_average(struct store *store, const struct alert_rule *rule, int64_t now_ns,
                                struct result **out, struct error *err)
{
    struct query query = rule->query;
    query.average.uncovered = true; // no rule is about it
    query.filter.since_ns = now_ns > rule->window_ns ? now_ns - rule->window_ns : 1;
    enum status status = query_average(store, &query, out, err);
    if (status == STATUS_OK)
        status = answer_check(*out, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

static enum status give_average(const struct result *result, const struct alert_rule *rule,
                                alert_on_reading *on_reading, void *context, struct error *err)
{
    enum status status = STATUS_OK;
    int names[ALERT_GROUP_NAMES];
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        names[i] = result_find(result, query_dimension_name((enum query_dimension)i));
    const int value_at = result_find(result, alert_stat_name(rule->stat));
    const int count_at = result_find(result, "count");
    for (size_t row = 0; row < result_row_count(result) && status == STATUS_OK; row++) {
        const char *group[ALERT_GROUP_NAMES];
        for (int i = 0; i < ALERT_GROUP_NAMES; i++) {
            const struct value name = result_cell(result, row, (unsigned)names[i]);
            group[i] = name.type == VALUE_TEXT ? name.text.bytes : "";
        }
        const struct value value = result_cell(result, row, (unsigned)value_at);
        const struct value count = result_cell(result, row, (unsigned)count_at);
        const struct alert_reading reading = {
            .has_data = value.type == VALUE_INT || value.type == VALUE_REAL,
            .value = value.type == VALUE_INT ? (double)value.i : value.r,
            .count = count.type == VALUE_INT && count.i > 0 ? (uint64_t)count.i : 0,
        };
        status = on_reading(context, group, &reading, err);
    }
    return status;
}

struct source_values {
    struct store *store;
    const struct alert_rule *rule;
    alert_on_reading *on_reading;
    void *context;
};

static enum status on_source_value(void *context, const int64_t *keys, double value,
                                   struct error *err)
{
    const struct source_values *values = context;
    const struct query *query = &values->rule->query;
    const struct alert_reading reading = {
        .has_data = true, .value = value, .count = values->rule->least};
    char names[ALERT_GROUP_NAMES][QUERY_TEXT_SIZE] = {""};
    const char *group[ALERT_GROUP_NAMES];
    for (unsigned i = 0; i < query->group_count; i++)
        (void)answer_name_text(values->store, keys[i], names[query->group_by[i]]);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        group[i] = names[i];
    return values->on_reading(values->context, group, &reading, err);
}

enum status alert_read_rule(struct alert_source_state **state, struct store *store,
                            const struct alert_rule *rule, const struct alert_times *times,
                            alert_on_reading *on_reading, void *context, struct error *err)
{
    struct source_values values = {store, rule, on_reading, context};
    struct result *result = NULL;
    if (rule->source != ALERT_SOURCE_NONE)
        return alert_source_read(state, store, rule, times, on_source_value, &values, err);
    enum status status = read_average(store, rule, times->now_ns, &result, err);
    if (status == STATUS_OK && result)
        status = give_average(result, rule, on_reading, context, err);
    result_free(result);
    return status;
}

// ---- States ---------------------------------------------------------------------------

struct stepping {
    struct alert_evaluator *evaluator;
    struct alert_pass *pass;
    bool *is_seen; // of the rows that were open before
    const struct alert_rule *rule;
    size_t first, end; // the rule's rows among these
};

static int compare_group(const void *key, const void *element)
{
    const char *const *group = key;
    const struct alert_row *row = element;
    int order = 0;
    for (int i = 0; i < ALERT_GROUP_NAMES && order == 0; i++)
        order = strcmp(group[i], row->group[i]);
    return order;
}

// An alert without data for so long, or of a rule that is gone, is over; one that never fired goes.
static void end_episode(struct alert_row *row, const struct alert_series *before, int64_t now_ns)
{
    row->series = *before;
    if (before->firing_ns)
        row->series.resolved_ns = now_ns;
    else
        row->series.state = ALERT_OK;
}

static void step_row(struct stepping *stepping, struct alert_row *row,
                     const struct alert_reading *reading)
{
    const int64_t now_ns = stepping->pass->now_ns;
    const struct alert_rule *rule = stepping->rule;
    const struct alert_series before = row->series;
    const enum alert_change change = alert_step(&row->series, rule, reading, now_ns);
    if (change == ALERT_FORGOTTEN)
        end_episode(row, &before, now_ns);
    row->unit = rule->unit;
    row->threshold = row->series.severity == ALERT_CRITICAL ? rule->critical : rule->warning;
}

// A group of which no alert is open.
static enum status step_new(struct stepping *stepping, const char *const group[ALERT_GROUP_NAMES],
                            const struct alert_reading *reading, struct error *err)
{
    struct alert_pass *pass = stepping->pass;
    struct alert_series series = {0};
    if (alert_step(&series, stepping->rule, reading, pass->now_ns) == ALERT_NO_CHANGE)
        return STATUS_OK;
    if (pass->count >= ALERT_OPEN_MAX) {
        if (!stepping->evaluator->is_full)
            log_write(LOG_LEVEL_ERROR, "alerts: %d are open: no further ones", ALERT_OPEN_MAX);
        stepping->evaluator->is_full = true;
        return STATUS_OK;
    }
    if (!ARRAY_RESERVE(&pass->rows, &pass->room, pass->count + 1))
        return error_no_memory(err, "alerts");
    struct alert_row *row = &pass->rows[pass->count++];
    *row = (struct alert_row){.id = 0};
    (void)snprintf(row->rule, sizeof row->rule, "%s", stepping->rule->name);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        (void)snprintf(row->group[i], sizeof row->group[i], "%s", group[i]);
    step_row(stepping, row, reading);
    return STATUS_OK;
}

static enum status step_group(void *context, const char *const group[ALERT_GROUP_NAMES],
                              const struct alert_reading *reading, struct error *err)
{
    struct stepping *stepping = context;
    struct alert_row *rows = stepping->pass->rows, *row = NULL;
    if (stepping->end > stepping->first)
        row = bsearch(group, rows + stepping->first, stepping->end - stepping->first, sizeof *rows,
                      compare_group);
    if (!row)
        return step_new(stepping, group, reading, err);
    stepping->is_seen[row - rows] = true;
    step_row(stepping, row, reading);
    return STATUS_OK;
}

// ---- Passes ---------------------------------------------------------------------------

// The rows of the rule, which are sorted by rule.
static void find_rows(struct stepping *stepping, size_t open_count)
{
    const struct alert_row *rows = stepping->pass->rows;
    size_t at = 0;
    while (at < open_count && strcmp(rows[at].rule, stepping->rule->name) != 0)
        at++;
    stepping->first = at;
    while (at < open_count && strcmp(rows[at].rule, stepping->rule->name) == 0)
        at++;
    stepping->end = at;
}

static bool is_same_average(const struct alert_rule *a, const struct alert_rule *b)
{
    const struct query *left = &a->query, *right = &b->query;
    if (a->source != ALERT_SOURCE_NONE || b->source != ALERT_SOURCE_NONE ||
        a->window_ns != b->window_ns || strcmp(left->metric, right->metric) != 0 ||
        strcmp(left->average.slo, right->average.slo) != 0 ||
        left->group_count != right->group_count ||
        memcmp(left->group_by, right->group_by, left->group_count * sizeof *left->group_by) != 0)
        return false;
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++)
        if (strcmp(left->filter.by[i], right->filter.by[i]) != 0)
            return false;
    return true;
}

// Notes whether the rule at `at` could be read, and logs a change.  Returns true if it could not
// for so long that its alerts have no data.
static bool note_health(struct stepping *stepping, size_t at, enum status read,
                        const struct error *err)
{
    struct alert_rule_health *health = &stepping->evaluator->health[at];
    const int64_t now_ns = stepping->pass->now_ns;
    const bool was_failing = health->since_ns != 0, is_failing = read != STATUS_OK;
    if (!is_failing)
        *health = (struct alert_rule_health){.since_ns = 0};
    if (!is_failing || was_failing)
        return is_failing && now_ns - health->since_ns >= ALERT_UNREAD_NS;
    health->since_ns = now_ns;
    (void)snprintf(health->error, sizeof health->error, "%.*s", ALERT_WHY_UNREAD_SIZE - 1,
                   err->text);
    log_write(LOG_LEVEL_WARNING, "alert %s cannot be read: %s",
              stepping->evaluator->file->rules[at].name, err->text);
    return false;
}

// A rule that is read, or the rules that share the AVERAGE of the first one.
struct shared {
    struct stepping *stepping;
    size_t first;
    struct result *result; // the AVERAGE; NULL: nothing matches, or the rule is of a source
};

static enum status read_shared(struct store *store, const struct query *query, void *out,
                               struct error *err)
{
    struct shared *shared = out;
    struct stepping *stepping = shared->stepping;
    struct alert_evaluator *evaluator = stepping->evaluator;
    const struct alert_times times = {stepping->pass->now_ns, evaluator->listening_ns};
    (void)query; // that of the rule
    if (stepping->rule->source == ALERT_SOURCE_NONE)
        return read_average(store, stepping->rule, times.now_ns, &shared->result, err);
    return alert_read_rule(&evaluator->states[shared->first].source, store, stepping->rule, &times,
                           step_group, stepping, err);
}

// Steps rule `first`, and those that share its AVERAGE.  If it cannot be read, their alerts stay as
// they are for ALERT_UNREAD_NS, and then have no data.
static enum status step_shared(struct stepping *stepping, struct store *store, size_t first,
                               size_t open_count, struct error *err)
{
    static const struct alert_reading none = {.has_data = false}, unread = {.is_unread = true};
    struct alert_evaluator *evaluator = stepping->evaluator;
    const struct alert_rule *rules = evaluator->file->rules;
    struct shared shared = {stepping, first, NULL};
    stepping->rule = &rules[first];
    find_rows(stepping, open_count);
    const enum status read =
        run_turn(evaluator, store, read_shared, &rules[first].query, &shared, err);
    enum status status = read == STATUS_CANCELLED || read == STATUS_NOMEM ? read : STATUS_OK;
    for (size_t i = first; i < evaluator->file->rule_count && status == STATUS_OK; i++) {
        if (evaluator->states[i].is_done ||
            (i > first && !is_same_average(&rules[first], &rules[i])))
            continue;
        evaluator->states[i].is_done = true;
        stepping->rule = &rules[i];
        find_rows(stepping, open_count);
        const bool has_no_data = note_health(stepping, i, read, err);
        if (read == STATUS_OK && shared.result)
            status = give_average(shared.result, stepping->rule, step_group, stepping, err);
        const bool steps = status == STATUS_OK && (read == STATUS_OK || has_no_data);
        for (size_t row = stepping->first; row < stepping->end; row++) {
            if (steps && !stepping->is_seen[row]) // its group had no value
                step_row(stepping, &stepping->pass->rows[row], read == STATUS_OK ? &none : &unread);
            stepping->is_seen[row] = true;
        }
    }
    result_free(shared.result);
    return status;
}

static enum status step_all(struct stepping *stepping, struct store *store, struct error *err)
{
    struct alert_evaluator *evaluator = stepping->evaluator;
    struct alert_pass *pass = stepping->pass;
    const size_t open_count = pass->count;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < evaluator->file->rule_count; i++)
        evaluator->states[i].is_done = false;
    for (size_t i = 0; i < evaluator->file->rule_count && status == STATUS_OK; i++)
        if (!evaluator->states[i].is_done)
            status = step_shared(stepping, store, i, open_count, err);
    for (size_t i = 0; i < open_count && status == STATUS_OK; i++) {
        if (stepping->is_seen[i])
            continue;
        const struct alert_series before = pass->rows[i].series; // of a rule that is gone
        end_episode(&pass->rows[i], &before, pass->now_ns);
    }
    if (pass->count < ALERT_OPEN_MAX)
        evaluator->is_full = false;
    return status;
}

// Takes out the new alerts of hosts that only imported runs tell of: they are not of the present.
static enum status drop_imported(struct store *store, const struct query *query, void *out,
                                 struct error *err)
{
    struct alert_pass *pass = out;
    enum status status = STATUS_OK;
    (void)query;
    for (size_t i = pass->count; i-- > 0 && !pass->rows[i].id && status == STATUS_OK;) {
        int64_t is_imported = 0; // an open run of an older version has no owner either
        status = database_integerf(
            store->db, &is_imported, err,
            "SELECT owner = 0 AND \"end\" <> 0 FROM main.run WHERE host ="
            " (SELECT id FROM main.name WHERE text = %Q) AND heard_ns >= %lld"
            " ORDER BY 1 LIMIT 1",
            pass->rows[i].group[QUERY_BY_HOST], (long long)(pass->now_ns - DAY_NS));
        if (is_imported)
            pass->rows[i] = pass->rows[--pass->count];
    }
    return status;
}

// ---- Causes ---------------------------------------------------------------------------

// A dimension of the alert: that of its group, else that of its rule.
static const char *name_of(const struct alert_row *row, const struct query *query,
                           enum query_dimension dimension)
{
    return row->group[dimension][0] ? row->group[dimension] : query->filter.by[dimension];
}

// True if the cause is what a rule of the metric or source is about itself, or follows from it: the
// driver reports an uncorrected memory error as an XID, such as 48.
static bool is_own_condition(const char *given, enum why_cause_kind kind)
{
    static const struct {
        enum why_cause_kind kind;
        const char *metric;
    } own[] = {
        {WHY_SILENT, "host_silent_ns"},
        {WHY_DOWN, "runs_killed"},
        {WHY_KILLED, "runs_killed"},
        {WHY_FAILED, "error_ratio"},
        {WHY_FAILED, "failed_ratio"},
        {WHY_LOSSES, "records_dropped"},
        {WHY_XID, "xid_count"},
        {WHY_ECC_UNCORRECTED, "ecc_uncorrected_count"},
        {WHY_XID, "ecc_uncorrected_count"},
        {WHY_PCIE_DOWNGRADE, "pcie_narrow_ratio"},
        {WHY_THROTTLING, "slowdown_margin_celsius"},
        {WHY_THROTTLING, "device_sample.throttled_ratio"},
        {WHY_MEMORY_FULL, "device_sample.memory_used_ratio"},
        {WHY_MEMORY_PRESSURE, "host_sample.memory_used_ratio"},
        {WHY_LOAD, "load.duration_ns"},
        {WHY_CONCURRENCY, "inference.concurrent_requests"},
        {WHY_PROMPT, "inference.prompt_tokens"},
        {WHY_TOKENS, "inference.generated_tokens"},
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const char *dot = strchr(own[i].metric, '.'); // `given` may lack the kind of record
        if (own[i].kind == kind &&
            (strcmp(own[i].metric, given) == 0 || (dot && strcmp(dot + 1, given) == 0)))
            return true;
    }
    return false;
}

// What WHY is asked about.
struct asked {
    const struct alert_rule *rule;
    struct alert_row *row;
};

// True if the cause was there when the alert fired.  An error must be of shortly before its
// condition held, a process that was replaced since of the window then.
static bool was_there(const struct asked *asked, const struct why_cause *cause)
{
    const int64_t age_ns = cause->kind == WHY_KILLED ? asked->rule->window_ns : MOMENT_AGE_NS;
    return cause->began_ns <= asked->row->series.firing_ns &&
           (!cause->is_moment || cause->began_ns >= asked->row->series.started_ns - age_ns);
}

static enum status on_reason(void *context, sqlite3_stmt *row, struct error *err)
{
    struct alert_row *alert = context;
    (void)err;
    record_event_words(alert->why, sizeof alert->why, (const char *)sqlite3_column_text(row, 0),
                       NULL);
    (void)text_append(alert->why, sizeof alert->why, ": ", "%s",
                      (const char *)sqlite3_column_text(row, 1));
    return STATUS_OK;
}

// Sets what the newest event of the rule's own condition tells of an alert of a device: why its
// clocks are reduced, how many lanes its link has, the code of its XID.
static enum status read_reason(struct store *store, const struct query *query,
                               struct alert_row *row, struct error *err)
{
    const int64_t since_ns = row->series.firing_ns - DAY_NS;
    unsigned kind = WHY_LASTING_END - 1; // ECC errors are before the XIDs that follow from them
    while (kind >= WHY_LASTING && !is_own_condition(query->metric, (enum why_cause_kind)kind))
        kind--;
    if (kind < WHY_LASTING)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(
        sql,
        "SELECT %Q, coalesce(e.detail, iif(%d, e.code, NULL)) AS told FROM main.run r"
        " CROSS JOIN main.event e ON e.id IN (SELECT b.id FROM main.event b WHERE b.run = r.run"
        "  ORDER BY b.started_ns DESC LIMIT %d) WHERE r.heard_ns >= $1 AND told IS NOT NULL",
        why_cause_name((enum why_cause_kind)kind), kind == WHY_XID, REASON_EVENTS);
    const char *const names[][2] = {{"e.event", why_cause_name((enum why_cause_kind)kind)},
                                    {"r.host", name_of(row, query, QUERY_BY_HOST)},
                                    {"e.device", name_of(row, query, QUERY_BY_DEVICE)}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sqlite3_str_appendf(sql, " AND %s = (SELECT id FROM main.name WHERE text = %Q)",
                            names[i][0], names[i][1]);
    sqlite3_str_appendall(sql, " ORDER BY e.started_ns DESC, e.id DESC LIMIT 1");
    return reader_scan_with(store, sql, NULL, &since_ns, 1, on_reason, row, err);
}

static enum status read_why(struct store *store, const struct query *query, void *out,
                            struct error *err)
{
    const struct asked *asked = out;
    struct alert_row *row = asked->row;
    const struct why_question question = {.model = name_of(row, query, QUERY_BY_MODEL),
                                          .host = name_of(row, query, QUERY_BY_HOST)};
    struct why why = {0};
    enum status status = read_reason(store, query, row, err);
    if (status == STATUS_OK)
        status = why_read(&why, store, &question, err);
    size_t first = 0;
    while (first < why.cause_count &&
           (why.causes[first].kind >= WHY_AS_USUAL || !was_there(asked, &why.causes[first]) ||
            is_own_condition(query->metric, why.causes[first].kind)))
        first++;
    if (status == STATUS_OK && first < why.cause_count) {
        const struct why_cause *cause = &why.causes[first];
        const size_t used = strlen(row->why);
        // The text stays while the alert fires: without times that would not.
        const size_t size = cause->untimed_size ? cause->untimed_size : sizeof cause->text;
        (void)snprintf(row->why + used, sizeof row->why - used, "%s%s%s%.*s", used ? "; " : "",
                       *question.host ? "" : cause->host,
                       *question.host || !cause->host[0] ? "" : ": ", (int)size, cause->text);
    }
    why_deinit(&why);
    return status;
}

// Sets the first cause of an alert of a model or host; false: it is of neither.  A failure is
// logged.
static bool find_cause(const struct alert_evaluator *evaluator, struct store *store,
                       struct alert_row *row)
{
    const struct alert_file *file = evaluator->file;
    const struct alert_rule *rule = file->rules, *end = file->rules + file->rule_count;
    struct error err;
    while (rule < end && strcmp(rule->name, row->rule) != 0)
        rule++;
    if (rule == end || (!*name_of(row, &rule->query, QUERY_BY_MODEL) &&
                        !*name_of(row, &rule->query, QUERY_BY_HOST)))
        return false;
    const enum status status =
        run_turn(evaluator, store, read_why, &rule->query, &(struct asked){rule, row}, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA && status != STATUS_INVALID) // a pattern
        log_write(LOG_LEVEL_WARNING, "alert %s: why: %s", row->rule, err.text);
    return true;
}

static bool fired_after(const struct alert_row *row, int64_t firing_ns, int64_t id)
{
    return row->series.firing_ns > firing_ns ||
           (row->series.firing_ns == firing_ns && row->id > id);
}

// The first that fired of the alerts in the table of which no cause was looked for, and whose time
// WHY still looks at; NULL: none.
static struct alert_row *next_unasked(const struct alert_evaluator *evaluator,
                                      const struct alert_pass *pass)
{
    struct alert_row *next = NULL;
    for (size_t i = 0; i < pass->count; i++) {
        struct alert_row *row = &pass->rows[i];
        if (row->id && row->series.state == ALERT_FIRING && !row->why[0] &&
            row->series.firing_ns <= pass->now_ns && // unless the clock was set back
            row->series.firing_ns > pass->now_ns - WHY_WINDOW_NS &&
            fired_after(row, evaluator->asked_ns, evaluator->asked_id) &&
            (!next || fired_after(next, row->series.firing_ns, row->id)))
            next = row;
    }
    return next;
}

// Sets causes of at most WHY_MOST alerts that fire and have none, in the order in which they fired.
// One that is not in the table yet is the last, and is asked about again if nothing was found.
static void find_causes(struct alert_evaluator *evaluator, struct store *store,
                        struct alert_pass *pass)
{
    unsigned left = WHY_MOST;
    if (evaluator->asked_ns > pass->now_ns) // the clock was set back: once more from the first on
        evaluator->asked_ns = 0;
    for (struct alert_row *row = next_unasked(evaluator, pass); row && left > 0;
         row = next_unasked(evaluator, pass)) {
        evaluator->asked_ns = row->series.firing_ns;
        evaluator->asked_id = row->id;
        left -= find_cause(evaluator, store, row);
    }
    for (size_t i = 0; i < pass->count && left > 0; i++)
        if (!pass->rows[i].id && pass->rows[i].series.state == ALERT_FIRING)
            left -= find_cause(evaluator, store, &pass->rows[i]);
}

// ---- All together -----------------------------------------------------------------------

enum status alert_evaluate(struct alert_evaluator *evaluator, struct store *store, int64_t now_ns,
                           struct alert_pass *out, struct error *err)
{
    *out = (struct alert_pass){.now_ns = now_ns,
                               .file = evaluator->file,
                               .health = evaluator->health,
                               .disk_free_bytes = database_free_bytes(store->path)};
    const struct query any = {.kind = QUERY_ALERTS};
    enum status status = run_turn(evaluator, store, alert_table_load, &any, out, err);
    struct stepping stepping = {
        .evaluator = evaluator, .pass = out, .is_seen = calloc(out->count + 1, sizeof(bool))};
    if (status == STATUS_OK && !stepping.is_seen)
        status = error_no_memory(err, "alerts");
    if (status == STATUS_OK)
        status = step_all(&stepping, store, err);
    if (status == STATUS_OK && out->count > 0 && !out->rows[out->count - 1].id)
        status = run_turn(evaluator, store, drop_imported, &any, out, err);
    if (status == STATUS_OK)
        find_causes(evaluator, store, out);
    free(stepping.is_seen);
    return status;
}

enum status alert_evaluator_new(struct alert_evaluator **out, const struct alert_file *file,
                                int64_t listening_ns, const struct alert_turns *turns,
                                struct error *err)
{
    struct alert_evaluator *evaluator = calloc(1, sizeof *evaluator);
    if (!evaluator)
        return error_no_memory(err, "alerts");
    evaluator->file = file;
    evaluator->turns = turns;
    evaluator->states = calloc(file->rule_count + 1, sizeof *evaluator->states);
    evaluator->health = calloc(file->rule_count + 1, sizeof *evaluator->health);
    if (!evaluator->states || !evaluator->health) {
        alert_evaluator_free(evaluator);
        return error_no_memory(err, "alerts");
    }
    evaluator->listening_ns = listening_ns;
    *out = evaluator;
    return STATUS_OK;
}

void alert_evaluator_free(struct alert_evaluator *evaluator)
{
    if (!evaluator)
        return;
    for (size_t i = 0; evaluator->states && i < evaluator->file->rule_count; i++)
        alert_source_state_free(evaluator->states[i].source);
    free(evaluator->states);
    free(evaluator->health);
    free(evaluator);
}
