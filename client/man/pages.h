// Generator of manual pages: at build time, prints the pages that describe the tables in the code.
#ifndef INFERSTAT_MAN_PAGES_H
#define INFERSTAT_MAN_PAGES_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

// Print inferstat-schema(7) and inferstat-metrics(7).
MUST_CHECK enum status page_schema(struct error *err);
MUST_CHECK enum status page_metrics(struct error *err);

// Descriptions of the tables, views and columns that are not in the table of record kinds; NULL if
// there is none.
const char *describe_table(const char *table);
const char *describe_column(const char *table, const char *column);

// Prints all values of the enumerations, as tagged paragraphs.
void page_enumerations(void);

#endif
