// State of the query language's parser, shared by query_text.c, the clauses of alerts
// (query_text_alert.c) and the file of alerts (alert/alert_file.c).
#pragma once

#include "common/core/query/alert_rule.h"
#include "common/core/query/query_text.h"

enum {
    QUERY_ALERT_CLAUSES = 1 << QUERY_CLAUSE_BY | 1 << QUERY_CLAUSE_WHERE | 1 << QUERY_CLAUSE_SLO |
                          1 << QUERY_CLAUSE_OVER | 1 << QUERY_CLAUSE_WHEN | 1 << QUERY_CLAUSE_FOR |
                          1 << QUERY_CLAUSE_CRITICAL | 1 << QUERY_CLAUSE_CLEAR |
                          1 << QUERY_CLAUSE_LEAST,
};

struct query_reader {
    const char *line;
    struct query_word word; // the one that is next
    struct query *query;
    struct query_filter *filter;              // the one that clauses fill
    char *baseline;                           // and the baseline of its side
    struct alert_rule *rule;                  // NULL: the line is no rule
    struct query_place of_critical, of_clear; // the clauses of a rule
    const char *verb;                         // as messages name it
    unsigned clauses;                         // that it takes
    unsigned seen;                            // of them, on this side
    query_when *when;
    void *context;
    struct query_place place; // what an error is about
    struct error *err;
    struct error spare; // for callers without one
};

// Prefixes the message with "column 7: " and escapes it, as it may quote the line.  Returns
// STATUS_INVALID.
enum status query_reader_fail(struct query_reader *reader, struct query_place place);

// Reads the next word.
MUST_CHECK enum status query_reader_next(struct query_reader *reader);

// Fails because `wanted` is missing before the next word: "METRIC is missing".
enum status query_reader_missing(struct query_reader *reader, const char *wanted);

// Fails at the next word: "unknown WHAT "WORD" (did you mean NEAREST?)", or with a list of all.
enum status query_reader_unknown(struct query_reader *reader, const char *what,
                                 const char *const *words, unsigned count);

// Parses the reader's line from the byte `from` on: a verb, if `with_verb`, and clauses.
MUST_CHECK enum status query_reader_line(struct query_reader *reader, size_t from, bool with_verb,
                                         struct query_place *place, struct error *err);

// Parses the metric or source of a rule.
MUST_CHECK enum status query_reader_alert_subject(struct query_reader *reader);

// Parses what follows the word of a clause that only rules have.
MUST_CHECK enum status query_reader_alert_clause(struct query_reader *reader,
                                                 enum query_clause clause);

// Fails unless the dimension at `place` may be in the "by" (`is_by`) or the "where" of a rule.
MUST_CHECK enum status query_reader_alert_dimension(struct query_reader *reader,
                                                    struct query_place place,
                                                    enum query_dimension dimension, bool is_by);
