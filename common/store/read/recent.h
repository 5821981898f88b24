// Recent records: what a session (session.h) keeps in memory of requests and of gaps between tokens
// between its queries.  NOW asks for the same minutes every second; only what came meanwhile is
// read again.
//
// New records are found by their ids, which rise.  All are read again after an act of
// an administrator, when records have expired, and after many came unasked for.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct store;

enum recent_kind { RECENT_REQUESTS, RECENT_GAPS, RECENT_KINDS };

// A number that a record lacks; a ratio is NaN.
#define RECENT_NONE GROUP_KEY_NONE // as reader_integer

struct recent_request {
    int64_t model, host, started_ns; // ids of the table name
    int64_t e2e_ns, ttft_ns, finish, prefill_ns;
    int64_t prompt_tokens, cached_prompt_tokens, generated_tokens, itl_max_ns, items;
    double tokens_per_second, tpot_ns;
};

// A record of gaps between tokens.
struct recent_gaps {
    int64_t model, host, started_ns;
    int64_t duration_ns, count;
};

// A record of gaps covers a second or two; of a longer one the gaps count in its first part.
#define RECENT_GAPS_NS_MAX INT64_C(10000000000)

// So many of a kind are kept at most: some 40 MB together.
enum { RECENT_MAX = 160000 };

// Records with plausible times: all those that began since `since_ns`; most of a model and host
// stand side by side.
struct recent {
    int64_t since_ns;
    size_t count;
    union {
        void *items;
        struct recent_request *requests;
        struct recent_gaps *gaps;
    };
};

// Lets the session keep the records that began within a window before `as_of_ns` (gaps also those
// that reach into it); of a window of 0 it keeps what it has.  Afterwards the
// SQL function recent_answers() returns what runs answered with lately, as JSON: an array of [run,
// model, device, start, end], times of the request that ended last.
MUST_CHECK enum status recent_keep(struct store *store, int64_t as_of_ns, int64_t window_ns,
                                   struct error *err);

// Sets `*out` to the records of a query's window if the session keeps them; else to NULL, also if
// they are more than RECENT_MAX, some have expired, or the query has a filter by name or groups by
// others than model and host.  Valid until the next call.
MUST_CHECK enum status recent_find(const struct recent **out, struct store *store,
                                   enum recent_kind kind, const struct query *query,
                                   struct error *err);

// SQL to read the values of recent_answers() FROM, after recent_keep; if the filter has an end,
// those of the newest requests that began before :until.
const char *recent_answers(const struct query_filter *filter);

// After recent_keep: since when all requests have told what runs answer with; 0: all that there
// are.
int64_t recent_covered_ns(const struct store *store);
