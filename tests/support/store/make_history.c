// make_history FILE [--inferences N] [--models N] [--hosts N] [--days N] [--until NS]
//                   [--seed S] [--all-kinds] [--open] [--roll-up]
//
// Writes a history into a store (history.h) and says how fast that went.  With --roll-up
// nothing is written: the rollups that a store lacks are made, as where the making of a
// history was broken off.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "tests/support/store/history.h"
#include "tests/support/store/history_rollups.h"

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: make_history FILE [--inferences N] [--models N] [--hosts N] [--days N]"
                    " [--until NS] [--seed S] [--all-kinds] [--open] [--roll-up]\n");
    exit(2);
}

static struct history read_arguments(int argc, char **argv, bool *rolls_up)
{
    struct history history = {.inferences = 10000,
                              .models = 20,
                              .hosts = 50,
                              .days = 365,
                              .until_ns = clock_wall_ns(),
                              .seed = 1};
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--all-kinds") == 0)
            history.has_all_kinds = true;
        else if (strcmp(argv[i], "--open") == 0)
            history.keeps_last_runs_open = true;
        else if (strcmp(argv[i], "--roll-up") == 0)
            *rolls_up = true;
        else if (strcmp(argv[i], "--inferences") == 0 && has_value)
            history.inferences = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--models") == 0 && has_value)
            history.models = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--hosts") == 0 && has_value)
            history.hosts = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--days") == 0 && has_value)
            history.days = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--until") == 0 && has_value)
            history.until_ns = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && has_value)
            history.seed = strtoull(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && !history.path)
            history.path = argv[i];
        else
            usage();
    }
    if (!history.path)
        usage();
    return history;
}

int main(int argc, char **argv)
{
    bool rolls_up = false;
    const struct history history = read_arguments(argc, argv, &rolls_up);
    struct error err = {0};
    double seconds = 0;
    const enum status status = rolls_up ? history_roll_up(history.path, history.until_ns, &err)
                                        : history_write(&history, &seconds, &err);
    if (status != STATUS_OK) {
        fprintf(stderr, "make_history: %s\n", err.text);
        return 1;
    }
    if (!rolls_up)
        printf("%llu inferences in %.1f s: %.0f a second\n", (unsigned long long)history.inferences,
               seconds, (double)history.inferences / seconds);
    return 0;
}
