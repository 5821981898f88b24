#include "server/worker/zoo_table.h"

#include <string.h>

#include "server/worker/worker.h"

// ---- Targets --------------------------------------------------------------

#define TARGET_P50_NS       2e6
#define TARGET_ITEMS        500.0
#define TARGET_BYTES        (100.0 * 1024)
#define TARGET_START_NS     100e6
#define TARGET_BINARY_BYTES (20.0 * 1024 * 1024)

// What the guide claims of the mean model of a category.
static const struct claim {
    const char *category;
    size_t models;
    double duration_ns, parameters, bytes;
} claims[] = {
    {"vision", 10, 0.78e6, 58e3, 0.16 * 1024 * 1024},
    {"audio", 10, 0.54e6, 28e3, 0.09 * 1024 * 1024},
    {"sensor", 10, 0.60e6, 32e3, 0.11 * 1024 * 1024},
    {"all", 30, 0.64e6, 39e3, 0.12 * 1024 * 1024},
};

enum { CLAIM_COUNT = sizeof claims / sizeof *claims };

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

static const struct text_column with_figures[] = {
    {"category", -8, 0}, {"model", -21, 0},      {"parameters", 10, 10},  {"MACs", 11, 2},
    {"weights", 9, 7},   {"activations", 11, 6}, {"p50", 8, 12},          {"p95", 8, 9},
    {"p99", 8, 8},       {"items/s", 14, 11},    {"best items/s", 14, 4}, {"batch", 5, 4},
    {"start", 8, 5},     {"misses", -16, 3},     {"task", -45, 1}};

// The first columns of the other table, and the last.
static const struct text_column without_figures[] = {{"category", -8, 0},
                                                     {"model", -21, 0},
                                                     {"parameters", 10, 0},
                                                     {"MACs", 11, 0},
                                                     {"task", -45, 1}};

enum {
    COLUMNS = sizeof with_figures / sizeof *with_figures,
    DESCRIBING = sizeof without_figures / sizeof *without_figures - 1, // columns before the figures
};

void zoo_table_begin(struct text_table *table, bool measured)
{
    text_table_begin(table, stdout, measured ? with_figures : without_figures,
                     measured ? COLUMNS : DESCRIBING + 1, text_table_room(stdout));
}

void zoo_table_print_row(const struct text_table *table, const struct zoo_row *row)
{
    char text[COLUMNS][UNIT_TEXT_SIZE], misses[32];
    const char *cells[COLUMNS];
    const struct zoo_figures *f = &row->figures[0], *best = best_of(row);
    for (size_t i = 0; i < COLUMNS; i++)
        cells[i] = text[i];
    cells[0] = row->category;
    cells[1] = row->name;
    (void)unit_format_int(text[2], UNIT_COUNT, (int64_t)row->parameters);
    (void)unit_format_int(text[3], UNIT_COUNT, (int64_t)row->macs);
    (void)unit_format(text[4], UNIT_BYTES, (double)f->weight_bytes);
    (void)unit_format(text[5], UNIT_BYTES, (double)f->activation_bytes);
    (void)unit_format(text[6], UNIT_DURATION, (double)f->p50_ns);
    (void)unit_format(text[7], UNIT_DURATION, (double)f->p95_ns);
    (void)unit_format(text[8], UNIT_DURATION, (double)f->p99_ns);
    (void)unit_format(text[9], UNIT_ITEMS_PER_SECOND, f->items_per_second);
    (void)unit_format(text[10], UNIT_ITEMS_PER_SECOND, best->items_per_second);
    (void)snprintf(text[11], sizeof text[11], "%zu", best->batch);
    (void)unit_format(text[12], UNIT_DURATION, (double)row->start_ns);
    name_misses(misses, sizeof misses, row);
    cells[13] = misses;
    cells[table->count - 1] = row->task;
    text_table_row(table, cells);
    repeats_print(table->out, &row->repeats, UNIT_ITEMS_PER_SECOND);
    if (*row->compressed.name)
        zoo_compressed_print(table->out, &row->compressed);
}

// Prints the means of a category, or of all that have claims, below a heading with the first.
static void print_mean(FILE *out, const struct zoo_report *report, const struct claim *claim,
                       bool *has_head)
{
    const bool all = strcmp(claim->category, "all") == 0;
    double ns = 0.0, parameters = 0.0, bytes = 0.0, rate = 0.0;
    size_t models = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        const struct zoo_row *row = &report->rows[i];
        if (strcmp(row->category, claim->category) != 0 &&
            !(all && strcmp(row->category, "anchor") != 0))
            continue;
        models++;
        ns += (double)row->figures[0].p50_ns;
        parameters += (double)row->parameters;
        bytes += bytes_of(row);
        rate += best_of(row)->items_per_second;
    }
    if (models != claim->models) // the claims are of all
        return;
    if (!*has_head)
        (void)fprintf(out, "\n%-8s %6s %8s %8s %10s %8s %9s %8s %14s\n", "means of", "models",
                      "p50", "claimed", "parameters", "claimed", "memory", "claimed",
                      "best items/s");
    *has_head = true;
    const double count = (double)models;
    char text[5][UNIT_TEXT_SIZE];
    (void)fprintf(out, "%-8s %6zu %8s %8s %10.0f %8.0f %9s %8s %14s\n", claim->category, models,
                  unit_format(text[0], UNIT_DURATION, ns / count),
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
    for (size_t i = 0; i < CLAIM_COUNT; i++)
        print_mean(out, report, &claims[i], &has_head);
    (void)fprintf(out,
                  "\ntargets of a model: p50 2 ms (time), 500 items/s (rate), weights and\n"
                  "activations 100 KB (memory), load and first inference 100 ms (start)\n"
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

void zoo_table_write(struct json_writer *json, const struct zoo_report *report)
{
    const bool ran = *report->device.name != '\0';
    json_write_begin(json, NULL);
    json_write_text(json, "workload", "zoo");
    json_write_text(json, "status", worker_status_word(report->status));
    json_write_text(json, "device", ran ? report->device.name : NULL);
    json_write_text(json, "kernels", ran ? report->device.kernels : NULL);
    worker_write_maybe(json, "threads", report->device.threads, ran);
    worker_write_maybe(json, "process_start_ns", report->process_start_ns,
                       report->process_start_ns > 0);
    json_write_int(json, "binary_bytes", report->binary_bytes);
    worker_write_fingerprint(json);
    json_write_begin_list(json, "models");
    for (size_t i = 0; i < report->row_count; i++)
        write_row(json, &report->rows[i]);
    json_write_end_list(json);
    worker_write_totals(json, &report->totals);
    json_write_end(json);
}
