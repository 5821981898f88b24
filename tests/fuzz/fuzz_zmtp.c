// A server's connection under libFuzzer.  The first byte chooses the mechanism, the size of the
// pieces and how rooms are filled.  Without keys the rest are the bytes received, after a sound
// greeting or a sound handshake where that byte says so.  With keys the rest chooses commands of a
// client that has keys, with contents of its own, and where a bit of them is wrong.

#include <sodium.h>

#include "tests/fuzz/fuzz.h"
#include "tests/support/zmtp_rig.h"

enum { FRAME_MAX = 600 };

static const char greeting[ZMTP_GREETING_SIZE] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
static const char curve_greeting[ZMTP_GREETING_SIZE] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1CURVE";
static const char ready[] = "\4\x1c\5READY\13Socket-Type\0\0\0\6DEALER";

// What is true of a connection at any time.
static void check_rig(const struct zmtp_rig *rig)
{
    check(rig->is_broken == (rig->cut != WIRE_CUT_NONE) && rig->cut < WIRE_CUTS);
    check(!rig->room || rig->zmtp.size <= FRAME_MAX + CURVE_MESSAGE_OVERHEAD);
}

static void feed_bytes(struct zmtp_rig *rig, uint8_t how, struct input *input, size_t piece)
{
    if (how & 8)
        rig_feed(rig, greeting, sizeof greeting, piece);
    if (how & 16)
        rig_feed(rig, ready, sizeof ready - 1, piece);
    rig_feed(rig, input->data, input->size, piece);
    check_rig(rig);
}

static void feed_commands(struct zmtp_rig *rig, const struct wire_keypair *server,
                          struct input *input, size_t piece)
{
    struct hands hands;
    unsigned char command[HANDS_COMMAND_MAX];
    hands_begin(&hands, server);
    rig_feed(rig, curve_greeting, sizeof curve_greeting, piece);
    for (unsigned step = 0; input->size > 0 && !rig->is_broken; step++) {
        const uint64_t choice = take(input, 1);
        size_t content = (size_t)take(input, 2) % 900, size;
        content = content < input->size ? content : input->size;
        rig->sent_size = 0;
        if (step == 0 && !(choice & 1))
            size = hands_hello(&hands, command);
        else if (step == 1 && !(choice & 1))
            size = hands_initiate(&hands, command, input->data, content);
        else
            size =
                hands_message(&hands, command, (unsigned char)(choice >> 4), input->data, content);
        input->data += content;
        input->size -= content;
        if (choice & 2)
            command[take(input, 2) % size] ^= (unsigned char)(1U << (take(input, 1) & 7));
        rig_feed(rig, command, size, piece);
        if (step == 0 && !rig->is_broken)
            check(hands_welcome(&hands, rig->sent, rig->sent_size) || choice & 2);
        check_rig(rig);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct zmtp_rig rig;
    static struct wire_keypair server;
    if (server.public_key[0] == 0 && server.public_key[1] == 0)
        (void)crypto_box_keypair(server.public_key, server.secret_key);
    struct input input = {data, size};
    const uint8_t how = (uint8_t)take(&input, 1);
    const size_t piece = 1 + (how >> 5) * 37U;
    rig_begin(&rig, FRAME_MAX, how & 1 ? &server : NULL);
    rig.refuses = (how & 6) == 6;
    rig.reads_direct = how & 2;
    if (how & 1)
        feed_commands(&rig, &server, &input, piece);
    else
        feed_bytes(&rig, how, &input, piece);
    rig_end(&rig);
    return 0;
}
