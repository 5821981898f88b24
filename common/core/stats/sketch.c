#include "common/core/stats/sketch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { PAGE_BUCKETS = 256, PAGES = SKETCH_BUCKETS / PAGE_BUCKETS };

// A page that is not there has only zeros; `low` and `high` bound the buckets in
// use (low > high: none).
struct side {
    uint64_t *pages[PAGES];
    uint32_t low, high;
};

struct sketch {
    uint64_t count;
    uint64_t zeros;
    struct side positive, negative;
    struct sketch_budget *budget; // NULL: none
    bool starved;                 // a page could not be allocated: counts are missing
};

enum { ENCODING_VERSION = 1, LEB128_MAX = 10 };

// The least value of a bucket; its number is the upper part of that value's bits
// (sketch_bucket_anywhere).
static double bucket_low(uint32_t bucket)
{
    const uint64_t place = (uint64_t)(1023 + SKETCH_EXPONENT_MIN) * SKETCH_PER_OCTAVE + bucket;
    const uint64_t bits = place << 46;
    double low;
    memcpy(&low, &bits, sizeof low);
    return low;
}

double sketch_bucket_value(uint32_t bucket)
{
    assert(bucket < SKETCH_BUCKETS);
    const double low = bucket_low(bucket), high = bucket_low(bucket + 1);
    // Between both ends with the same relative error towards each.
    return 2 * low * high / (low + high);
}

double sketch_snap(double value)
{
    if (value == 0 || isnan(value))
        return value;
    const uint32_t bucket = sketch_bucket(fabs(value));
    const double first = ceil(bucket_low(bucket)), end = bucket_low(bucket + 1);
    return first < end && first + 1 >= end ? copysign(first, value) : value;
}

static void side_reset(struct side *side)
{
    for (uint32_t i = side->low / PAGE_BUCKETS; i <= side->high / PAGE_BUCKETS; i++)
        if (i < PAGES && side->pages[i])
            memset(side->pages[i], 0, PAGE_BUCKETS * sizeof *side->pages[i]);
    side->low = SKETCH_BUCKETS;
    side->high = 0;
}

static void side_free(struct side *side)
{
    for (unsigned i = 0; i < PAGES; i++)
        free(side->pages[i]);
}

static uint64_t side_count(const struct side *side, uint32_t bucket)
{
    const uint64_t *page = side->pages[bucket / PAGE_BUCKETS];
    return page ? page[bucket % PAGE_BUCKETS] : 0;
}

// The page of a bucket, allocated if missing; NULL on failure.
static uint64_t *side_page(struct sketch *sketch, struct side *side, uint32_t bucket)
{
    uint64_t **page = &side->pages[bucket / PAGE_BUCKETS];
    if (*page)
        return *page;
    const size_t size = PAGE_BUCKETS * sizeof **page;
    struct sketch_budget *budget = sketch->budget;
    if (!budget || budget->left >= size)
        *page = calloc(1, size);
    else
        budget->spent = true;
    if (!*page)
        sketch->starved = true;
    else if (budget)
        budget->left -= size;
    return *page;
}

static void side_add(struct sketch *sketch, struct side *side, uint32_t bucket, uint64_t count)
{
    uint64_t *page = side_page(sketch, side, bucket);
    if (!page)
        return;
    page[bucket % PAGE_BUCKETS] += count;
    if (bucket < side->low)
        side->low = bucket;
    if (bucket > side->high)
        side->high = bucket;
}

static void side_merge(struct sketch *sketch, struct side *into, const struct side *from)
{
    for (uint32_t bucket = from->low; bucket <= from->high; bucket++)
        if (side_count(from, bucket))
            side_add(sketch, into, bucket, side_count(from, bucket));
}

enum status sketch_new(struct sketch **out)
{
    return sketch_new_within(out, NULL);
}

enum status sketch_new_within(struct sketch **out, struct sketch_budget *budget)
{
    struct sketch *sketch = calloc(1, sizeof *sketch);
    if (!sketch)
        return STATUS_NOMEM;
    sketch->budget = budget;
    sketch_reset(sketch);
    *out = sketch;
    return STATUS_OK;
}

enum status sketch_reserve_ns(struct sketch *sketch)
{
    for (uint32_t bucket = 0; bucket < SKETCH_NS_BUCKETS; bucket += PAGE_BUCKETS)
        if (!side_page(sketch, &sketch->positive, SKETCH_NS_OFFSET + bucket))
            return STATUS_NOMEM;
    return STATUS_OK;
}

void sketch_free(struct sketch *sketch)
{
    if (!sketch)
        return;
    side_free(&sketch->positive);
    side_free(&sketch->negative);
    free(sketch);
}

void sketch_reset(struct sketch *sketch)
{
    sketch->count = 0;
    sketch->zeros = 0;
    sketch->starved = false;
    side_reset(&sketch->positive);
    side_reset(&sketch->negative);
}

void sketch_add(struct sketch *sketch, double value, uint64_t count)
{
    if (isnan(value) || count == 0)
        return;
    sketch->count += count;
    if (fabs(value) < ldexp(1, SKETCH_EXPONENT_MIN))
        sketch->zeros += count;
    else if (value > 0)
        side_add(sketch, &sketch->positive, sketch_bucket(value), count);
    else
        side_add(sketch, &sketch->negative, sketch_bucket(-value), count);
}

void sketch_add_bucket(struct sketch *sketch, uint32_t bucket, uint64_t count)
{
    assert(bucket < SKETCH_BUCKETS);
    if (count == 0)
        return;
    sketch->count += count;
    side_add(sketch, &sketch->positive, bucket, count);
}

void sketch_add_values(struct sketch *sketch, const double *values, size_t count)
{
    const struct side *side = &sketch->positive;
    for (size_t i = 0; i < count; i++) {
        // Between two buckets that are in use a value needs no more than its count.
        const uint64_t bucket = sketch_bucket_anywhere(values[i]);
        const bool is_between = bucket >= side->low && bucket <= side->high;
        uint64_t *page = is_between ? side->pages[bucket / PAGE_BUCKETS] : NULL;
        if (page) {
            page[bucket % PAGE_BUCKETS]++;
            sketch->count++;
        } else {
            sketch_add(sketch, values[i], 1);
        }
    }
}

void sketch_merge(struct sketch *into, const struct sketch *from)
{
    into->count += from->count;
    into->zeros += from->zeros;
    into->starved |= from->starved;
    side_merge(into, &into->positive, &from->positive);
    side_merge(into, &into->negative, &from->negative);
}

uint64_t sketch_count(const struct sketch *sketch)
{
    return sketch->count;
}

static void side_each(const struct side *side, double sign, sketch_callback *callback,
                      void *context)
{
    for (uint32_t bucket = side->low; bucket <= side->high; bucket++)
        if (side_count(side, bucket))
            callback(context, sign * sketch_bucket_value(bucket), side_count(side, bucket));
}

void sketch_each(const struct sketch *sketch, sketch_callback *callback, void *context)
{
    side_each(&sketch->negative, -1, callback, context);
    if (sketch->zeros)
        callback(context, 0, sketch->zeros);
    side_each(&sketch->positive, 1, callback, context);
}

// The value of rank `rank` (from 0) among the sketch's count.
static double value_at_rank(const struct sketch *sketch, uint64_t rank)
{
    uint64_t seen = 0;
    const struct side *negative = &sketch->negative;
    if (negative->low <= negative->high) {
        for (uint32_t bucket = negative->high + 1; bucket-- > negative->low;) {
            seen += side_count(negative, bucket);
            if (seen > rank)
                return -sketch_bucket_value(bucket);
        }
    }
    seen += sketch->zeros;
    if (seen > rank)
        return 0;
    const struct side *positive = &sketch->positive;
    uint32_t bucket = positive->low;
    while (bucket < positive->high) {
        seen += side_count(positive, bucket);
        if (seen > rank)
            break;
        bucket++;
    }
    return sketch_bucket_value(bucket);
}

uint64_t sketch_rank(double q, uint64_t count)
{
    // A hair less, so that 0.07 * 100 (7.000000000000001) is 7 and not 8.
    const double rank = ceil(q * (double)count * (1 - 1e-12));
    const uint64_t nearest = rank >= 1 ? (uint64_t)rank - 1 : 0;
    return nearest < count ? nearest : count - 1;
}

bool sketch_quantile(const struct sketch *sketch, double q, double *value)
{
    if (sketch->count == 0 || sketch->starved || !(q >= 0 && q <= 1))
        return false;
    *value = value_at_rank(sketch, sketch_rank(q, sketch->count));
    return true;
}

// ---- As bytes -----------------------------------------------------------------

static size_t put_number(unsigned char *out, uint64_t number)
{
    size_t used = 0;
    while (number >= 0x80) {
        out[used++] = (unsigned char)(number | 0x80);
        number >>= 7;
    }
    out[used++] = (unsigned char)number;
    return used;
}

enum { LIST_HEAD = 2 }; // bytes of a list's length, which is at most 8192

// Two bytes always, so that the list may be written before its length is known.
static size_t put_list_head(unsigned char *out, uint64_t pairs)
{
    out[0] = (unsigned char)(pairs | 0x80);
    out[1] = (unsigned char)(pairs >> 7);
    return LIST_HEAD;
}

// A list of buckets as it is written.
struct list {
    unsigned char *out;
    size_t size, used;
    uint32_t before; // bucket of the last pair
    uint64_t pairs;
};

// Writes a pair, unless it does not fit.
static bool put_any_pair(struct list *list, uint32_t bucket, uint64_t count)
{
    unsigned char pair[2 * LEB128_MAX];
    size_t size = put_number(pair, bucket - list->before);
    size += put_number(pair + size, count);
    if (size > list->size - list->used)
        return false;
    memcpy(list->out + list->used, pair, size);
    list->used += size;
    list->before = bucket;
    list->pairs++;
    return true;
}

// Writes the non-empty buckets of a page from one on and below `end`, as many as fit;
// returns the one behind the last written, or `end`.
static uint32_t put_page(struct list *list, const uint64_t *page, uint32_t bucket, uint32_t end)
{
    for (; bucket < end; bucket++) {
        const uint64_t count = page[bucket % PAGE_BUCKETS];
        if (count == 0)
            continue;
        const uint32_t distance = bucket - list->before;
        if (distance >= 0x80 || count >= 0x4000 || list->size - list->used < 3) {
            if (!put_any_pair(list, bucket, count))
                break;
            continue;
        }
        unsigned char *out = list->out + list->used; // as nearly all are
        out[0] = (unsigned char)distance;
        out[1] = (unsigned char)(count < 0x80 ? count : count | 0x80);
        out[2] = (unsigned char)(count >> 7);
        list->used += count < 0x80 ? 2 : 3;
        list->before = bucket;
        list->pairs++;
    }
    return bucket;
}

// Writes the non-empty buckets of `side` from `*from` on, as many as fit in `size` bytes, at least
// LIST_HEAD; moves `*from` behind the last one written, or to SKETCH_BUCKETS.  Returns the bytes
// used.
static size_t put_side(unsigned char *out, size_t size, const struct side *side, uint32_t *from)
{
    struct list list = {out, size, LIST_HEAD, 0, 0};
    uint32_t bucket = *from > side->low ? *from : side->low;
    while (bucket <= side->high) {
        const uint64_t *page = side->pages[bucket / PAGE_BUCKETS];
        const uint32_t next = (bucket / PAGE_BUCKETS + 1) * PAGE_BUCKETS;
        const uint32_t end = next <= side->high ? next : side->high + 1;
        const uint32_t reached = page ? put_page(&list, page, bucket, end) : end;
        bucket = reached;
        if (reached < end)
            break;
    }
    *from = bucket > side->high ? SKETCH_BUCKETS : bucket;
    (void)put_list_head(out, list.pairs);
    return list.used;
}

size_t sketch_encode(const struct sketch *sketch, void *out, size_t size, uint32_t *next)
{
    unsigned char *bytes = out;
    if (sketch->starved || size < 1 + LEB128_MAX + 2 * LIST_HEAD)
        return 0;
    bytes[0] = ENCODING_VERSION;
    size_t used = 1 + put_number(bytes + 1, *next == 0 ? sketch->zeros : 0);
    // The last part has the negative side, whole; the others have an empty one.
    uint32_t place = *next, from = 0;
    const size_t part = put_side(bytes + used, size - used - LIST_HEAD, &sketch->positive, &place);
    const bool is_last = place == SKETCH_BUCKETS;
    if (part == LIST_HEAD && !is_last)
        return 0;
    used += part;
    used += is_last ? put_side(bytes + used, size - used, &sketch->negative, &from)
                    : put_list_head(bytes + used, 0);
    if (is_last && from != SKETCH_BUCKETS)
        return 0;
    *next = place;
    return used;
}

size_t sketch_encode_whole(const struct sketch *sketch, void *out, size_t size)
{
    uint32_t next = 0;
    const size_t used = sketch_encode(sketch, out, size, &next);
    return next == SKETCH_BUCKETS ? used : 0;
}

struct cursor {
    const unsigned char *at, *end;
};

static inline bool get_number(struct cursor *cursor, uint64_t *number)
{
    if (cursor->at < cursor->end && *cursor->at < 0x80) { // as nearly all are
        *number = *cursor->at++;
        return true;
    }
    *number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (cursor->at == cursor->end)
            return false;
        const uint64_t byte = *cursor->at++;
        if (shift == 63 && byte > 1)
            return false;
        *number |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

// Adds pairs whose distance is one byte, and whose count is one or two, as nearly all are,
// from a place in a page on and while they stay in it; at most so many.  Returns how many
// these were.
static uint64_t add_short_pairs(struct cursor *cursor, uint64_t *page, uint64_t *place,
                                uint64_t most, uint64_t *added)
{
    const unsigned char *at = cursor->at;
    const unsigned char *const end = cursor->end - at < 3 ? at : cursor->end - 2;
    uint64_t in_page = *place, sum = 0, i = 0;
    for (; i < most && at < end; i++) {
        const uint32_t distance = at[0];
        uint32_t count = at[1];
        if (distance == 0 || count == 0 || in_page + distance >= PAGE_BUCKETS)
            break;
        if ((distance | count) & 0x80) {
            if (distance & 0x80 || at[2] == 0 || at[2] & 0x80)
                break;
            count = (count & 0x7f) | (uint32_t)at[2] << 7;
            at++;
        }
        in_page += distance;
        page[in_page] += count;
        sum += count;
        at += 2;
    }
    cursor->at = at;
    *place = in_page;
    *added = sum;
    return i;
}

// Reads one side's buckets; adds them to `side` of the sketch unless it is NULL.  `*total` has
// the counts of all sides so far, which must not overflow.
static bool get_side(struct cursor *cursor, struct sketch *sketch, struct side *side,
                     uint64_t *total)
{
    uint64_t pairs, i, bucket = 0;
    if (!get_number(cursor, &pairs) || pairs > SKETCH_BUCKETS)
        return false;
    for (i = 0; i < pairs; i++) {
        uint64_t distance, count;
        if (!get_number(cursor, &distance) || !get_number(cursor, &count) ||
            (i > 0 && distance == 0) || count == 0 || distance >= SKETCH_BUCKETS - bucket ||
            __builtin_add_overflow(*total, count, total))
            break;
        bucket += distance;
        if (!side)
            continue;
        side_add(sketch, side, (uint32_t)bucket, count);
        uint64_t *page = side->pages[bucket / PAGE_BUCKETS];
        uint64_t place = bucket % PAGE_BUCKETS;
        if (!page)
            continue;
        i += add_short_pairs(cursor, page, &place, pairs - i - 1, &count);
        bucket = bucket / PAGE_BUCKETS * PAGE_BUCKETS + place;
        side->high = bucket > side->high ? (uint32_t)bucket : side->high;
        if (__builtin_add_overflow(*total, count, total))
            return false;
    }
    return i == pairs;
}

// Walks the encoding; with `sketch` NULL only checks it.
static bool walk(struct sketch *sketch, const void *bytes, size_t size, uint64_t *total)
{
    struct cursor cursor = {bytes, (const unsigned char *)bytes + size};
    uint64_t zeros;
    if (size == 0 || *cursor.at++ != ENCODING_VERSION || !get_number(&cursor, &zeros))
        return false;
    if (__builtin_add_overflow(*total, zeros, total))
        return false;
    if (sketch)
        sketch->zeros += zeros;
    return get_side(&cursor, sketch, sketch ? &sketch->positive : NULL, total) &&
           get_side(&cursor, sketch, sketch ? &sketch->negative : NULL, total) &&
           cursor.at == cursor.end;
}

enum status sketch_decode(struct sketch *sketch, const void *bytes, size_t size)
{
    uint64_t total = sketch->count;
    return walk(NULL, bytes, size, &total) ? sketch_decode_once(sketch, bytes, size)
                                           : STATUS_CORRUPT;
}

enum status sketch_decode_once(struct sketch *sketch, const void *bytes, size_t size)
{
    uint64_t total = sketch->count;
    if (!walk(sketch, bytes, size, &total))
        return STATUS_CORRUPT;
    sketch->count = total;
    return sketch->starved ? STATUS_NOMEM : STATUS_OK;
}
