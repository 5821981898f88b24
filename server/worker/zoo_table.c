#include "server/worker/zoo_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "common/sys/process.h"
#include "server/worker/worker.h"

// ---- Targets --------------------------------------------------------------

#define TARGET_P50_NS       2e6
#define TARGET_ITEMS        500.0
#define TARGET_BYTES        (100.0 * 1024)
#define TARGET_START_NS     100e6
#define TARGET_BINARY_BYTES (20.0 * 1024 * 1024)

// What the reference system claims of the mean model of a category.
static const struct claim {
    const char *category;
    double duration_ns, parameters, bytes;
} claims[] = {
    {"vision", 0.78e6, 58e3, 0.16 * 1024 * 1024},
    {"audio", 0.54e6, 28e3, 0.09 * 1024 * 1024},
    {"sensor", 0.60e6, 32e3, 0.11 * 1024 * 1024},
    {"all", 0.64e6, 39e3, 0.12 * 1024 * 1024},
};

enum { CLAIM_COUNT = sizeof claims / sizeof claims[0] };

static double bytes_of(const struct zoo_row *row)
{
    return (double)(row->figures[0].weight_bytes + row->figures[0].activation_bytes);
}

static const struct zoo_figures *best_of(const struct zoo_row *row)
{
    const struct zoo_figures *best = &row->figures[0];
    for (size_t i = 1; i < row->batch_count; i++)
        if (row->figures[i].items_per_second > best->items_per_second)
            best = &row->figures[i];
    return best;
}

// Writes which targets a row misses: "-" if none.
static void name_misses(char *out, size_t size, const struct zoo_row *row)
{
    const struct {
        const char *word;
        bool is_missed;
    } targets[] = {
        {"time", (double)row->figures[0].p50_ns > TARGET_P50_NS},
        {"rate", best_of(row)->items_per_second < TARGET_ITEMS},
        {"memory", bytes_of(row) > TARGET_BYTES},
        {"start", (double)row->start_ns > TARGET_START_NS},
    };
    size_t used = 0;
    (void)snprintf(out, size, "-");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
        if (targets[i].is_missed)
            used +=
                (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "", targets[i].word);
}

// ---- Table ----------------------------------------------------------------

void zoo_table_print_head(FILE *out, bool with_figures)
{
    (void)fprintf(out, "%-8s %-26s %10s %11s ", "category", "model", "parameters", "MACs");
    if (with_figures)
        (void)fprintf(out, "%9s %11s %8s %8s %8s %14s %14s %5s %8s %-16s ", "weights",
                      "activations", "p50", "p95", "p99", "items/s", "best items/s", "batch",
                      "start", "misses");
    (void)fprintf(out, "task\n");
}

static void print_figures(FILE *out, const struct zoo_row *row)
{
    char text[8][UNIT_TEXT_SIZE], misses[32];
    const struct zoo_figures *f = &row->figures[0], *best = best_of(row);
    name_misses(misses, sizeof misses, row);
    (void)fprintf(out, "%9s %11s %8s %8s %8s %14s %14s %5zu %8s %-16s ",
                  unit_format(text[0], UNIT_BYTES, (double)f->weight_bytes),
                  unit_format(text[1], UNIT_BYTES, (double)f->activation_bytes),
                  unit_format(text[2], UNIT_DURATION, (double)f->p50_ns),
                  unit_format(text[3], UNIT_DURATION, (double)f->p95_ns),
                  unit_format(text[4], UNIT_DURATION, (double)f->p99_ns),
                  unit_format(text[5], UNIT_ITEMS_PER_SECOND, f->items_per_second),
                  unit_format(text[6], UNIT_ITEMS_PER_SECOND, best->items_per_second), best->batch,
                  unit_format(text[7], UNIT_DURATION, (double)row->start_ns), misses);
}

void zoo_table_print_row(FILE *out, const struct zoo_row *row)
{
    char text[2][UNIT_TEXT_SIZE];
    (void)fprintf(out, "%-8s %-26s %10s %11s ", row->category, row->name,
                  unit_format_int(text[0], UNIT_COUNT, (int64_t)row->parameters),
                  unit_format_int(text[1], UNIT_COUNT, (int64_t)row->macs));
    if (row->batch_count > 0)
        print_figures(out, row);
    (void)fprintf(out, "%s\n", row->task);
    repeats_print(out, &row->repeats, UNIT_ITEMS_PER_SECOND);
    if (*row->compressed.name)
        zoo_compressed_print(out, &row->compressed);
}

// Prints the means of a category, or of all that have claims, below a heading with the first.
static void print_mean(FILE *out, const struct zoo_report *report, const struct claim *claim,
                       bool *has_head)
{
    const bool all = strcmp(claim->category, "all") == 0;
    double count = 0.0, ns = 0.0, parameters = 0.0, bytes = 0.0, rate = 0.0;
    for (size_t i = 0; i < report->row_count; i++) {
        const struct zoo_row *row = &report->rows[i];
        bool counts = false;
        for (size_t c = 0; c < CLAIM_COUNT; c++)
            counts |=
                (all || claim == &claims[c]) && strcmp(row->category, claims[c].category) == 0;
        if (!counts || row->batch_count == 0)
            continue;
        count++;
        ns += (double)row->figures[0].p50_ns;
        parameters += (double)row->parameters;
        bytes += bytes_of(row);
        rate += best_of(row)->items_per_second;
    }
    if (count < 1.0)
        return;
    if (!*has_head)
        (void)fprintf(out, "\n%-8s %6s %10s %10s %12s %10s %10s %10s %16s\n", "means of", "models",
                      "p50", "claimed", "parameters", "claimed", "memory", "claimed",
                      "best items/s");
    *has_head = true;
    char text[5][UNIT_TEXT_SIZE];
    (void)fprintf(out, "%-8s %6.0f %10s %10s %12.0f %10.0f %10s %10s %16s\n", claim->category,
                  count, unit_format(text[0], UNIT_DURATION, ns / count),
                  unit_format(text[1], UNIT_DURATION, claim->duration_ns), parameters / count,
                  claim->parameters, unit_format(text[2], UNIT_BYTES, bytes / count),
                  unit_format(text[3], UNIT_BYTES, claim->bytes),
                  unit_format(text[4], UNIT_ITEMS_PER_SECOND, rate / count));
}

static const char *verdict(bool is_met)
{
    return is_met ? "met" : "missed";
}

void zoo_table_print_means(FILE *out, const struct zoo_report *report)
{
    char text[2][UNIT_TEXT_SIZE];
    bool has_head = false;
    for (size_t i = 0; i < CLAIM_COUNT && !report->is_from_file; i++)
        print_mean(out, report, &claims[i], &has_head);
    (void)fprintf(out,
                  "\ntargets of a model: p50 2 ms (time), 500 items/s (rate), weights and "
                  "activations 100 KB (memory),\nload and first inference 100 ms (start)\n"
                  "process to its first inference %s: target 100 ms %s\n"
                  "program %s: target 20 MB %s\n",
                  unit_format_int(text[0], UNIT_DURATION, (int64_t)report->process_start_ns),
                  verdict((double)report->process_start_ns <= TARGET_START_NS),
                  unit_format_int(text[1], UNIT_BYTES, report->binary_bytes),
                  verdict((double)report->binary_bytes <= TARGET_BINARY_BYTES));
}

// ---- JSON -----------------------------------------------------------------

static void write_batch(struct json_writer *json, const struct zoo_figures *f)
{
    json_write_uint(json, "batch_size", f->batch);
    json_write_uint(json, "trials", f->trials);
    json_write_uint(json, "p50_ns", f->p50_ns);
    json_write_uint(json, "p95_ns", f->p95_ns);
    json_write_uint(json, "p99_ns", f->p99_ns);
    json_write_real(json, "items_per_second", f->items_per_second);
    json_write_uint(json, "weight_bytes", f->weight_bytes);
    json_write_uint(json, "activation_bytes", f->activation_bytes);
}

static void write_row(struct json_writer *json, const struct zoo_row *row)
{
    json_write_begin(json, NULL);
    json_write_text(json, "name", row->name);
    json_write_text(json, "category", row->category);
    json_write_text(json, "task", row->task);
    json_write_uint(json, "parameters", row->parameters);
    json_write_uint(json, "macs", row->macs);
    if (row->batch_count > 0) {
        write_batch(json, &row->figures[0]);
        json_write_uint(json, "start_ns", row->start_ns);
        json_write_uint(json, "best_batch_size", best_of(row)->batch);
        json_write_real(json, "best_items_per_second", best_of(row)->items_per_second);
        json_write_real(json, "check_difference", row->difference);
        if (row->repeats.tries > 0)
            repeats_write(json, &row->repeats, "items_per_second");
        json_write_begin_list(json, "batches");
        for (size_t i = 0; i < row->batch_count; i++) {
            json_write_begin(json, NULL);
            write_batch(json, &row->figures[i]);
            json_write_end(json);
        }
        json_write_end_list(json);
    }
    if (*row->compressed.name)
        zoo_compressed_write(json, &row->compressed);
    json_write_end(json);
}

static void write_fingerprint(struct json_writer *json)
{
    struct process_host host;
    process_host_read(&host);
    json_write_begin(json, "fingerprint");
    json_write_text(json, "cpu", *host.cpu ? host.cpu : NULL);
    json_write_text(json, "kernel", host.kernel);
    worker_write_settings(json);
    json_write_end(json);
}

void zoo_table_write(struct json_writer *json, const struct zoo_report *report)
{
    const bool ran = *report->device.name != '\0';
    json_write_begin(json, NULL);
    json_write_text(json, "workload", "zoo");
    json_write_text(json, "status", report->status);
    json_write_text(json, "device", ran ? report->device.name : NULL);
    json_write_text(json, "kernels", ran ? report->device.kernels : NULL);
    worker_write_maybe(json, "threads", report->device.threads, ran);
    worker_write_maybe(json, "process_start_ns", report->process_start_ns,
                       report->process_start_ns > 0);
    json_write_int(json, "binary_bytes", report->binary_bytes);
    write_fingerprint(json);
    json_write_begin_list(json, "models");
    for (size_t i = 0; i < report->row_count; i++)
        write_row(json, &report->rows[i]);
    json_write_end_list(json);
    worker_write_totals(json, &report->totals);
    json_write_end(json);
}
