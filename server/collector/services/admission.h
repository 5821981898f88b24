// Admission control: opens the listening sockets of one collector thread, and admits TCP peers by
// their public keys, if the collector has keys.  The thread has a socket for each of its services
// and each address of the collector; only this thread uses them.
//
// A key is checked when its peer connects and again for each message.  When a key or a role is
// removed, TCP connections whose key is no longer admitted, and those that have sent nothing yet,
// are closed within two seconds.  Before that the peers have 0.7 s to receive the reason.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/listener/listener.h"
#include "server/collector/access/access.h"
#include "server/collector/access/quota.h"
#include "server/collector/threads/reject_counters.h"

enum {
    ENDPOINTS_MAX = 8,          // addresses of a collector
    ADMISSION_SERVICES_MAX = 2, // services of a thread
    ADMISSION_SOCKETS_MAX = ADMISSION_SERVICES_MAX * ENDPOINTS_MAX,
};

// Where the collector listens, and who may connect.
struct endpoints {
    struct listener *listener; // the process's listening sockets
    struct address addresses[ENDPOINTS_MAX];
    unsigned count;
    struct access *access;    // access control over TCP; NULL: none, and no encryption
    struct wire_keypair keys; // the collector's own, with `access`
    struct reject_counters *rejects;
    struct quota *quota;      // limits connections of an owner, and names hostile peers in the log
    unsigned connections_max; // limit of connections per socket; 0: none
};

// Private, but for `sockets` and `count`, which the owning thread reads.
struct admission {
    const struct endpoints *endpoints;
    enum address_service services[ADMISSION_SERVICES_MAX];
    unsigned count; // of sockets
    // The sockets of the first service, one for each address, then those of the second.
    struct port *sockets[ADMISSION_SOCKETS_MAX];
    struct wire_counters counted[ADMISSION_SOCKETS_MAX]; // as last added to `rejects`
    unsigned revocations;                                // access_revocations as last seen
    uint64_t hang_up_at_ns;                              // when to close connections; 0: never
    uint64_t counted_at_ns;                              // when `counted` was last updated
};

// Binds the sockets of a service; `admission` is zeroed before the first.  The caller calls
// admission_close, also after a failure.
MUST_CHECK enum status admission_open(struct admission *admission,
                                      const struct endpoints *endpoints,
                                      enum address_service service, struct error *err);
void admission_close(struct admission *admission);

// Returns the address of the socket with index `socket`.
const struct address *admission_address(const struct admission *admission, unsigned socket);

// True if a frame's sender may use the socket's service.  If not, counts the rejection and sets
// `*why` to the reason, static text.
bool admission_allows(const struct admission *admission, unsigned socket,
                      const struct wire_frame *frame, const char **why);

// Calls admission_update, then waits, at most a second, until a socket or `fd` is readable.  Sets
// bit i of `*ready` for socket i, and bit `count` for `fd`.
void admission_wait(struct admission *admission, int fd, uint32_t *ready);

// Closes connections when that is due, and counts rejected connections.  A thread that cannot
// receive at the moment calls this instead of admission_wait.
void admission_update(struct admission *admission, uint64_t now_ns);
