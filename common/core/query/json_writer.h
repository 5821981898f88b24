// Writes JSON (RFC 8259) to a sink.  The output is valid whatever the values are: malformed
// UTF-8 becomes U+FFFD, NaN and infinite numbers become null.
#ifndef INFERSTAT_CORE_JSON_WRITER_H
#define INFERSTAT_CORE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/result.h"

// Takes the next bytes of the text.  Failures are the sink's to keep.
typedef void json_put(void *sink, const char *bytes, size_t size);

// In the caller's memory; set `put` and `sink`, the rest zero.
struct json_writer {
    json_put *put;
    void *sink;
    bool comma; // a value precedes the next one
};

// Everywhere below `key` is the member's name in an object, and NULL in a list or where the
// value is the whole text.

void json_write_begin(struct json_writer *json, const char *key); // an object
void json_write_end(struct json_writer *json);
void json_write_begin_list(struct json_writer *json, const char *key);
void json_write_end_list(struct json_writer *json);

void json_write_int(struct json_writer *json, const char *key, int64_t value);
void json_write_uint(struct json_writer *json, const char *key, uint64_t value);
void json_write_bool(struct json_writer *json, const char *key, bool value);
// The fewest digits that read back as the same double.
void json_write_real(struct json_writer *json, const char *key, double value);
// NULL is null.  What a terminal would not show as text (text_is_unsafe) is escaped.
void json_write_text(struct json_writer *json, const char *key, const char *value);
void json_write_value(struct json_writer *json, const char *key, struct value value);
// A number that is JSON already.
void json_write_number(struct json_writer *json, const char *key, const char *text);

// One member per column of the row, and the row as an object; `kind` (NULL: none) comes first,
// as "kind".
void json_write_members(struct json_writer *json, const struct result *result, size_t row);
void json_write_row(struct json_writer *json, const struct result *result, size_t row,
                    const char *kind);

#endif
