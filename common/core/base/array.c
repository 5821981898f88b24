#include "common/core/base/array.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 16 };

bool array_reserve(void *items, size_t *capacity, size_t wanted, size_t item_size)
{
    if (wanted <= *capacity)
        return true;
    size_t room = *capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * *capacity;
    if (room < wanted)
        room = wanted < CAPACITY_MIN ? CAPACITY_MIN : wanted;
    size_t size;
    void *old;
    memcpy(&old, items, sizeof old); // its type is unknown here
    if (__builtin_mul_overflow(room, item_size, &size) || size > PTRDIFF_MAX)
        return false;
    void *grown = realloc(old, size);
    if (!grown)
        return false;
    memcpy(items, &grown, sizeof grown);
    *capacity = room;
    return true;
}

int array_compare_first(const void *left, const void *right)
{
    int64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

void *array_find(const void *items, size_t count, size_t item_size, int64_t key)
{
    return count > 0 ? bsearch(&key, items, count, item_size, array_compare_first) : NULL;
}
