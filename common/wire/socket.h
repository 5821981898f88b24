// All of ZeroMQ.  A socket never leaves the thread that made it.
#ifndef INFERSTAT_WIRE_SOCKET_H
#define INFERSTAT_WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/error.h"

struct wire_context; // one a program or monitor; any thread
struct wire_socket;

MUST_CHECK enum status wire_context_new(struct wire_context **out, struct error *err);
// All its sockets must be closed.
void wire_context_free(struct wire_context *context);

// The peer a ROUTER received from, to answer to; copied freely.
struct wire_route {
    unsigned char size;
    unsigned char id[255];
};

// A ROUTER bound to an endpoint (address_endpoint).  For ipc the socket file is
// made with mode 0660 (or 0600 when `owner_only`).  STATUS_BUSY when the
// endpoint is taken.
MUST_CHECK enum status wire_bind(struct wire_socket **out, struct wire_context *context,
                                 const char *endpoint, bool owner_only, struct error *err);

// A DEALER connected (or connecting, for as long as it takes) to an endpoint.
MUST_CHECK enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                                    const char *endpoint, struct error *err);

// Drops what is unsent, and removes the file of an ipc socket that was bound.
// NULL is fine.  libzmq closes in the background: the
// endpoint may be taken for a moment longer.
void wire_close(struct wire_socket *socket);

// Sends one frame without waiting.  `route` is NULL on a DEALER.  STATUS_FULL:
// the queue is full or nobody is connected; STATUS_UNREACHABLE: a route that is
// gone.  Never blocks.
MUST_CHECK enum status wire_send(struct wire_socket *socket, const struct wire_route *route,
                                 const void *bytes, size_t size);

// A received frame: `bytes` is borrowed until wire_frame_release.
struct wire_frame {
    struct wire_route route; // ROUTER only
    const void *bytes;
    size_t size;
    void *handle;
};

// Receives one frame without waiting.  STATUS_NO_DATA: there is none.
// STATUS_INVALID: a message of a wrong shape was thrown away (count it).
MUST_CHECK enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame);
void wire_frame_release(struct wire_frame *frame);

// Waits until one of `sockets` (NULL entries are skipped) can be received from,
// or `fd` (-1: none) can be read, or `timeout_ns` is over (negative: for ever).
// Sets bit i of `*ready` for sockets[i] and bit `count` for the fd.  count <= 31.
// A signal ends the wait early with nothing ready.
void wire_wait(struct wire_socket *const *sockets, size_t count, int fd, int64_t timeout_ns,
               uint32_t *ready);

#endif
