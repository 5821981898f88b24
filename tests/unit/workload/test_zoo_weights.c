// Weights of small models: seeded ones, and files of them that are right or are not.
#include "server/workload/zoo/weights.h"

#include <math.h>
#include <unistd.h>

#include "server/workload/llm/gguf_writer.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static const char text[] = "name: t\n"
                           "input: image 1x4x4\n"
                           "input: words ids 5 of 9\n"
                           "x = image -> conv 2 3x2 norm -> dense 3\n"
                           "y = words -> embed 4 -> gru 3 last\n"
                           "z = x, y -> add\n";

static struct error err;
static struct zoo_model *model;
static struct zoo_weights weights, loaded;
static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];

TEST_FIXTURE(begin)
{
    folder_make(folder);
    folder_path(path, folder, "w.gguf");
    expect_ok(zoo_model_parse(&model, "t", text, sizeof text - 1, &err), &err);
    expect_ok(zoo_weights_seeded(&weights, model, 7, &err), &err);
    return 0;
}

TEST_FIXTURE(end)
{
    zoo_weights_free(&weights);
    zoo_weights_free(&loaded);
    zoo_model_free(model);
    folder_remove(folder);
    return 0;
}

static const float *values_of(const struct zoo_weights *of, const char *name)
{
    for (size_t i = 0; i < model->tensor_count; i++)
        if (strcmp(model->tensors[i].name, name) == 0)
            return of->values[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

// Computed by numpy from the formula in the header.
TEST_CASE(seeded_weights_are_those_of_the_formula)
{
    assert_float_equal(values_of(&weights, "x.1.weight")[0], 0.8970505, 1e-7);
    assert_float_equal(values_of(&weights, "x.1.norm.variance")[1], 0.983027935, 1e-7);
    assert_float_equal(values_of(&weights, "y.1.weight")[35], -0.24848175, 1e-7);
    assert_float_equal(values_of(&weights, "y.2.bias_hh")[8], -0.396652044, 1e-7);
    float ids[5], image[16];
    zoo_input_seeded(ids, model, 1, 12, 7);
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        assert_float_equal(ids[i], ((const float[]){4, 7, 1, 2, 6})[i], 0);
    zoo_input_seeded(image, model, 0, 0, 7);
    assert_float_equal(image[15], 0.93006289, 1e-7);
}

TEST_CASE(saved_weights_are_loaded)
{
    expect_ok(zoo_weights_save(&weights, model, path, &err), &err);
    expect_ok(zoo_weights_load(&loaded, model, path, NULL, &err), &err);
    assert_int_equal(loaded.count, model->tensor_count);
    for (size_t i = 0; i < loaded.count; i++)
        assert_memory_equal(loaded.values[i], weights.values[i],
                            model->tensors[i].elements * sizeof(float));
    assert_int_equal(zoo_weights_save(&weights, model, "/nowhere/w.gguf", &err), STATUS_IO);
}

// Tensors of 4 dimensions keep them, and names, so that other readers of GGUF know them.
TEST_CASE(files_have_shapes_and_the_description)
{
    struct byte_source source;
    struct gguf *gguf = NULL;
    struct gguf_text value;
    expect_ok(zoo_weights_save(&weights, model, path, &err), &err);
    expect_ok(byte_source_open(&source, path, &err), &err);
    expect_ok(gguf_read(&gguf, &source, NULL, &err), &err);
    const struct gguf_tensor *conv = gguf_find_tensor(gguf, "x.1.weight");
    assert_non_null(conv);
    assert_int_equal(conv->dimensions, 4);
    assert_memory_equal(conv->shape, ((const uint64_t[]){2, 3, 1, 2}), sizeof conv->shape);
    expect_ok(gguf_get_text(gguf, "inferstat-zoo.text", &value, &err), &err);
    assert_true(gguf_text_is(&value, text));
    expect_ok(gguf_get_text(gguf, "general.name", &value, &err), &err);
    assert_true(gguf_text_is(&value, "t"));
    gguf_free(gguf);
    byte_source_close(&source);
}

static void expect_refusal(enum status status, const char *says)
{
    assert_int_equal(zoo_weights_load(&loaded, model, path, NULL, &err), status);
    assert_null(loaded.values);
    if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

// Saves the weights of another text.
static void save_other(const char *other_text)
{
    struct zoo_model *other = NULL;
    struct zoo_weights its;
    expect_ok(zoo_model_parse(&other, "o", other_text, strlen(other_text), &err), &err);
    expect_ok(zoo_weights_seeded(&its, other, 1, &err), &err);
    expect_ok(zoo_weights_save(&its, other, path, &err), &err);
    zoo_weights_free(&its);
    zoo_model_free(other);
}

TEST_CASE(weights_of_another_model_are_refused)
{
    save_other("name: o\ninput: i 4\nx = i -> dense 3\n");
    expect_refusal(STATUS_CORRUPT, "'x.1.weight' has the shape 1x1x3x4, in the model t 2x1x3x2");
    save_other("name: o\ninput: image 1x4x4\nx = image -> conv 2 3x2 nobias norm\n");
    expect_refusal(STATUS_CORRUPT, "tensor 'x.1.bias' of the model t is missing");
    save_other("name: o\ninput: image 1x4x4\ninput: words ids 5 of 9\n"
               "x = image -> conv 2 3x2 norm -> dense 3\n"
               "y = words -> embed 4 -> gru 3 last\nz = x, y -> add -> dense 2\n");
    expect_refusal(STATUS_CORRUPT, "is of no layer of the model t");
}

TEST_CASE(values_that_are_no_numbers_are_named)
{
    weights.values[0][5] = NAN;
    expect_ok(zoo_weights_save(&weights, model, path, &err), &err);
    expect_refusal(STATUS_CORRUPT, "tensor 'x.1.weight': element 5 is nan");
    weights.values[0][5] = 0.0F;
    weights.values[3][1] = -INFINITY;
    expect_ok(zoo_weights_save(&weights, model, path, &err), &err);
    expect_refusal(STATUS_CORRUPT, "tensor 'x.1.norm.bias': element 1 is -inf");
}

// Every file that ends before its data is refused.
TEST_CASE(truncated_files_are_refused)
{
    enum { PADDING = 32 };
    size_t whole;
    expect_ok(zoo_weights_save(&weights, model, path, &err), &err);
    free(read_file(path, &whole));
    for (size_t size = whole; size-- > 0;) {
        assert_int_equal(truncate(path, (off_t)size), 0);
        const enum status status = zoo_weights_load(&loaded, model, path, NULL, &err);
        zoo_weights_free(&loaded);
        if (status != STATUS_OK || size + PADDING <= whole)
            assert_int_equal(status, STATUS_CORRUPT);
    }
}

TEST_CASE(halves_are_widened)
{
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x3800, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct gguf_writer *writer = NULL;
    zoo_model_free(model);
    static const char small[] = "name: s\ninput: i 4\nx = i -> dense 3 nobias\n";
    expect_ok(zoo_model_parse(&model, "s", small, sizeof small - 1, &err), &err);
    expect_ok(gguf_writer_open(&writer, path, &err), &err);
    gguf_writer_text(writer, "general.architecture", "inferstat-zoo");
    gguf_writer_tensor(writer, "x.1.weight", GGUF_TENSOR_F16, 3, 4);
    gguf_writer_align(writer);
    gguf_writer_data(writer, halves, sizeof halves);
    expect_ok(gguf_writer_close(writer, STATUS_OK, &err), &err);
    expect_ok(zoo_weights_load(&loaded, model, path, NULL, &err), &err);
    assert_memory_equal(loaded.values[0], ((const float[]){1.0F, -2.0F, 0.5F, 0.0F}), 16);
}

static unsigned polls;

// Not while the header is read, but before the first tensor.
static bool cancel(void)
{
    return polls++ > 0;
}

TEST_CASE(loading_is_cancelled)
{
    expect_ok(zoo_weights_save(&weights, model, path, &err), &err);
    assert_int_equal(zoo_weights_load(&loaded, model, path, cancel, &err), STATUS_CANCELLED);
    assert_int_equal(zoo_weights_load(&loaded, model, "/nowhere", NULL, &err), STATUS_NOT_FOUND);
}

TEST_MAIN_EACH(begin, end, seeded_weights_are_those_of_the_formula, saved_weights_are_loaded,
               files_have_shapes_and_the_description, weights_of_another_model_are_refused,
               values_that_are_no_numbers_are_named, truncated_files_are_refused,
               halves_are_widened, loading_is_cancelled)
