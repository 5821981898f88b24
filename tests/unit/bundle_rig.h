// Bundles of the rollup rig's store, and answers of two stores compared.
#ifndef INFERSTAT_TESTS_BUNDLE_RIG_H
#define INFERSTAT_TESTS_BUNDLE_RIG_H

#include "common/core/query.h"
#include "common/store/rollup.h"
#include "tests/support/folder.h"

extern char bundle_rig_path[FOLDER_PATH_SIZE]; // of the bundle

// For cmocka, with rollup_rig_tear_down.
int bundle_rig_set_up(void **state);

// Lets inferences started before a time expire.
void bundle_rig_expire(int64_t before_ns);

// Drops all their rollups of a level and grouping before a time, for all metrics.
void bundle_rig_expire_rollups(enum rollup_grouping grouping, enum rollup_level level,
                               int64_t before_ns);

// Makes the bundle anew; `what` is for the message where that fails.
void bundle_rig_make(const struct query_filter *filter, const char *what);

// Fails where the file at `path` answers otherwise than the one at `right` does.
void bundle_rig_compare(const char *right, const struct query *asked, const char *path,
                        const struct query *asked_there, const char *what);

#endif
