// Who is let in at a service's TCP sockets, and who goes on being: the door of one
// service, kept by the thread that has its sockets.
//
// A key is looked up when its peer connects and again for each message.  Once
// something was taken away from a key, the sockets' connections are ended: not at
// once, so that those concerned can still be told why, but within two seconds.
#ifndef INFERSTAT_COLLECTOR_SERVICES_ADMISSION_H
#define INFERSTAT_COLLECTOR_SERVICES_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "server/collector/services/endpoints.h"
#include "server/collector/threads/reject_counters.h"

struct admission {
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
MUST_CHECK enum status admission_open(struct admission *admission,
                                      const struct endpoints *endpoints,
                                      enum address_service service, struct wire_socket **sockets,
                                      struct error *err);

// Whether the sender of a frame may speak here; else it is counted, and `*why` says
// why not, static.
bool admission_lets_in(struct admission *admission, const struct wire_frame *frame,
                       const char **why);

// Ends connections when it is time, and counts those that were refused.  To be
// called at least every admission_wait nanoseconds.
void admission_keep(struct admission *admission, uint64_t now_ns);

// How long the thread may wait at most.
int64_t admission_wait(const struct admission *admission, uint64_t now_ns);

#endif
