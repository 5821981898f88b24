// The connection of a publisher to its collector.  Where keys are spoken and no
// answer comes, it is made anew, less and less often and with each of the server's
// known keys in turn: libzmq itself gives up on a server that refused it once.
// Belongs to one thread.
#ifndef INFERSTAT_MONITOR_UPLINK_H
#define INFERSTAT_MONITOR_UPLINK_H

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct uplink;

// Decides by trust.h how to connect, and connects, for as long as it takes.
MUST_CHECK enum status uplink_open(struct uplink **out, const struct address *address,
                                   const struct trust_source *trust, uint64_t now_ns,
                                   struct error *err);
// NULL is fine.
void uplink_close(struct uplink *uplink);

// What the user has to be told about the way it is connected; "": nothing.
const char *uplink_warning(const struct uplink *uplink);

// As wire_send and wire_receive have it.
MUST_CHECK enum status uplink_send(struct uplink *uplink, const void *bytes, size_t size);
MUST_CHECK enum status uplink_receive(struct uplink *uplink, struct wire_frame *frame);

// Waits until the collector says something, `wake_fd` can be read, or the time is
// over.
void uplink_wait(struct uplink *uplink, int wake_fd, int64_t timeout_ns);

// The collector has said something: all is well with the keys.
void uplink_heard(struct uplink *uplink, uint64_t now_ns);

// Connects anew where it is time to, by what the files of keys say now.  True: it
// did, and what was under way is lost.
bool uplink_renew(struct uplink *uplink, uint64_t now_ns);

// Why nobody may answer, as far as that can be told, as ": words (what to do)"; "".
const char *uplink_trouble(struct uplink *uplink);

#endif
