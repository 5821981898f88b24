#include "client/cli/args/kinds.h"

#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/record/record.h"

enum record_kind kinds_find(const char *word)
{
    enum record_kind kind = record_kind_find(word);
    size_t size = strlen(word);
    char singular[64];
    if (kind != RECORD_KIND_COUNT || size < 2 || size >= sizeof singular || word[size - 1] != 's')
        return kind;
    memcpy(singular, word, size - 1);
    singular[size - 1] = '\0';
    return record_kind_find(singular);
}

enum status kinds_parse(uint32_t *out, const struct cli *cli, struct error *err)
{
    *out = 0;
    for (unsigned i = 0; i < cli->options.argument_count; i++) {
        const char *word = cli->options.arguments[i];
        enum record_kind kind = kinds_find(word);
        if (kind != RECORD_KIND_COUNT) {
            *out |= UINT32_C(1) << kind;
            continue;
        }
        const char *names[RECORD_KIND_COUNT];
        for (int k = 0; k < (int)RECORD_KIND_COUNT; k++)
            names[k] = record_kind_info((enum record_kind)k)->name;
        const char *nearest = parse_nearest(word, names, RECORD_KIND_COUNT);
        return error_set(err, STATUS_INVALID, "%s: unknown kind of records: %s (%s%s%s)",
                         cli->command->name, word, nearest ? "did you mean " : "see inferstat ",
                         nearest ? nearest : "metrics --columns", nearest ? "?" : "");
    }
    return STATUS_OK;
}
