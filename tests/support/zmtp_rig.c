#include "tests/support/zmtp_rig.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

// ---- The server's side -----------------------------------------------------------

static void trace(struct zmtp_rig *rig, const char *what, const void *bytes, size_t size)
{
    const size_t left = sizeof rig->trace - rig->trace_size;
    const int length =
        snprintf(rig->trace + rig->trace_size, left, "%s%s%.*s ", what, bytes ? " " : "",
                 bytes ? (int)(size < 40 ? size : 40) : 0, bytes ? (const char *)bytes : "");
    if (length > 0 && (size_t)length < left)
        rig->trace_size += (size_t)length;
    else
        rig->trace[rig->trace_size] = '\0';
}

static void keep_reply(struct zmtp_rig *rig, const void *bytes, size_t size)
{
    if (size <= sizeof rig->sent - rig->sent_size) {
        memcpy(rig->sent + rig->sent_size, bytes, size);
        rig->sent_size += size;
    }
}

void rig_begin(struct zmtp_rig *rig, uint64_t frame_max, const struct wire_keypair *keys)
{
    struct zmtp_step step;
    memset(rig, 0, sizeof *rig);
    rig->rules = (struct zmtp_rules){.frame_max = frame_max, .keys = keys};
    zmtp_init(&rig->zmtp, &rig->rules, &step);
    keep_reply(rig, step.reply, step.reply_size);
}

static void give_room(struct zmtp_rig *rig, size_t size)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%zu", size);
    trace(rig, "frame", text, strlen(text));
    rig->room = size ? malloc(size) : NULL; // no more than it is said to need
    assert(rig->room || size == 0);
    zmtp_room(&rig->zmtp, rig->room);
}

static void follow(struct zmtp_rig *rig, struct zmtp_step *step)
{
    static const char *const names[] = {[ZMTP_COMMAND] = "command", [ZMTP_BROKEN] = "broken"};
    unsigned char pong[ZMTP_PONG_MAX];
    if (step->kind == ZMTP_ADMIT) {
        trace(rig, "admit", NULL, 0);
        memcpy(rig->key, step->key, sizeof rig->key);
        zmtp_admit(&rig->zmtp, !rig->refuses, step);
    }
    if (step->kind == ZMTP_FRAME)
        give_room(rig, step->size);
    else if (step->kind == ZMTP_MESSAGE)
        trace(rig, "message", step->size ? step->message : "", step->size);
    else if (step->kind == ZMTP_PING) {
        trace(rig, "ping", step->context, step->size);
        keep_reply(rig, pong, zmtp_pong(&rig->zmtp, step, pong));
    } else if (step->kind < sizeof names / sizeof names[0] && names[step->kind])
        trace(rig, names[step->kind], NULL, 0);
    keep_reply(rig, step->reply, step->reply_size);
    rig->is_broken = step->kind == ZMTP_BROKEN;
    rig->cut = rig->is_broken ? step->cut : WIRE_CUT_NONE;
    if (step->kind != ZMTP_FRAME && step->kind != ZMTP_MORE) {
        free(rig->room);
        rig->room = NULL;
    }
}

void rig_feed(struct zmtp_rig *rig, const void *bytes, size_t size, size_t piece)
{
    const unsigned char *in = bytes;
    struct zmtp_step step = {.kind = ZMTP_MORE};
    while (!rig->is_broken && (size > 0 || step.kind != ZMTP_MORE)) {
        size_t room_size, now = size < piece ? size : piece;
        unsigned char *room = zmtp_room_left(&rig->zmtp, &room_size);
        size_t used;
        if (room && rig->reads_direct) {
            now = now < room_size ? now : room_size;
            memcpy(room, in, now);
            used = zmtp_consume(&rig->zmtp, room, now, &step);
        } else {
            unsigned char *copy = malloc(now + 1); // reading on is seen
            assert(copy);
            memcpy(copy + 1, in, now);
            used = zmtp_consume(&rig->zmtp, copy + 1, now, &step);
            free(copy);
        }
        assert(used <= now);
        assert(used == now || step.kind != ZMTP_MORE);
        in += used;
        size -= used;
        follow(rig, &step);
    }
}

void rig_end(struct zmtp_rig *rig)
{
    zmtp_deinit(&rig->zmtp);
    zmtp_deinit(&rig->zmtp);
    free(rig->room);
    rig->room = NULL;
}

// ---- The client's side -----------------------------------------------------------

static size_t head(unsigned char *out, unsigned char flags, size_t size)
{
    assert(size <= HANDS_COMMAND_MAX - 9);
    if (size < 256) {
        out[0] = flags;
        out[1] = (unsigned char)size;
        return 2;
    }
    memset(out, 0, 9);
    out[0] = flags | 2;
    out[7] = (unsigned char)(size >> 8);
    out[8] = (unsigned char)size;
    return 9;
}

static const unsigned char *counted(unsigned char nonce[24], const char *prefix, uint64_t counter)
{
    memcpy(nonce, prefix, 16);
    for (int i = 0; i < 8; i++)
        nonce[16 + i] = (unsigned char)(counter >> (56 - 8 * i));
    return nonce;
}

// Seals with the server's key of this connection, or, before there is one, writes zeros.
static void seal(const struct hands *hands, unsigned char *box, const unsigned char *text,
                 size_t size, const unsigned char nonce[24], const unsigned char *secret)
{
    if (crypto_box_easy(box, text, size, nonce, hands->session_public, secret) != 0)
        memset(box, 0, size + crypto_box_MACBYTES);
}

void hands_begin(struct hands *hands, const struct wire_keypair *server)
{
    assert(sodium_init() >= 0);
    memset(hands, 0, sizeof *hands);
    (void)crypto_box_keypair(hands->own.public_key, hands->own.secret_key);
    (void)crypto_box_keypair(hands->brief.public_key, hands->brief.secret_key);
    memcpy(hands->server_public, server->public_key, WIRE_KEY_SIZE);
    memcpy(hands->vouched, hands->brief.public_key, WIRE_KEY_SIZE);
    memcpy(hands->vouched + WIRE_KEY_SIZE, server->public_key, WIRE_KEY_SIZE);
}

size_t hands_hello(struct hands *hands, unsigned char out[HANDS_COMMAND_MAX])
{
    static const unsigned char zeros[64];
    unsigned char nonce[24], *at = out + head(out, 4, 200);
    memset(at, 0, 200);
    memcpy(at, "\5HELLO\1", 7);
    memcpy(at + 80, hands->brief.public_key, WIRE_KEY_SIZE);
    memcpy(at + 112, counted(nonce, "CurveZMQHELLO---", ++hands->nonce) + 16, 8);
    assert(crypto_box_easy(at + 120, zeros, sizeof zeros, nonce, hands->server_public,
                           hands->brief.secret_key) == 0);
    return (size_t)(at + 200 - out);
}

bool hands_welcome(struct hands *hands, const unsigned char *frame, size_t size)
{
    unsigned char nonce[24] = "WELCOME-", text[128];
    if (size != 170 || memcmp(frame, "\4\xa8\7WELCOME", 10) != 0)
        return false;
    memcpy(nonce + 8, frame + 10, 16);
    if (crypto_box_open_easy(text, frame + 26, 144, nonce, hands->server_public,
                             hands->brief.secret_key) != 0)
        return false;
    memcpy(hands->session_public, text, WIRE_KEY_SIZE);
    memcpy(hands->cookie, text + WIRE_KEY_SIZE, CURVE_COOKIE_SIZE);
    return true;
}

size_t hands_initiate(struct hands *hands, unsigned char out[HANDS_COMMAND_MAX],
                      const void *metadata, size_t size)
{
    unsigned char nonce[24] = "VOUCH---", text[HANDS_COMMAND_MAX];
    const size_t text_size = 128 + size - hands->left_off;
    unsigned char *at = out + head(out, 4, 113 + 16 + text_size);
    memcpy(text, hands->own.public_key, WIRE_KEY_SIZE);
    randombytes_buf(nonce + 8, 16);
    memcpy(text + 32, nonce + 8, 16);
    seal(hands, text + 48, hands->vouched, sizeof hands->vouched, nonce, hands->own.secret_key);
    memcpy(text + 128, metadata, size);
    memcpy(at, "\10INITIATE", 9);
    memcpy(at + 9, hands->cookie, CURVE_COOKIE_SIZE);
    memcpy(at + 105, counted(nonce, "CurveZMQINITIATE", ++hands->nonce) + 16, 8);
    seal(hands, at + 113, text, text_size, nonce, hands->brief.secret_key);
    return (size_t)(at + 113 + 16 + text_size - out);
}

size_t hands_message(struct hands *hands, unsigned char out[HANDS_COMMAND_MAX], unsigned char flags,
                     const void *payload, size_t size)
{
    unsigned char nonce[24], text[HANDS_COMMAND_MAX];
    unsigned char *at = out + head(out, 0, 33 + size);
    text[0] = flags;
    memcpy(text + 1, payload, size);
    memcpy(at, "\7MESSAGE", 8);
    memcpy(at + 8, counted(nonce, "CurveZMQMESSAGEC", ++hands->nonce) + 16, 8);
    seal(hands, at + 16, text, 1 + size, nonce, hands->brief.secret_key);
    return (size_t)(at + 33 + size - out);
}

bool hands_open(struct hands *hands, const char *nonce_prefix, const unsigned char *frame,
                size_t size, unsigned char *out, uint64_t *nonce)
{
    unsigned char full[24];
    const size_t header = frame[0] & 2 ? 9 : 2, name = 1U + frame[header];
    *nonce = 0;
    for (size_t i = 0; i < 8; i++)
        *nonce = *nonce << 8 | frame[header + name + i];
    return crypto_box_open_easy(out, frame + header + name + 8, size - header - name - 8,
                                counted(full, nonce_prefix, *nonce), hands->session_public,
                                hands->brief.secret_key) == 0;
}
