// Hash table that numbers distinct keys: the first key added gets number 0, the next new key 1, and
// so on.  A key is a tuple of integers.  Used to number groups, as in SQL's GROUP BY.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

// An empty table has `width` set and the other members zero.  After that only this module changes
// the members; the caller may read them.
struct key_index {
    unsigned width;   // integers in a key
    int64_t *keys;    // key n begins at keys[n * width]
    uint32_t *places; // open addressing, 2 * room places: a key's number + 1; 0: free
    size_t count;     // keys in the table
    size_t room;      // keys that fit
};

// True if two keys are the same.  Most have two or three integers: memcmp would take longer.
static inline bool key_index_is_same(const int64_t *a, const int64_t *b, unsigned width)
{
    unsigned i = 0;
    while (i < width && a[i] == b[i])
        i++;
    return i == width;
}

// Sets `*number` to the number of a key; returns false if the key is not in the table.
bool key_index_find(const struct key_index *index, const int64_t *key, size_t *number);

// Sets `*number` to the number of a key, after adding the key if it is new.  Fails only with
// STATUS_NOMEM.
MUST_CHECK enum status key_index_add(struct key_index *index, const int64_t *key, size_t *number);

// Both functions remove all keys; key_index_clear keeps the memory, key_index_deinit frees it.
void key_index_clear(struct key_index *index);
void key_index_deinit(struct key_index *index);
