// Disconnect reasons: why a listening socket (listener.h) closed a connection or refused a new one.
#pragma once

enum wire_cut {
    WIRE_CUT_NONE,        // not closed by this side
    WIRE_CUT_GREETING,    // no ZMTP 3 greeting with the socket's mechanism, or none in time
    WIRE_CUT_GARBAGE,     // bytes that break ZMTP's rules
    WIRE_CUT_KEYS,        // CURVE handshake or message that does not decrypt, or a repeated nonce
    WIRE_CUT_STRANGER,    // `admit` (struct wire_guard) refused the peer's key
    WIRE_CUT_ROUTING_ID,  // the peer set a routing id (ZeroMQ's name of a socket)
    WIRE_CUT_FRAMES,      // a message of several frames
    WIRE_CUT_FRAME_SIZE,  // a frame larger than the socket takes
    WIRE_CUT_SLOW_FRAME,  // a frame was not complete in time, or memory was short in the handshake
    WIRE_CUT_DEAF,        // the peer did not read what was sent to it
    WIRE_CUT_PINGS,       // too many heartbeats or other commands
    WIRE_CUT_CONNECTIONS, // too many connections to the socket, or `enter` refused the peer
    WIRE_CUT_RATE,        // too many handshakes of the peer's user or address, or of all peers
    WIRE_CUTS,            // their count
};
