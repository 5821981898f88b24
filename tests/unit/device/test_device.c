// The device interface over the CPU back end, against plain double-precision
// references; refusals; determinism.
#include <assert.h>
#include <math.h>
#include <time.h>

#include "server/device/cpu/kernels.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/device.h"
#include "server/device/half.h"
#include "tests/support/test.h"

static struct device *open_device(unsigned int threads)
{
    struct device *device = NULL;
    struct error err = {0};
    if (device_open(&device, &(struct device_options){.spec = "cpu", .threads = threads}, &err) !=
        STATUS_OK)
        fail_msg("%s", err.text);
    return device;
}

static float random_float(uint64_t *state)
{
    return (float)((double)(test_random(state) >> 11) * 0x1p-53 * 2.0 - 1.0);
}

static float *random_floats(uint64_t *state, size_t n)
{
    float *x = calloc(n, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = random_float(state);
    return x;
}

// A tensor with the given contents.
static struct tensor make(struct device *device, size_t rows, size_t columns, const float *from)
{
    struct tensor t;
    assert_int_equal(device_tensor_new(device, &t, TENSOR_F32, rows, columns, NULL), STATUS_OK);
    if (from)
        assert_int_equal(device_upload(device, &t, 0, from, tensor_bytes(&t), NULL), STATUS_OK);
    return t;
}

// The same rounded to halves; `from` becomes what they stand for.
static struct tensor make_half(struct device *device, size_t rows, size_t columns, float *from)
{
    struct tensor t;
    uint16_t *halves = calloc(rows * columns, sizeof *halves);
    for (size_t i = 0; i < rows * columns; i++) {
        halves[i] = half_from_float(from[i]);
        from[i] = half_to_float(halves[i]);
    }
    assert_int_equal(device_tensor_new(device, &t, TENSOR_F16, rows, columns, NULL), STATUS_OK);
    assert_int_equal(device_upload(device, &t, 0, halves, tensor_bytes(&t), NULL), STATUS_OK);
    free(halves);
    return t;
}

static float *fetch(struct device *device, const struct tensor *t)
{
    float *x = malloc(tensor_bytes(t));
    assert_non_null(x);
    assert_int_equal(device_download(device, x, t, 0, tensor_bytes(t), NULL), STATUS_OK);
    return x;
}

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance))
        fail_msg("%.9g is not within %g of %.9g", actual, tolerance, expected);
}

TEST_CASE(halves_come_back)
{
    for (unsigned int i = 0; i < 65536; i++) {
        float value = half_to_float((uint16_t)i);
        if (isnan(value))
            assert_true((i & 0x7fff) > 0x7c00);
        else
            assert_int_equal(half_from_float(value), i);
    }
}

TEST_CASE(halves_round)
{
    static const struct {
        float value;
        unsigned int half;
    } cases[] = {
        {0.0F, 0},
        {-0.0F, 0x8000},
        {1.0F, 0x3c00},
        {65504.0F, 0x7bff},
        {65519.996F, 0x7bff},
        {65520.0F, 0x7c00}, // half way, to the even one: infinite
        {-1e30F, 0xfc00},
        {INFINITY, 0x7c00},
        {1.0F + 0x1p-11F, 0x3c00},            // half way, to even
        {1.0F + 3 * 0x1p-11F, 0x3c02},        // half way, to even
        {1.0F + 0x1p-11F + 0x1p-20F, 0x3c01}, // above half way
        {0x1p-14F, 0x0400},
        {0x1p-24F, 0x0001},
        {0x1p-25F, 0x0000}, // half of the smallest, to even
        {0x1.8p-25F, 0x0001},
        {0x1.ffcp-15F, 0x0400}, // the largest subnormal rounds up to a normal one
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(half_from_float(cases[i].value), cases[i].half);
    assert_true(isnan(half_to_float(half_from_float(NAN))));
}

TEST_CASE(specs)
{
    static const struct {
        const char *spec;
        enum status status;
        const char *says; // or the device's name
    } cases[] = {
        {NULL, STATUS_OK, "cpu"},
        {"auto", STATUS_OK, "cpu"},
        {"cpu", STATUS_OK, "cpu"},
        {"cpu:0", STATUS_OK, "cpu"}, // the same
        {"cpu:00", STATUS_OK, "cpu"},
        {"cpu:1", STATUS_OK, "cpu:1"},
        {"cpu:15", STATUS_OK, "cpu:15"},
        {"cpu:16", STATUS_INVALID, "device cpu:16: there are 16 (numbered from 0)"},
        {"cpu:99999", STATUS_INVALID, "there are 16"},
        {"cpu:", STATUS_INVALID, "no such device"},
        {"cpu:x", STATUS_INVALID, "no such device"},
        {"cuda:", STATUS_INVALID, "no such device"},
        {"cuda:x", STATUS_INVALID, "no such device"},
        {"cuda:1x", STATUS_INVALID, "no such device"},
        {"cuda:999999", STATUS_INVALID, "no such device"},
        {"", STATUS_INVALID, "no such device"},
        {"gpu", STATUS_INVALID, "no such device"},
        {"cp", STATUS_INVALID, "no such device"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device *device = NULL;
        struct error err = {0};
        struct device_options options = {.spec = cases[i].spec, .threads = 1};
        assert_int_equal(device_open(&device, &options, &err), cases[i].status);
        assert_int_equal(device != NULL, cases[i].status == STATUS_OK);
        if (device) {
            struct device_description description;
            device_describe(device, &description);
            assert_string_equal(description.name, cases[i].says);
        } else {
            assert_non_null(strstr(err.text, cases[i].says));
        }
        device_close(device);
    }
}

// Of a build that has the back end no device is to be seen (main sees to that).
TEST_CASE(no_cuda_is_said)
{
    static const char *const specs[] = {"cuda", "cuda:1"};
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        struct device *device = NULL;
        struct error err = {0};
        const enum status status =
            device_open(&device, &(struct device_options){.spec = specs[i]}, &err);
        assert_null(device);
        if (status == STATUS_UNSUPPORTED)
            assert_non_null(strstr(err.text, "this build has no cuda back end"));
        else if (status == STATUS_NOT_FOUND)
            assert_non_null(strstr(err.text, "no device answers"));
        else
            fail_msg("%s: %s", specs[i], err.text);
    }
}

TEST_CASE(auto_says_why)
{
    struct device *device = NULL;
    struct device_description description;
    assert_int_equal(device_open(&device, &(struct device_options){.threads = 3}, NULL), STATUS_OK);
    device_describe(device, &description);
    assert_string_equal(description.name, "cpu");
    assert_non_null(strstr(description.reason, "auto"));
    assert_int_equal(description.threads, 3);
    assert_true(description.memory_bytes > 0);
    device_close(device);

    assert_int_equal(device_open(&device, &(struct device_options){0}, NULL), STATUS_OK);
    device_describe(device, &description);
    assert_true(description.threads >= 1);
    device_close(device);
    assert_int_equal(device_open(&device, &(struct device_options){.threads = 100000}, NULL),
                     STATUS_INVALID);
}

TEST_CASE(memory)
{
    struct device *device = open_device(1);
    static const struct {
        size_t rows, columns;
        enum status status;
    } cases[] = {
        {1, 1, STATUS_OK},
        {3, 5, STATUS_OK},
        {1024, 1024, STATUS_OK}, // mapped, not from the heap
        {0, 1, STATUS_INVALID},
        {1, 0, STATUS_INVALID},
        {SIZE_MAX, 2, STATUS_INVALID},
        {SIZE_MAX / 8, 4, STATUS_INVALID},
        {(size_t)1 << 40, (size_t)1 << 20, STATUS_NOMEM},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tensor t = {0};
        struct error err = {0};
        assert_int_equal(
            device_tensor_new(device, &t, TENSOR_F32, cases[i].rows, cases[i].columns, &err),
            cases[i].status);
        if (cases[i].status != STATUS_OK)
            continue;
        assert_int_equal(device_memory_used(device), cases[i].rows * cases[i].columns * 4);
        float *zeroes = fetch(device, &t);
        for (size_t j = 0; j < cases[i].rows * cases[i].columns; j++)
            assert_true(zeroes[j] == 0.0F);
        free(zeroes);
        device_tensor_free(device, &t);
        assert_null(t.data);
        device_tensor_free(device, &t);
    }
    assert_int_equal(device_memory_used(device), 0);
    device_close(device);
    device_close(NULL);
}

TEST_CASE(copies_stay_inside)
{
    struct device *device = open_device(1);
    struct tensor t = make(device, 4, 4, NULL);
    float x[16];
    assert_int_equal(device_upload(device, &t, 60, x, 4, NULL), STATUS_OK);
    assert_int_equal(device_upload(device, &t, 61, x, 4, NULL), STATUS_INVALID);
    assert_int_equal(device_upload(device, &t, 64, x, 0, NULL), STATUS_OK);
    assert_int_equal(device_upload(device, &t, 65, x, 0, NULL), STATUS_INVALID);
    assert_int_equal(device_upload(device, &t, SIZE_MAX, x, 2, NULL), STATUS_INVALID);
    assert_int_equal(device_download(device, x, &t, 0, 65, NULL), STATUS_INVALID);
    device_tensor_free(device, &t);
    device_close(device);
}

static void check_product(struct device *device, uint64_t *seed, size_t n, size_t k, size_t m,
                          bool half)
{
    float *x = random_floats(seed, n * k);
    float *w = random_floats(seed, m * k);
    struct tensor in = make(device, n, k, x);
    struct tensor weight = half ? make_half(device, m, k, w) : make(device, m, k, w);
    struct tensor out = make(device, n, m, NULL);
    assert_int_equal(device_matmul(device, &out, &in, &weight, NULL), STATUS_OK);
    float *y = fetch(device, &out);
    for (size_t r = 0; r < n; r++) {
        for (size_t o = 0; o < m; o++) {
            double sum = 0.0;
            for (size_t i = 0; i < k; i++)
                sum += (double)x[r * k + i] * (double)w[o * k + i];
            assert_near((double)y[r * m + o], sum, 1e-6 * (double)(k + 8));
        }
    }
    // Every row alone gets the same bits.
    for (size_t r = 0; r < n; r++) {
        struct tensor row_in = tensor_rows(&in, r, 1);
        struct tensor row_out = make(device, 1, m, NULL);
        assert_int_equal(device_matmul(device, &row_out, &row_in, &weight, NULL), STATUS_OK);
        float *alone = fetch(device, &row_out);
        assert_memory_equal(alone, y + r * m, m * sizeof *y);
        free(alone);
        device_tensor_free(device, &row_out);
    }
    free(x);
    free(w);
    free(y);
    device_tensor_free(device, &in);
    device_tensor_free(device, &weight);
    device_tensor_free(device, &out);
}

// Shapes with every remainder of the tiles, and one large enough for threads.
TEST_CASE(products)
{
    uint64_t seed = 1;
    for (unsigned int threads = 1; threads <= 3; threads++) {
        struct device *device = open_device(threads);
        for (int half = 0; half <= 1; half++) {
            for (size_t n = 1; n <= 9; n++)
                check_product(device, &seed, n, 1 + test_random(&seed) % 40,
                              1 + test_random(&seed) % 40, half);
            for (size_t k = 1; k <= 17; k++)
                check_product(device, &seed, 5, k, 11, half);
            check_product(device, &seed, 33, 172, 257, half);
            check_product(device, &seed, 1, 344, 517, half);
        }
        assert_int_equal(device_memory_used(device), 0);
        device_close(device);
    }
}

static void check_wide(const struct cpu_kernels *wide)
{
    uint64_t seed = 7;
    enum { N = 6, K = 43, M = 29 };
    float *x = random_floats(&seed, N * K);
    float *w = random_floats(&seed, M * K);
    uint16_t h[M * K];
    for (size_t i = 0; i < M * K; i++)
        h[i] = half_from_float(w[i]);
    float a[N * M];
    float b[N * M];
    struct cpu_product p = {.out = a, .out_stride = M, .in = x, .rows = N, .k = K};
    for (unsigned int type = TENSOR_F32; type <= TENSOR_BF16; type++) {
        p.type = (enum tensor_type)type;
        p.weight = type == TENSOR_F32 ? (const void *)w : h;
        struct cpu_product q = p;
        q.out = b;
        cpu_kernels_plain.matmul[type](&p, 0, M);
        wide->matmul[type](&q, 0, M);
        for (size_t i = 0; i < N * M; i++)
            assert_near((double)a[i], (double)b[i], 1e-5);
    }
    for (size_t n = 0; n <= K; n++)
        assert_near((double)cpu_kernels_plain.dot(x, w, n), (double)wide->dot(x, w, n), 1e-5);
    memcpy(a, x, sizeof a / 2);
    memcpy(b, x, sizeof b / 2);
    cpu_kernels_plain.accumulate(a, 0.75F, w, K);
    wide->accumulate(b, 0.75F, w, K);
    for (size_t i = 0; i < K; i++)
        assert_near((double)a[i], (double)b[i], 1e-6);
    free(x);
    free(w);
}

// The wide kernels against the plain ones, where this processor has them.
TEST_CASE(kernels_agree)
{
    if (!cpu_kernels_at(1)) {
        print_message("this processor has no AVX2: skipped\n");
        skip();
    }
    for (size_t i = 1; cpu_kernels_at(i); i++)
        check_wide(cpu_kernels_at(i));
}

// ---- Other operations -----------------------------------------------------

TEST_CASE(embeds)
{
    struct device *device = open_device(1);
    uint64_t seed = 3;
    float *table = random_floats(&seed, 10 * 7);
    struct tensor single = make(device, 10, 7, table);
    struct tensor half = make_half(device, 10, 7, table);
    struct tensor out = make(device, 3, 7, NULL);
    const uint32_t ids[] = {9, 0, 9};
    assert_int_equal(device_embed(device, &out, &half, ids, 3, NULL), STATUS_OK);
    float *y = fetch(device, &out);
    for (size_t r = 0; r < 3; r++)
        assert_memory_equal(y + r * 7, table + ids[r] * 7, 7 * sizeof *y);
    free(y);
    assert_int_equal(device_embed(device, &out, &single, ids, 3, NULL), STATUS_OK);
    const uint32_t outside[] = {0, 10, 0};
    assert_int_equal(device_embed(device, &out, &single, outside, 3, NULL), STATUS_INVALID);
    assert_int_equal(device_embed(device, &out, &single, ids, 2, NULL), STATUS_INVALID);
    free(table);
    device_tensor_free(device, &single);
    device_tensor_free(device, &half);
    device_tensor_free(device, &out);
    device_close(device);
}

TEST_CASE(normalises)
{
    struct device *device = open_device(1);
    uint64_t seed = 4;
    enum { N = 3, K = 37 };
    float *x = random_floats(&seed, N * K);
    float *w = random_floats(&seed, K);
    struct tensor in = make(device, N, K, x);
    struct tensor weight = make(device, 1, K, w);
    assert_int_equal(device_rms_norm(device, &in, &in, &weight, 1e-5F, NULL), STATUS_OK);
    float *y = fetch(device, &in);
    for (size_t r = 0; r < N; r++) {
        double sum = 0.0;
        for (size_t i = 0; i < K; i++)
            sum += (double)x[r * K + i] * (double)x[r * K + i];
        for (size_t i = 0; i < K; i++)
            assert_near((double)y[r * K + i],
                        (double)x[r * K + i] / sqrt(sum / K + 1e-5) * (double)w[i], 1e-6);
    }
    free(x);
    free(w);
    free(y);
    device_tensor_free(device, &in);
    device_tensor_free(device, &weight);
    device_close(device);
}

static void check_rope(struct device *device, enum rope_pairs pairs)
{
    uint64_t seed = 5;
    enum { N = 2, HEADS = 3, SIZE = 6, TURNED = 4, POSITIONS = 5, AT = 3 };
    float *x = random_floats(&seed, N * HEADS * SIZE);
    float *table = random_floats(&seed, POSITIONS * TURNED);
    struct tensor t = make(device, N, HEADS * SIZE, x);
    struct tensor turn = make(device, POSITIONS, TURNED, table);
    assert_int_equal(device_rope(device, &t, &turn, AT, HEADS, pairs, NULL), STATUS_OK);
    float *y = fetch(device, &t);
    for (size_t i = 0; i < N * HEADS * SIZE; i++) {
        size_t row = i / (HEADS * SIZE);
        size_t in_head = i % SIZE;
        double expected = (double)x[i];
        if (in_head < TURNED) {
            const size_t apart = pairs == ROPE_HALVES ? TURNED / 2 : 1;
            const size_t pair = pairs == ROPE_HALVES ? in_head % apart : in_head / 2;
            const bool second = in_head / apart % 2 == 1;
            const float *angle = table + (AT + row) * TURNED + 2 * pair;
            const double a = (double)x[second ? i - apart : i];
            const double b = (double)x[second ? i : i + apart];
            const double c = (double)angle[0], s = (double)angle[1];
            expected = second ? a * s + b * c : a * c - b * s;
        }
        assert_near((double)y[i], expected, 1e-6);
    }
    assert_int_equal(device_rope(device, &t, &turn, POSITIONS - 1, HEADS, pairs, NULL),
                     STATUS_INVALID);
    assert_int_equal(device_rope(device, &t, &turn, 0, 4, pairs, NULL), STATUS_INVALID);
    assert_int_equal(device_rope(device, &t, &turn, 0, 0, pairs, NULL), STATUS_INVALID);
    free(x);
    free(y);
    free(table);
    device_tensor_free(device, &t);
    device_tensor_free(device, &turn);
}

TEST_CASE(turns_pairs)
{
    struct device *device = open_device(1);
    check_rope(device, ROPE_ADJACENT);
    check_rope(device, ROPE_HALVES);
    device_close(device);
}

// One row, one head, in double precision.
static void attend(const float *query, const float *keys, const float *values, size_t visible,
                   size_t stride, size_t size, double *out)
{
    double *score = calloc(visible, sizeof *score);
    double sum = 0.0;
    for (size_t t = 0; t < visible; t++) {
        double dot = 0.0;
        for (size_t i = 0; i < size; i++)
            dot += (double)query[i] * (double)keys[t * stride + i];
        score[t] = exp(dot / sqrt((double)size));
        sum += score[t];
    }
    for (size_t i = 0; i < size; i++) {
        out[i] = 0.0;
        for (size_t t = 0; t < visible; t++)
            out[i] += score[t] / sum * (double)values[t * stride + i];
    }
    free(score);
}

static void check_attention(struct device *device, uint64_t *seed, size_t n, size_t position,
                            size_t heads, size_t kv_heads, size_t size, size_t window)
{
    size_t capacity = position + n + 2;
    size_t kv = kv_heads * size;
    float *q = random_floats(seed, n * heads * size);
    float *k = random_floats(seed, capacity * kv);
    float *v = random_floats(seed, capacity * kv);
    struct tensor query = make(device, n, heads * size, q);
    struct tensor keys = make(device, capacity, kv, k);
    struct tensor values = make(device, capacity, kv, v);
    struct tensor out = make(device, n, heads * size, NULL);
    assert_int_equal(device_attention(device, &out, &query, &keys, &values, position, heads,
                                      kv_heads, window, NULL),
                     STATUS_OK);
    float *y = fetch(device, &out);
    double *expected = calloc(size, sizeof *expected);
    for (size_t r = 0; r < n; r++) {
        for (size_t h = 0; h < heads; h++) {
            size_t shared = h / (heads / kv_heads) * size;
            size_t at = (r * heads + h) * size;
            const size_t end = position + r + 1;
            const size_t first = window && end > window ? end - window : 0;
            attend(q + at, k + first * kv + shared, v + first * kv + shared, end - first, kv, size,
                   expected);
            for (size_t i = 0; i < size; i++)
                assert_near((double)y[at + i], expected[i], 1e-5);
        }
    }
    free(expected);
    free(q);
    free(k);
    free(v);
    free(y);
    device_tensor_free(device, &query);
    device_tensor_free(device, &keys);
    device_tensor_free(device, &values);
    device_tensor_free(device, &out);
}

TEST_CASE(attends)
{
    uint64_t seed = 6;
    for (unsigned int threads = 1; threads <= 3; threads += 2) {
        struct device *device = open_device(threads);
        check_attention(device, &seed, 1, 0, 1, 1, 2, 0);
        check_attention(device, &seed, 1, 9, 4, 2, 8, 1);
        check_attention(device, &seed, 5, 3, 4, 1, 12, 5);
        check_attention(device, &seed, 7, 0, 6, 6, 5, 8);
        check_attention(device, &seed, 64, 130, 8, 2, 16, 0); // enough for threads
        check_attention(device, &seed, 64, 130, 8, 2, 16, 100);
        device_close(device);
    }
}

TEST_CASE(gates_and_adds)
{
    struct device *device = open_device(1);
    uint64_t seed = 8;
    float *g = random_floats(&seed, 3 * 11);
    float *u = random_floats(&seed, 3 * 11);
    g[0] = 100.0F; // exp overflows neither way
    g[1] = -100.0F;
    struct tensor gate = make(device, 3, 11, g);
    struct tensor up = make(device, 3, 11, u);
    assert_int_equal(device_swiglu(device, &gate, &up, NULL), STATUS_OK);
    float *y = fetch(device, &gate);
    for (size_t i = 0; i < 33; i++)
        assert_near((double)y[i], (double)g[i] / (1.0 + exp(-(double)g[i])) * (double)u[i], 1e-5);
    assert_int_equal(device_add(device, &gate, &up, NULL), STATUS_OK);
    float *z = fetch(device, &gate);
    for (size_t i = 0; i < 33; i++)
        assert_true(z[i] == y[i] + u[i]);
    assert_int_equal(device_synchronize(device, NULL), STATUS_OK);
    free(g);
    free(u);
    free(y);
    free(z);
    device_tensor_free(device, &gate);
    device_tensor_free(device, &up);
    device_close(device);
}

TEST_CASE(adds_to_rows)
{
    struct device *device = open_device(1);
    uint64_t seed = 9;
    float *from[3];
    for (size_t i = 0; i < COUNT_OF(from); i++)
        from[i] = random_floats(&seed, 15);
    struct tensor x = make(device, 3, 5, from[0]);
    struct tensor row = make(device, 1, 5, from[1]);
    struct tensor y = make(device, 2, 5, from[2]);
    uint32_t rows[] = {2, 0};
    const float weights[] = {0.25F, -2.0F};
    assert_int_equal(device_add(device, &x, &row, NULL), STATUS_OK);
    assert_int_equal(device_scatter_add(device, &x, &y, rows, weights, NULL), STATUS_OK);
    float *out = fetch(device, &x);
    for (size_t i = 0; i < 15; i++) {
        double expected = (double)from[0][i] + (double)from[1][i % 5];
        for (size_t r = 0; r < 2; r++)
            if (rows[r] == i / 5)
                expected += (double)weights[r] * (double)from[2][r * 5 + i % 5];
        assert_near((double)out[i], expected, 1e-6);
    }
    rows[1] = 3;
    assert_int_equal(device_scatter_add(device, &x, &y, rows, weights, NULL), STATUS_INVALID);
    for (size_t i = 0; i < COUNT_OF(from); i++)
        free(from[i]);
    free(out);
    device_tensor_free(device, &x);
    device_tensor_free(device, &row);
    device_tensor_free(device, &y);
    device_close(device);
}

// Tensors that do not fit together are refused by every operation.
TEST_CASE(misfits)
{
    struct device *device = open_device(1);
    float half_from[16] = {0};
    struct tensor a = make(device, 2, 4, NULL);
    struct tensor b = make(device, 3, 4, NULL);
    struct tensor c = make(device, 2, 3, NULL);
    struct tensor row = make(device, 1, 4, NULL);
    struct tensor half = make_half(device, 2, 4, half_from);
    struct tensor none = {0};
    const enum status answers[] = {
        device_matmul(device, &c, &a, &a, NULL),    // out has 3 columns, weight 2 rows
        device_matmul(device, &a, &a, &b, NULL),    // out is in
        device_matmul(device, &b, &a, &b, NULL),    // rows differ
        device_matmul(device, &c, &half, &b, NULL), // activations are F32
        device_matmul(device, &c, &none, &b, NULL),
        device_rms_norm(device, &a, &b, &row, 0.0F, NULL),
        device_rms_norm(device, &a, &a, &half, 0.0F, NULL),
        device_rms_norm(device, &c, &c, &row, 0.0F, NULL),
        device_swiglu(device, &a, &b, NULL),
        device_add(device, &a, &c, NULL),
        device_add(device, &a, &half, NULL),
        device_add(device, &b, &a, NULL),
        device_scatter_add(device, &c, &a, &(uint32_t){0}, &(float){0}, NULL),
        device_attention(device, &a, &a, &b, &b, 2, 2, 2, 0, NULL), // beyond the cache
        device_attention(device, &a, &a, &b, &b, 4, 2, 2, 0, NULL),
        device_attention(device, &a, &a, &b, &b, SIZE_MAX, 2, 2, 0, NULL),
        device_rope(device, &a, &b, 4, 1, ROPE_HALVES, NULL), // beyond the table
        device_rope(device, &a, &b, SIZE_MAX, 1, ROPE_HALVES, NULL),
        device_attention(device, &a, &a, &b, &b, 0, 2, 0, 0, NULL),
        device_attention(device, &a, &a, &b, &b, 0, 3, 3, 0, NULL),
        device_attention(device, &a, &a, &b, &b, 0, 4, 2, 0, NULL), // cache of another width
        device_attention(device, &a, &a, &b, &c, 0, 2, 2, 0, NULL),
    };
    for (size_t i = 0; i < COUNT_OF(answers); i++)
        assert_int_equal(answers[i], STATUS_INVALID);
    assert_int_equal(device_matmul(device, &c, &a, &b, NULL), STATUS_OK);
    device_tensor_free(device, &a);
    device_tensor_free(device, &b);
    device_tensor_free(device, &c);
    device_tensor_free(device, &row);
    device_tensor_free(device, &half);
    device_close(device);
}

enum { PARTS = 1000 };

struct counting {
    unsigned char runs[PARTS];
    unsigned int threads;
};

static void count_part(void *context, size_t part, unsigned int thread)
{
    struct counting *counting = context;
    counting->runs[part]++; // each part has one writer
    assert(thread < counting->threads);
}

// Every part runs exactly once, task after task, also when threads had fallen
// asleep in between.
TEST_CASE(pool_runs_each_part_once)
{
    for (unsigned int threads = 1; threads <= 5; threads++) {
        struct thread_pool *pool = NULL;
        assert_int_equal(thread_pool_new(&pool, threads, NULL), STATUS_OK);
        for (size_t task = 0; task < 300; task++) {
            struct counting counting = {.threads = threads};
            size_t parts = task % 3 == 0 ? task : PARTS;
            thread_pool_run(pool, count_part, &counting, parts);
            for (size_t i = 0; i < PARTS; i++)
                assert_int_equal(counting.runs[i], i < parts);
            if (task % 100 == 50)
                (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        }
        thread_pool_free(pool);
    }
    thread_pool_free(NULL);
}

int main(void)
{
    if (setenv("CUDA_VISIBLE_DEVICES", "", 1) != 0)
        return 1;
    return TEST_RUN(halves_come_back, halves_round, specs, no_cuda_is_said, auto_says_why, memory,
                    copies_stay_inside, products, kernels_agree, embeds, normalises, turns_pairs,
                    attends, gates_and_adds, adds_to_rows, misfits, pool_runs_each_part_once);
}
