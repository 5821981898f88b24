// Random graphs of copies, fills, kernels, events and waits over several streams, against
// the same steps done one after the other.  Only the waits that the data needs are
// put in, so that each of them counts.

#include "tests/support/device_fault.h"
#include "tests/support/test.h"
#include "tests/unit/device/stream_fixture.h"

enum {
    STREAMS = 3,
    HOST = STREAMS, // one more that acts
    ACTORS,
    EVENTS = 5,
    CELLS = 8,
    CELL_SIZE = 96,
    STEPS = 60,
    PLAIN_GRAPHS = 1500,
    FAULTY_GRAPHS = 40,
};

// How far each actor's work is known to have come: a vector clock.
struct knowledge {
    uint32_t of[ACTORS];
};

struct cell {
    unsigned char *memory;             // the streams work on it
    unsigned char expected[CELL_SIZE]; // the model's
    uint32_t written, by;              // the last write: step of actor `by`
    uint32_t read[ACTORS];             // each actor's last reading step
};

struct graph {
    struct device *device;
    struct device_stream *streams[STREAMS];
    struct device_event *events[EVENTS];
    struct knowledge recorded[EVENTS]; // what a wait for the event teaches
    struct knowledge known[ACTORS];
    struct cell cells[CELLS];
    uint64_t random;
    struct error err;
};

static uint32_t pick(struct graph *g, uint32_t below)
{
    return (uint32_t)((test_random(&g->random) >> 33) % below);
}

static void learn(struct knowledge *to, const struct knowledge *from)
{
    for (size_t i = 0; i < ACTORS; i++)
        if (from->of[i] > to->of[i])
            to->of[i] = from->of[i];
}

// `actor` learns all that the event marks.
static void wait_for(struct graph *g, uint32_t actor, uint32_t event)
{
    if (actor == HOST)
        assert_ok(device_event_wait(g->events[event], &g->err), &g->err);
    else
        assert_ok(device_stream_wait(g->streams[actor], g->events[event], &g->err), &g->err);
    learn(&g->known[actor], &g->recorded[event]);
}

static void record(struct graph *g, uint32_t stream, uint32_t event)
{
    assert_ok(device_event_record(g->events[event], g->streams[stream], &g->err), &g->err);
    g->recorded[event] = g->known[stream];
}

// Makes `actor` wait for step `step` of `other`, where it does not know of it: by an
// event that is behind it already, or a new one.
static void await(struct graph *g, uint32_t actor, uint32_t other, uint32_t step)
{
    if (actor == other || g->known[actor].of[other] >= step)
        return;
    assert_int_not_equal(other, HOST); // whose steps every later call knows
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (g->recorded[i].of[other] >= step) {
            wait_for(g, actor, i);
            return;
        }
    }
    uint32_t event = pick(g, EVENTS);
    record(g, other, event);
    wait_for(g, actor, event);
}

static void will_read(struct graph *g, uint32_t actor, struct cell *cell)
{
    await(g, actor, cell->by, cell->written);
}

static void will_write(struct graph *g, uint32_t actor, struct cell *cell)
{
    await(g, actor, cell->by, cell->written);
    for (uint32_t other = 0; other < ACTORS; other++)
        await(g, actor, other, cell->read[other]);
}

// The next step of `actor`: what the host did before the call comes before it.
static uint32_t begin(struct graph *g, uint32_t actor)
{
    learn(&g->known[actor], &g->known[HOST]);
    return ++g->known[actor].of[actor];
}

static void wrote(struct cell *cell, uint32_t actor, uint32_t step)
{
    cell->written = step;
    cell->by = actor;
}

static void step_copy(struct graph *g, uint32_t stream)
{
    struct cell *to = &g->cells[pick(g, CELLS)];
    struct cell *from = &g->cells[pick(g, CELLS)];
    if (to == from)
        return;
    learn(&g->known[stream], &g->known[HOST]);
    will_read(g, stream, from);
    will_write(g, stream, to);
    uint32_t step = begin(g, stream);
    static enum status (*const copies[])(struct device_stream *, void *, const void *, size_t,
                                         struct error *) = {device_copy_in, device_copy_out,
                                                            device_copy_within};
    assert_ok(copies[pick(g, COUNT_OF(copies))](g->streams[stream], to->memory, from->memory,
                                                CELL_SIZE, &g->err),
              &g->err);
    memcpy(to->expected, from->expected, CELL_SIZE);
    from->read[stream] = step;
    wrote(to, stream, step);
}

static void step_fill(struct graph *g, uint32_t stream)
{
    struct cell *to = &g->cells[pick(g, CELLS)];
    int byte = (int)pick(g, 256);
    learn(&g->known[stream], &g->known[HOST]);
    will_write(g, stream, to);
    uint32_t step = begin(g, stream);
    assert_ok(device_fill(g->streams[stream], to->memory, byte, CELL_SIZE, &g->err), &g->err);
    memset(to->expected, byte, CELL_SIZE);
    wrote(to, stream, step);
}

struct mix_job {
    unsigned char *to;
    const unsigned char *from;
};

static void mix(unsigned char *to, const unsigned char *from)
{
    for (size_t i = 0; i < CELL_SIZE; i++)
        to[i] = (unsigned char)(3 * to[i] + from[CELL_SIZE - 1 - i] + 1);
}

static enum status mix_kernel(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    const struct mix_job *job = arguments;
    mix(job->to, job->from);
    return STATUS_OK;
}

static void step_kernel(struct graph *g, uint32_t stream)
{
    struct cell *to = &g->cells[pick(g, CELLS)];
    struct cell *from = &g->cells[pick(g, CELLS)];
    if (to == from)
        return;
    learn(&g->known[stream], &g->known[HOST]);
    will_read(g, stream, from);
    will_read(g, stream, to);
    will_write(g, stream, to);
    uint32_t step = begin(g, stream);
    struct mix_job job = {.to = to->memory, .from = from->memory};
    assert_ok(cpu_launch(g->streams[stream], "mix", mix_kernel, &job, sizeof job, &g->err),
              &g->err);
    mix(to->expected, from->expected);
    from->read[stream] = step;
    wrote(to, stream, step);
}

static void step_record(struct graph *g, uint32_t stream)
{
    learn(&g->known[stream], &g->known[HOST]);
    record(g, stream, pick(g, EVENTS));
}

static void step_wait(struct graph *g, uint32_t stream)
{
    wait_for(g, stream, pick(g, EVENTS));
}

static void host_writes(struct graph *g, uint32_t stream)
{
    (void)stream;
    struct cell *to = &g->cells[pick(g, CELLS)];
    will_write(g, HOST, to);
    uint32_t step = begin(g, HOST);
    for (size_t i = 0; i < CELL_SIZE; i++)
        to->expected[i] = (unsigned char)pick(g, 256);
    memcpy(to->memory, to->expected, CELL_SIZE);
    wrote(to, HOST, step);
}

static void host_reads(struct graph *g, uint32_t stream)
{
    (void)stream;
    struct cell *from = &g->cells[pick(g, CELLS)];
    will_read(g, HOST, from);
    assert_memory_equal(from->memory, from->expected, CELL_SIZE);
    from->read[HOST] = begin(g, HOST);
}

static void run_graph(struct graph *g)
{
    // Copies are the most frequent.
    static void (*const steps[])(struct graph *, uint32_t) = {
        step_copy, step_copy,   step_copy, step_kernel, step_kernel,
        step_fill, step_record, step_wait, host_writes, host_reads,
    };
    for (unsigned int i = 0; i < STEPS; i++)
        steps[pick(g, COUNT_OF(steps))](g, pick(g, STREAMS));
    for (size_t i = 0; i < CELLS; i++) {
        will_read(g, HOST, &g->cells[i]);
        assert_memory_equal(g->cells[i].memory, g->cells[i].expected, CELL_SIZE);
    }
}

// Runs graphs on one device, each on what the last one left.
static void run_graphs(struct device *device, uint64_t seed, unsigned int graphs)
{
    struct graph *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->device = device;
    g->random = seed;
    for (size_t i = 0; i < STREAMS; i++)
        g->streams[i] = stream_named(device, "graph");
    for (size_t i = 0; i < EVENTS; i++)
        g->events[i] = event_of_kind(device, DEVICE_EVENT_ORDER);
    for (size_t i = 0; i < CELLS; i++) {
        void *memory = NULL;
        assert_ok(device_memory_new(g->streams[0], &memory, CELL_SIZE, &g->err), &g->err);
        memset(memory, 0, CELL_SIZE);
        g->cells[i].memory = memory;
        g->cells[i].by = HOST;
    }

    for (unsigned int i = 0; i < graphs; i++)
        run_graph(g);

    for (size_t i = 0; i < STREAMS; i++)
        assert_ok(device_stream_synchronize(g->streams[i], &g->err), &g->err);
    for (size_t i = 0; i < CELLS; i++)
        device_memory_free(g->streams[0], g->cells[i].memory, CELL_SIZE);
    for (size_t i = 0; i < STREAMS; i++)
        device_stream_free(g->streams[i]);
    for (size_t i = 0; i < EVENTS; i++)
        device_event_free(g->events[i]);
    device_close(device);
    free(g);
}

TEST_CASE(graphs_come_out_as_in_order)
{
    run_graphs(stream_device(NULL), 1, PLAIN_GRAPHS);
}

TEST_CASE(graphs_come_out_as_in_order_however_slow)
{
    static const struct device_fault_options options = {
        .seed = 2, .delay_max_ns = 200 * 1000, .poison = true};
    struct device *device = NULL;
    struct error err = {0};
    assert_ok(device_fault_open(&device, stream_device(NULL), &options, &err), &err);
    run_graphs(device, 3, FAULTY_GRAPHS);
}

TEST_MAIN(graphs_come_out_as_in_order, graphs_come_out_as_in_order_however_slow)
