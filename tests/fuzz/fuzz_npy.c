// Headers of .npy files under libFuzzer.  The first byte chooses: a header whose length
// and words are right with the rest as its dictionary, or the rest as the file itself.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/workload/encode/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "fuzz_npy: %s\n", what);
    abort();
}

static void parse(const unsigned char *bytes, size_t size)
{
    struct error err = {0};
    struct npy_header header;
    size_t told = 0;
    enum status status = npy_header_size(&told, bytes, size, &err);
    check(status != STATUS_OK || told <= NPY_HEADER_MAX, "a header that is too long");
    status = npy_parse(&header, bytes, size, &err);
    if (status != STATUS_OK) {
        check(err.text[0] != '\0', "no words");
        return;
    }
    check(told == size && header.data_offset == size, "numbers that begin elsewhere");
    check(header.dimensions >= 1 && header.dimensions <= 2, "dimensions");
    check(header.shape[0] > 0 && header.shape[1] > 0, "no numbers");
    uint64_t each = encode_type_size(header.type);
    check(header.data_size / each / header.shape[0] == header.shape[1] &&
              header.data_size % (each * header.shape[0]) == 0,
          "a size that is not the shape's");
}

// A prefix of version 1 to 3 around the bytes.
static void parse_dictionary(unsigned int version, const uint8_t *data, size_t size)
{
    size_t prefix = version == 1 ? 10 : 12;
    unsigned char *bytes = calloc(1, prefix + size);
    if (!bytes)
        return;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)(size & 0xff);
    bytes[9] = (unsigned char)(size >> 8 & 0xff);
    if (size > 0)
        memcpy(bytes + prefix, data, size);
    parse(bytes, prefix + size);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 60000)
        return 0;
    if (data[0] % 4 == 0)
        parse(data + 1, size - 1);
    else
        parse_dictionary(data[0] % 4, data + 1, size - 1);
    return 0;
}
