// Decoder of sealed segments: compressed blocks of old rows, which stores of schema versions 6 to 8
// contain.  Nothing writes them any more; the migration to version 9 decodes them into rows
// (schema_rebuild.h).
//
// A segment has columns of 64-bit integers.  Each value is stored as its residual, the difference
// to a prediction from the preceding rows and columns.  An adaptive binary range coder (G. N. N.
// Martin, "Range encoding", 1979) holds the bit length, sign and highest bits of a residual; a
// plain bit string holds its other bits.  The decoder supports both versions of the format, and is
// safe for any input.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

// Limits of a segment; the decoder rejects others.
enum { SEAL_COLUMNS_MAX = 64, SEAL_ROWS_MAX = 16384, SEAL_NAME_MAX = 63 };

// Decoded rows, by columns; seal_rows_deinit frees them.
struct seal_rows {
    uint32_t count;                                  // of rows
    unsigned columns;                                // count of columns
    char names[SEAL_COLUMNS_MAX][SEAL_NAME_MAX + 1]; // of the columns
    int64_t *values[SEAL_COLUMNS_MAX];               // values[column][row]
    // is_absent[column][row]: 1: SQL NULL, 0: the value; is_absent[column] NULL: no row has NULL.
    unsigned char *is_absent[SEAL_COLUMNS_MAX];
};

// Decodes a segment.  Returns STATUS_CORRUPT if it is damaged, STATUS_UNSUPPORTED if its format is
// unknown, STATUS_NOMEM when out of memory; `*out` then holds nothing to free.
MUST_CHECK enum status seal_decode(struct seal_rows *out, const void *bytes, size_t size);
void seal_rows_deinit(struct seal_rows *rows);
