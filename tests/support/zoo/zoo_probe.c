// Shows scripts/zoo/ this engine's side of a small model:
//   zoo_probe layers MODEL                          shapes, weights and multiplications as read
//   zoo_probe save MODEL SEED FILE.gguf             seeded weights
//   zoo_probe outputs MODEL ITEMS SEED [DEVICE [FILE.gguf]]
//                                                   outputs of seeded items, as raw floats
//   zoo_probe check ITEMS DEVICE [MODEL]            compares the last item's outputs with the plain
//                                                   reference, of all models or of one
//   zoo_probe time MODEL BATCH THREADS SEED DEVICE  reads numbers of inferences, line by line, and
//                                                   prints how many nanoseconds each took
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "tests/support/zoo/zoo_rig.h"

static struct error err;

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static void print_dims(const uint32_t *dims, unsigned int rank)
{
    for (unsigned int i = 0; i < rank; i++)
        (void)printf("%s%" PRIu32, i > 0 ? "x" : "", dims[i]);
}

static enum status print_layers(char **arguments)
{
    struct zoo_model *model;
    enum status status = zoo_rig_model(&model, arguments[0], &err);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < model->layer_count; i++) {
        const struct zoo_layer *layer = &model->layers[i];
        char text[ZOO_SHAPE_TEXT_SIZE];
        (void)printf("layer %s %s %" PRIu64, layer->name, zoo_shape_text(text, &layer->shape),
                     layer->macs);
        for (size_t j = 0; j < layer->source_count; j++)
            (void)printf(" %s", model->layers[layer->sources[j]].name);
        (void)printf("\n");
    }
    for (size_t i = 0; i < model->tensor_count; i++) {
        (void)printf("tensor %s ", model->tensors[i].name);
        print_dims(model->tensors[i].dims, model->tensors[i].rank);
        (void)printf("\n");
    }
    for (size_t i = 0; i < model->output_count; i++)
        (void)printf("output %s\n", model->layers[model->outputs[i]].name);
    zoo_model_free(model);
    return STATUS_OK;
}

static enum status save(char **arguments)
{
    struct zoo_weights weights = {0};
    struct zoo_model *model;
    enum status status = zoo_rig_model(&model, arguments[0], &err);
    if (status != STATUS_OK)
        return status;
    status = zoo_weights_seeded(&weights, model, number(arguments[1]), &err);
    if (status == STATUS_OK)
        status = zoo_weights_save(&weights, model, arguments[2], &err);
    zoo_weights_free(&weights);
    zoo_model_free(model);
    return status;
}

static enum status write_outputs(char **arguments)
{
    const char *device = arguments[3] ? arguments[3] : "cpu";
    struct zoo_rig rig;
    enum status status =
        zoo_rig_open(&rig,
                     &(struct zoo_rig_options){.model = arguments[0],
                                               .items = number(arguments[1]),
                                               .seed = number(arguments[2]),
                                               .weights = arguments[3] ? arguments[4] : NULL,
                                               .device = {.spec = device}},
                     &err);
    if (status == STATUS_OK)
        status = zoo_rig_run(&rig, &err);
    for (size_t i = 0; status == STATUS_OK && i < rig.model->output_count; i++) {
        const size_t count = rig.items * zoo_rig_elements(&rig, rig.model->outputs[i]);
        if (fwrite(rig.outputs[i], sizeof(float), count, stdout) != count)
            status = error_set(&err, STATUS_IO, "cannot write the outputs");
    }
    zoo_rig_close(&rig);
    return status;
}

static double largest(const float *values, size_t count, const float *other)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double size = fabs((double)values[i] - (other ? (double)other[i] : 0.0));
        most = size <= most ? most : size; // NaN stays
    }
    return most;
}

// Compares the outputs of the last item with the reference.
static enum status check_item(struct zoo_rig *rig, double *difference)
{
    const size_t item = rig->items - 1;
    float *own[ZOO_OUTPUTS_MAX] = {NULL};
    enum status status = zoo_rig_run(rig, &err);
    for (size_t i = 0; status == STATUS_OK && i < rig->model->output_count; i++) {
        const size_t count = zoo_rig_elements(rig, rig->model->outputs[i]);
        own[i] = calloc(count, sizeof *own[i]);
        if (!own[i])
            status = error_no_memory(&err, "outputs");
        else
            memcpy(own[i], rig->outputs[i] + item * count, count * sizeof *own[i]);
    }
    if (status == STATUS_OK)
        status = zoo_rig_reference(rig, item, &err);
    *difference = 0.0;
    for (size_t i = 0; i < rig->model->output_count; i++) {
        const size_t count = zoo_rig_elements(rig, rig->model->outputs[i]);
        const float *wanted = rig->outputs[i] + item * count;
        const double found = status == STATUS_OK
                                 ? largest(own[i], count, wanted) / largest(wanted, count, NULL)
                                 : 0.0;
        *difference = found <= *difference ? *difference : found;
        free(own[i]);
    }
    return status;
}

static enum status check(char **arguments)
{
    static const double allowed = 1e-4; // relative to the largest value of an output
    for (size_t i = 0; i < zoo_text_count; i++) {
        struct zoo_rig rig;
        double difference = 0.0;
        if (arguments[2] && strcmp(arguments[2], zoo_texts[i].name) != 0)
            continue;
        enum status status =
            zoo_rig_open(&rig,
                         &(struct zoo_rig_options){.model = zoo_texts[i].name,
                                                   .items = number(arguments[0]),
                                                   .seed = 1,
                                                   .device = {.spec = arguments[1]}},
                         &err);
        if (status == STATUS_OK)
            status = check_item(&rig, &difference);
        zoo_rig_close(&rig);
        if (status != STATUS_OK)
            return status;
        (void)printf("%s %.2g\n", zoo_texts[i].name, difference);
        if (!(difference <= allowed))
            return error_set(&err, STATUS_INVALID, "%s differs from the reference by %.2g",
                             zoo_texts[i].name, difference);
    }
    return STATUS_OK;
}

static enum status time_inferences(struct zoo_rig *rig)
{
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        const uint64_t count = number(line);
        uint64_t *times = calloc(count + 1, sizeof *times);
        enum status status = times ? STATUS_OK : error_no_memory(&err, "times");
        for (uint64_t i = 0; status == STATUS_OK && i < count; i++) {
            const uint64_t start = clock_monotonic_ns();
            status = zoo_rig_run(rig, &err);
            times[i] = clock_monotonic_ns() - start;
        }
        for (uint64_t i = 0; status == STATUS_OK && i < count; i++)
            (void)printf("%" PRIu64 " ", times[i]);
        (void)printf("\n");
        (void)fflush(stdout);
        free(times);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status take_times(char **arguments)
{
    struct zoo_rig rig;
    enum status status = zoo_rig_open(
        &rig,
        &(struct zoo_rig_options){
            .model = arguments[0],
            .items = number(arguments[1]),
            .seed = number(arguments[3]),
            .device = {.spec = arguments[4], .threads = (unsigned int)number(arguments[2])}},
        &err);
    if (status == STATUS_OK)
        status = time_inferences(&rig);
    zoo_rig_close(&rig);
    return status;
}

static const struct command {
    const char *name;
    int least; // arguments
    enum status (*run)(char **arguments);
} commands[] = {
    {"layers", 1, print_layers}, {"save", 3, save},       {"outputs", 3, write_outputs},
    {"check", 2, check},         {"time", 5, take_times},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name) != 0 || argc - 2 < commands[i].least)
            continue;
        if (commands[i].run(argv + 2) == STATUS_OK)
            return EXIT_SUCCESS;
        (void)fprintf(stderr, "zoo_probe: %s\n", err.text);
        return EXIT_FAILURE;
    }
    (void)fprintf(stderr, "zoo_probe: see the head of its source for its arguments\n");
    return 2;
}
