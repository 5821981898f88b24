// An inference engine in a hundred lines that says what it is doing.  Its model is
// a toy; what matters is where the library is called.  Copy what you need.
//
//     cc example_engine.c $(pkg-config --cflags --libs inferstat) -o example_engine
//     ./example_engine [REQUESTS] [TOKENS]
//
// Records go to the collector at INFERSTAT_COLLECTOR or the default address.  With
// none there the engine runs as well, and says so once.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <inferstat.h>

enum { WIDTH = 256, PROMPT_TOKENS = 8, VOCABULARY = 64 };

struct engine {
    struct inferstat_monitor *monitor; // NULL is fine: nothing is recorded then
    uint32_t model, device;            // numbers of their names
    float *weights;                    // WIDTH x WIDTH
    float state[WIDTH];
};

static void say(void *context, enum inferstat_log_level level, const char *text)
{
    (void)context;
    (void)level;
    (void)fprintf(stderr, "example_engine: %s\n", text);
}

// Loads the model: each stage is named as it begins.
static int load_model(struct engine *engine)
{
    const size_t count = (size_t)WIDTH * WIDTH;
    struct inferstat_load *load =
        inferstat_load_begin(engine->monitor, engine->model, engine->device);
    inferstat_load_start_stage(load, "device_selection");
    inferstat_load_start_stage(load, "file_opening");
    inferstat_load_start_stage(load, "model_building");
    engine->weights = malloc(count * sizeof *engine->weights);
    if (!engine->weights) {
        inferstat_load_end(load, INFERSTAT_RESULT_ERROR, "out of memory");
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        engine->weights[i] = (float)((i * 2654435761U) % 1000) / 100000.0F;
    inferstat_load_set_model_bytes(load, (int64_t)(count * sizeof *engine->weights));
    inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
    return 0;
}

// One forward pass; returns the next token.
static unsigned forward(struct engine *engine, unsigned token)
{
    float next[WIDTH];
    engine->state[token % WIDTH] += 1.0F;
    for (size_t row = 0; row < WIDTH; row++) {
        float sum = 0;
        for (size_t column = 0; column < WIDTH; column++)
            sum += engine->weights[row * WIDTH + column] * engine->state[column];
        next[row] = sum / (1 + sum);
    }
    memcpy(engine->state, next, sizeof next);
    return (unsigned)(next[token % WIDTH] * 1e6F) % VOCABULARY;
}

// Answers one request.
static void answer(struct engine *engine, struct inferstat_inference *inference, uint64_t request,
                   unsigned tokens)
{
    inferstat_inference_begin(inference,
                              &(struct inferstat_request){.model = engine->model,
                                                          .device = engine->device,
                                                          .request = request,
                                                          .prompt_tokens = PROMPT_TOKENS});
    inferstat_inference_start_prefill(inference);
    unsigned token = 1;
    for (unsigned i = 0; i < PROMPT_TOKENS; i++)
        token = forward(engine, token);
    for (unsigned i = 0; i < tokens; i++) {
        inferstat_inference_token(inference); // one is out
        token = forward(engine, token);
    }
    inferstat_inference_end(inference, INFERSTAT_FINISH_LENGTH);
}

int main(int argc, char **argv)
{
    const unsigned requests = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    const unsigned tokens = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 32;
    struct engine engine = {.monitor = NULL};
    struct inferstat_options options;
    inferstat_options_init(&options);
    options.program = "example_engine 1.0";
    options.log = say;
    struct inferstat_error err;
    if (inferstat_open(&engine.monitor, &options, &err) != INFERSTAT_OK)
        (void)fprintf(stderr, "example_engine: %s\n", err.text); // goes on without

    engine.device = inferstat_name(engine.monitor, "cpu");
    engine.model = inferstat_name(engine.monitor, "toy");
    int failed = load_model(&engine);
    struct inferstat_inference *inference = inferstat_inference_new(engine.monitor);
    for (uint64_t request = 1; !failed && request <= requests; request++)
        answer(&engine, inference, request, tokens);
    inferstat_inference_free(inference);
    free(engine.weights);

    struct inferstat_totals totals;
    if (inferstat_close(engine.monitor, 2000000000, &totals) != INFERSTAT_OK)
        (void)fprintf(stderr, "example_engine: not everything arrived in time\n");
    (void)printf("%u requests of %u tokens; records made %" PRIu64 ", acknowledged %" PRIu64
                 ", lost %" PRIu64 "\n",
                 requests, tokens, totals.produced, totals.acknowledged, totals.dropped);
    return failed ? 1 : 0;
}
