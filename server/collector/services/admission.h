// The sockets of a thread: one for each of its services and each address that the collector listens
// on.  Admits peers over TCP by their keys.
//
// A key is checked when its peer connects and again for each message.  Once a key or a role was
// removed, TCP connections of keys that are no longer admitted, and those that have sent nothing
// yet, are closed within two seconds, after a delay in which the peers receive the reason.
#ifndef INFERSTAT_COLLECTOR_SERVICES_ADMISSION_H
#define INFERSTAT_COLLECTOR_SERVICES_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/reject_counters.h"

enum {
    ENDPOINTS_MAX = 8,
    ADMISSION_SERVICES_MAX = 2,
    ADMISSION_SOCKETS_MAX = ADMISSION_SERVICES_MAX * ENDPOINTS_MAX,
};

// Where the collector listens, and who may connect.
struct endpoints {
    struct wire_context *context;
    struct address addresses[ENDPOINTS_MAX];
    unsigned count;
    struct access *access;    // access control over TCP; NULL: none, and no encryption
    struct wire_keypair keys; // the collector's own, with `access`
    struct reject_counters *rejects;
    unsigned connections_max; // of one socket; 0: no limit
};

struct admission {
    const struct endpoints *endpoints;
    enum address_service services[ADMISSION_SERVICES_MAX];
    unsigned count; // of sockets
    // The first service's at each address, then the second's.
    struct wire_socket *sockets[ADMISSION_SOCKETS_MAX];
    struct wire_counters counted[ADMISSION_SOCKETS_MAX];
    unsigned revocations;   // access_revocations as last seen
    uint64_t hang_up_at_ns; // when to close connections; 0: never
    uint64_t counted_at_ns;
};

// Binds the sockets of a service, after those of services opened before; `admission` is zeroed
// before the first.  The caller closes them, also after a failure.
MUST_CHECK enum status admission_open(struct admission *admission,
                                      const struct endpoints *endpoints,
                                      enum address_service service, struct error *err);
void admission_close(struct admission *admission);

// The address of a socket.
const struct address *admission_address(const struct admission *admission, unsigned socket);

// Checks whether a frame's sender may use the service.  If not, counts it and sets `*why` to
// the reason, static text.
bool admission_allows(const struct admission *admission, unsigned socket,
                      const struct wire_frame *frame, const char **why);

// Closes connections when that is due, and counts rejected ones; then waits, at most a second,
// until a socket (bit i of `*ready`) or `fd` (bit `count`) is readable.
void admission_wait(struct admission *admission, int fd, uint32_t *ready);

// The first half of admission_wait, for a thread that cannot receive at the moment.
void admission_update(struct admission *admission, uint64_t now_ns);

#endif
