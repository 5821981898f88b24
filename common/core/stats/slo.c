#include "common/core/stats/slo.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"

enum { WORD_SIZE = 64 };

static const char *const metrics[SLO_METRIC_COUNT] = {
#define SLO_METRIC_LINE(name, text) [SLO_##name] = text,
    SLO_METRICS(SLO_METRIC_LINE)
#undef SLO_METRIC_LINE
};

const char *slo_name(enum slo_metric metric)
{
    assert((unsigned)metric < SLO_METRIC_COUNT);
    return metrics[metric];
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

// A name of an objective, with or without the "_ns" of its metric.
static unsigned find_metric(struct word word)
{
    if (word.size > 3 && memcmp(word.begin + word.size - 3, "_ns", 3) == 0)
        word.size -= 3;
    unsigned metric = 0;
    while (metric < SLO_METRIC_COUNT && (word.size != strlen(metrics[metric]) ||
                                         memcmp(word.begin, metrics[metric], word.size) != 0))
        metric++;
    return metric;
}

static enum status unknown(struct error *err, struct word word)
{
    char text[WORD_SIZE] = "", shown[96];
    if (word.size < sizeof text)
        memcpy(text, word.begin, word.size);
    const char *nearest = parse_nearest(text, metrics, SLO_METRIC_COUNT);
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

// Parses "name=limit", which is not empty.
static enum status parse_objective(struct slo *out, struct word whole, struct error *err)
{
    const char *equals = memchr(whole.begin, '=', whole.size);
    if (!equals)
        return refuse(err, whole, "has no =");
    const struct word name = trim(whole.begin, equals);
    const unsigned metric = find_metric(name);
    if (metric == SLO_METRIC_COUNT)
        return unknown(err, name);
    if (out->limit_ns[metric] >= 0)
        return refuse(err, whole, "is given twice");
    return parse_limit(&out->limit_ns[metric], (enum slo_metric)metric,
                       trim(equals + 1, whole.begin + whole.size), err);
}

enum status slo_parse(struct slo *out, const char *text, struct error *err)
{
    for (unsigned i = 0; i < SLO_METRIC_COUNT; i++)
        out->limit_ns[i] = -1;
    for (const char *begin = text; begin;) {
        const char *comma = strchr(begin, ',');
        const struct word whole = trim(begin, comma ? comma : begin + strlen(begin));
        const enum status status =
            whole.size ? parse_objective(out, whole, err) : refuse(err, whole, "is no objective");
        if (status != STATUS_OK)
            return status;
        begin = comma ? comma + 1 : NULL;
    }
    return STATUS_OK;
}
