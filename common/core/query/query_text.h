// The query language: a line of text for what struct query says.  Pure.
//
//   avg ttft_ns by model,host where host=a and model="x y" since 1h limit 10
//
//   line   := verb [metric] clause...
//   verb   := avg METRIC | summary | overview | audit | slowest [METRIC] | stages |
//             fleet [METRIC] | baselines | compare [BASELINE] | a kind of records
//             (loads, inferences, operations, ...)
//   clause := by DIMENSION,...                      what is averaged apart
//           | where DIMENSION=NAME [and ...]        "where" may be left out
//           | since TIME | until TIME               as in --since and --until
//           | step DURATION | slo NAME=DURATION,...
//           | limit N | oldest                      N rows at most; the oldest first
//           | of METRIC | margin RATIO | force      of compare
//           | against [BASELINE]                    the same: what it is compared with;
//                                                   conditions and times behind it are
//                                                   those of that side
//
// Clauses stand in any order, each once (but where), and a verb refuses those that
// mean nothing to it.
#ifndef INFERSTAT_CORE_QUERY_TEXT_H
#define INFERSTAT_CORE_QUERY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/query_words.h"

// The longest line that query_text_write makes, terminating NUL included.
enum { QUERY_LINE_SIZE = 16384 };

// How a time is read: it depends on the clock and the zone, which are not here.
// `latest` says which of two instants a time is that comes twice.
typedef enum status query_when(void *context, int64_t *out_ns, const char *text, bool latest,
                               struct error *err);

// Reads a line.  STATUS_INVALID with the column, the word and the nearest known one
// in `err` (escaped for a terminal), and in `*place` (may be NULL) what to underline.
MUST_CHECK enum status query_text_read(struct query *out, const char *line, query_when *when,
                                       void *context, struct query_place *place, struct error *err);

// The same of a line that holds clauses "where", "since" and "until" only, or none.
MUST_CHECK enum status query_text_read_filter(struct query_filter *out, const char *line,
                                              query_when *when, void *context,
                                              struct query_place *place, struct error *err);

// Writes the line that reads as `query`, its cursor left out, with times in UTC.
// STATUS_UNSUPPORTED for what has no text: what changes a store, and times before
// 1970 or behind 2261.  STATUS_FULL where `size` bytes are too few.
MUST_CHECK enum status query_text_write(char *out, size_t size, const struct query *query,
                                        struct error *err);

// The same of a filter; "" where it filters nothing.
MUST_CHECK enum status query_text_write_filter(char *out, size_t size,
                                               const struct query_filter *filter,
                                               struct error *err);

// ---- The table of verbs ---------------------------------------------------------

// Clauses, in the order they are written in.
#define QUERY_CLAUSES(X)                                                                           \
    X(BY, "by")                                                                                    \
    X(WHERE, "where")                                                                              \
    X(SINCE, "since")                                                                              \
    X(UNTIL, "until")                                                                              \
    X(STEP, "step")                                                                                \
    X(SLO, "slo")                                                                                  \
    X(OLDEST, "oldest")                                                                            \
    X(LIMIT, "limit")                                                                              \
    X(OF, "of")                                                                                    \
    X(MARGIN, "margin")                                                                            \
    X(FORCE, "force")                                                                              \
    X(AGAINST, "against")

enum query_clause {
#define QUERY_CLAUSE_ENUM(name, word) QUERY_CLAUSE_##name,
    QUERY_CLAUSES(QUERY_CLAUSE_ENUM)
#undef QUERY_CLAUSE_ENUM
        QUERY_CLAUSE_COUNT
};

enum query_subject { QUERY_NO_SUBJECT, QUERY_METRIC, QUERY_METRIC_OR_NONE, QUERY_BASELINE_OR_NONE };

struct query_verb {
    const char *word;
    enum query_kind kind;
    enum record_kind record_kind; // QUERY_RECORDS
    enum query_subject subject;   // what stands behind the verb
    unsigned clauses;             // it takes; bit i: enum query_clause i
};

// The verb of a query, NULL where its kind has none.
const struct query_verb *query_verb_of(const struct query *query);

// All verbs, `*count` of them, static.
const struct query_verb *query_verbs(unsigned *count);

const char *query_clause_word(enum query_clause clause);

#endif
