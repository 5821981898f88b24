// Samples of baselines as they are stored (baseline.h).
#include "common/store/compare/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/crc32c.h"

enum { CHECKSUM_SIZE = 4, SOURCE_SIZE = sizeof(uint16_t), WITH_SOURCES = 1 };

static void put(unsigned char *out, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static uint32_t checksum(const char *metric, uint64_t count, const void *bytes, size_t size)
{
    unsigned char number[8];
    put(number, count, sizeof number);
    const uint32_t before = crc32c(crc32c(0, metric, strlen(metric)), number, sizeof number);
    return crc32c(before, bytes, size);
}

unsigned char *baseline_encode(const char *metric, const struct sample *sample, size_t *size)
{
    const size_t floats = sample->kept * sizeof(double);
    const size_t whole = sample->sources ? floats + sample->kept * SOURCE_SIZE + 1 : floats;
    unsigned char *blob = malloc(whole + CHECKSUM_SIZE);
    if (!blob)
        return NULL;
    for (size_t i = 0; i < sample->kept; i++) {
        uint64_t bits;
        memcpy(&bits, &sample->values[i], sizeof bits);
        put(blob + i * sizeof bits, bits, sizeof bits);
        if (sample->sources)
            put(blob + floats + i * SOURCE_SIZE, sample->sources[i], SOURCE_SIZE);
    }
    if (sample->sources)
        blob[whole - 1] = WITH_SOURCES;
    put(blob + whole, checksum(metric, sample->count, blob, whole), CHECKSUM_SIZE);
    *size = whole + CHECKSUM_SIZE;
    return blob;
}

// How many values so many bytes before a checksum are; 0: they are no sample.
static size_t count_values(const unsigned char *bytes, size_t size, bool *with_sources)
{
    const size_t each = sizeof(double) + SOURCE_SIZE;
    *with_sources = size % 2 == 1; // by the byte behind them
    if (!*with_sources)
        return size % sizeof(double) == 0 ? size / sizeof(double) : 0;
    return bytes[size - 1] == WITH_SOURCES && (size - 1) % each == 0 ? (size - 1) / each : 0;
}

static enum status damaged(const char *metric, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "store: the baseline's sample of %.64s is damaged",
                     metric);
}

// Room for so many values; false when out of memory.
static bool make_room(struct sample *sample, size_t kept, bool with_sources)
{
    sample->values = calloc(kept, sizeof *sample->values);
    sample->sources = with_sources ? calloc(kept, sizeof *sample->sources) : NULL;
    sample->kept = sample->room = kept;
    return sample->values && (sample->sources || !with_sources);
}

// False where a value is no finite number.
static bool read_values(struct sample *sample, const unsigned char *bytes)
{
    const unsigned char *sources = bytes + sample->kept * sizeof(double);
    bool sound = true;
    for (size_t i = 0; i < sample->kept; i++) {
        const uint64_t bits = get(bytes + i * sizeof bits, sizeof bits);
        memcpy(&sample->values[i], &bits, sizeof bits);
        sound = sound && isfinite(sample->values[i]);
        if (sample->sources)
            sample->sources[i] = (uint16_t)get(sources + i * SOURCE_SIZE, SOURCE_SIZE);
    }
    return sound;
}

enum status baseline_decode(struct sample *sample, const char *metric, uint64_t count,
                            const void *blob, size_t size, struct error *err)
{
    const unsigned char *bytes = blob;
    if (sample->values || !blob || size <= CHECKSUM_SIZE)
        return damaged(metric, err);
    const size_t whole = size - CHECKSUM_SIZE;
    bool with_sources = false;
    const size_t kept = count_values(bytes, whole, &with_sources);
    if (kept == 0 || kept > STATS_SAMPLES_MAX || count < kept ||
        get(bytes + whole, CHECKSUM_SIZE) != checksum(metric, count, bytes, whole))
        return damaged(metric, err);
    struct sample read = {.count = count, .stride = 1};
    enum status status = STATUS_OK;
    if (!make_room(&read, kept, with_sources))
        status = error_no_memory(err, "store");
    else if (!read_values(&read, bytes))
        status = damaged(metric, err);
    if (status == STATUS_OK)
        *sample = read;
    else
        sample_deinit(&read);
    return status;
}
