#include "tests/support/store/measured.h"

#include <stddef.h>

#include <sqlite3.h>

#define MS INT64_C(1000000)

static const int64_t ordinary_start_ns = INT64_C(1790000000000000000);

struct adding {
    sqlite3 *db;
    const struct measured *run;
    int64_t started_ns, number;
    int64_t next_ns; // when the next request begins
    uint64_t random;
    bool failed;
};

static void run_sql(struct adding *adding, char *sql)
{
    if (!sql || adding->failed || sqlite3_exec(adding->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        adding->failed = true;
    sqlite3_free(sql);
}

static const char *or_else(const char *text, const char *ordinary)
{
    return text ? text : ordinary;
}

// A name's id as SQL.
#define NAME "(SELECT id FROM name WHERE text = %Q)"

static void add_name(struct adding *adding, const char *text)
{
    run_sql(adding, sqlite3_mprintf("INSERT OR IGNORE INTO name(text) VALUES(%Q)", text));
}

// About normal: a sum of twelve uniform numbers.
static double noisy(struct adding *adding, double value)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        adding->random ^= adding->random >> 12;
        adding->random ^= adding->random << 25;
        adding->random ^= adding->random >> 27;
        sum += (double)((adding->random * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
    }
    const double slowness = adding->run->slowness > 0 ? adding->run->slowness : 1;
    return value * slowness * (1 + adding->run->noise * sum);
}

static void add_setting(struct adding *adding)
{
    const struct measured *run = adding->run;
    const char *driver = run->driver;
    run_sql(adding,
            sqlite3_mprintf(
                "INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, ended_ns, \"end\","
                " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes,"
                " device_count, driver, produced, stored, duplicates, heard_ns) VALUES(%d, %lld,"
                " %lld, '%08d-0000-4000-8000-000000000000', " NAME ", %d, %lld, 1, %Q, 1, 'Linux',"
                " '6.1', %Q, 8, 16000000000, 1, %Q, %lld, %lld, 0, %lld)",
                run->run, adding->started_ns, adding->started_ns, run->run,
                or_else(run->host, "host"), run->run, adding->started_ns + 3600000 * MS,
                or_else(run->version, "1.0"), or_else(run->cpu, "cpu model"), driver,
                adding->number, adding->number, adding->started_ns + 3600000 * MS));
    run_sql(adding, sqlite3_mprintf("INSERT INTO stream(run, stream, next, produced, unnumbered)"
                                    " VALUES(%d, 0, %lld, %lld, 0);"
                                    "INSERT INTO range VALUES(%d, 0, 1, %lld, 0, NULL, NULL, NULL,"
                                    " NULL)",
                                    run->run, adding->number + 1, adding->number, run->run,
                                    adding->number));
    static const struct {
        int kind;
        const char *table;
    } kinds[] = {{1, "device"}, {2, "model"}, {4, "load"}, {6, "inference"}, {10, "device_sample"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        run_sql(adding,
                sqlite3_mprintf("INSERT INTO ledger(run, kind, stored) SELECT %d, %d, count(*)"
                                " FROM %s WHERE run = %d HAVING count(*) > 0",
                                run->run, kinds[i].kind, kinds[i].table, run->run));
}

static void add_device(struct adding *adding)
{
    const struct measured *run = adding->run;
    const char *device = or_else(run->device, "cpu");
    run_sql(adding,
            sqlite3_mprintf("INSERT INTO device(run, stream, number, started_ns, received_ns,"
                            " ordinal, name, memory_bytes, pcie_width) VALUES(%d, 0, %lld, %lld,"
                            " %lld, 0, " NAME ", 1000000000, nullif(%d, 0))",
                            run->run, ++adding->number, adding->started_ns, adding->started_ns,
                            device, run->pcie_width));
    for (int i = 0; i < 3 && run->sm_clock_hz; i++) // idle first and last
        run_sql(adding,
                sqlite3_mprintf("INSERT INTO device_sample(run, stream, number, started_ns,"
                                " received_ns, device, sm_clock_hz_stored) VALUES(%d, 0, %lld,"
                                " %lld, %lld, " NAME ", '%lld')",
                                run->run, ++adding->number, adding->started_ns, adding->started_ns,
                                device, i == 1 ? run->sm_clock_hz : run->sm_clock_hz / 10));
    run_sql(adding,
            sqlite3_mprintf("INSERT INTO model(run, stream, number, started_ns, received_ns,"
                            " name, digest, format, quantisation, parameters) VALUES(%d, 0, %lld,"
                            " %lld, %lld, " NAME ", %Q, 'gguf', %Q, 15000000)",
                            run->run, ++adding->number, adding->started_ns, adding->started_ns,
                            or_else(run->model, "tiny"), or_else(run->digest, "ab12"),
                            or_else(run->quantisation, "q8_0")));
}

static void add_load(struct adding *adding, unsigned i)
{
    const struct measured *run = adding->run;
    const int64_t at_ns = adding->started_ns + (int64_t)i * MS;
    char *cached = run->page_cache_ratio < 0 ? sqlite3_mprintf("NULL")
                                             : sqlite3_mprintf("%.17g", run->page_cache_ratio);
    run_sql(adding,
            sqlite3_mprintf("INSERT INTO load(run, stream, number, started_ns, received_ns, model,"
                            " device, duration_ns, status, model_bytes, host_memory_before_bytes,"
                            " host_memory_after_bytes, page_cache_ratio) VALUES(%d, 0, %lld, %lld,"
                            " %lld, " NAME ", " NAME ", %lld, 0, 16000000, 1, 1, %s)",
                            run->run, ++adding->number, at_ns, at_ns, or_else(run->model, "tiny"),
                            or_else(run->device, "cpu"), (long long)noisy(adding, 300e6), cached));
    sqlite3_free(cached);
}

static void add_request(struct adding *adding, unsigned i)
{
    const struct measured *run = adding->run;
    const int64_t at_ns = adding->next_ns;
    const int prompt = run->prompt_tokens ? run->prompt_tokens : 100;
    const int generated = run->generated_tokens ? run->generated_tokens : 50;
    const long long prefill_ns = (long long)noisy(adding, 0.2e6 * prompt);
    const long long decode_ns = (long long)noisy(adding, 10e6 * (generated - 1));
    adding->next_ns += prefill_ns + 1000 + decode_ns;
    run_sql(adding,
            sqlite3_mprintf("INSERT INTO inference(run, stream, number, started_ns, received_ns,"
                            " model, device, request, finish, prompt_tokens, cached_prompt_tokens,"
                            " generated_tokens, queue_ns, prefill_ns, ttft_ns,"
                            " decode_ns, e2e_ns, itl_p99_ns, host_memory_bytes)"
                            " VALUES(%d, 0, %lld, %lld, %lld, " NAME ", " NAME
                            ", %u, %u, %d, 0, %d, 1000, %lld, %lld, %lld, %lld, %lld, 1)",
                            run->run, ++adding->number, at_ns, at_ns, or_else(run->model, "tiny"),
                            or_else(run->device, "cpu"), i, i % 2, prompt, generated, prefill_ns,
                            prefill_ns + 1000, decode_ns, prefill_ns + 1000 + decode_ns,
                            (long long)noisy(adding, 12e6)));
}

bool measured_add(struct sqlite3 *db, const struct measured *run)
{
    struct adding adding = {
        .db = db,
        .run = run,
        .started_ns = run->started_ns ? run->started_ns : ordinary_start_ns,
        .random = 0x9e3779b97f4a7c15 + (uint64_t)run->run,
    };
    adding.next_ns = adding.started_ns;
    run_sql(&adding, sqlite3_mprintf("BEGIN"));
    add_name(&adding, or_else(run->host, "host"));
    add_name(&adding, or_else(run->model, "tiny"));
    add_name(&adding, or_else(run->device, "cpu"));
    add_device(&adding);
    for (unsigned i = 0; i < run->loads; i++)
        add_load(&adding, i);
    for (unsigned i = 0; i < run->requests; i++)
        add_request(&adding, i);
    add_setting(&adding);
    run_sql(&adding, sqlite3_mprintf("COMMIT"));
    return !adding.failed;
}
