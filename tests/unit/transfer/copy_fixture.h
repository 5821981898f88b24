// Stores for the tests of copies: made of records whose every value is known, and
// compared by what they hold.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "tests/support/folder.h"

#define COPY_BASE_NS INT64_C(1795000000000000000)
#define COPY_SECOND  INT64_C(1000000000)

extern char copy_folder[FOLDER_PATH_SIZE];

// Of each test: a folder of its own.
int copy_set_up(void **state);
int copy_tear_down(void **state);

// A file's path in the folder, until sixteen others were asked for.
const char *copy_path(const char *name);

// A store of `runs` runs on hosts host-0, host-1 and host-0 again, ..., each with a
// device, a load of two stages and `inferences` of models m-0, m-1 and m-2, one a
// second from COPY_BASE_NS on, spans of gaps and samples; run i is 1000 i seconds
// later.
void copy_make_store(const char *path, unsigned runs, unsigned inferences);

// Changes a file, or asks it for one number.
void copy_exec(const char *path, const char *sql);
int64_t copy_integer(const char *path, const char *sql);

// A digest of all that a store's records, runs and ledgers say, whatever ids they have.
uint64_t copy_digest(const char *path);

// A digest of all tables but meta, row by row.
uint64_t copy_table_digest(const char *path);

// Asks a store file; the answer is the caller's.
enum status copy_ask(const char *path, const struct query *query, struct result **out,
                     struct error *err);

// QUERY_COPY of `path`; a bundle where there is a filter.
enum status copy_to(const char *path, const char *to, const struct query_filter *filter,
                    struct result **out, struct error *err);

// What an import says it did.
struct copy_import {
    int64_t runs, completed, there, refused, records;
    int64_t baselines, baselines_there, baselines_refused;
    char note[512], baseline_note[512];
};

// QUERY_IMPORT of `path` into a store; `counts` is 0 where it fails.
enum status copy_import(const char *into, const char *path, struct copy_import *counts,
                        struct error *err);

// Keeps what the filter covers as a baseline of the store.
void copy_save_baseline(const char *path, const char *name, const struct query_filter *filter);

// Whether all runs of the store balance; `unbalanced`: the first finding.
bool copy_balances(const char *path);
