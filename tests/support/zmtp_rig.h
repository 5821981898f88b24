// A server's connection that a test feeds with bytes, and the client's half of CURVE made by hand,
// so that a test can spoil any step of it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/listener/zmtp.h"

struct zmtp_rig {
    struct zmtp zmtp;
    struct zmtp_rules rules;
    bool refuses;      // the decision at ZMTP_ADMIT
    bool reads_direct; // bytes of a frame go straight to its room
    bool is_broken;
    enum wire_cut cut; // where it is broken
    unsigned char key[WIRE_KEY_SIZE];
    // What happened: "greeting" and the other replies are not written; "admit", "frame 5",
    // "message hello", "ping abc", "command", "broken", each with a space after it.
    char trace[8192];
    size_t trace_size;
    unsigned char sent[8192]; // replies since the last look
    size_t sent_size;
    void *room;
};

// Begins a connection; `keys` is borrowed.
void rig_begin(struct zmtp_rig *rig, uint64_t frame_max, const struct wire_keypair *keys);
// Feeds `size` bytes, at most `piece` at a time, until the connection breaks.
void rig_feed(struct zmtp_rig *rig, const void *bytes, size_t size, size_t piece);
void rig_end(struct zmtp_rig *rig);

enum { HANDS_COMMAND_MAX = 2048 };

struct hands {
    struct wire_keypair own, brief;             // permanent, and of this connection
    unsigned char server_public[WIRE_KEY_SIZE]; // whom it takes the server for
    unsigned char session_public[WIRE_KEY_SIZE], cookie[CURVE_COOKIE_SIZE]; // from WELCOME
    unsigned char vouched[2 * WIRE_KEY_SIZE];                               // what the vouch says
    uint64_t nonce;                                                         // of the last command
    size_t left_off; // bytes at the end of INITIATE's box that are not there
};

void hands_begin(struct hands *hands, const struct wire_keypair *server);
// Write a command with its frame header; return the size.
size_t hands_hello(struct hands *hands, unsigned char out[HANDS_COMMAND_MAX]);
size_t hands_initiate(struct hands *hands, unsigned char out[HANDS_COMMAND_MAX],
                      const void *metadata, size_t size);
size_t hands_message(struct hands *hands, unsigned char out[HANDS_COMMAND_MAX], unsigned char flags,
                     const void *payload, size_t size);
// Take a frame of the server's; false where it does not decrypt.  A READY's and a MESSAGE's text is
// written to `out`, of a message with its flags before it.
bool hands_welcome(struct hands *hands, const unsigned char *frame, size_t size);
bool hands_open(struct hands *hands, const char *nonce_prefix, const unsigned char *frame,
                size_t size, unsigned char *out, uint64_t *nonce);
