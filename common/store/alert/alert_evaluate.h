// Evaluation of alert rules: reads the value of each group of each rule from the store, steps the
// states of its alerts (alert_state.h), and says which rows of the table change.  Rules with the
// same metric, window, filter and grouping share one AVERAGE.
#pragma once

#include "common/store/alert/alert_source.h"
#include "common/store/alert/alert_table.h"

struct store;

// A value of a rule: `group` has the names as in struct alert_row, valid during the call.
typedef enum status alert_on_reading(void *context, const char *const group[ALERT_GROUP_NAMES],
                                     const struct alert_reading *reading, struct error *err);

// Reads the values of a rule in its window, in a read transaction of the store, and calls
// `on_reading` for each group that has one.  `state` is the source's (alert_source.h).  Errors are
// those of store_query and alert_source_read, but a rule without data is none.
MUST_CHECK enum status alert_read_rule(struct alert_source_state **state, struct store *store,
                                       const struct alert_rule *rule,
                                       const struct alert_times *times,
                                       alert_on_reading *on_reading, void *context,
                                       struct error *err);

// Evaluates the rules of a file in one thread; keeps what sources remember (alert_source.h).
struct alert_evaluator;

// Called before and after each read of the store in an evaluation, so that a long one does not keep
// others waiting.
struct alert_turns {
    void (*begin)(void *context);
    void (*end)(void *context);
    void *context;
};

// `file` and `turns` (may be NULL) are borrowed until alert_evaluator_free.  `listening_ns`: since
// when the collector has listened.
MUST_CHECK enum status alert_evaluator_new(struct alert_evaluator **out,
                                           const struct alert_file *file, int64_t listening_ns,
                                           const struct alert_turns *turns, struct error *err);
void alert_evaluator_free(struct alert_evaluator *evaluator); // accepts NULL

// Evaluates all rules at `now_ns` (wall clock), on the open alerts of the store, and creates the
// pass to be saved by alert_table_save before the next evaluation.  If a rule cannot be read,
// that is logged and in the pass; after a minute its alerts have no data.  Eight alerts that fire
// and have no cause yet, those first that fired first, are given the first that WHY finds.  None is
// new of a host of which only imported runs were heard of in the last day.  Afterwards call
// alert_pass_deinit, always.
MUST_CHECK enum status alert_evaluate(struct alert_evaluator *evaluator, struct store *store,
                                      int64_t now_ns, struct alert_pass *out, struct error *err);
