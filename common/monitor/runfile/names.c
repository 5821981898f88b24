#include "common/monitor/runfile/names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"

enum {
    BACKED_STEP = 16 * 1024, // the area grows in such pieces
    TABLE_SIZE_MIN = 64,     // slots of the lookup table, a power of two
};

// The layout in the run file.  A text is its length in one byte, its bytes, and
// a terminating zero.  `count` is stored with release once the text is there.
struct names_area {
    _Alignas(64) _Atomic uint32_t count;
    uint32_t used; // bytes of `text`
    uint32_t reserved[14];
    uint32_t offsets[NAMES_MAX + 1]; // of name i in `text`; [0] is not used
    char text[NAMES_TEXT_MAX];
};

struct names {
    struct names_area *area;
    names_back *back;
    void *context;
    pthread_mutex_t lock; // guards what follows, and writing to the area
    size_t offsets_backed, text_backed;
    uint32_t *table; // open addressing: numbers of names, 0 is empty; NULL: read-only
    size_t table_size;
};

size_t names_area_size(void)
{
    return sizeof(struct names_area);
}

enum status names_open(struct names **out, void *area, names_back *back, void *context)
{
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return STATUS_NOMEM;
    names->table = calloc(TABLE_SIZE_MIN, sizeof *names->table);
    if (!names->table || (back && !back(context, 0, offsetof(struct names_area, offsets)))) {
        enum status status = names->table ? STATUS_FULL : STATUS_NOMEM;
        free(names->table);
        free(names);
        return status;
    }
    names->table_size = TABLE_SIZE_MIN;
    names->area = area;
    names->back = back;
    names->context = context;
    (void)pthread_mutex_init(&names->lock, NULL);
    *out = names;
    return STATUS_OK;
}

// Validates the table.  Texts are contiguous, so each determines the offset of the next.
static bool area_is_sound(struct names_area *area)
{
    const uint32_t count = atomic_load_explicit(&area->count, memory_order_acquire);
    if (count > NAMES_MAX)
        return false;
    size_t offset = 0;
    for (uint32_t name = 1; name <= count; name++) {
        if (area->offsets[name] != offset || offset + 2 >= NAMES_TEXT_MAX)
            return false;
        const char *text = area->text + offset + 1;
        const size_t size = (unsigned char)area->text[offset];
        if (size == 0 || offset + 1 + size >= NAMES_TEXT_MAX || text[size] != '\0' ||
            !text_is_utf8(text, size))
            return false;
        offset += size + 2;
    }
    return true;
}

enum status names_attach(struct names **out, void *area)
{
    if (!area_is_sound(area))
        return STATUS_CORRUPT;
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return STATUS_NOMEM;
    names->area = area;
    (void)pthread_mutex_init(&names->lock, NULL);
    *out = names;
    return STATUS_OK;
}

void names_close(struct names *names)
{
    if (!names)
        return;
    (void)pthread_mutex_destroy(&names->lock);
    free(names->table);
    free(names);
}

uint32_t names_count(const struct names *names)
{
    return atomic_load_explicit(&names->area->count, memory_order_acquire);
}

const char *names_text(const struct names *names, uint32_t name, size_t *size)
{
    const bool there = name > 0 && name <= names_count(names);
    const char *entry = there ? names->area->text + names->area->offsets[name] : "";
    if (size)
        *size = there ? (unsigned char)entry[0] : 0;
    return there ? entry + 1 : entry;
}

// ---- Lookup and adding, under the lock ------------------------------------

// The slot that holds the text, or the empty one where it would be inserted.
static uint32_t *slot_of(const struct names *names, const char *text, size_t size)
{
    size_t slot = text_hash(text, size) & (names->table_size - 1);
    for (;; slot = (slot + 1) & (names->table_size - 1)) {
        const uint32_t name = names->table[slot];
        if (name == 0)
            return &names->table[slot];
        size_t other_size;
        const char *other = names_text(names, name, &other_size);
        if (other_size == size && memcmp(other, text, size) == 0)
            return &names->table[slot];
    }
}

// Grows the lookup table so that it stays at most half full.
static bool make_table_room(struct names *names, uint32_t count)
{
    if ((count + 1) * 2 <= names->table_size)
        return true;
    const size_t size = names->table_size * 2;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return false;
    free(names->table);
    names->table = table;
    names->table_size = size;
    for (uint32_t name = 1; name <= count; name++) {
        size_t text_size;
        const char *text = names_text(names, name, &text_size);
        *slot_of(names, text, text_size) = name;
    }
    return true;
}

// Allocates the first `wanted` bytes from `offset` in the run file.
static bool make_backed(struct names *names, size_t *backed, size_t wanted, size_t offset,
                        size_t size)
{
    while (*backed < wanted) {
        const size_t step = size - *backed < BACKED_STEP ? size - *backed : BACKED_STEP;
        if (names->back && !names->back(names->context, offset + *backed, step))
            return false;
        *backed += step;
    }
    return true;
}

static uint32_t append(struct names *names, const char *text, size_t size)
{
    struct names_area *area = names->area;
    const uint32_t count = atomic_load_explicit(&area->count, memory_order_relaxed);
    const size_t entry = size + 2;
    if (count >= NAMES_MAX || entry > NAMES_TEXT_MAX - area->used ||
        !make_table_room(names, count) ||
        !make_backed(names, &names->offsets_backed, (count + 2) * sizeof *area->offsets,
                     offsetof(struct names_area, offsets), sizeof area->offsets) ||
        !make_backed(names, &names->text_backed, area->used + entry,
                     offsetof(struct names_area, text), sizeof area->text))
        return 0;

    char *place = area->text + area->used;
    place[0] = (char)size;
    memcpy(place + 1, text, size);
    place[1 + size] = '\0';
    area->offsets[count + 1] = area->used;
    area->used += (uint32_t)entry;
    atomic_store_explicit(&area->count, count + 1, memory_order_release);
    *slot_of(names, text, size) = count + 1;
    return count + 1;
}

size_t names_clean(char *out, size_t out_size, const char *text)
{
    const size_t length = strlen(text);
    if (!text_is_utf8(text, length)) {
        (void)text_escape(out, out_size, text, length);
        return strlen(out);
    }
    return text_copy(out, out_size, text);
}

// The number of a name; a missing one is added if `add`, else 0.
static uint32_t number_of(struct names *names, const char *text, bool add)
{
    if (!text || !*text || !names->table)
        return 0;
    char clean[NAMES_SIZE_MAX + 1];
    const size_t size = names_clean(clean, sizeof clean, text);

    (void)pthread_mutex_lock(&names->lock);
    uint32_t name = *slot_of(names, clean, size);
    if (name == 0 && add)
        name = append(names, clean, size);
    (void)pthread_mutex_unlock(&names->lock);
    return name;
}

uint32_t names_add(struct names *names, const char *text)
{
    return number_of(names, text, true);
}

uint32_t names_find(struct names *names, const char *text)
{
    return number_of(names, text, false);
}
