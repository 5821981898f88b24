#include "server/workload/llm/llama_weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"

enum {
    NAME_SIZE = 64,
    SHOWN_SIZE = 80,
};

// The extents a tensor of a llama model can have.
enum extent { ONE, DIM, FF, QUERY, KEY_VALUE, VOCABULARY, EXTENT_COUNT };

// One line per tensor: its name in the file, its member in the struct, its shape.
struct weight_line {
    const char *name;
    size_t place;
    enum extent rows, columns;
    bool optional;
};

static const struct weight_line model_lines[] = {
    {"token_embd.weight", offsetof(struct llama_weights, embedding), VOCABULARY, DIM, false},
    {"output_norm.weight", offsetof(struct llama_weights, output_norm), ONE, DIM, false},
    {"output.weight", offsetof(struct llama_weights, output), VOCABULARY, DIM, true},
};

static const struct weight_line layer_lines[] = {
    {"attn_norm.weight", offsetof(struct llama_layer, attention_norm), ONE, DIM, false},
    {"attn_q.weight", offsetof(struct llama_layer, query), QUERY, DIM, false},
    {"attn_k.weight", offsetof(struct llama_layer, key), KEY_VALUE, DIM, false},
    {"attn_v.weight", offsetof(struct llama_layer, value), KEY_VALUE, DIM, false},
    {"attn_output.weight", offsetof(struct llama_layer, attention_output), DIM, QUERY, false},
    {"ffn_norm.weight", offsetof(struct llama_layer, ffn_norm), ONE, DIM, false},
    {"ffn_gate.weight", offsetof(struct llama_layer, gate), FF, DIM, false},
    {"ffn_up.weight", offsetof(struct llama_layer, up), FF, DIM, false},
    {"ffn_down.weight", offsetof(struct llama_layer, down), DIM, FF, false},
};

enum {
    MODEL_LINES = sizeof model_lines / sizeof model_lines[0],
    LAYER_LINES = sizeof layer_lines / sizeof layer_lines[0],
};

struct loader {
    struct device *device;
    const struct gguf *gguf;
    struct transfer *transfer; // of the tensors allocated so far
    size_t extents[EXTENT_COUNT];
};

static struct tensor *place_of(void *structure, const struct weight_line *line)
{
    return (struct tensor *)((unsigned char *)structure + line->place);
}

// ---- One tensor -----------------------------------------------------------

static enum status tensor_type_of(const struct gguf_tensor *from, const struct weight_line *line,
                                  enum tensor_type *type, const char *name, struct error *err)
{
    if (from->type->number == GGUF_TENSOR_F32) {
        *type = TENSOR_F32;
        return STATUS_OK;
    }
    if (from->type->number == GGUF_TENSOR_F16 && line->rows != ONE) {
        *type = TENSOR_F16;
        return STATUS_OK;
    }
    return error_set(err, STATUS_UNSUPPORTED,
                     "tensor '%s' is of type %s: only %s supported yet (convert the file)", name,
                     from->type->name, line->rows == ONE ? "F32 is" : "F32 and F16 are");
}

// Allocates a tensor and adds its bytes to the transfer.
static enum status load_tensor(const struct loader *loader, const char *name,
                               const struct weight_line *line, struct tensor *out,
                               struct error *err)
{
    const struct gguf_tensor *from = gguf_find_tensor(loader->gguf, name);
    if (!from && line->optional)
        return STATUS_OK;
    if (!from)
        return error_set(err, STATUS_NOT_FOUND, "tensor '%s' is missing", name);

    size_t rows = loader->extents[line->rows];
    size_t columns = loader->extents[line->columns];
    if (from->shape[0] != columns || from->shape[1] != rows || from->shape[2] != 1 ||
        from->shape[3] != 1)
        return error_set(
            err, STATUS_CORRUPT, "tensor '%s' is %llu x %llu, but the keys ask for %zu x %zu", name,
            (unsigned long long)from->shape[0], (unsigned long long)from->shape[1], columns, rows);
    enum tensor_type type = TENSOR_F32;
    enum status status = tensor_type_of(from, line, &type, name, err);
    if (status != STATUS_OK)
        return status;
    status = device_tensor_new(loader->device, out, type, rows, columns, err);
    if (status == STATUS_OK)
        status = transfer_add(loader->transfer, name, from->offset, from->bytes, out->data, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "tensor '%s'", name);
}

// ---- All tensors ----------------------------------------------------------

static bool name_is(const struct gguf_text *text, const char *name)
{
    return text->size == strlen(name) && memcmp(text->data, name, text->size) == 0;
}

static bool is_known(const struct gguf_text *text, size_t layers)
{
    for (size_t i = 0; i < MODEL_LINES; i++)
        if (name_is(text, model_lines[i].name))
            return true;
    char name[NAME_SIZE];
    if (text->size >= sizeof name)
        return false;
    memcpy(name, text->data, text->size);
    name[text->size] = '\0';
    unsigned int layer;
    int end = 0;
    if (sscanf(name, "blk.%5u.%n", &layer, &end) != 1 || end == 0 || layer >= layers)
        return false;
    for (size_t i = 0; i < LAYER_LINES; i++)
        if (strcmp(name + end, layer_lines[i].name) == 0)
            return true;
    return false;
}

// An unexpected tensor means another model architecture: ignoring it would silently give
// wrong answers.
static enum status refuse_unknown(const struct loader *loader, size_t layers, struct error *err)
{
    for (size_t i = 0; i < gguf_tensor_count(loader->gguf); i++) {
        const struct gguf_text *name = &gguf_tensor_at(loader->gguf, i)->name;
        char shown[SHOWN_SIZE];
        if (!is_known(name, layers))
            return error_set(err, STATUS_UNSUPPORTED,
                             "tensor '%s' belongs to no llama model of %zu layers known here",
                             text_escape(shown, sizeof shown, name->data, name->size), layers);
    }
    return STATUS_OK;
}

static enum status load_all(const struct loader *loader, struct llama_weights *weights,
                            size_t layers, struct error *err)
{
    enum status status = refuse_unknown(loader, layers, err);
    for (size_t i = 0; i < MODEL_LINES && status == STATUS_OK; i++)
        status = load_tensor(loader, model_lines[i].name, &model_lines[i],
                             place_of(weights, &model_lines[i]), err);
    for (size_t layer = 0; layer < layers && status == STATUS_OK; layer++) {
        // Grows layer by layer: a file that claims layers it does not have costs no memory.
        struct llama_layer *larger =
            reallocarray(weights->layers, layer + 1, sizeof *weights->layers);
        if (!larger)
            return error_no_memory(err, "model");
        weights->layers = larger;
        memset(&weights->layers[layer], 0, sizeof weights->layers[layer]);
        weights->layer_count = layer + 1;
        for (size_t i = 0; i < LAYER_LINES && status == STATUS_OK; i++) {
            char name[NAME_SIZE];
            (void)snprintf(name, sizeof name, "blk.%zu.%s", layer, layer_lines[i].name);
            status = load_tensor(loader, name, &layer_lines[i],
                                 place_of(&weights->layers[layer], &layer_lines[i]), err);
        }
    }
    return status;
}

enum status llama_weights_load(struct llama_weights *weights, struct device *device,
                               const struct byte_source *source, const struct gguf *gguf,
                               const struct llama_config *config, bool (*cancelled)(void),
                               struct transfer_figures *figures, struct error *err)
{
    memset(weights, 0, sizeof *weights);
    struct loader loader = {
        .device = device,
        .gguf = gguf,
        .extents = {[ONE] = 1,
                    [DIM] = config->dim,
                    [FF] = config->ff,
                    [QUERY] = config->heads * config->head_size,
                    [KEY_VALUE] = config->kv_heads * config->head_size,
                    [VOCABULARY] = config->vocabulary},
    };
    enum status status = transfer_new(&loader.transfer, err);
    if (status == STATUS_OK)
        status = load_all(&loader, weights, config->layers, err);
    // Allocation zeroes tensors asynchronously, which must not overwrite the copied data.
    if (status == STATUS_OK)
        status = device_synchronize(device, err);
    if (status == STATUS_OK)
        status = transfer_run(loader.transfer, device, source, cancelled, figures, err);
    transfer_free(loader.transfer);
    if (status != STATUS_OK)
        llama_weights_free(weights, device);
    return status;
}

void llama_weights_free(struct llama_weights *weights, struct device *device)
{
    for (size_t i = 0; i < MODEL_LINES; i++)
        device_tensor_free(device, place_of(weights, &model_lines[i]));
    for (size_t layer = 0; layer < weights->layer_count; layer++)
        for (size_t i = 0; i < LAYER_LINES; i++)
            device_tensor_free(device, place_of(&weights->layers[layer], &layer_lines[i]));
    free(weights->layers);
    memset(weights, 0, sizeof *weights);
}

void llama_weights_each(const struct llama_weights *weights,
                        void (*visit)(void *context, const struct tensor *tensor), void *context)
{
    struct llama_weights copy = *weights;
    for (size_t i = 0; i < MODEL_LINES; i++)
        if (place_of(&copy, &model_lines[i])->data)
            visit(context, place_of(&copy, &model_lines[i]));
    for (size_t layer = 0; layer < copy.layer_count; layer++)
        for (size_t i = 0; i < LAYER_LINES; i++)
            visit(context, place_of(&copy.layers[layer], &layer_lines[i]));
}
