// Reads the vectors of the folder INFERSTAT_TEST_MODELS: JSON, trusted, small.
#ifndef INFERSTAT_TESTS_UNIT_VECTORS_H
#define INFERSTAT_TESTS_UNIT_VECTORS_H

#include <stdbool.h>
#include <stddef.h>

// A JSON value.  Objects and arrays list their members by `child` and `next`.
struct json {
    enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT } type;
    char *key;  // of an object's member
    char *text; // JSON_TEXT, terminated; `size` bytes
    size_t size;
    double number;
    struct json *child, *next;
};

// The path of a file of the models' folder, or NULL where the folder is not
// there.  A static string.
const char *vectors_path(const char *name);

// The parsed file; the test fails where it cannot be read.
struct json *vectors_read(const char *path);
void vectors_free(struct json *json);

// A member that must be there.
const struct json *vectors_get(const struct json *object, const char *key);

// The numbers of an array, to be freed; `*count` of them.
unsigned int *vectors_ids(const struct json *array, size_t *count);

// The bytes a text of hexadecimal digits stands for, to be freed.
char *vectors_hex(const struct json *text, size_t *size);

// A whole file, to be freed.
unsigned char *vectors_file(const char *path, size_t *size);

#endif
