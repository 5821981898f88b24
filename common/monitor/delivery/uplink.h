// Uplink: a publisher's ZeroMQ connection to its collector.  With CURVE encryption the uplink
// reconnects when no answer comes, with back-off and with each known server key in turn,
// because libzmq does not retry after a refused handshake.  Before it connects to an ipc address,
// it checks that only trusted users can listen in the folder (peer_folder.h).  Used by one thread,
// which may be another one than that of uplink_open.
#ifndef INFERSTAT_MONITOR_UPLINK_H
#define INFERSTAT_MONITOR_UPLINK_H

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct uplink;

// Chooses keys from `trust`; the first uplink_renew connects.
MUST_CHECK enum status uplink_open(struct uplink **out, const struct address *address,
                                   const struct trust_source *trust, struct error *err);
// NULL is fine.
void uplink_close(struct uplink *uplink);

// Returns a warning about the connection's security, valid until uplink_close; "": none.
const char *uplink_warning(const struct uplink *uplink);

// Call wire_send and wire_receive on the connection's socket.
MUST_CHECK enum status uplink_send(struct uplink *uplink, const void *bytes, size_t size);
MUST_CHECK enum status uplink_receive(struct uplink *uplink, struct wire_bytes *out);

// Waits until a message arrives, `wake_fd` is readable or `timeout_ns` has passed.
void uplink_wait(struct uplink *uplink, int wake_fd, int64_t timeout_ns);

// Says that a message has arrived, which shows that the keys are right.
void uplink_heard(struct uplink *uplink, uint64_t now_ns);

// Says that a message could not be decoded; too many of them close the connection.
void uplink_count_garbage(struct uplink *uplink);

// After this side has closed the connection: the first call returns the reason (who the peer is and
// what it did), valid until the next uplink_renew.  Otherwise, and in later calls: NULL.
const char *uplink_closed(struct uplink *uplink, uint64_t now_ns);

// Connects, or reconnects if that is due, with keys newly read from the key files; retries without
// limit, also after a failed check of an ipc folder.  True if it did: messages in flight are lost.
bool uplink_renew(struct uplink *uplink, uint64_t now_ns);

// Returns the probable reason why no answer comes, as ": reason (what to do)"; "" if unknown.
// Valid until the next call.
const char *uplink_trouble(struct uplink *uplink);

#endif
