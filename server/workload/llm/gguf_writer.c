#include "server/workload/llm/gguf_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/files.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "GGUF numbers are written as they lie in memory");

enum { ALIGNMENT = 32, DIMENSIONS_MATRIX = 2 };

struct gguf_writer {
    struct output output;
    uint64_t tensor_count, key_count; // written into the header at the end
    uint64_t size;                    // bytes written so far
    uint64_t data_size;               // of the tensors listed so far, padded
    uint64_t data_missing;            // bytes of listed tensors that have not been written
    struct error error;               // the first one; status STATUS_OK: none
};

static void set_failed(struct gguf_writer *writer)
{
    if (writer->error.status == STATUS_OK)
        (void)error_set(&writer->error, STATUS_IO, "%s: cannot write: %s", writer->output.path,
                        strerror(errno));
}

static void put(struct gguf_writer *writer, const void *data, size_t size)
{
    if (writer->error.status == STATUS_OK && size > 0 &&
        fwrite(data, 1, size, writer->output.out) != size)
        set_failed(writer);
    writer->size += size;
}

static void put_u32(struct gguf_writer *writer, uint32_t number)
{
    put(writer, &number, sizeof number);
}

static void put_u64(struct gguf_writer *writer, uint64_t number)
{
    put(writer, &number, sizeof number);
}

static void put_text(struct gguf_writer *writer, const char *text)
{
    size_t size = strlen(text);
    put_u64(writer, size);
    put(writer, text, size);
}

static void put_header(struct gguf_writer *writer)
{
    put(writer, "GGUF", 4);
    put_u32(writer, 3); // the version
    put_u64(writer, writer->tensor_count);
    put_u64(writer, writer->key_count);
}

enum status gguf_writer_open(struct gguf_writer **out, const char *path, struct error *err)
{
    struct gguf_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err, path);
    enum status status = output_open(&writer->output, path, err);
    if (status != STATUS_OK) {
        free(writer);
        return status;
    }
    put_header(writer); // again at the end, when the counts are known
    *out = writer;
    return STATUS_OK;
}

static void start_key(struct gguf_writer *writer, const char *key, enum gguf_value_type type)
{
    put_text(writer, key);
    put_u32(writer, type);
    writer->key_count++;
}

void gguf_writer_text(struct gguf_writer *writer, const char *key, const char *value)
{
    start_key(writer, key, GGUF_STRING);
    put_text(writer, value);
}

void gguf_writer_uint(struct gguf_writer *writer, const char *key, uint32_t value)
{
    start_key(writer, key, GGUF_UINT32);
    put_u32(writer, value);
}

void gguf_writer_float(struct gguf_writer *writer, const char *key, float value)
{
    start_key(writer, key, GGUF_FLOAT32);
    put(writer, &value, sizeof value);
}

void gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value)
{
    unsigned char byte = value;
    start_key(writer, key, GGUF_BOOL);
    put(writer, &byte, sizeof byte);
}

static void start_array(struct gguf_writer *writer, const char *key, enum gguf_value_type type,
                        uint64_t count)
{
    start_key(writer, key, GGUF_ARRAY);
    put_u32(writer, type);
    put_u64(writer, count);
}

void gguf_writer_array(struct gguf_writer *writer, const char *key, enum gguf_value_type type,
                       const void *elements, size_t count)
{
    start_array(writer, key, type, count);
    put(writer, elements, count * gguf_value_type_size(type));
}

void gguf_writer_texts(struct gguf_writer *writer, const char *key, const char *const *texts,
                       size_t count)
{
    start_array(writer, key, GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        put_text(writer, texts[i]);
}

void gguf_writer_tensor_shape(struct gguf_writer *writer, const char *name, uint32_t type,
                              const uint64_t *shape, uint32_t dimensions)
{
    const struct gguf_tensor_type *format = gguf_tensor_type(type);
    uint64_t size = shape[0] / format->block_elements * format->block_bytes;
    for (uint32_t i = 1; i < dimensions; i++)
        size *= shape[i];
    put_text(writer, name);
    put_u32(writer, dimensions);
    put(writer, shape, dimensions * sizeof shape[0]);
    put_u32(writer, type);
    put_u64(writer, writer->data_size);
    writer->data_size += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    writer->data_missing += size;
    writer->tensor_count++;
}

void gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t type, uint64_t rows,
                        uint64_t columns)
{
    const uint64_t shape[DIMENSIONS_MATRIX] = {columns, rows};
    gguf_writer_tensor_shape(writer, name, type, shape, rows == 1 ? 1 : DIMENSIONS_MATRIX);
}

void gguf_writer_data(struct gguf_writer *writer, const void *data, size_t size)
{
    assert(size <= writer->data_missing);
    put(writer, data, size);
    writer->data_missing -= size;
}

bool gguf_writer_failed(const struct gguf_writer *writer)
{
    return writer->error.status != STATUS_OK;
}

void gguf_writer_align(struct gguf_writer *writer)
{
    static const unsigned char zeroes[ALIGNMENT];
    put(writer, zeroes, (size_t)(-writer->size % ALIGNMENT));
}

enum status gguf_writer_close(struct gguf_writer *writer, enum status status, struct error *err)
{
    gguf_writer_align(writer); // the header, where there is no tensor
    assert(status != STATUS_OK || writer->data_missing == 0 || gguf_writer_failed(writer));
    if (writer->error.status == STATUS_OK && fseek(writer->output.out, 0, SEEK_SET) != 0)
        set_failed(writer);
    put_header(writer);
    if (status == STATUS_OK && writer->error.status != STATUS_OK)
        status = error_set(err, writer->error.status, "%s", writer->error.text);
    status = output_close(&writer->output, status, err);
    free(writer);
    return status;
}
