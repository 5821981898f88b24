// Descriptions of small models: those that are compiled in, and texts that are refused.
#include "server/workload/zoo/zoo_model.h"

#include <math.h>

#include "tests/support/test.h"

static struct error err;

static struct zoo_model *parse(const char *text)
{
    struct zoo_model *model = NULL;
    expect_ok(zoo_model_parse(&model, "x", text, strlen(text), &err), &err);
    return model;
}

static struct zoo_model *compiled_in(const char *name)
{
    struct zoo_model *model = NULL;
    for (size_t i = 0; i < zoo_text_count; i++)
        if (strcmp(zoo_texts[i].name, name) == 0)
            expect_ok(zoo_model_parse(&model, name, zoo_texts[i].text, zoo_texts[i].size, &err),
                      &err);
    assert_non_null(model);
    return model;
}

// As published: https://github.com/mlcommons/tiny, Keras totals.
TEST_CASE(networks_of_mlperf_tiny_have_their_parameters)
{
    static const struct {
        const char *name;
        uint64_t parameters;
    } rows[] = {
        {"ds-cnn", 24908}, {"resnet-8", 78666}, {"mobilenet-v1", 221794}, {"autoencoder", 269992}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct zoo_model *model = compiled_in(rows[i].name);
        assert_string_equal(model->category, "anchor");
        assert_int_equal(model->parameters, rows[i].parameters);
        zoo_model_free(model);
    }
}

TEST_CASE(all_models_have_the_parameters_that_are_stated)
{
    assert_int_equal(zoo_text_count, 34);
    for (size_t i = 0; i < zoo_text_count; i++) {
        struct zoo_model *model = compiled_in(zoo_texts[i].name);
        assert_string_equal(model->name, zoo_texts[i].name);
        assert_true(model->stated_parameters > 0);
        if (!model->exactly)
            assert_true(fabs((double)model->parameters / model->stated_parameters - 1) <= 0.1);
        assert_true(model->task[0] != '\0');
        zoo_model_free(model);
    }
}

TEST_CASE(shapes_and_weights_of_each_layer)
{
    struct zoo_model *model = parse("name: t\n"
                                    "input: image 3x9x8\n"
                                    "x = image -> conv 8 3 stride 2 norm relu\n"
                                    "y = x -> upsample 2x1 -> dense 5 -> softmax\n");
    char text[ZOO_SHAPE_TEXT_SIZE];
    assert_int_equal(model->layer_count, 5);
    const struct zoo_layer *conv = &model->layers[1];
    assert_string_equal(conv->name, "x.1");
    assert_string_equal(zoo_shape_text(text, &conv->shape), "8x5x4");
    // The odd zero is below and right, as in TensorFlow.
    assert_memory_equal(conv->pad, ((const uint32_t[]){1, 0, 1, 1}), sizeof conv->pad);
    assert_int_equal(conv->macs, 8 * 5 * 4 * 3 * 9);
    assert_int_equal(conv->tensor_count, 6);
    assert_string_equal(model->tensors[5].name, "x.1.norm.variance");
    assert_string_equal(zoo_shape_text(text, &model->layers[2].shape), "8x10x4");
    assert_string_equal(zoo_shape_text(text, &model->layers[4].shape), "5");
    assert_int_equal(model->parameters, 8 * 27 + 8 + 4 * 8 + 8 * 10 * 4 * 5 + 5);
    zoo_model_free(model);
}

TEST_MAIN(networks_of_mlperf_tiny_have_their_parameters,
          all_models_have_the_parameters_that_are_stated, shapes_and_weights_of_each_layer)
