// Who is let in at a service's TCP sockets, and who goes on being: the door of one
// service, kept by the thread that has its sockets.
//
// A key is looked up when its peer connects and again for each message.  Once
// something was taken away from a key, the sockets' connections are ended: not at
// once, so that those concerned can still be told why, but within two seconds.
#ifndef INFERSTAT_COLLECTOR_DOOR_H
#define INFERSTAT_COLLECTOR_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "server/collector/endpoints.h"
#include "server/collector/refusals.h"

struct door {
    const struct endpoints *endpoints;
    enum address_service service;
    struct wire_socket **sockets; // one for each address
    struct wire_counters counted[ENDPOINTS_MAX];
    unsigned revocations;   // as they were when the sockets were bound or hung up
    uint64_t hang_up_at_ns; // 0: no need to
    uint64_t counted_at_ns;
};

// Binds the service's sockets, which the caller closes (endpoints_close) also after
// a failure, and keeps their door.
MUST_CHECK enum status door_open(struct door *door, const struct endpoints *endpoints,
                                 enum address_service service, struct wire_socket **sockets,
                                 struct error *err);

// Whether the sender of a frame may speak here; else it is counted, and `*why` says
// why not, static.
bool door_lets_in(struct door *door, const struct wire_frame *frame, const char **why);

// Ends connections when it is time, and counts those that were refused.  To be
// called at least every door_wait nanoseconds.
void door_keep(struct door *door, uint64_t now_ns);

// How long the thread may wait at most.
int64_t door_wait(const struct door *door, uint64_t now_ns);

#endif
