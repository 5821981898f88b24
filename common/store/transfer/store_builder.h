// Builds a new store file from records that did not come from a run, such as the results of a
// benchmark.  The file can be imported like any bundle.
#ifndef INFERSTAT_STORE_TRANSFER_STORE_BUILDER_H
#define INFERSTAT_STORE_TRANSFER_STORE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct store_builder;

// What stands for the run.  Texts are borrowed; NULL where it may be absent.
struct store_builder_run {
    unsigned char uuid[16];
    const char *host;
    const char *worker_version, *os, *kernel, *cpu;
    int64_t cpu_count, device_count;
    int64_t started_ns, ended_ns;
};

// Begins the file at `path`, as atomic_file_begin does.
MUST_CHECK enum status store_builder_new(struct store_builder **out, const char *path,
                                         struct error *err);

// Ends it: it is there whole where `status` is STATUS_OK, else not at all.  Returns
// `status` or what went wrong.  NULL is fine.
MUST_CHECK enum status store_builder_end(struct store_builder *builder, enum status status,
                                         struct error *err);

// Begins a run, which is closed; the records that follow are its.
MUST_CHECK enum status store_builder_run(struct store_builder *builder,
                                         const struct store_builder_run *run, struct error *err);

// The id that the run's records use for the name.
MUST_CHECK enum status store_builder_name(struct store_builder *builder, const char *name,
                                          uint32_t *id, struct error *err);

// Adds a record to the run; received when it ended.
MUST_CHECK enum status store_builder_put(struct store_builder *builder, const struct record *record,
                                         struct error *err);

#endif
