// A message as it is received from a socket (socket.h), and the address of its sender.
#ifndef INFERSTAT_WIRE_FRAME_H
#define INFERSTAT_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "common/wire/peer.h"

// Routing id of the peer that sent a message to a ROUTER.  Pass it to wire_send for the reply; it
// may be copied.
struct wire_route {
    unsigned char size;
    unsigned char id[255];
};

// A received frame: `bytes` is borrowed until wire_frame_release.
struct wire_frame {
    struct wire_route route; // ROUTER only
    struct wire_peer peer;   // the sender; PEER_KEY if the socket has a guard and uses TCP
    const void *bytes;
    size_t size;
    bool is_held; // private: `part` has libzmq's message, which owns `bytes`
    _Alignas(void *) unsigned char part[64];
};

#endif
