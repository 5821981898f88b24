// WHY: a row per cause of slow requests, the most important first.
#include <math.h>

#include "common/store/query/query_list.h"
#include "common/store/why/why.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

static const struct answer_column columns[] = {
    {"model", UNIT_NONE},
    {"host", UNIT_NONE},
    {"cause", UNIT_NONE},
    {"explained_ns", UNIT_DURATION},
    {"share_ratio", UNIT_RATIO},
    {"text", UNIT_NONE},
    {"evidence", UNIT_NONE},
    {"quantile", UNIT_NONE},
    {"metric", UNIT_NONE},
    {"verdict", UNIT_NONE},
    {"usual", UNIT_NONE},
    {"requests", UNIT_COUNT},
    {"usual_requests", UNIT_COUNT},
    {"hosts", UNIT_COUNT},
    {"slow_hosts", UNIT_COUNT},
    {"p50_ns", UNIT_DURATION},
    {"usual_p50_ns", UNIT_DURATION},
    {"p95_ns", UNIT_DURATION},
    {"usual_p95_ns", UNIT_DURATION},
    {"since_ns", UNIT_TIME},
    {"as_of_ns", UNIT_TIME},
    {"note", UNIT_NONE},
};

static void set_subject(struct result *answer, const struct why_cause *cause,
                        const struct why_subject *subject)
{
    if (!isnan(cause->share))
        answer_text(answer, "quantile", subject->main == WHY_P50 ? "p50" : "p95");
    answer_real(answer, "explained_ns", cause->explained_ns);
    answer_real(answer, "share_ratio", cause->share);
    answer_text(answer, "metric", subject->metric == WHY_TTFT ? "ttft_ns" : "e2e_ns");
    answer_text(answer, "verdict", stats_verdict_text(subject->verdict));
    answer_text(answer, "usual", subject->usual);
    answer_int(answer, "requests", (int64_t)subject->requests);
    answer_int(answer, "usual_requests", (int64_t)subject->usual_requests);
    answer_int(answer, "hosts", subject->hosts);
    answer_int(answer, "slow_hosts", subject->slow_hosts);
    answer_real(answer, "p50_ns", subject->now_ns[WHY_P50]);
    answer_real(answer, "usual_p50_ns", subject->usual_ns[WHY_P50]);
    answer_real(answer, "p95_ns", subject->now_ns[WHY_P95]);
    answer_real(answer, "usual_p95_ns", subject->usual_ns[WHY_P95]);
}

static void add_row(struct result *answer, const struct store *store, const struct why *why,
                    const struct why_cause *cause)
{
    answer_row(answer);
    if (cause->model[0])
        answer_text(answer, "model", cause->model);
    if (cause->host[0])
        answer_text(answer, "host", cause->host);
    answer_text(answer, "cause", why_cause_name(cause->kind));
    answer_text(answer, "text", cause->text);
    answer_text(answer, "evidence", cause->evidence);
    if (cause->subject < why->subject_count)
        set_subject(answer, cause, &why->subjects[cause->subject]);
    answer_int(answer, "since_ns", why->since_ns);
    answer_int(answer, "as_of_ns", why->as_of_ns);
    if (!store->is_live)
        answer_text(answer, "note", "read from a file: as of its last message");
}

enum status query_why(struct store *store, const struct query *query, struct result **out,
                      struct error *err)
{
    struct why_question question = {.model = query->filter.by[QUERY_BY_MODEL],
                                    .host = query->filter.by[QUERY_BY_HOST],
                                    .since_ns = query->filter.since_ns,
                                    .with_peers = true};
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (query->filter.by[i][0] && i != QUERY_BY_MODEL && i != QUERY_BY_HOST)
            return error_set(err, STATUS_INVALID, "why: filters are model and host, not %s",
                             query_dimension_name((enum query_dimension)i));
    struct why why;
    enum status status = why_read(&why, store, &question, err);
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    for (size_t i = 0; status == STATUS_OK && i < why.cause_count; i++)
        add_row(*out, store, &why, &why.causes[i]);
    why_deinit(&why);
    return status;
}
