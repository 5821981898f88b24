// A message as it is received from a socket (socket.h), and the address of its sender.
#ifndef INFERSTAT_WIRE_FRAME_H
#define INFERSTAT_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/peer.h"

// Number of the connection on which a message came to a listening socket; 0: none.  Pass it to
// wire_send for the reply; it may be copied.  A socket never uses a number again.
struct wire_route {
    uint64_t connection;
};

// A received frame: `bytes` is borrowed until wire_frame_release.
struct wire_frame {
    struct wire_route route; // of a listening socket only
    struct wire_peer peer;   // the sender; PEER_KEY if the socket has a guard and uses TCP
    const void *bytes;
    size_t size;
    void *received; // private: of a listening socket, what owns `bytes`
    bool is_held;   // private: `part` has libzmq's message, which owns `bytes`
    _Alignas(void *) unsigned char part[64];
};

#endif
