// Finding the number that is wrong, once it is known that one of a stream is.
//
// The stream's numbers are cut into as many equal pieces as there are buckets.
// Each bucket holds the sum of the mixes of the rows' numbers less that of the
// numbers stored: the first that is not 0 holds the first wrong number, and is cut
// into pieces in turn.  Every turn reads the tables once more.
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/audit.h"
#include "common/store/fingerprint.h"
#include "common/store/reader.h"
#include "common/store/sealed.h"
#include "common/sys/clock.h"

enum {
    SEARCHES_MAX = 3,           // streams searched of one page
    BUCKET_BITS = 16,           // buckets, as a power of two
    NUMBERS_PER_LOOK = 1 << 20, // between two looks at the clock
};

struct search {
    struct audit *audit;
    const struct audit_stream *stream;
    int64_t low, high; // numbers being cut
    unsigned shift;    // numbers a bucket, as a power of two
    uint64_t *buckets; // NULL: one sum
    uint64_t sum;
};

static void add(struct search *search, int64_t number, bool is_row)
{
    const uint64_t mix = fingerprint_of(search->stream->stream, number);
    uint64_t *sum =
        search->buckets ? &search->buckets[(number - search->low) >> search->shift] : &search->sum;
    *sum += is_row ? mix : UINT64_C(0) - mix;
}

static enum status take_number(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    add(context, sqlite3_column_int64(row, 0), true);
    return STATUS_OK;
}

static enum status take_stored(void *context, sqlite3_stmt *row, struct error *err)
{
    struct search *search = context;
    int64_t first = sqlite3_column_int64(row, 0), last = sqlite3_column_int64(row, 1);
    first = first < search->low ? search->low : first;
    last = last > search->high ? search->high : last;
    for (int64_t number = first; number < last; number++) {
        add(search, number, false);
        if (number % NUMBERS_PER_LOOK == 0 && store_is_over_budget(search->audit->store))
            return error_set(err, STATUS_TIMEOUT, "store: the audit takes too long");
    }
    add(search, last, false);
    return STATUS_OK;
}

static enum status add_stored(struct search *search, const struct audit_run *run, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(search->audit->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT first, last FROM range WHERE run = %lld AND stream = %lld"
                        " AND state = 0 AND last >= %lld AND first <= %lld",
                        (long long)run->run, (long long)search->stream->stream,
                        (long long)search->low, (long long)search->high);
    return reader_scan(search->audit->store, sql, NULL, take_stored, search, err);
}

enum status audit_expected(struct audit *audit, const struct audit_run *run,
                           const struct audit_stream *stream, uint64_t *sum, struct error *err)
{
    struct search search = {.audit = audit, .stream = stream, .low = 1, .high = stream->end};
    enum status status = add_stored(&search, run, err);
    *sum = UINT64_C(0) - search.sum;
    return status;
}

static enum status add_rows(struct search *search, const struct audit_run *run, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++) {
        if (run->counted[kind] == 0)
            continue;
        sqlite3_str *sql = sqlite3_str_new(search->audit->store->db);
        sqlite3_str_appendall(sql, "SELECT t.number FROM ");
        store_append_from(sql, search->audit->store, (enum record_kind)kind, INT64_MIN, INT64_MIN,
                          SEALED_UNINDEXED);
        sqlite3_str_appendf(sql,
                            " WHERE t.run = %lld AND t.stream = %lld"
                            " AND t.number BETWEEN %lld AND %lld",
                            (long long)run->run, (long long)search->stream->stream,
                            (long long)search->low, (long long)search->high);
        status = reader_scan(search->audit->store, sql, NULL, take_number, search, err);
    }
    return status;
}

// Cuts low..high into pieces and makes the first wrong one the new low..high.
// STATUS_NO_DATA: none of them is.
static enum status cut(struct search *search, const struct audit_run *run, struct error *err)
{
    const size_t count = (size_t)1 << BUCKET_BITS;
    for (search->shift = 0; (search->high - search->low) >> search->shift >= (int64_t)count;)
        search->shift++;
    for (size_t i = 0; i < count; i++)
        search->buckets[i] = 0;
    enum status status = add_stored(search, run, err);
    if (status == STATUS_OK)
        status = add_rows(search, run, err);
    if (status != STATUS_OK)
        return status;
    size_t wrong = 0;
    while (wrong < count && search->buckets[wrong] == 0)
        wrong++;
    if (wrong == count)
        return STATUS_NO_DATA;
    search->sum = search->buckets[wrong];
    const int64_t reach = (INT64_C(1) << search->shift) - 1;
    search->low += (int64_t)wrong << search->shift;
    if (search->high - search->low > reach)
        search->high = search->low + reach;
    return STATUS_OK;
}

// Whether reading the tables up to three times more leaves time for the rest.
static bool has_time(const struct audit *audit)
{
    if (audit->store->deadline_ns == 0)
        return true;
    const uint64_t now_ns = clock_monotonic_ns();
    return now_ns + 4 * (now_ns - audit->began_ns) < audit->store->deadline_ns;
}

bool audit_search(struct audit *audit, const struct audit_run *run,
                  const struct audit_stream *stream, struct audit_fault *fault)
{
    if (audit->searches == SEARCHES_MAX || stream->end < 1 || !has_time(audit))
        return false;
    audit->searches++;
    struct search search = {.audit = audit, .stream = stream, .low = 1, .high = stream->end};
    search.buckets = calloc((size_t)1 << BUCKET_BITS, sizeof *search.buckets);
    if (!search.buckets)
        return false;
    struct error ignored; // without the number the finding stands all the same
    enum status status;
    do
        status = cut(&search, run, &ignored);
    while (status == STATUS_OK && search.low < search.high);
    free(search.buckets);
    *fault = (struct audit_fault){
        .number = search.low,
        .is_missing = search.sum == UINT64_C(0) - fingerprint_of(stream->stream, search.low)};
    return status == STATUS_OK;
}
