// Uplink: a publisher's ZeroMQ connection to its collector.  The uplink reconnects, with back-off,
// when no answer comes: with CURVE encryption after 1 second, with each known server key in turn;
// without encryption after 5 seconds, or when the connection was closed.  libzmq alone would not
// retry after a refused handshake.  Before the uplink connects to an ipc address, it checks that
// only trusted users can listen in the folder (peer_folder.h).  One thread uses the uplink; another
// one may have called uplink_open.
#pragma once

#include "common/core/base/error.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct uplink;

// Chooses keys from `trust`; the first uplink_renew connects.  Warnings about the connection's
// security, and why this side closed it, go to `log` (borrowed; the others are copied).
MUST_CHECK enum status uplink_open(struct uplink **out, const struct address *address,
                                   const struct trust_source *trust, const struct log_sink *log,
                                   struct error *err);
// NULL is fine.
void uplink_close(struct uplink *uplink);

// The connection's socket until the next uplink_renew; NULL: not connected.
struct wire_socket *uplink_socket(const struct uplink *uplink);

// Says that a message has arrived, which shows that the keys are right.
void uplink_heard(struct uplink *uplink, uint64_t now_ns);

// Connects, or reconnects if that is due, with keys newly read from the key files; retries without
// limit, also after a failed check of an ipc folder.  True if it did: messages in flight are lost.
bool uplink_renew(struct uplink *uplink, uint64_t now_ns);

// Returns the probable reason why no answer comes, as ": reason (what to do)"; "" if unknown.
// Valid until the next call.
const char *uplink_trouble(struct uplink *uplink);
