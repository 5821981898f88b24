// The sides of bench_query: each answers the same question about one history, the
// mean and the 95th percentile of ttft_ns by model within a window of time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/bench/bench.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"

enum { QUERY_MODELS = 20, QUERY_HOSTS = 50, QUERY_DAYS = 365 };

// The windows that are asked for; each ends at the history's end.
#define QUERY_WINDOWS(X)                                                                           \
    X(HOUR, "hour", INT64_C(3600000000000))                                                        \
    X(DAY, "day", INT64_C(86400000000000))                                                         \
    X(MONTH, "month", INT64_C(2592000000000000))                                                   \
    X(YEAR, "year", INT64_C(31536000000000000))

enum query_window {
#define QUERY_WINDOW_ENUM(name, text, ns) WINDOW_##name,
    QUERY_WINDOWS(QUERY_WINDOW_ENUM)
#undef QUERY_WINDOW_ENUM
        WINDOW_COUNT
};

const char *window_name(enum query_window window);
int64_t window_ns(enum query_window window);

// What is answered of a model; by name, for who compares.
struct model_answer {
    char model[32];
    int64_t count, min, max;
    double mean, p95;
};

struct window_answer {
    unsigned count;
    struct model_answer models[QUERY_MODELS];
};

// A store with a history, and who serves it.
struct subject {
    char path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8];
    uint64_t inferences;
    int64_t until_ns; // behind the last record
    struct daemon daemon;
};

// Starts inferstatd on the store; nanoseconds until it is ready.
uint64_t subject_start(struct subject *subject, const char *folder);
void subject_stop(struct subject *subject);

// Asks the collector `times` times, each time in a new place up to an hour before
// the end, and writes each answer's time in nanoseconds at the client.
struct remote;
void subject_ask(struct subject *subject, struct remote *remote, enum query_window window,
                 unsigned times, double *ns);
// Asks for the window that ends at the end.  `*sketches` and `*rows`: what was read.
void subject_answer(struct subject *subject, struct remote *remote, enum query_window window,
                    struct window_answer *answer, int64_t *sketches, int64_t *rows);

// The same from the table, in SQL: exact; the nanoseconds it takes.
double plain_answer(const struct subject *subject, enum query_window window,
                    struct window_answer *answer);

// Ends the program where the two do not agree: counts, extremes bit for bit, means
// within 1e-12 of themselves, the percentile within 1 %.
void answers_compare(const struct window_answer *ours, const struct window_answer *plain,
                     enum query_window window);

// The medians of the times, in nanoseconds, that victoria-metrics takes for the mean by
// model within each window, with the same values of ttft_ns in it, a series a model and
// host.
void victoria_ask(const struct subject *subject, const char *folder, unsigned times,
                  double medians[WINDOW_COUNT]);

// WHY over windows up to the end, each planted with its worst case: every request slower, and many
// events of every host.  Nanoseconds: of the clock, and of this process's processor.
enum { WHY_WINDOWS = 4, WHY_QUERIES_MAX = 400 };

struct why_times {
    double p50, most, processor;
};

const char *why_window_name(unsigned window);
// Asks each window `times` times, at most WHY_QUERIES_MAX.  No collector may have the store open.
void why_ask(const struct subject *subject, unsigned times, struct why_times out[WHY_WINDOWS]);
