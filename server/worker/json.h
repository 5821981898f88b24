// One JSON object on one line.
#ifndef INFERSTAT_SERVER_WORKER_JSON_H
#define INFERSTAT_SERVER_WORKER_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// In the caller's memory.
struct json {
    FILE *out;
    bool any; // a member, or an item of the list, was written
};

void json_begin(struct json *json, FILE *out);

// Keys are plain words of ours.
void json_uint(struct json *json, const char *key, uint64_t value);
// NaN and infinite values are null.
void json_real(struct json *json, const char *key, double value);
// NULL is null; bytes that are not UTF-8 become U+FFFD.
void json_text(struct json *json, const char *key, const char *value);
void json_bool(struct json *json, const char *key, bool value);
// A list of numbers.
void json_uints(struct json *json, const char *key, const uint64_t *values, size_t count);

// A member that is a list of objects: between the calls for an item its members are
// written as above.
void json_begin_list(struct json *json, const char *key);
void json_begin_item(struct json *json);
void json_end_item(struct json *json);
void json_end_list(struct json *json);

void json_end(struct json *json);

#endif
