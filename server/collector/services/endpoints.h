// The sockets of one service, one for each address the collector listens on.
// Used only by the thread that bound them.
#ifndef INFERSTAT_COLLECTOR_SERVICES_ENDPOINTS_H
#define INFERSTAT_COLLECTOR_SERVICES_ENDPOINTS_H

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/reject_counters.h"

enum { ENDPOINTS_MAX = 8 };

struct endpoints {
    struct wire_context *context;
    struct address addresses[ENDPOINTS_MAX];
    unsigned count;
    struct access *access;    // access control over TCP; NULL: none, and no encryption
    struct wire_keypair keys; // the collector's own, with `access`
    struct reject_counters *reject_counters;
    unsigned connections_max; // of one socket; 0: no limit
};

// Binds the service at all addresses; `sockets` has ENDPOINTS_MAX elements, zeroed.  The caller
// closes them, also after a failure.
MUST_CHECK enum status endpoints_bind(struct wire_socket **sockets,
                                      const struct endpoints *endpoints,
                                      enum address_service service, struct error *err);

void endpoints_close(struct wire_socket **sockets);

#endif
