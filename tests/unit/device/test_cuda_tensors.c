// The CUDA back end against the CPU's, operation by operation: on a device where this
// was built for one, else on the emulated runtime (tests/support/cuda), kernel thread
// by kernel thread.
#include <math.h>

#include "server/device/device.h"
#include "server/device/half.h"
#include "server/device/stream.h"
#include "tests/support/test.h"

// The same tensor on both.
struct pair {
    struct tensor cpu, cuda;
};

static struct device *cpu, *cuda;

static void open_both(void)
{
    struct error err = {0};
    assert_int_equal(device_open(&cpu, &(struct device_options){.spec = "cpu", .threads = 1}, &err),
                     STATUS_OK);
    const enum status status = device_open(&cuda, &(struct device_options){.spec = "cuda"}, &err);
    if (status == STATUS_NOT_FOUND || status == STATUS_UNSUPPORTED) {
        print_message("skipped: %s\n", err.text);
        exit(77);
    }
    expect_ok(status, &err);
}

TEST_FIXTURE(close_both)
{
    device_close(cpu);
    device_close(cuda);
    return 0;
}

static float random_float(uint64_t *seed)
{
    return (float)((double)(test_random(seed) >> 11) * 0x1p-53 * 2.0 - 1.0);
}

static void put(struct device *device, struct tensor *tensor, enum tensor_type type, size_t rows,
                size_t columns, const void *from)
{
    struct error err = {0};
    if (device_tensor_new(device, tensor, type, rows, columns, &err) != STATUS_OK ||
        device_upload(device, tensor, 0, from, tensor_bytes(tensor), &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static struct pair make(enum tensor_type type, size_t rows, size_t columns, uint64_t *seed)
{
    struct pair pair;
    const size_t count = rows * columns;
    float *floats = calloc(count, sizeof *floats);
    uint16_t *halves = calloc(count, sizeof *halves);
    assert_non_null(floats);
    assert_non_null(halves);
    for (size_t i = 0; i < count; i++) {
        floats[i] = random_float(seed);
        halves[i] = half_from_float(floats[i]);
    }
    const void *from = type == TENSOR_F16 ? (const void *)halves : floats;
    put(cpu, &pair.cpu, type, rows, columns, from);
    put(cuda, &pair.cuda, type, rows, columns, from);
    free(floats);
    free(halves);
    return pair;
}

static void drop(struct pair *pair)
{
    device_tensor_free(cpu, &pair->cpu);
    device_tensor_free(cuda, &pair->cuda);
}

static float *fetch(struct device *device, const struct tensor *tensor)
{
    float *x = malloc(tensor_bytes(tensor));
    assert_non_null(x);
    assert_int_equal(device_download(device, x, tensor, 0, tensor_bytes(tensor), NULL), STATUS_OK);
    return x;
}

// Both hold the same, within `tolerance` absolutely.
static void same(const struct pair *pair, double tolerance)
{
    float *a = fetch(cpu, &pair->cpu), *b = fetch(cuda, &pair->cuda);
    for (size_t i = 0; i < pair->cpu.rows * pair->cpu.columns; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance))
            fail_msg("element %zu: %.9g on the cpu, %.9g on cuda", i, (double)a[i], (double)b[i]);
    free(a);
    free(b);
}

TEST_CASE(products)
{
    static const size_t shapes[][3] = {{1, 64, 40},  {1, 1, 1},    {3, 7, 5},   {8, 128, 33},
                                       {9, 130, 16}, {17, 260, 6}, {2, 33, 70}, {1, 288, 288}};
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int half = 0; half < 2; half++) {
            const size_t n = shapes[i][0], k = shapes[i][1], m = shapes[i][2];
            struct pair in = make(TENSOR_F32, n, k, &seed), out = make(TENSOR_F32, n, m, &seed);
            struct pair weight = make(half ? TENSOR_F16 : TENSOR_F32, m, k, &seed);
            assert_int_equal(device_matmul(cpu, &out.cpu, &in.cpu, &weight.cpu, NULL), STATUS_OK);
            assert_int_equal(device_matmul(cuda, &out.cuda, &in.cuda, &weight.cuda, NULL),
                             STATUS_OK);
            same(&out, 1e-6 * (double)(k + 8));
            // A row alone has the same bits.
            float *together = fetch(cuda, &out.cuda);
            struct tensor row_in = tensor_rows(&in.cuda, n - 1, 1);
            struct tensor row_out = tensor_rows(&out.cuda, 0, 1);
            assert_int_equal(device_matmul(cuda, &row_out, &row_in, &weight.cuda, NULL), STATUS_OK);
            float *alone = fetch(cuda, &row_out);
            assert_memory_equal(alone, together + (n - 1) * m, m * sizeof *alone);
            free(alone);
            free(together);
            drop(&in);
            drop(&out);
            drop(&weight);
        }
}

// More rows than one launch takes, too; the ids are the host's again when the call returns.
TEST_CASE(embeddings)
{
    static const size_t counts[] = {1, 2, 3, 4, 256, 257, 600};
    uint64_t seed = 2;
    for (int half = 0; half < 2; half++) {
        struct pair table = make(half ? TENSOR_F16 : TENSOR_F32, 10, 300, &seed);
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            const size_t n = counts[i];
            uint32_t ids[600] = {0, 9, 3, 3};
            for (uint32_t row = 4; row < n; row++)
                ids[row] = row * 7 % 10;
            struct pair out = make(TENSOR_F32, n, 300, &seed);
            assert_int_equal(device_embed(cpu, &out.cpu, &table.cpu, ids, n, NULL), STATUS_OK);
            assert_int_equal(device_embed(cuda, &out.cuda, &table.cuda, ids, n, NULL), STATUS_OK);
            memset(ids, 0xff, sizeof ids);
            same(&out, 0.0);
            drop(&out);
        }
        drop(&table);
    }
}

TEST_CASE(norms)
{
    static const size_t widths[] = {1, 2, 31, 256, 257, 1000};
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        struct pair x = make(TENSOR_F32, 3, widths[i], &seed);
        struct pair weight = make(TENSOR_F32, 1, widths[i], &seed);
        assert_int_equal(device_rms_norm(cpu, &x.cpu, &x.cpu, &weight.cpu, 1e-5F, NULL), STATUS_OK);
        assert_int_equal(device_rms_norm(cuda, &x.cuda, &x.cuda, &weight.cuda, 1e-5F, NULL),
                         STATUS_OK);
        same(&x, 1e-5);
        drop(&x);
        drop(&weight);
    }
}

TEST_CASE(turns)
{
    // rows, heads, head size, elements of a head that are turned, position
    static const size_t shapes[][5] = {{1, 1, 2, 2, 0}, {5, 3, 8, 6, 2}, {2, 7, 64, 64, 9}};
    uint64_t seed = 4;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t *s = shapes[i];
        struct pair x = make(TENSOR_F32, s[0], s[1] * s[2], &seed);
        struct pair table = make(TENSOR_F32, 16, s[3], &seed);
        for (enum rope_pairs pairs = ROPE_ADJACENT; pairs <= ROPE_HALVES; pairs++) {
            assert_int_equal(device_rope(cpu, &x.cpu, &table.cpu, s[4], s[1], pairs, NULL),
                             STATUS_OK);
            assert_int_equal(device_rope(cuda, &x.cuda, &table.cuda, s[4], s[1], pairs, NULL),
                             STATUS_OK);
        }
        same(&x, 1e-6);
        drop(&x);
        drop(&table);
    }
}

TEST_CASE(attentions)
{
    // rows, heads, key/value heads, head size, position, window
    static const size_t shapes[][6] = {{1, 1, 1, 1, 0, 0},      {4, 2, 1, 8, 0, 2},
                                       {3, 6, 3, 48, 21, 0},    {1, 2, 2, 100, 40, 33},
                                       {3, 6, 3, 48, 21, 1000}, {2, 1, 1, 256, 5, 7}};
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t rows = shapes[i][0], heads = shapes[i][1], kv_heads = shapes[i][2];
        const size_t size = shapes[i][3], position = shapes[i][4];
        struct pair query = make(TENSOR_F32, rows, heads * size, &seed);
        struct pair out = make(TENSOR_F32, rows, heads * size, &seed);
        struct pair keys = make(TENSOR_F32, 64, kv_heads * size, &seed);
        struct pair values = make(TENSOR_F32, 64, kv_heads * size, &seed);
        assert_int_equal(device_attention(cpu, &out.cpu, &query.cpu, &keys.cpu, &values.cpu,
                                          position, heads, kv_heads, shapes[i][5], NULL),
                         STATUS_OK);
        assert_int_equal(device_attention(cuda, &out.cuda, &query.cuda, &keys.cuda, &values.cuda,
                                          position, heads, kv_heads, shapes[i][5], NULL),
                         STATUS_OK);
        same(&out, 1e-5);
        drop(&query);
        drop(&out);
        drop(&keys);
        drop(&values);
    }
}

TEST_CASE(too_large_heads_are_refused)
{
    uint64_t seed = 6;
    struct error err = {0};
    struct pair x = make(TENSOR_F32, 1, 257, &seed);
    assert_int_equal(device_attention(cuda, &x.cuda, &x.cuda, &x.cuda, &x.cuda, 0, 1, 1, 0, &err),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "at most 256"));
    drop(&x);
}

TEST_CASE(elementwise)
{
    static const size_t sizes[] = {1, 255, 256, 257, 20000};
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct pair a = make(TENSOR_F32, 1, sizes[i], &seed);
        struct pair b = make(TENSOR_F32, 1, sizes[i], &seed);
        assert_int_equal(device_swiglu(cpu, &a.cpu, &b.cpu, NULL), STATUS_OK);
        assert_int_equal(device_swiglu(cuda, &a.cuda, &b.cuda, NULL), STATUS_OK);
        same(&a, 1e-6);
        assert_int_equal(device_add(cpu, &a.cpu, &b.cpu, NULL), STATUS_OK);
        assert_int_equal(device_add(cuda, &a.cuda, &b.cuda, NULL), STATUS_OK);
        same(&a, 1e-6);
        drop(&a);
        drop(&b);
    }
}

TEST_CASE(additions_to_rows)
{
    enum { ROWS = 300, COLUMNS = 70 };
    uint64_t seed = 8;
    uint32_t rows[ROWS];
    float weights[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        rows[i] = i * 7 % ROWS;
        weights[i] = (float)i / ROWS;
    }
    struct pair x = make(TENSOR_F32, ROWS, COLUMNS, &seed);
    struct pair y = make(TENSOR_F32, ROWS, COLUMNS, &seed);
    struct pair row = make(TENSOR_F32, 1, COLUMNS, &seed);
    assert_int_equal(device_scatter_add(cpu, &x.cpu, &y.cpu, rows, weights, NULL), STATUS_OK);
    assert_int_equal(device_scatter_add(cuda, &x.cuda, &y.cuda, rows, weights, NULL), STATUS_OK);
    assert_int_equal(device_add(cpu, &x.cpu, &row.cpu, NULL), STATUS_OK);
    assert_int_equal(device_add(cuda, &x.cuda, &row.cuda, NULL), STATUS_OK);
    same(&x, 1e-6);
    drop(&x);
    drop(&y);
    drop(&row);
}

TEST_CASE(tensors_begin_as_zeros)
{
    struct tensor tensor;
    assert_int_equal(device_tensor_new(cuda, &tensor, TENSOR_F32, 3, 100, NULL), STATUS_OK);
    float *x = fetch(cuda, &tensor);
    for (size_t i = 0; i < 300; i++)
        assert_true(x[i] == 0.0F);
    free(x);
    device_tensor_free(cuda, &tensor);
    assert_int_equal(device_memory_used(cuda), 0);
}

TEST_CASE(streams_copy_in_order)
{
    enum { SIZE = 1 << 20 };
    struct device_stream *in = NULL, *out = NULL;
    struct device_event *copied = NULL, *begun = NULL, *done = NULL;
    unsigned char *from = NULL, *to = NULL;
    void *memory = NULL, *pinned = NULL, *other = NULL, *pinned_too = NULL;
    assert_int_equal(device_stream_new(cuda, &in, "in", NULL), STATUS_OK);
    assert_int_equal(device_stream_new(cuda, &out, "out", NULL), STATUS_OK);
    assert_int_equal(device_event_new(cuda, &copied, DEVICE_EVENT_ORDER, NULL), STATUS_OK);
    assert_int_equal(device_event_new(cuda, &begun, DEVICE_EVENT_TIMED, NULL), STATUS_OK);
    assert_int_equal(device_event_new(cuda, &done, DEVICE_EVENT_TIMED, NULL), STATUS_OK);
    assert_int_equal(device_pinned_new(cuda, &pinned, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_pinned_new(cuda, &pinned_too, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_memory_new(in, &memory, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_memory_new(in, &other, SIZE, NULL), STATUS_OK);
    from = pinned;
    to = pinned_too;
    memset(to, 0, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        from[i] = (unsigned char)(i * 31 >> 3);
    double ns = -1.0;
    assert_int_equal(device_event_elapsed(begun, done, &ns, NULL), STATUS_INVALID);
    assert_int_equal(device_event_record(begun, in, NULL), STATUS_OK);
    assert_int_equal(device_event_elapsed(begun, done, &ns, NULL), STATUS_INVALID);
    assert_true(ns == -1.0);
    assert_int_equal(device_copy_in(in, memory, from, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_fill(in, memory, 7, 10, NULL), STATUS_OK);
    assert_int_equal(device_copy_within(in, other, memory, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_event_record(copied, in, NULL), STATUS_OK);
    assert_int_equal(device_stream_wait(out, copied, NULL), STATUS_OK);
    assert_int_equal(device_copy_out(out, to, other, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_event_record(done, out, NULL), STATUS_OK);
    assert_int_equal(device_event_wait(done, NULL), STATUS_OK);
    bool is_done = false;
    assert_int_equal(device_event_query(copied, &is_done, NULL), STATUS_OK);
    assert_true(is_done);
    assert_int_equal(device_event_elapsed(begun, done, &ns, NULL), STATUS_OK);
    assert_true(ns >= 0.0);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(to[i], i < 10 ? 7 : from[i]);
    device_memory_free(in, memory, SIZE);
    device_memory_free(in, other, SIZE);
    assert_int_equal(device_stream_synchronize(in, NULL), STATUS_OK);
    device_pinned_free(cuda, pinned, SIZE);
    device_pinned_free(cuda, pinned_too, SIZE);
    device_event_free(copied);
    device_event_free(begun);
    device_event_free(done);
    device_stream_free(in);
    device_stream_free(out);
    assert_int_equal(device_memory_used(cuda), 0);
}

int main(void)
{
    open_both();
    return TEST_RUN_ONCE(NULL, close_both, products, embeddings, norms, turns, attentions,
                         too_large_heads_are_refused, elementwise, additions_to_rows,
                         tensors_begin_as_zeros, streams_copy_in_order);
}
