// Seals what has become old (common/store/sealer.h), a step at a time: none takes longer
// than the storing of a segment.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_SEALING_H
#define INFERSTAT_COLLECTOR_SEALING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"

struct sealing;
struct sqlite3;

#define SEALING_NEVER INT64_C(0)

// Records older than `after_ns` are sealed; SEALING_NEVER: none are, and the rest does
// nothing.  `has_rollups`: only those that all rollups hold.
MUST_CHECK enum status sealing_new(struct sealing **out, struct sqlite3 *db, int64_t after_ns,
                                   bool has_rollups, struct error *err);
void sealing_free(struct sealing *sealing); // NULL is fine

// When there is something to do or to look for; UINT64_MAX: never.
uint64_t sealing_due_ns(const struct sealing *sealing);

// Does one step of the work.  `*changed`: it has committed.
MUST_CHECK enum status sealing_step(struct sealing *sealing, int64_t wall_ns, bool *changed,
                                    struct error *err);

// What the step took; where others wait it rests some time.
void sealing_took(struct sealing *sealing, uint64_t began_ns, uint64_t ended_ns, bool is_busy);

// Rows may have been put back, or taken out of segments: all is looked at anew.
void sealing_again(struct sealing *sealing);

#endif
