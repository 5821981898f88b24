#include "server/worker/zoo_compress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Weights with integers of 8 bits are to be below this.
#define INT8_BYTES_TARGET (100 * 1024)

// Fills what is known before the compressed model is measured.
static void describe(struct zoo_compressed_row *row, size_t layer_count,
                     struct zoo_compressed *compressed)
{
    memcpy(row->name, compressed->model->name, sizeof row->name);
    row->parameters = compressed->model->parameters;
    row->macs = compressed->model->macs;
    row->changed = compressed->changed;
    row->original_bytes = compressed->original_bytes;
    row->bytes = compressed->bytes;
    row->factored = compressed->factored;
    row->layer_count = layer_count;
    compressed->factored = NULL;
}

// Measures the compressed model as any other; its load and inferences are records.
static enum status measure(struct zoo_compressed_row *row, struct device *device,
                           const struct zoo_compressed *compressed,
                           const struct zoo_compress_options *options,
                           const struct zoo_load_options *load, struct inferstat_monitor *monitor,
                           struct error *err)
{
    const enum zoo_method method = options->compression.method;
    struct zoo_parts parts = {.model = compressed->model,
                              .weights = compressed->weights,
                              .int8 = compressed->int8,
                              .quantisation = method == ZOO_INT8   ? "int8"
                                              : method == ZOO_INT4 ? "int4"
                                                                   : "f32"};
    (void)snprintf(parts.name, sizeof parts.name, "%s", row->name);
    struct zoo_load_options own = *load;
    own.text = NULL;
    own.path = own.weights = NULL;
    own.parts = &parts;
    struct zoo_runner *runner;
    enum status status = zoo_runner_new(&runner, &device, &own, monitor, err);
    if (status != STATUS_OK)
        return status;
    status = zoo_runner_measure(runner, &options->trials, &row->figures, err);
    zoo_runner_free(runner);
    return status;
}

enum status zoo_compress_run(struct zoo_compressed_row *row, struct device *device,
                             const struct zoo_parts *parts,
                             const struct zoo_compress_options *options,
                             const struct zoo_load_options *load, struct inferstat_monitor *monitor,
                             struct error *err)
{
    struct zoo_compressed compressed;
    enum status status = zoo_compress(&compressed, device, parts->model, &parts->weights,
                                      &options->compression, err);
    if (status != STATUS_OK)
        return status;
    describe(row, parts->model->layer_count, &compressed);
    status = zoo_losses_measure(&row->losses, device, parts->model, &parts->weights, &compressed,
                                &options->losses, err);
    if (status == STATUS_OK)
        status = measure(row, device, &compressed, options, load, monitor, err);
    zoo_compressed_free(&compressed);
    if (status != STATUS_OK)
        row->name[0] = '\0'; // without figures there is no row
    return status;
}

void zoo_compressed_row_free(struct zoo_compressed_row *row)
{
    free(row->factored);
    *row = (struct zoo_compressed_row){0};
}

static double speedup(const struct zoo_compressed_row *row)
{
    return row->figures.p50_ns > 0 ? (double)row->original.p50_ns / (double)row->figures.p50_ns
                                   : (double)NAN;
}

static double ratio(const struct zoo_compressed_row *row)
{
    return (double)row->original_bytes / (double)row->bytes;
}

void zoo_compressed_print(FILE *out, const struct zoo_compressed_row *row)
{
    char text[4][UNIT_TEXT_SIZE];
    (void)fprintf(out, "  %s: stored weights %s, of %s (ratio %.2f)", row->name,
                  unit_format_int(text[0], UNIT_BYTES, (int64_t)row->bytes),
                  unit_format_int(text[1], UNIT_BYTES, (int64_t)row->original_bytes), ratio(row));
    (void)fprintf(out, "; p50 %s, of %s (ratio %.2f)",
                  unit_format(text[2], UNIT_DURATION, (double)row->figures.p50_ns),
                  unit_format(text[3], UNIT_DURATION, (double)row->original.p50_ns), speedup(row));
    (void)fprintf(out, "\n    output error %s, at most %.3g",
                  unit_format(text[0], UNIT_RATIO, row->losses.relative_error),
                  row->losses.max_error);
    if (row->losses.positions > 0)
        (void)fprintf(out, "; distillation loss %.6f; same class %s", row->losses.distillation,
                      unit_format(text[1], UNIT_RATIO, row->losses.agreement));
    (void)fprintf(out, "\n");
    for (size_t i = 0; i < row->layer_count; i++)
        if (row->factored[i].rank > 0)
            (void)fprintf(out, "    %s: rank %zu keeps %s of the energy\n", row->factored[i].name,
                          row->factored[i].rank,
                          unit_format(text[0], UNIT_RATIO, row->factored[i].energy));
}

void zoo_compressed_write(struct json_writer *json, const struct zoo_compressed_row *row)
{
    json_write_begin(json, "compressed");
    json_write_text(json, "name", row->name);
    json_write_uint(json, "parameters", row->parameters);
    json_write_uint(json, "macs", row->macs);
    json_write_uint(json, "changed_layers", row->changed);
    json_write_uint(json, "original_weight_bytes", row->original_bytes);
    json_write_uint(json, "weight_bytes", row->bytes);
    json_write_real(json, "weight_ratio", ratio(row));
    json_write_bool(json, "below_100_kb", row->bytes < INT8_BYTES_TARGET);
    json_write_uint(json, "packed_weight_bytes", row->figures.weight_bytes);
    json_write_uint(json, "activation_bytes", row->figures.activation_bytes);
    json_write_uint(json, "p50_ns", row->figures.p50_ns);
    json_write_uint(json, "p95_ns", row->figures.p95_ns);
    json_write_uint(json, "p99_ns", row->figures.p99_ns);
    json_write_real(json, "items_per_second", row->figures.items_per_second);
    json_write_real(json, "speedup", speedup(row));
    json_write_real(json, "distillation_loss", row->losses.distillation);
    json_write_real(json, "top1_agreement", row->losses.agreement);
    json_write_real(json, "output_error", row->losses.relative_error);
    json_write_real(json, "max_error", row->losses.max_error);
    json_write_begin_list(json, "factored_layers");
    for (size_t i = 0; i < row->layer_count; i++) {
        if (row->factored[i].rank == 0)
            continue;
        json_write_begin(json, NULL);
        json_write_text(json, "name", row->factored[i].name);
        json_write_uint(json, "rank", row->factored[i].rank);
        json_write_real(json, "energy_ratio", row->factored[i].energy);
        json_write_end(json);
    }
    json_write_end_list(json);
    json_write_end(json);
}
