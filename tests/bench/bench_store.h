// What benches ask of a store file.
#pragma once

#include <stdint.h>

// The one number that a question is answered with, by a reader of its own; ends the program
// where the file cannot be asked.
int64_t bench_ask(const char *path, const char *sql);
