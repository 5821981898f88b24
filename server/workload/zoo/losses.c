#include "server/workload/zoo/losses.h"

#include <float.h>
#include <math.h>

#include "server/workload/zoo/zoo_batch.h"

size_t zoo_top1(const float *values, size_t n, size_t stride)
{
    size_t top = 0;
    for (size_t i = 1; i < n; i++)
        if (values[i * stride] > values[top * stride])
            top = i;
    return top;
}

// log sum exp(x / temperature), from the largest on, so that no exponential overflows.
static double log_sum_exp(const float *x, size_t n, size_t stride, double temperature)
{
    const size_t top = zoo_top1(x, n, stride);
    const double most = (double)x[top * stride] / temperature;
    double sum = 1.0; // of the largest
    for (size_t i = 0; i < n; i++)
        if (i != top)
            sum += exp((double)x[i * stride] / temperature - most);
    return most + log(sum);
}

double zoo_distillation_loss(const struct zoo_distillation *how, const float *teacher,
                             const float *student, size_t classes, size_t stride)
{
    const double t = how->temperature;
    const double teacher_sum = log_sum_exp(teacher, classes, stride, t);
    const double student_sum = log_sum_exp(student, classes, stride, t);
    double divergence = 0.0;
    for (size_t i = 0; i < classes; i++) {
        const double teacher_log = (double)teacher[i * stride] / t - teacher_sum;
        const double student_log = (double)student[i * stride] / t - student_sum;
        divergence += exp(teacher_log) * (teacher_log - student_log);
    }
    const size_t label = zoo_top1(teacher, classes, stride);
    const double entropy =
        log_sum_exp(student, classes, stride, 1.0) - (double)student[label * stride];
    return how->alpha * t * t * divergence + (1.0 - how->alpha) * entropy;
}

// Sums over the items.
struct sums {
    double distillation, agreeing, squared_difference, squared_original;
};

// Makes logits of probabilities, but for a constant that a softmax does not see.
static void take_logarithms(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = logf(fmaxf(values[i], FLT_MIN));
}

static void add_classes(struct zoo_losses *out, struct sums *sums,
                        const struct zoo_distillation *how, const struct zoo_layer *layer,
                        float *original, float *compressed)
{
    const size_t classes = layer->shape.channels, pixels = zoo_elements(&layer->shape) / classes;
    take_logarithms(original, classes * pixels);
    take_logarithms(compressed, classes * pixels);
    for (size_t i = 0; i < pixels; i++) {
        sums->distillation +=
            zoo_distillation_loss(how, original + i, compressed + i, classes, pixels);
        sums->agreeing +=
            zoo_top1(original + i, classes, pixels) == zoo_top1(compressed + i, classes, pixels);
    }
    out->positions += pixels;
}

static void add_item(struct zoo_losses *out, struct sums *sums, const struct zoo_distillation *how,
                     const struct zoo_model *model, const struct zoo_batch *original,
                     const struct zoo_batch *compressed)
{
    for (size_t o = 0; o < model->output_count; o++) {
        const struct zoo_layer *layer = &model->layers[model->outputs[o]];
        float *x = original->outputs[o], *y = compressed->outputs[o];
        for (size_t i = 0; i < zoo_elements(&layer->shape); i++) {
            const double difference = (double)y[i] - (double)x[i];
            sums->squared_difference += difference * difference;
            sums->squared_original += (double)x[i] * (double)x[i];
            if (!(fabs(difference) <= out->max_error)) // also where it is NaN, which stays
                out->max_error = fabs(difference);
        }
        if (layer->activation == NETWORK_SOFTMAX && layer->shape.channels > 1)
            add_classes(out, sums, how, layer, x, y);
    }
}

static enum status run_items(struct zoo_losses *out, const struct zoo_model *model,
                             struct zoo_batch *original, struct zoo_batch *compressed,
                             const struct zoo_loss_options *options, struct error *err)
{
    struct sums sums = {0};
    enum status status = STATUS_OK;
    for (size_t item = 0; item < options->inputs && status == STATUS_OK; item++) {
        if (options->cancelled && options->cancelled())
            return error_set(err, STATUS_CANCELLED, "%s: cancelled", model->name);
        zoo_batch_seed(original, model, item, options->seed);
        zoo_batch_seed(compressed, model, item, options->seed);
        status = zoo_batch_run(original, err);
        if (status == STATUS_OK)
            status = zoo_batch_run(compressed, err);
        if (status == STATUS_OK)
            add_item(out, &sums, &options->distillation, model, original, compressed);
    }
    const double positions = out->positions > 0 ? (double)out->positions : (double)NAN;
    out->distillation = sums.distillation / positions;
    out->agreement = sums.agreeing / positions;
    out->relative_error = sqrt(sums.squared_difference / sums.squared_original);
    return status;
}

// Puts a model for one item on the device.
static enum status open_model(struct zoo_batch *out, struct device *device,
                              const struct zoo_model *model, const struct zoo_weights *weights,
                              const struct zoo_layer_int8 *int8, struct error *err)
{
    struct zoo_plan *plan;
    enum status status = zoo_plan_new(&plan, model, weights, int8, err);
    if (status != STATUS_OK)
        return status;
    status = zoo_batch_init(out, device, zoo_plan_network(plan), 1, err);
    zoo_plan_free(plan);
    return status;
}

enum status zoo_losses_measure(struct zoo_losses *out, struct device *device,
                               const struct zoo_model *model, const struct zoo_weights *weights,
                               const struct zoo_compressed *compressed,
                               const struct zoo_loss_options *options, struct error *err)
{
    struct zoo_batch original = {0}, other = {0};
    *out = (struct zoo_losses){0};
    enum status status = open_model(&original, device, model, weights, NULL, err);
    if (status == STATUS_OK)
        status = open_model(&other, device, compressed->model, &compressed->weights,
                            compressed->int8, err);
    if (status == STATUS_OK)
        status = run_items(out, model, &original, &other, options, err);
    zoo_batch_deinit(&original);
    zoo_batch_deinit(&other);
    return status;
}
