// The manual pages that are made from the tables in the code, when it is built.
#ifndef INFERSTAT_MAN_PAGES_H
#define INFERSTAT_MAN_PAGES_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

// Each prints its page.
MUST_CHECK enum status page_schema(struct error *err);
MUST_CHECK enum status page_metrics(struct error *err);

// What a table or view that is no record is for, and what a column means that the
// record table does not know; NULL where nothing is written of it.
const char *describe_table(const char *table);
const char *describe_column(const char *table, const char *column);

// All values of the enumerations, as tagged paragraphs.
void page_enumerations(void);

#endif
