#include "common/store/sealed_runs.h"

#include <stdlib.h>

#include "common/store/fingerprint.h"
#include "common/store/seal_columns.h"

enum { SUM_BYTES = 8, CHECKSUM_BYTES = 4, LEAST_BYTES = SUM_BYTES + 2 };

static int compare(const void *a, const void *b)
{
    const struct sealed_run *x = a, *y = b;
    return x->run < y->run ? -1 : x->run > y->run;
}

// The list of rows becomes one of runs; the count of that.
static uint32_t join(struct sealed_run *list, uint32_t count)
{
    uint32_t last = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (list[i].run != list[last].run) {
            list[++last] = list[i];
            continue;
        }
        list[last].rows++;
        list[last].sum += list[i].sum;
    }
    return last + 1;
}

static void put_bytes(struct byte_sink *out, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        byte_sink_put(out, (unsigned char)(value >> 8 * i));
}

static uint64_t take_bytes(const unsigned char **at, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

// A run's number is written as what it is beyond the one before.
enum status sealed_runs_pack(const struct sealed_segment *segment, const struct seal_rows *rows,
                             struct byte_sink *out)
{
    struct sealed_run *list = malloc(rows->count * sizeof *list);
    int64_t before = 0;
    if (!list)
        return STATUS_NOMEM;
    for (uint32_t i = 0; i < rows->count; i++)
        list[i] = (struct sealed_run){
            .run = rows->values[SEAL_RUN][i],
            .rows = 1,
            .sum = fingerprint_of(rows->values[SEAL_STREAM][i], rows->values[SEAL_NUMBER][i])};
    qsort(list, rows->count, sizeof *list, compare);
    const uint32_t count = join(list, rows->count);
    for (uint32_t i = 0; i < count; i++) {
        byte_sink_number(out, (uint64_t)list[i].run - (uint64_t)before);
        byte_sink_number(out, (uint64_t)list[i].rows);
        put_bytes(out, list[i].sum, SUM_BYTES);
        before = list[i].run;
    }
    free(list);
    put_bytes(out, sealed_checksum(segment, out->bytes, out->size), CHECKSUM_BYTES);
    return out->has_failed ? STATUS_NOMEM : STATUS_OK;
}

static bool read_run(struct sealed_run *run, int64_t before, const unsigned char **at,
                     const unsigned char *end)
{
    uint64_t beyond = 0, rows = 0;
    if (!byte_number(at, end, &beyond) || !byte_number(at, end, &rows) || end - *at < SUM_BYTES)
        return false;
    run->run = (int64_t)((uint64_t)before + beyond);
    run->rows = (int64_t)rows;
    run->sum = take_bytes(at, SUM_BYTES);
    return rows > 0 && rows <= SEAL_ROWS_MAX;
}

static bool read_all(struct sealed_runs *runs, int64_t rows, const unsigned char *at,
                     const unsigned char *end)
{
    int64_t before = 0;
    while (at < end) {
        struct sealed_run *run = &runs->list[runs->count];
        if (!read_run(run, before, &at, end))
            return false;
        before = run->run;
        rows -= run->rows;
        runs->count++;
    }
    return rows == 0;
}

enum status sealed_runs_read(struct sealed_runs *out, const struct sealed_segment *segment,
                             const void *bytes, size_t size)
{
    *out = (struct sealed_runs){NULL, 0};
    if (!bytes || size < CHECKSUM_BYTES + LEAST_BYTES)
        return STATUS_CORRUPT;
    const unsigned char *end = (const unsigned char *)bytes + size - CHECKSUM_BYTES, *at = end;
    if (take_bytes(&at, CHECKSUM_BYTES) != sealed_checksum(segment, bytes, size - CHECKSUM_BYTES))
        return STATUS_CORRUPT;
    out->list = calloc(size / LEAST_BYTES, sizeof *out->list);
    if (!out->list)
        return STATUS_NOMEM;
    if (read_all(out, segment->rows, bytes, end))
        return STATUS_OK;
    sealed_runs_deinit(out);
    return STATUS_CORRUPT;
}

void sealed_runs_deinit(struct sealed_runs *runs)
{
    free(runs->list);
    *runs = (struct sealed_runs){NULL, 0};
}
