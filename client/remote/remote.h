// A source of answers: a collector at an address, or a store file.  One interface for
// the command line and the dashboard.  One thread at a time.
#ifndef INFERSTAT_CLIENT_REMOTE_H
#define INFERSTAT_CLIENT_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/wire/trust.h"

struct remote;

struct remote_target {
    const char *collector; // address text; NULL: environment, then the default
    const char *db;        // a store file instead; NULL: none
    uint64_t timeout_ns;   // for an answer; 0: 3 seconds
    struct trust_options trust;
};

// Does not wait for a collector: an unreachable one is an error of each query.
MUST_CHECK enum status remote_open(struct remote **out, const struct remote_target *target,
                                   struct error *err);
void remote_close(struct remote *remote);

// A warning to show to the user once, such as for an unencrypted connection; "" if there
// is none.  Lives as long as the remote.
const char *remote_warning(const struct remote *remote);

// Sends a query and waits for the reply.  STATUS_UNREACHABLE: no reply in time (the next
// query tries again).  STATUS_DENIED: the collector refuses this user's key, also on an
// established connection.  Otherwise as store_query (common/store/store.h lists
// the keys of each answer).  QUERY_CLEAR goes to the admin socket, or through
// the store's lock with a file; its answer has one row with `cleared`.
MUST_CHECK enum status remote_query(struct remote *remote, const struct query *query,
                                    struct result **out, struct error *err);

// From now on a waiting query ends with STATUS_CANCELLED once `wake_fd` is readable (-1:
// none).  Borrowed until the remote is closed.
void remote_wake_on(struct remote *remote, int wake_fd);

// The source's name, for titles and messages; lives as long as the remote.
const char *remote_name(const struct remote *remote);
bool remote_is_file(const struct remote *remote);

// ---- Live records ------------------------------------------------------------

struct remote_live;

enum remote_live_mode {
    REMOTE_LIVE_RECORDS,
    REMOTE_LIVE_IDS, // only the kind of new records
};

// Subscribes to records as they are committed; `kinds` has a bit for each enum
// record_kind, 0 for all.  A store file is polled twice a second.  While no
// collector is reachable it keeps reconnecting.
MUST_CHECK enum status remote_live_open(struct remote_live **out,
                                        const struct remote_target *target, uint32_t kinds,
                                        enum remote_live_mode mode, struct error *err);
void remote_live_close(struct remote_live *live);

// Waits up to `timeout_ns` for the next records: `*out` holds rows of `*kind`
// with the keys of QUERY_RECORDS, or is NULL (REMOTE_LIVE_IDS).  `*missed`: rows this
// reader has missed so far.  STATUS_TIMEOUT: none arrived.  STATUS_CANCELLED: `wake_fd`
// (-1: none) became readable.
MUST_CHECK enum status remote_live_next(struct remote_live *live, uint64_t timeout_ns, int wake_fd,
                                        enum record_kind *kind, struct result **out,
                                        uint64_t *missed, struct error *err);

#endif
