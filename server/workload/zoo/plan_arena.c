// Places the values of a plan in one arena: the largest first, each in the smallest gap that the
// values which live at the same time leave.
#include <stdlib.h>

#include "server/workload/zoo/plan_parts.h"

enum { ALIGNMENT = 16 }; // floats: a cache line

static size_t whole_of(const struct zoo_plan *plan, size_t value)
{
    return plan->values[value].parent == NO_INDEX ? value : plan->values[value].parent;
}

static void lives(struct zoo_plan *plan, size_t index, size_t time)
{
    struct plan_value *value = &plan->values[whole_of(plan, index)];
    value->first = time < value->first ? time : value->first;
    value->last = time > value->last ? time : value->last;
}

// Elements behind the input that the windows of a step reach.
static uint32_t behind(const struct network_step *step, size_t d, uint32_t size, uint32_t results)
{
    const uint64_t end = (uint64_t)(results - 1) * step->stride[d] +
                         (uint64_t)(step->kernel[d] - 1) * step->dilation[d] + 1;
    const uint64_t inside = (uint64_t)size + step->pad[d];
    return end > inside ? (uint32_t)(end - inside) : 0;
}

static void widen_border(struct zoo_plan *plan, const struct plan_step *planned)
{
    const struct network_step *step = &planned->step;
    if (step->op != NETWORK_CONV && step->op != NETWORK_DEPTHWISE)
        return; // windows of pools are clipped
    struct plan_value *in = &plan->values[whole_of(plan, planned->in[0])];
    const struct zoo_shape *out = &plan->values[planned->out].shape;
    const uint32_t border[4] = {step->pad[0], step->pad[1],
                                behind(step, 0, in->shape.height, out->height),
                                behind(step, 1, in->shape.width, out->width)};
    for (size_t i = 0; i < 4; i++)
        in->border[i] = border[i] > in->border[i] ? border[i] : in->border[i];
}

static size_t floats_of(const struct plan_value *value)
{
    const size_t rows = (size_t)value->shape.height + value->border[0] + value->border[2];
    const size_t columns = (size_t)value->shape.width + value->border[1] + value->border[3];
    return (rows * columns * value->shape.channels + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

struct block {
    struct plan_value *value;
    size_t floats;
};

static int by_size(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if (x->floats != y->floats)
        return x->floats < y->floats ? 1 : -1;
    return x->value < y->value ? -1 : x->value > y->value; // the same plan on every machine
}

// `placed` is in the order of offsets, and stays so.
static void place(const struct block **placed, size_t count, const struct block *block)
{
    size_t end = 0, best = SIZE_MAX, smallest = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct plan_value *other = placed[i]->value;
        if (other->last < block->value->first || other->first > block->value->last)
            continue;
        if (other->offset >= end + block->floats && other->offset - end < smallest) {
            best = end;
            smallest = other->offset - end;
        }
        if (other->offset + placed[i]->floats > end)
            end = other->offset + placed[i]->floats;
    }
    block->value->offset = best == SIZE_MAX ? end : best;
    size_t i = count;
    for (; i > 0 && placed[i - 1]->value->offset > block->value->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] = block;
}

static void set_times(struct zoo_plan *plan, const struct zoo_model *model, const size_t *value_of)
{
    for (size_t i = 0; i < plan->value_count; i++)
        plan->values[i].first = SIZE_MAX;
    for (size_t i = 0; i < model->input_count; i++)
        lives(plan, value_of[model->inputs[i]], 0);
    for (size_t i = 0; i < plan->step_count; i++) {
        const struct plan_step *step = &plan->steps[i];
        for (size_t k = 0; k < step->step.inputs; k++)
            lives(plan, step->in[k], i + 1);
        lives(plan, step->out, i + 1);
    }
    for (size_t i = 0; i < model->output_count; i++)
        lives(plan, value_of[model->outputs[i]], plan->step_count + 1);
}

enum status zoo_plan_place(struct zoo_plan *plan, const struct zoo_model *model,
                           const size_t *value_of, struct error *err)
{
    struct block *blocks = calloc(plan->value_count + 1, sizeof *blocks);
    const struct block **placed = calloc(plan->value_count + 1, sizeof *placed);
    if (!blocks || !placed) {
        free(blocks);
        free(placed);
        return error_no_memory(err, "plan");
    }
    set_times(plan, model, value_of);
    for (size_t i = 0; i < plan->step_count; i++)
        widen_border(plan, &plan->steps[i]);
    size_t count = 0;
    for (size_t i = 0; i < plan->value_count; i++)
        if (plan->values[i].parent == NO_INDEX)
            blocks[count++] =
                (struct block){.value = &plan->values[i], .floats = floats_of(&plan->values[i])};
    qsort(blocks, count, sizeof *blocks, by_size);
    for (size_t i = 0; i < count; i++) {
        place(placed, i, &blocks[i]);
        const size_t end = blocks[i].value->offset + blocks[i].floats;
        plan->network.arena = end > plan->network.arena ? end : plan->network.arena;
    }
    free(blocks);
    free(placed);
    return STATUS_OK;
}
