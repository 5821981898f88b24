// Option --compress of the command `zoo`: its options, and the compressed model's losses and
// figures beside those of the original.
#pragma once

#include <stdio.h>

#include "common/core/query/json_writer.h"
#include "server/workload/zoo/compress.h"
#include "server/workload/zoo/losses.h"
#include "server/workload/zoo/zoo_runner.h"

// A compressed model beside its original.
struct zoo_compressed_row {
    char name[ZOO_NAME_SIZE]; // empty: there is none
    uint64_t parameters, macs;
    size_t changed, original_bytes, bytes;
    struct zoo_losses losses;
    struct zoo_figures original, figures; // of the same batch size
    struct zoo_factored *factored;        // of each of the original's layers
    size_t layer_count;
};

// A compression and how it is measured.
struct zoo_compress_options {
    struct zoo_compression compression; // ZOO_UNCOMPRESSED: none
    struct zoo_loss_options losses;
    struct zoo_trials trials;
};

// Compresses the model `parts`, loads the result as `load` says, and measures it on `device`.
// `row->original` is set.  Fails as zoo_compress (with STATUS_INVALID if nothing changes),
// zoo_losses_measure, zoo_runner_new and zoo_runner_measure do.
MUST_CHECK enum status zoo_compress_run(struct zoo_compressed_row *row, struct device *device,
                                        const struct zoo_parts *parts,
                                        const struct zoo_compress_options *options,
                                        const struct zoo_load_options *load,
                                        struct inferstat_monitor *monitor, struct error *err);
void zoo_compressed_row_free(struct zoo_compressed_row *row); // accepts a zeroed object

void zoo_compressed_print(FILE *out, const struct zoo_compressed_row *row);

// Writes the member `compressed` of the model's object.
void zoo_compressed_write(struct json_writer *json, const struct zoo_compressed_row *row);
