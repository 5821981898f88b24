// Clears a store file, for tests that only want the number of records.
#pragma once

#include "common/store/retention/clear.h"

static inline enum status clear_records(const char *path, const struct query_filter *filter,
                                        uint64_t *cleared, struct error *err)
{
    const struct query query = {.kind = QUERY_CLEAR, .filter = *filter};
    struct result *answer = NULL;
    enum status status = store_clear(path, &query, &answer, err);
    if (status == STATUS_OK)
        *cleared = (uint64_t)result_integer(answer, 0, "cleared", -1);
    result_free(answer);
    return status;
}
