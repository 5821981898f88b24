// Admission control by key for one service's TCP sockets, used by the thread that owns them.
//
// A key is checked when its peer connects and again for each message.  Once a key or a role was
// removed, all TCP connections of the service are closed within two seconds, after a delay in
// which the peers concerned receive the reason; authorized peers reconnect.
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
    unsigned revocations;   // access_revocations as last seen
    uint64_t hang_up_at_ns; // when to close connections; 0: never
    uint64_t counted_at_ns;
};

// Binds the service's sockets.  The caller closes them (endpoints_close), also after a failure.
MUST_CHECK enum status admission_open(struct admission *admission,
                                      const struct endpoints *endpoints,
                                      enum address_service service, struct wire_socket **sockets,
                                      struct error *err);

// Checks whether a frame's sender may use the service.  If not, counts it and sets `*why` to
// the reason, static text.
bool admission_allows(struct admission *admission, const struct wire_frame *frame,
                      const char **why);

// Closes connections when that is due, and counts rejected ones.  Call it at least every
// admission_timeout_ns.
void admission_update(struct admission *admission, uint64_t now_ns);

// How long the thread may wait until the next call of admission_update.
int64_t admission_timeout_ns(const struct admission *admission, uint64_t now_ns);

#endif
