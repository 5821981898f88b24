// Keys of CURVE (ZeroMQ RFC 26): creates and checks key pairs, and converts keys to and from text
// in Z85 (ZeroMQ's base 85).  Any thread.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

enum {
    WIRE_KEY_SIZE = 32,
    WIRE_KEY_TEXT_SIZE = 41, // in Z85, terminating NUL included
};

// Key pair, on Curve25519.
struct wire_keypair {
    unsigned char public_key[WIRE_KEY_SIZE], secret_key[WIRE_KEY_SIZE];
};

// Creates a random pair.  The Z85 text of the public key begins with a letter or digit, so that a
// command line does not parse it as an option.
MUST_CHECK enum status wire_keypair_new(struct wire_keypair *out, struct error *err);

// True if the public key belongs to the secret key.
bool wire_keypair_fits(const struct wire_keypair *pair);

// Writes a key in Z85 (40 printable characters without space and quotation marks)
// to `text`, which holds WIRE_KEY_TEXT_SIZE bytes.  Returns `text`.
char *wire_key_text(char *text, const unsigned char key[WIRE_KEY_SIZE]);

// Parses a key in Z85, exactly 40 characters; false if invalid or all zero.
bool wire_key_parse(unsigned char key[WIRE_KEY_SIZE], const char *text);
