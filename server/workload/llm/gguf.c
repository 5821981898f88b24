#include "server/workload/llm/gguf_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gguf_compare_names(const void *a, size_t a_size, const void *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

void gguf_free(struct gguf *gguf)
{
    if (!gguf)
        return;
    free(gguf->header);
    free(gguf->entries);
    free(gguf->tensors);
    free(gguf->by_name);
    free(gguf);
}

uint32_t gguf_version(const struct gguf *gguf)
{
    return gguf->version;
}

static const struct gguf_entry *find(const struct gguf *gguf, const char *key)
{
    size_t size = strlen(key);
    size_t low = 0;
    size_t high = gguf->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gguf_entry *entry = &gguf->entries[middle];
        int order = gguf_compare_names(key, size, gguf->header + entry->name, entry->name_size);
        if (order == 0)
            return entry;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool gguf_has(const struct gguf *gguf, const char *key)
{
    return find(gguf, key) != NULL;
}

static enum status missing(const char *key, struct error *err)
{
    return error_set(err, STATUS_NOT_FOUND, "key '%s' is missing", key);
}

static enum status wrong_type(const char *key, const char *wanted, const struct gguf_entry *entry,
                              struct error *err)
{
    return error_set(
        err, STATUS_CORRUPT, "key '%s' should be %s, is %s%s", key, wanted,
        entry->type == GGUF_ARRAY ? "an array of " : "",
        gguf_value_type_name(entry->type == GGUF_ARRAY ? entry->element : entry->type));
}

// Reads an integer as sign and magnitude.  Returns false for other types.
static bool read_integer(const struct gguf *gguf, const struct gguf_entry *entry, bool *negative,
                         uint64_t *magnitude)
{
    uint64_t bits = 0;
    size_t size = gguf_value_type_size(entry->type);
    memcpy(&bits, gguf->header + entry->value, size < sizeof bits ? size : sizeof bits);
    bool is_signed = entry->type == GGUF_INT8 || entry->type == GGUF_INT16 ||
                     entry->type == GGUF_INT32 || entry->type == GGUF_INT64;
    bool is_unsigned = entry->type == GGUF_UINT8 || entry->type == GGUF_UINT16 ||
                       entry->type == GGUF_UINT32 || entry->type == GGUF_UINT64;
    *negative = is_signed && (bits >> (8 * size - 1) & 1U);
    *magnitude = bits;
    return is_signed || is_unsigned;
}

enum status gguf_get_uint(const struct gguf *gguf, const char *key, uint64_t minimum,
                          uint64_t maximum, uint64_t *out, struct error *err)
{
    const struct gguf_entry *entry = find(gguf, key);
    if (!entry)
        return missing(key, err);
    bool negative;
    uint64_t value;
    if (!read_integer(gguf, entry, &negative, &value))
        return wrong_type(key, "an integer", entry, err);
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
    const struct gguf_entry *entry = find(gguf, key);
    if (!entry)
        return missing(key, err);
    double value;
    float single;
    if (entry->type == GGUF_FLOAT32) {
        memcpy(&single, gguf->header + entry->value, sizeof single);
        value = (double)single;
    } else if (entry->type == GGUF_FLOAT64) {
        memcpy(&value, gguf->header + entry->value, sizeof value);
    } else {
        return wrong_type(key, "a float", entry, err);
    }
    if (!isfinite(value) || value < minimum || value > maximum)
        return error_set(err, STATUS_CORRUPT, "key '%s' is %g, outside %g..%g", key, value, minimum,
                         maximum);
    *out = value;
    return STATUS_OK;
}

enum status gguf_get_bool(const struct gguf *gguf, const char *key, bool *out, struct error *err)
{
    const struct gguf_entry *entry = find(gguf, key);
    if (!entry)
        return missing(key, err);
    if (entry->type != GGUF_BOOL)
        return wrong_type(key, "a bool", entry, err);
    unsigned char byte = gguf->header[entry->value];
    if (byte > 1)
        return error_set(err, STATUS_CORRUPT, "key '%s': a bool is %u", key, (unsigned int)byte);
    *out = byte == 1;
    return STATUS_OK;
}

static struct gguf_text text_at(const unsigned char *at)
{
    uint64_t size;
    memcpy(&size, at, sizeof size);
    return (struct gguf_text){.data = (const char *)at + sizeof size, .size = (size_t)size};
}

enum status gguf_get_text(const struct gguf *gguf, const char *key, struct gguf_text *out,
                          struct error *err)
{
    const struct gguf_entry *entry = find(gguf, key);
    if (!entry)
        return missing(key, err);
    if (entry->type != GGUF_STRING)
        return wrong_type(key, "a string", entry, err);
    *out = text_at(gguf->header + entry->value);
    return STATUS_OK;
}

enum status gguf_get_array(const struct gguf *gguf, const char *key, enum gguf_value_type type,
                           struct gguf_array *out, struct error *err)
{
    const struct gguf_entry *entry = find(gguf, key);
    if (!entry)
        return missing(key, err);
    if (entry->type != GGUF_ARRAY || entry->element != type) {
        char wanted[GGUF_SHOWN_SIZE];
        (void)snprintf(wanted, sizeof wanted, "an array of %s", gguf_value_type_name(type));
        return wrong_type(key, wanted, entry, err);
    }
    const unsigned char *data = gguf->header + entry->value;
    *out = (struct gguf_array){
        .type = type, .count = entry->count, .data = data, .end = data + entry->value_size};
    return STATUS_OK;
}

float gguf_array_float(const struct gguf_array *array, size_t index)
{
    float value;
    memcpy(&value, array->data + index * sizeof value, sizeof value);
    return value;
}

int32_t gguf_array_int(const struct gguf_array *array, size_t index)
{
    int32_t value;
    memcpy(&value, array->data + index * sizeof value, sizeof value);
    return value;
}

struct gguf_text gguf_array_next_text(struct gguf_array *array)
{
    struct gguf_text text = text_at(array->data);
    array->data += sizeof(uint64_t) + text.size;
    array->count--;
    return text;
}

size_t gguf_tensor_count(const struct gguf *gguf)
{
    return gguf->tensor_count;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t index)
{
    return &gguf->tensors[index].tensor;
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name)
{
    size_t size = strlen(name);
    size_t low = 0;
    size_t high = gguf->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct gguf_tensor *tensor = gguf->by_name[middle];
        int order = gguf_compare_names(name, size, tensor->name.data, tensor->name.size);
        if (order == 0)
            return tensor;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
