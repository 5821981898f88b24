// make_measured FILE: a store with runs of known speed, one on each of the hosts ordinary,
// again (the same once more), slow (8 % slower), few (20 requests) and upgraded (another
// driver).
#include <stdio.h>
#include <stdlib.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "tests/support/store/measured.h"

static const struct measured runs[] = {
    {.run = 1, .host = "ordinary", .driver = "550.54", .requests = 1000, .loads = 2},
    {.run = 2, .host = "again", .driver = "550.54", .requests = 1000, .loads = 2},
    {.run = 3, .host = "slow", .driver = "550.54", .requests = 1000, .loads = 2, .slowness = 1.08},
    {.run = 4, .host = "few", .driver = "550.54", .requests = 20},
    {.run = 5, .host = "upgraded", .driver = "560.28", .requests = 1000, .loads = 2},
};

int main(int argc, char **argv)
{
    struct sqlite3 *db = NULL;
    struct error err = {0};
    if (argc != 2 || database_open_writer(&db, argv[1], &err) != STATUS_OK) {
        (void)fprintf(stderr, "make_measured: %s\n", argc == 2 ? err.text : "say FILE");
        return 1;
    }
    bool done = true;
    for (size_t i = 0; i < sizeof runs / sizeof *runs && done; i++) {
        struct measured run = runs[i];
        run.model = "stories | 15M";
        run.device = "NVIDIA H200";
        run.noise = 0.01;
        // A day for each host, and times that do not come again.
        run.started_ns = INT64_C(1774744200000000000) + (int64_t)i * INT64_C(86400000000000);
        done = measured_add(db, &run);
    }
    database_close(db);
    if (!done)
        (void)fputs("make_measured: cannot write the rows\n", stderr);
    return done ? 0 : 1;
}
