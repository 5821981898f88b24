// Samples as the table baseline_sample keeps them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/crc32c.h"
#include "common/store/baseline.h"

enum { CHECKSUM_SIZE = 4 };

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

static uint32_t checksum(const char *metric, uint64_t count, const void *floats, size_t size)
{
    unsigned char number[8];
    put(number, count, sizeof number);
    const uint32_t before = crc32c(crc32c(0, metric, strlen(metric)), number, sizeof number);
    return crc32c(before, floats, size);
}

unsigned char *baseline_encode(const char *metric, const struct sample *sample, size_t *size)
{
    const size_t floats = sample->kept * sizeof(double);
    unsigned char *blob = malloc(floats + CHECKSUM_SIZE);
    if (!blob)
        return NULL;
    for (size_t i = 0; i < sample->kept; i++) {
        uint64_t bits;
        memcpy(&bits, &sample->values[i], sizeof bits);
        put(blob + i * sizeof bits, bits, sizeof bits);
    }
    put(blob + floats, checksum(metric, sample->count, blob, floats), CHECKSUM_SIZE);
    *size = floats + CHECKSUM_SIZE;
    return blob;
}

static enum status damaged(const char *metric, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "store: the baseline's sample of %.64s is damaged",
                     metric);
}

enum status baseline_decode(struct sample *sample, const char *metric, uint64_t count,
                            const void *blob, size_t size, struct error *err)
{
    const unsigned char *bytes = blob;
    if (size < CHECKSUM_SIZE || (size - CHECKSUM_SIZE) % sizeof(double) != 0)
        return damaged(metric, err);
    const size_t floats = size - CHECKSUM_SIZE, kept = floats / sizeof(double);
    if (kept == 0 || kept > STATS_SAMPLES_MAX || count < kept ||
        get(bytes + floats, CHECKSUM_SIZE) != checksum(metric, count, bytes, floats))
        return damaged(metric, err);
    double *values = calloc(kept, sizeof *values);
    if (!values)
        return error_set(err, STATUS_NOMEM, "store: out of memory");
    bool sound = true;
    for (size_t i = 0; i < kept; i++) {
        const uint64_t bits = get(bytes + i * sizeof bits, sizeof bits);
        memcpy(&values[i], &bits, sizeof bits);
        sound = sound && isfinite(values[i]);
    }
    if (!sound) {
        free(values);
        return damaged(metric, err);
    }
    *sample =
        (struct sample){.values = values, .kept = kept, .room = kept, .count = count, .stride = 1};
    return STATUS_OK;
}
