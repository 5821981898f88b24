#include "server/workload/llm/gguf_parts.h"

#include <inttypes.h>
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
    CHUNK = 256 * 1024, // least step in which the header is read
    // Smallest size of a key and of a tensor's description in the file.
    KEY_BYTES_MIN = 8 + 1 + 4 + 1,
    TENSOR_BYTES_MIN = 8 + 1 + 4 + 8 + 4 + 8,
};

// ---- Reading bytes --------------------------------------------------------

static enum status corrupt(const struct gguf *gguf, struct error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, "damaged header at byte %zu: %s", gguf->at, what);
}

// Ensures that the next `size` bytes of the file are in `header`.
static enum status need(struct gguf *gguf, uint64_t size, struct error *err)
{
    if (size <= gguf->header_size - gguf->at)
        return STATUS_OK;
    if (size > gguf->source.size - gguf->at)
        return error_set(err, STATUS_CORRUPT,
                         "truncated: the header needs %" PRIu64 " bytes at byte %zu, the file has "
                         "%" PRIu64 " (is it complete?)",
                         size, gguf->at, gguf->source.size);

    // At least double, so that long headers cost few reads; never past the file.
    uint64_t wanted = gguf->at + size;
    if (wanted < 2 * (uint64_t)gguf->header_size)
        wanted = 2 * (uint64_t)gguf->header_size;
    if (wanted < CHUNK)
        wanted = CHUNK;
    if (wanted > gguf->source.size)
        wanted = gguf->source.size;
    unsigned char *header = realloc(gguf->header, (size_t)wanted);
    if (!header)
        return error_set(err, STATUS_NOMEM, "no memory for a header of %" PRIu64 " bytes", wanted);
    gguf->header = header;
    gguf->header_capacity = (size_t)wanted;
    enum status status =
        byte_source_read(&gguf->source, gguf->header_size, header + gguf->header_size,
                         (size_t)wanted - gguf->header_size, err);
    if (status == STATUS_OK)
        gguf->header_size = (size_t)wanted;
    return status;
}

static enum status take(struct gguf *gguf, void *out, size_t size, struct error *err)
{
    enum status status = need(gguf, size, err);
    if (status != STATUS_OK)
        return status;
    memcpy(out, gguf->header + gguf->at, size);
    gguf->at += size;
    return STATUS_OK;
}

// Skips `size` bytes, which must exist.
static enum status skip(struct gguf *gguf, uint64_t size, struct error *err)
{
    enum status status = need(gguf, size, err);
    if (status == STATUS_OK)
        gguf->at += (size_t)size;
    return status;
}

static enum status skip_text(struct gguf *gguf, struct error *err)
{
    uint64_t size;
    enum status status = take(gguf, &size, sizeof size, err);
    return status == STATUS_OK ? skip(gguf, size, err) : status;
}

// Reads the position of a name of 1..NAME_MAX_SIZE bytes.
static enum status take_name(struct gguf *gguf, size_t *name, size_t *name_size, struct error *err)
{
    uint64_t size;
    enum status status = take(gguf, &size, sizeof size, err);
    if (status != STATUS_OK)
        return status;
    if (size == 0 || size > NAME_MAX_SIZE)
        return corrupt(gguf, err, "a name's length makes no sense");
    *name = gguf->at;
    *name_size = (size_t)size;
    return skip(gguf, size, err);
}

// ---- Keys -----------------------------------------------------------------

static enum status take_array(struct gguf *gguf, struct gguf_entry *entry, struct error *err)
{
    uint32_t element;
    uint64_t count;
    enum status status = take(gguf, &element, sizeof element, err);
    if (status == STATUS_OK)
        status = take(gguf, &count, sizeof count, err);
    if (status != STATUS_OK)
        return status;
    if (element >= GGUF_VALUE_TYPE_COUNT || element == GGUF_ARRAY)
        return corrupt(gguf, err, "an array of an unknown type");

    entry->element = (enum gguf_value_type)element;
    size_t size = gguf_value_type_size(entry->element);
    uint64_t left = gguf->source.size - gguf->at;
    if (count > left / (size ? size : sizeof(uint64_t)))
        return corrupt(gguf, err, "an array longer than the file (is it complete?)");
    entry->count = (size_t)count;
    entry->value = gguf->at;
    if (size)
        return skip(gguf, count * size, err);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++)
        status = skip_text(gguf, err);
    return status;
}

static enum status take_entry(struct gguf *gguf, struct gguf_entry *entry, struct error *err)
{
    memset(entry, 0, sizeof *entry);
    uint32_t type;
    enum status status = take_name(gguf, &entry->name, &entry->name_size, err);
    if (status == STATUS_OK)
        status = take(gguf, &type, sizeof type, err);
    if (status != STATUS_OK)
        return status;
    if (type >= GGUF_VALUE_TYPE_COUNT)
        return corrupt(gguf, err, "a value of an unknown type");

    entry->type = (enum gguf_value_type)type;
    entry->value = gguf->at;
    if (entry->type == GGUF_ARRAY)
        status = take_array(gguf, entry, err);
    else if (entry->type == GGUF_STRING)
        status = skip_text(gguf, err);
    else
        status = skip(gguf, gguf_value_type_size(entry->type), err);
    entry->value_size = status == STATUS_OK ? gguf->at - entry->value : 0;
    return status;
}

static int compare_entries(const void *a, const void *b, void *header)
{
    const struct gguf_entry *x = a;
    const struct gguf_entry *y = b;
    const unsigned char *base = header;
    return gguf_compare_names(base + x->name, x->name_size, base + y->name, y->name_size);
}

static enum status take_entries(struct gguf *gguf, uint64_t count, struct error *err)
{
    if (count > (gguf->source.size - gguf->at) / KEY_BYTES_MIN)
        return corrupt(gguf, err, "more keys than the file can hold (is it complete?)");
    for (uint64_t i = 0; i < count; i++) {
        // Grows entry by entry: counts in the file are not trusted.
        if (!ARRAY_RESERVE(&gguf->entries, &gguf->entry_capacity, gguf->entry_count + 1))
            return error_no_memory(err, "header");
        enum status status = take_entry(gguf, &gguf->entries[gguf->entry_count], err);
        if (status != STATUS_OK)
            return status;
        gguf->entry_count++;
    }

    if (gguf->entry_count > 1)
        qsort_r(gguf->entries, gguf->entry_count, sizeof *gguf->entries, compare_entries,
                gguf->header);
    for (size_t i = 1; i < gguf->entry_count; i++) {
        const struct gguf_entry *entry = &gguf->entries[i];
        char shown[GGUF_SHOWN_SIZE];
        if (compare_entries(entry - 1, entry, gguf->header) == 0)
            return error_set(err, STATUS_CORRUPT, "damaged header: key '%s' appears twice",
                             text_escape(shown, sizeof shown,
                                         (const char *)gguf->header + entry->name,
                                         entry->name_size));
    }
    return STATUS_OK;
}

// ---- Tensors --------------------------------------------------------------

// Computes a tensor's elements and bytes, or fails on an invalid shape.
static enum status measure(const struct gguf *gguf, struct gguf_tensor *tensor, struct error *err)
{
    uint64_t elements = 1;
    for (uint32_t d = 0; d < tensor->dimensions; d++)
        if (tensor->shape[d] == 0 || __builtin_mul_overflow(elements, tensor->shape[d], &elements))
            return corrupt(gguf, err, "a tensor's shape makes no sense");
    if (tensor->shape[0] % tensor->type->block_elements != 0)
        return corrupt(gguf, err, "a tensor's row is no whole number of blocks");
    uint64_t blocks = elements / tensor->type->block_elements;
    if (__builtin_mul_overflow(blocks, tensor->type->block_bytes, &tensor->bytes))
        return corrupt(gguf, err, "a tensor's size makes no sense");
    return STATUS_OK;
}

static enum status take_shape(struct gguf *gguf, struct gguf_tensor *tensor, struct error *err)
{
    enum status status = take(gguf, &tensor->dimensions, sizeof tensor->dimensions, err);
    if (status != STATUS_OK)
        return status;
    if (tensor->dimensions == 0 || tensor->dimensions > GGUF_DIMENSIONS_MAX)
        return corrupt(gguf, err, "a tensor with an impossible number of dimensions");
    for (uint32_t d = 0; d < GGUF_DIMENSIONS_MAX; d++)
        tensor->shape[d] = 1;
    return take(gguf, tensor->shape, tensor->dimensions * sizeof tensor->shape[0], err);
}

static enum status take_tensor(struct gguf *gguf, struct gguf_listed *listed, struct error *err)
{
    memset(listed, 0, sizeof *listed);
    struct gguf_tensor *tensor = &listed->tensor;
    uint32_t type;
    enum status status = take_name(gguf, &listed->name, &tensor->name.size, err);
    if (status == STATUS_OK)
        status = take_shape(gguf, tensor, err);
    if (status == STATUS_OK)
        status = take(gguf, &type, sizeof type, err);
    if (status == STATUS_OK)
        status = take(gguf, &tensor->offset, sizeof tensor->offset, err);
    if (status != STATUS_OK)
        return status;
    tensor->type = gguf_tensor_type(type);
    if (!tensor->type)
        return error_set(err, STATUS_UNSUPPORTED, "tensor type %" PRIu32 " is unknown", type);
    return measure(gguf, tensor, err);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_listed *x = a;
    const struct gguf_listed *y = b;
    return (x->tensor.offset > y->tensor.offset) - (x->tensor.offset < y->tensor.offset);
}

static int compare_tensors(const void *a, const void *b)
{
    const struct gguf_tensor *const *x = a;
    const struct gguf_tensor *const *y = b;
    return gguf_compare_names((*x)->name.data, (*x)->name.size, (*y)->name.data, (*y)->name.size);
}

static enum status misplaced(const struct gguf_tensor *tensor, const char *what, struct error *err)
{
    char shown[GGUF_SHOWN_SIZE];
    return error_set(err, STATUS_CORRUPT, "tensor '%s' %s",
                     text_escape(shown, sizeof shown, tensor->name.data, tensor->name.size), what);
}

// Converts offsets in the data to offsets in the file and checks them.
static enum status place_tensors(struct gguf *gguf, uint64_t alignment, struct error *err)
{
    uint64_t end = gguf->data_start;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        struct gguf_tensor *tensor = &gguf->tensors[i].tensor;
        if (tensor->offset % alignment != 0)
            return misplaced(tensor, "is not aligned", err);
        if (__builtin_add_overflow(tensor->offset, gguf->data_start, &tensor->offset) ||
            tensor->offset > gguf->source.size ||
            tensor->bytes > gguf->source.size - tensor->offset)
            return misplaced(tensor, "lies outside the file (is it complete?)", err);
        if (tensor->offset < end)
            return misplaced(tensor, "overlaps another", err);
        end = tensor->offset + tensor->bytes;
    }
    return STATUS_OK;
}

// Points every tensor at its name and sorts them by offset and by name.
static enum status index_tensors(struct gguf *gguf, struct error *err)
{
    gguf->by_name = calloc(gguf->tensor_count + 1, sizeof(struct gguf_tensor *));
    if (!gguf->by_name)
        return error_set(err, STATUS_NOMEM, "no memory for the header");
    if (gguf->tensor_count > 1)
        qsort(gguf->tensors, gguf->tensor_count, sizeof *gguf->tensors, compare_offsets);
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        struct gguf_listed *listed = &gguf->tensors[i];
        listed->tensor.name.data = (const char *)gguf->header + listed->name;
        gguf->by_name[i] = &listed->tensor;
    }
    qsort(gguf->by_name, gguf->tensor_count, sizeof(struct gguf_tensor *), compare_tensors);
    for (size_t i = 1; i < gguf->tensor_count; i++)
        if (compare_tensors(&gguf->by_name[i - 1], &gguf->by_name[i]) == 0)
            return misplaced(gguf->by_name[i], "appears twice", err);
    return STATUS_OK;
}

static enum status take_tensors(struct gguf *gguf, uint64_t count, struct error *err)
{
    if (count > (gguf->source.size - gguf->at) / TENSOR_BYTES_MIN)
        return corrupt(gguf, err, "more tensors than the file can hold (is it complete?)");
    for (uint64_t i = 0; i < count; i++) {
        if (!ARRAY_RESERVE(&gguf->tensors, &gguf->tensor_capacity, gguf->tensor_count + 1))
            return error_no_memory(err, "header");
        enum status status = take_tensor(gguf, &gguf->tensors[gguf->tensor_count], err);
        if (status != STATUS_OK)
            return status;
        gguf->tensor_count++;
    }

    uint64_t alignment = ALIGNMENT_DEFAULT;
    if (gguf_has(gguf, "general.alignment")) {
        enum status status =
            gguf_get_uint(gguf, "general.alignment", 1, ALIGNMENT_MAX, &alignment, err);
        if (status != STATUS_OK)
            return status;
        if ((alignment & (alignment - 1)) != 0)
            return error_set(err, STATUS_CORRUPT, "key 'general.alignment': no power of two");
    }
    // Without tensors the file may end right here, unpadded.
    gguf->data_start = (gguf->at + alignment - 1) / alignment * alignment;
    enum status status = index_tensors(gguf, err);
    return status == STATUS_OK ? place_tensors(gguf, alignment, err) : status;
}

// ---- The whole ------------------------------------------------------------

static enum status take_start(struct gguf *gguf, uint64_t counts[2], struct error *err)
{
    char magic[4];
    if (gguf->source.size < sizeof magic)
        return error_set(err, STATUS_CORRUPT, "not a GGUF file: too short");
    enum status status = take(gguf, magic, sizeof magic, err);
    if (status != STATUS_OK)
        return status;
    if (memcmp(magic, "GGUF", sizeof magic) != 0)
        return error_set(err, STATUS_CORRUPT, "not a GGUF file: it does not begin with 'GGUF'");

    status = take(gguf, &gguf->version, sizeof gguf->version, err);
    if (status != STATUS_OK)
        return status;
    uint32_t swapped = __builtin_bswap32(gguf->version);
    if (swapped >= 1 && swapped <= VERSION_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "big-endian GGUF is not supported (convert the file)");
    if (gguf->version < VERSION_MIN || gguf->version > VERSION_MAX)
        return error_set(err, STATUS_UNSUPPORTED,
                         "GGUF version %" PRIu32 " is not supported, only %d and %d (convert the "
                         "file)",
                         gguf->version, VERSION_MIN, VERSION_MAX);
    return take(gguf, counts, 2 * sizeof counts[0], err);
}

enum status gguf_read(struct gguf **out, const struct byte_source *source, struct error *err)
{
    struct gguf *gguf = calloc(1, sizeof *gguf);
    if (!gguf)
        return error_set(err, STATUS_NOMEM, "no memory for the header");
    gguf->source = *source;

    uint64_t counts[2] = {0, 0}; // tensors, keys
    enum status status = take_start(gguf, counts, err);
    if (status == STATUS_OK)
        status = take_entries(gguf, counts[1], err);
    if (status == STATUS_OK)
        status = take_tensors(gguf, counts[0], err);
    if (status != STATUS_OK) {
        gguf_free(gguf);
        return status;
    }
    *out = gguf;
    return STATUS_OK;
}
