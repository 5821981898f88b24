// Descriptions of small models: those that are compiled in, and texts that are refused.
#include "server/workload/zoo/zoo_model.h"

#include <math.h>
#include <unistd.h>

#include "tests/support/folder.h"
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
    const struct zoo_text *text = zoo_text_find(name);
    assert_non_null(text);
    expect_ok(zoo_model_parse(&model, name, text->text, text->size, &err), &err);
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

// ---- Refusals -------------------------------------------------------------

#define HEAD "name: t\ninput: i 3x8x8\ninput: s 4x8\ninput: v 5\ninput: w ids 7 of 9\n"
struct refusal {
    const char *line, *says;
};

static void expect_refusals(const char *head, const struct refusal *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = format_text("%s%s\n", head, rows[i].line);
        struct zoo_model *model = NULL;
        const enum status status = zoo_model_parse(&model, "x", text, strlen(text), &err);
        if (status == STATUS_OK || !strstr(err.text, rows[i].says))
            fail_msg("%s: '%s' does not say '%s'", rows[i].line,
                     status == STATUS_OK ? "no error" : err.text, rows[i].says);
        assert_true(status == STATUS_CORRUPT || status == STATUS_UNSUPPORTED);
        assert_int_equal(strncmp(err.text, "x: ", 3), 0);
    }
}

TEST_CASE(shapes_that_do_not_match_are_refused)
{
    static const struct refusal rows[] = {
        {"x = i, s -> add", "x: line 6: x.1 (add): shapes 3x8x8 (i) and 4x8 (s) do not match"},
        {"x = i, s -> concat", "shapes 3x8x8 (i) and 4x8 (s) do not match"},
        {"x = i -> conv 4 3 -> multiply i", "x.2 (multiply): shapes 4x8x8 (x.1) and 3x8x8 (i)"},
        {"x = i, v -> multiply", "shapes 3x8x8 (i) and 5 (v)"},
        {"x = i, i, i -> add", "x.1 (add): 3 sources, not two"},
        {"x = i -> concat", "1 sources, not two or more"},
        {"x = i, s -> conv 3 3", "conv reads one source, not 2"},
        {"x = v -> conv 3 3", "x.1 (conv): reads maps or sequences, not the vector 5"},
        {"x = v -> maxpool global", "x.1 (maxpool): reads maps or sequences, not the vector 5"},
        {"x = v -> upsample 2", "not the vector 5"},
        {"x = i -> gru 4", "reads sequences, or maps of height 1, not 3x8x8"},
        {"x = v -> gru 4", "reads sequences, or maps of height 1, not 5"},
        {"x = s -> conv 4 3x1", "two numbers for the one dimension of the sequence 4x8"},
        {"x = s -> conv 4 3 stride 2x1", "two numbers for the one dimension"},
        {"x = i -> conv 4 9 pad valid", "a kernel over 9 does not fit in 8, padding included"},
        {"x = i -> conv 4 3 dilate 8 pad 3", "a kernel over 17 does not fit in 14"},
        {"x = i -> conv 4 3 pad 3", "pad 3 is not below the kernel's 3"},
        {"x = i -> conv 4 3 groups 2", "2 groups do not divide 3 channels into 4"},
        {"x = i -> conv 4 3 groups 3", "3 groups do not divide 3 channels into 4"},
        {"x = i -> embed 4", "x.1 (embed): reads an input of ids only"},
        {"x = w -> dense 4", "an input of ids is read by embed only"},
        {"x = i -> conv 4 3\ny = s -> like x", "y.1 (conv): needs weights of 4x4x3, not of "
                                               "4x3x3x3 as x.1.weight"},
    };
    expect_refusals(HEAD, rows, COUNT_OF(rows));
}

TEST_CASE(names_that_are_not_there_are_refused)
{
    static const struct refusal rows[] = {
        {"x = y -> relu\ny = x -> relu", "line 6: 'y' is neither an input nor a line above"},
        {"x = x -> relu", "'x' is neither"},
        {"x = i -> add x", "'x' is neither"},
        {"x = i -> conv 3 3 -> like x", "'x' is neither"},
        {"x = i -> like s", "like 's': both lines must have one source"},
        {"i = v -> relu", "'i' is already line 2"},
        {"x = i -> relu\nx = i -> relu", "'x' is already line 6"},
        {"output: q", "'q' is neither"},
        {"output: i", "the input 'i' is no output"},
        {"x = i -> relu\noutput: x, x", "output 'x' is there twice"},
        {"x = i -> relu", "line 3: 's' is not used by a line below, and no output"},
        {"2x = i -> relu", "'2x' is not a name"},
        {"a.b = i -> relu", "'a.b' is not a name"},
        {"abcdefghijabcdefghijabcdefghijabcdefghij1 = i -> relu", "is not a name of at most 39"},
    };
    expect_refusals(HEAD, rows, COUNT_OF(rows));
}

TEST_CASE(words_and_numbers_that_are_wrong_are_refused)
{
    static const struct refusal rows[] = {
        {"x = i -> covn 3 3", "unknown layer 'covn' (did you mean 'conv'?)"},
        {"x = i ->", "unknown layer the end of the line"},
        {"x = i", "expected '->', not the end of the line"},
        {"x = i -> relu relu", "relu: unknown option 'relu'"},
        {"x = i -> conv 3 3 strde 2", "conv: unknown option 'strde'"},
        {"x = i -> conv 3 3 last", "conv: unknown option 'last'"},
        {"x = i -> maxpool global stride 2", "maxpool: unknown option 'stride'"},
        {"x = i -> conv 3 3 norm norm", "conv: 'norm' is a second option of its kind"},
        {"x = i -> conv 3 3 relu tanh", "conv: 'tanh' is a second option of its kind"},
        {"x = i -> conv 3", "conv: the end of the line is not a size"},
        {"x = i -> conv 0 3", "conv: '0' is not within 1 to 1048576"},
        {"x = i -> conv 3 0", "conv: '0' is not within 1 to 1024"},
        {"x = i -> conv 3 3x", "conv: '3x' is not a size such as 3 or 10x4"},
        {"x = i -> conv 3 3y", "'3y' is not a size"},
        {"x = i -> conv 3 3x3x3", "'3x3x3' has more than two numbers"},
        {"x = i -> conv 3x3 3", "'3x3' is not one number"},
        {"x = i -> conv -1 3", "'-1' is not a size"},
        {"x = i -> conv 3 3 stride 0", "stride: '0' is not within 1 to 1024"},
        {"x = i -> conv 99999999999999999999999 3", "is not within 1 to 1048576"},
        {"x = i -> 0 * (relu)", "repeat: '0' is not within 1 to 512"},
        {"x = i -> 2 * (relu", "expected ')', not the end of the line"},
        {"x = i -> 2 * relu", "expected '(', not 'relu'"},
        {"x = i -> 2 * (relu -> 2 * (tanh))", "a repeat within a repeat"},
        {"x = i -> relu)", "expected '->', not ')'"},
        {"x = i, -> relu", "'->' is neither"},
        {"x: 3", "unknown key 'x'"},
        {"x i", "neither KEY: VALUE nor NAME = SOURCE -> LAYER"},
        {"name: u", "'name:' is there twice"},
        {"category: a b", "category: unexpected 'b'"},
        {"task:", "task: expected 1 to 127 characters, not 0"},
        {"parameters: 5 about", "parameters: unexpected 'about'"},
        {"input: q 3", "more than 4 inputs"},
        {"x = i -> relu\x01", "line 6: byte 0x01 is not printable ASCII"},
        {"# \xc3\xa4", "line 6: byte 0xc3 is not printable ASCII"},
    };
    expect_refusals(HEAD, rows, COUNT_OF(rows));
    static const struct refusal heads[] = {
        {"input: q 3\nx = q -> relu", "x: no line 'name:'"},
        {"name: t", "x: no line 'input:'"},
        {"name: t\ninput: q 3\ninput: q 4", "'q' is already line 2"},
        {"name: t\ninput: q 3", "x: no layers"},
        {"name: t\ninput: q 3x0x4", "input: '3x0x4' is not within 1 to 1048576"},
        {"name: t\ninput: q 3x3x4x5", "'3x3x4x5' is not a size"},
        {"name: t\ninput: q ids 5 from 9", "expected 'of', not 'from'"},
        {"name: t\ninput: q ids 5 of 513", "vocabulary: '513' is not within 2 to 512"},
        {"name: t\nparameters: 30\ninput: q 3\nx = q -> dense 5",
         "x: 20 parameters, but 30 are stated (10 % are allowed)"},
        {"name: t\nparameters: 21 exactly\ninput: q 3\nx = q -> dense 5",
         "21 are stated (exactly)"},
    };
    expect_refusals("", heads, COUNT_OF(heads));
}

TEST_CASE(sizes_are_bounded)
{
    static const struct refusal rows[] = {
        {"input: q 1048576x1048576x1048576", "line 2: input q: more than 268435456 elements"},
        {"input: q 1024x1024\nx = q -> conv 1048576 1",
         "x.1 (conv): a result of 1073741824 elements (at most 268435456)"},
        {"input: q 512x1x1\nx = q -> conv 1048576 1024x1",
         "x.1 (conv): weights of 549755813888 elements"},
        {"input: q 1x512x512\nx = q -> 6 * (upsample 1024)",
         "x.1 (upsample): a result of 274877906944 elements"},
        {"input: q 1x1x1\nx = q -> conv 1 1024 dilate 1024",
         "an input with padding of 1097367287809 elements"},
        {"input: q 2x100\nx = q -> gru 1048576 last", "x.1 (gru): weights of 3298534883328"},
        {"input: q 16000\nx = q -> 2 * (dense 16000)",
         "x.2 (dense): weights up to here of 512016000 elements"},
        {"input: q 4\nx = q -> 512 * (relu)", "line 3: more than 512 layers, inputs included"},
        {"input: q 4\nx = q, q, q, q, q, q, q, q, q -> concat", "line 3: more than 8 sources"},
        {"input: q 4\nx = q -> concat q q q q q q q q", "concat: more than 8 sources"},
    };
    expect_refusals("name: t\n", rows, COUNT_OF(rows));
}

TEST_CASE(files_are_read_whatever_they_hold)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
    struct zoo_model *model = NULL;
    folder_make(folder);
    folder_path(path, folder, "a.model");
    assert_int_equal(zoo_model_read(&model, path, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, path));
    static const char crlf[] = "name: t\r\ninput: q 4\r\n\r\nx = q -> dense 3 # ends\r\n";
    (void)write_text(path, crlf);
    expect_ok(zoo_model_read(&model, path, &err), &err);
    assert_string_equal(model->text, crlf);
    assert_int_equal(model->parameters, 15);
    zoo_model_free(model);
    static const char nul[] = "name: t\ninput: q 4\0";
    assert_int_equal(zoo_model_read(&model, write_file(path, nul, sizeof nul), &err),
                     STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "line 2: byte 0x00 is not printable ASCII"));
    // More than memory has: it is refused before it is read.
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_int_equal(zoo_model_read(&model, path, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "a description of 1099511627776 bytes (at most 1048576)"));
    folder_remove(folder);
}

TEST_CASE(each_kind_of_layer_has_its_shape_and_counts)
{
    static const struct {
        const char *input, *layers, *shape;
        uint64_t parameters, macs;
    } rows[] = {
        {"8x6x5", "conv 4 3 groups 2 nobias", "4x6x5", 4 * 4 * 9, 4 * 30 * 4 * 9},
        {"8x6x5", "conv 4 3x1 stride 2x1 pad 1x0", "4x3x5", 8 * 4 * 3 + 4, 15 * 4 * 8 * 3},
        {"8x6x5", "depthwise 3 pad valid", "8x4x3", 8 * 10, 12 * 8 * 9},
        {"8x20", "conv 4 5 dilate 3", "4x20", 8 * 4 * 5 + 4, 20 * 8 * 4 * 5},
        {"8x20", "conv 4 5 dilate 3 pad valid", "4x8", 8 * 4 * 5 + 4, 8 * 8 * 4 * 5},
        {"8x6x5", "dense 3 norm", "3", 240 * 3 + 3 + 12, 240 * 3},
        {"ids 7 of 9", "embed 4", "4x7", 36, 0},
        {"8x20", "gru 5", "5x20", 15 * (8 + 5 + 2), 20 * 15 * (8 + 5)},
        {"8x1x20", "gru 5 last", "5", 15 * (8 + 5 + 2), 20 * 15 * (8 + 5)},
        {"8x7x5", "maxpool 2", "8x3x2", 0, 0},
        {"8x7x5", "avgpool 3 stride 2 pad same", "8x4x3", 0, 0},
        {"8x20", "maxpool 3 stride 2 pad 1", "8x10", 0, 0},
        {"8x7x5", "avgpool global", "8", 0, 0},
        {"8x20", "upsample 3", "8x60", 0, 0},
        {"8x6x5", "add q", "8x6x5", 0, 0},
        {"8x6x5", "concat q q -> softmax", "24x6x5", 0, 0},
        {"8x6x5", "sigmoid -> relu6", "8x6x5", 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct zoo_model *model = parse(
            format_text("name: t\ninput: q %s\nx = q -> %s\n", rows[i].input, rows[i].layers));
        char shape[ZOO_SHAPE_TEXT_SIZE];
        const struct zoo_layer *last = &model->layers[model->outputs[0]];
        assert_string_equal(zoo_shape_text(shape, &last->shape), rows[i].shape);
        assert_int_equal(model->parameters, rows[i].parameters);
        assert_int_equal(model->macs, rows[i].macs);
        zoo_model_free(model);
    }
}

TEST_CASE(lines_are_repeated_with_the_same_weights)
{
    struct zoo_model *model = parse("name: t\n"
                                    "input: a 3x8x8\n"
                                    "input: b 3x6x6\n"
                                    "x = a -> 2 * (conv 3 3 norm) -> add a -> maxpool 2\n"
                                    "y = b -> like x -> dense 4\n"
                                    "output: x, y\n");
    assert_int_equal(model->layer_count, 2 + 4 + 5);
    const struct zoo_layer *add = &model->layers[8];
    assert_string_equal(add->name, "y.3");
    assert_int_equal(add->sources[0], 7);
    assert_int_equal(add->sources[1], 1); // b, where the line above has a
    assert_int_equal(model->layers[7].weights_of, 3);
    assert_int_equal(model->layers[7].first_tensor, model->layers[3].first_tensor);
    assert_int_equal(model->layers[9].shape.width, 3);
    assert_int_equal(model->parameters, 2 * (81 + 3 + 12) + 27 * 4 + 4);
    assert_int_equal(model->output_count, 2);
    zoo_model_free(model);
}

TEST_MAIN(networks_of_mlperf_tiny_have_their_parameters,
          all_models_have_the_parameters_that_are_stated, shapes_and_weights_of_each_layer,
          each_kind_of_layer_has_its_shape_and_counts, lines_are_repeated_with_the_same_weights,
          shapes_that_do_not_match_are_refused, names_that_are_not_there_are_refused,
          words_and_numbers_that_are_wrong_are_refused, sizes_are_bounded,
          files_are_read_whatever_they_hold)
