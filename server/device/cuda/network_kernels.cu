// Kernels of small networks: convolutions, recurrent layers, and operations of an element each.
#include "server/device/cuda/network.cuh"

constexpr unsigned int TILE = 4; // pixels of a row that a thread of a convolution computes

// ---- Convolutions ---------------------------------------------------------

// The pixels and the channel of a thread: pixels x..x + TILE - 1 of row y.
struct tile {
    int y, x;
    unsigned int c;
    bool exists;
};

static __device__ inline struct tile tile_of(const struct network_view &out)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned int tiles = (out.columns + TILE - 1) / TILE;
    const size_t pixel = i / out.channels;
    struct tile tile;
    tile.c = (unsigned int)(i % out.channels);
    tile.x = (int)(pixel % tiles * TILE) - (int)out.left;
    tile.y = (int)(pixel / tiles) - (int)out.top;
    tile.exists = pixel / tiles < out.rows;
    return tile;
}

// The input's column that pixel j of a tile begins at; of pixels that do not exist any column that
// does.
static __device__ inline int tile_column(const struct network_arguments &s, const struct tile &tile,
                                         unsigned int j)
{
    const int x = min(max(tile.x + (int)j, 0), (int)s.out.width - 1);
    return x * (int)s.stride[1] - (int)s.pad[1];
}

static __device__ inline void tile_finish(const struct network_arguments &s,
                                          const struct tile &tile, float *item,
                                          const float (&sums)[TILE])
{
    for (unsigned int j = 0; j < TILE; j++)
        if (tile.x + (int)j + (int)s.out.left < (int)s.out.columns)
            network_finish(s, item, tile.y, tile.x + (int)j, tile.c, sums[j]);
}

// Threads of a warp compute neighbouring channels, so that they read neighbouring weights and the
// same inputs.  Weights (kernel[0], kernel[1], inner, out.channels).
static __global__ void conv(struct network_arguments s)
{
    const struct tile tile = tile_of(s.out);
    if (!tile.exists)
        return;
    float *item = network_item(s);
    float sums[TILE] = {};
    const bool is_row = tile.y >= 0 && tile.y < (int)s.out.height;
    const unsigned int first = tile.c / (s.out.channels / s.groups) * s.inner;
    const float *weight = s.weights + tile.c;
    for (unsigned int ky = 0; is_row && ky < s.kernel[0]; ky++) {
        const int y = tile.y * (int)s.stride[0] - (int)s.pad[0] + (int)(ky * s.dilation[0]);
        for (unsigned int kx = 0; kx < s.kernel[1]; kx++) {
            const float *from[TILE];
            for (unsigned int j = 0; j < TILE; j++)
                from[j] =
                    item +
                    network_at(s.in, y, tile_column(s, tile, j) + (int)(kx * s.dilation[1]), first);
            for (unsigned int i = 0; i < s.inner; i++, weight += s.out.channels)
                for (unsigned int j = 0; j < TILE; j++)
                    sums[j] = fmaf(*weight, from[j][i], sums[j]);
        }
    }
    tile_finish(s, tile, item, sums);
}

// Weights (kernel[0], kernel[1], out.channels).
static __global__ void depthwise(struct network_arguments s)
{
    const struct tile tile = tile_of(s.out);
    if (!tile.exists)
        return;
    float *item = network_item(s);
    float sums[TILE] = {};
    const bool is_row = tile.y >= 0 && tile.y < (int)s.out.height;
    for (unsigned int ky = 0; is_row && ky < s.kernel[0]; ky++) {
        const int y = tile.y * (int)s.stride[0] - (int)s.pad[0] + (int)(ky * s.dilation[0]);
        for (unsigned int kx = 0; kx < s.kernel[1]; kx++) {
            const float weight = s.weights[(ky * s.kernel[1] + kx) * s.out.channels + tile.c];
            for (unsigned int j = 0; j < TILE; j++) {
                const int x = tile_column(s, tile, j) + (int)(kx * s.dilation[1]);
                sums[j] = fmaf(weight, item[network_at(s.in, y, x, tile.c)], sums[j]);
            }
        }
    }
    tile_finish(s, tile, item, sums);
}

// ---- Convolutions of integers ---------------------------------------------

// Rounds the input, borders included, four channels a thread; channels that do not exist become 0.
static __global__ void round_input(struct network_arguments s, struct network_integers q)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned int word = (unsigned int)(i % q.words);
    const size_t pixel = i / q.words;
    if (pixel >= (size_t)s.in.rows * s.in.columns)
        return;
    const int y = (int)(pixel / s.in.columns) - (int)s.in.top;
    const int x = (int)(pixel % s.in.columns) - (int)s.in.left;
    int8_t *to = q.rounded + blockIdx.y * q.item + i * 4;
    for (unsigned int j = 0; j < 4; j++) {
        const unsigned int c = word * 4 + j;
        float value = 0.0F;
        if (c < s.in.channels) {
            value = rintf(network_item(s)[network_at(s.in, y, x, c)] * q.per_scale) + (float)q.zero;
            value = fminf(fmaxf(value, -128.0F), 127.0F);
        }
        to[j] = (int8_t)value;
    }
}

// sum (w - zero_w) (x - zero) = sum w x - zero sum w - zero_w sum x + k zero_w zero, with sums of
// 32 bits, which the host has checked to suffice.
static __global__ void conv_integers(struct network_arguments s, struct network_integers q)
{
    const struct tile tile = tile_of(s.out);
    if (!tile.exists)
        return;
    int products[TILE] = {}, inputs[TILE] = {};
    const bool is_row = tile.y >= 0 && tile.y < (int)s.out.height;
    const int *weight = q.weights + tile.c;
    const int *rounded = reinterpret_cast<const int *>(q.rounded + blockIdx.y * q.item);
    for (unsigned int ky = 0; is_row && ky < s.kernel[0]; ky++) {
        const int y = tile.y * (int)s.stride[0] - (int)s.pad[0] + (int)(ky * s.dilation[0]);
        const int *row = rounded + (size_t)(y + (int)s.in.top) * s.in.columns * q.words;
        for (unsigned int kx = 0; kx < s.kernel[1]; kx++) {
            const int *from[TILE];
            for (unsigned int j = 0; j < TILE; j++)
                from[j] = row + (size_t)(tile_column(s, tile, j) + (int)(kx * s.dilation[1]) +
                                         (int)s.in.left) *
                                    q.words;
            for (unsigned int i = 0; i < q.words; i++, weight += s.out.channels)
                for (unsigned int j = 0; j < TILE; j++) {
                    products[j] = __dp4a(*weight, from[j][i], products[j]);
                    inputs[j] = __dp4a(0x01010101, from[j][i], inputs[j]);
                }
        }
    }
    const int zero = q.zeros[tile.c];
    float sums[TILE];
    for (unsigned int j = 0; j < TILE; j++)
        sums[j] = q.scales[tile.c] * (float)(products[j] - q.zero * q.sums[tile.c] -
                                             zero * inputs[j] + (int)q.k * zero * q.zero);
    tile_finish(s, tile, network_item(s), sums);
}

// ---- Operations of an element each ----------------------------------------

// A pool of the elements of the window that lie inside the input; NaN where none does.
static __device__ inline float pool(const struct network_arguments &s, const float *item, int y,
                                    int x, unsigned int c)
{
    float largest = -INFINITY, sum = 0.0F, count = 0.0F;
    for (unsigned int ky = 0; ky < s.kernel[0]; ky++)
        for (unsigned int kx = 0; kx < s.kernel[1]; kx++) {
            const int iy = y * (int)s.stride[0] - (int)s.pad[0] + (int)(ky * s.dilation[0]);
            const int ix = x * (int)s.stride[1] - (int)s.pad[1] + (int)(kx * s.dilation[1]);
            if (!network_inside(s.in, iy, ix))
                continue;
            const float value = item[network_at(s.in, iy, ix, c)];
            largest = fmaxf(largest, value);
            sum += value;
            count += 1.0F;
        }
    return s.op == NETWORK_MAX_POOL ? largest : sum / count;
}

static __device__ inline float element(const struct network_arguments &s, const float *item, int y,
                                       int x, unsigned int c)
{
    const auto in = [&](int iy, int ix, unsigned int ic) {
        return item[network_at(s.in, iy, ix, ic)];
    };
    const bool is_pixel = s.second.height == 1 && s.second.width == 1;
    switch (s.op) {
    case NETWORK_MAX_POOL:
    case NETWORK_AVERAGE_POOL:
        return pool(s, item, y, x, c);
    case NETWORK_UPSAMPLE:
        return in(y / (int)s.kernel[0], x / (int)s.kernel[1], c);
    case NETWORK_EMBED:
        return s.weights[(size_t)in(y, x, 0) * s.out.channels + c];
    case NETWORK_ADD:
        return in(y, x, c) + item[network_at(s.second, y, x, c)];
    case NETWORK_MULTIPLY:
        return in(y, x, c) * item[network_at(s.second, is_pixel ? 0 : y, is_pixel ? 0 : x, c)];
    default:
        return in(y, x, c); // COPY
    }
}

// The pixel and channel of a thread that computes one element of `view`, borders included.
static __device__ inline bool element_of(const struct network_view &view, int *y, int *x,
                                         unsigned int *c)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const size_t pixel = i / view.channels;
    *c = (unsigned int)(i % view.channels);
    *y = (int)(pixel / view.columns) - (int)view.top;
    *x = (int)(pixel % view.columns) - (int)view.left;
    return pixel / view.columns < view.rows;
}

static __global__ void elements(struct network_arguments s)
{
    int y, x;
    unsigned int c;
    if (!element_of(s.out, &y, &x, &c))
        return;
    float *item = network_item(s), value = 0.0F;
    if (network_inside(s.out, y, x))
        value = network_activate(element(s, item, y, x, c), s.activation);
    item[network_at(s.out, y, x, c)] = value;
}

// In place over the channels of a pixel, of which a thread has one.
static __global__ void softmax(struct network_arguments s)
{
    const size_t pixel = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= (size_t)s.out.height * s.out.width)
        return;
    float *at = network_item(s) +
                network_at(s.out, (int)(pixel / s.out.width), (int)(pixel % s.out.width), 0);
    float largest = at[0], sum = 0.0F;
    for (unsigned int c = 1; c < s.out.channels; c++)
        largest = fmaxf(largest, at[c]);
    for (unsigned int c = 0; c < s.out.channels; c++)
        sum += at[c] = expf(at[c] - largest);
    for (unsigned int c = 0; c < s.out.channels; c++)
        at[c] /= sum;
}

static __global__ void load(struct network_arguments s, const float *from)
{
    int y, x;
    unsigned int c;
    if (!element_of(s.out, &y, &x, &c))
        return;
    const struct network_view &out = s.out;
    const size_t plane = ((size_t)blockIdx.y * out.channels + c) * out.height;
    network_item(s)[network_at(out, y, x, c)] =
        network_inside(out, y, x) ? from[(plane + (size_t)y) * out.width + (size_t)x] : 0.0F;
}

static __global__ void store(struct network_arguments s, float *to)
{
    int y, x;
    unsigned int c;
    if (!element_of(s.in, &y, &x, &c) || !network_inside(s.in, y, x))
        return;
    const size_t plane = ((size_t)blockIdx.y * s.in.channels + c) * s.in.height;
    to[(plane + (size_t)y) * s.in.width + (size_t)x] = network_item(s)[network_at(s.in, y, x, c)];
}

// ---- Recurrent layers -----------------------------------------------------

// bias + sum_i weights[i * units] * x[i]
static __device__ inline float gate(const float *weights, const float *x, unsigned int count,
                                    unsigned int units, float bias)
{
    for (unsigned int i = 0; i < count; i++)
        bias = fmaf(weights[(size_t)i * units], x[i], bias);
    return bias;
}

// A block an item, a thread a unit.  Weights (3, in.channels, units), then (3, units, units).
// GRU, arXiv:1406.1078, with the reset behind the product, as in PyTorch.
static __global__ void gru(struct network_arguments s)
{
    __shared__ float state[NETWORK_UNITS_MAX];
    const unsigned int units = s.out.channels, unit = threadIdx.x, count = s.in.channels;
    float *item = network_item(s);
    const float *input = s.weights + unit, *recurrent = input + (size_t)3 * count * units;
    float own = 0.0F;
    if (unit < units)
        state[unit] = own;
    __syncthreads();
    for (unsigned int t = 0; t < s.in.width; t++) {
        if (unit < units) {
            const float *x = item + network_at(s.in, 0, (int)t, 0);
            float sums[2][3];
            for (unsigned int g = 0; g < 3; g++) {
                const float *bias = s.bias ? s.bias + g * units + unit : nullptr;
                sums[0][g] =
                    gate(input + (size_t)g * count * units, x, count, units, bias ? bias[0] : 0.0F);
                sums[1][g] = gate(recurrent + (size_t)g * units * units, state, units, units,
                                  bias ? bias[(size_t)3 * units] : 0.0F);
            }
            const float reset = network_sigmoid(sums[0][0] + sums[1][0]);
            const float update = network_sigmoid(sums[0][1] + sums[1][1]);
            const float candidate = tanhf(sums[0][2] + reset * sums[1][2]);
            own = candidate + update * (own - candidate);
        }
        __syncthreads(); // the state has been read
        if (unit < units) {
            state[unit] = own;
            if (s.out.width > 1 || t + 1 == s.in.width)
                item[network_at(s.out, 0, s.out.width > 1 ? (int)t : 0, unit)] =
                    network_activate(own, s.activation);
        }
        __syncthreads();
    }
    for (unsigned int i = 0; unit < units && i < s.out.rows * s.out.columns; i++) {
        const int y = (int)(i / s.out.columns) - (int)s.out.top;
        const int x = (int)(i % s.out.columns) - (int)s.out.left;
        if (!network_inside(s.out, y, x))
            item[network_at(s.out, y, x, unit)] = 0.0F;
    }
}

// ---- Launches -------------------------------------------------------------

static dim3 grid_of(size_t threads, size_t items)
{
    return dim3(cuda_blocks(threads, CUDA_BLOCK), (unsigned int)items);
}

static size_t padded_pixels(const struct network_view *view)
{
    return (size_t)view->rows * view->columns;
}

static enum status queue_conv(struct cuda *cuda, void (*kernel)(struct network_arguments),
                              const char *name, const struct network_arguments *s, size_t items,
                              struct error *err)
{
    const size_t tiles = (size_t)s->out.rows * ((s->out.columns + TILE - 1) / TILE);
    return cuda_launch(cuda, kernel, name, cuda->tensors, grid_of(tiles * s->out.channels, items),
                       dim3(CUDA_BLOCK), err, *s);
}

static enum status queue_integers(struct cuda *cuda, const struct network_arguments *s,
                                  const struct network_integers *q, size_t items, struct error *err)
{
    const enum status status = cuda_launch(cuda, round_input, "network_round", cuda->tensors,
                                           grid_of(padded_pixels(&s->in) * q->words, items),
                                           dim3(CUDA_BLOCK), err, *s, *q);
    const size_t tiles = (size_t)s->out.rows * ((s->out.columns + TILE - 1) / TILE);
    return status != STATUS_OK ? status
                               : cuda_launch(cuda, conv_integers, "network_conv_integers",
                                             cuda->tensors, grid_of(tiles * s->out.channels, items),
                                             dim3(CUDA_BLOCK), err, *s, *q);
}

static enum status queue_gru(struct cuda *cuda, const struct network_arguments *s, size_t items,
                             struct error *err)
{
    const unsigned int warps = (s->out.channels + CUDA_WARP - 1) / CUDA_WARP;
    return cuda_launch(cuda, gru, "network_gru", cuda->tensors, dim3(1, (unsigned int)items),
                       dim3(warps * CUDA_WARP), err, *s);
}

static enum status queue_elements(struct cuda *cuda, const struct network_arguments *s,
                                  size_t items, struct error *err)
{
    return cuda_launch(cuda, elements, "network_elements", cuda->tensors,
                       grid_of(padded_pixels(&s->out) * s->out.channels, items), dim3(CUDA_BLOCK),
                       err, *s);
}

static enum status queue_step(struct cuda *cuda, const struct network_arguments *s,
                              const struct network_integers *integers, size_t items,
                              struct error *err)
{
    switch (s->op) {
    case NETWORK_CONV:
        return integers ? queue_integers(cuda, s, integers, items, err)
                        : queue_conv(cuda, conv, "network_conv", s, items, err);
    case NETWORK_DEPTHWISE:
        return queue_conv(cuda, depthwise, "network_depthwise", s, items, err);
    case NETWORK_GRU:
        return queue_gru(cuda, s, items, err);
    default:
        return queue_elements(cuda, s, items, err);
    }
}

enum status cuda_network_queue(struct cuda *cuda, const struct network_arguments *s,
                               const struct network_integers *integers, size_t items,
                               struct error *err)
{
    const enum status status = queue_step(cuda, s, integers, items, err);
    if (status != STATUS_OK || s->activation != NETWORK_SOFTMAX)
        return status;
    return cuda_launch(cuda, softmax, "network_softmax", cuda->tensors,
                       grid_of((size_t)s->out.height * s->out.width, items), dim3(CUDA_BLOCK), err,
                       *s);
}

enum status cuda_network_load(struct cuda *cuda, const struct network_arguments *s,
                              const float *from, size_t items, struct error *err)
{
    return cuda_launch(cuda, load, "network_load", cuda->tensors,
                       grid_of(padded_pixels(&s->out) * s->out.channels, items), dim3(CUDA_BLOCK),
                       err, *s, from);
}

enum status cuda_network_store(struct cuda *cuda, const struct network_arguments *s, float *to,
                               size_t items, struct error *err)
{
    return cuda_launch(cuda, store, "network_store", cuda->tensors,
                       grid_of(padded_pixels(&s->in) * s->in.channels, items), dim3(CUDA_BLOCK),
                       err, *s, to);
}
