#include "server/worker/options.h"

#include <string.h>

#include "common/core/parse.h"

enum { NAMES_MAX = 64, HELP_COLUMN = 28 };

static const struct option_line *find(const struct option_table *tables, size_t table_count,
                                      const char *name, size_t size, void **target)
{
    for (size_t t = 0; t < table_count; t++) {
        for (size_t i = 0; i < tables[t].count; i++) {
            const struct option_line *line = &tables[t].lines[i];
            if (strlen(line->name) == size && memcmp(line->name, name, size) == 0) {
                *target = (unsigned char *)tables[t].target + line->place;
                return line;
            }
        }
    }
    return NULL;
}

static enum status unknown(const struct option_table *tables, size_t table_count, const char *name,
                           struct error *err)
{
    const char *names[NAMES_MAX];
    unsigned int count = 0;
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t].count && count < NAMES_MAX; i++)
            names[count++] = tables[t].lines[i].name;
    const char *nearest = parse_nearest(name, names, count);
    if (nearest)
        return error_set(err, STATUS_INVALID, "unknown option '%.60s' (did you mean %s?)", name,
                         nearest);
    return error_set(err, STATUS_INVALID, "unknown option '%.60s' (see --help)", name);
}

static enum status set_value(const struct option_line *line, void *target, const char *value,
                             struct error *err)
{
    switch (line->type) {
    case OPTION_FLAG:
        *(bool *)target = true;
        return STATUS_OK;
    case OPTION_TEXT:
        *(const char **)target = value;
        return STATUS_OK;
    case OPTION_INTEGER:
        return parse_int(target, value, (int64_t)line->minimum, (int64_t)line->maximum, line->name,
                         err);
    case OPTION_REAL:
        return parse_real(target, value, line->minimum, line->maximum, line->name, err);
    }
    return STATUS_OK;
}

enum status options_parse(char *const *arguments, int count, int *at,
                          const struct option_table *tables, size_t table_count, bool *ended,
                          struct error *err)
{
    while (*at < count && !*ended) {
        const char *word = arguments[*at];
        if (word[0] != '-' || word[1] == '\0')
            return STATUS_OK;
        (*at)++;
        if (strcmp(word, "--") == 0) {
            *ended = true;
            return STATUS_OK;
        }

        size_t size = strcspn(word, "=");
        void *target = NULL;
        const struct option_line *line = find(tables, table_count, word, size, &target);
        if (!line)
            return unknown(tables, table_count, word, err);
        const char *value = word[size] == '=' ? word + size + 1 : NULL;
        if (line->type == OPTION_FLAG && value)
            return error_set(err, STATUS_INVALID, "%s: takes no value", line->name);
        if (line->type != OPTION_FLAG && !value) {
            if (*at == count)
                return error_set(err, STATUS_INVALID, "%s: a value is missing (%s)", line->name,
                                 line->value);
            value = arguments[(*at)++];
        }
        enum status status = set_value(line, target, value, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

void options_help(FILE *out, const struct option_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_line *line = &table->lines[i];
        int width = fprintf(out, "  %s%s%s", line->name, line->value ? " " : "",
                            line->value ? line->value : "");
        if (width >= HELP_COLUMN) {
            (void)fputc('\n', out);
            width = 0;
        }
        (void)fprintf(out, "%*s%s\n", HELP_COLUMN - width, "", line->help);
    }
}
