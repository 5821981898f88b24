// What the fuzz targets share.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A property that does not hold ends the program.
#define check(holds) check_line(holds, __FILE__, __LINE__)

static inline void check_line(bool holds, const char *file, int line)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s:%d: the property does not hold\n", file, line);
    abort();
}

// What is left of the bytes that choose.
struct input {
    const uint8_t *data;
    size_t size;
};

// The next `bytes` bytes as a number, or those that are left.
static inline uint64_t take(struct input *input, size_t bytes)
{
    uint64_t value = 0;
    for (; bytes > 0 && input->size > 0; bytes--, input->size--)
        value = value << 8 | *input->data++;
    return value;
}
