// The server's side of CurveZMQ (ZeroMQ RFC 26) for one connection: authentication and encryption
// with keys on Curve25519.  Without I/O: commands and frames in, commands and frames out.
//
// The handshake: the client sends HELLO, the server answers WELCOME, the client sends INITIATE with
// its permanent key, the server answers READY.  Then both send MESSAGE frames.  Commands and frames
// are passed without the frame header of ZMTP.
//
// One thread at a time may use a connection, except that after curve_server_ready one thread may
// call curve_server_seal while another calls curve_server_open.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/socket_keys.h"

enum {
    CURVE_COOKIE_SIZE = 96,
    CURVE_WELCOME_SIZE = 168,
    CURVE_READY_OVERHEAD = 30,   // bytes of READY beside its metadata
    CURVE_MESSAGE_OVERHEAD = 33, // bytes of a MESSAGE beside its payload
};

// All zero at first.  Private.
struct curve_server {
    unsigned char shared[WIRE_KEY_SIZE];            // from INITIATE on: the key of both directions
    struct {                                        // between WELCOME and READY
        unsigned char own_secret[WIRE_KEY_SIZE];    // short-term key of this connection
        unsigned char client_public[WIRE_KEY_SIZE]; // the client's short-term key
        unsigned char cookie[CURVE_COOKIE_SIZE];
    } handshake;
    uint64_t received; // nonce of the client's last command or message; the next is larger
    uint64_t sent;     // nonce of the server's last command or message
};

// Takes a HELLO and writes the WELCOME that answers it.  `keys` is the server's permanent pair.
// False if the command is malformed or was not made for this server's public key.
bool curve_server_hello(struct curve_server *curve, const struct wire_keypair *keys,
                        const unsigned char *command, size_t size,
                        unsigned char welcome[CURVE_WELCOME_SIZE]);

// What an INITIATE says.
struct curve_client {
    unsigned char key[WIRE_KEY_SIZE]; // the client's permanent public key; it has proved that it
                                      // knows the secret key
    const unsigned char *metadata;    // inside `command`
    size_t metadata_size;
};

// Takes the INITIATE that follows the WELCOME; decrypts it inside `command`.  False if it is
// malformed, has another cookie than the WELCOME, does not decrypt, or does not prove that the
// client knows its secret key.
bool curve_server_initiate(struct curve_server *curve, const struct wire_keypair *keys,
                           unsigned char *command, size_t size, struct curve_client *out);

// Writes the READY with `size` bytes of metadata (at most 64) that admits the client, `size` +
// CURVE_READY_OVERHEAD bytes, and keeps only what messages need.
void curve_server_ready(struct curve_server *curve, unsigned char *out,
                        const unsigned char *metadata, size_t size);

// Takes a MESSAGE of `size` bytes from the client and decrypts it in place: its flags (0x01: more
// frames follow, 0x02: a command) go to `*flags`, its payload of `size` - CURVE_MESSAGE_OVERHEAD
// bytes lies at `frame` + CURVE_MESSAGE_OVERHEAD.  False if it is malformed, does not decrypt, or
// its nonce is not larger than the last.
bool curve_server_open(struct curve_server *curve, unsigned char *frame, size_t size,
                       unsigned char *flags);

// Writes a MESSAGE with a payload of `size` bytes, `size` + CURVE_MESSAGE_OVERHEAD bytes in all.
// `payload` may be the last `size` of these bytes; otherwise they may not overlap.
// Messages must be sent in the order in which they were sealed; one may be left out.
void curve_server_seal(struct curve_server *curve, unsigned char *out, unsigned char flags,
                       const void *payload, size_t size);

// Wipes all keys.
void curve_server_deinit(struct curve_server *curve);
