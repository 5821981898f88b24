// Streaming JSON writer (RFC 8259): passes the text to a callback as the caller adds values.  The
// caller must end each object and list that it begins.  Then the output is valid JSON for any
// values: malformed UTF-8 becomes U+FFFD, NaN and infinite numbers become null.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/result.h"

// Output callback: receives the next bytes.  The writer ignores failures, so `sink` must record
// them.
typedef void json_put(void *sink, const char *bytes, size_t size);

// In the caller's memory; set `put` and `sink`, the rest zero.
struct json_writer {
    json_put *put;
    void *sink;
    bool comma; // private: the next value needs a comma before it
};

// In all functions `key` is the name of the member that is written into an object; NULL in a list
// and for the outermost value.

void json_write_begin(struct json_writer *json, const char *key); // an object
void json_write_end(struct json_writer *json);
void json_write_begin_list(struct json_writer *json, const char *key);
void json_write_end_list(struct json_writer *json);

void json_write_int(struct json_writer *json, const char *key, int64_t value);
void json_write_uint(struct json_writer *json, const char *key, uint64_t value);
void json_write_bool(struct json_writer *json, const char *key, bool value);
// Writes the fewest digits that read back as the same double.
void json_write_real(struct json_writer *json, const char *key, double value);
// A `value` of NULL becomes null.  Escapes characters that are unsafe on a terminal
// (text_is_unsafe).
void json_write_text(struct json_writer *json, const char *key, const char *value);
void json_write_value(struct json_writer *json, const char *key, struct value value);
// `text` is a number in JSON syntax.
void json_write_number(struct json_writer *json, const char *key, const char *text);

// json_write_members writes one member for each column of a result's row.  json_write_row writes
// the row as an object of these members, after a member "kind" with the text `kind` unless that is
// NULL.
void json_write_members(struct json_writer *json, const struct result *result, size_t row);
void json_write_row(struct json_writer *json, const struct result *result, size_t row,
                    const char *kind);
