#include "common/monitor/spool/spool_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

struct spool_names {
    uint32_t highest;
    size_t used, room;
    char *text;                     // a byte of length before each
    uint32_t places[NAMES_MAX + 1]; // in `text`, plus 1; 0: none
};

struct spool_names *spool_names_new(void)
{
    return calloc(1, sizeof(struct spool_names));
}

void spool_names_free(struct spool_names *names)
{
    if (names)
        free(names->text);
    free(names);
}

enum status spool_names_put(struct spool_names *names, uint32_t name, const char *text, size_t size)
{
    if (names->places[name] != 0)
        return STATUS_OK;
    if (size + 1 > NAMES_TEXT_MAX - names->used)
        return STATUS_FULL;
    if (!ARRAY_RESERVE(&names->text, &names->room, names->used + size + 1))
        return STATUS_NOMEM;
    names->text[names->used] = (char)size;
    memcpy(names->text + names->used + 1, text, size);
    names->places[name] = (uint32_t)names->used + 1;
    names->used += size + 1;
    if (name > names->highest)
        names->highest = name;
    return STATUS_OK;
}

const char *spool_names_get(const struct spool_names *names, uint32_t name, size_t *size)
{
    if (name > NAMES_MAX || names->places[name] == 0)
        return NULL;
    const char *entry = names->text + names->places[name] - 1;
    *size = (unsigned char)*entry;
    return entry + 1;
}

uint32_t spool_names_highest(const struct spool_names *names)
{
    return names->highest;
}
