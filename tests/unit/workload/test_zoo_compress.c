// Compression of small models: the stored weights, the models that result, and refusals.
#include <math.h>

#include "server/workload/zoo/compress.h"
#include "server/workload/zoo/losses.h"
#include "tests/support/test.h"

static const char text[] = "name: tiny\n"
                           "category: vision\n"
                           "task: a test\n"
                           "input: left 3x8x8\n"
                           "input: right 3x8x8\n"
                           "a = left -> conv 16 3 norm relu -> depthwise 3 norm relu6\n"
                           "b = right -> like a\n"
                           "c = a, b -> add -> conv 24 3x2 stride 2 relu -> conv 12 1 groups 2\n"
                           "classes = c -> dense 32 relu -> dense 10 -> softmax\n"
                           "mask = c -> upsample 2 -> conv 2 1 -> softmax\n"
                           "output: classes, mask\n";

static struct zoo_model *model;
static struct zoo_weights weights;
static struct device *device;

static struct zoo_compression how(const char *method)
{
    struct error err = {0};
    struct zoo_compression compression = {.seed = 1};
    expect_ok(zoo_compression_parse(&compression, method, &err), &err);
    return compression;
}

static struct zoo_compressed compress(const struct zoo_compression *compression)
{
    struct error err = {0};
    struct zoo_compressed compressed;
    expect_ok(zoo_compress(&compressed, device, model, &weights, compression, &err), &err);
    return compressed;
}

static struct zoo_losses losses_of(const struct zoo_compressed *compressed)
{
    const struct zoo_loss_options options = {.distillation = {4.0, 0.7}, .inputs = 24, .seed = 1};
    struct error err = {0};
    struct zoo_losses losses;
    expect_ok(zoo_losses_measure(&losses, device, model, &weights, compressed, &options, &err),
              &err);
    assert_true(losses.distillation > 0.0 && isfinite(losses.max_error));
    assert_int_equal(losses.positions, 24 * (1 + 8 * 8));
    return losses;
}

// Largest difference from the original's weights, relative to the layer's largest.
static double weight_error(const struct zoo_compressed *compressed)
{
    double most = 0.0;
    for (size_t t = 0; t < model->tensor_count; t++) {
        double largest = 0.0, difference = 0.0;
        for (size_t i = 0; i < model->tensors[t].elements; i++) {
            const double x = (double)weights.values[t][i];
            largest = fmax(largest, fabs(x));
            difference = fmax(difference, fabs(x - (double)compressed->weights.values[t][i]));
        }
        most = fmax(most, difference / largest);
    }
    return most;
}

// Elements of matrices, and of biases, with norms folded.
static void count_elements(size_t *matrices, size_t *vectors, size_t *rows)
{
    *matrices = *vectors = *rows = 0;
    for (size_t t = 0; t < model->tensor_count; t++) {
        const struct zoo_tensor *tensor = &model->tensors[t];
        *matrices += tensor->rank > 1 ? tensor->elements : 0;
        *rows += tensor->rank > 1 ? tensor->dims[0] : 0;
    }
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct zoo_layer *layer = &model->layers[i];
        if (layer->weights_of == i && (layer->bias || layer->norm))
            *vectors += layer->shape.channels;
    }
}

TEST_CASE(integers_of_weights)
{
    size_t matrices, vectors, rows;
    count_elements(&matrices, &vectors, &rows);
    struct zoo_compression eight = how("int8"), four = how("int4");
    eight.simulate = true;
    struct zoo_compressed first = compress(&eight), second = compress(&four);
    assert_string_equal(first.model->name, "tiny-int8-simulated");
    assert_string_equal(second.model->name, "tiny-int4");
    assert_null(first.int8);
    assert_int_equal(first.original_bytes, 4 * (matrices + vectors));
    assert_int_equal(first.bytes, matrices + 4 * vectors + 4 * rows);
    assert_int_equal(second.bytes, matrices / 2 + 4 * vectors + 4 * rows);
    assert_true(weight_error(&first) <= 0.501 / 127.0);
    assert_true(weight_error(&second) <= 0.501 / 7.0);
    assert_true(weight_error(&second) > 0.501 / 127.0);
    assert_true(losses_of(&first).relative_error < losses_of(&second).relative_error);
    assert_true(losses_of(&first).agreement > 0.9);
    zoo_compressed_free(&first);
    zoo_compressed_free(&second);
    // One scale for all rows, with a zero.
    eight.per_tensor = eight.quantiser.affine = true;
    first = compress(&eight);
    assert_true(first.bytes < matrices + 4 * vectors + 4 * rows);
    zoo_compressed_free(&first);
}

// The same integers run as integers and as floats differ by the rounding of activations alone.
TEST_CASE(runs_in_integers)
{
    for (int affine = 0; affine < 2; affine++) {
        struct zoo_compression compression = how("int8");
        compression.quantiser.affine = affine;
        struct zoo_compressed compressed = compress(&compression);
        assert_string_equal(compressed.model->name, "tiny-int8");
        size_t layers = 0;
        for (size_t i = 0; i < model->layer_count; i++) {
            const struct zoo_layer *layer = &model->layers[i];
            const bool integers = layer->kind == ZOO_CONV || layer->kind == ZOO_DENSE;
            const struct zoo_layer_int8 *int8 = &compressed.int8[i];
            assert_true(integers == (int8->values != NULL));
            if (!integers)
                continue;
            layers++;
            assert_true(int8->input_scale > 0.0F);
            assert_in_range(int8->input_zero + 128, 0, 255);
            assert_true(affine == (int8->zeros != NULL));
            // Layers with the same weights have the same integers and ranges.
            assert_memory_equal(int8, &compressed.int8[layer->weights_of], sizeof *int8);
        }
        assert_int_equal(layers, 7);
        // Inputs lie within -1..1.
        assert_true(compressed.int8[2].input_scale > 1.9F / 255.0F &&
                    compressed.int8[2].input_scale < 2.1F / 255.0F);
        const struct zoo_losses losses = losses_of(&compressed);
        assert_true(losses.relative_error < 0.05 && losses.relative_error > 0.0);
        assert_true(losses.agreement > 0.9);
        zoo_compressed_free(&compressed);
    }
}

static void skip_without_lapacke(void)
{
    struct error err = {0};
    struct zoo_compressed compressed;
    const struct zoo_compression compression = how("lowrank:0.5");
    if (zoo_compress(&compressed, device, model, &weights, &compression, &err) != STATUS_OK) {
        if (!strstr(err.text, "liblapacke"))
            fail_msg("%s", err.text);
        print_message("%s\n", err.text);
        skip();
    }
    zoo_compressed_free(&compressed);
}

// The energy kept is what the product of the factors has of the original's.
static void check_energy(const struct zoo_compressed *compressed, size_t index)
{
    const struct zoo_factored *factored = &compressed->factored[index];
    const struct zoo_layer *layer = &model->layers[index];
    const struct zoo_tensor *tensor = &model->tensors[layer->first_tensor];
    size_t low = 0;
    while (!strstr(compressed->model->tensors[low].name, layer->name))
        low++;
    const float *vt = compressed->weights.values[low], *us = compressed->weights.values[low + 1];
    const size_t rows = tensor->dims[0], columns = tensor->elements / rows;
    double energy = 0.0, lost = 0.0;
    assert_int_equal(compressed->model->tensors[low].elements, factored->rank * columns);
    assert_int_equal(compressed->model->tensors[low + 1].elements, factored->rank * rows);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            const double x = (double)weights.values[layer->first_tensor][r * columns + c];
            double product = 0.0;
            for (size_t i = 0; i < factored->rank; i++)
                product += (double)us[r * factored->rank + i] * (double)vt[i * columns + c];
            energy += x * x;
            lost += pow(x - product, 2.0);
        }
    assert_true(fabs(1.0 - lost / energy - factored->energy) < 1e-5);
}

TEST_CASE(factors_of_layers)
{
    static const struct {
        const char *method, *name;
        size_t rank; // 0: by energy
    } cases[] = {{"lowrank:4", "tiny-lowrank-4", 4},
                 {"lowrank:1", "tiny-lowrank-1", 1},
                 {"lowrank:0.6", "tiny-lowrank-0.6", 0}};
    skip_without_lapacke();
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const struct zoo_compression compression = how(cases[c].method);
        struct zoo_compressed compressed = compress(&compression);
        uint64_t parameters = 0, macs = 0;
        size_t changed = 0;
        assert_string_equal(compressed.model->name, cases[c].name);
        for (size_t i = 0; i < model->layer_count; i++) {
            const struct zoo_factored *factored = &compressed.factored[i];
            if (factored->rank == 0)
                continue;
            changed++;
            assert_true(factored->energy > 0.0 && factored->energy <= 1.0);
            assert_true(cases[c].rank ? factored->rank == cases[c].rank
                                      : factored->energy >= compression.amount);
            check_energy(&compressed, i);
        }
        for (size_t t = 0; t < compressed.model->tensor_count; t++)
            parameters += compressed.model->tensors[t].elements;
        for (size_t i = 0; i < compressed.model->layer_count; i++)
            macs += compressed.model->layers[i].macs;
        assert_int_equal(changed, compressed.changed);
        assert_int_equal(parameters, compressed.model->parameters);
        assert_int_equal(macs, compressed.model->macs);
        assert_true(parameters < model->parameters && compressed.bytes < compressed.original_bytes);
        (void)losses_of(&compressed);
        zoo_compressed_free(&compressed);
    }
}

// Nearly all of the energy keeps nearly all of the function, where it saves weights at all.
TEST_CASE(more_energy_is_nearer)
{
    double last = INFINITY;
    static const char *const methods[] = {"lowrank:0.5", "lowrank:0.8"};
    skip_without_lapacke();
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        const struct zoo_compression compression = how(methods[i]);
        struct zoo_compressed compressed = compress(&compression);
        const double error = losses_of(&compressed).relative_error;
        assert_true(error < last);
        last = error;
        zoo_compressed_free(&compressed);
    }
}

TEST_CASE(pruned_weights)
{
    const struct zoo_compression compression = how("prune:0.5");
    struct zoo_compressed compressed = compress(&compression);
    size_t bytes = 0, zeros = 0;
    size_t matrices, vectors, rows;
    count_elements(&matrices, &vectors, &rows);
    assert_string_equal(compressed.model->name, "tiny-prune-0.5");
    for (size_t t = 0; t < model->tensor_count; t++) {
        const struct zoo_tensor *tensor = &model->tensors[t];
        size_t own = 0;
        for (size_t i = 0; i < tensor->elements; i++)
            own += compressed.weights.values[t][i] == 0.0F;
        assert_int_equal(own, tensor->rank > 1 ? tensor->elements / 2 : 0);
        zeros += own;
        bytes += tensor->rank > 1 ? (tensor->elements + 7) / 8 : 0;
    }
    assert_int_equal(compressed.bytes, bytes + 4 * (matrices - zeros + vectors));
    (void)losses_of(&compressed);
    zoo_compressed_free(&compressed);
}

TEST_CASE(words_that_are_refused)
{
    static const char *const methods[] = {
        "int2",       "",          "lowrank",     "lowrank:",    "lowrank:0",
        "lowrank:-1", "lowrank:x", "lowrank:1.5", "lowrank:1e7", "prune:0",
        "prune:1",    "prune:1.5", "prune:nan",   "prune:-0.1",  "prune",
        "int8:4",     "INT8",      "lowrank:nan"};
    static const char *const clips[] = {
        "max", "percentile", "percentile:49", "percentile:101", "percentile:x", "mse:1", ""};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        struct zoo_compression compression;
        struct error err = {0};
        if (zoo_compression_parse(&compression, methods[i], &err) != STATUS_INVALID)
            fail_msg("%s is accepted", methods[i]);
        assert_non_null(strstr(err.text, "--compress"));
    }
    for (size_t i = 0; i < COUNT_OF(clips); i++) {
        struct zoo_quantiser quantiser;
        struct error err = {0};
        assert_int_equal(zoo_clip_parse(&quantiser, clips[i], &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "--clip"));
    }
}

TEST_CASE(nothing_to_compress)
{
    static const char pool[] = "name: pool\ncategory: vision\ntask: a test\ninput: x 3x8x8\n"
                               "y = x -> maxpool 2\n";
    static const char *const methods[] = {"int8", "int4", "prune:0.5", "lowrank:2"};
    struct error err = {0};
    struct zoo_model *none;
    struct zoo_weights no_weights;
    struct zoo_compressed compressed;
    expect_ok(zoo_model_parse(&none, "pool", pool, sizeof pool - 1, &err), &err);
    expect_ok(zoo_weights_seeded(&no_weights, none, 1, &err), &err);
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        const struct zoo_compression compression = how(methods[i]);
        const enum status status =
            zoo_compress(&compressed, device, none, &no_weights, &compression, &err);
        assert_true(status == STATUS_INVALID || status == STATUS_UNSUPPORTED);
        assert_non_null(strstr(err.text, status == STATUS_INVALID ? "pool: " : "liblapacke"));
    }
    zoo_weights_free(&no_weights);
    zoo_model_free(none);
    // No layer has so many rows and columns.
    skip_without_lapacke();
    const struct zoo_compression large = how("lowrank:400");
    assert_int_equal(zoo_compress(&compressed, device, model, &weights, &large, &err),
                     STATUS_INVALID);
    assert_non_null(strstr(err.text, "tiny: "));
}

// Outputs that overflow are no numbers, whose errors are not 0.
TEST_CASE(activations_that_overflow)
{
    static const char deep[] = "name: deep\ninput: x 8\ny = x -> dense 8 -> dense 8 -> dense 4\n";
    static const char *const methods[] = {"int8", "int4", "prune:0.5"};
    const struct zoo_loss_options options = {.distillation = {4.0, 0.7}, .inputs = 2, .seed = 1};
    struct error err = {0};
    struct zoo_model *layers;
    struct zoo_weights huge;
    expect_ok(zoo_model_parse(&layers, "deep", deep, sizeof deep - 1, &err), &err);
    expect_ok(zoo_weights_seeded(&huge, layers, 1, &err), &err);
    for (size_t t = 0; t < layers->tensor_count; t++)
        for (size_t i = 0; i < layers->tensors[t].elements; i++)
            huge.values[t][i] *= 1e37F;
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        struct zoo_compression compression = how(methods[i]);
        struct zoo_compressed compressed;
        struct zoo_losses losses;
        expect_ok(zoo_compress(&compressed, device, layers, &huge, &compression, &err), &err);
        expect_ok(zoo_losses_measure(&losses, device, layers, &huge, &compressed, &options, &err),
                  &err);
        assert_true(isnan(losses.max_error) && isnan(losses.relative_error));
        assert_int_equal(losses.positions, 0);
        zoo_compressed_free(&compressed);
    }
    zoo_weights_free(&huge);
    zoo_model_free(layers);
}

static bool stop(void)
{
    return true;
}

TEST_CASE(cancelled)
{
    struct error err = {0};
    struct zoo_compressed compressed;
    struct zoo_compression compression = how("int8");
    compression.cancelled = stop;
    assert_int_equal(zoo_compress(&compressed, device, model, &weights, &compression, &err),
                     STATUS_CANCELLED);
    assert_null(compressed.model);
}

TEST_FIXTURE(set_up)
{
    struct error err = {0};
    const struct device_options options = {.spec = "cpu", .threads = 2};
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
    return TEST_RUN_ONCE(set_up, tear_down, integers_of_weights, runs_in_integers,
                         factors_of_layers, more_energy_is_nearer, pruned_weights,
                         words_that_are_refused, nothing_to_compress, activations_that_overflow,
                         cancelled);
}
