// Reads the vectors of the folder INFERSTAT_TEST_MODELS: JSON.
#pragma once

#include <jansson.h>
#include <stddef.h>

// The path of a file of the models' folder, or NULL where the folder is not
// there.  A static string.
const char *vectors_path(const char *name);

// The parsed file; the test fails where it cannot be read.
json_t *vectors_read(const char *path);

// A member that must be there.
const json_t *vectors_get(const json_t *object, const char *key);

// The bytes a text of hexadecimal digits stands for, to be freed.
char *vectors_hex(const json_t *text, size_t *size);
