// Streaming JSON writer (RFC 8259).  The output is valid for any values: malformed UTF-8
// becomes U+FFFD, NaN and infinite numbers become null.
#ifndef INFERSTAT_CORE_JSON_WRITER_H
#define INFERSTAT_CORE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/result.h"

// Output callback: receives the next bytes.  `sink` must record its own failures.
typedef void json_put(void *sink, const char *bytes, size_t size);

// In the caller's memory; set `put` and `sink`, the rest zero.
struct json_writer {
    json_put *put;
    void *sink;
    bool comma; // the next value needs a comma before it
};

// In all functions `key` is the name of an object's member; NULL in a list and for the
// outermost value.

void json_write_begin(struct json_writer *json, const char *key); // an object
void json_write_end(struct json_writer *json);
void json_write_begin_list(struct json_writer *json, const char *key);
void json_write_end_list(struct json_writer *json);

void json_write_int(struct json_writer *json, const char *key, int64_t value);
void json_write_uint(struct json_writer *json, const char *key, uint64_t value);
void json_write_bool(struct json_writer *json, const char *key, bool value);
// Writes the fewest digits that read back as the same double.
void json_write_real(struct json_writer *json, const char *key, double value);
// NULL becomes null.  Characters unsafe on a terminal (text_is_unsafe) are escaped.
void json_write_text(struct json_writer *json, const char *key, const char *value);
void json_write_value(struct json_writer *json, const char *key, struct value value);
// `text` is a number in JSON syntax.
void json_write_number(struct json_writer *json, const char *key, const char *text);

// Writes a member per column of the row; and the row as an object, with `kind` (unless NULL) as
// its first member "kind".
void json_write_members(struct json_writer *json, const struct result *result, size_t row);
void json_write_row(struct json_writer *json, const struct result *result, size_t row,
                    const char *kind);

#endif
