// What people see of a record: expressions that views and queries share.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_SELECT_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_SELECT_H

#include <stdbool.h>

#include "common/core/delivery/delivery.h"
#include "common/core/query/query.h"
#include "common/core/record/record.h"

struct sqlite3_str;

// The expression, over a row `t` of the kind, that gives the name id (or run id)
// of a dimension; NULL where records of the kind have none.  The text is static.
const char *schema_dimension(enum record_kind kind, enum query_dimension dimension);

// Appends the select list of the kind's records as people read them, over a row
// `t`: run, host, stream, number, started_ns, received_ns, the columns with names
// and enumerations as text, what belongs to the kind, then derived columns.
void schema_select_list(struct sqlite3_str *sql, enum record_kind kind);

// The text of an enumeration's column of table `t`; null where no value has that number.
void schema_select_enum(struct sqlite3_str *sql, const struct record_column *column);

// Keys and units of that list, in order: index from 0; false past the end.
struct schema_output {
    const char *key;
    enum unit unit;
};
bool schema_output(enum record_kind kind, unsigned index, struct schema_output *output);

// Appends the two expressions "numerator, denominator" of a derived metric.
void append_derived(struct sqlite3_str *sql, const struct record_derived *derived);
// Appends the value of a metric of records; null where a derived one has no denominator.
void schema_select_metric(struct sqlite3_str *sql, const struct query_metric *metric);

// The columns of answers that hold what was lost, by reason: "dropped_spool_full".
#define DROP_COLUMN(name, text) {"dropped_" text, UNIT_COUNT},
#define DROP_COLUMNS            DELIVERY_REASONS(DROP_COLUMN)

// Their keys, by reason; static.
const char *drop_key(enum delivery_reason reason);

#endif
