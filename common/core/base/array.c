#include "common/core/base/array.h"

#include <stdint.h>
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
