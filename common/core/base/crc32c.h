// CRC-32C checksum (Castagnoli, RFC 3720 appendix B.4), for files and mapped memory that may be
// damaged.  It detects every burst error of up to 32 bits; a random error goes undetected with a
// probability of 1 in 2^32.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Returns the checksum of `size` bytes.  `before` is 0, or the checksum of the preceding bytes:
// crc32c(crc32c(0, a), b) is the checksum of a followed by b.  On x86-64, uses the CRC instruction
// if the processor has it.
uint32_t crc32c(uint32_t before, const void *bytes, size_t size);

// Computes the checksum without the CRC instruction; a test compares it with crc32c.
uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t size);
