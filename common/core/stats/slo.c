#include "common/core/stats/slo.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"

enum { WORD_SIZE = 64 };

static const struct {
    const char *name, *metric;
} metrics[SLO_METRIC_COUNT] = {
#define SLO_METRIC_LINE(name, text, metric) [SLO_##name] = {text, metric},
    SLO_METRICS(SLO_METRIC_LINE)
#undef SLO_METRIC_LINE
};

const char *slo_name(enum slo_metric metric)
{
    assert((unsigned)metric < SLO_METRIC_COUNT);
    return metrics[metric].name;
}

const char *slo_metric_name(enum slo_metric metric)
{
    assert((unsigned)metric < SLO_METRIC_COUNT);
    return metrics[metric].metric;
}

// A part of the text without the spaces around it.
struct word {
    const char *begin;
    size_t size;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static struct word trim(const char *begin, const char *end)
{
    while (begin < end && is_space(*begin))
        begin++;
    while (begin < end && is_space(end[-1]))
        end--;
    return (struct word){begin, (size_t)(end - begin)};
}

static enum status refuse(struct error *err, struct word word, const char *why)
{
    char shown[96];
    (void)text_escape(shown, sizeof shown, word.begin, word.size);
    return error_set(err, STATUS_INVALID, "objectives: \"%s\" %s (like ttft=200ms,tpot=30ms)",
                     shown, why);
}

// Names with and without their "_ns".
static bool is_name(struct word word, const char *name)
{
    return word.size == strlen(name) && memcmp(word.begin, name, word.size) == 0;
}

static unsigned find_metric(struct word word)
{
    unsigned metric = 0;
    while (metric < SLO_METRIC_COUNT && !is_name(word, metrics[metric].name) &&
           !is_name(word, metrics[metric].metric))
        metric++;
    return metric;
}

static enum status unknown(struct error *err, struct word word)
{
    const char *names[SLO_METRIC_COUNT];
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++)
        names[i] = metrics[i].name;
    char text[WORD_SIZE] = "", shown[96];
    if (word.size < sizeof text)
        memcpy(text, word.begin, word.size);
    const char *nearest = parse_nearest(text, names, SLO_METRIC_COUNT);
    if (!nearest)
        return refuse(err, word, "is nothing to have an objective for");
    (void)text_escape(shown, sizeof shown, word.begin, word.size);
    return error_set(err, STATUS_INVALID,
                     "objectives: \"%s\" is nothing to have an objective for (did you mean %s?)",
                     shown, nearest);
}

// Requires a unit, because guessing seconds would be wrong for most limits.  Zero needs none.
static enum status check_unit(enum slo_metric metric, const char *limit, struct error *err)
{
    char *end = NULL;
    if (strtod(limit, &end) == 0 || *end != '\0')
        return STATUS_OK;
    const char *name = slo_name(metric);
    return error_set(err, STATUS_INVALID, "objectives: \"%s\" has no unit (say %s=%sms or %s=%ss)",
                     limit, name, limit, name, limit);
}

static enum status parse_limit(int64_t *limit_ns, enum slo_metric metric, struct word word,
                               struct error *err)
{
    char text[WORD_SIZE] = "";
    struct error why;
    if (word.size == 0 || word.size >= sizeof text)
        return refuse(err, word, "is no duration");
    memcpy(text, word.begin, word.size);
    if (parse_duration(limit_ns, text, "", &why) != STATUS_OK)
        return refuse(err, word, "is no duration");
    return check_unit(metric, text, err);
}

// Parses "name=limit", which is not empty.  `*wrong` is the invalid word.
static enum status parse_objective(struct slo *out, struct word whole, struct word *wrong,
                                   struct error *err)
{
    *wrong = whole;
    const char *equals = memchr(whole.begin, '=', whole.size);
    if (!equals)
        return refuse(err, whole, "has no =");
    const struct word name = trim(whole.begin, equals);
    const unsigned metric = find_metric(name);
    if (metric == SLO_METRIC_COUNT) {
        *wrong = name;
        return unknown(err, name);
    }
    if (out->limit_ns[metric] >= 0)
        return refuse(err, whole, "is given twice");
    *wrong = trim(equals + 1, whole.begin + whole.size);
    return parse_limit(&out->limit_ns[metric], (enum slo_metric)metric, *wrong, err);
}

enum status slo_parse(struct slo *out, const char *text, size_t *at, struct error *err)
{
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++)
        out->limit_ns[i] = -1;
    enum status status = STATUS_OK;
    const char *begin = text;
    while (begin && status == STATUS_OK) {
        const char *comma = strchr(begin, ',');
        const char *end = comma ? comma : begin + strlen(begin);
        const struct word whole = trim(begin, end);
        struct word wrong = whole;
        status = whole.size ? parse_objective(out, whole, &wrong, err)
                            : refuse(err, whole, "is no objective");
        if (status != STATUS_OK && at)
            *at = (size_t)(wrong.begin - text);
        begin = comma ? comma + 1 : NULL;
    }
    return status;
}
