#include "common/core/bit_coder.h"

#include <stdlib.h>
#include <string.h>

enum {
    FAST = 4, // shifts: how much of what is new is learnt
    SLOW = 6,
    COUNT_BITS = 10, // of the bits seen; above them the chance, in 2^22ths
    LATELY = 30,     // bits that are counted
    LONG = 254,
    TAIL_BYTES = 5, // that a range coder needs to say where it stands
};

#define RANGE_LEAST (UINT32_C(1) << 24)
#define HALF        (UINT32_C(1) << 15)
#define COUNT_MASK  ((UINT32_C(1) << COUNT_BITS) - 1)
#define CHANCE_MOST (UINT32_MAX >> COUNT_BITS)

// After `n` bits the next one counts for 1 / (n + 1.5), in 65536ths.
#define RATE(n)     (uint16_t)(131072 / (2 * (n) + 3))
#define RATES_4(n)  RATE(n), RATE((n) + 1), RATE((n) + 2), RATE((n) + 3)
#define RATES_16(n) RATES_4(n), RATES_4((n) + 4), RATES_4((n) + 8), RATES_4((n) + 12)
#define RATES_64(n) RATES_16(n), RATES_16((n) + 16), RATES_16((n) + 32), RATES_16((n) + 48)

static const uint16_t rates[] = {RATES_64(0), RATES_64(64), RATES_64(128), RATES_64(192)};

_Static_assert(LONG < sizeof rates / sizeof *rates, "a rate for every count");

void bit_models_init(struct bit_model *models, size_t count, enum bit_learning learning)
{
    const uint32_t state = learning == BIT_LEARN_TWICE ? HALF << 16 | HALF : HALF << 16;
    for (size_t i = 0; i < count; i++)
        models[i].state = state;
}

// Of `range`, what belongs to a 0: never nothing and never all.
static uint32_t share_of_zero(const struct bit_model *model, uint32_t range,
                              enum bit_learning learning)
{
    uint32_t chance = model->state >> 16, least = 8; // in 65536ths
    if (learning == BIT_LEARN_TWICE) {
        chance = (chance + (model->state & 0xffff)) >> 1;
        least = 64;
    }
    const uint32_t most = 65536 - least;
    return (range >> 16) * (chance < least ? least : chance > most ? most : chance);
}

static void learn_twice(struct bit_model *model, bool bit)
{
    uint32_t fast = model->state & 0xffff, slow = model->state >> 16;
    if (bit) {
        fast -= fast >> FAST;
        slow -= slow >> SLOW;
    } else {
        fast += (65535 - fast) >> FAST;
        slow += (65535 - slow) >> SLOW;
    }
    model->state = slow << 16 | fast;
}

static void learn_counted(struct bit_model *model, bool bit, uint32_t most)
{
    uint32_t chance = model->state >> COUNT_BITS, count = model->state & COUNT_MASK;
    if (bit)
        chance -= (uint32_t)((uint64_t)chance * rates[count] >> 16);
    else
        chance += (uint32_t)((uint64_t)(CHANCE_MOST - chance) * rates[count] >> 16);
    model->state = chance << COUNT_BITS | (count < most ? count + 1 : count);
}

static void learn(struct bit_model *model, bool bit, enum bit_learning learning)
{
    if (learning == BIT_LEARN_TWICE)
        learn_twice(model, bit);
    else
        learn_counted(model, bit, learning == BIT_LEARN_LATELY ? LATELY : LONG);
}

// ---- Bytes ----------------------------------------------------------------------------

static bool make_room(struct byte_sink *sink, size_t size)
{
    if (sink->has_failed)
        return false;
    if (sink->room - sink->size >= size)
        return true;
    size_t room = sink->room ? sink->room : 256;
    while (room - sink->size < size)
        room *= 2;
    unsigned char *bigger = realloc(sink->bytes, room);
    sink->has_failed = !bigger;
    if (!bigger)
        return false;
    sink->bytes = bigger;
    sink->room = room;
    return true;
}

void byte_sink_put(struct byte_sink *sink, unsigned char byte)
{
    if (make_room(sink, 1))
        sink->bytes[sink->size++] = byte;
}

void byte_sink_append(struct byte_sink *sink, const void *bytes, size_t size)
{
    if (size == 0 || !make_room(sink, size))
        return;
    memcpy(sink->bytes + sink->size, bytes, size);
    sink->size += size;
}

void byte_sink_number(struct byte_sink *sink, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        byte_sink_put(sink, (unsigned char)(value | 0x80));
    byte_sink_put(sink, (unsigned char)value);
}

void byte_sink_deinit(struct byte_sink *sink)
{
    free(sink->bytes);
    *sink = (struct byte_sink){0};
}

bool byte_number(const unsigned char **at, const unsigned char *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const unsigned char byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return shift < 63 || byte <= 1;
    }
    return false;
}

// ---- Writing --------------------------------------------------------------------------

void bit_writer_init(struct bit_writer *writer, enum bit_learning learning)
{
    *writer = (struct bit_writer){.learning = learning, .range = UINT32_MAX};
}

// Gives out the highest byte of `low`, unless a carry may come: then it is held.
static void shift_low(struct bit_writer *writer)
{
    const bool carry = writer->low > UINT32_MAX;
    const unsigned char top = (unsigned char)(writer->low >> 24);
    if (carry || top != 0xff) {
        if (writer->has_begun)
            byte_sink_put(&writer->modelled, (unsigned char)(writer->last + carry));
        for (; writer->held > 0; writer->held--)
            byte_sink_put(&writer->modelled, (unsigned char)(carry ? 0x00 : 0xff));
        writer->last = top;
        writer->has_begun = true;
    } else {
        writer->held++;
    }
    writer->low = (writer->low & 0x00ffffff) << 8;
}

void bit_writer_put(struct bit_writer *writer, struct bit_model *model, bool bit)
{
    const uint32_t zero = share_of_zero(model, writer->range, writer->learning);
    if (bit) {
        writer->low += zero;
        writer->range -= zero;
    } else {
        writer->range = zero;
    }
    learn(model, bit, writer->learning);
    while (writer->range < RANGE_LEAST) {
        writer->range <<= 8;
        shift_low(writer);
    }
}

void bit_writer_plain(struct bit_writer *writer, uint64_t value, unsigned count)
{
    if (count > 32) {
        bit_writer_plain(writer, value >> 32, count - 32);
        count = 32;
    }
    writer->bits = writer->bits << count | (value & ((UINT64_C(1) << count) - 1));
    writer->bit_count += count;
    while (writer->bit_count >= 8) {
        writer->bit_count -= 8;
        byte_sink_put(&writer->plain, (unsigned char)(writer->bits >> writer->bit_count));
    }
}

enum status bit_writer_end(struct bit_writer *writer, struct byte_sink *sink)
{
    for (unsigned i = 0; i < TAIL_BYTES; i++)
        shift_low(writer);
    // A reader takes what is missing for zeros.
    while (writer->modelled.size > 0 && writer->modelled.bytes[writer->modelled.size - 1] == 0)
        writer->modelled.size--;
    if (writer->bit_count > 0)
        byte_sink_put(&writer->plain, (unsigned char)(writer->bits << (8 - writer->bit_count)));
    byte_sink_number(sink, writer->modelled.size);
    byte_sink_number(sink, writer->plain.size);
    byte_sink_append(sink, writer->modelled.bytes, writer->modelled.size);
    byte_sink_append(sink, writer->plain.bytes, writer->plain.size);
    const bool failed = sink->has_failed || writer->modelled.has_failed || writer->plain.has_failed;
    return failed ? STATUS_NOMEM : STATUS_OK;
}

void bit_writer_deinit(struct bit_writer *writer)
{
    byte_sink_deinit(&writer->modelled);
    byte_sink_deinit(&writer->plain);
}

// ---- Reading --------------------------------------------------------------------------

static unsigned char next_byte(struct bit_reader *reader)
{
    return reader->modelled < reader->modelled_end ? *reader->modelled++ : 0;
}

enum status bit_reader_init(struct bit_reader *reader, const unsigned char **at,
                            const unsigned char *end, enum bit_learning learning)
{
    uint64_t modelled = 0, plain = 0;
    *reader = (struct bit_reader){.learning = learning, .range = UINT32_MAX};
    if (!byte_number(at, end, &modelled) || !byte_number(at, end, &plain) ||
        modelled > (size_t)(end - *at) || plain > (size_t)(end - *at) - modelled)
        return STATUS_CORRUPT;
    reader->modelled = *at;
    reader->modelled_end = reader->plain = *at + modelled;
    reader->plain_end = *at = reader->plain + plain;
    for (unsigned i = 0; i < 4; i++)
        reader->code = reader->code << 8 | next_byte(reader);
    return STATUS_OK;
}

bool bit_reader_get(struct bit_reader *reader, struct bit_model *model)
{
    const uint32_t zero = share_of_zero(model, reader->range, reader->learning);
    const bool bit = reader->code >= zero;
    if (bit) {
        reader->code -= zero;
        reader->range -= zero;
    } else {
        reader->range = zero;
    }
    learn(model, bit, reader->learning);
    while (reader->range < RANGE_LEAST) {
        reader->range <<= 8;
        reader->code = reader->code << 8 | next_byte(reader);
    }
    return bit;
}

uint64_t bit_reader_plain(struct bit_reader *reader, unsigned count)
{
    if (count > 32) {
        const uint64_t high = bit_reader_plain(reader, count - 32);
        return high << 32 | bit_reader_plain(reader, 32);
    }
    while (reader->bit_count < count) {
        reader->is_over |= reader->plain >= reader->plain_end;
        const unsigned char byte = reader->plain < reader->plain_end ? *reader->plain++ : 0;
        reader->bits = reader->bits << 8 | byte;
        reader->bit_count += 8;
    }
    reader->bit_count -= count;
    return reader->bits >> reader->bit_count & ((UINT64_C(1) << count) - 1);
}
