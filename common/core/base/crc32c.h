// CRC-32C checksum (Castagnoli, RFC 3720 appendix B.4): detects every error burst of up to
// 32 bits, and all but one in 2^32 of other errors.
#ifndef INFERSTAT_CORE_CRC32C_H
#define INFERSTAT_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// The checksum of `size` bytes.  `before` is 0, or the checksum of the preceding bytes:
// crc32c(crc32c(0, a), b) is the checksum of a followed by b.  Uses the processor's CRC
// instruction if it has one.
uint32_t crc32c(uint32_t before, const void *bytes, size_t size);

// The same without the CRC instruction, for the test that compares both.
uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t size);

#endif
