#include "server/workload/llm/gguf.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "GGUF numbers are read as they lie in the file");

enum {
    VERSION_MIN = 2,
    VERSION_MAX = 3,
    NAME_MAX_SIZE = 65535, // of keys and tensors, as the format allows
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MAX = 1 << 20,
    FIRST_READ = 256 * 1024, // bytes of the header read at first
    READ_SIZE = 1 << 20,     // most bytes of a read; a load can be cancelled between two
    SHOWN_SIZE = 80,         // maximum size of a name in a message
    // Limits, several times those of any model known.
    HEADER_MAX = 48 << 20,
    KEYS_MAX = 1 << 16,
    TENSORS_MAX = 1 << 17,
    // Smallest size of a key and of a tensor's description in the file.
    KEY_BYTES_MIN = 8 + 1 + 4 + 1,
    TENSOR_BYTES_MIN = 8 + 1 + 4 + 8 + 4 + 8,
};

// A metadata key.
struct entry {
    struct gguf_text name;              // first: see compare_names
    enum gguf_value_type type, element; // `element` of an array
    const unsigned char *value, *end;   // elements only, for an array
    size_t count;                       // of an array
};

struct gguf {
    unsigned char *header; // the file's first bytes; names and values lie in it
    size_t header_bytes;   // of the file, and of all parts that were appended
    struct entry *entries; // sorted by name
    size_t entry_count, entry_capacity;
    struct gguf_tensor *tensors; // sorted by name
    size_t tensor_count, tensor_capacity;
    struct gguf *next; // a part that was appended: its header has only the names of its tensors
};

// ---- Names ----------------------------------------------------------------

// Order by bytes, a prefix first.  For names, and for what begins with one: keys and tensors.
static int compare_names(const void *a, const void *b)
{
    const struct gguf_text *x = a;
    const struct gguf_text *y = b;
    int order = memcmp(x->data, y->data, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

static const void *find_name(const char *name, const void *items, size_t count, size_t size)
{
    const struct gguf_text key = {.data = name, .size = strlen(name)};
    return count > 0 ? bsearch(&key, items, count, size, compare_names) : NULL;
}

static const struct entry *find_key(const struct gguf *gguf, const char *key)
{
    return find_name(key, gguf->entries, gguf->entry_count, sizeof *gguf->entries);
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name)
{
    return find_name(name, gguf->tensors, gguf->tensor_count, sizeof *gguf->tensors);
}

size_t gguf_tensor_count(const struct gguf *gguf)
{
    return gguf->tensor_count;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t index)
{
    return &gguf->tensors[index];
}

// ---- Values ---------------------------------------------------------------

bool gguf_has(const struct gguf *gguf, const char *key)
{
    return find_key(gguf, key) != NULL;
}

size_t gguf_key_count(const struct gguf *gguf)
{
    return gguf->entry_count;
}

const struct gguf_text *gguf_key_at(const struct gguf *gguf, size_t index)
{
    return &gguf->entries[index].name;
}

// Finds a key whose value has one of `types`, a bit for each enum gguf_value_type; `wanted` names
// them in the error.
static enum status find_value(const struct gguf *gguf, const char *key, unsigned int types,
                              const char *wanted, const struct entry **out, struct error *err)
{
    const struct entry *entry = find_key(gguf, key);
    *out = entry;
    if (!entry)
        return error_set(err, STATUS_NOT_FOUND, "key '%s' is missing", key);
    if (types & 1U << entry->type)
        return STATUS_OK;
    return error_set(
        err, STATUS_CORRUPT, "key '%s' should be %s, is %s%s", key, wanted,
        entry->type == GGUF_ARRAY ? "an array of " : "",
        gguf_value_type_name(entry->type == GGUF_ARRAY ? entry->element : entry->type));
}

enum status gguf_get_uint(const struct gguf *gguf, const char *key, uint64_t minimum,
                          uint64_t maximum, uint64_t *out, struct error *err)
{
    const unsigned int is_signed =
        1U << GGUF_INT8 | 1U << GGUF_INT16 | 1U << GGUF_INT32 | 1U << GGUF_INT64;
    const unsigned int is_unsigned =
        1U << GGUF_UINT8 | 1U << GGUF_UINT16 | 1U << GGUF_UINT32 | 1U << GGUF_UINT64;
    const struct entry *entry;
    enum status status = find_value(gguf, key, is_signed | is_unsigned, "an integer", &entry, err);
    if (status != STATUS_OK)
        return status;
    uint64_t value = 0;
    const size_t size = gguf_value_type_size(entry->type);
    memcpy(&value, entry->value, size);
    const bool negative =
        (is_signed & 1U << entry->type) && size > 0 && (value >> (8 * size - 1) & 1U);
    if (negative || value < minimum || value > maximum)
        return error_set(err, STATUS_CORRUPT,
                         "key '%s' is %s%" PRIu64 ", outside %" PRIu64 "..%" PRIu64, key,
                         negative ? "negative, as unsigned " : "", value, minimum, maximum);
    *out = value;
    return STATUS_OK;
}

enum status gguf_get_float(const struct gguf *gguf, const char *key, double minimum, double maximum,
                           double *out, struct error *err)
{
    const struct entry *entry;
    enum status status =
        find_value(gguf, key, 1U << GGUF_FLOAT32 | 1U << GGUF_FLOAT64, "a float", &entry, err);
    if (status != STATUS_OK)
        return status;
    double value;
    float single;
    memcpy(&single, entry->value, sizeof single);
    if (entry->type == GGUF_FLOAT32)
        value = (double)single;
    else
        memcpy(&value, entry->value, sizeof value);
    if (!isfinite(value) || value < minimum || value > maximum)
        return error_set(err, STATUS_CORRUPT, "key '%s' is %g, outside %g..%g", key, value, minimum,
                         maximum);
    *out = value;
    return STATUS_OK;
}

enum status gguf_get_bool(const struct gguf *gguf, const char *key, bool *out, struct error *err)
{
    const struct entry *entry;
    enum status status = find_value(gguf, key, 1U << GGUF_BOOL, "a bool", &entry, err);
    if (status != STATUS_OK)
        return status;
    unsigned char byte = entry->value[0];
    if (byte > 1)
        return error_set(err, STATUS_CORRUPT, "key '%s': a bool is %u", key, (unsigned int)byte);
    *out = byte == 1;
    return STATUS_OK;
}

enum status gguf_get_text(const struct gguf *gguf, const char *key, struct gguf_text *out,
                          struct error *err)
{
    const struct entry *entry;
    enum status status = find_value(gguf, key, 1U << GGUF_STRING, "a string", &entry, err);
    if (status != STATUS_OK)
        return status;
    struct gguf_array array = {.data = entry->value, .end = entry->end, .count = 1};
    *out = gguf_array_next_text(&array);
    return STATUS_OK;
}

enum status gguf_get_array(const struct gguf *gguf, const char *key, enum gguf_value_type type,
                           struct gguf_array *out, struct error *err)
{
    char wanted[SHOWN_SIZE];
    (void)snprintf(wanted, sizeof wanted, "an array of %s", gguf_value_type_name(type));
    const struct entry *entry = find_key(gguf, key);
    const bool fits = entry && entry->type == GGUF_ARRAY && entry->element == type;
    enum status status = find_value(gguf, key, fits ? 1U << GGUF_ARRAY : 0, wanted, &entry, err);
    if (status == STATUS_OK)
        *out = (struct gguf_array){
            .type = type, .count = entry->count, .data = entry->value, .end = entry->end};
    return status;
}

// ---- Reading bytes --------------------------------------------------------

// The file's first `size` bytes, read from byte `at` on.  After a failure nothing more is read and
// all numbers are zero.
struct reader {
    const struct byte_source *source;
    const unsigned char *data;
    size_t size, at;
    bool too_short; // it failed since `size` is too small; the file has more
    // What is being parsed, for messages: "key" or "tensor", its number from 1, its name if known.
    const char *item;
    size_t number;
    struct gguf_text name;
    enum status status;
    struct error *err;
};

// Fails with what is wrong with the item that is being parsed.
__attribute__((format(printf, 3, 4))) static void fail(struct reader *reader, enum status status,
                                                       const char *format, ...)
{
    if (reader->status != STATUS_OK)
        return;
    char what[SHOWN_SIZE + 32] = "the header", shown[SHOWN_SIZE], why[ERROR_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (reader->name.data)
        (void)snprintf(what, sizeof what, "%s '%s'", reader->item,
                       text_escape(shown, sizeof shown, reader->name.data, reader->name.size));
    else if (reader->item)
        (void)snprintf(what, sizeof what, "%s %zu", reader->item, reader->number);
    reader->status = error_set(reader->err, status, "%s %s", what, why);
}

// The next `size` bytes; NULL after a failure.
static const unsigned char *take(struct reader *reader, uint64_t size)
{
    if (reader->status != STATUS_OK)
        return NULL;
    if (size > reader->source->size - reader->at)
        fail(reader, STATUS_CORRUPT,
             "is truncated: it needs %" PRIu64 " bytes at byte %zu, the file has %" PRIu64
             " (is it complete?)",
             size, reader->at, reader->source->size);
    else if (size > HEADER_MAX - reader->at)
        fail(reader, STATUS_UNSUPPORTED, "makes the header longer than %d MB", HEADER_MAX >> 20);
    else if (size > reader->size - reader->at) {
        reader->too_short = true;
        reader->status = STATUS_CORRUPT;
    }
    if (reader->status != STATUS_OK)
        return NULL;
    const unsigned char *bytes = reader->data + reader->at;
    reader->at += (size_t)size;
    return bytes;
}

static uint64_t parse_number(struct reader *reader, size_t size)
{
    uint64_t number = 0;
    const unsigned char *bytes = take(reader, size);
    if (bytes)
        memcpy(&number, bytes, size);
    return number;
}

static uint32_t parse_u32(struct reader *reader)
{
    return (uint32_t)parse_number(reader, sizeof(uint32_t));
}

static uint64_t parse_u64(struct reader *reader)
{
    return parse_number(reader, sizeof(uint64_t));
}

// Parses the name of item `index`: 1..NAME_MAX_SIZE bytes.  `item` is "key" or "tensor".
static struct gguf_text parse_name(struct reader *reader, const char *item, size_t index)
{
    reader->item = item;
    reader->number = index + 1;
    reader->name = (struct gguf_text){0};
    const uint64_t size = parse_u64(reader);
    if (size == 0 || size > NAME_MAX_SIZE)
        fail(reader, STATUS_CORRUPT, "has a name of %" PRIu64 " bytes", size);
    const char *name = (const char *)take(reader, size);
    reader->name = (struct gguf_text){.data = name, .size = (size_t)size};
    return reader->name;
}

// ---- Keys -----------------------------------------------------------------

static void parse_array(struct reader *reader, struct entry *entry)
{
    uint32_t element = parse_u32(reader);
    uint64_t count = parse_u64(reader);
    if (element >= GGUF_VALUE_TYPE_COUNT || element == GGUF_ARRAY) {
        fail(reader, STATUS_CORRUPT, "is an array of the unknown type %" PRIu32, element);
        return;
    }
    entry->element = (enum gguf_value_type)element;
    size_t size = gguf_value_type_size(entry->element);
    uint64_t left = reader->source->size - reader->at;
    if (count > left / (size ? size : sizeof(uint64_t))) {
        fail(reader, STATUS_CORRUPT, "is an array longer than the file (is it complete?)");
        return;
    }
    entry->count = (size_t)count;
    entry->value = take(reader, count * size);
    for (uint64_t i = 0; size == 0 && i < count && reader->status == STATUS_OK; i++)
        (void)take(reader, parse_u64(reader));
}

static struct entry parse_entry(struct reader *reader, size_t index)
{
    struct entry entry = {.name = parse_name(reader, "key", index)};
    uint32_t type = parse_u32(reader);
    if (type >= GGUF_VALUE_TYPE_COUNT) {
        fail(reader, STATUS_CORRUPT, "is of the unknown type %" PRIu32, type);
        return entry;
    }
    entry.type = (enum gguf_value_type)type;
    entry.value = take(reader, gguf_value_type_size(entry.type)); // where it starts, if it varies
    if (entry.type == GGUF_ARRAY)
        parse_array(reader, &entry);
    else if (entry.type == GGUF_STRING)
        (void)take(reader, parse_u64(reader));
    entry.end = reader->data + reader->at;
    return entry;
}

static void parse_entries(struct reader *reader, struct gguf *gguf, uint64_t count)
{
    if (count > (reader->source->size - reader->at) / KEY_BYTES_MIN)
        fail(reader, STATUS_CORRUPT, "has more keys than the file can hold (is it complete?)");
    if (count > KEYS_MAX)
        fail(reader, STATUS_UNSUPPORTED, "has more than %d keys", KEYS_MAX);
    // Grows entry by entry: counts in the file are not trusted.
    while (gguf->entry_count < count && reader->status == STATUS_OK) {
        const size_t index = gguf->entry_count;
        if (ARRAY_RESERVE(&gguf->entries, &gguf->entry_capacity, index + 1))
            gguf->entries[gguf->entry_count++] = parse_entry(reader, index);
        else
            fail(reader, STATUS_NOMEM, "does not fit in memory");
    }
    reader->item = NULL;
    reader->name = (struct gguf_text){0};
    if (reader->status != STATUS_OK || count == 0)
        return;
    qsort(gguf->entries, gguf->entry_count, sizeof *gguf->entries, compare_names);
    for (size_t i = 1; i < gguf->entry_count; i++) {
        if (compare_names(&gguf->entries[i - 1], &gguf->entries[i]) != 0)
            continue;
        reader->item = "key";
        reader->name = gguf->entries[i].name;
        fail(reader, STATUS_CORRUPT, "appears twice");
    }
}

// ---- Tensors --------------------------------------------------------------

// Computes a tensor's bytes, or fails on an invalid shape.
static void measure(struct reader *reader, struct gguf_tensor *tensor)
{
    uint64_t elements = 1;
    for (uint32_t d = 0; d < tensor->dimensions; d++)
        if (tensor->shape[d] == 0 || __builtin_mul_overflow(elements, tensor->shape[d], &elements))
            fail(reader, STATUS_CORRUPT, "has an impossible shape");
    if (tensor->shape[0] % tensor->type->block_elements != 0)
        fail(reader, STATUS_CORRUPT, "has rows that are no whole number of blocks");
    uint64_t blocks = elements / tensor->type->block_elements;
    if (__builtin_mul_overflow(blocks, tensor->type->block_bytes, &tensor->bytes))
        fail(reader, STATUS_CORRUPT, "has an impossible size");
}

static struct gguf_tensor parse_tensor(struct reader *reader, size_t index)
{
    struct gguf_tensor tensor = {.name = parse_name(reader, "tensor", index)};
    tensor.dimensions = parse_u32(reader);
    if (tensor.dimensions == 0 || tensor.dimensions > GGUF_DIMENSIONS_MAX)
        fail(reader, STATUS_CORRUPT, "has %" PRIu32 " dimensions", tensor.dimensions);
    for (uint32_t d = 0; d < GGUF_DIMENSIONS_MAX; d++)
        tensor.shape[d] = d < tensor.dimensions ? parse_u64(reader) : 1;
    uint32_t type = parse_u32(reader);
    tensor.offset = parse_u64(reader);
    tensor.type = gguf_tensor_type(type);
    if (!tensor.type)
        fail(reader, STATUS_UNSUPPORTED, "is of the unknown type %" PRIu32, type);
    if (reader->status == STATUS_OK)
        measure(reader, &tensor);
    return tensor;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *x = a;
    const struct gguf_tensor *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void misplaced(struct reader *reader, const struct gguf_tensor *tensor, const char *what)
{
    reader->item = "tensor";
    reader->name = tensor->name;
    fail(reader, STATUS_CORRUPT, "%s", what);
}

// Sorts the tensors by name.  Returns one that appears twice, NULL if none does.
static const struct gguf_tensor *sort_tensors(struct gguf *gguf)
{
    const struct gguf_tensor *twice = NULL;
    if (gguf->tensor_count > 0)
        qsort(gguf->tensors, gguf->tensor_count, sizeof *gguf->tensors, compare_names);
    for (size_t i = 1; i < gguf->tensor_count && !twice; i++)
        if (compare_names(&gguf->tensors[i - 1], &gguf->tensors[i]) == 0)
            twice = &gguf->tensors[i];
    return twice;
}

// Converts offsets in the data to offsets in the file, checks them, and sorts the tensors by name.
static void place_tensors(struct reader *reader, struct gguf *gguf, uint64_t alignment)
{
    if (gguf->tensor_count == 0)
        return; // the file may end right here, unpadded
    const uint64_t data_start = (reader->at + alignment - 1) / alignment * alignment;
    uint64_t end = data_start;
    qsort(gguf->tensors, gguf->tensor_count, sizeof *gguf->tensors, compare_offsets);
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        struct gguf_tensor *tensor = &gguf->tensors[i];
        if (tensor->offset % alignment != 0)
            misplaced(reader, tensor, "is not aligned");
        if (__builtin_add_overflow(tensor->offset, data_start, &tensor->offset) ||
            tensor->offset > reader->source->size ||
            tensor->bytes > reader->source->size - tensor->offset)
            misplaced(reader, tensor, "lies outside the file (is it complete?)");
        if (tensor->offset < end)
            misplaced(reader, tensor, "overlaps another");
        end = tensor->offset + tensor->bytes;
    }
    const struct gguf_tensor *twice = sort_tensors(gguf);
    if (twice)
        misplaced(reader, twice, "appears twice");
}

static void parse_tensors(struct reader *reader, struct gguf *gguf, uint64_t count)
{
    if (count > (reader->source->size - reader->at) / TENSOR_BYTES_MIN)
        fail(reader, STATUS_CORRUPT, "has more tensors than the file can hold (is it complete?)");
    if (count > TENSORS_MAX)
        fail(reader, STATUS_UNSUPPORTED, "has more than %d tensors", TENSORS_MAX);
    while (gguf->tensor_count < count && reader->status == STATUS_OK) {
        const size_t index = gguf->tensor_count;
        if (ARRAY_RESERVE(&gguf->tensors, &gguf->tensor_capacity, index + 1))
            gguf->tensors[gguf->tensor_count++] = parse_tensor(reader, index);
        else
            fail(reader, STATUS_NOMEM, "does not fit in memory");
    }
    uint64_t alignment = ALIGNMENT_DEFAULT;
    if (reader->status == STATUS_OK && gguf_has(gguf, "general.alignment")) {
        reader->status =
            gguf_get_uint(gguf, "general.alignment", 1, ALIGNMENT_MAX, &alignment, reader->err);
        if (reader->status == STATUS_OK && (alignment & (alignment - 1)) != 0)
            reader->status =
                error_set(reader->err, STATUS_CORRUPT, "key 'general.alignment': no power of two");
    }
    if (reader->status == STATUS_OK)
        place_tensors(reader, gguf, alignment);
}

// ---- The whole ------------------------------------------------------------

static void parse_version(struct reader *reader)
{
    const unsigned char *magic = take(reader, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0) {
        reader->status = error_set(reader->err, STATUS_CORRUPT, "not a GGUF file: %s",
                                   magic ? "it does not begin with 'GGUF'" : "too short");
        return;
    }
    const uint32_t version = parse_u32(reader);
    if (reader->status != STATUS_OK)
        return;
    uint32_t swapped = __builtin_bswap32(version);
    if (swapped >= 1 && swapped <= VERSION_MAX)
        reader->status = error_set(reader->err, STATUS_UNSUPPORTED,
                                   "big-endian GGUF is not supported (convert the file)");
    else if (version < VERSION_MIN || version > VERSION_MAX)
        reader->status =
            error_set(reader->err, STATUS_UNSUPPORTED,
                      "GGUF version %" PRIu32 " is not supported, only %d and %d (convert the "
                      "file)",
                      version, VERSION_MIN, VERSION_MAX);
}

static enum status parse(struct gguf *gguf, struct reader *reader)
{
    gguf->entry_count = 0;
    gguf->tensor_count = 0;
    parse_version(reader);
    uint64_t tensors = parse_u64(reader);
    uint64_t keys = parse_u64(reader);
    parse_entries(reader, gguf, keys);
    parse_tensors(reader, gguf, tensors);
    return reader->status;
}

// Reads bytes `before` to `size` - 1 of the file behind those that the header has.
static enum status read_more(struct gguf *gguf, const struct byte_source *source, size_t before,
                             size_t size, bool (*cancelled)(void), struct error *err)
{
    unsigned char *header = realloc(gguf->header, size + 1); // also of an empty file
    if (!header)
        return error_no_memory(err, "header");
    gguf->header = header;
    enum status status = STATUS_OK;
    for (size_t at = before; at < size && status == STATUS_OK; at += READ_SIZE) {
        if (cancelled && cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped while reading the header");
        status = byte_source_read(source, at, header + at,
                                  size - at < READ_SIZE ? size - at : READ_SIZE, err);
    }
    return status;
}

enum status gguf_read(struct gguf **out, const struct byte_source *source, bool (*cancelled)(void),
                      struct error *err)
{
    struct gguf *gguf = calloc(1, sizeof *gguf);
    if (!gguf)
        return error_no_memory(err, "header");
    struct reader reader = {.too_short = true};
    enum status status = STATUS_OK;
    size_t size = 0;
    // The size of a header is nowhere: it is parsed again with twice the bytes until it is whole.
    while (reader.too_short && status == STATUS_OK) {
        const size_t before = size;
        size = before ? 2 * before : FIRST_READ;
        if (size > HEADER_MAX)
            size = HEADER_MAX;
        if (size > source->size)
            size = (size_t)source->size;
        status = read_more(gguf, source, before, size, cancelled, err);
        reader = (struct reader){.source = source, .data = gguf->header, .size = size, .err = err};
        if (status == STATUS_OK)
            status = parse(gguf, &reader);
        if (reader.too_short)
            status = STATUS_OK;
    }
    if (status != STATUS_OK) {
        gguf_free(gguf);
        return status;
    }
    gguf->header_bytes = reader.at;
    *out = gguf;
    return STATUS_OK;
}

// Both files have the key, but with different values.
static bool contradicts(const struct gguf *gguf, const struct entry *entry)
{
    const struct entry *other =
        bsearch(entry, gguf->entries, gguf->entry_count, sizeof *entry, compare_names);
    const size_t size = (size_t)(entry->end - entry->value);
    return other && (other->type != entry->type || other->element != entry->element ||
                     size != (size_t)(other->end - other->value) ||
                     memcmp(entry->value, other->value, size) != 0);
}

// Frees all of a part but the names of its tensors.
static enum status keep_names(struct gguf *part, struct error *err)
{
    size_t size = 1;
    for (size_t i = 0; i < part->tensor_count; i++)
        size += part->tensors[i].name.size;
    char *names = malloc(size), *at = names;
    if (!names)
        return error_no_memory(err, "header");
    for (size_t i = 0; i < part->tensor_count; i++) {
        struct gguf_text *name = &part->tensors[i].name;
        memcpy(at, name->data, name->size);
        name->data = at;
        at += name->size;
    }
    free(part->header);
    part->header = (unsigned char *)names;
    free(part->entries);
    part->entries = NULL;
    return STATUS_OK;
}

enum status gguf_append(struct gguf *gguf, struct gguf *part, uint64_t base, struct error *err)
{
    char shown[SHOWN_SIZE];
    part->next = gguf->next;
    gguf->next = part;
    gguf->header_bytes += part->header_bytes;
    if (gguf->header_bytes > HEADER_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "its header makes those of all parts longer than %d MB", HEADER_MAX >> 20);
    const size_t before = gguf->tensor_count;
    if (before + part->tensor_count > TENSORS_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "the parts up to it have more than %d tensors",
                         TENSORS_MAX);
    for (size_t i = 0; i < part->entry_count; i++) {
        const struct gguf_text *name = &part->entries[i].name;
        if (!gguf_text_is(name, "split.no") && contradicts(gguf, &part->entries[i]))
            return error_set(err, STATUS_CORRUPT,
                             "key '%s' has another value in the first part (is this a part of "
                             "another model?)",
                             text_escape(shown, sizeof shown, name->data, name->size));
    }
    if (!ARRAY_RESERVE(&gguf->tensors, &gguf->tensor_capacity, before + part->tensor_count))
        return error_no_memory(err, "header");
    enum status status = keep_names(part, err);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < part->tensor_count; i++) {
        gguf->tensors[before + i] = part->tensors[i];
        gguf->tensors[before + i].offset += base;
    }
    gguf->tensor_count += part->tensor_count;
    free(part->tensors);
    part->tensors = NULL;
    const struct gguf_tensor *twice = sort_tensors(gguf);
    if (!twice)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT,
                     "tensor '%s' is also in an earlier part (is this a part of another model?)",
                     text_escape(shown, sizeof shown, twice->name.data, twice->name.size));
}

void gguf_free(struct gguf *gguf)
{
    while (gguf) {
        struct gguf *next = gguf->next;
        free(gguf->header);
        free(gguf->entries);
        free(gguf->tensors);
        free(gguf);
        gguf = next;
    }
}
