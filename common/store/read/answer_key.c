#include "common/store/read/answer_key.h"
#include "common/store/read/answer_cells.h"

#include <string.h>

static enum status answer_status(struct result *answer, unsigned column, int64_t number,
                                 struct error *err)
{
    const char *text = column_enum_text(COLUMN_STATUS, number);
    if (!text)
        return STATUS_OK;
    if (result_set_text(answer, column, text, strlen(text)) != STATUS_OK)
        return error_no_memory(err, "store");
    return STATUS_OK;
}

enum status answer_key(struct store *store, struct result *answer, unsigned column,
                       enum query_dimension dimension, int64_t key, struct error *err)
{
    if (dimension == QUERY_BY_RUN)
        return answer_run(store, answer, column, key, err);
    if (dimension == QUERY_BY_STATUS)
        return answer_status(answer, column, key, err);
    return answer_name(store, answer, column, key, err);
}
