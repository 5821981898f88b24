#include "common/wire/listener/zmtp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Of a frame's first byte.
enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4 };

// Of the first byte inside a CURVE message.
enum { CURVE_MORE = 1, CURVE_COMMAND = 2 };

enum { SHORT_HEADER = 2, LONG_HEADER = 9, SHORT_MAX = 255 };

// What is expected next.  Without keys there is no STAGE_HELLO, and READY takes INITIATE's place.
enum { STAGE_GREETING, STAGE_HELLO, STAGE_INITIATE, STAGE_DECISION, STAGE_TRAFFIC, STAGE_BROKEN };

enum { PART_HEADER, PART_ROOM, PART_BODY };

enum {
    GREETING_SIGNATURE_END = 9, // where the signature's last byte lies
    GREETING_VERSION = 10,
    GREETING_MECHANISM = 12,
    MECHANISM_SIZE = 20,
    GREETING_SERVER = GREETING_MECHANISM + MECHANISM_SIZE,
    PING_HEAD = 7, // name and time to live
};

// Properties of the server, in READY.
static const char own_metadata[] = "\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0\0";
enum { OWN_METADATA_SIZE = sizeof own_metadata - 1 };
_Static_assert(OWN_METADATA_SIZE + CURVE_READY_OVERHEAD + SHORT_HEADER <= ZMTP_REPLY_MAX, "READY");
_Static_assert(CURVE_WELCOME_SIZE + SHORT_HEADER <= ZMTP_REPLY_MAX, "WELCOME");

static const char *mechanism(const struct zmtp *zmtp)
{
    return zmtp->rules->keys ? "CURVE" : "NULL";
}

static void break_off(struct zmtp *zmtp, struct zmtp_step *out, enum wire_cut cut)
{
    zmtp->stage = STAGE_BROKEN;
    out->kind = ZMTP_BROKEN;
    out->cut = cut;
}

// As break_off, and says so to the peer.
static void refuse(struct zmtp *zmtp, struct zmtp_step *out, enum wire_cut cut)
{
    static const char error[] = "\4\12\5ERROR\003400"; // a command of 10 bytes
    break_off(zmtp, out, cut);
    out->reply_size = sizeof error - 1;
    memcpy(out->reply, error, sizeof error - 1);
}

// ---- Sending ---------------------------------------------------------------------

// Writes a frame's header; returns its size.
static size_t put_header(unsigned char *out, unsigned flags, uint64_t size)
{
    if (size <= SHORT_MAX) {
        out[0] = (unsigned char)flags;
        out[1] = (unsigned char)size;
        return SHORT_HEADER;
    }
    out[0] = (unsigned char)(flags | FLAG_LONG);
    for (int i = 1; i < LONG_HEADER; i++)
        out[i] = (unsigned char)(size >> (64 - 8 * i));
    return LONG_HEADER;
}

static size_t overhead(const struct zmtp *zmtp)
{
    return zmtp->rules->keys ? CURVE_MESSAGE_OVERHEAD : 0;
}

size_t zmtp_frame_size(const struct zmtp *zmtp, size_t size)
{
    size += overhead(zmtp);
    return size + (size <= SHORT_MAX ? SHORT_HEADER : LONG_HEADER);
}

// CURVE hides what is a command inside of the frame.
static void put_frame(struct zmtp *zmtp, unsigned char *out, bool is_command, const void *bytes,
                      size_t size)
{
    if (zmtp->rules->keys) {
        out += put_header(out, 0, size + CURVE_MESSAGE_OVERHEAD);
        curve_server_seal(&zmtp->curve, out, is_command ? CURVE_COMMAND : 0, bytes, size);
        return;
    }
    out += put_header(out, is_command ? FLAG_COMMAND : 0, size);
    if (size > 0)
        memmove(out, bytes, size);
}

void zmtp_frame(struct zmtp *zmtp, unsigned char *out, const void *message, size_t size)
{
    put_frame(zmtp, out, false, message, size);
}

size_t zmtp_pong(struct zmtp *zmtp, const struct zmtp_step *ping, unsigned char out[ZMTP_PONG_MAX])
{
    unsigned char pong[5 + ZMTP_CONTEXT_MAX] = "\4PONG";
    memcpy(pong + 5, ping->context, ping->size);
    put_frame(zmtp, out, true, pong, 5 + ping->size);
    return zmtp_frame_size(zmtp, 5 + ping->size);
}

// ---- Greeting --------------------------------------------------------------------

void zmtp_init(struct zmtp *zmtp, const struct zmtp_rules *rules, struct zmtp_step *out)
{
    memset(zmtp, 0, sizeof *zmtp);
    zmtp->rules = rules;
    out->kind = ZMTP_REPLY;
    out->reply_size = ZMTP_GREETING_SIZE;
    memset(out->reply, 0, ZMTP_GREETING_SIZE);
    out->reply[0] = 0xff;
    out->reply[GREETING_SIGNATURE_END] = 0x7f;
    out->reply[GREETING_VERSION] = 3;
    out->reply[GREETING_VERSION + 1] = 1;
    memcpy(out->reply + GREETING_MECHANISM, mechanism(zmtp), strlen(mechanism(zmtp)));
    out->reply[GREETING_SERVER] = rules->keys != NULL;
}

// Checks as much as is there, so that what is not ZMTP fails at its first byte.
static size_t take_greeting(struct zmtp *zmtp, const unsigned char *bytes, size_t size,
                            struct zmtp_step *out)
{
    unsigned char *head = zmtp->head, wanted[MECHANISM_SIZE] = {0};
    const size_t left = ZMTP_GREETING_SIZE - zmtp->head_have, used = size < left ? size : left;
    memcpy(head + zmtp->head_have, bytes, used);
    const size_t have = zmtp->head_have += used;
    memcpy(wanted, mechanism(zmtp), strlen(mechanism(zmtp)));
    if ((have > 0 && head[0] != 0xff) ||
        (have > GREETING_SIGNATURE_END && !(head[GREETING_SIGNATURE_END] & 1)) ||
        (have > GREETING_VERSION && head[GREETING_VERSION] < 3) ||
        (have >= GREETING_SERVER && memcmp(head + GREETING_MECHANISM, wanted, sizeof wanted) != 0))
        break_off(zmtp, out, WIRE_CUT_GREETING);
    else if (have == ZMTP_GREETING_SIZE) {
        zmtp->stage = zmtp->rules->keys ? STAGE_HELLO : STAGE_INITIATE;
        zmtp->head_have = 0;
    }
    return used;
}

// ---- Handshake -------------------------------------------------------------------

static bool is_named(const unsigned char *name, size_t size, const char *wanted)
{
    return size == strlen(wanted) && strncasecmp((const char *)name, wanted, size) == 0;
}

// Reads the peer's properties: each has a size of 1 byte, a name, a size of 4 bytes and a value.
static void take_metadata(struct zmtp *zmtp, const unsigned char *bytes, size_t size,
                          struct zmtp_step *out)
{
    while (size > 0) {
        const size_t name_size = bytes[0];
        const unsigned char *name = bytes + 1, *value = name + name_size + 4;
        if (name_size == 0 || size < 1 + name_size + 4) {
            break_off(zmtp, out, WIRE_CUT_GARBAGE);
            return;
        }
        const size_t value_size = (size_t)value[-4] << 24 | (size_t)value[-3] << 16 |
                                  (size_t)value[-2] << 8 | (size_t)value[-1];
        size -= 1 + name_size + 4;
        if (value_size > size) {
            break_off(zmtp, out, WIRE_CUT_GARBAGE);
            return;
        }
        if (is_named(name, name_size, "Identity") && value_size > 0) {
            refuse(zmtp, out, WIRE_CUT_ROUTING_ID);
            return;
        }
        if (is_named(name, name_size, "Socket-Type") &&
            (value_size != 6 || memcmp(value, "DEALER", 6) != 0)) {
            refuse(zmtp, out, WIRE_CUT_GARBAGE);
            return;
        }
        bytes = value + value_size;
        size -= value_size;
    }
    zmtp->stage = STAGE_DECISION;
    out->kind = ZMTP_ADMIT;
}

static void take_hello(struct zmtp *zmtp, struct zmtp_step *out)
{
    const size_t header = put_header(out->reply, FLAG_COMMAND, CURVE_WELCOME_SIZE);
    if (!curve_server_hello(&zmtp->curve, zmtp->rules->keys, zmtp->command, zmtp->size,
                            out->reply + header)) {
        break_off(zmtp, out, WIRE_CUT_KEYS);
        return;
    }
    zmtp->stage = STAGE_INITIATE;
    out->kind = ZMTP_REPLY;
    out->reply_size = header + CURVE_WELCOME_SIZE;
}

static void take_initiate(struct zmtp *zmtp, struct zmtp_step *out)
{
    struct curve_client client;
    if (!curve_server_initiate(&zmtp->curve, zmtp->rules->keys, zmtp->command, zmtp->size,
                               &client)) {
        break_off(zmtp, out, WIRE_CUT_KEYS);
        return;
    }
    memcpy(out->key, client.key, sizeof out->key);
    take_metadata(zmtp, client.metadata, client.metadata_size, out);
}

static void take_ready(struct zmtp *zmtp, struct zmtp_step *out)
{
    if (zmtp->size < 6 || memcmp(zmtp->command, "\5READY", 6) != 0)
        break_off(zmtp, out, WIRE_CUT_GARBAGE);
    else
        take_metadata(zmtp, zmtp->command + 6, zmtp->size - 6, out);
}

static void take_handshake(struct zmtp *zmtp, struct zmtp_step *out)
{
    if (zmtp->stage == STAGE_HELLO)
        take_hello(zmtp, out);
    else if (zmtp->rules->keys)
        take_initiate(zmtp, out);
    else
        take_ready(zmtp, out);
    free(zmtp->command);
    zmtp->command = NULL;
}

void zmtp_admit(struct zmtp *zmtp, bool is_admitted, struct zmtp_step *out)
{
    assert(zmtp->stage == STAGE_DECISION);
    if (!is_admitted) {
        refuse(zmtp, out, WIRE_CUT_STRANGER);
        return;
    }
    unsigned char ready[6 + OWN_METADATA_SIZE] = "\5READY";
    memcpy(ready + 6, own_metadata, OWN_METADATA_SIZE);
    const size_t size = zmtp->rules->keys ? OWN_METADATA_SIZE + CURVE_READY_OVERHEAD : sizeof ready;
    const size_t header = put_header(out->reply, FLAG_COMMAND, size);
    if (zmtp->rules->keys)
        curve_server_ready(&zmtp->curve, out->reply + header, ready + 6, OWN_METADATA_SIZE);
    else
        memcpy(out->reply + header, ready, size);
    zmtp->stage = STAGE_TRAFFIC;
    out->kind = ZMTP_REPLY;
    out->reply_size = header + size;
}

// ---- Frames ----------------------------------------------------------------------

// A command is received into memory of its own in the handshake, and up to the size of `head`
// later: no more of it is read.
static void begin_command(struct zmtp *zmtp, uint64_t size, struct zmtp_step *out)
{
    zmtp->body = NULL;
    if (size == 0)
        break_off(zmtp, out, WIRE_CUT_GARBAGE);
    else if (size > ZMTP_COMMAND_MAX)
        break_off(zmtp, out, WIRE_CUT_FRAME_SIZE);
    else if (zmtp->stage != STAGE_TRAFFIC) {
        zmtp->body = zmtp->command = malloc(size);
        if (!zmtp->command)
            break_off(zmtp, out, WIRE_CUT_SLOW_FRAME);
    }
}

static void begin_frame(struct zmtp *zmtp, uint64_t size, struct zmtp_step *out)
{
    const bool has_keys = zmtp->rules->keys != NULL, is_traffic = zmtp->stage == STAGE_TRAFFIC;
    const bool is_marked = (zmtp->flags & FLAG_COMMAND) != 0;
    const bool is_command = !is_traffic || (is_marked && !has_keys);
    zmtp->part = PART_BODY;
    zmtp->have = 0;
    if (is_command ? !is_marked : has_keys && size < CURVE_MESSAGE_OVERHEAD)
        break_off(zmtp, out, WIRE_CUT_GARBAGE);
    else if (is_command)
        begin_command(zmtp, size, out);
    else if (zmtp->flags & FLAG_MORE)
        break_off(zmtp, out, WIRE_CUT_FRAMES);
    else if (size - overhead(zmtp) > zmtp->rules->frame_max)
        break_off(zmtp, out, WIRE_CUT_FRAME_SIZE);
    else {
        zmtp->part = PART_ROOM;
        out->kind = ZMTP_FRAME;
        out->size = (size_t)size;
    }
    zmtp->size = (size_t)size;
}

static size_t take_header(struct zmtp *zmtp, const unsigned char *bytes, size_t size,
                          struct zmtp_step *out)
{
    size_t used = 0;
    while (used < size && zmtp->part == PART_HEADER && zmtp->stage != STAGE_BROKEN) {
        zmtp->head[zmtp->head_have++] = bytes[used++];
        zmtp->flags = zmtp->head[0];
        const size_t all = zmtp->flags & FLAG_LONG ? LONG_HEADER : SHORT_HEADER;
        if (zmtp->flags & ~(FLAG_MORE | FLAG_LONG | FLAG_COMMAND) ||
            (zmtp->flags & FLAG_MORE && zmtp->flags & FLAG_COMMAND)) {
            break_off(zmtp, out, WIRE_CUT_GARBAGE);
        } else if (zmtp->head_have == all) {
            uint64_t announced = 0;
            for (size_t i = 1; i < all; i++)
                announced = announced << 8 | zmtp->head[i];
            zmtp->head_have = 0;
            begin_frame(zmtp, announced, out);
        }
    }
    return used;
}

// A command after the handshake; of a large one only the beginning is there.
static void take_command(struct zmtp *zmtp, const unsigned char *command, size_t size,
                         struct zmtp_step *out)
{
    if (size == 0 || command[0] == 0 || command[0] >= size) {
        break_off(zmtp, out, WIRE_CUT_GARBAGE);
        return;
    }
    out->kind = ZMTP_COMMAND;
    if (size < 5 || memcmp(command, "\4PING", 5) != 0)
        return;
    if (size < PING_HEAD || size > PING_HEAD + ZMTP_CONTEXT_MAX) {
        break_off(zmtp, out, WIRE_CUT_GARBAGE);
        return;
    }
    out->kind = ZMTP_PING;
    out->size = size - PING_HEAD;
    memcpy(out->context, command + PING_HEAD, out->size);
}

static void end_message(struct zmtp *zmtp, struct zmtp_step *out)
{
    const size_t before = overhead(zmtp);
    out->kind = ZMTP_MESSAGE;
    out->message = zmtp->body ? zmtp->body + before : NULL;
    out->size = zmtp->size - before;
}

static void end_frame(struct zmtp *zmtp, struct zmtp_step *out)
{
    zmtp->part = PART_HEADER;
    if (zmtp->stage != STAGE_TRAFFIC) {
        take_handshake(zmtp, out);
        return;
    }
    if (!zmtp->rules->keys) {
        if (zmtp->flags & FLAG_COMMAND)
            take_command(zmtp, zmtp->head, zmtp->size, out);
        else
            end_message(zmtp, out);
        return;
    }
    unsigned char flags = 0;
    if (!curve_server_open(&zmtp->curve, zmtp->body, zmtp->size, &flags)) {
        break_off(zmtp, out, WIRE_CUT_KEYS);
    } else if (flags == CURVE_COMMAND) {
        take_command(zmtp, zmtp->body + CURVE_MESSAGE_OVERHEAD, zmtp->size - CURVE_MESSAGE_OVERHEAD,
                     out);
    } else if (flags != 0) {
        break_off(zmtp, out, flags == CURVE_MORE ? WIRE_CUT_FRAMES : WIRE_CUT_GARBAGE);
    } else {
        end_message(zmtp, out);
    }
}

static size_t take_body(struct zmtp *zmtp, const unsigned char *bytes, size_t size)
{
    const size_t left = zmtp->size - zmtp->have, used = size < left ? size : left;
    if (zmtp->body && used > 0 && bytes != zmtp->body + zmtp->have)
        memcpy(zmtp->body + zmtp->have, bytes, used);
    else if (!zmtp->body && zmtp->flags & FLAG_COMMAND && zmtp->have < sizeof zmtp->head) {
        const size_t room = sizeof zmtp->head - zmtp->have;
        memcpy(zmtp->head + zmtp->have, bytes, used < room ? used : room);
    }
    zmtp->have += used;
    return used;
}

size_t zmtp_consume(struct zmtp *zmtp, const void *bytes, size_t size, struct zmtp_step *out)
{
    const unsigned char *in = bytes;
    size_t used = 0;
    out->kind = ZMTP_MORE;
    out->cut = WIRE_CUT_NONE;
    out->reply_size = 0;
    do {
        assert(zmtp->stage != STAGE_DECISION && zmtp->stage != STAGE_BROKEN);
        assert(zmtp->part != PART_ROOM);
        if (zmtp->stage == STAGE_GREETING) {
            used += take_greeting(zmtp, in + used, size - used, out);
            continue;
        }
        if (zmtp->part == PART_HEADER)
            used += take_header(zmtp, in + used, size - used, out);
        if (zmtp->part == PART_BODY && zmtp->stage != STAGE_BROKEN) {
            used += take_body(zmtp, in + used, size - used);
            if (zmtp->have == zmtp->size)
                end_frame(zmtp, out);
        }
    } while (out->kind == ZMTP_MORE && used < size);
    return used;
}

void zmtp_room(struct zmtp *zmtp, void *room)
{
    assert(zmtp->part == PART_ROOM && (room || zmtp->size == 0));
    zmtp->body = room;
    zmtp->part = PART_BODY;
}

void *zmtp_room_left(const struct zmtp *zmtp, size_t *size)
{
    const bool is_receiving = zmtp->stage == STAGE_TRAFFIC && zmtp->part == PART_BODY && zmtp->body;
    *size = is_receiving ? zmtp->size - zmtp->have : 0;
    return is_receiving ? zmtp->body + zmtp->have : NULL;
}

void zmtp_deinit(struct zmtp *zmtp)
{
    free(zmtp->command);
    zmtp->command = NULL;
    zmtp->stage = STAGE_BROKEN;
    curve_server_deinit(&zmtp->curve);
}
