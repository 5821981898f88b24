// Profiles of a device's operations: which calls are reported, with what sizes, and when.  Built
// for the CPU, and for CUDA with PROFILE_ON_CUDA.
#include "server/device/profile.h"
#include "tests/support/test.h"

#ifdef PROFILE_ON_CUDA
static const char spec[] = "cuda";
#else
static const char spec[] = "cpu";
#endif

enum { DIM = 8, WIDE = 16, ROWS = 3, HEADS = 2, CONTEXT = 6, VOCABULARY = 5 };

struct rig {
    struct device *device;
    struct tensor embedding, x, y, wide, weight, norm, angles, cache;
    struct profile_call calls[4096];
    size_t count;
};

static void take(void *context, const struct profile_call *call)
{
    struct rig *rig = context;
    assert_true(rig->count < COUNT_OF(rig->calls));
    assert_true(call->ns >= 0.0);
    rig->calls[rig->count++] = *call;
}

static struct tensor make(struct rig *rig, size_t rows, size_t columns)
{
    struct tensor tensor;
    struct error err = {0};
    expect_ok(device_tensor_new(rig->device, &tensor, TENSOR_F32, rows, columns, &err), &err);
    return tensor;
}

TEST_FIXTURE(set_up)
{
    static struct rig rig;
    struct error err = {0};
    memset(&rig, 0, sizeof rig);
    const enum status status =
        device_open(&rig.device, &(struct device_options){.spec = spec, .threads = 1}, &err);
    if (status == STATUS_NOT_FOUND || status == STATUS_UNSUPPORTED) {
        print_message("skipped: %s\n", err.text);
        exit(77);
    }
    expect_ok(status, &err);
    rig.embedding = make(&rig, VOCABULARY, DIM);
    rig.x = make(&rig, ROWS, DIM);
    rig.y = make(&rig, ROWS, DIM);
    rig.wide = make(&rig, ROWS, WIDE);
    rig.weight = make(&rig, WIDE, DIM);
    rig.norm = make(&rig, 1, DIM);
    rig.angles = make(&rig, ROWS, DIM / HEADS);
    rig.cache = make(&rig, CONTEXT, DIM);
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    struct tensor *const all[] = {&rig->embedding, &rig->x,    &rig->y,      &rig->wide,
                                  &rig->weight,    &rig->norm, &rig->angles, &rig->cache};
    device_profile_stop(rig->device);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        device_tensor_free(rig->device, all[i]);
    device_close(rig->device);
    return 0;
}

// Every operation once, of three rows; attention at position 2.
static void compute(struct rig *rig, size_t window)
{
    struct device *device = rig->device;
    struct error err = {0};
    const uint32_t ids[ROWS] = {1, 0, 4};
    const float factors[ROWS] = {1, 2, 3};
    const uint32_t rows[ROWS] = {2, 0, 1};
    expect_ok(device_embed(device, &rig->x, &rig->embedding, ids, ROWS, &err), &err);
    expect_ok(device_rms_norm(device, &rig->y, &rig->x, &rig->norm, 1e-5F, &err), &err);
    expect_ok(device_matmul(device, &rig->wide, &rig->y, &rig->weight, &err), &err);
    expect_ok(device_rope(device, &rig->x, &rig->angles, 0, HEADS, ROPE_ADJACENT, &err), &err);
    expect_ok(device_attention(device, &rig->y, &rig->x, &rig->cache, &rig->cache, 2, HEADS, HEADS,
                               window, &err),
              &err);
    expect_ok(device_swiglu(device, &rig->x, &rig->y, &err), &err);
    expect_ok(device_add(device, &rig->x, &rig->norm, &err), &err);
    expect_ok(device_scatter_add(device, &rig->x, &rig->y, rows, factors, &err), &err);
}

static void expect_call(const struct profile_call *call, const char *operation, const void *weight,
                        uint64_t floats, double flops)
{
    assert_string_equal(call->operation, operation);
    assert_ptr_equal(call->weight, weight);
    assert_int_equal(call->rows, ROWS);
    assert_int_equal(call->bytes, floats * sizeof(float));
    assert_true(call->flops == flops);
}

STATE_CASE(every_operation_is_reported, struct rig *rig)
{
    struct error err = {0};
    enum { X = ROWS * DIM };
    const struct profile_call *call = rig->calls;
    compute(rig, 0);
    expect_ok(device_profile_start(rig->device, take, rig, &err), &err);
    compute(rig, 0);
    expect_ok(device_profile_collect(rig->device, &err), &err);
    assert_int_equal(rig->count, 8);
    expect_call(call++, "embed", rig->embedding.data, 2 * X, 0.0);
    expect_call(call++, "rms_norm", rig->norm.data, 2 * X + DIM, 0.0);
    expect_call(call++, "matmul", rig->weight.data, X + ROWS * WIDE + WIDE * DIM,
                2.0 * ROWS * DIM * WIDE);
    expect_call(call++, "rope", NULL, 2 * X, 0.0);
    // Rows 2, 3 and 4 see 3, 4 and 5 positions.
    expect_call(call++, "attention", NULL, 2 * X + 2 * 5 * DIM, 4.0 * DIM * (3 + 4 + 5));
    expect_call(call++, "swiglu", NULL, 3 * X, 0.0);
    expect_call(call++, "add", rig->norm.data, 2 * X + DIM, 0.0);
    expect_call(call++, "scatter_add", NULL, 3 * X, 0.0);

    // Of a window of two, each row sees two, all together four.
    compute(rig, 2);
    expect_ok(device_profile_collect(rig->device, &err), &err);
    expect_call(&rig->calls[8 + 4], "attention", NULL, 2 * X + 2 * 4 * DIM,
                4.0 * DIM * (2 + 2 + 2));
    device_profile_stop(rig->device);
    device_profile_stop(rig->device);
    compute(rig, 0);
    assert_int_equal(rig->count, 16);
}

// More calls than there are events for, without a collection between; and calls that fail.
STATE_CASE(many_calls_and_failed_ones, struct rig *rig)
{
    struct error err = {0};
    expect_ok(device_profile_start(rig->device, take, rig, &err), &err);
    for (size_t i = 0; i < 200; i++)
        compute(rig, 0);
    assert_int_equal(device_add(rig->device, &rig->x, &rig->wide, &err), STATUS_INVALID);
    expect_ok(device_profile_collect(rig->device, &err), &err);
    expect_ok(device_profile_collect(rig->device, &err), &err);
    assert_int_equal(rig->count, 200 * 8);
    for (size_t i = 0; i < rig->count; i++)
        assert_string_equal(rig->calls[i].operation, rig->calls[i % 8].operation);
}

TEST_MAIN_EACH(set_up, tear_down, every_operation_is_reported, many_calls_and_failed_ones)
