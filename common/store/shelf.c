#include "common/store/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096 }; // a power of two

struct entry {
    struct shelf_key key;
    struct shelf_bucket bucket; // `cells` point to what follows
    size_t size;
    struct entry *next;                           // of its slot
    struct entry *newer, *older;                  // by use
    _Alignas(max_align_t) unsigned char memory[]; // cells, then their counts
};

struct shelf {
    size_t most, used;
    uint64_t puts;
    struct entry *newest, *oldest;
    struct entry *slots[SLOTS];
};

enum status shelf_new(struct shelf **out, size_t bytes)
{
    struct shelf *shelf = calloc(1, sizeof *shelf);
    if (!shelf)
        return STATUS_NOMEM;
    shelf->most = bytes;
    *out = shelf;
    return STATUS_OK;
}

void shelf_free(struct shelf *shelf)
{
    if (!shelf)
        return;
    for (struct entry *entry = shelf->newest, *older; entry; entry = older) {
        older = entry->older;
        free(entry);
    }
    free(shelf);
}

size_t shelf_bytes(const struct shelf *shelf)
{
    return shelf->used;
}

// ---- Places ----------------------------------------------------------------------------

static struct entry **slot_of(struct shelf *shelf, const struct shelf_key *key)
{
    uint64_t hash = (uint64_t)key->first_ns;
    hash ^= ((uint64_t)key->last_ns - (uint64_t)key->first_ns) * UINT64_C(0xff51afd7ed558ccd);
    hash ^= (uint64_t)(uint32_t)key->metric << 40 ^ (uint64_t)key->grouping << 60 ^
            (uint64_t)key->level << 56;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return &shelf->slots[hash >> 52];
}

_Static_assert(SLOTS == 1 << (64 - 52), "a slot for each hash");

static bool is_of(const struct entry *entry, const struct shelf_key *key)
{
    return entry->key.first_ns == key->first_ns && entry->key.last_ns == key->last_ns &&
           entry->key.metric == key->metric && entry->key.grouping == key->grouping &&
           entry->key.level == key->level;
}

static void take_out(struct shelf *shelf, struct entry *entry)
{
    assert((entry->newer == NULL) == (shelf->newest == entry));
    assert((entry->older == NULL) == (shelf->oldest == entry));
    if (entry->newer)
        entry->newer->older = entry->older;
    else
        shelf->newest = entry->older;
    if (entry->older)
        entry->older->newer = entry->newer;
    else
        shelf->oldest = entry->newer;
}

static void put_first(struct shelf *shelf, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = shelf->newest;
    if (shelf->newest)
        shelf->newest->newer = entry;
    else
        shelf->oldest = entry;
    shelf->newest = entry;
}

static void drop(struct shelf *shelf, struct entry *entry)
{
    struct entry **link = slot_of(shelf, &entry->key);
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    take_out(shelf, entry);
    shelf->used -= entry->size;
    free(entry);
}

static struct entry *find(struct shelf *shelf, const struct shelf_key *key)
{
    struct entry *entry = *slot_of(shelf, key);
    while (entry && !is_of(entry, key))
        entry = entry->next;
    return entry;
}

struct shelf_bucket *shelf_find(struct shelf *shelf, const struct shelf_key *key)
{
    struct entry *entry = find(shelf, key);
    if (!entry)
        return NULL;
    take_out(shelf, entry);
    put_first(shelf, entry);
    return &entry->bucket;
}

void shelf_drop(struct shelf *shelf, const struct shelf_key *key)
{
    struct entry *entry = find(shelf, key);
    if (entry)
        drop(shelf, entry);
}

// ---- Keeping -----------------------------------------------------------------------------

static size_t counts_of(const struct shelf_cell *cell)
{
    return cell->packed.positive + cell->packed.negative;
}

static struct entry *copy_bucket(const struct shelf_key *key, const struct shelf_bucket *bucket,
                                 size_t most)
{
    size_t words = 0;
    for (size_t i = 0; i < bucket->count; i++)
        words += counts_of(&bucket->cells[i]);
    const size_t cells = bucket->count * sizeof *bucket->cells;
    const size_t size = sizeof(struct entry) + cells + words * sizeof(uint32_t);
    struct entry *entry = size <= most ? malloc(size) : NULL;
    if (!entry)
        return NULL;
    *entry = (struct entry){.key = *key, .bucket = *bucket, .size = size};
    struct shelf_cell *cell = (struct shelf_cell *)(void *)entry->memory;
    uint32_t *counts = (uint32_t *)(void *)(entry->memory + cells);
    entry->bucket.cells = cell;
    for (size_t i = 0; i < bucket->count; i++, cell++) {
        *cell = bucket->cells[i];
        if (counts_of(cell) > 0)
            memcpy(counts, cell->counts, counts_of(cell) * sizeof *counts);
        cell->counts = counts;
        counts += counts_of(cell);
    }
    return entry;
}

void shelf_put(struct shelf *shelf, const struct shelf_key *key, const struct shelf_bucket *bucket)
{
    shelf_drop(shelf, key);
    struct entry *entry = copy_bucket(key, bucket, shelf->most);
    if (!entry)
        return;
    entry->bucket.made = ++shelf->puts;
    while (shelf->oldest && shelf->used > shelf->most - entry->size)
        drop(shelf, shelf->oldest);
    struct entry **slot = slot_of(shelf, key);
    entry->next = *slot;
    *slot = entry;
    put_first(shelf, entry);
    shelf->used += entry->size;
}
