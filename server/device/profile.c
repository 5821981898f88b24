#include "server/device/profile.h"

#include <assert.h>
#include <stdlib.h>

#include "common/sys/clock.h"
#include "server/device/device_ops.h"
#include "server/device/stream.h"

enum { CALLS_MAX = 512 }; // on the device, not reported yet

struct device_profile {
    struct device_ops ops; // what the device has while it is profiled
    const struct device_ops *inner;
    profile_sink *sink;
    void *context;
    uint64_t started_ns; // of the current call, where the back end has no `mark`
    struct device_event *before[CALLS_MAX], *after[CALLS_MAX]; // where it has
    struct profile_call calls[CALLS_MAX];
    size_t count;
};

// ---- Measuring ------------------------------------------------------------

enum status device_profile_collect(struct device *device, struct error *err)
{
    struct device_profile *profile = device->profile;
    const size_t count = profile->count;
    profile->count = 0;
    enum status status = count > 0 ? device_event_wait(profile->after[count - 1], err) : STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct profile_call *call = &profile->calls[i];
        status = device_event_elapsed(profile->before[i], profile->after[i], &call->ns, err);
        if (status == STATUS_OK)
            profile->sink(profile->context, call);
    }
    return status;
}

static enum status begin(struct device *device, struct error *err)
{
    struct device_profile *profile = device->profile;
    profile->started_ns = clock_monotonic_ns();
    if (!profile->inner->mark)
        return STATUS_OK;
    enum status status =
        profile->count == CALLS_MAX ? device_profile_collect(device, err) : STATUS_OK;
    return status == STATUS_OK ? profile->inner->mark(profile->before[profile->count], err)
                               : status;
}

// `status` is the operation's.
static enum status end(struct device *device, struct profile_call call, enum status status,
                       struct error *err)
{
    struct device_profile *profile = device->profile;
    if (status == STATUS_OK && profile->inner->mark) {
        status = profile->inner->mark(profile->after[profile->count], err);
        if (status == STATUS_OK)
            profile->calls[profile->count++] = call;
    } else if (status == STATUS_OK) {
        call.ns = (double)(clock_monotonic_ns() - profile->started_ns);
        profile->sink(profile->context, &call);
    }
    return status;
}

// ---- Operations -----------------------------------------------------------

// Defines profiled_NAME: calls the back end's operation, measured.  The members of struct
// profile_call after `operation` follow the arguments.
#define PROFILED(name, parameters, arguments, ...)                                                 \
    static enum status profiled_##name parameters                                                  \
    {                                                                                              \
        const struct profile_call call = {.operation = #name, __VA_ARGS__};                        \
        enum status status = begin(device, err);                                                   \
        if (status == STATUS_OK)                                                                   \
            status = device->profile->inner->name arguments;                                       \
        return end(device, call, status, err);                                                     \
    }

PROFILED(embed,
         (struct device * device, struct tensor *out, const struct tensor *table,
          const uint32_t *ids, struct error *err),
         (device, out, table, ids, err), .weight = table->data, .rows = out->rows,
         .bytes = tensor_bytes(out) + tensor_bytes(table) / table->rows * out->rows)

PROFILED(matmul,
         (struct device * device, struct tensor *out, const struct tensor *in,
          const struct tensor *weight, struct error *err),
         (device, out, in, weight, err), .weight = weight->data, .rows = in->rows,
         .bytes = tensor_bytes(out) + tensor_bytes(in) + tensor_bytes(weight),
         .flops = 2.0 * (double)in->rows * (double)in->columns * (double)weight->rows)

PROFILED(rms_norm,
         (struct device * device, struct tensor *out, const struct tensor *in,
          const struct tensor *weight, float epsilon, struct error *err),
         (device, out, in, weight, epsilon, err), .weight = weight->data, .rows = in->rows,
         .bytes = tensor_bytes(out) + tensor_bytes(in) + tensor_bytes(weight))

PROFILED(rope,
         (struct device * device, struct tensor *x, const struct tensor *table, size_t position,
          size_t heads, enum rope_pairs pairs, struct error *err),
         (device, x, table, position, heads, pairs, err), .rows = x->rows,
         .bytes = 2 * tensor_bytes(x))

// The number of cached positions that rows position..position + rows - 1 attend to, all together.
static double attended(size_t position, size_t rows, size_t window)
{
    double sum = 0.0;
    for (size_t i = position + 1; i <= position + rows; i++)
        sum += (double)(window > 0 && window < i ? window : i);
    return sum;
}

static size_t attended_rows(size_t position, size_t rows, size_t window)
{
    const size_t last = position + rows;
    return window > 0 && window + rows - 1 < last ? window + rows - 1 : last;
}

// Each position that a row attends to takes two products: its score and its value.
PROFILED(attention,
         (struct device * device, struct tensor *out, const struct tensor *query,
          const struct tensor *keys, const struct tensor *values, size_t position, size_t heads,
          size_t kv_heads, size_t window, struct error *err),
         (device, out, query, keys, values, position, heads, kv_heads, window, err),
         .rows = query->rows,
         .bytes = 2 * tensor_bytes(query) + 2 * tensor_bytes(keys) / keys->rows *
                                                attended_rows(position, query->rows, window),
         .flops = 4.0 * (double)query->columns * attended(position, query->rows, window))

PROFILED(swiglu,
         (struct device * device, struct tensor *gate, const struct tensor *up, struct error *err),
         (device, gate, up, err), .rows = gate->rows, .bytes = 3 * tensor_bytes(gate))

PROFILED(add, (struct device * device, struct tensor *x, const struct tensor *y, struct error *err),
         (device, x, y, err), .weight = y->data, .rows = x->rows,
         .bytes = 2 * tensor_bytes(x) + tensor_bytes(y))

PROFILED(scatter_add,
         (struct device * device, struct tensor *x, const struct tensor *y, const uint32_t *rows,
          const float *weights, struct error *err),
         (device, x, y, rows, weights, err), .rows = y->rows, .bytes = 3 * tensor_bytes(y))

// ---- Starting and stopping ------------------------------------------------

static enum status make_events(struct device *device, struct device_profile *profile,
                               struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < CALLS_MAX && status == STATUS_OK; i++) {
        status = device_event_new(device, &profile->before[i], DEVICE_EVENT_TIMED, err);
        if (status == STATUS_OK)
            status = device_event_new(device, &profile->after[i], DEVICE_EVENT_TIMED, err);
    }
    return status;
}

enum status device_profile_start(struct device *device, profile_sink *sink, void *context,
                                 struct error *err)
{
    assert(!device->profile);
    struct device_profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return error_no_memory(err, "profile");
    profile->inner = device->ops;
    profile->ops = *device->ops;
    profile->ops.embed = profiled_embed;
    profile->ops.matmul = profiled_matmul;
    profile->ops.rms_norm = profiled_rms_norm;
    profile->ops.rope = profiled_rope;
    profile->ops.attention = profiled_attention;
    profile->ops.swiglu = profiled_swiglu;
    profile->ops.add = profiled_add;
    profile->ops.scatter_add = profiled_scatter_add;
    profile->sink = sink;
    profile->context = context;
    device->profile = profile;
    device->ops = &profile->ops;
    enum status status = profile->inner->mark ? make_events(device, profile, err) : STATUS_OK;
    if (status != STATUS_OK)
        device_profile_stop(device);
    return status;
}

void device_profile_stop(struct device *device)
{
    struct device_profile *profile = device->profile;
    if (!profile)
        return;
    for (size_t i = 0; i < CALLS_MAX; i++) {
        device_event_free(profile->before[i]);
        device_event_free(profile->after[i]);
    }
    device->ops = profile->inner;
    device->profile = NULL;
    free(profile);
}
