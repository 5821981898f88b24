#include "common/store/read/answer_cells.h"

#include <assert.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/session.h"

enum status answer_new(struct result **out, const struct answer_column *columns, unsigned count,
                       struct error *err)
{
    struct result *answer = NULL;
    enum status status = result_new(&answer);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status = result_add_column(answer, columns[i].key, columns[i].unit);
    if (status != STATUS_OK) {
        result_free(answer);
        return error_no_memory(err, "store");
    }
    *out = answer;
    return STATUS_OK;
}

enum status answer_new_grouped(struct result **out, const struct query *query,
                               const struct answer_column *figures, unsigned count,
                               struct error *err)
{
    struct answer_column columns[QUERY_DIMENSION_COUNT + ANSWER_FIGURES_MAX];
    assert(count <= ANSWER_FIGURES_MAX);
    for (unsigned i = 0; i < query->group_count; i++)
        columns[i] = (struct answer_column){query_dimension_name(query->group_by[i]),
                                            query->group_by[i] == QUERY_BY_CHUNK_BYTES ? UNIT_BYTES
                                                                                       : UNIT_NONE};
    memcpy(columns + query->group_count, figures, count * sizeof *figures);
    return answer_new(out, columns, query->group_count + count, err);
}

static unsigned column_of(const struct result *answer, const char *key)
{
    const int column = result_find(answer, key);
    assert(column >= 0);
    return (unsigned)column;
}

enum status answer_check(const struct result *answer, struct error *err)
{
    return result_status(answer) == STATUS_OK ? STATUS_OK : error_no_memory(err, "store");
}

void answer_row(struct result *answer)
{
    (void)result_add_row(answer);
}

void answer_int(struct result *answer, const char *key, int64_t value)
{
    result_set_int(answer, column_of(answer, key), value);
}

void answer_real(struct result *answer, const char *key, double value)
{
    result_set_real(answer, column_of(answer, key), value);
}

void answer_text(struct result *answer, const char *key, const char *text)
{
    (void)result_set_text(answer, column_of(answer, key), text, strlen(text));
}

void answer_value(struct result *answer, const char *key, struct value value)
{
    const unsigned column = column_of(answer, key);
    if (value.type == VALUE_INT)
        result_set_int(answer, column, value.i);
    else if (value.type == VALUE_REAL)
        result_set_real(answer, column, value.r);
    else if (value.type == VALUE_TEXT)
        (void)result_set_text(answer, column, value.text.bytes, value.text.size);
}

enum status answer_cell(struct result *answer, unsigned column, sqlite3_stmt *row, int place,
                        struct error *err)
{
    switch (sqlite3_column_type(row, place)) {
    case SQLITE_INTEGER:
        result_set_int(answer, column, sqlite3_column_int64(row, place));
        return STATUS_OK;
    case SQLITE_FLOAT:
        result_set_real(answer, column, sqlite3_column_double(row, place));
        return STATUS_OK;
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(row, place);
        const int size = sqlite3_column_bytes(row, place);
        if (!text)
            return error_no_memory(err, "store");
        (void)result_set_text(answer, column, text, (size_t)size);
        return STATUS_OK;
    }
    default:
        return STATUS_OK;
    }
}

enum status answer_on_row(void *answer, sqlite3_stmt *row, struct error *err)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < sqlite3_column_count(row) && status == STATUS_OK; i++) {
        const char *name = sqlite3_column_name(row, i);
        status = name ? answer_cell(answer, column_of(answer, name), row, i, err)
                      : error_no_memory(err, "store");
    }
    return status;
}

enum status answer_on_new_row(void *answer, sqlite3_stmt *row, struct error *err)
{
    answer_row(answer);
    return answer_on_row(answer, row, err);
}

static enum status answer_lookup(struct store *store, sqlite3_stmt *stmt, struct result *answer,
                                 unsigned column, int64_t id, struct error *err)
{
    if (id == GROUP_KEY_NONE)
        return STATUS_OK;
    (void)sqlite3_bind_int64(stmt, 1, id);
    enum status status = STATUS_OK;
    if (database_step(store->db, stmt, &status, err))
        status = answer_cell(answer, column, stmt, 0, err);
    (void)sqlite3_reset(stmt);
    return status;
}

enum status answer_name(struct store *store, struct result *answer, unsigned column, int64_t id,
                        struct error *err)
{
    return answer_lookup(store, store->name, answer, column, id, err);
}

enum status answer_run(struct store *store, struct result *answer, unsigned column, int64_t run,
                       struct error *err)
{
    return answer_lookup(store, store->uuid, answer, column, run, err);
}

bool answer_name_text(struct store *store, int64_t id, char text[QUERY_TEXT_SIZE])
{
    size_t size = 0, kept = 0;
    text[0] = '\0';
    (void)sqlite3_bind_int64(store->name, 1, id);
    if (sqlite3_step(store->name) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(store->name, 0);
        size = name ? strlen(name) : 0;
        kept = text_copy(text, QUERY_TEXT_SIZE, name);
    }
    (void)sqlite3_reset(store->name);
    return kept == size;
}

enum status answer_key(struct store *store, struct result *answer, unsigned column,
                       enum query_dimension dimension, int64_t key, struct error *err)
{
    if (dimension == QUERY_BY_RUN)
        return answer_run(store, answer, column, key, err);
    if (!query_dimension_is_number(dimension))
        return answer_name(store, answer, column, key, err);
    const enum column_type type = query_dimension_words(dimension);
    const char *text = column_enum_text(type, key);
    if (text)
        (void)result_set_text(answer, column, text, strlen(text));
    else if (type == COLUMN_INT && key != GROUP_KEY_NONE)
        result_set_int(answer, column, key);
    return STATUS_OK;
}
