// Split models: files NAME-00001-of-00003.gguf to NAME-00003-of-00003.gguf.  The first has the keys
// of the model, each has some of its tensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "server/workload/llm/gguf.h"

static const char suffix[] = ".gguf";

enum { PART_SUFFIX_SIZE = sizeof "-00001-of-00003.gguf" - 1, NUMBER_MAX = 99999 };

static void part_suffix(char out[PART_SUFFIX_SIZE + 1], unsigned int number, unsigned int count)
{
    (void)snprintf(out, PART_SUFFIX_SIZE + 1, "-%05u-of-%05u%s", number % (NUMBER_MAX + 1),
                   count % (NUMBER_MAX + 1), suffix);
}

// Parses the end of a part's name.  False if `path` is not named like a part.
static bool parse_suffix(const char *path, unsigned int *number, unsigned int *count)
{
    char again[PART_SUFFIX_SIZE + 1];
    const size_t size = strlen(path);
    if (size <= PART_SUFFIX_SIZE)
        return false;
    path += size - PART_SUFFIX_SIZE;
    if (sscanf(path, "-%5u-of-%5u", number, count) != 2)
        return false;
    part_suffix(again, *number, *count);
    return strcmp(again, path) == 0 && *number >= 1 && *number <= *count;
}

size_t gguf_name_size(const char *path)
{
    unsigned int number, count;
    const size_t size = strlen(path), end = strlen(suffix);
    if (parse_suffix(path, &number, &count))
        return size - PART_SUFFIX_SIZE;
    return size > end && strcmp(path + size - end, suffix) == 0 ? size - end : size;
}

enum status gguf_name_error(struct error *err, enum status status, const char *path)
{
    unsigned int number, count;
    // Behind the stem a part's name goes on with "-0".
    if (parse_suffix(path, &number, &count) && err &&
        strncmp(err->text, path, strlen(path) - PART_SUFFIX_SIZE + 2) == 0)
        return status;
    return error_prefix(err, status, "%s", path);
}

static enum status check_key(const struct gguf *gguf, const char *key, uint64_t expected,
                             const char *says, struct error *err)
{
    uint64_t value;
    enum status status = gguf_get_uint(gguf, key, 0, INT32_MAX, &value, err);
    if (status == STATUS_OK && value != expected)
        status = error_set(err, STATUS_CORRUPT, "key '%s' is %u, but %s %u", key,
                           (unsigned int)value, says, (unsigned int)expected);
    return status;
}

// Reads the header of part `index` of `count`.  `err` begins with its path.
static enum status read_header(struct gguf **out, const struct byte_source *part, size_t index,
                               size_t count, bool (*cancelled)(void), struct error *err)
{
    struct gguf *gguf = NULL;
    enum status status = gguf_read(&gguf, part, cancelled, err);
    if (status == STATUS_OK && !gguf_has(gguf, "split.count"))
        status = error_set(err, STATUS_NOT_FOUND,
                           "key 'split.count' is missing, but its name says part %zu of %zu (if it "
                           "is a whole model, give it another name)",
                           index + 1, count);
    if (status == STATUS_OK)
        status = check_key(gguf, "split.count", count, "its name says", err);
    if (status == STATUS_OK)
        status = check_key(gguf, "split.no", index, "its name stands for", err);
    if (status == STATUS_OK) {
        *out = gguf;
        return status;
    }
    gguf_free(gguf);
    return error_prefix(err, status, "%s", part->name);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Opens one part into `*part`.  `err` begins with its path.
static enum status open_part(struct byte_source *part, const char *path, struct error *err)
{
    enum status status = byte_source_open(part, path, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "%s", path);
    part->name = strdup(path);
    return part->name ? STATUS_OK : error_no_memory(err, "model");
}

static enum status open_parts(struct byte_source *out, char *path, unsigned int count,
                              struct error *err)
{
    struct byte_source *parts = NULL;
    size_t capacity = 0;
    enum status status = STATUS_OK;
    unsigned int opened = 0;
    while (opened < count && status == STATUS_OK) {
        part_suffix(path + strlen(path) - PART_SUFFIX_SIZE, opened + 1, count);
        if (!ARRAY_RESERVE(&parts, &capacity, opened + 1)) {
            status = error_no_memory(err, "model");
            break;
        }
        parts[opened] = (struct byte_source){0};
        status = open_part(&parts[opened++], path, err);
    }
    // A part may be missing because the first is a whole model that is named like a part.
    struct gguf *first = NULL;
    if (status != STATUS_OK && opened > 1) {
        enum status header = read_header(&first, &parts[0], 0, count, NULL, err);
        gguf_free(first);
        status = header == STATUS_OK ? status : header;
    }
    byte_source_join(out, parts, opened);
    if (status != STATUS_OK)
        byte_source_close(out);
    return status;
}

enum status gguf_open(struct byte_source *out, const char *path, struct error *err)
{
    unsigned int number, count;
    if (!parse_suffix(path, &number, &count) || count == 1)
        return byte_source_open(out, path, err);
    char *copy = strdup(path);
    if (!copy)
        return error_no_memory(err, "model");
    enum status status;
    if (number == 1) {
        status = open_parts(out, copy, count, err);
    } else {
        part_suffix(copy + strlen(copy) - PART_SUFFIX_SIZE, 1, count);
        status = error_set(err, STATUS_UNSUPPORTED, "part %u of %u of a model (give the first, %s)",
                           number, count, name_of(copy));
    }
    free(copy);
    return status;
}

// A file that is opened alone must be the whole model.  Programs that join parts leave a count of
// 0.
static enum status check_whole(const struct gguf *gguf, struct error *err)
{
    uint64_t number = 0, count = 0;
    enum status status = STATUS_OK;
    if (gguf_has(gguf, "split.count"))
        status = gguf_get_uint(gguf, "split.count", 0, NUMBER_MAX, &count, err);
    if (status != STATUS_OK || count <= 1)
        return status;
    status = gguf_get_uint(gguf, "split.no", 0, count - 1, &number, err);
    char name[PART_SUFFIX_SIZE + 1];
    part_suffix(name, (unsigned int)number + 1, (unsigned int)count);
    if (status == STATUS_OK)
        status = error_set(err, STATUS_CORRUPT,
                           "key 'split.no': part %u of %u of a model (name it "
                           "NAME%s, and give the first)",
                           (unsigned int)number + 1, (unsigned int)count, name);
    return status;
}

// Reads part `index` and appends it to `*whole`; the first becomes `*whole`.
static enum status read_part(struct gguf **whole, const struct byte_source *source, size_t index,
                             uint64_t base, bool (*cancelled)(void), struct error *err)
{
    struct gguf *part = NULL;
    enum status status =
        read_header(&part, &source->parts[index], index, source->part_count, cancelled, err);
    if (status != STATUS_OK)
        return status;
    if (!*whole) {
        *whole = part;
        return STATUS_OK;
    }
    status = gguf_append(*whole, part, base, err);
    return status == STATUS_OK ? status
                               : error_prefix(err, status, "%s", source->parts[index].name);
}

enum status gguf_read_all(struct gguf **out, const struct byte_source *source,
                          bool (*cancelled)(void), struct error *err)
{
    struct gguf *whole = NULL;
    uint64_t base = 0;
    enum status status = STATUS_OK;
    if (source->part_count == 0) {
        status = gguf_read(&whole, source, cancelled, err);
        if (status == STATUS_OK)
            status = check_whole(whole, err);
    }
    for (size_t i = 0; i < source->part_count && status == STATUS_OK; i++) {
        status = read_part(&whole, source, i, base, cancelled, err);
        base += source->parts[i].size;
    }
    if (status == STATUS_OK && source->part_count > 0)
        status = check_key(whole, "split.tensors.count", gguf_tensor_count(whole),
                           "the number of tensors in all parts is", err);
    if (status != STATUS_OK) {
        gguf_free(whole);
        return status;
    }
    *out = whole;
    return STATUS_OK;
}
