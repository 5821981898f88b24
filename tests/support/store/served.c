#include "tests/support/store/served.h"

#include <math.h>

static double uniform(uint64_t *seed)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15); // splitmix64
    uint64_t z = *seed;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(uint64_t *seed)
{
    const double radius = sqrt(-2 * log(1 - uniform(seed)));
    return radius * cos(6.283185307179586 * uniform(seed));
}

struct state {
    uint64_t *seed;
    double drift;                 // of neighbours, as a normal variable
    double of_run;                // slowness of the run
    double rate_factor;           // of bursts
    double now_ms;                // of arrivals
    double free_ms[SERVED_SLOTS]; // when each slot is free
    double idle_ms[SERVED_SLOTS]; // when each client is free
};

static unsigned first_of(const double *times, unsigned count)
{
    unsigned first = 0;
    for (unsigned i = 1; i < count; i++)
        if (times[i] < times[first])
            first = i;
    return first;
}

static double arrive(struct state *state, const struct served *engine, unsigned *client)
{
    if (engine->clients) {
        *client = first_of(state->idle_ms, engine->clients);
        return state->idle_ms[*client];
    }
    if (engine->rate <= 0)
        return 0;
    if (engine->burst > 0 && uniform(state->seed) < 0.05)
        state->rate_factor =
            uniform(state->seed) < 0.5 ? 1 + engine->burst : 1 / (1 + engine->burst);
    state->now_ms -= 1000 * log(1 - uniform(state->seed)) / engine->rate / state->rate_factor;
    return state->now_ms;
}

// A request's slowness.
static double slowness_of(struct state *state, const struct served *engine)
{
    const double memory = 0.9;
    state->drift = memory * state->drift + sqrt(1 - memory * memory) * normal(state->seed);
    const double slowness = engine->slowness > 0 ? engine->slowness : 1;
    return slowness * state->of_run *
           exp(engine->noise * normal(state->seed) + engine->drift * state->drift);
}

static void serve(struct served_request *request, struct state *state, const struct served *engine)
{
    unsigned client = 0;
    const double at_ms = arrive(state, engine, &client);
    const double work =
        engine->token_noise > 0 ? exp(engine->token_noise * normal(state->seed)) : 1;
    const double slowness = slowness_of(state, engine);
    const unsigned slot = first_of(state->free_ms, engine->slots ? engine->slots : 1);
    const double start_ms = state->free_ms[slot] > at_ms ? state->free_ms[slot] : at_ms;
    request->prompt_tokens = 20;
    request->generated_tokens = 2 + (int)(48 * work);
    double decode_ms = 0.05 * request->generated_tokens * slowness;
    if (engine->slow_share > 0 && uniform(state->seed) < engine->slow_share)
        decode_ms += engine->slow_add;
    if (engine->heavy > 0 && uniform(state->seed) < 0.05)
        decode_ms *= pow(1 - uniform(state->seed), -1 / engine->heavy);
    const double prefill_ms = 0.5 * slowness * exp(0.1 * normal(state->seed));
    request->has_failed = engine->failures > 0 && uniform(state->seed) < engine->failures;
    request->started_ns = INT64_C(1790000000000000000) + (int64_t)(at_ms * 1e6);
    request->queue_ns = (int64_t)((start_ms - at_ms) * 1e6);
    request->prefill_ns = (int64_t)(prefill_ms * 1e6);
    request->decode_ns = (int64_t)(decode_ms * 1e6);
    request->itl_p99_ns = (int64_t)(0.1e6 * slowness);
    state->free_ms[slot] = start_ms + prefill_ms + decode_ms;
    state->idle_ms[client] = state->free_ms[slot];
}

void served_run(struct served_request *out, const struct served *engine, int run, uint64_t *seed)
{
    struct state state = {.seed = seed, .drift = normal(seed), .rate_factor = 1};
    state.of_run = exp(engine->run_noise * normal(seed));
    for (unsigned i = 0; i < engine->requests; i++) {
        serve(&out[i], &state, engine);
        out[i].run = run;
    }
}
