// Tells queries which records have expired, for the runs and the time that their filter covers
// (the table expiry and the ledger's counts).
#ifndef INFERSTAT_STORE_READ_EXPIRY_INFO_H
#define INFERSTAT_STORE_READ_EXPIRY_INFO_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/record/record.h"

struct store;
struct sqlite3_str;

// Sets `*until_ns` to the time (wall clock) before which records of the kind have expired, among
// the runs that the filter covers; 0: none have.
MUST_CHECK enum status expiry_info_until(struct store *store, enum record_kind kind,
                                         const struct query_filter *filter, int64_t *until_ns,
                                         struct error *err);

// "records before 2026-03-28 12:00 UTC have expired".
enum { EXPIRY_TEXT_SIZE = 64 };
const char *expiry_info_text(char text[EXPIRY_TEXT_SIZE], int64_t until_ns);

// STATUS_NO_DATA with that text and its time.
enum status expiry_info_error(int64_t until_ns, struct error *err);

#endif
