#include "common/core/query/alert_rule.h"

#include <assert.h>
#include <string.h>

#define BY_MODEL  (1U << QUERY_BY_MODEL)
#define BY_HOST   (1U << QUERY_BY_HOST)
#define BY_DEVICE (1U << QUERY_BY_DEVICE)

static const struct alert_source_info sources[ALERT_SOURCE_COUNT] = {
#define SOURCE_INFO(name, text, unit, grouping, is_rare)                                           \
    [ALERT_SOURCE_##name] = {text, UNIT_##unit, grouping, is_rare},
    ALERT_SOURCES(SOURCE_INFO)
#undef SOURCE_INFO
};

static const char *const stat_names[ALERT_STAT_COUNT_OF] = {
#define STAT_NAME(name, text) [ALERT_STAT_##name] = text,
    ALERT_STATS(STAT_NAME)
#undef STAT_NAME
};

const struct alert_source_info *alert_source_info(enum alert_source source)
{
    assert((unsigned)source < ALERT_SOURCE_COUNT);
    return &sources[source];
}

enum alert_source alert_source_find(const char *name)
{
    for (int i = 0; i < ALERT_SOURCE_COUNT; i++)
        if (strcmp(sources[i].name, name) == 0)
            return (enum alert_source)i;
    return ALERT_SOURCE_NONE;
}

const char *alert_stat_name(enum alert_stat stat)
{
    assert((unsigned)stat < ALERT_STAT_COUNT_OF);
    return stat_names[stat];
}
