#include "server/device/network.h"

#include "server/device/device_ops.h"

// Elements of a step's output and inputs that its operation reads: sizes whose products would
// overflow are refused before anything is computed from them.
enum { SIDE_MAX = 1 << 20 };
static const uint64_t floats_max = UINT64_C(1) << 32; // of an arena

static bool fits(const struct network_tensor *t, size_t arena)
{
    uint64_t rows = (uint64_t)t->height, columns = (uint64_t)t->width;
    if (t->height == 0 || t->width == 0 || t->channels == 0 || t->pitch < t->channels)
        return false;
    for (size_t i = 0; i < 4; i++)
        if (t->border[i] > SIDE_MAX)
            return false;
    rows += (uint64_t)t->border[0] + t->border[2];
    columns += (uint64_t)t->border[1] + t->border[3];
    if (rows > SIDE_MAX || columns > SIDE_MAX || t->pitch > SIDE_MAX ||
        rows * columns > floats_max / t->pitch || t->offset > arena)
        return false;
    // Behind the last pixel of a slice lie other slices, or nothing.
    return (rows * columns - 1) * t->pitch + t->channels <= arena - t->offset;
}

static bool same(const struct network_tensor *a, const struct network_tensor *b)
{
    return a->height == b->height && a->width == b->width && a->channels == b->channels;
}

// Whether the windows of dimension d stay inside the input with its borders (`inside`: partly
// inside the input itself).
static bool windows_fit(const struct network_step *step, size_t d, bool inside)
{
    const struct network_tensor *in = &step->in[0];
    const int64_t size = d == 0 ? in->height : in->width;
    const int64_t results = d == 0 ? step->out.height : step->out.width;
    const int64_t before = in->border[d], behind = in->border[d + 2];
    if (step->kernel[d] == 0 || step->stride[d] == 0 || step->dilation[d] == 0 ||
        step->kernel[d] > SIDE_MAX || step->stride[d] > SIDE_MAX || step->dilation[d] > SIDE_MAX ||
        step->pad[d] > SIDE_MAX)
        return false;
    const int64_t extent = (int64_t)(step->kernel[d] - 1) * step->dilation[d] + 1;
    const int64_t first = -(int64_t)step->pad[d];
    const int64_t last = (results - 1) * step->stride[d] + first + extent - 1;
    return inside ? first + extent > 0 && last - extent + 1 < size && last <= size - 1 + extent
                  : first >= -before && last < size + behind;
}

static bool shapes_match(const struct network_step *step)
{
    const struct network_tensor *in = &step->in[0], *out = &step->out;
    const bool added = step->inputs < 2 || same(&step->in[1], out);
    switch (step->op) {
    case NETWORK_CONV:
        return step->groups > 0 && in->channels % step->groups == 0 &&
               out->channels % step->groups == 0 && added && windows_fit(step, 0, false) &&
               windows_fit(step, 1, false);
    case NETWORK_DEPTHWISE:
        return out->channels == in->channels && added && windows_fit(step, 0, false) &&
               windows_fit(step, 1, false);
    case NETWORK_MAX_POOL:
    case NETWORK_AVERAGE_POOL:
        return in->channels == out->channels && windows_fit(step, 0, true) &&
               windows_fit(step, 1, true);
    case NETWORK_UPSAMPLE:
        return in->channels == out->channels && step->kernel[0] > 0 && step->kernel[1] > 0 &&
               (uint64_t)in->height * step->kernel[0] == out->height &&
               (uint64_t)in->width * step->kernel[1] == out->width;
    case NETWORK_EMBED:
        return in->channels == 1 && in->height == out->height && in->width == out->width &&
               step->kernel[0] > 0;
    case NETWORK_GRU:
        return in->height == 1 && out->height == 1 && (out->width == in->width || out->width == 1);
    case NETWORK_ADD:
        return step->inputs == 2 && same(in, out) && added;
    case NETWORK_MULTIPLY:
        return step->inputs == 2 && same(in, out) && step->in[1].channels == out->channels &&
               (same(&step->in[1], out) || (step->in[1].height == 1 && step->in[1].width == 1));
    case NETWORK_COPY:
        return same(in, out);
    case NETWORK_OP_COUNT:
        break;
    }
    return false;
}

static enum status check_step(const struct network_plan *plan, const struct network_step *step,
                              struct error *err)
{
    const bool weighted = step->op == NETWORK_CONV || step->op == NETWORK_DEPTHWISE ||
                          step->op == NETWORK_EMBED || step->op == NETWORK_GRU;
    bool valid = step->inputs >= 1 && step->inputs <= 2 && fits(&step->out, plan->arena) &&
                 (!weighted || step->weights || step->int8);
    for (size_t i = 0; valid && i < step->inputs; i++)
        valid = fits(&step->in[i], plan->arena);
    if (valid && shapes_match(step))
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "network: step '%.40s' does not fit its arena or shapes",
                     step->name);
}

static enum status check_plan(const struct network_plan *plan, size_t batch, struct error *err)
{
    if (batch == 0 || plan->step_count == 0 || plan->input_count == 0 || plan->output_count == 0 ||
        plan->arena > floats_max)
        return error_set(err, STATUS_INVALID, "network: it is empty or too large");
    for (size_t i = 0; i < plan->input_count; i++)
        if (!fits(&plan->inputs[i], plan->arena))
            return error_set(err, STATUS_INVALID, "network: input %zu lies outside the arena", i);
    for (size_t i = 0; i < plan->output_count; i++)
        if (!fits(&plan->outputs[i], plan->arena))
            return error_set(err, STATUS_INVALID, "network: output %zu lies outside the arena", i);
    for (size_t i = 0; i < plan->step_count; i++) {
        const enum status status = check_step(plan, &plan->steps[i], err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status device_network_new(struct device *device, struct device_network **out,
                               const struct network_plan *plan, size_t batch, struct error *err)
{
    if (!device->ops->network_new)
        return error_set(err, STATUS_UNSUPPORTED, "device %s: it runs no small networks",
                         device->name);
    const enum status status = check_plan(plan, batch, err);
    return status != STATUS_OK ? status : device->ops->network_new(device, out, plan, batch, err);
}

enum status device_network_run(struct device_network *network, const float *const *inputs,
                               float *const *outputs, size_t items, struct error *err)
{
    if (items == 0 || items > network->batch)
        return error_set(err, STATUS_INVALID, "network: %zu items, at least 1 and at most %zu",
                         items, network->batch);
    return network->device->ops->network_run(network, inputs, outputs, items, err);
}

void device_network_memory(const struct device_network *network, struct network_memory *out)
{
    network->device->ops->network_memory(network, out);
}

void device_network_free(struct device_network *network)
{
    if (network)
        network->device->ops->network_free(network);
}
