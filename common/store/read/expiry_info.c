#include "common/store/read/expiry_info.h"

#include <stdio.h>
#include <time.h>

#include <sqlite3.h>

#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

// A run of the window that lost none of the kind to expiry has all that it had.
enum status expiry_info_until(struct store *store, enum record_kind kind,
                              const struct query_filter *filter, int64_t *until_ns,
                              struct error *err)
{
    const int64_t numbers[] = {kind, filter->since_ns};
    *until_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT e.until_ns FROM expiry e WHERE e.kind = $1"
                               " AND e.until_ns > $2 AND EXISTS (SELECT 1 FROM run t");
    filter_where(sql, RECORD_KIND_RUN, filter);
    sqlite3_str_appendall(sql, " AND EXISTS (SELECT 1 FROM ledger l WHERE l.run = t.run"
                               " AND l.kind = $1 AND l.expired > 0))");
    return reader_scan_with(store, sql, filter, numbers, sizeof numbers / sizeof *numbers,
                            reader_on_integer, until_ns, err);
}

const char *expiry_info_text(char text[EXPIRY_TEXT_SIZE], int64_t until_ns)
{
    const time_t seconds = (time_t)(until_ns / 1000000000);
    struct tm parts;
    (void)snprintf(text, EXPIRY_TEXT_SIZE, "records have expired");
    if (gmtime_r(&seconds, &parts))
        (void)strftime(text, EXPIRY_TEXT_SIZE, "records before %Y-%m-%d %H:%M UTC have expired",
                       &parts);
    return text;
}

enum status expiry_info_error(int64_t until_ns, struct error *err)
{
    char text[EXPIRY_TEXT_SIZE];
    (void)error_set(err, STATUS_NO_DATA, "%s", expiry_info_text(text, until_ns));
    if (err)
        err->expired_ns = until_ns;
    return STATUS_NO_DATA;
}
