// An inference engine in about a hundred lines that says what it is doing.  Its model
// is a toy; what matters is where the library is called.  Copy what you need, into C
// or C++.
//
//     cc example_engine.c $(pkg-config --cflags --libs inferstat) -o example_engine
//     ./example_engine [REQUESTS] [TOKENS]
//
// Records go to the collector at INFERSTAT_COLLECTOR or the default address.  Without
// one the engine runs too; it logs that once and, at the end, how many records were not
// acknowledged.  Exits 0 when the engine did its work, 1 when it could not, 2 for
// arguments that are no counts.
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
    engine->weights = (float *)malloc(count * sizeof *engine->weights);
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
    struct inferstat_request about;
    memset(&about, 0, sizeof about);
    about.model = engine->model;
    about.device = engine->device;
    about.request = request;
    about.prompt_tokens = PROMPT_TOKENS;
    inferstat_inference_begin(inference, &about);
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

// Parses a count; strtoul turns negative numbers into huge ones, which are rejected.
static int read_count(const char *text, unsigned *count)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    *count = (unsigned)value;
    return end != text && *end == '\0' && value <= 1000000;
}

int main(int argc, char **argv)
{
    unsigned requests = 100, tokens = 32;
    if (argc > 3 || (argc > 1 && !read_count(argv[1], &requests)) ||
        (argc > 2 && !read_count(argv[2], &tokens))) {
        (void)fprintf(stderr, "usage: example_engine [REQUESTS] [TOKENS], up to 1000000 each\n");
        return 2;
    }
    struct engine engine;
    memset(&engine, 0, sizeof engine);
    struct inferstat_options options;
    inferstat_options_init(&options);
    options.program = "example_engine 1.0";
    options.device_ms = 1000; // also sample the host and its GPUs
    options.log = say;
    struct inferstat_error err;
    if (inferstat_open(&engine.monitor, &options, &err) != INFERSTAT_OK)
        (void)fprintf(stderr, "example_engine: %s\n", err.text); // goes on without

    engine.device = inferstat_name(engine.monitor, "cpu");
    engine.model = inferstat_name(engine.monitor, "toy");
    const int failed = load_model(&engine);
    struct inferstat_inference *inference = inferstat_inference_new(engine.monitor);
    for (uint64_t request = 1; !failed && request <= requests; request++)
        answer(&engine, inference, request, tokens);
    inferstat_inference_free(inference);
    free(engine.weights);

    struct inferstat_totals totals;
    (void)inferstat_close(engine.monitor, 2000000000, &totals); // the log says what was left
    (void)printf("%u requests of %u tokens; records made %" PRIu64 ", acknowledged %" PRIu64
                 ", lost %" PRIu64 "\n",
                 requests, tokens, totals.produced, totals.acknowledged, totals.dropped);
    return failed ? 1 : 0;
}
