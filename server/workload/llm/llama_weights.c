#include "server/workload/llm/llama_weights.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "server/pipeline/tuning.h"

enum {
    NAME_SIZE = 64,
    SHOWN_SIZE = 80,
};

enum extent { ONE, DIM, FF, QUERY, KEY_VALUE, VOCABULARY, HEAD, TURNS, EXPERTS, EXTENT_COUNT };

// Which models have a tensor.  An expert's is one matrix per expert.
enum presence { ALWAYS, MAYBE, WITH_BIASES, WITH_HEAD_NORMS, DENSE, ROUTER, EXPERT };

// One line per tensor: its name in the file, its member in the struct, its shape, the models that
// have it.
struct weight_line {
    const char *name;
    size_t place;
    enum extent rows, columns;
    enum presence presence;
};

enum { MODEL_LINES = 4, LAYER_LINES = 18 };

static const struct weight_line model_lines[MODEL_LINES] = {
    {"token_embd.weight", offsetof(struct llama_weights, embedding), VOCABULARY, DIM, ALWAYS},
    {"output_norm.weight", offsetof(struct llama_weights, output_norm), ONE, DIM, ALWAYS},
    {"output.weight", offsetof(struct llama_weights, output), VOCABULARY, DIM, MAYBE},
    {"rope_freqs.weight", offsetof(struct llama_weights, divisors), ONE, TURNS, MAYBE},
};

static const struct weight_line layer_lines[LAYER_LINES] = {
#define LAYER(member) offsetof(struct llama_layer, member)
    {"attn_norm.weight", LAYER(attention_norm), ONE, DIM, ALWAYS},
    {"attn_q.weight", LAYER(query), QUERY, DIM, ALWAYS},
    {"attn_k.weight", LAYER(key), KEY_VALUE, DIM, ALWAYS},
    {"attn_v.weight", LAYER(value), KEY_VALUE, DIM, ALWAYS},
    {"attn_q.bias", LAYER(query_bias), ONE, QUERY, WITH_BIASES},
    {"attn_k.bias", LAYER(key_bias), ONE, KEY_VALUE, WITH_BIASES},
    {"attn_v.bias", LAYER(value_bias), ONE, KEY_VALUE, WITH_BIASES},
    {"attn_q_norm.weight", LAYER(query_norm), ONE, HEAD, WITH_HEAD_NORMS},
    {"attn_k_norm.weight", LAYER(key_norm), ONE, HEAD, WITH_HEAD_NORMS},
    {"attn_output.weight", LAYER(attention_output), DIM, QUERY, ALWAYS},
    {"ffn_norm.weight", LAYER(ffn_norm), ONE, DIM, ALWAYS},
    {"ffn_gate.weight", LAYER(gate), FF, DIM, DENSE},
    {"ffn_up.weight", LAYER(up), FF, DIM, DENSE},
    {"ffn_down.weight", LAYER(down), DIM, FF, DENSE},
    {"ffn_gate_inp.weight", LAYER(router), EXPERTS, DIM, ROUTER},
    {"ffn_gate_exps.weight", LAYER(gate), FF, DIM, EXPERT},
    {"ffn_up_exps.weight", LAYER(up), FF, DIM, EXPERT},
    {"ffn_down_exps.weight", LAYER(down), DIM, FF, EXPERT},
#undef LAYER
};

static bool has_line(const struct llama_config *config, const struct weight_line *line)
{
    switch (line->presence) {
    case WITH_BIASES:
        return config->architecture->biases;
    case WITH_HEAD_NORMS:
        return config->architecture->head_norms;
    case DENSE:
        return config->experts == 0;
    case ROUTER:
    case EXPERT:
        return config->experts > 0;
    case ALWAYS:
    case MAYBE:
        break;
    }
    return true;
}

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

// ---- Chunks ---------------------------------------------------------------

// A tensor to copy.
struct piece {
    const struct gguf_tensor *from;
    void *to;             // `from->bytes` bytes on the device
    uint64_t first_chunk; // of the piece, in the transfer
};

// A transfer in progress: copies the pieces through the streaming pipeline, so that reading and
// copying overlap.
struct transfer {
    struct piece *pieces;
    size_t count;
    const struct byte_source *source;
    size_t chunk_bytes;
    uint64_t chunks_before; // copied already
    pthread_mutex_t lock;
    unsigned int reading; // threads, now
    uint64_t reading_since_ns;
    uint64_t read_ns, bytes;
};

struct part {
    const struct piece *piece; // NULL: after the last
    uint64_t offset;           // within it
    size_t size;
};

// Numbers the chunks of all pieces.
static void cut(struct transfer *transfer, size_t chunk_bytes)
{
    uint64_t chunk = 0;
    transfer->chunk_bytes = chunk_bytes;
    for (size_t i = 0; i < transfer->count; i++) {
        transfer->pieces[i].first_chunk = chunk;
        chunk += (transfer->pieces[i].from->bytes + chunk_bytes - 1) / chunk_bytes;
    }
}

static struct part part_of(const struct transfer *transfer, uint64_t chunk)
{
    size_t low = 0;
    size_t high = transfer->count; // the last piece that begins at or before the chunk
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (transfer->pieces[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    const struct piece *piece = &transfer->pieces[low];
    uint64_t offset = (chunk - piece->first_chunk) * transfer->chunk_bytes;
    if (offset >= piece->from->bytes)
        return (struct part){0};
    uint64_t left = piece->from->bytes - offset;
    size_t size = left < transfer->chunk_bytes ? (size_t)left : transfer->chunk_bytes;
    return (struct part){.piece = piece, .offset = offset, .size = size};
}

// ---- The pipeline's questions ---------------------------------------------

static size_t chunk_size(void *context, uint64_t chunk)
{
    const struct transfer *transfer = context;
    return part_of(transfer, transfer->chunks_before + chunk).size;
}

static void *place(void *context, uint64_t chunk)
{
    const struct transfer *transfer = context;
    struct part part = part_of(transfer, transfer->chunks_before + chunk);
    assert(part.piece);
    return (unsigned char *)part.piece->to + part.offset;
}

// Counts the time in which at least one thread reads.
static void count_reading(struct transfer *transfer, bool begins, size_t bytes)
{
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&transfer->lock);
    if (begins && transfer->reading++ == 0)
        transfer->reading_since_ns = now_ns;
    if (!begins && --transfer->reading == 0)
        transfer->read_ns += now_ns - transfer->reading_since_ns;
    transfer->bytes += bytes;
    (void)pthread_mutex_unlock(&transfer->lock);
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    struct transfer *transfer = context;
    struct part part = part_of(transfer, transfer->chunks_before + chunk);
    assert(part.piece); // the pipeline asks for no chunk of size 0
    count_reading(transfer, true, 0);
    const struct gguf_tensor *from = part.piece->from;
    enum status status =
        byte_source_read(transfer->source, from->offset + part.offset, to, size, err);
    count_reading(transfer, false, status == STATUS_OK ? size : 0);
    if (status == STATUS_OK)
        return status;
    return error_prefix(err, status, "tensor '%.*s'", (int)from->name.size, from->name.data);
}

// ---- Running --------------------------------------------------------------

struct wish {
    struct tuning_host host;
    struct tuning_request request;
};

static enum status make_plan(const struct transfer *transfer, struct device *device,
                             struct wish *wish, struct pipeline_plan *plan, struct error *err)
{
    wish->request = (struct tuning_request){.pool_metrics = -1, .overlap_tracking = -1};
    tuning_host_of(&wish->host, device);
    enum status status = tuning_read_environment(&wish->request, err);
    if (status == STATUS_OK)
        status = tuning_plan(plan, &wish->host, &wish->request, err);
    // A slot is at most as large as the largest piece.
    enum { ROUNDING = 4096 };
    uint64_t largest = 1;
    for (size_t i = 0; i < transfer->count; i++)
        if (transfer->pieces[i].from->bytes > largest)
            largest = transfer->pieces[i].from->bytes;
    if (plan->chunk_bytes > largest)
        plan->chunk_bytes = ((size_t)largest + ROUNDING - 1) / ROUNDING * ROUNDING;
    return status;
}

// A trial with the first chunks determines the number of reading threads.
static enum status run_pipeline(struct transfer *transfer, struct pipeline *pipeline,
                                const struct wish *wish, bool (*cancelled)(void),
                                struct transfer_figures *figures, struct error *err)
{
    const struct pipeline_job job = {
        .name = "model_load",
        .context = transfer,
        .chunk_size = chunk_size,
        .fill = fill,
        .place = place,
        .cancelled = cancelled,
    };
    const uint64_t begun_ns = clock_monotonic_ns();
    struct pipeline_figures rest = {0};
    enum status status = autotune_run(pipeline, &job, &figures->plan, &wish->host, &wish->request,
                                      &figures->pipeline, err);
    if (status == STATUS_OK) {
        transfer->chunks_before = figures->pipeline.chunks;
        status = pipeline_run(pipeline, &job, &rest, err);
        pipeline_figures_add(&figures->pipeline, &rest);
    }
    figures->pipeline.duration_ns = clock_monotonic_ns() - begun_ns;
    return status;
}

// Copies all pieces and waits for the copies.  `*figures` is valid also after a failure.
static enum status transfer_run(struct piece *pieces, size_t count, struct device *device,
                                const struct byte_source *source, bool (*cancelled)(void),
                                struct transfer_figures *figures, struct error *err)
{
    figures->started_ns = clock_monotonic_ns();
    struct transfer transfer = {
        .pieces = pieces, .count = count, .source = source, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct pipeline *pipeline = NULL;
    struct wish wish;
    enum status status = make_plan(&transfer, device, &wish, &figures->plan, err);
    if (status == STATUS_OK)
        status = pipeline_new(&pipeline, device, &figures->plan, err);
    if (status == STATUS_OK) {
        cut(&transfer, figures->plan.chunk_bytes);
        status = run_pipeline(&transfer, pipeline, &wish, cancelled, figures, err);
    }
    pipeline_free(pipeline);
    figures->bytes = transfer.bytes;
    figures->read_ns = transfer.read_ns;
    return status;
}

// ---- One tensor -----------------------------------------------------------

struct loader {
    struct device *device;
    const struct gguf *gguf;
    const struct llama_config *config;
    struct llama_weights *weights;
    struct piece *pieces; // of the tensors allocated so far
    size_t piece_count;
    size_t extents[EXTENT_COUNT];
};

// Norms are F32; matrices of any type that the device computes with.
static enum status tensor_type_of(const struct loader *loader, const struct gguf_tensor *from,
                                  const struct weight *weight, enum tensor_type *type,
                                  struct error *err)
{
    unsigned int i = 0;
    while (i < TENSOR_TYPE_COUNT && tensor_formats[i].number != from->type->number)
        i++;
    *type = (enum tensor_type)i;
    if (weight->line->rows == ONE && *type != TENSOR_F32)
        return error_set(err, STATUS_UNSUPPORTED,
                         "tensor '%s' is of type %s: only F32 is supported there", weight->name,
                         from->type->name);
    if (*type == TENSOR_TYPE_COUNT)
        return error_set(err, STATUS_UNSUPPORTED,
                         "tensor '%s' is of type %s, which is not supported (convert the file)",
                         weight->name, from->type->name);
    if (device_computes(loader->device, *type))
        return STATUS_OK;
    struct device_description device;
    device_describe(loader->device, &device);
    return error_set(err, STATUS_UNSUPPORTED,
                     "tensor '%s' is of type %s, with which device %s does not compute (use "
                     "--device cpu)",
                     weight->name, from->type->name, device.name);
}

// Allocates a tensor and adds it to what is to be copied.
static enum status load_tensor(struct loader *loader, const struct weight *weight,
                               struct error *err)
{
    const char *name = weight->name;
    const struct gguf_tensor *from = gguf_find_tensor(loader->gguf, name);
    if (!from && weight->line->presence == MAYBE)
        return STATUS_OK;
    if (!from)
        return error_set(err, STATUS_NOT_FOUND, "tensor '%s' is missing", name);

    size_t rows = loader->extents[weight->line->rows];
    size_t columns = loader->extents[weight->line->columns];
    size_t matrices = weight->line->presence == EXPERT ? loader->config->experts : 1;
    if (from->shape[0] != columns || from->shape[1] != rows || from->shape[2] != matrices ||
        from->shape[3] != 1)
        return error_set(err, STATUS_CORRUPT,
                         "tensor '%s' is %llu x %llu x %llu, but the keys ask for %zu x %zu x %zu",
                         name, (unsigned long long)from->shape[0],
                         (unsigned long long)from->shape[1], (unsigned long long)from->shape[2],
                         columns, rows, matrices);
    rows *= matrices;
    enum tensor_type type = TENSOR_F32;
    enum status status = tensor_type_of(loader, from, weight, &type, err);
    if (status != STATUS_OK)
        return status;
    status = device_tensor_new(loader->device, weight->place, type, rows, columns, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "tensor '%s'", name);
    // The tables of types of GGUF and of devices agree: all bytes of `from` are copied.
    assert(from->bytes == tensor_bytes(weight->place));
    loader->pieces[loader->piece_count++] = (struct piece){.from = from, .to = weight->place->data};
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
        if (tensor && has_line(loader->config, weight.line))
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
    return error_set(err, STATUS_UNSUPPORTED,
                     "tensor '%s' belongs to no %s model of %zu layers known here",
                     text_escape(shown, sizeof shown, name->data, name->size),
                     loader->config->architecture->name, loader->weights->layer_count);
}

static enum status load_all(struct loader *loader, struct error *err)
{
    enum status status = refuse_unknown(loader, err);
    for (size_t i = 0; i < weight_count(loader->weights) && status == STATUS_OK; i++) {
        struct weight weight = weight_at(loader->weights, i);
        if (has_line(loader->config, weight.line))
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
        .config = config,
        .weights = weights,
        .extents = {[ONE] = 1,
                    [DIM] = config->dim,
                    [FF] = config->ff,
                    [QUERY] = config->heads * config->head_size,
                    [KEY_VALUE] = config->kv_heads * config->head_size,
                    [VOCABULARY] = config->vocabulary,
                    [HEAD] = config->head_size,
                    [TURNS] = config->rope.size / 2,
                    [EXPERTS] = config->experts},
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

size_t llama_weights_each(struct llama_weights *weights, const struct llama_config *config,
                          llama_weight_visit *visit, void *context)
{
    size_t count = 0;
    for (size_t i = 0; i < weight_count(weights); i++) {
        const struct weight weight = weight_at(weights, i);
        const bool is_output = weight.place == &weights->embedding && !weights->output.data;
        if (!weight.place->data || !has_line(config, weight.line))
            continue;
        count++;
        if (visit)
            visit(context, is_output ? "output.weight" : weight.name, weight.place);
    }
    return count;
}
