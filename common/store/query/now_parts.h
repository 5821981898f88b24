// What the parts of NOW share: query_now.c reads, now_answer.c writes the answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/stats/sketch.h"
#include "common/store/aggregate/throughput.h"
#include "common/store/query/lasting.h"
#include "common/store/query/now.h"
#include "common/store/rollup/aggregate.h"

struct store;

// Parts of the window whose throughput `trend` has.
enum { NOW_PARTS = 12 };

// Metrics of requests; the last one of the window alone.
enum { NOW_TTFT, NOW_SPEED, NOW_E2E, NOW_TPOT, NOW_METRICS };
extern const char *const now_metrics[NOW_METRICS]; // their names

// What records tell of a model on a host.
struct now_figures {
    struct now_facts facts;   // without those of its processes
    char *error, *load_error; // texts of `facts`
    int64_t load_run;         // of its newest failed load; 0: none
    double p50[NOW_METRICS], p95[NOW_METRICS];
    uint64_t count[NOW_METRICS];
    bool has_items; // its requests in the window have items
    double sums[THROUGHPUT_SUM_COUNT];
    double tokens[NOW_PARTS], items[NOW_PARTS];
};

// The requests of the window of all rows with one model, or one host.
struct now_whole {
    struct ratio ratios[NOW_METRICS];
};

struct now_row {
    int64_t keys[2]; // model (GROUP_KEY_NONE: the process has none yet), host
    bool has_figures;
    bool is_live;
    bool has_trouble;         // events last on its host
    int64_t window_ns;        // of the figures: not before its first process began
    int64_t running, waiting; // requests of its processes, as last sampled; -1: unknown
    struct now_verdict verdict;
    enum now_state worst; // of its group
};

struct now {
    struct store *store;
    const struct query *query;
    struct query_filter filter; // of the figures
    int64_t present_ns;
    int64_t as_of_ns, window_ns, part_ns; // `as_of_ns`: the present, or `filter.until_ns`
    int by;                      // place in the keys by which rows are grouped; -1: they are not
    struct groups *figures;      // by model and host: struct now_figures
    struct groups *wholes;       // by the key of `by`: struct now_whole
    struct sketch_budget budget; // of `wholes`
    struct lasting lasting;
    struct groups *devices; // by model and host: struct now_device_sums
    bool has_parts;         // `tokens` and `items` are set
    bool has_items;         // of some model: only then NOW_E2E is shown
    bool has_enough;        // some model has requests enough for a median
    struct now_current *current;
    struct now_row *rows;
    size_t row_count, row_room;
};

void now_whole_deinit(void *whole);
// Adds the ratios of other requests, one per metric.
MUST_CHECK enum status now_whole_add(struct now *now, struct now_whole *whole,
                                     const struct ratio *more, struct error *err);

// Sorts the rows and writes the answer.  Returns STATUS_NO_DATA without rows.
MUST_CHECK enum status now_answer(struct now *now, struct result **out, struct error *err);
