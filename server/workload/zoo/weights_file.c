#include "server/workload/zoo/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "server/device/tensor_types.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/gguf_writer.h"

enum { SHAPE_TEXT_SIZE = 4 * 21 }; // four numbers of 64 bits

// GGUF has the fastest dimension first; dimensions that are left out are 1.
static void file_shape(uint64_t shape[GGUF_DIMENSIONS_MAX], const struct zoo_tensor *tensor)
{
    for (unsigned int i = 0; i < GGUF_DIMENSIONS_MAX; i++)
        shape[i] = i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static const char *shape_text(char text[SHAPE_TEXT_SIZE], const uint64_t *shape)
{
    (void)snprintf(text, SHAPE_TEXT_SIZE, "%llux%llux%llux%llu", (unsigned long long)shape[3],
                   (unsigned long long)shape[2], (unsigned long long)shape[1],
                   (unsigned long long)shape[0]);
    return text;
}

static enum status check_tensor(const struct gguf_tensor *found, const struct zoo_tensor *tensor,
                                const struct zoo_model *model, enum tensor_type *type,
                                struct error *err)
{
    char one[SHAPE_TEXT_SIZE], two[SHAPE_TEXT_SIZE];
    uint64_t shape[GGUF_DIMENSIONS_MAX];
    if (!found)
        return error_set(err, STATUS_CORRUPT, "tensor '%s' of the model %s is missing",
                         tensor->name, model->name);
    file_shape(shape, tensor);
    if (memcmp(shape, found->shape, sizeof shape) != 0)
        return error_set(err, STATUS_CORRUPT, "tensor '%s' has the shape %s, in the model %s %s",
                         tensor->name, shape_text(one, found->shape), model->name,
                         shape_text(two, shape));
    for (*type = 0; *type < TENSOR_TYPE_COUNT; (*type)++)
        if (tensor_formats[*type].number == found->type->number)
            return STATUS_OK;
    return error_set(err, STATUS_UNSUPPORTED, "tensor '%s': type %s", tensor->name,
                     found->type->name);
}

static enum status load_tensor(float *values, const struct zoo_tensor *tensor,
                               const struct byte_source *source, const struct gguf_tensor *found,
                               enum tensor_type type, struct error *err)
{
    void *bytes = malloc(found->bytes);
    if (!bytes)
        return error_no_memory(err, tensor->name);
    enum status status = byte_source_read(source, found->offset, bytes, found->bytes, err);
    if (status == STATUS_OK)
        tensor_widen(type, values, bytes, tensor->elements);
    free(bytes);
    for (size_t i = 0; status == STATUS_OK && i < tensor->elements; i++)
        if (!isfinite(values[i]))
            status = error_set(err, STATUS_CORRUPT, "tensor '%s': element %zu is %f", tensor->name,
                               i, (double)values[i]);
    return status;
}

// A tensor of the file that no layer has.
static enum status check_left_over(const struct gguf *gguf, const struct zoo_model *model,
                                   struct error *err)
{
    for (size_t i = 0; i < gguf_tensor_count(gguf); i++) {
        const struct gguf_text *name = &gguf_tensor_at(gguf, i)->name;
        size_t t = 0;
        while (t < model->tensor_count && !gguf_text_is(name, model->tensors[t].name))
            t++;
        char text[ZOO_NAME_SIZE];
        if (t == model->tensor_count)
            return error_set(err, STATUS_CORRUPT, "tensor '%s' is of no layer of the model %s",
                             text_escape(text, sizeof text, name->data, name->size), model->name);
    }
    return STATUS_OK;
}

static enum status load_all(struct zoo_weights *out, const struct zoo_model *model,
                            const struct byte_source *source, const struct gguf *gguf,
                            bool (*cancelled)(void), struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < model->tensor_count; i++) {
        const struct zoo_tensor *tensor = &model->tensors[i];
        const struct gguf_tensor *found = gguf_find_tensor(gguf, tensor->name);
        enum tensor_type type = TENSOR_TYPE_COUNT;
        if (cancelled && cancelled())
            return error_set(err, STATUS_CANCELLED, "loading was cancelled");
        status = check_tensor(found, tensor, model, &type, err);
        if (status == STATUS_OK)
            status = load_tensor(out->values[i], tensor, source, found, type, err);
    }
    return status == STATUS_OK ? check_left_over(gguf, model, err) : status;
}

enum status zoo_weights_load(struct zoo_weights *out, const struct zoo_model *model,
                             const char *path, bool (*cancelled)(void), struct error *err)
{
    struct byte_source source = {0};
    struct gguf *gguf = NULL;
    *out = (struct zoo_weights){0};
    enum status status = gguf_open(&source, path, err);
    if (status != STATUS_OK)
        return gguf_name_error(err, status, path);
    status = gguf_read_all(&gguf, &source, cancelled, err);
    if (status == STATUS_OK)
        status = zoo_weights_new(out, model, err);
    if (status == STATUS_OK)
        status = load_all(out, model, &source, gguf, cancelled, err);
    if (status == STATUS_OK)
        status = byte_source_check_unchanged(&source, err);
    gguf_free(gguf);
    byte_source_close(&source);
    if (status != STATUS_OK) {
        zoo_weights_free(out);
        (void)gguf_name_error(err, status, path);
    }
    return status;
}

enum status zoo_weights_save(const struct zoo_weights *weights, const struct zoo_model *model,
                             const char *path, struct error *err)
{
    struct gguf_writer *writer = NULL;
    enum status status = gguf_writer_open(&writer, path, err);
    if (status != STATUS_OK)
        return status;
    gguf_writer_text(writer, "general.architecture", "inferstat-zoo");
    gguf_writer_text(writer, "general.name", model->name);
    gguf_writer_text(writer, "inferstat-zoo.text", model->text);
    for (size_t i = 0; i < model->tensor_count; i++) {
        uint64_t shape[GGUF_DIMENSIONS_MAX];
        file_shape(shape, &model->tensors[i]);
        gguf_writer_tensor_shape(writer, model->tensors[i].name, GGUF_TENSOR_F32, shape,
                                 model->tensors[i].rank);
    }
    gguf_writer_align(writer);
    for (size_t i = 0; i < model->tensor_count; i++) {
        gguf_writer_data(writer, weights->values[i], model->tensors[i].elements * sizeof(float));
        gguf_writer_align(writer);
    }
    return gguf_writer_close(writer, STATUS_OK, err);
}
