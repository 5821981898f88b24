// Model files for tests, in a folder of their own that goes with the test.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "server/workload/llm/synthetic.h"

// cmocka group fixtures: make and remove the folder.
int model_files_setup(void **state);
int model_files_teardown(void **state);

// "FOLDER/NAME", a static string, one of four in turn.
const char *model_files_path(const char *name);

// A shape small enough to be cut at every byte.
extern const struct synthetic_shape model_files_smallest;

// Writes a synthetic model and returns its bytes, to be freed.
unsigned char *model_files_make(const struct synthetic_shape *shape, bool half, size_t *size);

// Writes bytes to a file of the folder; returns its path.
const char *model_files_write(const char *name, const void *data, size_t size);

// Where the value of a key lies in a model's bytes: behind its name and type.
size_t model_files_find_key(const unsigned char *data, size_t size, const char *key);

// The same for a tensor's description: its number of dimensions.
size_t model_files_find_tensor(const unsigned char *data, size_t size, const char *name);
