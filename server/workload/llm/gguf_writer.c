#include "server/workload/llm/gguf_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "GGUF numbers are written as they lie in memory");

enum { ALIGNMENT = 32, DIMENSIONS_MATRIX = 2, BUFFER_SIZE = 1 << 20 };

// A growing buffer.
struct bytes {
    unsigned char *data;
    size_t size, capacity;
};

struct gguf_writer {
    char *path, *temporary;
    FILE *file;
    struct bytes keys, tensors;
    uint64_t key_count, tensor_count;
    uint64_t data_size;     // of the tensors listed so far, padded
    uint64_t *tensor_sizes; // of each, unpadded
    size_t tensor_sizes_capacity;
    bool header_written;
    size_t current; // the tensor whose data is next
    uint64_t current_done;
    struct error error; // the first one; status STATUS_OK: none
};

static void set_failed(struct gguf_writer *writer, enum status status, const char *what)
{
    if (writer->error.status == STATUS_OK)
        (void)error_set(&writer->error, status, "%s: cannot write: %s", writer->path, what);
}

// ---- Bytes ----------------------------------------------------------------

static void append(struct gguf_writer *writer, struct bytes *bytes, const void *data, size_t size)
{
    if (writer->error.status != STATUS_OK)
        return;
    if (!ARRAY_RESERVE(&bytes->data, &bytes->capacity, bytes->size + size)) {
        set_failed(writer, STATUS_NOMEM, "out of memory");
        return;
    }
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static void append_text(struct gguf_writer *writer, struct bytes *bytes, const char *text)
{
    uint64_t size = strlen(text);
    append(writer, bytes, &size, sizeof size);
    append(writer, bytes, text, (size_t)size);
}

static void write_out(struct gguf_writer *writer, const void *data, size_t size)
{
    if (writer->error.status == STATUS_OK && size > 0 &&
        fwrite(data, 1, size, writer->file) != size)
        set_failed(writer, STATUS_IO, strerror(errno));
}

static void write_padding(struct gguf_writer *writer, uint64_t written)
{
    static const unsigned char zeroes[ALIGNMENT];
    write_out(writer, zeroes, (size_t)(-written % ALIGNMENT));
}

// ---- Opening --------------------------------------------------------------

static void writer_free(struct gguf_writer *writer)
{
    if (writer->file)
        (void)fclose(writer->file);
    free(writer->path);
    free(writer->temporary);
    free(writer->keys.data);
    free(writer->tensors.data);
    free(writer->tensor_sizes);
    free(writer);
}

// Creates a file with a unique name and the user's default permissions.
static FILE *open_temporary(char *temporary)
{
    int fd = mkstemp(temporary);
    if (fd < 0)
        return NULL;
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        (void)close(fd);
        (void)unlink(temporary);
        return NULL;
    }
    (void)setvbuf(file, NULL, _IOFBF, BUFFER_SIZE);
    return file;
}

enum status gguf_writer_open(struct gguf_writer **out, const char *path, struct error *err)
{
    struct gguf_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err, path);
    writer->path = strdup(path);
    if (!writer->path || asprintf(&writer->temporary, "%s.XXXXXX", path) < 0) {
        writer->temporary = NULL;
        writer_free(writer);
        return error_no_memory(err, path);
    }
    writer->file = open_temporary(writer->temporary);
    if (!writer->file) {
        enum status status =
            error_set(err, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
        writer_free(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

// ---- Keys -----------------------------------------------------------------

static void start_key(struct gguf_writer *writer, const char *key, enum gguf_value_type type)
{
    uint32_t number = type;
    append_text(writer, &writer->keys, key);
    append(writer, &writer->keys, &number, sizeof number);
    writer->key_count++;
}

void gguf_writer_text(struct gguf_writer *writer, const char *key, const char *value)
{
    start_key(writer, key, GGUF_STRING);
    append_text(writer, &writer->keys, value);
}

void gguf_writer_uint(struct gguf_writer *writer, const char *key, uint32_t value)
{
    start_key(writer, key, GGUF_UINT32);
    append(writer, &writer->keys, &value, sizeof value);
}

void gguf_writer_float(struct gguf_writer *writer, const char *key, float value)
{
    start_key(writer, key, GGUF_FLOAT32);
    append(writer, &writer->keys, &value, sizeof value);
}

void gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value)
{
    unsigned char byte = value;
    start_key(writer, key, GGUF_BOOL);
    append(writer, &writer->keys, &byte, sizeof byte);
}

static void start_array(struct gguf_writer *writer, const char *key, enum gguf_value_type type,
                        uint64_t count)
{
    uint32_t number = type;
    start_key(writer, key, GGUF_ARRAY);
    append(writer, &writer->keys, &number, sizeof number);
    append(writer, &writer->keys, &count, sizeof count);
}

void gguf_writer_array(struct gguf_writer *writer, const char *key, enum gguf_value_type type,
                       const void *elements, size_t count)
{
    start_array(writer, key, type, count);
    append(writer, &writer->keys, elements, count * gguf_value_type_size(type));
}

void gguf_writer_texts(struct gguf_writer *writer, const char *key, const char *const *texts,
                       size_t count)
{
    start_array(writer, key, GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        append_text(writer, &writer->keys, texts[i]);
}

// ---- Tensors --------------------------------------------------------------

static bool remember_size(struct gguf_writer *writer, uint64_t size)
{
    if (!ARRAY_RESERVE(&writer->tensor_sizes, &writer->tensor_sizes_capacity,
                       writer->tensor_count + 1)) {
        set_failed(writer, STATUS_NOMEM, "out of memory");
        return false;
    }
    writer->tensor_sizes[writer->tensor_count++] = size;
    return true;
}

void gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t type, uint64_t rows,
                        uint64_t columns)
{
    uint64_t size = rows * columns * gguf_tensor_type(type)->block_bytes;
    if (!remember_size(writer, size))
        return;
    bool vector = rows == 1;
    uint32_t dimensions = vector ? 1 : DIMENSIONS_MATRIX;
    const uint64_t shape[DIMENSIONS_MATRIX] = {columns, rows};
    append_text(writer, &writer->tensors, name);
    append(writer, &writer->tensors, &dimensions, sizeof dimensions);
    append(writer, &writer->tensors, shape, dimensions * sizeof shape[0]);
    append(writer, &writer->tensors, &type, sizeof type);
    append(writer, &writer->tensors, &writer->data_size, sizeof writer->data_size);
    writer->data_size += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void write_header(struct gguf_writer *writer)
{
    static const char magic[4] = {'G', 'G', 'U', 'F'};
    const uint32_t version = 3;
    const uint64_t counts[2] = {writer->tensor_count, writer->key_count};
    write_out(writer, magic, sizeof magic);
    write_out(writer, &version, sizeof version);
    write_out(writer, counts, sizeof counts);
    write_out(writer, writer->keys.data, writer->keys.size);
    write_out(writer, writer->tensors.data, writer->tensors.size);
    write_padding(writer, sizeof magic + sizeof version + sizeof counts + writer->keys.size +
                              writer->tensors.size);
    writer->header_written = true;
}

void gguf_writer_data(struct gguf_writer *writer, const void *data, size_t size)
{
    if (!writer->header_written)
        write_header(writer);
    if (writer->current >= writer->tensor_count ||
        size > writer->tensor_sizes[writer->current] - writer->current_done) {
        set_failed(writer, STATUS_INVALID, "more data than tensors");
        return;
    }
    write_out(writer, data, size);
    writer->current_done += size;
    if (writer->current_done == writer->tensor_sizes[writer->current]) {
        write_padding(writer, writer->current_done);
        writer->current++;
        writer->current_done = 0;
    }
}

// ---- The end --------------------------------------------------------------

enum status gguf_writer_commit(struct gguf_writer *writer, struct error *err)
{
    if (!writer->header_written)
        write_header(writer);
    if (writer->current < writer->tensor_count)
        set_failed(writer, STATUS_INVALID, "data of tensors is missing");
    if (writer->error.status == STATUS_OK && fflush(writer->file) != 0)
        set_failed(writer, STATUS_IO, strerror(errno));
    if (writer->error.status == STATUS_OK && rename(writer->temporary, writer->path) != 0)
        set_failed(writer, STATUS_IO, strerror(errno));

    struct error first = writer->error;
    if (first.status == STATUS_OK) {
        writer_free(writer);
        return STATUS_OK;
    }
    gguf_writer_abandon(writer);
    return error_set(err, first.status, "%s", first.text);
}

void gguf_writer_abandon(struct gguf_writer *writer)
{
    if (!writer)
        return;
    (void)unlink(writer->temporary);
    writer_free(writer);
}
