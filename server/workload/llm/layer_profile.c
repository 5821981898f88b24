#include "server/workload/llm/layer_profile.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/profile.h"

enum { OPERATIONS_MAX = 64, NAME_SIZE = 48 };

// A weight tensor in the device's memory.
struct place {
    const void *data;
    size_t size;
    size_t layer; // layer_profile_layers(): none
    char name[NAME_SIZE];
};

struct layer_profile {
    const struct llm *llm;
    struct place *places; // of all weights
    size_t place_count;
    size_t layers;
    size_t layer; // of the last call
    enum profile_phase phase;
    char names[OPERATIONS_MAX][NAME_SIZE];
    size_t operations;
    // Of the current request, and of those that have ended; see index_of.
    struct profile_sum *current, *ended;
};

static size_t index_of(const struct layer_profile *profile, size_t operation, size_t layer,
                       size_t phase)
{
    return (operation * (profile->layers + 1) + layer) * PROFILE_PHASES + phase;
}

// Returns the tensor that `data` lies in, as a whole or in part; NULL: none.
static const struct place *find_place(const struct layer_profile *profile, const void *data)
{
    for (size_t i = 0; i < profile->place_count; i++) {
        const struct place *place = &profile->places[i];
        if ((uintptr_t)data - (uintptr_t)place->data < place->size)
            return place;
    }
    return NULL;
}

static void add_place(void *context, const char *name, const struct tensor *tensor)
{
    struct layer_profile *profile = context;
    struct place *place = &profile->places[profile->place_count++];
    size_t layer = profile->layers;
    int length = 0;
    if (sscanf(name, "blk.%zu.%n", &layer, &length) == 1)
        name += length;
    const char *end = strstr(name, ".weight"); // a bias keeps its ".bias"
    place->data = tensor->data;
    place->size = tensor_bytes(tensor);
    place->layer = layer;
    (void)snprintf(place->name, NAME_SIZE, "%.*s", end ? (int)(end - name) : NAME_SIZE, name);
}

static size_t operation_of(struct layer_profile *profile, const char *name)
{
    size_t i = 0;
    while (i < profile->operations && strcmp(profile->names[i], name) != 0)
        i++;
    assert(i < OPERATIONS_MAX);
    if (i == profile->operations)
        (void)snprintf(profile->names[profile->operations++], NAME_SIZE, "%s", name);
    return i;
}

static void add(struct profile_sum *to, const struct profile_sum *sum)
{
    to->calls += sum->calls;
    to->rows += sum->rows;
    to->bytes += sum->bytes;
    to->flops += sum->flops;
    to->ns += sum->ns;
}

// Operations without a weight belong to the layer of the one before.
static void take_call(void *context, const struct profile_call *call)
{
    struct layer_profile *profile = context;
    const struct place *place = call->weight ? find_place(profile, call->weight) : NULL;
    if (place)
        profile->layer = place->layer;
    const char *name = place ? place->name : call->operation;
    if (strcmp(call->operation, "embed") == 0) // of a tied output's weight, or rows of activations
        name = place ? "embed" : "gather";
    const size_t operation = operation_of(profile, name);
    const struct profile_sum sum = {
        .calls = 1, .rows = call->rows, .bytes = call->bytes, .flops = call->flops, .ns = call->ns};
    add(&profile->current[index_of(profile, operation, profile->layer, profile->phase)], &sum);
}

enum status layer_profile_start_phase(struct layer_profile *profile, enum profile_phase phase,
                                      struct error *err)
{
    if (!profile)
        return STATUS_OK;
    enum status status = device_profile_collect(profile->llm->device, err);
    profile->phase = phase;
    return status;
}

static struct profile_sum sum_of(const struct layer_profile *profile,
                                 const struct profile_sum *sums, size_t operation, size_t layer,
                                 size_t phase)
{
    struct profile_sum sum = {0};
    for (size_t o = 0; o < profile->operations; o++)
        for (size_t l = 0; l <= profile->layers && (operation == PROFILE_ALL || o == operation);
             l++)
            for (size_t p = 0; p < PROFILE_PHASES && (layer == PROFILE_ALL || l == layer); p++)
                if (phase == PROFILE_ALL || p == phase)
                    add(&sum, &sums[index_of(profile, o, l, p)]);
    return sum;
}

static void record(const struct layer_profile *profile, struct inferstat_monitor *monitor,
                   size_t operation, size_t layer)
{
    const struct profile_sum sum = sum_of(profile, profile->current, operation, layer, PROFILE_ALL);
    if (sum.calls == 0)
        return;
    char name[NAME_SIZE + 8];
    char where[32] = "";
    char extra[64];
    (void)snprintf(name, sizeof name, "llm.%s", profile->names[operation]);
    if (layer < profile->layers)
        (void)snprintf(where, sizeof where, "\"layer\": %zu, ", layer);
    (void)snprintf(extra, sizeof extra, "{%s\"calls\": %llu}", where,
                   (unsigned long long)sum.calls);
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, monitor, inferstat_name(monitor, name));
    timer.device = profile->llm->device_number;
    timer.items = (int64_t)sum.rows;
    timer.bytes = (int64_t)sum.bytes;
    timer.started_ns = inferstat_clock_ns() - (uint64_t)sum.ns;
    (void)inferstat_timer_end(&timer, extra);
}

void layer_profile_end_request(struct layer_profile *profile, struct inferstat_monitor *monitor)
{
    if (!profile)
        return;
    // A device that fails here fails the next request.
    (void)!device_profile_collect(profile->llm->device, NULL);
    for (size_t layer = 0; layer <= profile->layers; layer++)
        for (size_t i = 0; i < profile->operations; i++)
            record(profile, monitor, i, layer);
    const size_t count = index_of(profile, profile->operations, 0, 0);
    for (size_t i = 0; i < count; i++)
        add(&profile->ended[i], &profile->current[i]);
    memset(profile->current, 0, count * sizeof *profile->current);
}

size_t layer_profile_operations(const struct layer_profile *profile)
{
    return profile->operations;
}

const char *layer_profile_name(const struct layer_profile *profile, size_t operation)
{
    return profile->names[operation];
}

size_t layer_profile_layers(const struct layer_profile *profile)
{
    return profile->layers;
}

struct profile_sum layer_profile_sum(const struct layer_profile *profile, size_t operation,
                                     size_t layer, size_t phase)
{
    return sum_of(profile, profile->ended, operation, layer, phase);
}

enum status layer_profile_new(struct layer_profile **out, const struct llm *llm, struct error *err)
{
    struct layer_profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return error_no_memory(err, "profile");
    profile->llm = llm;
    profile->layers = profile->layer = llama_get_config(llm->llama)->layers;
    profile->places = calloc(llama_each_weight(llm->llama, NULL, NULL), sizeof *profile->places);
    const size_t sums = index_of(profile, OPERATIONS_MAX, 0, 0);
    profile->current = calloc(sums, sizeof *profile->current);
    profile->ended = calloc(sums, sizeof *profile->ended);
    enum status status = STATUS_OK;
    if (!profile->places || !profile->current || !profile->ended)
        status = error_no_memory(err, "profile");
    if (status == STATUS_OK) {
        (void)llama_each_weight(llm->llama, add_place, profile);
        status = device_profile_start(llm->device, take_call, profile, err);
    }
    if (status != STATUS_OK) {
        layer_profile_free(profile);
        return status;
    }
    *out = profile;
    return STATUS_OK;
}

void layer_profile_free(struct layer_profile *profile)
{
    if (!profile)
        return;
    device_profile_stop(profile->llm->device);
    free(profile->places);
    free(profile->current);
    free(profile->ended);
    free(profile);
}
