// The header of a .npy file: a magic word, a version, a length, and a Python dictionary
// of three items.
#include "server/workload/encode/npy.h"

#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum {
    VERSION_AT = sizeof magic,
    LENGTH_AT = VERSION_AT + 2,
};

// Size of the length field: 2 bytes in version 1, 4 in versions 2 and 3.
static size_t length_size(const unsigned char *bytes)
{
    return bytes[VERSION_AT] == 1 ? 2 : 4;
}

enum status npy_header_size(size_t *out, const unsigned char *bytes, size_t size, struct error *err)
{
    if (size < NPY_PREFIX_SIZE || memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(err, STATUS_CORRUPT, "not a .npy file");
    if (bytes[VERSION_AT] < 1 || bytes[VERSION_AT] > 3)
        return error_set(err, STATUS_UNSUPPORTED, ".npy version %u.%u: only 1.0 to 3.0 are read",
                         bytes[VERSION_AT], bytes[VERSION_AT + 1]);
    size_t length = 0;
    for (size_t i = length_size(bytes); i-- > 0;)
        length = length << 8 | bytes[LENGTH_AT + i];
    size_t total = LENGTH_AT + length_size(bytes) + length;
    if (total > NPY_HEADER_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "a .npy header of %zu bytes: more than %d", total,
                         NPY_HEADER_MAX);
    *out = total;
    return STATUS_OK;
}

// ---- The dictionary -------------------------------------------------------

struct cursor {
    const char *at, *end;
};

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool parse_word(struct cursor *c, const char *word)
{
    skip_space(c);
    size_t size = strlen(word);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0)
        return false;
    c->at += size;
    return true;
}

// A text in single or double quotes, without escapes.
static bool parse_text(struct cursor *c, const char **text, size_t *size)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    const char *close = memchr(c->at + 1, *c->at, (size_t)(c->end - c->at) - 1);
    if (!close)
        return false;
    *text = c->at + 1;
    *size = (size_t)(close - *text);
    c->at = close + 1;
    return true;
}

static bool parse_number(struct cursor *c, uint64_t *out)
{
    skip_space(c);
    const char *first = c->at;
    uint64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
            return false;
    *out = value;
    return c->at > first;
}

static enum status nonsense(const char *what, struct error *err)
{
    return error_set(err, STATUS_CORRUPT, "the .npy header's %s makes no sense", what);
}

static enum status parse_type(struct npy_header *out, struct cursor *c, struct error *err)
{
    const char *text;
    size_t size;
    if (!parse_text(c, &text, &size)) {
        // A list describes the fields of records.
        if (take(c, '['))
            return error_set(err, STATUS_UNSUPPORTED,
                             "the numbers are records (save f8 or f4, as with astype)");
        return nonsense("type", err);
    }
    if (size == 3 && (text[1] == 'f') && (text[2] == '8' || text[2] == '4')) {
        out->type = text[2] == '8' ? ENCODE_F64 : ENCODE_F32;
        if (text[0] == '<')
            return STATUS_OK;
        if (text[0] == '>')
            return error_set(err, STATUS_UNSUPPORTED,
                             "the numbers are big-endian (save them with astype('<f%c'))", text[2]);
    }
    return error_set(err, STATUS_UNSUPPORTED, "the numbers are '%.*s': only <f8 and <f4 are read",
                     size < 20 ? (int)size : 20, text);
}

static enum status parse_order(struct npy_header *out, struct cursor *c, struct error *err)
{
    (void)out;
    if (parse_word(c, "False"))
        return STATUS_OK;
    if (parse_word(c, "True"))
        return error_set(err, STATUS_UNSUPPORTED,
                         "the array is in Fortran order (save it with numpy.ascontiguousarray)");
    return nonsense("order", err);
}

static enum status parse_shape(struct npy_header *out, struct cursor *c, struct error *err)
{
    if (!take(c, '('))
        return nonsense("shape", err);
    uint64_t value = 0;
    out->dimensions = 0;
    out->shape[0] = out->shape[1] = 1;
    while (!take(c, ')')) {
        if (!parse_number(c, &value))
            return nonsense("shape", err);
        if (out->dimensions < 2)
            out->shape[out->dimensions] = value;
        out->dimensions++;
        if (!take(c, ',')) {
            if (out->dimensions < 2 || !take(c, ')'))
                return nonsense("shape", err);
            break;
        }
    }
    if (out->dimensions < 1 || out->dimensions > 2)
        return error_set(err, STATUS_UNSUPPORTED,
                         "the array has %u dimensions: 1 or 2 are read (reshape it)",
                         out->dimensions);
    return STATUS_OK;
}

static const struct item {
    const char *name;
    enum status (*parse)(struct npy_header *out, struct cursor *c, struct error *err);
} items[] = {
    {"descr", parse_type},
    {"fortran_order", parse_order},
    {"shape", parse_shape},
};

enum { ITEM_COUNT = sizeof items / sizeof items[0] };

static enum status parse_item(struct npy_header *out, struct cursor *c, unsigned int *seen,
                              struct error *err)
{
    const char *text;
    size_t size;
    if (!parse_text(c, &text, &size) || !take(c, ':'))
        return nonsense("dictionary", err);
    for (unsigned int i = 0; i < ITEM_COUNT; i++) {
        if (strlen(items[i].name) != size || memcmp(items[i].name, text, size) != 0)
            continue;
        if (*seen & 1U << i)
            break;
        *seen |= 1U << i;
        return items[i].parse(out, c, err);
    }
    return nonsense("dictionary", err);
}

static enum status parse_dictionary(struct npy_header *out, struct cursor *c, struct error *err)
{
    unsigned int seen = 0;
    if (!take(c, '{'))
        return nonsense("dictionary", err);
    while (!take(c, '}')) {
        enum status status = parse_item(out, c, &seen, err);
        if (status != STATUS_OK)
            return status;
        if (!take(c, ',')) {
            if (!take(c, '}'))
                return nonsense("dictionary", err);
            break;
        }
    }
    skip_space(c);
    return seen == (1U << ITEM_COUNT) - 1 && c->at == c->end ? STATUS_OK
                                                             : nonsense("dictionary", err);
}

enum status npy_parse(struct npy_header *out, const unsigned char *bytes, size_t size,
                      struct error *err)
{
    size_t total;
    enum status status = npy_header_size(&total, bytes, size, err);
    if (status == STATUS_OK && total != size)
        status = error_set(err, STATUS_CORRUPT, "the .npy header is cut off");
    if (status != STATUS_OK)
        return status;

    *out = (struct npy_header){.data_offset = size};
    const char *text = (const char *)bytes;
    struct cursor cursor = {text + LENGTH_AT + length_size(bytes), text + size};
    status = parse_dictionary(out, &cursor, err);
    if (status != STATUS_OK)
        return status;
    uint64_t count;
    if (__builtin_mul_overflow(out->shape[0], out->shape[1], &count) ||
        __builtin_mul_overflow(count, encode_type_size(out->type), &out->data_size) ||
        out->data_size > INT64_MAX - NPY_HEADER_MAX)
        return error_set(err, STATUS_CORRUPT, "a shape of %llu x %llu: no file is that large",
                         (unsigned long long)out->shape[0], (unsigned long long)out->shape[1]);
    if (count == 0)
        return error_set(err, STATUS_CORRUPT, "a shape of %llu x %llu: there are no numbers",
                         (unsigned long long)out->shape[0], (unsigned long long)out->shape[1]);
    return STATUS_OK;
}
