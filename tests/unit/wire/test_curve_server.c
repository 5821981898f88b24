// CURVE from the server's side: a client made by hand, and every way in which it may not be.
#include "common/wire/listener/curve_server.h"

#include <sodium.h>

#include "tests/support/test.h"
#include "tests/support/zmtp_rig.h"

enum { FRAME_MAX = 1000 };

#define GREETING                                                                                   \
    "\xff\0\0\0\0\0\0\0\1\x7f\3\1"                                                                 \
    "CURVE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                        \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define METADATA "\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\0"

struct scene {
    struct wire_keypair server;
    struct zmtp_rig rig;
    struct hands hands;
    unsigned char command[HANDS_COMMAND_MAX];
    size_t piece; // of what is sent
};

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    assert_true(sodium_init() >= 0);
    (void)crypto_box_keypair(scene->server.public_key, scene->server.secret_key);
    rig_begin(&scene->rig, FRAME_MAX, &scene->server);
    hands_begin(&scene->hands, &scene->server);
    scene->piece = SIZE_MAX;
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    rig_end(&scene->rig);
    free(scene);
    return 0;
}

static void begin_again(struct scene *scene)
{
    rig_end(&scene->rig);
    rig_begin(&scene->rig, FRAME_MAX, &scene->server);
    hands_begin(&scene->hands, &scene->server);
}

static void send(struct scene *scene, const void *bytes, size_t size)
{
    scene->rig.sent_size = 0;
    rig_feed(&scene->rig, bytes, size, scene->piece);
}

static void send_hello(struct scene *scene)
{
    send(scene, GREETING, ZMTP_GREETING_SIZE);
    const size_t size = hands_hello(&scene->hands, scene->command);
    send(scene, scene->command, size);
}

static void reach_welcome(struct scene *scene)
{
    send_hello(scene);
    assert_true(hands_welcome(&scene->hands, scene->rig.sent, scene->rig.sent_size));
}

static void send_initiate(struct scene *scene)
{
    const size_t size =
        hands_initiate(&scene->hands, scene->command, METADATA, sizeof METADATA - 1);
    send(scene, scene->command, size);
}

static void reach_ready(struct scene *scene)
{
    reach_welcome(scene);
    send_initiate(scene);
    assert_string_equal(scene->rig.trace, "admit ");
}

static void send_message(struct scene *scene, unsigned char flags, const char *payload, size_t size)
{
    send(scene, scene->command, hands_message(&scene->hands, scene->command, flags, payload, size));
}

static void assert_broken(const struct scene *scene, const char *trace, enum wire_cut cut)
{
    assert_string_equal(scene->rig.trace, trace);
    assert_int_equal(scene->rig.cut, cut);
}

// A whole conversation, in pieces of every size.
STATE_CASE(test_sound, struct scene *scene)
{
    unsigned char text[256];
    uint64_t nonce = 0, last = 0;
    for (size_t piece = 1; piece < 300; piece++) {
        begin_again(scene);
        scene->piece = piece;
        scene->rig.reads_direct = piece % 2;
        reach_ready(scene);
        assert_memory_equal(scene->rig.key, scene->hands.own.public_key, WIRE_KEY_SIZE);
        assert_true(hands_open(&scene->hands, "CurveZMQREADY---", scene->rig.sent,
                               scene->rig.sent_size, text, &last));
        assert_memory_equal(text, "\13Socket-Type\0\0\0\6ROUTER", 22);
        send_message(scene, 0, "hello", 5);
        send_message(scene, 0, "", 0);
        send_message(scene, 2, "\4PING\0\1abc", 10);
        assert_true(hands_open(&scene->hands, "CurveZMQMESSAGES", scene->rig.sent,
                               scene->rig.sent_size, text, &nonce));
        assert_memory_equal(text, "\2\4PONGabc", 9);
        assert_true(nonce > last);
        send_message(scene, 2, "\3SUB", 4);
        assert_string_equal(scene->rig.trace,
                            "admit frame 38 message hello frame 33 message  frame 43 ping abc "
                            "frame 37 command ");
    }
    for (int i = 0; i < 100; i++) {
        unsigned char out[400], opened[400], message[300] = "message";
        const size_t size = zmtp_frame_size(&scene->rig.zmtp, (size_t)i * 3);
        last = nonce;
        unsigned char *place = out + size - (size_t)i * 3;
        memcpy(place, message, (size_t)i * 3); // in place
        zmtp_frame(&scene->rig.zmtp, out, i % 2 ? message : place, (size_t)i * 3);
        assert_true(hands_open(&scene->hands, "CurveZMQMESSAGES", out, size, opened, &nonce));
        assert_int_equal(nonce, last + 1);
        assert_int_equal(opened[0], 0);
        assert_memory_equal(opened + 1, message, (size_t)i * 3);
    }
}

// One bit of a command differs: each is refused.
STATE_CASE(test_flipped, struct scene *scene)
{
    enum { HELLO, INITIATE, MESSAGE, COMMANDS };
    for (int which = 0; which < COMMANDS; which++) {
        size_t size = SIZE_MAX;
        for (size_t i = 2; i < size; i++) {
            begin_again(scene);
            if (which == HELLO)
                send(scene, GREETING, ZMTP_GREETING_SIZE);
            else if (which == INITIATE)
                reach_welcome(scene);
            else
                reach_ready(scene);
            size =
                which == HELLO ? hands_hello(&scene->hands, scene->command)
                : which == INITIATE
                    ? hands_initiate(&scene->hands, scene->command, METADATA, sizeof METADATA - 1)
                    : hands_message(&scene->hands, scene->command, 0, "hello", 5);
            if ((which == INITIATE && i < 9) || (which == HELLO && i >= 10 && i < 82))
                continue; // the rest of INITIATE's frame header; HELLO's padding
            scene->command[i] ^= (unsigned char)(1U << i % 8);
            send(scene, scene->command, size);
            if (!scene->rig.is_broken || scene->rig.cut != WIRE_CUT_KEYS)
                fail_msg("byte %zu of %d was taken: %s", i, which, scene->rig.trace);
        }
    }
}

// What the client got wrong, or means to get wrong.
static void spoil_server_key(struct scene *scene)
{
    scene->hands.server_public[7] ^= 1;
    send_hello(scene);
}

static void spoil_client_key(struct scene *scene)
{
    send(scene, GREETING, ZMTP_GREETING_SIZE);
    const size_t size = hands_hello(&scene->hands, scene->command);
    memset(scene->command + 82, 0, WIRE_KEY_SIZE); // a point of low order
    send(scene, scene->command, size);
}

static void spoil_order(struct scene *scene)
{
    send(scene, GREETING, ZMTP_GREETING_SIZE);
    send_initiate(scene);
}

static void spoil_early(struct scene *scene)
{
    reach_welcome(scene);
    const size_t size = hands_message(&scene->hands, scene->command, 0, "hello", 5);
    scene->command[0] = 4; // as a command; as a message it is refused for that
    send(scene, scene->command, size);
}

static void spoil_hello_twice(struct scene *scene)
{
    reach_welcome(scene);
    send(scene, scene->command, hands_hello(&scene->hands, scene->command));
}

static void spoil_initiate_nonce(struct scene *scene)
{
    reach_welcome(scene);
    scene->hands.nonce = 0;
    send_initiate(scene);
}

static void spoil_cookie(struct scene *scene)
{
    reach_welcome(scene);
    scene->hands.cookie[95] ^= 0x80;
    send_initiate(scene);
}

static void spoil_old_cookie(struct scene *scene)
{
    reach_welcome(scene);
    const struct hands before = scene->hands;
    begin_again(scene);
    reach_welcome(scene);
    memcpy(scene->hands.cookie, before.cookie, CURVE_COOKIE_SIZE);
    send_initiate(scene);
}

static void spoil_vouched_client(struct scene *scene)
{
    reach_welcome(scene);
    scene->hands.vouched[0] ^= 1;
    send_initiate(scene);
}

static void spoil_vouched_server(struct scene *scene)
{
    reach_welcome(scene);
    scene->hands.vouched[WIRE_KEY_SIZE] ^= 1;
    send_initiate(scene);
}

// A client that claims the key of another, whose secret key it does not know.
static void spoil_owner(struct scene *scene)
{
    struct hands other;
    hands_begin(&other, &scene->server);
    reach_welcome(scene);
    memcpy(scene->hands.own.public_key, other.own.public_key, WIRE_KEY_SIZE);
    send_initiate(scene);
}

static void spoil_owner_zero(struct scene *scene)
{
    reach_welcome(scene);
    memset(scene->hands.own.public_key, 0, WIRE_KEY_SIZE);
    send_initiate(scene);
}

static void spoil_size(struct scene *scene)
{
    reach_welcome(scene);
    scene->hands.left_off = 1;
    send(scene, scene->command, hands_initiate(&scene->hands, scene->command, METADATA, 0));
}

static void spoil_size_most(struct scene *scene)
{
    reach_welcome(scene);
    scene->hands.left_off = 128;
    send(scene, scene->command, hands_initiate(&scene->hands, scene->command, METADATA, 0));
}

TEST_CASE(test_spoilt)
{
    static void (*const cases[])(struct scene *) = {
        spoil_server_key,     spoil_client_key,     spoil_order,  spoil_early,
        spoil_hello_twice,    spoil_initiate_nonce, spoil_cookie, spoil_old_cookie,
        spoil_vouched_client, spoil_vouched_server, spoil_owner,  spoil_owner_zero,
        spoil_size,           spoil_size_most};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        void *scene = NULL;
        assert_int_equal(setup(&scene), 0);
        cases[i](scene);
        const struct zmtp_rig *rig = &((struct scene *)scene)->rig;
        if (strcmp(rig->trace, "broken ") != 0 || rig->cut != WIRE_CUT_KEYS)
            fail_msg("case %zu: %s(%d)", i, rig->trace, (int)rig->cut);
        assert_int_equal(teardown(&scene), 0);
    }
}

STATE_CASE(test_early_message, struct scene *scene)
{
    reach_welcome(scene);
    send_message(scene, 0, "hello", 5);
    assert_broken(scene, "broken ", WIRE_CUT_GARBAGE);
}

STATE_CASE(test_repeated, struct scene *scene)
{
    reach_ready(scene);
    send_message(scene, 0, "hello", 5);
    send(scene, scene->command, hands_message(&scene->hands, scene->command, 0, "again", 5));
    const size_t size = hands_message(&scene->hands, scene->command, 0, "late", 4);
    scene->hands.nonce += 1000; // numbers may be left out
    unsigned char later[HANDS_COMMAND_MAX];
    const size_t later_size = hands_message(&scene->hands, later, 0, "later", 5);
    send(scene, later, later_size);
    send(scene, scene->command, size);
    assert_broken(scene,
                  "admit frame 38 message hello frame 38 message again frame 38 message later "
                  "frame 37 broken ",
                  WIRE_CUT_KEYS);
    begin_again(scene);
    reach_ready(scene);
    send_message(scene, 0, "hello", 5);
    send(scene, scene->command, 2 + CURVE_MESSAGE_OVERHEAD + 5);
    assert_broken(scene, "admit frame 38 message hello frame 38 broken ", WIRE_CUT_KEYS);
}

// A message of another connection, and one that the server sent, are refused.
STATE_CASE(test_reflected, struct scene *scene)
{
    unsigned char out[HANDS_COMMAND_MAX];
    reach_ready(scene);
    zmtp_frame(&scene->rig.zmtp, out, "hello", 5);
    send(scene, out, zmtp_frame_size(&scene->rig.zmtp, 5));
    assert_broken(scene, "admit frame 38 broken ", WIRE_CUT_KEYS);

    begin_again(scene);
    reach_ready(scene);
    const size_t size = hands_message(&scene->hands, out, 0, "hello", 5);
    begin_again(scene);
    reach_ready(scene);
    send(scene, out, size);
    assert_broken(scene, "admit frame 38 broken ", WIRE_CUT_KEYS);
}

STATE_CASE(test_refused, struct scene *scene)
{
    scene->rig.refuses = true;
    reach_welcome(scene);
    send_initiate(scene);
    assert_broken(scene, "admit broken ", WIRE_CUT_STRANGER);
    assert_int_equal(scene->rig.sent_size, 12);
    assert_memory_equal(scene->rig.sent, "\4\12\5ERROR\003400", 12);

    static const char named[] = METADATA "\10Identity\0\0\0\1x";
    begin_again(scene);
    reach_welcome(scene);
    send(scene, scene->command,
         hands_initiate(&scene->hands, scene->command, named, sizeof named - 1));
    assert_broken(scene, "broken ", WIRE_CUT_ROUTING_ID);
    assert_memory_equal(scene->rig.sent, "\4\12\5ERROR\003400", 12);
}

// Frames that are refused before anything is received of them, and what is inside of others.
STATE_CASE(test_frames, struct scene *scene)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *trace;
        enum wire_cut cut;
    } headers[] = {
        {"\0\x20", 2, "admit broken ", WIRE_CUT_GARBAGE},
        {"\0\0", 2, "admit broken ", WIRE_CUT_GARBAGE},
        {"\1\x21", 2, "admit broken ", WIRE_CUT_FRAMES},
        {"\2\0\0\0\0\0\0\4\x0a", 9, "admit broken ", WIRE_CUT_FRAME_SIZE},
        {"\2\0\0\0\0\0\0\4\x09", 9, "admit frame 1033 ", WIRE_CUT_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        begin_again(scene);
        reach_ready(scene);
        send(scene, headers[i].bytes, headers[i].size);
        assert_broken(scene, headers[i].trace, headers[i].cut);
    }
    static const unsigned char flags[] = {1, 3, 4, 128};
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        begin_again(scene);
        reach_ready(scene);
        send_message(scene, flags[i], "x", 1);
        assert_broken(scene, "admit frame 34 broken ", i ? WIRE_CUT_GARBAGE : WIRE_CUT_FRAMES);
    }
    begin_again(scene);
    reach_ready(scene);
    for (int i = 0; i < 10; i++) // each is a message of its own
        send_message(scene, 0, scene->rig.trace, FRAME_MAX / 2 + 1);
    assert_false(scene->rig.is_broken);
}

// Secrets are gone when the handshake is over, and all keys at the end.
STATE_CASE(test_wiped, struct scene *scene)
{
    reach_ready(scene);
    const struct curve_server *curve = &scene->rig.zmtp.curve;
    assert_true(sodium_is_zero((const unsigned char *)&curve->handshake, sizeof curve->handshake));
    assert_false(sodium_is_zero(curve->shared, sizeof curve->shared));
    zmtp_deinit(&scene->rig.zmtp);
    assert_true(sodium_is_zero((const unsigned char *)curve, sizeof *curve));
}

TEST_MAIN_EACH(setup, teardown, test_sound, test_flipped, test_spoilt, test_early_message,
               test_repeated, test_reflected, test_refused, test_frames, test_wiped)
