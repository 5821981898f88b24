#include "server/collector/maintenance/retention_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"

#define MINUTE_NS INT64_C(60000000000)
#define DAY_NS    INT64_C(86400000000000)

enum { BYTES_MIN = 1 << 20 };

struct retention_rules retention_rules_default(void)
{
    return (struct retention_rules){
        .raw_ns = RETENTION_FOREVER,
        .samples_ns = DAY_NS,
        .level_ns = {35 * DAY_NS, 400 * DAY_NS, RETENTION_FOREVER, RETENTION_FOREVER},
        .finest_ns = {2 * DAY_NS, 35 * DAY_NS, RETENTION_FOREVER, RETENTION_FOREVER},
    };
}

static const struct key {
    const char *name;
    size_t place; // in struct retention_rules
} keys[] = {
    {"raw", offsetof(struct retention_rules, raw_ns)},
    {"minute", offsetof(struct retention_rules, level_ns[ROLLUP_MINUTE])},
    {"hour", offsetof(struct retention_rules, level_ns[ROLLUP_HOUR])},
    {"day", offsetof(struct retention_rules, level_ns[ROLLUP_DAY])},
    {"month", offsetof(struct retention_rules, level_ns[ROLLUP_MONTH])},
    {"finest-minute", offsetof(struct retention_rules, finest_ns[ROLLUP_MINUTE])},
    {"finest-hour", offsetof(struct retention_rules, finest_ns[ROLLUP_HOUR])},
    {"finest-day", offsetof(struct retention_rules, finest_ns[ROLLUP_DAY])},
    {"finest-month", offsetof(struct retention_rules, finest_ns[ROLLUP_MONTH])},
    {"samples", offsetof(struct retention_rules, samples_ns)},
    {"bytes", offsetof(struct retention_rules, bytes)},
};

enum { KEY_COUNT = sizeof keys / sizeof *keys, KEY_MINUTE = 1, KEY_FINEST_MINUTE = 5 };

static enum status parse_age(int64_t *out, const struct key *key, const char *text,
                             struct error *err)
{
    if (strcmp(text, "forever") == 0) {
        *out = RETENTION_FOREVER;
        return STATUS_OK;
    }
    char what[64];
    (void)snprintf(what, sizeof what, "--retention: %s", key->name);
    enum status status = parse_duration(out, text, what, err);
    if (status == STATUS_OK && *out < MINUTE_NS)
        return error_set(err, STATUS_INVALID, "%s: %.40s is less than a minute", what, text);
    return status;
}

static enum status find_key(const char *name, const struct key **out, struct error *err)
{
    const char *words[KEY_COUNT];
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        words[i] = keys[i].name;
        if (strcmp(name, keys[i].name) == 0) {
            *out = &keys[i];
            return STATUS_OK;
        }
    }
    const char *nearest = parse_nearest(name, words, KEY_COUNT);
    return error_set(err, STATUS_INVALID, "--retention: \"%.40s\" cannot be kept (%s%s%s)", name,
                     nearest ? "did you mean "
                             : "raw, minute, hour, day, month, finest-minute, "
                               "finest-hour, finest-day, finest-month, samples, bytes",
                     nearest ? nearest : "", nearest ? "?" : "");
}

// One "KEY=VALUE".  Bit i of `*given`: keys[i].
static enum status parse_rule(struct retention_rules *rules, unsigned *given, char *word,
                              struct error *err)
{
    char *equals = strchr(word, '=');
    if (!equals)
        return error_set(err, STATUS_INVALID,
                         "--retention: \"%.40s\" is not KEY=VALUE (such as raw=30d)", word);
    *equals = '\0';
    const struct key *key = NULL;
    enum status status = find_key(word, &key, err);
    if (status != STATUS_OK)
        return status;
    const unsigned bit = 1U << (key - keys);
    if (*given & bit)
        return error_set(err, STATUS_INVALID, "--retention: %s is there twice", key->name);
    *given |= bit;
    int64_t *value = (int64_t *)(void *)((char *)rules + key->place);
    return key->place == offsetof(struct retention_rules, bytes)
               ? parse_size(value, equals + 1, BYTES_MIN, "--retention: bytes", err)
               : parse_age(value, key, equals + 1, err);
}

// Checks from the coarsest level on that none is kept longer than the next coarser one.
static enum status order_levels(int64_t *ages, unsigned given, unsigned first_key,
                                struct error *err)
{
    for (int level = ROLLUP_LEVEL_COUNT - 2; level >= 0; level--) {
        if (ages[level] <= ages[level + 1])
            continue;
        const unsigned key = first_key + (unsigned)level;
        if (given >> key & 1)
            return error_set(err, STATUS_INVALID,
                             "--retention: %s is longer than %s, which replaces it (give "
                             "both)",
                             keys[key].name, keys[key + 1].name);
        ages[level] = ages[level + 1];
    }
    return STATUS_OK;
}

enum status retention_rules_parse(struct retention_rules *rules, const char *text,
                                  struct error *err)
{
    *rules = retention_rules_default();
    unsigned given = 0;
    enum status status = STATUS_OK;
    char *copy = strdup(text), *at = copy, *word;
    if (!copy)
        return error_no_memory(err, "--retention");
    while (status == STATUS_OK && (word = strsep(&at, ",")))
        status = parse_rule(rules, &given, word, err);
    free(copy);
    if (status == STATUS_OK)
        status = order_levels(rules->level_ns, given, KEY_MINUTE, err);
    if (status == STATUS_OK)
        status = order_levels(rules->finest_ns, given, KEY_FINEST_MINUTE, err);
    return status;
}

int64_t retention_rules_age(const struct retention_rules *rules, enum record_kind kind)
{
    const bool is_sample = kind == RECORD_KIND_DEVICE_SAMPLE || kind == RECORD_KIND_HOST_SAMPLE ||
                           kind == RECORD_KIND_DEVICE_PROCESS;
    return is_sample && rules->samples_ns < rules->raw_ns ? rules->samples_ns : rules->raw_ns;
}
