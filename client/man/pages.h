// Generator of manual pages: a program that the build runs.  It prints the pages about the store's
// SQL tables and about the metrics, from the C arrays that define them.
#ifndef INFERSTAT_MAN_PAGES_H
#define INFERSTAT_MAN_PAGES_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

// Print the pages inferstat-schema(7) and inferstat-metrics(7) to standard output.
MUST_CHECK enum status page_schema(struct error *err);
MUST_CHECK enum status page_metrics(struct error *err);

// Descriptions of SQL tables or views, and of their columns, that the macros of record_table.h do
// not describe; NULL if there is no description.
const char *describe_table(const char *table);
const char *describe_column(const char *table, const char *column);

// Prints the values of all enumerations that columns have (record_table.h), as tagged paragraphs.
void page_enumerations(void);

#endif
