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

enum { MODEL_LINES = 3, LAYER_LINES = 9 };

static const struct weight_line model_lines[MODEL_LINES] = {
    {"token_embd.weight", offsetof(struct llama_weights, embedding), VOCABULARY, DIM, false},
    {"output_norm.weight", offsetof(struct llama_weights, output_norm), ONE, DIM, false},
    {"output.weight", offsetof(struct llama_weights, output), VOCABULARY, DIM, true},
};

static const struct weight_line layer_lines[LAYER_LINES] = {
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

// A tensor of a model: one of the model's lines, or one of a layer's.
struct weight {
    const struct weight_line *line;
    struct tensor *place;
    char name[NAME_SIZE]; // in the file
};

static size_t weight_count(const struct llama_weights *weights)
{
    return MODEL_LINES + weights->layer_count * LAYER_LINES;
}

static struct weight weight_at(struct llama_weights *weights, size_t index)
{
    struct weight weight;
    void *structure = weights;
    if (index < MODEL_LINES) {
        weight.line = &model_lines[index];
        (void)snprintf(weight.name, NAME_SIZE, "%s", weight.line->name);
    } else {
        const size_t layer = (index - MODEL_LINES) / LAYER_LINES;
        structure = &weights->layers[layer];
        weight.line = &layer_lines[(index - MODEL_LINES) % LAYER_LINES];
        (void)snprintf(weight.name, NAME_SIZE, "blk.%zu.%s", layer, weight.line->name);
    }
    weight.place = (struct tensor *)((unsigned char *)structure + weight.line->place);
    return weight;
}

struct loader {
    struct device *device;
    const struct gguf *gguf;
    struct llama_weights *weights;
    struct transfer_piece *pieces; // of the tensors allocated so far
    size_t piece_count;
    size_t extents[EXTENT_COUNT];
};

// ---- One tensor -----------------------------------------------------------

static enum status tensor_type_of(const struct gguf_tensor *from, const struct weight *weight,
                                  enum tensor_type *type, struct error *err)
{
    if (from->type->number == GGUF_TENSOR_F32) {
        *type = TENSOR_F32;
        return STATUS_OK;
    }
    if (from->type->number == GGUF_TENSOR_F16 && weight->line->rows != ONE) {
        *type = TENSOR_F16;
        return STATUS_OK;
    }
    return error_set(err, STATUS_UNSUPPORTED,
                     "tensor '%s' is of type %s: only %s supported yet (convert the file)",
                     weight->name, from->type->name,
                     weight->line->rows == ONE ? "F32 is" : "F32 and F16 are");
}

// Allocates a tensor and adds it to what is to be copied.
static enum status load_tensor(struct loader *loader, const struct weight *weight,
                               struct error *err)
{
    const char *name = weight->name;
    const struct gguf_tensor *from = gguf_find_tensor(loader->gguf, name);
    if (!from && weight->line->optional)
        return STATUS_OK;
    if (!from)
        return error_set(err, STATUS_NOT_FOUND, "tensor '%s' is missing", name);

    size_t rows = loader->extents[weight->line->rows];
    size_t columns = loader->extents[weight->line->columns];
    if (from->shape[0] != columns || from->shape[1] != rows || from->shape[2] != 1 ||
        from->shape[3] != 1)
        return error_set(
            err, STATUS_CORRUPT, "tensor '%s' is %llu x %llu, but the keys ask for %zu x %zu", name,
            (unsigned long long)from->shape[0], (unsigned long long)from->shape[1], columns, rows);
    enum tensor_type type = TENSOR_F32;
    enum status status = tensor_type_of(from, weight, &type, err);
    if (status != STATUS_OK)
        return status;
    status = device_tensor_new(loader->device, weight->place, type, rows, columns, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "tensor '%s'", name);
    loader->pieces[loader->piece_count++] =
        (struct transfer_piece){.from = from, .to = weight->place->data};
    loader->weights->elements[type] += (uint64_t)rows * columns;
    loader->weights->bytes += from->bytes;
    return STATUS_OK;
}

// ---- All tensors ----------------------------------------------------------

// An unexpected tensor means another model architecture: ignoring it would silently give
// wrong answers.
static enum status refuse_unknown(const struct loader *loader, struct error *err)
{
    const size_t count = gguf_tensor_count(loader->gguf);
    bool *known = calloc(count + 1, sizeof *known);
    if (!known)
        return error_no_memory(err, "model");
    for (size_t i = 0; i < weight_count(loader->weights); i++) {
        struct weight weight = weight_at(loader->weights, i);
        const struct gguf_tensor *tensor = gguf_find_tensor(loader->gguf, weight.name);
        if (tensor)
            known[tensor - gguf_tensor_at(loader->gguf, 0)] = true;
    }
    size_t first = 0;
    while (first < count && known[first])
        first++;
    free(known);
    if (first == count)
        return STATUS_OK;
    const struct gguf_text *name = &gguf_tensor_at(loader->gguf, first)->name;
    char shown[SHOWN_SIZE];
    return error_set(
        err, STATUS_UNSUPPORTED, "tensor '%s' belongs to no llama model of %zu layers known here",
        text_escape(shown, sizeof shown, name->data, name->size), loader->weights->layer_count);
}

static enum status load_all(struct loader *loader, struct error *err)
{
    enum status status = refuse_unknown(loader, err);
    for (size_t i = 0; i < weight_count(loader->weights) && status == STATUS_OK; i++) {
        struct weight weight = weight_at(loader->weights, i);
        status = load_tensor(loader, &weight, err);
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
        .weights = weights,
        .extents = {[ONE] = 1,
                    [DIM] = config->dim,
                    [FF] = config->ff,
                    [QUERY] = config->heads * config->head_size,
                    [KEY_VALUE] = config->kv_heads * config->head_size,
                    [VOCABULARY] = config->vocabulary},
    };
    weights->layers = calloc(config->layers, sizeof *weights->layers);
    weights->layer_count = weights->layers ? config->layers : 0;
    loader.pieces = calloc(weight_count(weights), sizeof *loader.pieces);
    enum status status = STATUS_OK;
    if (!weights->layers || !loader.pieces)
        status = error_no_memory(err, "model");
    if (status == STATUS_OK)
        status = load_all(&loader, err);
    // Allocation zeroes tensors asynchronously, which must not overwrite the copied data.
    if (status == STATUS_OK)
        status = device_synchronize(device, err);
    if (status == STATUS_OK)
        status = transfer_run(loader.pieces, loader.piece_count, device, source, cancelled, figures,
                              err);
    free(loader.pieces);
    if (status != STATUS_OK)
        llama_weights_free(weights, device);
    return status;
}

void llama_weights_free(struct llama_weights *weights, struct device *device)
{
    for (size_t i = 0; i < weight_count(weights); i++)
        device_tensor_free(device, weight_at(weights, i).place);
    free(weights->layers);
    memset(weights, 0, sizeof *weights);
}
