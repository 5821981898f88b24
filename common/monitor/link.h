// The connection of a publisher to its collector.  Where keys are spoken and no
// answer comes, it is made anew, less and less often and with each of the server's
// known keys in turn: libzmq itself gives up on a server that refused it once.
// Belongs to one thread.
#ifndef INFERSTAT_MONITOR_LINK_H
#define INFERSTAT_MONITOR_LINK_H

#include "common/core/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct link;

// Decides by trust.h how to connect, and connects, for as long as it takes.
MUST_CHECK enum status link_open(struct link **out, const struct address *address,
                                 const struct trust_options *trust, uint64_t now_ns,
                                 struct error *err);
// NULL is fine.
void link_close(struct link *link);

// What the user has to be told about the way it is connected; "": nothing.
const char *link_warning(const struct link *link);

// As wire_send and wire_receive have it.
MUST_CHECK enum status link_send(struct link *link, const void *bytes, size_t size);
MUST_CHECK enum status link_receive(struct link *link, struct wire_frame *frame);

// Waits until the collector says something, `wake_fd` can be read, or the time is
// over.
void link_wait(struct link *link, int wake_fd, int64_t timeout_ns);

// The collector has said something: all is well with the keys.
void link_heard(struct link *link, uint64_t now_ns);

// Connects anew where it is time to.  True: it did, and what was under way is lost.
bool link_renew(struct link *link, uint64_t now_ns);

// Why nobody may answer, as far as that can be told, as ": words (what to do)"; "".
const char *link_trouble(struct link *link);

#endif
