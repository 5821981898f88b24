#include "common/core/query/result.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"

// Texts lie in blocks that never move, so that cells may point into them.
struct block {
    struct block *older;
    size_t used, size;
    char bytes[];
};

enum { BLOCK_SIZE = 16 * 1024 };

struct result {
    struct result_column *columns;
    unsigned column_count;
    struct value *cells; // row after row
    size_t row_count, cell_room, column_room;
    struct block *blocks;
    uint64_t next_cursor, cpu_ns;
    enum status status;
};

bool value_is_same(struct value a, struct value b)
{
    if (a.type != VALUE_TEXT || b.type != VALUE_TEXT)
        return a.type == VALUE_NULL && b.type == VALUE_NULL;
    return a.text.size == b.text.size &&
           (a.text.size == 0 || memcmp(a.text.bytes, b.text.bytes, a.text.size) == 0);
}

double value_number(struct value value, double absent)
{
    if (value.type == VALUE_INT)
        return (double)value.i;
    return value.type == VALUE_REAL ? value.r : absent;
}

enum status result_new(struct result **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? STATUS_OK : STATUS_NOMEM;
}

void result_free(struct result *result)
{
    if (!result)
        return;
    while (result->blocks) {
        struct block *older = result->blocks->older;
        free(result->blocks);
        result->blocks = older;
    }
    free(result->columns);
    free(result->cells);
    free(result);
}

enum status result_add_column(struct result *result, const char *key, enum unit unit)
{
    assert(result->row_count == 0);
    if (!ARRAY_RESERVE(&result->columns, &result->column_room, result->column_count + 1U))
        return STATUS_NOMEM;
    struct result_column *column = &result->columns[result->column_count++];
    (void)snprintf(column->key, sizeof column->key, "%s", key);
    column->unit = unit;
    return STATUS_OK;
}

enum status result_add_row(struct result *result)
{
    const size_t columns = result->column_count;
    if (result->status == STATUS_OK &&
        !ARRAY_RESERVE(&result->cells, &result->cell_room, (result->row_count + 1) * columns))
        result->status = STATUS_NOMEM;
    if (result->status != STATUS_OK)
        return result->status;
    for (size_t i = 0; i < columns; i++)
        result->cells[result->row_count * columns + i] = (struct value){.type = VALUE_NULL};
    result->row_count++;
    return STATUS_OK;
}

static void set_cell(struct result *result, size_t row, unsigned column, struct value value)
{
    if (result->status != STATUS_OK)
        return;
    assert(row < result->row_count && column < result->column_count);
    result->cells[row * result->column_count + column] = value;
}

void result_set_int(struct result *result, unsigned column, int64_t value)
{
    set_cell(result, result->row_count - 1, column, (struct value){.type = VALUE_INT, .i = value});
}

void result_set_real(struct result *result, unsigned column, double value)
{
    struct value cell = {.type = VALUE_NULL};
    if (isfinite(value))
        cell = (struct value){.type = VALUE_REAL, .r = value};
    set_cell(result, result->row_count - 1, column, cell);
}

enum status result_set_text(struct result *result, unsigned column, const char *bytes, size_t size)
{
    return result_replace_text(result, result->row_count - 1, column, bytes, size);
}

enum status result_replace_text(struct result *result, size_t row, unsigned column,
                                const char *bytes, size_t size)
{
    struct block *block = result->blocks;
    if (!block || block->size - block->used <= size) {
        const size_t room = size >= BLOCK_SIZE ? size + 1 : BLOCK_SIZE;
        block = malloc(sizeof *block + room);
        if (!block)
            return result->status = STATUS_NOMEM;
        block->older = result->blocks;
        block->used = 0;
        block->size = room;
        result->blocks = block;
    }
    char *copy = block->bytes + block->used;
    if (size > 0)
        memcpy(copy, bytes, size);
    copy[size] = '\0';
    block->used += size + 1;
    set_cell(result, row, column,
             (struct value){.type = VALUE_TEXT, .text = {.bytes = copy, .size = size}});
    return result->status;
}

enum status result_status(const struct result *result)
{
    return result->status;
}

unsigned result_column_count(const struct result *result)
{
    return result->column_count;
}

size_t result_row_count(const struct result *result)
{
    return result->row_count;
}

const struct result_column *result_column(const struct result *result, unsigned column)
{
    assert(column < result->column_count);
    return &result->columns[column];
}

int result_find(const struct result *result, const char *key)
{
    // Views look cells up by key in thousands of rows a frame: most keys differ at once.
    for (unsigned i = 0; i < result->column_count; i++)
        if (result->columns[i].key[0] == key[0] && strcmp(result->columns[i].key, key) == 0)
            return (int)i;
    return -1;
}

struct value result_cell(const struct result *result, size_t row, unsigned column)
{
    if (row >= result->row_count || column >= result->column_count)
        return (struct value){.type = VALUE_NULL};
    return result->cells[row * result->column_count + column];
}

struct value result_get(const struct result *result, size_t row, const char *key)
{
    return result_cell(result, row, (unsigned)result_find(result, key));
}

bool result_is(const struct result *result, size_t row, const char *key, const char *text)
{
    const struct value cell = result_get(result, row, key);
    return cell.type == VALUE_TEXT && cell.text.size == strlen(text) &&
           memcmp(cell.text.bytes, text, cell.text.size) == 0;
}

struct result *result_take_all(struct result *result)
{
    struct result *out = NULL;
    if (!result || result_get(result, 0, "group_size").type == VALUE_NULL ||
        result_get(result, 0, "model").type != VALUE_NULL ||
        result_get(result, 0, "host").type != VALUE_NULL)
        return NULL;
    enum status status = result_new(&out);
    for (unsigned i = 0; i < result->column_count && status == STATUS_OK; i++)
        status = result_add_column(out, result->columns[i].key, result->columns[i].unit);
    if (status == STATUS_OK)
        status = result_add_row(out);
    for (unsigned i = 0; i < result->column_count && status == STATUS_OK; i++) {
        const struct value value = result->cells[i];
        if (value.type == VALUE_TEXT)
            status = result_set_text(out, i, value.text.bytes, value.text.size);
        else
            set_cell(out, 0, i, value);
    }
    result->row_count--;
    memmove(result->cells, result->cells + result->column_count,
            result->row_count * result->column_count * sizeof *result->cells);
    if (status == STATUS_OK)
        return out;
    result_free(out);
    return NULL;
}

double result_number(const struct result *result, size_t row, const char *key, double absent)
{
    return value_number(result_get(result, row, key), absent);
}

int64_t result_integer(const struct result *result, size_t row, const char *key, int64_t absent)
{
    const struct value cell = result_get(result, row, key);
    if (cell.type == VALUE_INT)
        return cell.i;
    if (cell.type == VALUE_REAL && fabs(cell.r) < 9.2e18)
        return (int64_t)cell.r;
    return absent;
}

char *result_change(char *text, const struct result *result, size_t row, const char *before,
                    const char *key)
{
    return result_change_by(text, result, row, before,
                            result_number(result, row, key, (double)NAN));
}

char *result_change_by(char *text, const struct result *result, size_t row, const char *before,
                       double ratio)
{
    const double change = result_number(result, row, before, (double)NAN) * (ratio - 1);
    if (!result_is(result, row, "unit", unit_name(UNIT_CELSIUS)) || !isfinite(change))
        return unit_format_change(text, ratio);
    (void)snprintf(text, UNIT_TEXT_SIZE, "%+.0f C", fabs(change) < 0.5 ? 0.0 : change);
    return text;
}

char *result_text(char *out, size_t size, const struct result *result, size_t row, const char *key)
{
    const struct value value = result_get(result, row, key);
    const bool is_text = value.type == VALUE_TEXT;
    return text_escape(out, size, is_text ? value.text.bytes : "-", is_text ? value.text.size : 1);
}

uint64_t result_next_cursor(const struct result *result)
{
    return result->next_cursor;
}

void result_set_next_cursor(struct result *result, uint64_t cursor)
{
    result->next_cursor = cursor;
}

uint64_t result_cpu_ns(const struct result *result)
{
    return result->cpu_ns;
}

void result_set_cpu_ns(struct result *result, uint64_t cpu_ns)
{
    result->cpu_ns = cpu_ns;
}

enum { REASONS_MAX = 16 };

struct loss {
    const char *reason;
    int64_t count;
};

// Whatever reasons the answer knows, also those newer than this program.
static size_t collect(struct loss *losses, const struct result *result, size_t row)
{
    static const char prefix[] = "dropped_";
    size_t count = 0;
    for (unsigned i = 0; i < result_column_count(result) && count < REASONS_MAX; i++) {
        const char *key = result_column(result, i)->key;
        const struct value value = result_cell(result, row, i);
        if (strncmp(key, prefix, sizeof prefix - 1) == 0 && value.type == VALUE_INT && value.i > 0)
            losses[count++] = (struct loss){key + sizeof prefix - 1, value.i};
    }
    return count;
}

const char *result_loss_text(char text[LOSS_TEXT_SIZE], const struct result *result, size_t row)
{
    struct loss losses[REASONS_MAX];
    const size_t count = collect(losses, result, row);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t most = i;
        for (size_t j = i; j < count; j++)
            if (losses[j].count > losses[most].count)
                most = j;
        const struct loss loss = losses[most];
        losses[most] = losses[i];
        char reason[128];
        (void)text_escape(reason, sizeof reason, loss.reason, strlen(loss.reason));
        (void)text_append(text, LOSS_TEXT_SIZE, ", ", "%" PRId64 " %s", loss.count, reason);
    }
    return text;
}
