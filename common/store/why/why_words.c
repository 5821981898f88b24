#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/why/why_reader.h"
#include "common/store/read/answer_cells.h"

#define HOUR_NS     INT64_C(3600000000000)
#define LEAST_SHARE 0.05 // of the difference; less is left to what is unexplained

static const struct {
    const char *name, *words, *command;
} causes[WHY_CAUSE_COUNT] = {
#define WHY_CAUSE_TEXTS(suffix, text, words, command) [WHY_##suffix] = {text, words, command},
    WHY_CAUSES(WHY_CAUSE_TEXTS)
#undef WHY_CAUSE_TEXTS
};

const char *why_cause_name(enum why_cause_kind kind)
{
    assert((unsigned)kind < WHY_CAUSE_COUNT);
    return causes[kind].name;
}

// ---- A cause ------------------------------------------------------------------------------------

static void append_option(struct why_cause *cause, const char *option, const char *word)
{
    const size_t used = strlen(cause->evidence);
    char quoted[TEXT_QUOTED_SIZE(QUERY_TEXT_SIZE)];
    if (*word)
        (void)snprintf(cause->evidence + used, sizeof cause->evidence - used, " %s %s", option,
                       text_quote(quoted, sizeof quoted, word));
}

static void set_evidence(struct why_cause *cause, const struct why_reader *reader)
{
    const enum why_cause_kind kind = cause->kind;
    const char *command = causes[kind].command;
    (void)snprintf(cause->evidence, sizeof cause->evidence, "inferstat %s", command);
    if (strncmp(command, "avg", 3) == 0)
        append_option(cause, "--step",
                      reader->window_ns <= HOUR_NS        ? "1m"
                      : reader->window_ns <= 24 * HOUR_NS ? "30m"
                                                          : "6h");
    if (kind == WHY_FAILED ||
        (kind >= WHY_CONCURRENCY && kind != WHY_SETTING && kind != WHY_LOSSES))
        append_option(cause, "--model", cause->model);
    if (strcmp(command, "fleet") != 0)
        append_option(cause, "--host", cause->host);
    if (kind > WHY_KILLED && kind != WHY_SETTING)
        append_option(cause, "--since", reader->since);
}

enum status why_add_cause(struct why_reader *reader, struct why_cause **out,
                          enum why_cause_kind kind, int64_t model, int64_t host, struct error *err)
{
    struct why *why = reader->out;
    if (!ARRAY_RESERVE(&why->causes, &reader->cause_room, why->cause_count + 1))
        return error_no_memory(err, "store");
    struct why_cause *cause = *out = &why->causes[why->cause_count++];
    *cause =
        (struct why_cause){.kind = kind, .subject = SIZE_MAX, .explained_ns = NAN, .share = NAN};
    if (model)
        (void)answer_name_text(reader->store, model, cause->model);
    if (host)
        (void)answer_name_text(reader->store, host, cause->host);
    why_say(cause, "%s", causes[kind].words);
    set_evidence(cause, reader);
    return STATUS_OK;
}

void why_say(struct why_cause *cause, const char *format, ...)
{
    const size_t used = strlen(cause->text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(cause->text + used, sizeof cause->text - used, format, arguments);
    va_end(arguments);
}

// ---- Parts of a difference ----------------------------------------------------------------------

// A cause in all slow series: what it explains of their mean difference; the only host that has it
// (0: several), and the series that has most of it (NULL: none is slow).
struct total {
    double ns, share;
    int64_t host;
    const struct why_entry *most;
};

static struct total add_up(const struct why_reader *reader, const struct why_subject *subject,
                           enum why_cause_kind kind)
{
    const double difference = subject->now_ns[subject->main] - subject->usual_ns[subject->main];
    double weight = 0, best = -INFINITY;
    struct total out = {.host = -1};
    for (size_t i = subject->first; i < subject->end; i++) {
        const struct why_entry *entry = &reader->entries[i];
        const double part = entry->parts.ns[kind] * entry->series.rates[WHY_NOW];
        if (!entry->is_slow)
            continue;
        weight += entry->series.rates[WHY_NOW];
        out.ns += part;
        if (fabs(part) > 0)
            out.host = out.host == -1 || out.host == entry->host ? entry->host : 0;
        if (!out.most || part > best) {
            best = part;
            out.most = entry;
        }
    }
    out.ns /= weight;
    out.share = difference > 0 ? out.ns / difference : (double)NAN;
    return out;
}

static void describe(struct why_cause *cause, const struct why_entry *most,
                     const struct why_subject *subject)
{
    static const struct {
        enum why_cause_kind kind;
        enum why_figure figure;
        const char *unit;
    } figures[] = {{WHY_PROMPT, FIGURE_PROMPT, " tokens to compute"},
                   {WHY_TOKENS, FIGURE_TOKENS, " tokens"},
                   {WHY_ITEMS, FIGURE_ITEMS, ""},
                   {WHY_CONCURRENCY, FIGURE_CONCURRENT, ""}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (figures[i].kind == cause->kind)
            why_say(cause, ": %.*f%s, usually %.*f", cause->kind == WHY_CONCURRENCY,
                    most->parts.means[WHY_NOW][figures[i].figure], figures[i].unit,
                    cause->kind == WHY_CONCURRENCY,
                    most->parts.means[WHY_USUAL][figures[i].figure]);
    if (cause->kind == WHY_SETTING && most->settings)
        why_say(cause, ": %s", most->settings);
    if (cause->kind == WHY_HOST)
        why_say(cause, ": %u of %u hosts are as usual", subject->hosts - subject->slow_hosts,
                subject->hosts);
}

static enum status add_part(struct why_reader *reader, size_t index, enum why_cause_kind kind,
                            const struct total *total, struct error *err)
{
    struct why_cause *cause;
    const struct why_subject *subject = &reader->out->subjects[index];
    if (!total->most)
        return STATUS_OK;
    enum status status = why_add_cause(reader, &cause, kind, total->most->model,
                                       total->host > 0 ? total->host : 0, err);
    if (status != STATUS_OK)
        return status;
    cause->subject = index;
    cause->explained_ns = total->ns;
    cause->share = total->share;
    cause->excess = subject->now_ns[subject->main] / subject->usual_ns[subject->main];
    describe(cause, total->most, subject);
    return STATUS_OK;
}

static enum status add_parts(struct why_reader *reader, size_t index, struct error *err)
{
    const struct why_subject *subject = &reader->out->subjects[index];
    struct total rest = add_up(reader, subject, WHY_UNEXPLAINED);
    enum status status = STATUS_OK;
    for (int k = 0; k < WHY_UNEXPLAINED && status == STATUS_OK; k++) {
        const struct total total = add_up(reader, subject, (enum why_cause_kind)k);
        if (total.share >= LEAST_SHARE) {
            status = add_part(reader, index, (enum why_cause_kind)k, &total, err);
        } else {
            rest.ns += total.ns;
            rest.share += total.share;
        }
    }
    if (status == STATUS_OK && fabs(rest.share) >= LEAST_SHARE)
        status = add_part(reader, index, WHY_UNEXPLAINED, &rest, err);
    return status;
}

// ---- Verdicts -----------------------------------------------------------------------------------

static enum status add_verdict(struct why_reader *reader, size_t index, struct error *err)
{
    static const enum why_cause_kind kinds[STATS_VERDICT_COUNT] = {
        [STATS_BETTER] = WHY_FASTER, [STATS_SAME] = WHY_AS_USUAL, [STATS_UNDECIDED] = WHY_TOO_FEW};
    const struct why_subject *subject = &reader->out->subjects[index];
    const bool *is_sampled = reader->is_sampled;
    char now[UNIT_TEXT_SIZE], usual[UNIT_TEXT_SIZE];
    struct why_cause *cause;
    enum status status = why_add_cause(
        reader, &cause, subject->usual_requests ? kinds[subject->verdict] : WHY_NOTHING_BEFORE,
        reader->entries[subject->first].model, reader->host, err);
    if (status != STATUS_OK)
        return status;
    cause->subject = index;
    (void)unit_format_int(now, UNIT_COUNT, (int64_t)subject->requests);
    (void)unit_format_int(usual, UNIT_COUNT, (int64_t)subject->usual_requests);
    if (subject->usual_requests == 0)
        why_say(cause, ": %s request%s%s in the window, none before it; fleet compares hosts", now,
                subject->requests == 1 ? "" : "s", is_sampled[WHY_NOW] ? " sampled" : "");
    else if (subject->verdict == STATS_UNDECIDED)
        why_say(cause, ": %srequests %s, usually %s%s", is_sampled[WHY_NOW] ? "sampled " : "", now,
                usual, is_sampled[WHY_USUAL] && !reader->model ? " (--model reads more)" : "");
    for (int q = 0; q < WHY_QUANTILES && subject->usual_requests > 0; q++)
        why_say(
            cause, "%s %s %s, usually %s", q > 0 || subject->verdict == STATS_UNDECIDED ? ";" : ":",
            q == WHY_P50 ? "median" : "p95", unit_format(now, UNIT_DURATION, subject->now_ns[q]),
            unit_format(usual, UNIT_DURATION, subject->usual_ns[q]));
    return STATUS_OK;
}

enum status why_add_failed(struct why_reader *reader, struct error *err)
{
    struct why_cause *cause;
    enum status status =
        why_add_cause(reader, &cause, WHY_FAILED, reader->model, reader->host, err);
    if (status == STATUS_OK)
        why_say(cause, ": %zu failed%s", reader->failed,
                reader->is_sampled[WHY_NOW] ? " of those sampled" : "");
    return status;
}

enum status why_add_model(struct why_reader *reader, size_t subject, struct error *err)
{
    return reader->out->subjects[subject].verdict == STATS_WORSE
               ? add_parts(reader, subject, err)
               : add_verdict(reader, subject, err);
}
