#include "common/store/sealed_cache.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/seal_columns.h"

static void free_opened(struct sealed_opened *opened)
{
    if (!opened)
        return;
    seal_reader_free(opened->reader);
    free(opened);
}

static void find_columns(struct sealed_opened *opened)
{
    const char *names[SEAL_COLUMNS_MAX];
    const unsigned count = seal_columns((enum record_kind)opened->segment.kind, names);
    for (unsigned i = 0; i < count; i++)
        opened->places[i] = seal_reader_find(opened->reader, names[i]);
}

static enum status open_segment(sqlite3 *db, const struct sealed_segment *segment,
                                struct sealed_opened **out, struct error *err)
{
    struct sealed_opened *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    opened->segment = *segment;
    enum status status = sealed_load(db, segment, &opened->reader, err);
    if (status != STATUS_OK) {
        free_opened(opened);
        return status;
    }
    find_columns(opened);
    *out = opened;
    return STATUS_OK;
}

enum status sealed_value(struct sealed_opened *opened, unsigned kept, uint32_t row, int64_t *value,
                         bool *is_absent)
{
    struct seal_column *column = &opened->columns[kept];
    *value = 0;
    *is_absent = true;
    if (!column->values && opened->places[kept] >= 0) {
        enum status status =
            seal_reader_column(opened->reader, (unsigned)opened->places[kept], column);
        if (status != STATUS_OK)
            return status;
    }
    if (!column->values || (column->is_absent && column->is_absent[row]))
        return STATUS_OK;
    *value = column->values[row];
    *is_absent = false;
    return STATUS_OK;
}

// Nobody uses what is in the cache and is not taken; what is taken and not in it is freed
// when it is given back.
static void keep(struct sealed_cache *cache, struct sealed_opened *opened)
{
    unsigned best = 0;
    for (unsigned i = 0; i < SEALED_KEPT; i++) {
        if (!cache->kept[i]) {
            best = i;
            break;
        }
        if (cache->kept[i]->used < cache->kept[best]->used)
            best = i;
    }
    if (cache->kept[best] && cache->kept[best]->users == 0)
        free_opened(cache->kept[best]);
    cache->kept[best] = opened;
}

enum status sealed_cache_take(struct sealed_cache *cache, sqlite3 *db,
                              const struct sealed_segment *segment, struct sealed_opened **out,
                              struct error *err)
{
    enum status status = STATUS_OK;
    struct sealed_opened *opened = NULL;
    for (unsigned i = 0; i < SEALED_KEPT && !opened; i++)
        if (cache->kept[i] && sealed_is_same(&cache->kept[i]->segment, segment))
            opened = cache->kept[i];
    if (!opened) {
        status = open_segment(db, segment, &opened, err);
        if (status != STATUS_OK)
            return status;
        keep(cache, opened);
    }
    opened->used = ++cache->clock;
    opened->users++;
    *out = opened;
    return STATUS_OK;
}

void sealed_cache_give(struct sealed_cache *cache, struct sealed_opened *opened)
{
    if (!opened || --opened->users > 0)
        return;
    for (unsigned i = 0; i < SEALED_KEPT; i++)
        if (cache->kept[i] == opened)
            return;
    free_opened(opened);
}

void sealed_cache_deinit(struct sealed_cache *cache)
{
    for (unsigned i = 0; i < SEALED_KEPT; i++)
        free_opened(cache->kept[i]);
    *cache = (struct sealed_cache){{NULL}, 0};
}
