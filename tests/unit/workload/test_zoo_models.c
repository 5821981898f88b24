// Every model that is compiled in answers as its twin in PyTorch does (zoo_expected.txt), on the
// CPU and by the plain reference.
#include <math.h>

#include "tests/support/test.h"
#include "tests/support/zoo/zoo_rig.h"

enum {
    SEED = 1, // of scripts/zoo/expected.py
    ITEMS = 2,
    SHOWN = 64,
    REFERENCE_MACS = 8 * 1000 * 1000, // larger models take long in plain C
};

static const double allowed = 1e-4; // relative to the largest output

static struct error err;

// The expected values of an output of one item.
struct answer {
    char model[ZOO_NAME_SIZE];
    size_t output, item, elements, count;
    double largest, mean, magnitude, values[SHOWN];
};

static FILE *open_answers(void)
{
    FILE *file = fopen(INFERSTAT_UNIT_FOLDER "/zoo_expected.txt", "r");
    char line[128];
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file)); // a comment
    return file;
}

static bool read_answer(FILE *file, struct answer *out)
{
    const int found =
        fscanf(file, "%47s %zu %zu %zu %lf %lf %lf", out->model, &out->output, &out->item,
               &out->elements, &out->largest, &out->mean, &out->magnitude);
    if (found == EOF)
        return false;
    assert_int_equal(found, 7);
    out->count = out->elements < SHOWN ? out->elements : SHOWN;
    for (size_t i = 0; i < out->count; i++)
        assert_int_equal(fscanf(file, "%lf", &out->values[i]), 1);
    return true;
}

static void expect_near(const struct answer *answer, const char *what, double value, double wanted,
                        double scale)
{
    if (!(fabs(value - wanted) <= allowed * scale)) // nor may it be NaN
        fail_msg("%s, output %zu of item %zu: %s is %.8g, not %.8g (scripts/zoo/expected.py makes "
                 "zoo_expected.txt after a change of the model)",
                 answer->model, answer->output, answer->item, what, value, wanted);
}

static void expect_answer(const struct answer *answer, const float *values)
{
    const size_t count = answer->elements;
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < answer->count; i++) {
        const size_t at = i * count / answer->count;
        expect_near(answer, format_text("element %zu", at), (double)values[at], answer->values[i],
                    answer->largest);
    }
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
        magnitude += fabs((double)values[i]);
    }
    expect_near(answer, "the mean", sum / (double)count, answer->mean, answer->magnitude);
    expect_near(answer, "the mean absolute value", magnitude / (double)count, answer->magnitude,
                answer->magnitude);
}

// Compares all outputs of the rig with the answers that are in the file; those of one item, or of
// all with ITEMS.
static void expect_answers(const struct zoo_rig *rig, size_t item)
{
    FILE *file = open_answers();
    struct answer answer;
    size_t compared = 0;
    while (read_answer(file, &answer)) {
        if (strcmp(answer.model, rig->model->name) != 0 || (item < ITEMS && answer.item != item))
            continue;
        assert_true(answer.output < rig->model->output_count && answer.item < ITEMS);
        const size_t elements = zoo_rig_elements(rig, rig->model->outputs[answer.output]);
        assert_int_equal(answer.elements, elements);
        expect_answer(&answer, rig->outputs[answer.output] + answer.item * elements);
        compared++;
    }
    (void)fclose(file);
    assert_int_equal(compared, rig->model->output_count * (item < ITEMS ? 1 : ITEMS));
}

static void expect_model(const char *name)
{
    struct zoo_rig rig;
    expect_ok(zoo_rig_open(&rig,
                           &(struct zoo_rig_options){.model = name,
                                                     .seed = SEED,
                                                     .items = ITEMS,
                                                     .device = {.spec = "cpu", .threads = 1}},
                           &err),
              &err);
    expect_ok(zoo_rig_run(&rig, &err), &err);
    expect_answers(&rig, ITEMS);
    if (rig.model->macs <= REFERENCE_MACS) {
        const size_t item = ITEMS - 1;
        expect_ok(zoo_rig_reference(&rig, item, &err), &err);
        expect_answers(&rig, item);
    }
    zoo_rig_close(&rig);
}

// Every fourth model, so that PARTS divides them.
static void expect_models(size_t first)
{
    enum { CASES = 4 };
    assert_true(zoo_text_count > CASES);
    for (size_t i = first; i < zoo_text_count; i += CASES)
        expect_model(zoo_texts[i].name);
}

TEST_CASE(first_models)
{
    expect_models(0);
}

TEST_CASE(second_models)
{
    expect_models(1);
}

TEST_CASE(third_models)
{
    expect_models(2);
}

TEST_CASE(fourth_models)
{
    expect_models(3);
}

TEST_MAIN(first_models, second_models, third_models, fourth_models)
