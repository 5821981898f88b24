// Baselines: samples kept under a name to compare with, and what they were measured on.
#ifndef INFERSTAT_STORE_COMPARE_BASELINE_H
#define INFERSTAT_STORE_COMPARE_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/compare/samples.h"
#include "common/store/compare/environment.h"

struct sqlite3;
struct store;

// One side of a comparison: a baseline, or what a filter covers just now.
struct baseline {
    char name[QUERY_KEY_SIZE]; // "": none
    int64_t created_ns;
    int64_t since_ns, until_ns; // of the filter; where that is open, of the records
    double coverage_ratio;      // of the filter's host, run and window; NaN: not known
    // Until when records of a kind have expired in what the filter covers; 0: none, and of
    // one that was kept.
    int64_t expired_ns[RECORD_KIND_COUNT];
    char *filter; // in words; "" where nothing is left out
    struct environment environment;
    struct samples samples;
};

void baseline_free(struct baseline *baseline); // NULL is fine

// Reads what the filter covers, within the store's budget.  STATUS_NO_DATA where that
// is nothing.
MUST_CHECK enum status baseline_collect(struct baseline **out, struct store *store,
                                        const struct query_filter *filter, struct error *err);

// The latest of its expired_ns; 0: none.
int64_t baseline_expired_ns(const struct baseline *baseline);

// Reads a baseline that is kept.  STATUS_NO_DATA where there is none of that name;
// STATUS_CORRUPT where its checksum or fingerprint is wrong.
MUST_CHECK enum status baseline_load(struct baseline **out, struct store *store, const char *name,
                                     struct error *err);

// Keeps `baseline` under its name, in a transaction of its own.  STATUS_INVALID where
// there is one of that name already, unless `replace`.
MUST_CHECK enum status baseline_keep(struct sqlite3 *db, const struct baseline *baseline,
                                     bool replace, struct error *err);

// Keeps it within a transaction of the caller's.  STATUS_INVALID as above.
MUST_CHECK enum status baseline_insert(struct sqlite3 *db, const struct baseline *baseline,
                                       struct error *err);

// Forgets it, in a transaction of its own.  STATUS_NO_DATA where there is none.
MUST_CHECK enum status baseline_forget(struct sqlite3 *db, const char *name, struct error *err);

// ---- Queries ----------------------------------------------------------------------

// What a QUERY_BASELINE_SAVE is to keep, read within the store's budget.
MUST_CHECK enum status baseline_prepare(struct baseline **out, struct store *store,
                                        const struct query *query, struct error *err);

// Writes what a QUERY_BASELINE_SAVE (`baseline`: what baseline_prepare made of it) or
// QUERY_BASELINE_DELETE asks for, and gives the answer to it.
MUST_CHECK enum status baseline_write(struct sqlite3 *db, const struct query *query,
                                      const struct baseline *baseline, struct result **out,
                                      struct error *err);

// All of either on a file that no collector has open; takes the store's lock.
MUST_CHECK enum status baseline_write_file(const char *path, const struct query *query,
                                           struct result **out, struct error *err);

// ---- Samples as the table keeps them ------------------------------------------------

// The blob of a sample: 64-bit floats; where their sources are known, these in 16 bits each,
// and a byte 1; and the CRC-32C (crc32c.h) of the metric's name, the count (8 bytes) and all
// before it.  All little endian.  `*size` bytes, the caller frees them; NULL when out of
// memory.
unsigned char *baseline_encode(const char *metric, const struct sample *sample, size_t *size);

// How many values the blob of a row `s` of the table has, as SQL: of 8 bytes each, or of 10
// with their sources.
#define BASELINE_SQL_VALUES                                                                        \
    "(length(s.samples) - 4) / CASE WHEN length(s.samples) & 1 THEN 10 ELSE 8 END"

// Reads it into an empty sample.  STATUS_CORRUPT where the checksum is wrong, a value
// is no finite number, or there are more than STATS_SAMPLES_MAX.
MUST_CHECK enum status baseline_decode(struct sample *sample, const char *metric, uint64_t count,
                                       const void *blob, size_t size, struct error *err);

// Answer QUERY_BASELINES and QUERY_COMPARE (store.h).
MUST_CHECK enum status query_baselines(struct store *store, const struct query *query,
                                       struct result **out, struct error *err);
MUST_CHECK enum status query_compare(struct store *store, const struct query *query,
                                     struct result **out, struct error *err);

#endif
