// How many records a second the collector takes: acknowledged after the commit
// (synchronous=FULL, ledger kept), over real sockets, by a real inferstatd, from 1,
// 8 and 500 producers over ipc and from 8 with CURVE over TCP; against a bare
// SQLite loop, inferstatd without rollups and, where it is installed, against victoria-metrics
// (ingest.h says what each does).
//
//   bench_ingest [--json] [--quick] [--records N] [--rounds N] [--no-victoria]
//
// What rollups cost is said in three ways, of which the first two do not hang on luck:
//
// - in one thread, without sockets, the writer's modules store the same records with and
//   without rollups by turns, until the rollups have all (ingest.h, fold_cost);
// - of inferstatd with eight producers, the processor time of its busiest thread, which is
//   the writer, until the rollups have all, beside the same without rollups;
// - and the rates of the two.  These alone say little: rollups that fall behind cost
//   nothing while records come.  So how many records they lacked at the end is said too.
//
// Rounds alternate all of them, each having the machine to itself; every figure is
// the median of the rounds, a ratio the median of the rounds' own ratios.  --quick
// is one round of few records, of 40 producers instead of 500 and without
// victoria-metrics, to see that it works.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/ingest.h"
#include "tests/bench/victoria.h"
#include "tests/support/producer.h"

enum { RECORDS_MIN = 16384, RECORDS_QUICK = 32768, CROWD_QUICK = 40 };

struct sides {
    struct figures loop, one, eight, bare, crowd, sealed, victoria;
    struct figures one_to_loop, eight_to_loop, eight_to_bare, sealed_to_loop, eight_to_victoria,
        crowd_to_eight;
    struct figures idle, peak_eight, peak_crowd, after_crowd;        // bytes
    struct figures processor, bare_processor, busiest, bare_busiest; // ns a record, 8 producers
    struct figures bare_to_eight_busiest, lacking;
    struct figures store, rolled, store_to_rolled; // fold_cost
    bool has_victoria;
    unsigned crowd_size;
    struct victoria_client client;
};

static void add_crowd(const struct load *load, unsigned producers, bool sealed,
                      struct figures *rates, struct figures *peaks, struct sides *sides)
{
    const struct crowd crowd = {.producers = producers, .sealed = sealed};
    struct crowd_result result;
    crowd_rate(load, &crowd, &result);
    figures_add(rates, result.rate);
    figures_add(&sides->idle, (double)result.idle_bytes);
    if (peaks)
        figures_add(peaks, (double)result.peak_bytes);
    if (producers == INGEST_PRODUCERS && !sealed) {
        figures_add(&sides->processor, result.processor_ns);
        figures_add(&sides->busiest, result.busiest_ns);
        figures_add(&sides->lacking, result.lacking);
    }
    if (producers == sides->crowd_size)
        figures_add(&sides->after_crowd, (double)result.after_bytes);
}

static double last(const struct figures *figures)
{
    return figures->values[figures->count - 1];
}

// As with eight producers, by a collector that makes no rollups.
static void add_bare(const struct load *load, struct sides *sides)
{
    const struct crowd crowd = {.producers = INGEST_PRODUCERS, .no_rollups = true};
    struct crowd_result result;
    crowd_rate(load, &crowd, &result);
    figures_add(&sides->bare, result.rate);
    figures_add(&sides->bare_processor, result.processor_ns);
    figures_add(&sides->bare_busiest, result.busiest_ns);
}

static void add_fold(const struct load *load, struct sides *sides)
{
    struct fold_result result;
    fold_cost(load, &result);
    figures_add(&sides->store, result.store_ns);
    figures_add(&sides->rolled, result.rolled_ns);
    figures_add(&sides->store_to_rolled, result.store_ns / result.rolled_ns);
}

static void run_round(const struct load *load, struct sides *sides)
{
    figures_add(&sides->loop, loop_rate(load));
    add_crowd(load, INGEST_PRODUCERS, false, &sides->eight, &sides->peak_eight, sides);
    add_bare(load, sides);
    add_fold(load, sides);
    if (sides->has_victoria)
        figures_add(&sides->victoria, victoria_rate(load, &sides->client));
    add_crowd(load, sides->crowd_size, false, &sides->crowd, &sides->peak_crowd, sides);
    add_crowd(load, INGEST_PRODUCERS, true, &sides->sealed, NULL, sides);
    add_crowd(load, 1, false, &sides->one, NULL, sides);

    figures_add(&sides->one_to_loop, last(&sides->one) / last(&sides->loop));
    figures_add(&sides->eight_to_loop, last(&sides->eight) / last(&sides->loop));
    figures_add(&sides->eight_to_bare, last(&sides->eight) / last(&sides->bare));
    figures_add(&sides->bare_to_eight_busiest, last(&sides->bare_busiest) / last(&sides->busiest));
    figures_add(&sides->crowd_to_eight, last(&sides->crowd) / last(&sides->eight));
    figures_add(&sides->sealed_to_loop, last(&sides->sealed) / last(&sides->loop));
    if (sides->has_victoria)
        figures_add(&sides->eight_to_victoria, last(&sides->eight) / last(&sides->victoria));
}

// One line of the output: a figure with its key; `goal` "" where there is none.
struct line {
    const char *key, *text, *unit, *goal;
    double value;
    int digits;
};

static double value_of(const struct figures *figures)
{
    return figures->count ? figures_median(figures) : (double)NAN;
}

static void print(const struct sides *sides, bool json)
{
    const double mb = 1e6;
    const struct line lines[] = {
        {"bare_loop_records_per_second", "bare loop", "records/s", "", value_of(&sides->loop), 0},
        {"victoria_metrics_records_per_second", "victoria-metrics", "records/s", "",
         value_of(&sides->victoria), 0},
        {"records_per_second_1", "1 producer", "records/s", "", value_of(&sides->one), 0},
        {"records_per_second_8", "8 producers", "records/s", "", value_of(&sides->eight), 0},
        {"records_per_second_without_rollups", "  without rollups", "records/s", "",
         value_of(&sides->bare), 0},
        {"records_per_second_500", "500 producers", "records/s", "", value_of(&sides->crowd), 0},
        {"records_per_second_curve", "8 producers, CURVE over TCP", "records/s", "",
         value_of(&sides->sealed), 0},
        {"ratio_to_bare_loop_1", "1 producer to bare loop", "", "", value_of(&sides->one_to_loop),
         3},
        {"ratio_to_bare_loop", "8 producers to bare loop", "", ">= 0.6",
         value_of(&sides->eight_to_loop), 3},
        {"ratio_to_without_rollups", "8 producers to without rollups", "", ">= 0.85",
         value_of(&sides->eight_to_bare), 3},
        {"records_lacking_in_rollups", "  then lacking in rollups", "records", "",
         value_of(&sides->lacking), 0},
        {"writer_time_without_rollups_to_with", "  writer's time without to with", "", ">= 0.85",
         value_of(&sides->bare_to_eight_busiest), 3},
        {"storing_ns_a_record", "storing, one thread", "ns/record", "", value_of(&sides->store), 0},
        {"storing_ns_a_record_with_rollups", "  with rollups", "ns/record", "",
         value_of(&sides->rolled), 0},
        {"storing_without_rollups_to_with", "  storing without to with", "", ">= 0.85",
         value_of(&sides->store_to_rolled), 3},
        {"ratio_to_victoria_metrics", "8 producers to victoria-metrics", "", ">= 1.5",
         value_of(&sides->eight_to_victoria), 3},
        {"ratio_to_bare_loop_curve", "8 with CURVE to bare loop", "", ">= 0.5",
         value_of(&sides->sealed_to_loop), 3},
        {"ratio_of_500_to_8", "500 producers to 8", "", ">= 0.8", value_of(&sides->crowd_to_eight),
         3},
        {"processor_ns_a_record", "processor time, 8 producers", "ns/record", "",
         value_of(&sides->processor), 0},
        {"processor_ns_a_record_without_rollups", "  without rollups", "ns/record", "",
         value_of(&sides->bare_processor), 0},
        {"busiest_thread_ns_a_record", "  of the busiest thread", "ns/record", "",
         value_of(&sides->busiest), 0},
        {"busiest_thread_ns_a_record_without_rollups", "  of that without rollups", "ns/record", "",
         value_of(&sides->bare_busiest), 0},
        {"idle_memory_bytes", "memory before any record", "MB", "<= 20",
         figures_max(&sides->idle) / (json ? 1 : mb), json ? 0 : 1},
        {"peak_memory_bytes_8", "  most with 8 producers", "MB", "",
         figures_max(&sides->peak_eight) / (json ? 1 : mb), json ? 0 : 1},
        {"peak_memory_bytes_500", "  most with 500 producers", "MB", "<= 100",
         figures_max(&sides->peak_crowd) / (json ? 1 : mb), json ? 0 : 1},
        {"rest_memory_bytes_500", "  two seconds after those", "MB", "",
         figures_max(&sides->after_crowd) / (json ? 1 : mb), json ? 0 : 1},
    };
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
        const struct line *line = &lines[i];
        if (json)
            bench_json_number(line->key, line->value, line->digits);
        else if (isfinite(line->value))
            printf("%-32s %10.*f %-10s %s\n", line->text, line->digits, line->value, line->unit,
                   line->goal);
    }
}

static void print_all(const struct sides *sides, uint64_t records, unsigned rounds, bool json)
{
    if (json) {
        bench_json_number("records", (double)records, 0);
        bench_json_number("rounds", rounds, 0);
        bench_json_number("victoria_metrics_connections", sides->client.connections, 0);
        bench_json_number("victoria_metrics_lines_a_request", sides->client.lines, 0);
    } else {
        printf("%u rounds of %llu records\n", rounds, (unsigned long long)records);
        if (sides->has_victoria)
            printf("victoria-metrics is fastest with %u connections, %u lines a request\n",
                   sides->client.connections, sides->client.lines);
    }
    print(sides, json);
    if (json)
        bench_json_end();
}

struct settings {
    uint64_t records;
    unsigned rounds, crowd_size;
    bool json, no_victoria;
};

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {.records = 400000, .rounds = 5, .crowd_size = INGEST_CROWD};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings = (struct settings){RECORDS_QUICK, 1, CROWD_QUICK, settings.json, true};
        else if (strcmp(argv[i], "--no-victoria") == 0)
            settings.no_victoria = true;
        else if (strcmp(argv[i], "--records") == 0 && i + 1 < argc)
            settings.records = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            settings.rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            settings.rounds = 0;
    }
    if (settings.rounds >= 1 && settings.rounds <= BENCH_ROUNDS_MAX &&
        settings.records >= RECORDS_MIN)
        return settings;
    fprintf(stderr,
            "usage: bench_ingest [--json] [--quick] [--records N] [--rounds N] [--no-victoria]\n"
            "       (1 to %d rounds of at least %d records)\n",
            BENCH_ROUNDS_MAX, RECORDS_MIN);
    exit(2);
}

// Of the last minutes, by their time: nobody takes them for too old or too new.
static void make_records(struct record *records, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        producer_inference(&records[i], i + 1);
    const int64_t shift = clock_wall_ns() - records[count - 1].started_ns;
    for (uint64_t i = 0; i < count; i++)
        records[i].started_ns += shift;
}

int main(int argc, char **argv)
{
    static struct sides sides;
    const struct settings settings = read_arguments(argc, argv);
    struct record *records = malloc(settings.records * sizeof *records);
    if (!records)
        bench_die("records", "out of memory");
    make_records(records, settings.records);
    const struct load load = {bench_open("bench_ingest"), records, settings.records};
    sides.crowd_size = settings.crowd_size;
    sides.has_victoria = !settings.no_victoria && victoria_exists();
    if (!settings.no_victoria && !sides.has_victoria)
        fprintf(stderr, "bench_ingest: victoria-metrics is not installed: not compared\n");
    if (sides.has_victoria)
        sides.client = victoria_best_client(&load);
    for (unsigned i = 0; i < settings.rounds; i++)
        run_round(&load, &sides);
    print_all(&sides, settings.records, settings.rounds, settings.json);
    free(records);
    return 0;
}
