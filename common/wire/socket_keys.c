// Keys of CURVE: made, checked and written by libzmq.
#include <zmq.h>

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/wire/socket_keys.h"

static const unsigned char no_key[WIRE_KEY_SIZE];

enum status wire_keypair_new(struct wire_keypair *out, struct error *err)
{
    char public_text[WIRE_KEY_TEXT_SIZE], secret_text[WIRE_KEY_TEXT_SIZE];
    do {
        if (zmq_curve_keypair(public_text, secret_text) != 0)
            return error_set(err, errno == ENOTSUP ? STATUS_UNSUPPORTED : STATUS_IO,
                             "keys: libzmq makes none: %s", zmq_strerror(errno));
    } while (!isalnum((unsigned char)public_text[0])); // of 85 characters 62 are
    bool made = wire_key_parse(out->public_key, public_text) &&
                wire_key_parse(out->secret_key, secret_text);
    explicit_bzero(secret_text, sizeof secret_text);
    if (!made)
        return error_set(err, STATUS_IO, "keys: libzmq made one that is none");
    return STATUS_OK;
}

bool wire_keypair_fits(const struct wire_keypair *pair)
{
    char public_text[WIRE_KEY_TEXT_SIZE], secret_text[WIRE_KEY_TEXT_SIZE];
    unsigned char derived[WIRE_KEY_SIZE];
    bool fits = zmq_curve_public(public_text, wire_key_text(secret_text, pair->secret_key)) == 0 &&
                wire_key_parse(derived, public_text) &&
                memcmp(derived, pair->public_key, sizeof derived) == 0;
    explicit_bzero(secret_text, sizeof secret_text);
    return fits;
}

char *wire_key_text(char *text, const unsigned char key[WIRE_KEY_SIZE])
{
    (void)zmq_z85_encode(text, key, WIRE_KEY_SIZE); // fails for other sizes only
    return text;
}

bool wire_key_parse(unsigned char key[WIRE_KEY_SIZE], const char *text)
{
    unsigned char read[WIRE_KEY_SIZE];
    char again[WIRE_KEY_TEXT_SIZE];
    // libzmq takes bytes that are not of Z85, and groups beyond 32 bits, for
    // others: a text that does not come out again is none.
    bool taken = strnlen(text, WIRE_KEY_TEXT_SIZE) == WIRE_KEY_TEXT_SIZE - 1 &&
                 zmq_z85_decode(read, text) && memcmp(read, no_key, sizeof read) != 0 &&
                 strcmp(wire_key_text(again, read), text) == 0;
    if (taken)
        memcpy(key, read, sizeof read);
    explicit_bzero(read, sizeof read);
    explicit_bzero(again, sizeof again);
    return taken;
}
