#include "common/wire/listener/curve_server.h"

#include <assert.h>
#include <string.h>

#include <sodium.h>

enum {
    LONG_NONCE_SIZE = 16, // of a nonce sent in full, beside its prefix
    SHORT_NONCE_SIZE = 8, // of a counter, beside its prefix
    HELLO_SIZE = 200,
    HELLO_CLIENT = 80, // where the client's short-term key lies
    HELLO_NONCE = 112,
    HELLO_BOX = 120,
    ZEROS_SIZE = 64, // what HELLO's box holds
    INITIATE_COOKIE = 9,
    INITIATE_NONCE = INITIATE_COOKIE + CURVE_COOKIE_SIZE,
    INITIATE_BOX = INITIATE_NONCE + SHORT_NONCE_SIZE,
    VOUCH_SIZE = 2 * WIRE_KEY_SIZE,
    VOUCH_BOX_SIZE = VOUCH_SIZE + crypto_box_MACBYTES,
    // What INITIATE's box holds before the metadata: the key, and the nonce and box of the vouch.
    CLIENT_SIZE = WIRE_KEY_SIZE + LONG_NONCE_SIZE + VOUCH_BOX_SIZE,
    WELCOME_BOX = 8 + LONG_NONCE_SIZE,
    READY_NONCE = 6,
    METADATA_MAX = 64, // of our own
    MESSAGE_NONCE = 8,
    MESSAGE_BOX = MESSAGE_NONCE + SHORT_NONCE_SIZE,
    MESSAGE_TEXT = MESSAGE_BOX + crypto_box_MACBYTES, // flags, then the payload
};
_Static_assert(WIRE_KEY_SIZE == crypto_box_PUBLICKEYBYTES, "keys of Curve25519");
_Static_assert(WIRE_KEY_SIZE == crypto_box_BEFORENMBYTES, "the shared key");
_Static_assert(CURVE_WELCOME_SIZE ==
                   WELCOME_BOX + WIRE_KEY_SIZE + CURVE_COOKIE_SIZE + crypto_box_MACBYTES,
               "WELCOME");
_Static_assert(CURVE_READY_OVERHEAD == READY_NONCE + SHORT_NONCE_SIZE + crypto_box_MACBYTES,
               "READY");
_Static_assert(CURVE_MESSAGE_OVERHEAD == MESSAGE_TEXT + 1, "MESSAGE");

// The nonces of RFC 26: a prefix of 8 characters and 16 random bytes, or of 16 and a counter.
static void long_nonce(unsigned char nonce[crypto_box_NONCEBYTES], const char prefix[8],
                       const unsigned char *random)
{
    memcpy(nonce, prefix, 8);
    memcpy(nonce + 8, random, LONG_NONCE_SIZE);
}

static void short_nonce(unsigned char nonce[crypto_box_NONCEBYTES], const char prefix[16],
                        const unsigned char *counter)
{
    memcpy(nonce, prefix, 16);
    memcpy(nonce + 16, counter, SHORT_NONCE_SIZE);
}

static uint64_t read_counter(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < SHORT_NONCE_SIZE; i++)
        value = value << 8 | bytes[i];
    return value;
}

static void next_counter(struct curve_server *curve, unsigned char *bytes)
{
    curve->sent++;
    for (int i = 0; i < SHORT_NONCE_SIZE; i++)
        bytes[i] = (unsigned char)(curve->sent >> (56 - 8 * i));
}

bool curve_server_hello(struct curve_server *curve, const struct wire_keypair *keys,
                        const unsigned char *command, size_t size,
                        unsigned char welcome[CURVE_WELCOME_SIZE])
{
    if (size != HELLO_SIZE || memcmp(command, "\5HELLO\1\0", 8) != 0 || sodium_init() < 0)
        return false;

    unsigned char key[crypto_box_BEFORENMBYTES], nonce[crypto_box_NONCEBYTES], zeros[ZEROS_SIZE];
    short_nonce(nonce, "CurveZMQHELLO---", command + HELLO_NONCE);
    memcpy(curve->handshake.client_public, command + HELLO_CLIENT, WIRE_KEY_SIZE);
    const bool is_sound =
        crypto_box_beforenm(key, curve->handshake.client_public, keys->secret_key) == 0 &&
        crypto_box_open_easy_afternm(zeros, command + HELLO_BOX, HELLO_SIZE - HELLO_BOX, nonce,
                                     key) == 0;
    if (is_sound) {
        // The cookie lets a server forget the client until INITIATE.  This one remembers it, so
        // that random bytes do.
        unsigned char text[WIRE_KEY_SIZE + CURVE_COOKIE_SIZE];
        (void)crypto_box_keypair(text, curve->handshake.own_secret);
        randombytes_buf(curve->handshake.cookie, CURVE_COOKIE_SIZE);
        memcpy(text + WIRE_KEY_SIZE, curve->handshake.cookie, CURVE_COOKIE_SIZE);
        memcpy(welcome, "\7WELCOME", 8);
        randombytes_buf(welcome + 8, LONG_NONCE_SIZE);
        long_nonce(nonce, "WELCOME-", welcome + 8);
        (void)crypto_box_easy_afternm(welcome + WELCOME_BOX, text, sizeof text, nonce, key);
        curve->received = read_counter(command + HELLO_NONCE);
    }
    sodium_memzero(key, sizeof key);
    return is_sound;
}

// Whether the vouch at `bytes`, sealed with the secret key that belongs to `key`, names the
// client's short-term key and the server.
static bool is_vouched(const struct curve_server *curve, const struct wire_keypair *keys,
                       const unsigned char *key, const unsigned char *bytes)
{
    unsigned char nonce[crypto_box_NONCEBYTES], vouch[VOUCH_SIZE];
    long_nonce(nonce, "VOUCH---", bytes);
    return crypto_box_open_easy(vouch, bytes + LONG_NONCE_SIZE, VOUCH_BOX_SIZE, nonce, key,
                                curve->handshake.own_secret) == 0 &&
           sodium_memcmp(vouch, curve->handshake.client_public, WIRE_KEY_SIZE) == 0 &&
           sodium_memcmp(vouch + WIRE_KEY_SIZE, keys->public_key, WIRE_KEY_SIZE) == 0;
}

bool curve_server_initiate(struct curve_server *curve, const struct wire_keypair *keys,
                           unsigned char *command, size_t size, struct curve_client *out)
{
    if (size < INITIATE_BOX + crypto_box_MACBYTES + CLIENT_SIZE ||
        memcmp(command, "\10INITIATE", INITIATE_COOKIE) != 0 ||
        sodium_memcmp(command + INITIATE_COOKIE, curve->handshake.cookie, CURVE_COOKIE_SIZE) != 0)
        return false;
    const uint64_t counter = read_counter(command + INITIATE_NONCE);
    if (counter <= curve->received)
        return false;

    unsigned char nonce[crypto_box_NONCEBYTES], *text = command + INITIATE_BOX;
    short_nonce(nonce, "CurveZMQINITIATE", command + INITIATE_NONCE);
    if (crypto_box_beforenm(curve->shared, curve->handshake.client_public,
                            curve->handshake.own_secret) != 0 ||
        crypto_box_open_easy_afternm(text, text, size - INITIATE_BOX, nonce, curve->shared) != 0 ||
        !is_vouched(curve, keys, text, text + WIRE_KEY_SIZE))
        return false;
    curve->received = counter;
    memcpy(out->key, text, WIRE_KEY_SIZE);
    out->metadata = text + CLIENT_SIZE;
    out->metadata_size = size - INITIATE_BOX - crypto_box_MACBYTES - CLIENT_SIZE;
    return true;
}

void curve_server_ready(struct curve_server *curve, unsigned char *out,
                        const unsigned char *metadata, size_t size)
{
    assert(size <= METADATA_MAX);
    unsigned char nonce[crypto_box_NONCEBYTES];
    memcpy(out, "\5READY", READY_NONCE);
    next_counter(curve, out + READY_NONCE);
    short_nonce(nonce, "CurveZMQREADY---", out + READY_NONCE);
    (void)crypto_box_easy_afternm(out + READY_NONCE + SHORT_NONCE_SIZE, metadata, size, nonce,
                                  curve->shared);
    sodium_memzero(&curve->handshake, sizeof curve->handshake);
}

bool curve_server_open(struct curve_server *curve, unsigned char *frame, size_t size,
                       unsigned char *flags)
{
    if (size < CURVE_MESSAGE_OVERHEAD || memcmp(frame, "\7MESSAGE", MESSAGE_NONCE) != 0)
        return false;
    const uint64_t counter = read_counter(frame + MESSAGE_NONCE);
    unsigned char nonce[crypto_box_NONCEBYTES];
    short_nonce(nonce, "CurveZMQMESSAGEC", frame + MESSAGE_NONCE);
    // The text is as long as the box without its authenticator, and lies where that part lay.
    if (counter <= curve->received ||
        crypto_box_open_easy_afternm(frame + MESSAGE_TEXT, frame + MESSAGE_BOX, size - MESSAGE_BOX,
                                     nonce, curve->shared) != 0)
        return false;
    curve->received = counter;
    *flags = frame[MESSAGE_TEXT];
    return true;
}

void curve_server_seal(struct curve_server *curve, unsigned char *out, unsigned char flags,
                       const void *payload, size_t size)
{
    unsigned char nonce[crypto_box_NONCEBYTES];
    memcpy(out, "\7MESSAGE", MESSAGE_NONCE);
    next_counter(curve, out + MESSAGE_NONCE);
    short_nonce(nonce, "CurveZMQMESSAGES", out + MESSAGE_NONCE);
    out[MESSAGE_TEXT] = flags;
    if (size > 0)
        memmove(out + CURVE_MESSAGE_OVERHEAD, payload, size);
    (void)crypto_box_easy_afternm(out + MESSAGE_BOX, out + MESSAGE_TEXT, size + 1, nonce,
                                  curve->shared);
}

void curve_server_deinit(struct curve_server *curve)
{
    sodium_memzero(curve, sizeof *curve);
}
