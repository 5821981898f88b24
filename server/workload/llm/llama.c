#include "server/workload/llm/llama.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "server/workload/llm/llama_weights.h"

// Tokens of a prompt evaluated at once: enough to reuse each weight many times while it is
// cached, few enough that the activations stay cached, too.
enum { BATCH = 64 };

// The type of cached keys and values.
static const enum tensor_type cache_type = TENSOR_F32;

struct llama {
    struct device *device;
    struct llama_config config;
    struct llama_weights weights;
    double *frequencies; // of the rotary embedding: rope.size / 2
    double magnitude;    // of its cosines and sines
};

// Activations of up to a batch of positions, a row each.
enum activation {
    ROPE, // cosines and sines
    X,
    NORMED,
    QUERY,
    ATTENDED,
    GATE,
    UP,
    SCORES,   // of experts
    GATHERED, // rows of one expert
    ACTIVATIONS
};

struct llama_session {
    const struct llama *llama;
    size_t context;
    size_t position;
    struct tensor *keys, *values; // (context, kv_heads * head_size), one per layer
    float *angles;                // host copy of the cosines and sines in ROPE
    float *scores;                // host copy of SCORES
    float *expert_weights;        // what weigh_experts makes of `scores`
    bool (*cancelled)(void);      // NULL: never
    size_t batch;
    struct tensor activations[ACTIVATIONS]; // of `batch` rows
    struct tensor logits;                   // (1, vocabulary)
};

// ---- The model ------------------------------------------------------------

// Before anything is loaded: the first token would be too late to say so.
static enum status check_heads(const struct device *device, const struct llama_config *config,
                               struct error *err)
{
    struct device_description description;
    device_describe(device, &description);
    if (description.head_size_max == 0 || config->head_size <= description.head_size_max)
        return STATUS_OK;
    return error_set(
        err, STATUS_UNSUPPORTED,
        "attention heads of %zu: device %s computes heads of at most %zu (use --device "
        "cpu)",
        config->head_size, description.name, description.head_size_max);
}

// The pair, as a fraction, that turns `turns` times within the context.
static double pair_of(const struct rope *rope, double turns)
{
    const double pi = 3.14159265358979323846;
    return (double)rope->size * log((double)rope->context / (turns * 2.0 * pi)) /
           (2.0 * log(rope->base));
}

// Fills frequencies[size / 2] with the angle between neighbouring positions, in radians, of each
// pair.  `divisors`, as many, divide the frequencies (Llama 3).  Returns the factor of cosines and
// sines.
static double rope_frequencies(double *frequencies, const struct rope *rope, const float *divisors)
{
    const double first = fmax(0.0, floor(pair_of(rope, rope->fast)));
    const double last = fmin((double)(rope->size - 1), ceil(pair_of(rope, rope->slow)));
    for (size_t i = 0; i < rope->size / 2; i++) {
        const double frequency =
            pow(rope->base, -2.0 * (double)i / (double)rope->size) / (double)divisors[i];
        // How much of the frequency is scaled: 0 for the fast pairs, 1 for the slow ones.
        double scaled = 1.0;
        if (rope->yarn)
            scaled = fmin(1.0, fmax(0.0, ((double)i - first) / fmax(0.001, last - first)));
        frequencies[i] = frequency * (scaled / rope->factor + 1.0 - scaled);
    }
    return rope->magnitude *
           (rope->yarn && rope->factor > 1.0 ? 1.0 + 0.1 * log(rope->factor) : 1.0);
}

// Computes the frequencies from the configuration and the divisors that the file may have.
static enum status init_rope(struct llama *llama, struct error *err)
{
    const struct tensor *from = &llama->weights.divisors;
    const size_t pairs = llama->config.rope.size / 2;
    float *divisors = calloc(pairs, sizeof *divisors);
    llama->frequencies = calloc(pairs, sizeof *llama->frequencies);
    enum status status = STATUS_OK;
    if (!divisors || !llama->frequencies)
        status = error_no_memory(err, "model");
    for (size_t i = 0; status == STATUS_OK && i < pairs; i++)
        divisors[i] = 1.0F;
    if (status == STATUS_OK && from->data)
        status = device_download(llama->device, divisors, from, 0, tensor_bytes(from), err);
    for (size_t i = 0; status == STATUS_OK && i < pairs; i++)
        if (!isfinite(divisors[i]) || divisors[i] <= 0.0F)
            status = error_set(err, STATUS_CORRUPT, "tensor 'rope_freqs.weight': divisor %zu is %g",
                               i, (double)divisors[i]);
    if (status == STATUS_OK)
        llama->magnitude = rope_frequencies(llama->frequencies, &llama->config.rope, divisors);
    free(divisors);
    return status;
}

enum status llama_load(struct llama **out, struct device *device, const struct byte_source *source,
                       const struct gguf *gguf, const struct llama_config *config,
                       bool (*cancelled)(void), struct transfer_figures *figures, struct error *err)
{
    memset(figures, 0, sizeof *figures);
    enum status status = check_heads(device, config, err);
    if (status != STATUS_OK)
        return status;
    struct llama *llama = calloc(1, sizeof *llama);
    if (!llama)
        return error_no_memory(err, "model");
    llama->device = device;
    llama->config = *config;
    status =
        llama_weights_load(&llama->weights, device, source, gguf, config, cancelled, figures, err);
    if (status == STATUS_OK)
        status = init_rope(llama, err);
    if (status != STATUS_OK) {
        llama_free(llama);
        return status;
    }
    *out = llama;
    return STATUS_OK;
}

void llama_free(struct llama *llama)
{
    if (!llama)
        return;
    llama_weights_free(&llama->weights, llama->device);
    free(llama->frequencies);
    free(llama);
}

const struct llama_config *llama_get_config(const struct llama *llama)
{
    return &llama->config;
}

uint64_t llama_parameters(const struct llama *llama)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TENSOR_TYPE_COUNT; i++)
        sum += llama->weights.elements[i];
    return sum;
}

size_t llama_each_weight(struct llama *llama, llama_weight_visit *visit, void *context)
{
    return llama_weights_each(&llama->weights, &llama->config, visit, context);
}

const char *llama_quantisation(const struct llama *llama)
{
    const uint64_t *elements = llama->weights.elements;
    enum tensor_type most = TENSOR_F32;
    for (unsigned int i = 0; i < TENSOR_TYPE_COUNT; i++)
        if (elements[i] > elements[most])
            most = (enum tensor_type)i;
    return tensor_type_name(most);
}

// ---- Sessions -------------------------------------------------------------

// Columns of an activation; 0: the model needs none.
static size_t columns_of(const struct llama_config *config, enum activation activation)
{
    const size_t query = config->heads * config->head_size;
    const size_t columns[ACTIVATIONS] = {
        [ROPE] = config->rope.size,
        [X] = config->dim,
        [NORMED] = config->dim,
        [QUERY] = query,
        [ATTENDED] = query,
        [GATE] = config->ff,
        [UP] = config->ff,
        [SCORES] = config->experts,
        [GATHERED] = config->experts > 0 ? config->dim : 0,
    };
    return columns[activation];
}

uint64_t llama_weight_bytes_per_token(const struct llama *llama)
{
    const struct llama_weights *weights = &llama->weights;
    const struct llama_config *config = &llama->config;
    uint64_t bytes = weights->bytes - tensor_bytes(&weights->divisors);
    if (weights->output.data)
        bytes -= tensor_bytes(&weights->embedding);
    for (size_t i = 0; config->experts > 0 && i < weights->layer_count; i++) {
        const struct llama_layer *layer = &weights->layers[i];
        const uint64_t all =
            tensor_bytes(&layer->gate) + tensor_bytes(&layer->up) + tensor_bytes(&layer->down);
        bytes -= all / config->experts * (config->experts - config->experts_used);
    }
    return bytes;
}

static uint64_t kv_bytes(const struct llama_config *config)
{
    return (uint64_t)2 * config->layers *
           tensor_row_bytes(cache_type, config->kv_heads * config->head_size);
}

uint64_t llama_kv_bytes_per_token(const struct llama *llama)
{
    return kv_bytes(&llama->config);
}

static size_t batch_of(size_t context)
{
    return context < BATCH ? context : BATCH;
}

// Fits 64 bits: see the limits in llama_config.c.
uint64_t llama_session_bytes(const struct llama_config *config, size_t context)
{
    uint64_t elements = config->vocabulary;
    for (size_t i = 0; i < ACTIVATIONS; i++)
        elements += (uint64_t)batch_of(context) * columns_of(config, (enum activation)i);
    return elements * sizeof(float) + context * kv_bytes(config);
}

enum status llama_check_context(const struct llama_config *config, uint64_t weights, size_t context,
                                struct error *err)
{
    char need[UNIT_TEXT_SIZE];
    char have[UNIT_TEXT_SIZE];
    char model[UNIT_TEXT_SIZE];
    if (context == 0 || context > config->context)
        return error_set(err, STATUS_INVALID, "context of %zu: the model takes 1..%zu positions",
                         context, config->context);
    const uint64_t bytes = llama_session_bytes(config, context);
    const uint64_t limit = LLAMA_SESSION_BASE + weights * LLAMA_SESSION_FACTOR;
    if (bytes <= limit)
        return STATUS_OK;
    return error_set(err, STATUS_NOMEM,
                     "a context of %zu needs %s, but a model of %s should do with %s "
                     "(are its keys right? ask for a smaller context)",
                     context, unit_format(need, UNIT_BYTES, (double)bytes),
                     unit_format(model, UNIT_BYTES, (double)weights),
                     unit_format(have, UNIT_BYTES, (double)limit));
}

static enum status check_memory(const struct llama *llama, size_t context, struct error *err)
{
    char need[UNIT_TEXT_SIZE];
    char have[UNIT_TEXT_SIZE];
    const uint64_t bytes = llama_session_bytes(&llama->config, context);
    struct device_description device;
    device_describe(llama->device, &device);
    if (device.memory_available_bytes < 0 || bytes <= (uint64_t)device.memory_available_bytes)
        return STATUS_OK;
    return error_set(err, STATUS_NOMEM,
                     "a context of %zu needs %s, but device %s has only %s available (ask for a "
                     "smaller context)",
                     context, unit_format(need, UNIT_BYTES, (double)bytes), device.name,
                     unit_format(have, UNIT_BYTES, (double)device.memory_available_bytes));
}

static enum status allocate(struct llama_session *session, struct error *err)
{
    const struct llama_config *config = &session->llama->config;
    struct device *device = session->llama->device;
    session->keys = calloc(config->layers, sizeof *session->keys);
    session->values = calloc(config->layers, sizeof *session->values);
    session->angles = calloc(session->batch * config->rope.size, sizeof *session->angles);
    const size_t scores = session->batch * config->experts + 1; // not 0, which may give NULL
    session->scores = calloc(scores, sizeof *session->scores);
    session->expert_weights = calloc(scores, sizeof *session->expert_weights);
    if (!session->keys || !session->values || !session->angles || !session->scores ||
        !session->expert_weights)
        return error_no_memory(err, "session");

    enum status status =
        device_tensor_new(device, &session->logits, TENSOR_F32, 1, config->vocabulary, err);
    for (size_t i = 0; i < ACTIVATIONS && status == STATUS_OK; i++) {
        const size_t columns = columns_of(config, (enum activation)i);
        if (columns > 0)
            status = device_tensor_new(device, &session->activations[i], TENSOR_F32, session->batch,
                                       columns, err);
    }
    size_t kv = config->kv_heads * config->head_size;
    for (size_t i = 0; i < config->layers && status == STATUS_OK; i++) {
        status =
            device_tensor_new(device, &session->keys[i], cache_type, session->context, kv, err);
        if (status == STATUS_OK)
            status = device_tensor_new(device, &session->values[i], cache_type, session->context,
                                       kv, err);
    }
    return status;
}

size_t llama_default_context(const struct llama_config *config)
{
    return config->context < LLAMA_CONTEXT_DEFAULT ? config->context : LLAMA_CONTEXT_DEFAULT;
}

enum status llama_session_new(struct llama_session **out, const struct llama *llama, size_t context,
                              struct error *err)
{
    enum status status = llama_check_context(&llama->config, llama->weights.bytes, context, err);
    if (status == STATUS_OK)
        status = check_memory(llama, context, err);
    if (status != STATUS_OK)
        return status;
    struct llama_session *session = calloc(1, sizeof *session);
    if (!session)
        return error_no_memory(err, "session");
    session->llama = llama;
    session->context = context;
    session->batch = batch_of(context);
    status = allocate(session, err);
    if (status != STATUS_OK) {
        llama_session_free(session);
        return status;
    }
    *out = session;
    return STATUS_OK;
}

void llama_session_free(struct llama_session *session)
{
    if (!session)
        return;
    struct device *device = session->llama->device;
    for (size_t i = 0; i < session->llama->config.layers; i++) {
        if (session->keys)
            device_tensor_free(device, &session->keys[i]);
        if (session->values)
            device_tensor_free(device, &session->values[i]);
    }
    free(session->keys);
    free(session->values);
    free(session->angles);
    free(session->scores);
    free(session->expert_weights);
    for (size_t i = 0; i < ACTIVATIONS; i++)
        device_tensor_free(device, &session->activations[i]);
    device_tensor_free(device, &session->logits);
    free(session);
}

void llama_session_reset(struct llama_session *session)
{
    session->position = 0;
}

void llama_session_set_cancelled(struct llama_session *session, bool (*cancelled)(void))
{
    session->cancelled = cancelled;
}

size_t llama_session_position(const struct llama_session *session)
{
    return session->position;
}

size_t llama_session_context(const struct llama_session *session)
{
    return session->context;
}

// ---- Computing ------------------------------------------------------------

// out = weight . in + bias
static enum status project(struct device *device, struct tensor *out, const struct tensor *in,
                           const struct tensor *weight, const struct tensor *bias,
                           struct error *err)
{
    enum status status = device_matmul(device, out, in, weight, err);
    if (status == STATUS_OK && bias->data)
        status = device_add(device, out, bias, err);
    return status;
}

// x = rope(norm(x)), head by head; a `norm` without data: none.
static enum status turn(const struct llama_session *session, struct tensor *x,
                        const struct tensor *norm, const struct tensor *rope, size_t heads,
                        struct error *err)
{
    const struct llama_config *config = &session->llama->config;
    struct device *device = session->llama->device;
    struct tensor each = *x; // a row a head
    each.rows = x->rows * heads;
    each.columns = config->head_size;
    enum status status = STATUS_OK;
    if (norm->data)
        status = device_rms_norm(device, &each, &each, norm, config->epsilon, err);
    if (status == STATUS_OK)
        status = device_rope(device, x, rope, 0, heads, config->architecture->pairs, err);
    return status;
}

// Of the batch `b`: x += output . attention(norm(x)); keys and values are written directly to the
// caches.
static enum status attend(struct llama_session *session, struct tensor b[ACTIVATIONS],
                          size_t number, struct error *err)
{
    const struct llama_config *config = &session->llama->config;
    const struct llama_layer *layer = &session->llama->weights.layers[number];
    struct device *device = session->llama->device;
    size_t position = session->position;
    struct tensor keys = tensor_rows(&session->keys[number], position, b[X].rows);
    struct tensor values = tensor_rows(&session->values[number], position, b[X].rows);

    enum status status =
        device_rms_norm(device, &b[NORMED], &b[X], &layer->attention_norm, config->epsilon, err);
    if (status == STATUS_OK)
        status = project(device, &b[QUERY], &b[NORMED], &layer->query, &layer->query_bias, err);
    if (status == STATUS_OK)
        status = project(device, &keys, &b[NORMED], &layer->key, &layer->key_bias, err);
    if (status == STATUS_OK)
        status = project(device, &values, &b[NORMED], &layer->value, &layer->value_bias, err);
    if (status == STATUS_OK)
        status = turn(session, &b[QUERY], &layer->query_norm, &b[ROPE], config->heads, err);
    if (status == STATUS_OK)
        status = turn(session, &keys, &layer->key_norm, &b[ROPE], config->kv_heads, err);
    if (status == STATUS_OK)
        status = device_attention(device, &b[ATTENDED], &b[QUERY], &session->keys[number],
                                  &session->values[number], position, config->heads,
                                  config->kv_heads, config->window, err);
    if (status == STATUS_OK)
        status = device_matmul(device, &b[NORMED], &b[ATTENDED], &layer->attention_output, err);
    if (status == STATUS_OK)
        status = device_add(device, &b[X], &b[NORMED], err);
    return status;
}

// Weights of a feed-forward layer, or of one expert.
struct gated {
    struct tensor gate, up, down;
};

// out = down . (silu(gate . in) * (up . in)) for the first rows of `b`; `out` may be `in`.
static enum status compute_gated(struct device *device, struct tensor *out, const struct tensor *in,
                                 const struct gated *weights, struct tensor b[ACTIVATIONS],
                                 struct error *err)
{
    struct tensor gate = tensor_rows(&b[GATE], 0, in->rows);
    struct tensor up = tensor_rows(&b[UP], 0, in->rows);
    enum status status = device_matmul(device, &gate, in, &weights->gate, err);
    if (status == STATUS_OK)
        status = device_matmul(device, &up, in, &weights->up, err);
    if (status == STATUS_OK)
        status = device_swiglu(device, &gate, &up, err);
    if (status == STATUS_OK)
        status = device_matmul(device, out, &gate, &weights->down, err);
    return status;
}

// Computes the weights of a row's `count` experts (Shazeer et al., arXiv:1701.06538): the softmax
// over the `used` highest `scores`, and 0 for the others.  Of equal scores the first counts as
// higher.  1 <= used <= count.
static void weigh_experts(float *weights, const float *scores, size_t count, size_t used)
{
    const float unused = -1.0F;
    float top = 0.0F;
    float sum = 0.0F;
    for (size_t i = 0; i < count; i++)
        weights[i] = unused;
    for (size_t n = 0; n < used; n++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (weights[i] == unused && (best == count || scores[i] > scores[best]))
                best = i;
        if (n == 0)
            top = scores[best];
        weights[best] = expf(scores[best] - top);
        sum += weights[best];
    }
    for (size_t i = 0; i < count; i++)
        weights[i] = weights[i] == unused ? 0.0F : weights[i] / sum;
}

// Lists the rows of `weights` (rows, count) in which `expert` has a weight, in order, and these
// weights.  Returns their number.
static size_t find_rows(uint32_t *out_rows, float *out_weights, const float *weights, size_t rows,
                        size_t count, size_t expert)
{
    size_t found = 0;
    for (size_t r = 0; r < rows; r++) {
        const float weight = weights[r * count + expert];
        if (weight == 0.0F)
            continue;
        out_rows[found] = (uint32_t)r;
        out_weights[found++] = weight;
    }
    return found;
}

// x += sum of weight * gated(normed) over the experts that each row uses, in the order of their
// numbers, so that a row's result does not depend on other rows.
static enum status mix_experts(struct llama_session *session, struct tensor b[ACTIVATIONS],
                               const struct llama_layer *layer, struct error *err)
{
    const struct llama_config *config = &session->llama->config;
    struct device *device = session->llama->device;
    const size_t count = config->experts;
    enum status status = device_matmul(device, &b[SCORES], &b[NORMED], &layer->router, err);
    if (status == STATUS_OK)
        status =
            device_download(device, session->scores, &b[SCORES], 0, tensor_bytes(&b[SCORES]), err);
    for (size_t row = 0; row < b[X].rows && status == STATUS_OK; row++)
        weigh_experts(session->expert_weights + row * count, session->scores + row * count, count,
                      config->experts_used);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        uint32_t rows[BATCH];
        float weights[BATCH];
        const size_t n = find_rows(rows, weights, session->expert_weights, b[X].rows, count, i);
        if (n == 0)
            continue;
        const struct gated expert = {.gate = tensor_rows(&layer->gate, i * config->ff, config->ff),
                                     .up = tensor_rows(&layer->up, i * config->ff, config->ff),
                                     .down =
                                         tensor_rows(&layer->down, i * config->dim, config->dim)};
        struct tensor some = tensor_rows(&b[GATHERED], 0, n);
        status = device_embed(device, &some, &b[NORMED], rows, n, err);
        if (status == STATUS_OK)
            status = compute_gated(device, &some, &some, &expert, b, err);
        if (status == STATUS_OK)
            status = device_scatter_add(device, &b[X], &some, rows, weights, err);
    }
    return status;
}

// x += gated(norm(x)), or what experts make of norm(x)
static enum status feed_forward(struct llama_session *session, struct tensor b[ACTIVATIONS],
                                size_t number, struct error *err)
{
    const struct llama_layer *layer = &session->llama->weights.layers[number];
    struct device *device = session->llama->device;
    const struct gated all = {.gate = layer->gate, .up = layer->up, .down = layer->down};
    enum status status = device_rms_norm(device, &b[NORMED], &b[X], &layer->ffn_norm,
                                         session->llama->config.epsilon, err);
    if (status == STATUS_OK && session->llama->config.experts > 0)
        return mix_experts(session, b, layer, err);
    if (status == STATUS_OK)
        status = compute_gated(device, &b[NORMED], &b[NORMED], &all, b, err);
    if (status == STATUS_OK)
        status = device_add(device, &b[X], &b[NORMED], err);
    return status;
}

// Cosine and sine of the angles of `n` positions from the session's on, in double precision until
// they are stored.
static enum status turn_to(struct llama_session *session, size_t n, struct error *err)
{
    const struct llama *llama = session->llama;
    const size_t size = llama->config.rope.size;
    for (size_t pair = 0; pair < size / 2; pair++) {
        for (size_t row = 0; row < n; row++) {
            double angle = (double)(session->position + row) * llama->frequencies[pair];
            session->angles[row * size + 2 * pair] = (float)(llama->magnitude * cos(angle));
            session->angles[row * size + 2 * pair + 1] = (float)(llama->magnitude * sin(angle));
        }
    }
    return device_upload(llama->device, &session->activations[ROPE], 0, session->angles,
                         n * size * sizeof *session->angles, err);
}

// Runs one batch through all layers and adds its keys and values to the caches.
static enum status eval_batch(struct llama_session *session, const uint32_t *ids, size_t n,
                              struct error *err)
{
    const struct llama_weights *weights = &session->llama->weights;
    struct tensor b[ACTIVATIONS] = {0}; // the first `n` rows of those that the model needs
    for (size_t i = 0; i < ACTIVATIONS; i++)
        if (session->activations[i].data)
            b[i] = tensor_rows(&session->activations[i], 0, n);
    enum status status =
        device_embed(session->llama->device, &b[X], &weights->embedding, ids, n, err);
    if (status == STATUS_OK)
        status = turn_to(session, n, err);
    for (size_t i = 0; i < weights->layer_count && status == STATUS_OK; i++) {
        if (session->cancelled && session->cancelled())
            return error_set(err, STATUS_CANCELLED, "stopped while computing");
        status = attend(session, b, i, err);
        if (status == STATUS_OK)
            status = feed_forward(session, b, i, err);
    }
    return status;
}

// Scores of the token after row `row` of the last batch.
static enum status score(struct llama_session *session, size_t row, float *logits,
                         struct error *err)
{
    const struct llama_weights *weights = &session->llama->weights;
    struct device *device = session->llama->device;
    struct tensor x = tensor_rows(&session->activations[X], row, 1);
    struct tensor normed = tensor_rows(&session->activations[NORMED], 0, 1);
    const struct tensor *output = weights->output.data ? &weights->output : &weights->embedding;
    enum status status = device_rms_norm(device, &normed, &x, &weights->output_norm,
                                         session->llama->config.epsilon, err);
    if (status == STATUS_OK)
        status = device_matmul(device, &session->logits, &normed, output, err);
    if (status == STATUS_OK)
        status = device_download(device, logits, &session->logits, 0,
                                 tensor_bytes(&session->logits), err);
    return status;
}

enum status llama_session_eval(struct llama_session *session, const uint32_t *ids, size_t count,
                               float *logits, struct error *err)
{
    size_t room = session->context - session->position;
    if (count == 0 || count > room)
        return error_set(err, STATUS_FULL, "%zu tokens do not fit the %zu left of a context of %zu",
                         count, room, session->context);
    size_t n = 0;
    for (size_t done = 0; done < count; done += n) {
        n = count - done < session->batch ? count - done : session->batch;
        enum status status = eval_batch(session, ids + done, n, err);
        if (status != STATUS_OK)
            return status;
        session->position += n;
    }
    return score(session, n - 1, logits, err);
}
