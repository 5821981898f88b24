// Query client: sends queries to a collector and receives its new records.  The same functions can
// read a store file instead (the SQLite file that a collector writes).  The command line and the
// dashboard use it.  Only one thread at a time may use a struct remote.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/wire/trust.h"

struct remote;

// What to open.  The texts are borrowed for the call of remote_open.
struct remote_target {
    const char *collector; // address text; NULL: environment, then the default
    const char *db;        // path of a store file; NULL: use the collector
    uint64_t timeout_ns;   // of a query (slow query kinds get a longer one); 0: 3 seconds
    struct trust_options trust;
    bool at_once; // a query fails at once, not after its timeout, where nothing listens
};

// Opens the collector or the store file.  Connects in the background: if the collector is
// unreachable, remote_open succeeds and remote_query fails.
MUST_CHECK enum status remote_open(struct remote **out, const struct remote_target *target,
                                   struct error *err);
void remote_close(struct remote *remote);

// A warning that the caller shows to the user once, such as "unencrypted connection"; "": none.
// Valid until remote_close.
const char *remote_warning(const struct remote *remote);

// Sends a query and waits for the reply; the caller frees `*out` with result_free.  Returns
// STATUS_UNREACHABLE if no reply came before the timeout or the connection was lost (the next query
// tries again), STATUS_DENIED if the collector refuses this user's key (possible at any time, also
// on an established connection).  Other errors, and the columns of each result, are those of
// store_query (common/store/store.h).  Administrative queries go to the admin service.  The result
// of QUERY_CLEAR has one row with the column `cleared`.
MUST_CHECK enum status remote_query(struct remote *remote, const struct query *query,
                                    struct result **out, struct error *err);

// Makes queries to a collector cancellable: remote_query returns STATUS_CANCELLED once the
// descriptor `wake_fd` (-1: none) is readable.  `wake_fd` is borrowed until remote_close.
void remote_wake_on(struct remote *remote, int wake_fd);

// The collector's address or the file's path, for titles and messages.  Valid until remote_close.
const char *remote_name(const struct remote *remote);
bool remote_is_file(const struct remote *remote);

// ---- Live records ------------------------------------------------------------

enum remote_live_mode {
    REMOTE_LIVE_RECORDS,
    REMOTE_LIVE_NOTIFICATIONS, // no records: only notifications, with the kind of the new records
};

// Subscribes to newly committed records of `kinds` (bit k: enum record_kind k; 0: all kinds).  A
// collector sends them; the client reconnects if it was unreachable.  A store file is polled twice
// a second.
MUST_CHECK enum status remote_subscribe(struct remote *remote, uint32_t kinds,
                                        enum remote_live_mode mode, struct error *err);

// Waits up to `timeout_ns` for new records.  Sets `*kind` to their kind, and `*out` to a result
// with the columns of QUERY_RECORDS, which the caller frees; with REMOTE_LIVE_NOTIFICATIONS `*out`
// is NULL.  Sets `*missed` to the number of records since remote_subscribe that this client did not
// receive (a store file: 0).  Returns STATUS_TIMEOUT if there were no new records, STATUS_CANCELLED
// if `wake_fd` (-1: none) became readable, STATUS_UNREACHABLE once after the connection was lost
// and made again: records committed meanwhile are neither received nor counted.
MUST_CHECK enum status remote_live_next(struct remote *remote, uint64_t timeout_ns, int wake_fd,
                                        enum record_kind *kind, struct result **out,
                                        uint64_t *missed, struct error *err);
