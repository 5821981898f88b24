// ZMTP 3 (ZeroMQ RFC 23 and 37), the server's side of one connection, as a state machine without
// I/O: it parses received bytes, in pieces of any size, and tells the caller the next step.
// Security mechanisms: NULL, or CURVE if the rules have keys.
//
// The caller
//   1. calls zmtp_init and sends the greeting;
//   2. passes received bytes to zmtp_consume until the step is ZMTP_MORE; each step may have bytes
//      to send;
//   3. at ZMTP_ADMIT decides whether to admit the peer, and calls zmtp_admit;
//   4. at ZMTP_FRAME gives memory for the frame (zmtp_room), and at ZMTP_MESSAGE finds the message
//      in that memory;
//   5. after zmtp_admit may encode messages with zmtp_frame and send them;
//   6. at ZMTP_BROKEN, or when the connection ends, calls zmtp_deinit.
// Peers that send a routing id, or that are no DEALER, are refused.  A message has one frame; one
// of several frames breaks the connection.
//
// Memory: the structure, and during the handshake one command of at most ZMTP_COMMAND_MAX bytes.
// One thread at a time uses a connection, except that after zmtp_admit one thread may call
// zmtp_frame and zmtp_pong while another calls zmtp_consume.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/listener/curve_server.h"
#include "common/wire/listener/cut.h"

enum {
    ZMTP_GREETING_SIZE = 64,
    ZMTP_COMMAND_MAX = 1024, // largest command; a larger one breaks the connection
    ZMTP_CONTEXT_MAX = 16,   // bytes of a heartbeat that are sent back
    ZMTP_REPLY_MAX = 192,    // most bytes to send at a step
    ZMTP_PONG_MAX = 2 + CURVE_MESSAGE_OVERHEAD + 5 + ZMTP_CONTEXT_MAX,
};

struct zmtp_rules {
    uint64_t frame_max;              // largest message, in bytes
    const struct wire_keypair *keys; // the server's: CURVE.  NULL: mechanism NULL
};

enum zmtp_kind {
    ZMTP_MORE,  // all bytes are consumed; more are needed
    ZMTP_REPLY, // only `reply` is to be sent
    ZMTP_ADMIT, // the peer has completed its part of the handshake: call zmtp_admit
    ZMTP_FRAME, // a frame of `size` bytes (may be 0) begins: call zmtp_room, or end the connection
    ZMTP_MESSAGE, // a message is complete: `message`, `size`
    ZMTP_PING,    // a heartbeat; an answer (zmtp_pong) is optional
    ZMTP_COMMAND, // another command, ignored
    ZMTP_BROKEN,  // the peer broke the rules: send `reply`, then close; `cut` says why
};

struct zmtp_step {
    enum zmtp_kind kind;
    enum wire_cut cut;                       // ZMTP_BROKEN: not WIRE_CUT_NONE
    size_t size;                             // ZMTP_FRAME, ZMTP_MESSAGE, ZMTP_PING
    const void *message;                     // ZMTP_MESSAGE: lies inside the room
    unsigned char key[WIRE_KEY_SIZE];        // ZMTP_ADMIT with keys: the peer's public key
    unsigned char context[ZMTP_CONTEXT_MAX]; // ZMTP_PING: `size` bytes to send back
    size_t reply_size;                       // bytes of `reply` to send now; often 0
    unsigned char reply[ZMTP_REPLY_MAX];
};

// Private.
struct zmtp {
    const struct zmtp_rules *rules;
    unsigned char stage, part; // state of the connection; state within the frame being received
    unsigned char flags;       // of this frame
    size_t size, have;         // of this frame: all bytes; bytes received so far
    unsigned char *body;       // where these bytes go: the room or `command`; NULL: into `head`
    unsigned char *command;    // of the handshake; allocated
    size_t head_have;          // bytes in `head`
    unsigned char head[ZMTP_GREETING_SIZE]; // greeting, frame header, beginning of a command
    struct curve_server curve;
};

// Begins a connection.  `rules` is borrowed until zmtp_deinit.  `*out` is ZMTP_REPLY with the
// greeting, to be sent at once.
void zmtp_init(struct zmtp *zmtp, const struct zmtp_rules *rules, struct zmtp_step *out);

// Takes up to `size` of the bytes received (not NULL) and returns how many it took.  `*out` is the
// step that follows; call again with the rest (which may be empty) until it is ZMTP_MORE or
// ZMTP_BROKEN.  After ZMTP_BROKEN it must not be called.  Of `*out`, only what belongs to its kind,
// and `reply_size`, are set.
size_t zmtp_consume(struct zmtp *zmtp, const void *bytes, size_t size, struct zmtp_step *out);

// The user's decision at ZMTP_ADMIT.  True: `*out` is ZMTP_REPLY with READY; messages may follow.
// False: `*out` is ZMTP_BROKEN (WIRE_CUT_STRANGER) and the reply says that authentication failed
// (status 400 of ZAP, which libzmq's clients report as such and do not retry).
void zmtp_admit(struct zmtp *zmtp, bool is_admitted, struct zmtp_step *out);

// Gives memory for the frame that ZMTP_FRAME announced, of the size said there (NULL if that is 0).
// Borrowed until a later step is anything but ZMTP_MORE; a message lies in it.
void zmtp_room(struct zmtp *zmtp, void *room);

// Where the next bytes of a frame go, and in `*size` how many: bytes may be received straight there
// and then passed to zmtp_consume, which does not copy them.  NULL, size 0: not inside a frame.
void *zmtp_room_left(const struct zmtp *zmtp, size_t *size);

// Bytes of a message of `size` bytes on the wire.
size_t zmtp_frame_size(const struct zmtp *zmtp, size_t size);

// Writes a message as it goes to the wire, zmtp_frame_size bytes, encrypted if the rules have keys.
// `message` may be the last `size` bytes of `out`; otherwise they may not overlap.  Frames and
// pongs must be sent in the order in which they were written; one may be left out.
void zmtp_frame(struct zmtp *zmtp, unsigned char *out, const void *message, size_t size);

// Writes the answer to the heartbeat `ping`; returns its size.
size_t zmtp_pong(struct zmtp *zmtp, const struct zmtp_step *ping, unsigned char out[ZMTP_PONG_MAX]);

// Frees the connection's memory and wipes its keys; not the room.  May be called twice.
void zmtp_deinit(struct zmtp *zmtp);
