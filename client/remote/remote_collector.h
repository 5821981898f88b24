// Connection of a query client to a collector: sends queries and receives new records.  The
// collector sends only as many live messages as the client has permitted (credit-based flow
// control).  So a slow client misses records, and delays no other client.  Internal to
// client/remote: collector_query has the contract of remote_query in remote.h, and so on.
#pragma once

#include "client/remote/remote.h"

struct collector;

MUST_CHECK enum status collector_open(struct collector **out, const struct remote_target *target,
                                      struct error *err);
void collector_close(struct collector *collector); // NULL is fine
const char *collector_name(const struct collector *collector);
const char *collector_warning(const struct collector *collector);
void collector_wake_on(struct collector *collector, int wake_fd);
MUST_CHECK enum status collector_query(struct collector *collector, const struct query *query,
                                       struct result **out, struct error *err);
void collector_subscribe(struct collector *collector, uint32_t kinds, enum remote_live_mode mode);
MUST_CHECK enum status collector_live_next(struct collector *collector, uint64_t timeout_ns,
                                           int wake_fd, enum record_kind *kind, struct result **out,
                                           uint64_t *missed);
