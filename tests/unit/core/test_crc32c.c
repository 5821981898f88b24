// CRC-32C: known answers, and both ways of computing it agree.
#include "common/core/base/crc32c.h"

#include "tests/support/test.h"

TEST_CASE(test_known_answers)
{
    unsigned char zeroes[32] = {0}, ones[32], rising[32], falling[32];
    memset(ones, 0xff, sizeof ones);
    for (unsigned i = 0; i < sizeof rising; i++) {
        rising[i] = (unsigned char)i;
        falling[i] = (unsigned char)(31 - i);
    }
    const struct {
        const void *bytes;
        size_t size;
        uint32_t crc;
    } cases[] = {
        {"", 0, 0},
        {"123456789", 9, 0xe3069283},
        {zeroes, sizeof zeroes, 0x8a9136aa}, // these four: RFC 3720, B.4
        {ones, sizeof ones, 0x62a8ab43},
        {rising, sizeof rising, 0x46dd794e},
        {falling, sizeof falling, 0x113fdb5c},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(crc32c(0, cases[i].bytes, cases[i].size), cases[i].crc);
        assert_int_equal(crc32c_plain(0, cases[i].bytes, cases[i].size), cases[i].crc);
    }
}

// Wherever the bytes begin and are divided.
TEST_CASE(test_parts_and_places)
{
    unsigned char bytes[512];
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)test_random(&seed);
    for (unsigned round = 0; round < 2000; round++) {
        const size_t first = test_random(&seed) % sizeof bytes;
        const size_t size = test_random(&seed) % (sizeof bytes - first + 1);
        const size_t half = size ? test_random(&seed) % size : 0;
        const uint32_t whole = crc32c_plain(0, bytes + first, size);
        const uint32_t before = crc32c(0, bytes + first, half);
        assert_int_equal(crc32c(0, bytes + first, size), whole);
        assert_int_equal(crc32c(before, bytes + first + half, size - half), whole);
    }
}

TEST_MAIN(test_known_answers, test_parts_and_places)
