// CRC-32C (Castagnoli, RFC 3720 appendix B.4): finds every error of up to 32 bits in
// a row, and others but for one in four thousand million.
#ifndef INFERSTAT_CORE_CRC32C_H
#define INFERSTAT_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// The checksum of `size` bytes.  `before` is 0, or that of the bytes before them:
// crc32c(crc32c(0, a), b) is the checksum of a followed by b.  Uses the processor's
// instruction where there is one.
uint32_t crc32c(uint32_t before, const void *bytes, size_t size);

// The same without the instruction, for the test that compares the two.
uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t size);

#endif
