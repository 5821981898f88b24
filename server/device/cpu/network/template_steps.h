// The part of template.h behind the tiles: activations, pools, elementwise steps, GRU, and
// the table.

#pragma once

// ---- Activations ----------------------------------------------------------

// exp(x), relative error below 2e-7; x is clamped to where that is a normal float.
// x = n ln 2 + r, |r| <= ln 2 / 2; exp(r) is its Taylor polynomial of degree 7.
KERNEL_INLINE vector exponential(vector x)
{
    x = smaller(larger(x, splat(-87.0F)), splat(88.0F));
    const vector rounder = splat(12582912.0F); // 1.5 * 2^23: adding it rounds to an integer
    const vector shifted = x * splat(1.44269504F) + rounder;
    const vector n = shifted - rounder;
    const vector r = (x - n * splat(0.693359375F)) - n * splat(-2.12194440e-4F);
    vector p = splat(1.0F / 5040.0F);
    p = p * r + splat(1.0F / 720.0F);
    p = p * r + splat(1.0F / 120.0F);
    p = p * r + splat(1.0F / 24.0F);
    p = p * r + splat(1.0F / 6.0F);
    p = p * r + splat(0.5F);
    p = p * r + splat(1.0F);
    p = p * r + splat(1.0F);
    return (vector)((integers)p + ((integers)shifted << 23));
}

KERNEL_INLINE vector sigmoid(vector x)
{
    return splat(1.0F) / (splat(1.0F) + exponential(-x));
}

// Near 0, where 1 - 2 / (exp(2 x) + 1) loses digits, the Taylor polynomial of degree 9.
KERNEL_INLINE vector hyperbolic_tangent(vector x)
{
    const vector far = splat(1.0F) - splat(2.0F) / (exponential(x + x) + splat(1.0F));
    const vector z = x * x;
    vector p = splat(62.0F / 2835.0F);
    p = p * z + splat(-17.0F / 315.0F);
    p = p * z + splat(2.0F / 15.0F);
    p = p * z + splat(-1.0F / 3.0F);
    return choose(z < splat(0.04F), x + x * z * p, far);
}

KERNEL_INLINE vector activated(vector v, enum network_activation activation)
{
    if (activation == NETWORK_RELU || activation == NETWORK_RELU6)
        v = larger(v, splat(0.0F));
    if (activation == NETWORK_RELU6)
        v = smaller(v, splat(6.0F));
    if (activation == NETWORK_SIGMOID)
        return sigmoid(v);
    return activation == NETWORK_TANH ? hyperbolic_tangent(v) : v;
}

KERNEL void activate_floats(float *x, size_t n, enum network_activation activation)
{
    for (size_t i = 0; i < n; i += LANES)
        put(x + i, activated(get(x + i, n - i), activation), n - i);
}

KERNEL void softmax(float *x, size_t n)
{
    float largest = x[0];
    for (size_t i = 1; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    vector sums = {0};
    for (size_t i = 0; i < n; i += LANES) {
        vector v = exponential(get(x + i, n - i) - splat(largest));
        put(x + i, v, n - i);
        sums += get(x + i, n - i);
    }
    const float sum = sum_lanes(sums);
    for (size_t i = 0; i < n; i += LANES)
        put(x + i, get(x + i, n - i) / splat(sum), n - i);
}

// ---- Rows -----------------------------------------------------------------

// Pixels first..last - 1 of row y of the result.
struct row {
    size_t y, first, last;
};

KERNEL_INLINE struct row row_at(const struct cpu_step *step, size_t pixel, size_t last)
{
    const size_t width = step->step.out.width, first = pixel % width, left = last - pixel;
    return (struct row){
        .y = pixel / width, .first = first, .last = left < width - first ? first + left : width};
}

KERNEL_INLINE float *pixel_of(const struct network_tensor *tensor, float *arena, size_t y, size_t x)
{
    return arena + network_tensor_begin(tensor) + y * network_tensor_row(tensor) +
           x * tensor->pitch;
}

// Applies the activations that tiles do not.
KERNEL void finish_row(const struct cpu_step *step, float *arena, const struct row *row)
{
    const enum network_activation activation = step->step.activation;
    const struct network_tensor *out = &step->step.out;
    float *at = pixel_of(out, arena, row->y, row->first);
    size_t pixels = row->last - row->first, floats = out->channels;
    if (out->pitch == out->channels && activation != NETWORK_SOFTMAX) {
        floats *= pixels;
        pixels = 1;
    }
    for (size_t x = 0; x < pixels; x++, at += out->pitch) {
        if (activation == NETWORK_SOFTMAX)
            softmax(at, floats);
        else
            activate_floats(at, floats, activation);
    }
}

// Whether results of tiles are activated by their bounds.
KERNEL_INLINE bool is_finished(const struct cpu_step *step)
{
    return step->step.activation <= NETWORK_RELU6;
}

KERNEL void finish(const struct cpu_step *step, float *arena, size_t first, size_t last)
{
    for (size_t pixel = first; pixel < last;) {
        const struct row row = row_at(step, pixel, last);
        finish_row(step, arena, &row);
        pixel += row.last - row.first;
    }
}

KERNEL void run_conv(const struct cpu_step *step, float *arena,
                     __attribute__((unused)) float *scratch, size_t first, size_t last)
{
    if (!step->by_block) {
        conv_pixels(&step->tiles, arena, arena, first, last);
        if (!is_finished(step))
            finish(step, arena, first, last);
        return;
    }
    conv_blocks(&step->tiles, arena, first, last);
    if (!is_finished(step))
        finish(step, arena, 0, 1);
}

// Some rows at a time, whose inputs stay in the first cache for all channels.
KERNEL void run_depthwise(const struct cpu_step *step, float *arena,
                          __attribute__((unused)) float *scratch, size_t first, size_t last)
{
    enum { SOME = 64 }; // pixels
    const size_t width = step->step.out.width;
    const size_t strip = width >= SOME ? width : SOME / width * width;
    for (size_t pixel = first; pixel < last; pixel += strip) {
        const size_t end = last - pixel < strip ? last : pixel + strip;
        depthwise_pixels(step, arena, pixel, end);
        if (!is_finished(step))
            finish(step, arena, pixel, end);
    }
}

// ---- Pools ----------------------------------------------------------------

// The part of a window that lies inside the input, in one dimension.
struct window {
    size_t first, last, step; // elements of the input
};

KERNEL_INLINE struct window window_at(const struct network_step *step, size_t d, size_t result)
{
    const size_t size = d == 0 ? step->in[0].height : step->in[0].width;
    const size_t dilation = step->dilation[d], begin = result * step->stride[d];
    const size_t before = begin < step->pad[d] ? step->pad[d] - begin : 0;
    const size_t skipped = dilation == 1 ? before : (before + dilation - 1) / dilation;
    const size_t end = begin + (step->kernel[d] - 1) * dilation + 1; // pad[d] more than it is
    const size_t limit = size + step->pad[d];
    return (struct window){.first = begin + skipped * dilation - step->pad[d],
                           .last = (end < limit ? end : limit) - step->pad[d],
                           .step = dilation};
}

KERNEL_INLINE size_t window_size(const struct window *window)
{
    const size_t size = window->last - window->first;
    return window->step == 1 ? size : (size + window->step - 1) / window->step;
}

// `vectors` vectors of a pixel, of which the last has `n` channels.
KERNEL_INLINE void pool_tile(const struct network_tensor *in, const float *from, float *to,
                             const struct window *rows, const struct window *columns, bool is_max,
                             float scale, const size_t vectors, size_t n)
{
    const size_t row = network_tensor_row(in);
    vector sum[4];
    UNROLL
    for (size_t v = 0; v < vectors; v++)
        sum[v] = splat(is_max ? -3.402823466e+38F : 0.0F);
    for (size_t y = rows->first; y < rows->last; y += rows->step)
        for (size_t x = columns->first; x < columns->last; x += columns->step)
            UNROLL
    for (size_t v = 0; v < vectors; v++) {
        const vector value =
            get(from + y * row + x * in->pitch + v * LANES, v + 1 < vectors ? LANES : n);
        if (is_max)
            sum[v] = larger(sum[v], value);
        else
            sum[v] += value;
    }
    UNROLL
    for (size_t v = 0; v < vectors; v++)
        put(to + v * LANES, sum[v] * splat(is_max ? 1.0F : scale), v + 1 < vectors ? LANES : n);
}

KERNEL_INLINE void pool_row(const struct cpu_step *cpu_step, float *arena, const struct row *row,
                            bool is_max)
{
    const struct network_step *step = &cpu_step->step;
    const float *from = arena + network_tensor_begin(&step->in[0]);
    const struct window rows = window_at(step, 0, row->y);
    const size_t tall = window_size(&rows), channels = step->out.channels;
    float *to = pixel_of(&step->out, arena, row->y, row->first);
    for (size_t x = row->first; x < row->last; x++, to += step->out.pitch) {
        const struct window columns = window_at(step, 1, x);
        const float scale = is_max ? 1.0F : 1.0F / (float)(tall * window_size(&columns));
        size_t c = 0;
        for (; c + 4 * (size_t)LANES <= channels; c += 4 * (size_t)LANES)
            pool_tile(&step->in[0], from + c, to + c, &rows, &columns, is_max, scale, 4, LANES);
        for (; c + 2 * (size_t)LANES <= channels; c += 2 * (size_t)LANES)
            pool_tile(&step->in[0], from + c, to + c, &rows, &columns, is_max, scale, 2, LANES);
        for (; c + LANES <= channels; c += LANES)
            pool_tile(&step->in[0], from + c, to + c, &rows, &columns, is_max, scale, 1, LANES);
        if (c < channels)
            pool_tile(&step->in[0], from + c, to + c, &rows, &columns, is_max, scale, 1,
                      channels - c);
    }
}

// ---- Elements -------------------------------------------------------------

// `n` floats from i on, at most a vector.
KERNEL_INLINE void combine_part(const struct cpu_step *step, float *to, const float *a,
                                const float *b, size_t i, size_t n, const enum network_op op)
{
    vector v = get(a + i, n);
    if (op == NETWORK_ADD)
        v += get(b + i, n);
    else if (op == NETWORK_MULTIPLY)
        v *= get(b + i, n);
    put(to + i, smaller(larger(v, splat(step->tiles.least)), splat(step->tiles.most)), n);
}

KERNEL_INLINE void combine_all(const struct cpu_step *step, float *to, const float *a,
                               const float *b, size_t n, const enum network_op op)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        combine_part(step, to, a, b, i, LANES, op);
    if (i < n)
        combine_part(step, to, a, b, i, n - i, op);
}

KERNEL_INLINE void combine_floats(const struct cpu_step *step, float *to, const float *a,
                                  const float *b, size_t n)
{
    if (step->step.op == NETWORK_ADD)
        combine_all(step, to, a, b, n, NETWORK_ADD);
    else if (step->step.op == NETWORK_MULTIPLY)
        combine_all(step, to, a, b, n, NETWORK_MULTIPLY);
    else
        combine_all(step, to, a, b, n, NETWORK_COPY);
}

// ADD, MULTIPLY and COPY.
KERNEL_INLINE void combine_row(const struct cpu_step *cpu_step, float *arena, const struct row *row)
{
    const struct network_step *step = &cpu_step->step;
    const struct network_tensor *in = &step->in[0], *out = &step->out;
    const struct network_tensor *second = step->inputs > 1 ? &step->in[1] : in;
    const bool is_pixel = second->width == 1 && second->height == 1;
    const float *a = pixel_of(in, arena, row->y, row->first);
    const float *b =
        is_pixel ? pixel_of(second, arena, 0, 0) : pixel_of(second, arena, row->y, row->first);
    float *to = pixel_of(out, arena, row->y, row->first);
    const bool is_run = in->pitch == out->channels && second->pitch == out->channels &&
                        out->pitch == out->channels && !is_pixel;
    const size_t pixels = is_run ? 1 : row->last - row->first;
    const size_t floats = is_run ? out->channels * (row->last - row->first) : out->channels;
    for (size_t x = 0; x < pixels; x++) {
        combine_floats(cpu_step, to, a, b, floats);
        a += in->pitch;
        b += is_pixel ? 0 : second->pitch;
        to += out->pitch;
    }
}

KERNEL_INLINE void copy_pixel(float *to, const float *from, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        put(to + i, get(from + i, LANES), LANES);
    if (i < n)
        put(to + i, get(from + i, n - i), n - i);
}

KERNEL_INLINE void upsample_row(const struct cpu_step *cpu_step, float *arena,
                                const struct row *row)
{
    const struct network_step *step = &cpu_step->step;
    const size_t factor = step->kernel[1], channels = step->out.channels;
    const size_t first = row->first / factor;
    float *to = pixel_of(&step->out, arena, row->y, row->first);
    const float *from = pixel_of(&step->in[0], arena, row->y / step->kernel[0], first);
    size_t next = (first + 1) * factor; // the pixel that is not a copy of `from`
    for (size_t x = row->first; x < row->last; x++, to += step->out.pitch) {
        if (x == next) {
            from += step->in[0].pitch;
            next += factor;
        }
        copy_pixel(to, from, channels);
    }
}

KERNEL_INLINE void embed_row(const struct cpu_step *cpu_step, float *arena, const struct row *row)
{
    const struct network_step *step = &cpu_step->step;
    for (size_t x = row->first; x < row->last; x++) {
        const float id = *pixel_of(&step->in[0], arena, row->y, x);
        const float most = (float)(step->kernel[0] - 1);
        const size_t known = id > 0.0F ? (size_t)(id < most ? id : most) : 0; // 0 of NaN, too
        copy_pixel(pixel_of(&step->out, arena, row->y, x),
                   cpu_step->weights + known * step->out.channels, step->out.channels);
    }
}

#define RUN_ROWS(name, body, finishes)                                                             \
    KERNEL void run_##name(const struct cpu_step *step, float *arena,                              \
                           __attribute__((unused)) float *scratch, size_t first, size_t last)      \
    {                                                                                              \
        for (size_t pixel = first; pixel < last;) {                                                \
            const struct row row = row_at(step, pixel, last);                                      \
            body;                                                                                  \
            if (finishes)                                                                          \
                finish_row(step, arena, &row);                                                     \
            pixel += row.last - row.first;                                                         \
        }                                                                                          \
    }
RUN_ROWS(max_pool, pool_row(step, arena, &row, true), step->step.activation != NETWORK_LINEAR)
RUN_ROWS(average_pool, pool_row(step, arena, &row, false), step->step.activation != NETWORK_LINEAR)
RUN_ROWS(combine, combine_row(step, arena, &row), !is_finished(step))
RUN_ROWS(upsample, upsample_row(step, arena, &row), step->step.activation != NETWORK_LINEAR)
RUN_ROWS(embed, embed_row(step, arena, &row), step->step.activation != NETWORK_LINEAR)

// ---- GRU ------------------------------------------------------------------

// products[o] = bias[o] + sum_i weights[o][i] * state[i]
KERNEL_INLINE void state_products(const struct cpu_step *step, const float *state, float *products,
                                  size_t units)
{
    size_t begin = 0;
    const struct network_tiles *tiles = &step->tiles;
    struct network_tiles own = {.runs = &begin,
                                .run_count = 1,
                                .length = units,
                                .least = tiles->least,
                                .most = tiles->most};
    const float *weights = step->weights;
    struct cursor cursor = {.in = state, .out = products};
    for (size_t b = 0; b < tiles->block_count;) {
        struct network_block blocks[6];
        size_t count = 0;
        for (; count < 6 && b + count < tiles->block_count; count++) {
            blocks[count] = tiles->blocks[b + count];
            const size_t width = blocks[count].vectors * (size_t)LANES;
            blocks[count].weights = weights;
            blocks[count].bias = weights + units * width;
            if (blocks[count].vectors < 2)
                break;
            weights += (units + 1) * width;
        }
        if (count > 0)
            pixel_functions[count - 1](&own, blocks, &cursor);
        else
            tile_1_1(&own, blocks, &(struct cursor){.in = state, .out = products});
        b += count > 0 ? count : 1;
    }
}

// GRU, arXiv:1406.1078, with the reset behind the product, as in PyTorch.
KERNEL void run_gru(const struct cpu_step *cpu_step, float *arena, float *scratch, size_t first,
                    size_t last)
{
    (void)first;
    (void)last;
    const struct network_step *step = &cpu_step->step;
    const size_t units = step->out.channels, width = step->in[0].width;
    const size_t padded = (units + LANES - 1) / LANES * LANES, rows = 3 * padded;
    float *products = scratch + width * rows, *state = products + rows;
    const bool is_sequence = step->out.width > 1 || width == 1;
    conv_pixels(&cpu_step->tiles, arena, scratch, 0, width);
    memset(state, 0, padded * sizeof *state);
    for (size_t t = 0; t < width; t++) {
        const float *in = scratch + t * rows;
        state_products(cpu_step, state, products, units);
        for (size_t u = 0; u < padded; u += LANES) {
            const float *own = in + u, *recurrent = products + u;
            const vector reset = sigmoid(get(own, LANES) + get(recurrent, LANES));
            const vector update =
                sigmoid(get(own + padded, LANES) + get(recurrent + padded, LANES));
            const vector candidate = hyperbolic_tangent(get(own + 2 * padded, LANES) +
                                                        reset * get(recurrent + 2 * padded, LANES));
            const vector old = get(state + u, LANES);
            put(state + u, candidate + update * (old - candidate), LANES);
        }
        if (is_sequence || t + 1 == width)
            copy_pixel(pixel_of(&step->out, arena, 0, is_sequence ? t : 0), state, units);
    }
    if (step->activation != NETWORK_LINEAR)
        finish(cpu_step, arena, 0, step->out.width);
}

// ---- The caller's layout --------------------------------------------------

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

// Transposes 4 x 4 floats: to[i * to_row + j] = from[j * from_row + i].
KERNEL_INLINE void transpose_four(float *to, size_t to_row, const float *from, size_t from_row)
{
    const four a = *(const four *)from, b = *(const four *)(from + from_row);
    const four c = *(const four *)(from + 2 * from_row), d = *(const four *)(from + 3 * from_row);
    const four low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const four high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const four low_2 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const four high_2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four *)to = __builtin_shufflevector(low, low_2, 0, 1, 4, 5);
    *(four *)(to + to_row) = __builtin_shufflevector(low, low_2, 2, 3, 6, 7);
    *(four *)(to + 2 * to_row) = __builtin_shufflevector(high, high_2, 0, 1, 4, 5);
    *(four *)(to + 3 * to_row) = __builtin_shufflevector(high, high_2, 2, 3, 6, 7);
}

// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns
KERNEL void transpose(float *to, size_t to_row, const float *from, size_t from_row, size_t rows,
                      size_t columns)
{
    size_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        size_t j = 0;
        for (; j + 4 <= columns; j += 4)
            transpose_four(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
        for (; j < columns; j++)
            for (size_t k = i; k < i + 4; k++)
                to[j * to_row + k] = from[k * from_row + j];
    }
    for (; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            to[j * to_row + i] = from[i * from_row + j];
}

// Three planes to pixels of three channels.
KERNEL void interleave_three(float *to, const float *from, size_t plane, size_t count)
{
    size_t x = 0;
    for (; x + 4 <= count; x += 4, to += 12) {
        const four a = *(const four *)(from + x), b = *(const four *)(from + plane + x);
        const four c = *(const four *)(from + 2 * plane + x);
        const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5); // a0 b0 a1 b1
        const four bc = __builtin_shufflevector(b, c, 1, 5, 2, 6); // b1 c1 b2 c2
        const four ca = __builtin_shufflevector(c, a, 2, 7, 3, 6); // c2 a3 c3 a2
        const four cb = __builtin_shufflevector(c, b, 0, 7, 3, 6); // c0 b3 c3 b2
        *(four *)to = __builtin_shufflevector(ab, cb, 0, 1, 4, 2);
        *(four *)(to + 4) = __builtin_shufflevector(bc, ca, 0, 1, 7, 2);
        *(four *)(to + 8) = __builtin_shufflevector(ca, cb, 0, 1, 5, 6);
    }
    for (; x < count; x++, to += 3)
        for (size_t c = 0; c < 3; c++)
            to[c] = from[c * plane + x];
}

KERNEL void interleave(float *to, size_t pitch, const float *from, size_t plane, size_t channels,
                       size_t count)
{
    if (pitch == 1 || (count == 1 && plane == 1))
        memcpy(to, from, channels * count * sizeof *to);
    else if (pitch == 3 && channels == 3)
        interleave_three(to, from, plane, count);
    else
        transpose(to, pitch, from, plane, channels, count);
}

KERNEL void separate(float *to, size_t plane, const float *from, size_t pitch, size_t channels,
                     size_t count)
{
    if (pitch == 1 || (count == 1 && plane == 1))
        memcpy(to, from, channels * count * sizeof *to);
    else
        transpose(to, plane, from, pitch, count, channels);
}

const struct network_kernels KERNELS = {
    .lanes = LANES,
    .ops = {[NETWORK_CONV] = run_conv,
            [NETWORK_DEPTHWISE] = run_depthwise,
            [NETWORK_MAX_POOL] = run_max_pool,
            [NETWORK_AVERAGE_POOL] = run_average_pool,
            [NETWORK_UPSAMPLE] = run_upsample,
            [NETWORK_EMBED] = run_embed,
            [NETWORK_GRU] = run_gru,
            [NETWORK_ADD] = run_combine,
            [NETWORK_MULTIPLY] = run_combine,
            [NETWORK_COPY] = run_combine},
    .interleave = interleave,
    .separate = separate,
};
