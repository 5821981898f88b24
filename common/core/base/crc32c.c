#include "common/core/base/crc32c.h"

#include <string.h>

// The effect of four bits on the checksum: the remainder of n * x^32 by the polynomial
// 0x1edc6f41, bits in reverse.
static const uint32_t steps[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_plain(uint32_t before, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t crc = ~before;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ steps[crc & 0xf];
        crc = crc >> 4 ^ steps[crc & 0xf];
    }
    return ~crc;
}

#if defined __x86_64__

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t before, const void *bytes,
                                                               size_t size)
{
    const unsigned char *at = bytes;
    uint64_t crc = ~before;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    for (; size > 0; size--, at++)
        crc = __builtin_ia32_crc32qi((uint32_t)crc, *at);
    return ~(uint32_t)crc;
}

#endif

uint32_t crc32c(uint32_t before, const void *bytes, size_t size)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(before, bytes, size);
#endif
    return crc32c_plain(before, bytes, size);
}
