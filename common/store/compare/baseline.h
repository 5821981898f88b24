// Baselines: named snapshots of measurements, stored for later comparison.  A baseline has samples
// (series of a metric's values, samples.h) and the environment in which they were measured
// (environment.h).  The query COMPARE reads baselines.  The collector's writer saves and deletes
// them; without a collector, baseline_write_file does.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/compare/samples.h"
#include "common/store/compare/environment.h"

struct sqlite3;

// One side of a comparison: a stored baseline, or the records that a filter covers now.
struct baseline {
    char name[QUERY_KEY_SIZE]; // "": not a stored baseline
    int64_t created_ns;
    int64_t since_ns;      // of the filter, but not before the first record
    int64_t until_ns;      // of the filter; an open end is that of the records
    double coverage_ratio; // of the filter's host, run and window (coverage.h); NaN: unknown
    // Per kind, the time before which records in the filter's window have expired; 0: none, or a
    // stored baseline.
    int64_t expired_ns[RECORD_KIND_COUNT];
    char *filter; // the filter in words; "": no filter
    struct environment environment;
    struct samples samples;
};

void baseline_free(struct baseline *baseline); // NULL is fine

// Reads samples and environment of the records that the filter covers, within the store's time
// budget.  Returns STATUS_NO_DATA if there are no such records.  `by_host`: see samples_collect;
// not for a baseline to store.
MUST_CHECK enum status baseline_collect(struct baseline **out, struct store *store,
                                        const struct query_filter *filter, bool by_host,
                                        struct error *err);

// Reads a stored baseline.  Returns STATUS_NO_DATA if no baseline has that name, STATUS_CORRUPT if
// a checksum or the environment's JSON is wrong.
MUST_CHECK enum status baseline_load(struct baseline **out, struct store *store, const char *name,
                                     struct error *err);

// Stores `baseline` under its name, within the caller's transaction.  If the name exists, `replace`
// replaces that baseline; otherwise returns STATUS_BUSY.
MUST_CHECK enum status baseline_insert(struct sqlite3 *db, const struct baseline *baseline,
                                       bool replace, struct error *err);

// ---- Queries ----------------------------------------------------------------------

// Reads the records for a QUERY_BASELINE_SAVE into a new baseline, within the store's time budget.
MUST_CHECK enum status baseline_prepare(struct baseline **out, struct store *store,
                                        const struct query *query, struct error *err);

// Executes a QUERY_BASELINE_SAVE or QUERY_BASELINE_DELETE in its own transaction, and creates its
// answer.  `baseline`: from baseline_prepare; unused for a delete.
MUST_CHECK enum status baseline_write(struct sqlite3 *db, const struct query *query,
                                      const struct baseline *baseline, struct result **out,
                                      struct error *err);

// Executes a QUERY_BASELINE_SAVE or QUERY_BASELINE_DELETE on a file that no collector has open:
// baseline_prepare, then baseline_write.  Takes the store's lock.
MUST_CHECK enum status baseline_write_file(const char *path, const struct query *query,
                                           struct result **out, struct error *err);

// ---- Storage format of samples ------------------------------------------------------

// Encodes a sample as a blob, little-endian: the values as 64-bit floats; if their sources are
// known, 16 bits for each source, and a byte 1; then the CRC-32C (crc32c.h) of the metric's name,
// the count of values added (8 bytes) and all preceding bytes.  Returns `*size` bytes, which the
// caller frees; NULL when out of memory.
unsigned char *baseline_encode(const char *metric, const struct sample *sample, size_t *size);

// Decodes the blob of a sample to which `count` values were added into an empty `sample`.  Returns
// STATUS_CORRUPT if the sample is not empty, `blob` is NULL, the checksum is wrong, a value is not
// finite, or there are no values or more than STATS_SAMPLES_MAX or `count`.
MUST_CHECK enum status baseline_decode(struct sample *sample, const char *metric, uint64_t count,
                                       const void *blob, size_t size, struct error *err);

// Answers QUERY_COMPARE (store.h).
MUST_CHECK enum status query_compare(struct store *store, const struct query *query,
                                     struct result **out, struct error *err);
