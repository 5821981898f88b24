// Results of the command `zoo`: a table for people beside the targets and claims of the reference
// system, and JSON.
#pragma once

#include "common/sys/option_table.h"
#include "server/worker/repeats.h"
#include "server/worker/text_table.h"
#include "server/worker/zoo_compress.h"
#include "server/workload/zoo/zoo_runner.h"

// A model and its figures.
struct zoo_row {
    char name[2 * ZOO_NAME_SIZE], category[16], task[128];
    uint64_t parameters, macs;
    size_t batch_count; // 0: not measured
    struct zoo_figures figures[OPTION_NUMBERS_MAX];
    uint64_t start_ns; // from the beginning of its load to the end of its first inference
    struct repeats repeats;
    struct zoo_compressed_row compressed;
};

struct zoo_report {
    struct zoo_row *rows;
    size_t row_count;
    struct device_description device; // name "": not open
    uint64_t process_start_ns;        // from the process's start to the end of the first inference
    int64_t binary_bytes;             // of this program
    enum status status;
    struct inferstat_totals totals;
};

// Prints the heading, as wide as the terminal, and a row.  Without figures a row has only the
// description.
void zoo_table_begin(struct text_table *table, bool with_figures);
void zoo_table_print_row(const struct text_table *table, const struct zoo_row *row);

// Prints the targets, below the means of the categories whose models were all measured, beside what
// the guide claims of them.
void zoo_table_print_means(FILE *out, const struct zoo_report *report);

// Writes all as one JSON object.
void zoo_table_write(struct json_writer *json, const struct zoo_report *report);
