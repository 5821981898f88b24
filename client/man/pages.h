// Generator of manual pages: a program that the build runs.  It prints the pages about the store's
// SQL tables and about the metrics, from their templates (inferstat-*.7.in) and the C arrays that
// define tables and metrics.
#ifndef INFERSTAT_MAN_PAGES_H
#define INFERSTAT_MAN_PAGES_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

// Print parts of inferstat-schema(7) to standard output: the tables of records, the other tables,
// and the views.
MUST_CHECK enum status page_records(struct error *err);
MUST_CHECK enum status page_tables(struct error *err);
MUST_CHECK enum status page_views(struct error *err);

// Descriptions of SQL tables or views, and of their columns, that the macros of record_table.h do
// not describe; NULL if there is no description.
const char *describe_table(const char *table);
const char *describe_column(const char *table, const char *column);

// Prints one line of text (printf format) and escapes roff's special characters in it: hyphens,
// backslashes, quotes, and a dot at the beginning.
__attribute__((format(printf, 1, 2))) void roff_text(const char *format, ...);

// Begins a subsection (.SS).
void roff_section(const char *title);

// Begins a tagged paragraph (.TP): `tag` in bold, followed by `behind` in roman.
void roff_tag(const char *tag, const char *behind);

#endif
