// Builds the bytes of a GGUF file for fuzz targets, with deviations that the input
// chooses: an input of zeroes gives a file without any.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct feed {
    const uint8_t *data;
    size_t size;
};

// The next `bytes` (at most 8) of the input, 0 where it has ended.
uint64_t feed_take(struct feed *feed, size_t bytes);

enum { FEED_FILE_MAX = 64 * 1024 };

// The file's bytes in a buffer of exactly their size, to be freed.  Never more than
// FEED_FILE_MAX.
enum feed_model {
    FEED_VOCABULARY, // no tensors
    FEED_DENSE,
    FEED_MIXTURE, // of experts, with a window, scaled rotation and divisors of frequencies
};
unsigned char *feed_gguf(struct feed *feed, enum feed_model model, size_t *size);
