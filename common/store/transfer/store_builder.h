// Store builder: creates a store file from records without a live run, such as benchmark results.
// The file can be imported like any bundle.
#ifndef INFERSTAT_STORE_TRANSFER_STORE_BUILDER_H
#define INFERSTAT_STORE_TRANSFER_STORE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct store_builder;

// Description of the run.  Texts are borrowed; NULL if absent.
struct store_builder_run {
    unsigned char uuid[16];
    const char *host;
    const char *worker_version, *os, *kernel, *cpu;
    int64_t cpu_count, device_count;
    int64_t started_ns, ended_ns;
};

// Begins the file at `path` (errors of atomic_file_begin).
MUST_CHECK enum status store_builder_new(struct store_builder **out, const char *path,
                                         struct error *err);

// Commits the file and puts it in place if `status` is STATUS_OK; else removes it.  Returns
// `status` or the error.  NULL is fine.
MUST_CHECK enum status store_builder_end(struct store_builder *builder, enum status status,
                                         struct error *err);

// Begins a closed run; the following records belong to it.
MUST_CHECK enum status store_builder_run(struct store_builder *builder,
                                         const struct store_builder_run *run, struct error *err);

// Interns a name and returns its id for the run's records.
MUST_CHECK enum status store_builder_name(struct store_builder *builder, const char *name,
                                          uint32_t *id, struct error *err);

// Adds a record to the run; its received_ns is the run's ended_ns.
MUST_CHECK enum status store_builder_put(struct store_builder *builder, const struct record *record,
                                         struct error *err);

#endif
