// Parser of the query language: converts a line of text to a struct query, and a filter back to
// text.  The command line and the dashboard use it.  No I/O, no global state.
//
//   avg ttft_ns by model,host where host=a and model="x y" since 1h limit 10
//
//   line   := verb [metric] clause...
//   verb   := avg METRIC | summary | overview | audit | slowest [METRIC] | stages |
//             errors | events | fleet [METRIC] | now | why | health | hosts | baselines |
//             compare [BASELINE] | a kind of records (loads, inferences, operations, ...)
//   clause := by DIMENSION,...                      one row per group (model, host, ...; query.h)
//           | where DIMENSION=NAME [and ...]        "where" is optional
//           | since TIME | until TIME               as in --since and --until
//           | step DURATION | slo NAME=DURATION,...
//           | limit N | oldest                      N rows at most; the oldest first
//           | of METRIC | margin RATIO | force      only with "compare"
//           | against [BASELINE]                    only with "compare": begins its other side
//
// Clauses are in any order.  Each occurs at most once, except "where".  A verb refuses clauses that
// do not apply to it.  "compare" compares two sides: a line has the baseline, "where", "since" and
// "until" of one side before "against", and those of the other side after it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/query_words.h"

struct alert_rule;

// Room for the text of any filter, terminating NUL included.
enum { QUERY_LINE_SIZE = 16384 };

// Callback that parses a time; the parser does not do so itself, because the result depends on
// clock and time zone.  If a local time occurs twice, `latest` selects its second instant.
typedef enum status query_when(void *context, int64_t *out_ns, const char *text, bool latest,
                               struct error *err);

// Parses a line.  If the line is invalid, returns STATUS_INVALID; `err` names the column, the
// reason and a similar known word if there is one (escaped for a terminal), and `*place` (`place`
// may be NULL) is the position of the invalid part.  `context` is passed to `when`.
MUST_CHECK enum status query_text_read(struct query *out, const char *line, query_when *when,
                                       void *context, struct query_place *place, struct error *err);

// Parses a line that has no verb and no clauses but "where", "since" and "until"; it may be empty.
// Errors are those of query_text_read.
MUST_CHECK enum status query_text_read_filter(struct query_filter *out, const char *line,
                                              query_when *when, void *context,
                                              struct query_place *place, struct error *err);

// Parses the line of an alert from byte `from` on (where its name ends) and fills all of `out` but
// name, is_builtin, line and text.  Errors are those of query_text_read.
MUST_CHECK enum status query_text_read_alert(struct alert_rule *out, const char *line, size_t from,
                                             struct query_place *place, struct error *err);

// Copies the window from the text of a rule, as written after "over": "5m"; "" if it has none, or
// values of other times.
enum { QUERY_WINDOW_SIZE = 24 };
const char *query_text_alert_window(char out[QUERY_WINDOW_SIZE], const char *rule);

// Writes a line that query_text_read_filter parses to `filter`, with times in UTC; "" if the filter
// has no condition.  Returns STATUS_UNSUPPORTED for times before 1970 or after 2261, STATUS_FULL if
// the line does not fit in `size` bytes.
MUST_CHECK enum status query_text_write_filter(char *out, size_t size,
                                               const struct query_filter *filter,
                                               struct error *err);

// One line per clause: X(suffix of the enumerator, word).
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
    X(AGAINST, "against")                                                                          \
    X(OVER, "over")                                                                                \
    X(WHEN, "when")                                                                                \
    X(FOR, "for")                                                                                  \
    X(CRITICAL, "critical")                                                                        \
    X(CLEAR, "clear")                                                                              \
    X(LEAST, "least")

enum query_clause {
#define QUERY_CLAUSE_ENUM(name, word) QUERY_CLAUSE_##name,
    QUERY_CLAUSES(QUERY_CLAUSE_ENUM)
#undef QUERY_CLAUSE_ENUM
        QUERY_CLAUSE_COUNT,
    QUERY_CLAUSES_OF_QUERIES = QUERY_CLAUSE_OVER, // those before it; the others only rules have
};

// The argument that a verb takes.
enum query_subject { QUERY_NO_SUBJECT, QUERY_METRIC, QUERY_METRIC_OR_NONE, QUERY_BASELINE_OR_NONE };

struct query_verb {
    const char *word;
    enum query_kind kind;
    enum record_kind record_kind; // QUERY_RECORDS
    enum query_subject subject;
    unsigned clauses; // the accepted clauses; bit i: enum query_clause i
};

// Finds the verb with this word; the word of a record kind may be singular or plural.  NULL: none.
const struct query_verb *query_verb_find(const char *word);

// Finds the verb for a query; NULL if no verb makes queries of this kind.
const struct query_verb *query_verb_of(const struct query *query);

// All verbs, `*count` of them, static.
const struct query_verb *query_verbs(unsigned *count);

const char *query_clause_word(enum query_clause clause);
