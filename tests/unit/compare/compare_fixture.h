// A store that measured runs are put into, its baselines and comparisons: what tests of
// comparing begin with.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "tests/support/store/measured.h"
#include "tests/unit/store/store_fixture.h"

// For cmocka.
int compare_set_up(void **state);

// None of these fails but by ending the test, where it does not return a status.
void add(struct measured run);
void change(const char *sql);

struct query about(enum query_kind kind, const char *name);
struct query of_two(const char *before, const char *after);
void set(char out[QUERY_TEXT_SIZE], const char *text);

// Keeps what the host measured as a baseline of the same name.
enum status save(const char *host, bool force, struct error *err);
void saved(const char *host);

void refused(const struct query *query, enum status expected, const char *words);

// "" where it is no text; valid until the next call.
const char *text_at(const struct result *result, size_t row, const char *key);
size_t row_of(const struct result *result, const char *metric);
void verdict_is(const struct result *result, const char *metric, const char *verdict);
