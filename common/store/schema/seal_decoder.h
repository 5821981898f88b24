// Decoder of sealed segments (schema versions 6 to 8): blocks of rows of 64-bit integers,
// compressed column by column.  Nothing writes them any more; the migration to version 9 decodes
// them into rows (unseal.h).
//
// Each column is stored as residuals against a prediction from the preceding rows and columns.  An
// adaptive binary range coder (G. N. N. Martin, "Range encoding", 1979) holds the bit length,
// the sign and the highest bits of a residual; a plain bit string holds the other bits.  Both
// versions of the format are supported.  Any input bytes are safe.
#ifndef INFERSTAT_STORE_SCHEMA_SEAL_DECODER_H
#define INFERSTAT_STORE_SCHEMA_SEAL_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

enum { SEAL_COLUMNS_MAX = 64, SEAL_ROWS_MAX = 16384, SEAL_NAME_MAX = 63 };

struct seal_rows {
    uint32_t count;
    unsigned columns;
    char names[SEAL_COLUMNS_MAX][SEAL_NAME_MAX + 1];
    int64_t *values[SEAL_COLUMNS_MAX];
    unsigned char *is_absent[SEAL_COLUMNS_MAX]; // 1: NULL; a NULL pointer: no row has NULL
};

// Decodes a segment.  STATUS_CORRUPT, STATUS_UNSUPPORTED (unknown format), STATUS_NOMEM.
MUST_CHECK enum status seal_decode(struct seal_rows *out, const void *bytes, size_t size);
void seal_rows_deinit(struct seal_rows *rows);

#endif
