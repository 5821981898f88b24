#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/wire/codec.h"
#include "common/store/schema/database_open.h"
#include "server/collector/rollup/rollup_memtable.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/writer/writer_insert.h"
#include "tests/bench/bench.h"
#include "tests/bench/ingest.h"
#include "tests/support/folder.h"

enum { BATCH_ROWS = 1024, FIRST_HOST = 21 };

#define HOUR_NS UINT64_C(3600000000000)

// A store and what the writer has for it.
struct side {
    char path[FOLDER_PATH_SIZE];
    sqlite3 *db;
    struct inserter *inserter;
    struct rollups *rollups; // NULL: none are made
    uint64_t took_ns;        // of the thread's processor time
};

static void must(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        bench_die("rollups", err->text);
}

static void exec(struct side *side, const char *sql)
{
    struct error err = {.text = ""};
    must(database_exec(side->db, sql, &err), &err);
}

static void add_run(struct side *side, int run)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO name(id, text) VALUES(%d, 'host-%d');"
                   "INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
                   " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes,"
                   " device_count, produced, stored, duplicates, heard_ns)"
                   " VALUES(%d, 1, 1, 'run-%d', %d, 1, 0, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0, 0, 0,"
                   " 1)",
                   FIRST_HOST + run, run, run, run, FIRST_HOST + run);
    exec(side, sql);
}

static void open_side(struct side *side, const char *folder, const char *name, bool with_rollups)
{
    struct error err = {.text = ""};
    (void)folder_path(side->path, folder, name);
    must(database_open_writer(&side->db, side->path, &err), &err);
    must(inserter_new(&side->inserter, side->db, &err), &err);
    if (with_rollups) {
        must(rollups_new(&side->rollups, side->db, &err), &err);
        inserter_set_rollups(side->inserter, side->rollups);
        rollups_tell_time(side->rollups, clock_wall_ns());
    }
    exec(side, "INSERT INTO name(id, text) VALUES(11, 'model'), (12, 'device')");
    for (int run = 1; run <= INGEST_PRODUCERS; run++)
        add_run(side, run);
}

static void close_side(struct side *side)
{
    rollups_free(side->rollups);
    inserter_free(side->inserter);
    database_close(side->db);
    (void)remove(side->path);
}

// Stores a group: a batch of each producer, in one transaction.
static void store_group(struct side *side, const struct wire_table *const *tables, uint64_t first)
{
    static const int64_t names[] = {11, 12};
    struct error err = {.text = ""};
    int64_t stored = 0, suspects = 0;
    const uint64_t began_ns = clock_thread_ns();
    exec(side, "BEGIN IMMEDIATE");
    for (unsigned run = 1; run <= INGEST_PRODUCERS; run++) {
        const struct batch_run of = {.run = run, .received_ns = clock_wall_ns(), .names = names};
        must(insert_table(side->inserter, &of, tables[run - 1], first, &stored, &suspects, &err),
             &err);
    }
    exec(side, "COMMIT");
    side->took_ns += clock_thread_ns() - began_ns;
}

// Folds all that is in memory, as the writer does while others wait; and where `all`, what
// is not.
static void fold(struct side *side, bool all)
{
    struct error err = {.text = ""};
    const uint64_t began_ns = clock_thread_ns();
    const uint64_t later_ns = clock_monotonic_ns() + HOUR_NS; // nothing came for long
    bool left = true;
    while (left || (all && rollups_are_behind(side->rollups, later_ns))) {
        if (all)
            rollups_catch_up(side->rollups, later_ns, false);
        exec(side, "BEGIN IMMEDIATE");
        must(rollups_flush(side->rollups, ROLLUPS_ALL, clock_monotonic_ns(), &left, &err), &err);
        exec(side, "COMMIT");
    }
    side->took_ns += clock_thread_ns() - began_ns;
}

// The same records to both stores, group by group, so that whatever else the machine does
// is done to both.
static uint64_t run_groups(const struct load *load, struct side *plain, struct side *rolled)
{
    const uint64_t share = load->count / INGEST_PRODUCERS;
    struct table_builder *builders[INGEST_PRODUCERS];
    uint64_t number = 1, unfolded = 0;
    for (unsigned i = 0; i < INGEST_PRODUCERS; i++)
        if (table_builder_new(&builders[i]) != STATUS_OK)
            bench_die("rollups", "out of memory");
    for (; number + BATCH_ROWS <= share + 1; number += BATCH_ROWS) {
        const struct wire_table *tables[INGEST_PRODUCERS];
        for (unsigned i = 0; i < INGEST_PRODUCERS; i++) {
            size_t count = 0;
            table_builder_reset(builders[i]);
            for (uint64_t n = number; n < number + BATCH_ROWS; n++)
                if (table_builder_add(builders[i], n, &load->records[i * share + n - 1]) !=
                    STATUS_OK)
                    bench_die("rollups", "out of memory");
            tables[i] = table_builder_tables(builders[i], &count);
        }
        store_group(plain, tables, number);
        store_group(rolled, tables, number);
        unfolded += (uint64_t)INGEST_PRODUCERS * BATCH_ROWS;
        if (unfolded + (uint64_t)INGEST_PRODUCERS * BATCH_ROWS > ROLLUP_MEMTABLE_ROWS) {
            fold(rolled, false);
            unfolded = 0;
        }
    }
    fold(rolled, true);
    for (unsigned i = 0; i < INGEST_PRODUCERS; i++)
        table_builder_free(builders[i]);
    return (number - 1) * INGEST_PRODUCERS;
}

static void check_all_is_in(struct side *side)
{
    struct error err = {.text = ""};
    int64_t lacking = 0;
    must(database_integer(side->db, INGEST_LACKING, &lacking, &err), &err);
    if (lacking != 0)
        bench_die("rollups", "records are missing in them");
}

void fold_cost(const struct load *load, struct fold_result *result)
{
    struct side plain = {.took_ns = 0}, rolled = {.took_ns = 0};
    open_side(&plain, load->folder, "plain.db", false);
    open_side(&rolled, load->folder, "rolled.db", true);
    const double records = (double)run_groups(load, &plain, &rolled);
    check_all_is_in(&rolled);
    result->store_ns = (double)plain.took_ns / records;
    result->rolled_ns = (double)rolled.took_ns / records;
    close_side(&plain);
    close_side(&rolled);
}
