#include "common/store/store.h"

#include "common/store/audit/audit.h"
#include "common/store/compare/baseline.h"
#include "common/store/transfer/copy.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

static query_answer *const answers[QUERY_KIND_COUNT] = {
    [QUERY_PING] = query_ping,           [QUERY_SUMMARY] = query_summary,
    [QUERY_AVERAGE] = query_average,     [QUERY_OVERVIEW] = query_overview,
    [QUERY_RECORDS] = query_records,     [QUERY_AUDIT] = query_audit,
    [QUERY_SLOWEST] = query_slowest,     [QUERY_STAGES] = query_stages,
    [QUERY_FLEET] = query_fleet,         [QUERY_COPY] = query_copy,
    [QUERY_ADMIN_LOG] = query_admin_log, [QUERY_BASELINES] = query_baselines,
    [QUERY_COMPARE] = query_compare,
};

static enum status answer(struct store *store, const struct query *query, void *out,
                          struct error *err)
{
    struct result *result = NULL;
    if (!answers[query->kind])
        return error_set(err, STATUS_INVALID, "store: no query, but a change");
    enum status status = answers[query->kind](store, query, &result, err);
    if (status == STATUS_OK)
        status = answer_check(result, err);
    if (status != STATUS_OK) {
        result_free(result);
        return status;
    }
    *(struct result **)out = result;
    return STATUS_OK;
}

enum status store_query(struct store *store, const struct query *query, struct result **out,
                        struct error *err)
{
    return session_run(store, answer, query, out, err);
}
