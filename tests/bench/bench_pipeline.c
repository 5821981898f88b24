// What the streaming pipeline does beside what it cannot beat: all sides in one run, by
// turns.
//
//   bench_pipeline [--json] [--quick] [--rounds N] [--pairs N] [--chunk-mb M]
//                  [--device cpu|cuda[:N]]
//
//   bare       one stream that copies chunk after chunk from pinned memory, nothing else
//   lent       the pipeline on the same memory, copies only
//   fill       the threads that fill alone (as many as tuning chooses), no device
//   filled     the pipeline with these threads, which copy each chunk from plain memory
//   at once    fill and bare at once, neither waiting for the other: what is left of
//              either where they share processors and memory.  "filled" falls short of the
//              slower of both by (at once / slower) that is the machine's and by (filled /
//              at once) that is the pipeline's
//   computed   lent memory with kernels that read each group, on the CPU a quarter longer
//              than its copy, else a copy within the device; with events and with periodic
//              synchronisation; beside copies and kernels at once, neither waiting
//   pairs      short runs of "computed" with instruments and without, in turn
//   trace      how far the overlap timeline is from stamps that copies and kernels take of
//              the host's clock themselves; on the CPU alone
//
// Where copies, kernels and fillers share a memory bus and two cores they slow each other
// down: only ratios within a round mean anything.  Rounds go on until the medians of the
// main ratios are known to 2 % (common/core/stats/stats.h), pairs until theirs is to 0.3 %; N
// is where they end at the latest.  Ratios of processor time say what the pipeline costs beside the
// same work without it, and do not see who else is running.
#include <stdio.h>
#include <string.h>

#include "common/core/stats/stats.h"
#include "tests/bench/bench.h"
#include "tests/bench/pipeline_sides.h"

enum { PAIR_SHARE = 4 }; // a pair's runs are so much shorter

static struct {
    bool json, quick;
    int64_t rounds, pairs, chunk_mb;
    const char *device;
    uint64_t chunks;
} bench = {.rounds = CONVERGENCE_RUNS_MAX,
           .pairs = BENCH_ROUNDS_MAX,
           .chunk_mb = 8,
           .device = "cpu",
           .chunks = 128};

struct measured {
    struct figures rates[SIDE_COUNT];
    struct figures lent_to_bare, lent_busy;
    struct figures filled_to_slower, filled_to_at_once, at_once_to_slower;
    struct figures computed_to_at_once, events_to_periodic;
    struct figures overlap, exposed, starved;
    struct figures lent_processor, filled_processor; // more than without a pipeline, relative
    struct figures on_to_off, on_to_off_processor;
    struct figures trace_error;
};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void add_ratios(const struct side_run *runs, struct measured *out)
{
    double rates[SIDE_COUNT], processor[SIDE_COUNT];
    for (int side = 0; side < SIDE_COUNT; side++) {
        rates[side] = runs[side].bytes_per_second;
        processor[side] = runs[side].processor_seconds;
        figures_add(&out->rates[side], rates[side]);
    }
    const double slower = smaller(rates[SIDE_BARE], rates[SIDE_FILL]);
    figures_add(&out->lent_to_bare, rates[SIDE_LENT] / rates[SIDE_BARE]);
    figures_add(&out->filled_to_slower, rates[SIDE_FILLED] / slower);
    figures_add(&out->filled_to_at_once, rates[SIDE_FILLED] / rates[SIDE_FILL_AND_COPY]);
    figures_add(&out->at_once_to_slower, rates[SIDE_FILL_AND_COPY] / slower);
    figures_add(&out->computed_to_at_once, rates[SIDE_COMPUTED] / rates[SIDE_COPY_AND_COMPUTE]);
    figures_add(&out->events_to_periodic, rates[SIDE_COMPUTED] / rates[SIDE_PERIODIC]);
    figures_add(&out->lent_processor, processor[SIDE_LENT] / processor[SIDE_BARE]);
    figures_add(&out->filled_processor,
                processor[SIDE_FILLED] / (processor[SIDE_BARE] + processor[SIDE_FILL]));
}

static void one_round(unsigned int round, struct measured *out)
{
    struct side_run runs[SIDE_COUNT];
    // Each round begins with another side, so that none always comes first.
    for (unsigned int i = 0; i < SIDE_COUNT; i++) {
        const enum side side = (enum side)((i + round) % SIDE_COUNT);
        side_measure(side, bench.chunks, &runs[side]);
    }
    add_ratios(runs, out);
    const struct pipeline_figures *lent = &runs[SIDE_LENT].pipeline;
    const struct pipeline_figures *filled = &runs[SIDE_FILLED].pipeline;
    const struct overlap_figures *overlap = &runs[SIDE_COMPUTED].pipeline.overlap;
    double ratio = 0;
    if (overlap_ratio(overlap, &ratio))
        figures_add(&out->overlap, ratio);
    figures_add(&out->exposed, share(overlap->exposed_copy_ns, overlap->busy_ns[OVERLAP_COPY]));
    figures_add(&out->lent_busy, share(lent->overlap.busy_ns[OVERLAP_COPY], lent->duration_ns));
    figures_add(&out->starved, share(filled->copy_starved_ns, filled->duration_ns));
    if (sides_are_of_cpu())
        figures_add(&out->trace_error, sides_timeline_error());
}

static struct convergence sum_up(const struct figures *figures)
{
    struct figures sorted = *figures;
    struct convergence convergence;
    convergence_measure(&convergence, sorted.values, sorted.count);
    return convergence;
}

static bool is_steady(const struct figures *figures, double ratio)
{
    const struct convergence convergence = sum_up(figures);
    return convergence_is_reached(&convergence, ratio);
}

static unsigned int all_rounds(struct measured *out)
{
    static const double ratio = 0.02;
    unsigned int round = 0;
    while (round < bench.rounds &&
           !(is_steady(&out->lent_to_bare, ratio) && is_steady(&out->filled_to_slower, ratio) &&
             is_steady(&out->events_to_periodic, ratio)))
        one_round(round++, out);
    return round;
}

// What instruments cost: the same run with them and without, now this one first, now that.
static void one_pair(unsigned int pair, struct measured *out)
{
    struct side_run on, off;
    const uint64_t chunks = bench.chunks / PAIR_SHARE;
    if (pair % 2)
        side_measure(SIDE_COMPUTED, chunks, &on);
    side_measure(SIDE_BLIND, chunks, &off);
    if (!(pair % 2))
        side_measure(SIDE_COMPUTED, chunks, &on);
    figures_add(&out->on_to_off, on.bytes_per_second / off.bytes_per_second);
    figures_add(&out->on_to_off_processor, on.processor_seconds / off.processor_seconds);
}

static unsigned int all_pairs(struct measured *out)
{
    static const double ratio = 0.003;
    unsigned int pair = 0;
    while (pair < bench.pairs && !is_steady(&out->on_to_off, ratio))
        one_pair(pair++, out);
    return pair;
}

static const struct {
    const char *key, *text;
    size_t offset;
    double scale;
    int digits;
} lines[] = {
#define LINE(key, text, member, scale, digits)                                                     \
    {                                                                                              \
        key, text, offsetof(struct measured, member), scale, digits                                \
    }
    LINE("bare_mb_per_second", "bare copy loop, MB/s", rates[SIDE_BARE], 1e-6, 0),
    LINE("lent_mb_per_second", "pipeline, lent memory, MB/s", rates[SIDE_LENT], 1e-6, 0),
    LINE("fill_alone_mb_per_second", "fillers alone, MB/s", rates[SIDE_FILL], 1e-6, 0),
    LINE("fill_and_copy_mb_per_second", "fillers and copies at once, MB/s",
         rates[SIDE_FILL_AND_COPY], 1e-6, 0),
    LINE("filled_mb_per_second", "pipeline, filled slots, MB/s", rates[SIDE_FILLED], 1e-6, 0),
    LINE("copy_and_compute_mb_per_second", "copies and kernels at once, MB/s",
         rates[SIDE_COPY_AND_COMPUTE], 1e-6, 0),
    LINE("computed_mb_per_second", "pipeline, with kernels, MB/s", rates[SIDE_COMPUTED], 1e-6, 0),
    LINE("ratio_to_bare_loop", "lent to bare", lent_to_bare, 1, 3),
    LINE("lent_copy_busy_ratio", "lent, share of time that copies run", lent_busy, 1, 3),
    LINE("lent_processor_ratio", "lent to bare, processor time", lent_processor, 1, 3),
    LINE("ratio_to_slower_of_fill_and_bare", "filled to the slower of fill and bare",
         filled_to_slower, 1, 3),
    LINE("ratio_to_fill_and_copy_at_once", "  filled to both at once: the pipeline's part",
         filled_to_at_once, 1, 3),
    LINE("fill_and_copy_ratio_to_slower", "  both at once to the slower: the machine's",
         at_once_to_slower, 1, 3),
    LINE("filled_processor_ratio", "filled to fill and bare, processor time", filled_processor, 1,
         3),
    LINE("copy_starved_ratio", "starved share of time, filled", starved, 1, 3),
    LINE("ratio_to_copy_and_compute_at_once", "computed to copies and kernels at once",
         computed_to_at_once, 1, 3),
    LINE("ratio_to_periodic", "events to periodic", events_to_periodic, 1, 3),
    LINE("overlap_ratio", "overlap", overlap, 1, 3),
    LINE("exposed_copy_ratio", "exposed share of copy time", exposed, 1, 3),
    LINE("ratio_to_no_instruments", "instruments on to off", on_to_off, 1, 4),
    LINE("processor_ratio_to_no_instruments", "instruments on to off, processor time",
         on_to_off_processor, 1, 4),
    LINE("timeline_to_trace_error", "timeline against trace, relative error", trace_error, 1, 4),
#undef LINE
};

static void put(const char *key, const char *text, double value, int digits)
{
    if (bench.json)
        bench_json_number(key, value, digits);
    else
        (void)printf("%-46s %.*f\n", text, digits, value);
}

static void report(const struct measured *measured, unsigned int rounds, unsigned int pairs)
{
    put("rounds", "rounds", rounds, 0);
    put("pairs", "pairs of runs with instruments and without", pairs, 0);
    put("fillers", "threads that fill", sides_fillers(), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct figures *figures =
            (const struct figures *)(const void *)((const char *)measured + lines[i].offset);
        if (figures->count > 0)
            put(lines[i].key, lines[i].text, sum_up(figures).median * lines[i].scale,
                lines[i].digits);
    }
    // The least that a run of its own exposes: the first group's copies.
    put("exposed_copy_ratio_least", "exposed share of copy time, the least there is",
        SIDES_GROUP_CHUNKS / (double)bench.chunks, 3);
    // What a median is known to, either way.
    put("ratio_to_bare_loop_interval", "lent to bare, known to",
        sum_up(&measured->lent_to_bare).interval_ratio, 3);
    put("ratio_to_slower_of_fill_and_bare_interval", "filled to the slower, known to",
        sum_up(&measured->filled_to_slower).interval_ratio, 3);
    put("ratio_to_periodic_interval", "events to periodic, known to",
        sum_up(&measured->events_to_periodic).interval_ratio, 3);
    put("ratio_to_no_instruments_interval", "instruments on to off, known to",
        sum_up(&measured->on_to_off).interval_ratio, 4);
    if (bench.json)
        bench_json_end();
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            bench.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            bench.quick = true;
        else if (strcmp(argv[i], "--rounds") == 0)
            bench_option_number(&bench.rounds, argv, argc, &i, 1, BENCH_ROUNDS_MAX);
        else if (strcmp(argv[i], "--pairs") == 0)
            bench_option_number(&bench.pairs, argv, argc, &i, 1, BENCH_ROUNDS_MAX);
        else if (strcmp(argv[i], "--chunk-mb") == 0)
            bench_option_number(&bench.chunk_mb, argv, argc, &i, 1, 64);
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            bench.device = argv[++i];
        else
            bench_die(argv[i], "no such option (use --json, --quick, --rounds N, --pairs N, "
                               "--chunk-mb M, --device D)");
    }
    if (bench.quick) {
        bench.rounds = bench.pairs = 3;
        bench.chunk_mb = 1;
        bench.chunks = 16;
    }
}

int main(int argc, char **argv)
{
    static struct measured measured;
    (void)bench_open("bench_pipeline");
    read_options(argc, argv);
    const struct sides_options options = {bench.device, (size_t)bench.chunk_mb * MB, bench.chunks};
    sides_open(&options);
    const unsigned int rounds = all_rounds(&measured);
    const unsigned int pairs = all_pairs(&measured);
    report(&measured, rounds, pairs);
    sides_close();
    return 0;
}
