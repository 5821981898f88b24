// Small models when memory runs out: for each N the N-th allocation of the parser, of seeded
// weights, of a compression and of its losses fails.
#include "server/workload/zoo/compress.h"
#include "server/workload/zoo/losses.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/test.h"

static const char text[] = "name: tiny\n"
                           "input: left 3x6x6\n"
                           "input: right 3x6x6\n"
                           "a = left -> conv 8 3 norm relu -> depthwise 3 norm relu6\n"
                           "b = right -> like a\n"
                           "c = a, b -> add -> conv 8 3 relu -> dense 8 -> softmax\n";

static struct zoo_model *model;
static struct zoo_weights weights;
static struct device *device;
static struct zoo_compression how;
static struct error err;

static enum status parse(void)
{
    struct zoo_model *parsed;
    enum status status = zoo_model_parse(&parsed, "tiny", text, sizeof text - 1, &err);
    if (status == STATUS_OK)
        zoo_model_free(parsed);
    return status;
}

static enum status seed(void)
{
    struct zoo_weights seeded;
    enum status status = zoo_weights_seeded(&seeded, model, 1, &err);
    if (status == STATUS_OK)
        zoo_weights_free(&seeded);
    return status;
}

static enum status compress(void)
{
    const struct zoo_loss_options options = {.distillation = {4.0, 0.7}, .inputs = 2, .seed = 1};
    struct zoo_compressed compressed;
    struct zoo_losses losses;
    enum status status = zoo_compress(&compressed, device, model, &weights, &how, &err);
    if (status != STATUS_OK)
        return status;
    status = zoo_losses_measure(&losses, device, model, &weights, &compressed, &options, &err);
    zoo_compressed_free(&compressed);
    return status;
}

// Fails each allocation in turn, until none is asked for.
static void starve(const char *what, enum status (*attempt)(void))
{
    enum status status = STATUS_NOMEM;
    for (long n = 0; status != STATUS_OK; n++) {
        left = n;
        status = attempt();
        const bool failed = left < 0;
        left = -1;
        if (status != (failed ? STATUS_NOMEM : STATUS_OK))
            fail_msg("%s, allocation %ld: %s", what, n, err.text);
        assert_true(n < 100000);
        assert_int_equal(device_memory_used(device), 0);
    }
}

TEST_CASE(models)
{
    starve("parser", parse);
    starve("weights", seed);
}

TEST_CASE(compressions)
{
    static const char *const methods[] = {"int8", "int4", "prune:0.5", "lowrank:2"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        how = (struct zoo_compression){.seed = 1};
        expect_ok(zoo_compression_parse(&how, methods[i], &err), &err);
        if (compress() == STATUS_UNSUPPORTED && how.method == ZOO_LOW_RANK) {
            assert_non_null(strstr(err.text, "liblapacke"));
            continue;
        }
        starve(methods[i], compress);
    }
}

TEST_FIXTURE(set_up)
{
    const struct device_options options = {.spec = "cpu", .threads = 1};
    expect_ok(device_open(&device, &options, &err), &err);
    expect_ok(zoo_model_parse(&model, "tiny", text, sizeof text - 1, &err), &err);
    expect_ok(zoo_weights_seeded(&weights, model, 1, &err), &err);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    zoo_weights_free(&weights);
    zoo_model_free(model);
    device_close(device);
    return 0;
}

int main(void)
{
    return TEST_RUN_ONCE(set_up, tear_down, models, compressions);
}
