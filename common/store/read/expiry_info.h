// Retention cutoff of a query: the time before which retention has deleted ("expired") records
// that match the query's filter.  Queries report it, since their answers are incomplete before it.
#ifndef INFERSTAT_STORE_READ_EXPIRY_INFO_H
#define INFERSTAT_STORE_READ_EXPIRY_INFO_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/record/record.h"

struct store;
struct sqlite3_str;

// Sets `*until_ns` to the wall-clock time before which records of the kind have expired.  0 if that
// time is before the filter's window, or if no run that the filter covers has expired records.
MUST_CHECK enum status expiry_info_until(struct store *store, enum record_kind kind,
                                         const struct query_filter *filter, int64_t *until_ns,
                                         struct error *err);

// Writes and returns "records before 2026-03-28 12:00 UTC have expired".
enum { EXPIRY_TEXT_SIZE = 64 };
const char *expiry_info_text(char text[EXPIRY_TEXT_SIZE], int64_t until_ns);

// Sets the text of `err` as expiry_info_text does, and its expired_ns to `until_ns`; returns
// STATUS_NO_DATA.
enum status expiry_info_error(int64_t until_ns, struct error *err);

#endif
