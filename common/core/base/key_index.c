#include "common/core/base/key_index.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16 };

// Where the key is, or the free place where it belongs.
static size_t find_place(const struct key_index *index, const int64_t *key)
{
    const size_t mask = 2 * index->room - 1;
    uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < index->width; i++) {
        hash ^= (uint64_t)key[i];
        hash *= UINT64_C(0xff51afd7ed558ccd); // the finaliser of MurmurHash3
        hash ^= hash >> 33;
    }
    size_t place = (size_t)hash & mask;
    while (index->places[place] &&
           !key_index_is_same(&index->keys[(index->places[place] - 1) * index->width], key,
                              index->width))
        place = (place + 1) & mask;
    return place;
}

static enum status grow(struct key_index *index)
{
    const size_t room = index->room ? 2 * index->room : FIRST_ROOM;
    int64_t *keys = realloc(index->keys, (room * index->width + 1) * sizeof *keys);
    if (keys)
        index->keys = keys;
    uint32_t *places = keys ? calloc(2 * room, sizeof *places) : NULL;
    if (!places)
        return STATUS_NOMEM;
    free(index->places);
    index->places = places;
    index->room = room;
    for (size_t i = 0; i < index->count; i++)
        places[find_place(index, &keys[i * index->width])] = (uint32_t)i + 1;
    return STATUS_OK;
}

bool key_index_find(const struct key_index *index, const int64_t *key, size_t *number)
{
    const size_t place = index->room ? find_place(index, key) : 0;
    if (!index->room || !index->places[place])
        return false;
    *number = index->places[place] - 1;
    return true;
}

enum status key_index_add(struct key_index *index, const int64_t *key, size_t *number)
{
    if (key_index_find(index, key, number))
        return STATUS_OK;
    if (index->count == index->room && grow(index) != STATUS_OK)
        return STATUS_NOMEM;
    *number = index->count++;
    memcpy(&index->keys[*number * index->width], key, index->width * sizeof *key);
    index->places[find_place(index, key)] = (uint32_t)index->count;
    return STATUS_OK;
}

void key_index_clear(struct key_index *index)
{
    if (index->count > 0)
        memset(index->places, 0, 2 * index->room * sizeof *index->places);
    index->count = 0;
}

void key_index_deinit(struct key_index *index)
{
    free(index->keys);
    free(index->places);
    *index = (struct key_index){.width = index->width};
}
