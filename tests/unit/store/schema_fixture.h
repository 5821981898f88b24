// What tests of the schema and of migrations share: a folder with a store in it.
#pragma once

#include <stdint.h>

#include <sqlite3.h>

#include "common/core/base/status.h"
#include "tests/support/folder.h"

extern char folder[FOLDER_PATH_SIZE]; // the test's, made by set_up
extern char path[FOLDER_PATH_SIZE];   // of the store

int set_up(void **state);
int tear_down(void **state);

// The store opened as a collector does, which makes or migrates it.
sqlite3 *new_store(void);

// What a statement gives.
int64_t integer(sqlite3 *db, const char *sql);

// That the store is refused to readers, or to writers, in these words.
void expect_refused(enum status expected, const char *words);
void expect_writer_refused(enum status expected, const char *words);

// Runs statements on the file as any program of SQLite's may.
void change_store(const char *sql);
