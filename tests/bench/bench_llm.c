// How fast language models run on the CPU, beside llama.cpp and beside the speed of memory.
//
//   bench_llm [--json] [--quick] [--rounds N] [--threads T] [--shape S] [--type T]
//             [--part decode|prefill|depth|first] [--models FOLDER]
//
// For synthetic models of the shapes 15m, 110m and 1b and the types F16, Q8_0, Q4_0 and Q4_K, or of
// the one shape and the one type named:
//
//   decode   tokens a second, one after another, in an empty context; and the share that this is
//            of reading the weights of those tokens with the same threads
//   prefill  tokens a second of a prompt of 512
//   depth    as decode, behind 960 tokens
//   first    time from a prompt of 12 tokens to the logits of the first token
//
// Where LLAMA_BENCH names a llama-bench of llama.cpp, it measures the first three in the same
// rounds with the same file and as many threads.  Build it for the instruction sets of the kernels
// that are printed: with others it measures the processor.  Figures are medians of the rounds, of
// ratios within one round.  --models keeps the models in a folder and uses those that are there.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "server/device/cpu/thread_pool.h"
#include "server/workload/llm/load.h"
#include "server/workload/llm/synthetic.h"
#include "tests/bench/bench.h"

enum part { DECODE, PREFILL, DEPTH, FIRST, PARTS };
enum { FIRST_PROMPT = 12, CHUNK = 1 << 20, CHUNKS_MAX = 1 << 16 };

static const char *const part_names[PARTS] = {"decode", "prefill", "depth", "first"};

static struct {
    bool json, quick;
    int64_t rounds, threads;
    const char *shape, *type, *part, *models, *peer;
} options = {.rounds = 5, .threads = 2};

// Tokens of each part; with --quick fewer.
static struct {
    size_t decode, prefill, depth;
} tokens = {.decode = 8, .prefill = 512, .depth = 960};

// A model, its weights in pieces, and its figures.
struct timed {
    char name[32]; // "1b_q8_0"
    char path[512];
    struct llm *llm;
    struct thread_pool *pool; // reads the weights
    const uint64_t *chunks[CHUNKS_MAX];
    size_t chunk_sizes[CHUNKS_MAX], chunk_count, weight_bytes;
    uint64_t sums[CHUNKS_MAX]; // so that reading them has a result
    float *logits;
    struct figures own[PARTS], peer[PARTS], ratio[PARTS]; // tokens a second
    struct figures read, to_read;                         // bytes a second
};

static void check(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        bench_die("model", err->text);
}

static bool has_part(enum part part)
{
    return !options.part || strcmp(options.part, part_names[part]) == 0;
}

// ---- Own figures --------------------------------------------------------------------------

// Evaluates `count` tokens, `step` at once; returns tokens a second.
static double evaluate(struct timed *timed, struct llama_session *session, size_t count,
                       size_t step)
{
    struct error err = {.status = STATUS_OK};
    const size_t vocabulary = llama_get_config(timed->llm->llama)->vocabulary;
    uint32_t ids[1024];
    for (size_t i = 0; i < step; i++)
        ids[i] = (uint32_t)(300 + 7 * i) % (uint32_t)vocabulary;
    const uint64_t begun_ns = clock_monotonic_ns();
    for (size_t done = 0; done < count; done += step)
        check(llama_session_eval(session, ids, step, timed->logits, &err), &err);
    return (double)count * 1e9 / (double)(clock_monotonic_ns() - begun_ns);
}

static void collect_weight(void *context, const char *name, const struct tensor *tensor)
{
    struct timed *timed = context;
    if (strcmp(name, "token_embd.weight") == 0) // of which a token reads one row
        return;
    const size_t size = tensor_bytes(tensor);
    for (size_t at = 0; at < size && timed->chunk_count < CHUNKS_MAX; at += CHUNK) {
        timed->chunks[timed->chunk_count] = (const uint64_t *)tensor->data + at / sizeof(uint64_t);
        timed->chunk_sizes[timed->chunk_count++] = size - at < CHUNK ? size - at : CHUNK;
    }
    timed->weight_bytes += size;
}

static void read_chunk(void *context, size_t part, unsigned int thread)
{
    enum { AHEAD = 256 }; // words
    (void)thread;
    struct timed *timed = context;
    const uint64_t *words = timed->chunks[part];
    uint64_t sums[8] = {0};
    for (size_t at = 0; at + 8 <= timed->chunk_sizes[part] / sizeof *words; at += 8) {
        __builtin_prefetch(words + at + AHEAD);
        for (size_t i = 0; i < 8; i++)
            sums[i] += words[at + i];
    }
    for (size_t i = 0; i < 8; i++)
        timed->sums[part] += sums[i];
}

static void read_weights(struct timed *timed, double tokens_per_second)
{
    const uint64_t begun_ns = clock_monotonic_ns();
    thread_pool_run(timed->pool, read_chunk, timed, timed->chunk_count);
    const uint64_t took_ns = clock_monotonic_ns() - begun_ns;
    const double rate = (double)timed->weight_bytes * 1e9 / (double)took_ns;
    figures_add(&timed->read, rate);
    figures_add(&timed->to_read, tokens_per_second * (double)timed->weight_bytes / rate);
}

// ---- llama.cpp ----------------------------------------------------------------------------

// Tokens a second that llama-bench measures; 0 where there is none.
static double ask_peer(const struct timed *timed, size_t prompt, size_t generated, size_t depth)
{
    char command[1280], line[512];
    double rate = 0.0;
    if (!options.peer)
        return 0.0;
    (void)snprintf(command, sizeof command,
                   "'%s' -m '%s' -t %lld -p %zu -n %zu -d %zu -r 1 -o json 2>/dev/null",
                   options.peer, timed->path, (long long)options.threads, prompt, generated, depth);
    FILE *output = popen(command, "r");
    if (!output)
        bench_die(options.peer, "cannot start");
    while (fgets(line, sizeof line, output)) {
        const char *found = strstr(line, "\"avg_ts\":");
        if (found)
            rate = strtod(found + strlen("\"avg_ts\":"), NULL);
    }
    if (pclose(output) != 0 || !(rate > 0.0))
        bench_die(options.peer, "it measured nothing (run it by hand to see why)");
    return rate;
}

static void add_figures(struct timed *timed, enum part part, double own, double peer)
{
    figures_add(&timed->own[part], own);
    if (peer > 0.0) {
        figures_add(&timed->peer[part], peer);
        figures_add(&timed->ratio[part], own / peer);
    }
}

// ---- Rounds -------------------------------------------------------------------------------

static void run_round(struct timed *timed, struct llama_session *session,
                      struct llama_session *deep)
{
    if (has_part(DECODE)) {
        const size_t more = 4 * tokens.decode; // the session is short
        llama_session_reset(session);
        (void)evaluate(timed, session, 1, 1);
        const double rate = evaluate(timed, session, more, 1);
        add_figures(timed, DECODE, rate, ask_peer(timed, 0, more, 0));
        read_weights(timed, rate);
    }
    if (has_part(PREFILL)) {
        llama_session_reset(session);
        const double rate = evaluate(timed, session, tokens.prefill, tokens.prefill);
        add_figures(timed, PREFILL, rate, ask_peer(timed, tokens.prefill, 0, 0));
    }
    if (has_part(DEPTH)) {
        const double rate = evaluate(timed, deep, tokens.decode, 1);
        add_figures(timed, DEPTH, rate, ask_peer(timed, 0, tokens.decode, tokens.depth));
    }
    if (has_part(FIRST)) {
        llama_session_reset(session);
        const double rate = evaluate(timed, session, FIRST_PROMPT, FIRST_PROMPT);
        add_figures(timed, FIRST, rate, 0.0);
    }
}

static void open_model(struct timed *timed, const char *folder, const struct synthetic_shape *shape,
                       enum tensor_type type)
{
    struct error err = {.status = STATUS_OK};
    char type_name[8] = "";
    for (size_t i = 0; i < sizeof type_name - 1 && tensor_formats[type].name[i]; i++)
        type_name[i] = tensor_formats[type].name[i];
    (void)snprintf(timed->name, sizeof timed->name, "%s_%s", shape->name, type_name);
    (void)snprintf(timed->path, sizeof timed->path, "%s/%s.gguf", folder, timed->name);
    const unsigned int threads = (unsigned int)options.threads;
    if (access(timed->path, R_OK) != 0)
        check(synthetic_write(timed->path, shape, type, 1, threads, &err), &err);
    const struct llm_load_options load = {.path = timed->path,
                                          .device = {.spec = "cpu", .threads = threads}};
    check(llm_load(&timed->llm, &load, NULL, &err), &err);
    check(thread_pool_new(&timed->pool, threads, &err), &err);
    (void)llama_each_weight(timed->llm->llama, collect_weight, timed);
    timed->logits = calloc(llama_get_config(timed->llm->llama)->vocabulary, sizeof *timed->logits);
    if (!timed->logits)
        bench_die("model", "out of memory");
}

static void run_model(struct timed *timed)
{
    struct error err = {.status = STATUS_OK};
    struct llama_session *session = NULL, *deep = NULL;
    const struct llama *llama = timed->llm->llama;
    check(llama_session_new(&session, llama, tokens.prefill, &err), &err);
    if (has_part(DEPTH)) {
        const size_t context = tokens.depth + tokens.decode * (size_t)(options.rounds + 1);
        check(llama_session_new(&deep, llama, context, &err), &err);
        (void)evaluate(timed, deep, tokens.depth, tokens.depth);
    }
    (void)evaluate(timed, session, tokens.decode, 1);
    for (int64_t round = 0; round < options.rounds; round++)
        run_round(timed, session, deep);
    llama_session_free(session);
    llama_session_free(deep);
}

static void close_model(struct timed *timed)
{
    thread_pool_free(timed->pool);
    llm_free(timed->llm);
    free(timed->logits);
    free(timed);
}

// ---- Output -------------------------------------------------------------------------------

static void print_number(const struct timed *timed, enum part part, const char *what, double value,
                         int digits)
{
    char key[80];
    (void)snprintf(key, sizeof key, "%s_%s_%s", timed->name, part_names[part], what);
    bench_json_number(key, value, digits);
}

static void report(const struct timed *timed)
{
    for (enum part part = 0; part < PARTS; part++) {
        const double own = figures_median(&timed->own[part]);
        const double peer = figures_median(&timed->peer[part]);
        const double ratio = figures_median(&timed->ratio[part]);
        const double read = part == DECODE ? figures_median(&timed->read) : 0.0;
        const double to_read = figures_median(&timed->to_read);
        if (!has_part(part))
            continue;
        if (options.json) {
            print_number(timed, part, "tokens_per_second", own, 2);
            if (peer > 0.0)
                print_number(timed, part, "ratio_to_llama", ratio, 3);
            if (read > 0.0)
                print_number(timed, part, "ratio_to_read", to_read, 3);
            if (part == FIRST)
                print_number(timed, part, "seconds", FIRST_PROMPT / own, 4);
            continue;
        }
        (void)printf("%-10s %-8s %9.2f tokens/s", timed->name, part_names[part], own);
        if (peer > 0.0)
            (void)printf("  %9.2f of llama.cpp: ratio %5.2f", peer, ratio);
        if (read > 0.0)
            (void)printf("  %5.2f of a read at %.1f GB/s", to_read, read / 1e9);
        if (part == FIRST)
            (void)printf("  %.3f s", FIRST_PROMPT / own);
        (void)putchar('\n');
        (void)fflush(stdout);
    }
}

static void read_options(int argc, char **argv)
{
    const struct {
        const char *name, **value;
    } texts[] = {{"--shape", &options.shape},
                 {"--type", &options.type},
                 {"--part", &options.part},
                 {"--models", &options.models}};
    for (int i = 1; i < argc; i++) {
        size_t text = 0;
        while (text < sizeof texts / sizeof *texts && strcmp(argv[i], texts[text].name) != 0)
            text++;
        if (text < sizeof texts / sizeof *texts && i + 1 < argc)
            *texts[text].value = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            options.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options.quick = true;
        else if (strcmp(argv[i], "--threads") == 0)
            bench_option_number(&options.threads, argv, argc, &i, 1, BENCH_THREADS_MAX);
        else if (strcmp(argv[i], "--rounds") == 0)
            bench_option_number(&options.rounds, argv, argc, &i, 1, 7); // what 1,024 tokens hold
        else
            bench_die("usage", "[--json] [--quick] [--rounds N] [--threads T] [--shape S] "
                               "[--type T] [--part decode|prefill|depth|first] [--models FOLDER]");
    }
}

int main(int argc, char **argv)
{
    static const enum tensor_type types[] = {TENSOR_F16, TENSOR_Q8_0, TENSOR_Q4_0, TENSOR_Q4_K};
    const char *folder = bench_open("bench_llm");
    bool any = false;
    read_options(argc, argv);
    options.peer = getenv("LLAMA_BENCH");
    if (!options.peer)
        (void)fputs("bench_llm: LLAMA_BENCH is not set: no figures of llama.cpp\n", stderr);
    if (options.quick) {
        options.rounds = 1;
        options.shape = "tiny";
        tokens.decode = 2;
        tokens.prefill = tokens.depth = 16;
    }
    for (size_t s = 0; s < SYNTHETIC_COUNT; s++) {
        const struct synthetic_shape *shape = &synthetic_shapes[s];
        const bool usual = s == SYNTHETIC_15M || s == SYNTHETIC_110M || s == SYNTHETIC_1B;
        if (options.shape ? strcmp(shape->name, options.shape) != 0 : !usual)
            continue;
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            struct timed *timed = calloc(1, sizeof *timed);
            if (options.type && strcmp(tensor_formats[types[t]].name, options.type) != 0) {
                free(timed);
                continue;
            }
            if (!timed)
                bench_die("model", "out of memory");
            open_model(timed, options.models ? options.models : folder, shape, types[t]);
            run_model(timed);
            report(timed);
            close_model(timed);
            any = true;
        }
    }
    if (!any)
        bench_die("usage", "no such --shape or --type (F16, Q8_0, Q4_0 or Q4_K)");
    if (options.json)
        bench_json_end();
    return 0;
}
