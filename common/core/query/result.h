// Query result: a table with named columns and rows of typed values.  Queries of the store
// return it; the wire codec (codec.h) transfers it to clients, which read it.  A result has copies
// of all texts.  One thread at a time may use it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/base/unit.h"

enum value_type { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT }; // also their numbers on the wire

struct value {
    enum value_type type;
    union {
        int64_t i;
        double r; // never NaN or infinite
        struct {
            const char *bytes; // UTF-8, terminated, owned by the result
            size_t size;
        } text;
    };
};

// True if both values are the same text, or both are null.  False for numbers, even if equal.
bool value_is_same(struct value a, struct value b);

// The value of a number; `absent` for null and texts.
double value_number(struct value value, double absent);

struct result_column {
    char key[64]; // snake_case, unit last
    enum unit unit;
};

struct result;

// Creates a result without columns and rows.
MUST_CHECK enum status result_new(struct result **out);
void result_free(struct result *result); // NULL is fine

// Adds a column at the next index, from 0.  All columns must be added before the first row.  Keys
// over 63 bytes are cut.
MUST_CHECK enum status result_add_column(struct result *result, const char *key, enum unit unit);
// Adds a row of nulls.
enum status result_add_row(struct result *result);
// Set the cell in the last row and in the column at index `column`; both must exist.  NaN and
// infinite reals become null.  Text is copied.
void result_set_int(struct result *result, unsigned column, int64_t value);
void result_set_real(struct result *result, unsigned column, double value);
enum status result_set_text(struct result *result, unsigned column, const char *bytes, size_t size);
// The same in any row; a client may change an answer.
enum status result_replace_text(struct result *result, size_t row, unsigned column,
                                const char *bytes, size_t size);

// Takes out the first row of an answer of NOW if it stands for all rows (it has a group_size, and
// neither model nor host), as a result of its own; NULL: it does not, or memory is out.
struct result *result_take_all(struct result *result);

// Returns STATUS_NOMEM if a row or a text could not be added: the result is then incomplete, and
// later additions do nothing.
MUST_CHECK enum status result_status(const struct result *result);

unsigned result_column_count(const struct result *result);
size_t result_row_count(const struct result *result);
const struct result_column *result_column(const struct result *result, unsigned column);
// The position of the column with this key; -1 if there is none.
int result_find(const struct result *result, const char *key);
// The cell; null if row or column is out of range, as is a -1 from result_find.
struct value result_cell(const struct result *result, size_t row, unsigned column);

// The cell in the column `key`; null if there is no such column.
struct value result_get(const struct result *result, size_t row, const char *key);
// True if the cell in the column `key` is the text `text`.
bool result_is(const struct result *result, size_t row, const char *key, const char *text);

// The cell in the column `key` as a number; `absent` if the cell is no number.  result_integer cuts
// a real to its integer part; `absent` if that does not fit.
double result_number(const struct result *result, size_t row, const char *key, double absent);
int64_t result_integer(const struct result *result, size_t row, const char *key, int64_t absent);

// Formats the ratio in the column `key` like unit_format_change; of a row of temperatures, whose
// zero is no base of a share, the difference from the value in the column `before`: "+12 C".
// result_change_by has the ratio itself.
char *result_change(char *text, const struct result *result, size_t row, const char *before,
                    const char *key);
char *result_change_by(char *text, const struct result *result, size_t row, const char *before,
                       double ratio);

// Copies the text in column `key` of a row to `out`, escaped for a terminal; "-" if there is none.
// Returns `out`.
char *result_text(char *out, size_t size, const struct result *result, size_t row, const char *key);

// The cursor of the next page, which the client copies into its next query (query.cursor); 0 when
// there are no more rows.
uint64_t result_next_cursor(const struct result *result);
void result_set_next_cursor(struct result *result, uint64_t cursor);

// Processor time of the thread that answered the query; 0: unknown.
uint64_t result_cpu_ns(const struct result *result);
void result_set_cpu_ns(struct result *result, uint64_t cpu_ns);

enum { LOSS_TEXT_SIZE = 512 };

// Formats how many records were dropped for each reason: the values of all columns of a row whose
// key begins with "dropped_" and whose value is above zero, largest first: "5 spool_full, 2
// ring_full".  "" if there are none.  Returns `text`.
const char *result_loss_text(char text[LOSS_TEXT_SIZE], const struct result *result, size_t row);
