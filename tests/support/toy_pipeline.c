#include "tests/support/toy_pipeline.h"

#include "server/device/stream.h"
#include "tests/support/test.h"

enum { BYTES = 4096, CHUNKS = 16, ALL = BYTES * CHUNKS };

static const char *const names[] = {
    [TOY_SLOT_FREE] = "slot free",         [TOY_SLOT_FREE_QUEUED] = "slot free, queued instead",
    [TOY_BUFFER_FREE] = "buffer free",     [TOY_CHUNK_COPIED] = "chunk copied",
    [TOY_KERNELS_DONE] = "kernels done",   [TOY_RESULTS_COPIED] = "results copied",
    [TOY_NOTHING] = "nothing is left out",
};

const char *toy_omission_name(enum toy_omission omission)
{
    return names[omission];
}

struct toy {
    struct device *device;
    struct device_stream *copy, *compute, *out;
    struct device_event *copied, *computed, *fetched;
    uint8_t *slot, *in, *states, *results; // results on the host, pinned
};

static void ok(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        print_message("%s\n", err->text);
    assert_int_equal(status, STATUS_OK);
}

static void make(struct toy *toy, struct device *device)
{
    struct error err = {0};
    *toy = (struct toy){.device = device};
    ok(device_stream_new(device, &toy->copy, "copy", &err), &err);
    ok(device_stream_new(device, &toy->compute, "compute", &err), &err);
    ok(device_stream_new(device, &toy->out, "out", &err), &err);
    ok(device_event_new(device, &toy->copied, DEVICE_EVENT_ORDER, &err), &err);
    ok(device_event_new(device, &toy->computed, DEVICE_EVENT_ORDER, &err), &err);
    ok(device_event_new(device, &toy->fetched, DEVICE_EVENT_ORDER, &err), &err);
    ok(device_pinned_new(device, (void **)&toy->slot, BYTES, &err), &err);
    ok(device_pinned_new(device, (void **)&toy->results, ALL, &err), &err);
    ok(device_memory_new(toy->copy, (void **)&toy->in, BYTES, &err), &err);
    ok(device_memory_new(toy->copy, (void **)&toy->states, ALL, &err), &err);
    ok(device_stream_synchronize(toy->copy, &err), &err);
    memset(toy->results, 0, ALL);
}

static void end(struct toy *toy)
{
    device_stream_free(toy->out);
    device_stream_free(toy->compute);
    device_memory_free(toy->copy, toy->in, BYTES);
    device_memory_free(toy->copy, toy->states, ALL);
    device_stream_free(toy->copy);
    device_event_free(toy->copied);
    device_event_free(toy->computed);
    device_event_free(toy->fetched);
    device_pinned_free(toy->device, toy->slot, BYTES);
    device_pinned_free(toy->device, toy->results, ALL);
}

// Each chunk is a byte all over, and its results lie in a place of their own.
static void stream_chunk(const struct toy *toy, int chunk, enum toy_omission omission)
{
    struct error err = {0};
    uint8_t *states = toy->states + (size_t)chunk * BYTES;
    if (omission == TOY_SLOT_FREE_QUEUED)
        ok(device_stream_wait(toy->copy, toy->copied, &err), &err);
    else if (omission != TOY_SLOT_FREE)
        ok(device_event_wait(toy->copied, &err), &err);
    memset(toy->slot, chunk + 1, BYTES);
    if (omission != TOY_BUFFER_FREE)
        ok(device_stream_wait(toy->copy, toy->computed, &err), &err);
    ok(device_copy_in(toy->copy, toy->in, toy->slot, BYTES, &err), &err);
    ok(device_event_record(toy->copied, toy->copy, &err), &err);
    if (omission != TOY_CHUNK_COPIED)
        ok(device_stream_wait(toy->compute, toy->copied, &err), &err);
    ok(device_copy_within(toy->compute, states, toy->in, BYTES, &err), &err);
    ok(device_event_record(toy->computed, toy->compute, &err), &err);
    if (omission != TOY_KERNELS_DONE)
        ok(device_stream_wait(toy->out, toy->computed, &err), &err);
    ok(device_copy_out(toy->out, toy->results + (size_t)chunk * BYTES, states, BYTES, &err), &err);
    ok(device_event_record(toy->fetched, toy->out, &err), &err);
}

bool toy_pipeline_run(struct device *device, enum toy_omission omission)
{
    struct toy toy;
    struct error err = {0};
    make(&toy, device);
    for (int chunk = 0; chunk < CHUNKS; chunk++)
        stream_chunk(&toy, chunk, omission);
    if (omission != TOY_RESULTS_COPIED)
        ok(device_event_wait(toy.fetched, &err), &err);
    bool right = true;
    for (size_t i = 0; i < ALL; i++)
        right = right && toy.results[i] == i / BYTES + 1;
    end(&toy);
    return right;
}
