// Received message frame: the bytes of one message that wire_receive (socket.h) returns, with the
// sender's identity and the route for a reply.
#ifndef INFERSTAT_WIRE_FRAME_H
#define INFERSTAT_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/peer.h"

// Reply address: the number of the connection on which a listening socket received the message; 0:
// none.  The caller passes it to wire_send for the reply and may copy it.  A socket uses each
// number only once.
struct wire_route {
    uint64_t connection;
};

// Set by wire_receive.  `bytes` is borrowed until wire_frame_release.
struct wire_frame {
    struct wire_route route; // only from a listening socket
    struct wire_peer peer;   // the sender; PEER_KEY: a TCP socket with keys has authenticated it
    const void *bytes;
    size_t size;
    void *received; // private: owns `bytes` of a listening socket
    bool is_held;   // private: `part` has a message of libzmq that owns `bytes`
    _Alignas(void *) unsigned char part[64];
};

#endif
