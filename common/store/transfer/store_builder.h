// Store builder: writes a store file from records that no monitored process sent, such as benchmark
// results.  The file can be imported like any bundle (a part of a store as a separate file; copy.h,
// import.h).  One thread at a time.
//
// Order: store_builder_new; for each run store_builder_run, then its names and records; at last
// store_builder_end, also after a failure of any of these but store_builder_new.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct store_builder;

// Description of a run: the lifetime of the process to which the records are attributed.  Texts
// are borrowed during the call; NULL: unknown.
struct store_builder_run {
    unsigned char uuid[16];
    const char *host; // required
    const char *worker_version, *os, *kernel, *cpu;
    int64_t cpu_count, device_count;
    int64_t started_ns, ended_ns; // since 1970 UTC
};

// Begins the file at `path`.  Returns an error of atomic_file_begin or of SQLite.
MUST_CHECK enum status store_builder_new(struct store_builder **out, const char *path,
                                         struct error *err);

// Ends the file and frees the builder.  If `status` is STATUS_OK, commits and renames the file to
// its path; else removes it.  Returns `status` or the error.  NULL is fine.
MUST_CHECK enum status store_builder_end(struct store_builder *builder, enum status status,
                                         struct error *err);

// Begins a run, which counts as closed; the following names and records belong to it.
MUST_CHECK enum status store_builder_run(struct store_builder *builder,
                                         const struct store_builder_run *run, struct error *err);

// Adds a name to the current run and sets `*id` to its id, for the records.  The id is valid for
// all runs of the file.
MUST_CHECK enum status store_builder_name(struct store_builder *builder, const char *name,
                                          uint32_t *id, struct error *err);

// Adds a copy of a record to the current run; its received_ns is the run's ended_ns.
MUST_CHECK enum status store_builder_put(struct store_builder *builder, const struct record *record,
                                         struct error *err);
