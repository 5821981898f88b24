// Why a listening socket closed a connection by itself.
#ifndef INFERSTAT_WIRE_CUT_H
#define INFERSTAT_WIRE_CUT_H

enum wire_cut {
    WIRE_CUT_NONE,
    WIRE_CUT_GREETING,    // no ZMTP 3 greeting with the socket's mechanism, or none in time
    WIRE_CUT_GARBAGE,     // bytes that ZMTP does not allow there
    WIRE_CUT_KEYS,        // CURVE handshake or message that does not decrypt, or a repeated nonce
    WIRE_CUT_STRANGER,    // refused by the socket's owner
    WIRE_CUT_ROUTING_ID,  // brought a routing id of its own
    WIRE_CUT_FRAMES,      // a message of too many frames, or too large in all
    WIRE_CUT_FRAME_SIZE,  // a frame larger than the socket takes
    WIRE_CUT_SLOW_FRAME,  // a frame was not complete in time, or frames took too much memory
    WIRE_CUT_DEAF,        // did not read what was sent to it
    WIRE_CUT_PINGS,       // too many heartbeats or other commands
    WIRE_CUT_CONNECTIONS, // too many connections
    WIRE_CUT_RATE,        // too many handshakes
    WIRE_CUTS,
};

#endif
