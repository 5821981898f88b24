// A server's connection without keys: every split of the bytes, and every way to break the rules.
#include "common/wire/listener/zmtp.h"

#include "tests/support/test.h"
#include "tests/support/zmtp_rig.h"

enum { FRAME_MAX = 1000, STREAM_MAX = 4096 };

#define GREETING_HEAD    "\xff\0\0\0\0\0\0\0\1\x7f"
#define ZEROS_10         "\0\0\0\0\0\0\0\0\0\0"
#define ZEROS_16         ZEROS_10 "\0\0\0\0\0\0"
#define GREETING         GREETING_HEAD "\3\1NULL" ZEROS_16 "\0" ZEROS_10 ZEROS_10 ZEROS_10 "\0"
#define TYPE(text, size) "\13Socket-Type\0\0\0" size text
#define READY_ALONE      "\4\x1c\5READY" TYPE("DEALER", "\6")
#define START            GREETING READY_ALONE

struct stream {
    const char *bytes;
    size_t size;
    const char *trace; // what follows
    enum wire_cut cut; // where it breaks
    bool refuses;
    bool is_told; // the peer is told so by an ERROR of status 400
};
#define SOUND(text, wanted)                                                                        \
    {                                                                                              \
        text, sizeof(text) - 1, wanted, WIRE_CUT_NONE, false, false                                \
    }
#define BROKEN(text, wanted, cut)                                                                  \
    {                                                                                              \
        text, sizeof(text) - 1, wanted, WIRE_CUT_##cut, false, false                               \
    }
#define TOLD(text, wanted, cut, refuses)                                                           \
    {                                                                                              \
        text, sizeof(text) - 1, wanted, WIRE_CUT_##cut, refuses, true                              \
    }

static void check_stream(const struct stream *stream, const struct zmtp_rig *rig, size_t place)
{
    static const char error[] = "\4\12\5ERROR\003400";
    const size_t size = sizeof error - 1;
    if (strcmp(rig->trace, stream->trace) != 0 || rig->cut != stream->cut)
        fail_msg("\"%s\" (%d) instead of \"%s\" (%d), at %zu", rig->trace, (int)rig->cut,
                 stream->trace, (int)stream->cut, place);
    const bool is_told =
        rig->sent_size >= size && memcmp(rig->sent + rig->sent_size - size, error, size) == 0;
    assert_int_equal(is_told, stream->is_told);
}

static void feed(struct zmtp_rig *rig, const struct stream *stream)
{
    rig_begin(rig, FRAME_MAX, NULL);
    rig->refuses = stream->refuses;
}

// In one piece, in pieces of one size, and in two pieces split at each place.
static void check_all_splits(const struct stream *stream)
{
    static struct zmtp_rig rig;
    for (size_t piece = 1; piece <= stream->size; piece = piece < 80 ? piece + 1 : piece * 2) {
        feed(&rig, stream);
        rig.reads_direct = piece % 2;
        rig_feed(&rig, stream->bytes, stream->size, piece);
        check_stream(stream, &rig, piece);
        rig_end(&rig);
    }
    for (size_t i = 0; i <= stream->size; i++) {
        feed(&rig, stream);
        rig_feed(&rig, stream->bytes, i, i + 1);
        rig_feed(&rig, stream->bytes + i, stream->size - i, stream->size);
        check_stream(stream, &rig, i);
        rig_end(&rig);
    }
}

static void check_streams(const struct stream *streams, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_all_splits(&streams[i]);
}

TEST_CASE(test_sound)
{
    static const struct stream streams[] = {
        SOUND("", ""),
        SOUND(GREETING, ""),
        SOUND(START, "admit "),
        // A later version of ZMTP 3, and other bytes that do not matter.
        SOUND("\xff"
              "12345678\x7f\4\0NULL" ZEROS_16 "\1" ZEROS_10 ZEROS_10 "0123456789x" READY_ALONE,
              "admit "),
        SOUND(GREETING "\4\6\5READY", "admit "),
        SOUND(GREETING "\4\x29\5READY" TYPE("DEALER", "\6") "\10Identity\0\0\0\0", "admit "),
        SOUND(GREETING "\4\x23\5READY" TYPE("DEALER", "\6") "\2X-\0\0\0\0", "admit "),
        SOUND(GREETING "\6\0\0\0\0\0\0\0\x1c\5READY" TYPE("DEALER", "\6"), "admit "),
        SOUND(START "\0\5hello", "admit frame 5 message hello "),
        SOUND(START "\0\0\0\1x", "admit frame 0 message  frame 1 message x "),
        SOUND(START "\2\0\0\0\0\0\0\0\3abc", "admit frame 3 message abc "),
        // Commands.
        SOUND(START "\4\x0a\4PING\0\1abc\0\1x", "admit ping abc frame 1 message x "),
        SOUND(START "\4\x17\4PING\0\1"
                    "0123456789abcdef",
              "admit ping 0123456789abcdef "),
        SOUND(START "\4\2\1x\4\5\4PONG\4\6\5ERROR", "admit command command command "),
        SOUND(START "\4\x50\4LONG"
                    "0123456789abcde"
                    "0123456789abcde"
                    "0123456789abcde"
                    "0123456789abcde"
                    "0123456789abcde\0\1x",
              "admit command frame 1 message x "),
        SOUND(START "\4\4\3PIN\4\7\4PINK\0\0", "admit command command "),
    };
    check_streams(streams, COUNT_OF(streams));
}

TEST_CASE(test_broken)
{
    static const struct stream streams[] = {
        // What is no ZMTP 3 fails at the first byte that differs.
        BROKEN("G", "broken ", GREETING),
        BROKEN("\1\0", "broken ", GREETING),
        BROKEN("\xff\0\0\0\0\0\0\0\1\x7e", "broken ", GREETING),
        BROKEN(GREETING_HEAD "\1", "broken ", GREETING),
        BROKEN(GREETING_HEAD "\2", "broken ", GREETING),
        BROKEN(GREETING_HEAD "\3\1CURVE\0\0\0\0\0" ZEROS_10, "broken ", GREETING),
        BROKEN(GREETING_HEAD "\3\1NULLx\0\0\0\0\0" ZEROS_10, "broken ", GREETING),
        // Handshakes.
        BROKEN(GREETING "\0\1", "broken ", GARBAGE),
        BROKEN(GREETING "\4\0", "broken ", GARBAGE),
        BROKEN(GREETING "\4\5\4PING", "broken ", GARBAGE),
        BROKEN(GREETING "\4\6\5ERROR", "broken ", GARBAGE),
        BROKEN(GREETING "\4\6\6READY", "broken ", GARBAGE),
        BROKEN(GREETING "\6\0\0\0\0\0\0\4\1", "broken ", FRAME_SIZE),
        BROKEN(GREETING "\6\xff\xff\xff\xff\xff\xff\xff\xff", "broken ", FRAME_SIZE),
        BROKEN(GREETING "\4\x07\5READY\0", "broken ", GARBAGE),
        BROKEN(GREETING "\4\x0b\5READY\0\0\0\0\0", "broken ", GARBAGE),
        BROKEN(GREETING "\4\x0b\5READY\1X\0\0\0", "broken ", GARBAGE),
        BROKEN(GREETING "\4\x0c\5READY\1X\0\0\0\1", "broken ", GARBAGE),
        BROKEN(GREETING "\4\x0d\5READY\1X\xff\xff\xff\xff"
                        "v",
               "broken ", GARBAGE),
        BROKEN(GREETING "\4\x08\5READY\xffX", "broken ", GARBAGE),
        TOLD(GREETING "\4\x19\5READY" TYPE("SUB", "\3"), "broken ", GARBAGE, false),
        TOLD(GREETING "\4\x1c\5READY" TYPE("dealer", "\6"), "broken ", GARBAGE, false),
        TOLD(GREETING "\4\x1c\5READY" TYPE("ROUTER", "\6"), "broken ", GARBAGE, false),
        TOLD(GREETING "\4\x2a\5READY" TYPE("DEALER", "\6") "\10Identity\0\0\0\1x", "broken ",
             ROUTING_ID, false),
        TOLD(GREETING "\4\x14\5READY\10IDENTITY\0\0\0\1\0", "broken ", ROUTING_ID, false),
        TOLD(START, "admit broken ", STRANGER, true),
        // Frames.
        BROKEN(START "\x08", "admit broken ", GARBAGE),
        BROKEN(START "\x80", "admit broken ", GARBAGE),
        BROKEN(START "\5", "admit broken ", GARBAGE),
        BROKEN(START "\2\0\0\0\0\0\0\3\xe9", "admit broken ", FRAME_SIZE),
        BROKEN(START "\2\xff\xff\xff\xff\xff\xff\xff\xff", "admit broken ", FRAME_SIZE),
        BROKEN(START "\3\x80\0\0\0\0\0\0\0", "admit broken ", FRAMES),
        BROKEN(START "\6\0\0\0\0\0\0\4\1", "admit broken ", FRAME_SIZE),
        BROKEN(START "\1\0", "admit broken ", FRAMES),
        BROKEN(START "\0\1x\1\1y", "admit frame 1 message x broken ", FRAMES),
        // Commands.
        BROKEN(START "\4\0", "admit broken ", GARBAGE),
        BROKEN(START "\4\1\0", "admit broken ", GARBAGE),
        BROKEN(START "\4\1\1", "admit broken ", GARBAGE),
        BROKEN(START "\4\2\2x", "admit broken ", GARBAGE),
        BROKEN(START "\4\6\4PING\0", "admit broken ", GARBAGE),
        BROKEN(START "\4\x18\4PING\0\1"
                     "0123456789abcdefg",
               "admit broken ", GARBAGE),
    };
    check_streams(streams, COUNT_OF(streams));
}

// The largest message and the largest command.
TEST_CASE(test_bounds)
{
    static char bytes[STREAM_MAX], wanted[STREAM_MAX];
    static const char frame[] = "\2\0\0\0\0\0\0\3\xe8", start[] = START;
    size_t size = sizeof start - 1;
    memcpy(bytes, start, size);
    memcpy(bytes + size, frame, 9);
    memset(bytes + size + 9, 'x', FRAME_MAX);
    (void)snprintf(wanted, sizeof wanted, "admit frame %d message %.40s ", FRAME_MAX,
                   bytes + size + 9);
    check_all_splits(
        &(struct stream){bytes, size + 9 + FRAME_MAX, wanted, WIRE_CUT_NONE, false, false});

    memcpy(bytes + size + 9 + FRAME_MAX, frame, 9);
    memset(bytes + size + 18 + FRAME_MAX, 'x', FRAME_MAX);
    (void)snprintf(wanted, sizeof wanted, "admit frame %d message %.40s frame %d message %.40s ",
                   FRAME_MAX, bytes + size + 9, FRAME_MAX, bytes + size + 9);
    check_all_splits(
        &(struct stream){bytes, size + 18 + 2 * FRAME_MAX, wanted, WIRE_CUT_NONE, false, false});

    memcpy(bytes + size, "\6\0\0\0\0\0\0\4\0\4LONG", 14);
    memcpy(bytes + size + 9 + ZMTP_COMMAND_MAX, "\0\1x", 3);
    check_all_splits(&(struct stream){bytes, size + 12 + ZMTP_COMMAND_MAX,
                                      "admit command frame 1 message x ", WIRE_CUT_NONE, false,
                                      false});
}

// What the server sends: greeting, READY, messages and pongs.
TEST_CASE(test_sent)
{
    static const char greeting[] = GREETING_HEAD "\3\1NULL";
    static const char ready[] = "\4\x29\5READY" TYPE("ROUTER", "\6") "\10Identity\0\0\0\0";
    static struct zmtp_rig rig;
    static unsigned char out[70000], message[65536];
    rig_begin(&rig, FRAME_MAX, NULL);
    assert_int_equal(rig.sent_size, ZMTP_GREETING_SIZE);
    assert_int_equal(rig.sent[0], 0xff);
    assert_memory_equal(rig.sent + 9, greeting + 9, sizeof greeting - 10);
    rig.sent_size = 0;
    rig_feed(&rig, START, sizeof(START) - 1, 7);
    assert_int_equal(rig.sent_size, sizeof ready - 1);
    assert_memory_equal(rig.sent, ready, sizeof ready - 1);
    rig.sent_size = 0;
    rig_feed(&rig, "\4\x0a\4PING\0\1abc", 12, 12);
    assert_int_equal(rig.sent_size, 10);
    assert_memory_equal(rig.sent, "\4\x08\4PONGabc", 10);

    memset(message, 'm', sizeof message);
    static const struct {
        size_t size;
        const char *header;
        size_t header_size;
    } cases[] = {{0, "\0\0", 2},
                 {255, "\0\xff", 2},
                 {256, "\2\0\0\0\0\0\0\1\0", 9},
                 {65536, "\2\0\0\0\0\0\1\0\0", 9}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const size_t header = cases[i].header_size, size = cases[i].size;
        assert_int_equal(zmtp_frame_size(&rig.zmtp, size), header + size);
        memcpy(out + header, message, size); // in place
        zmtp_frame(&rig.zmtp, out, i % 2 ? message : out + header, size);
        assert_memory_equal(out, cases[i].header, header);
        assert_memory_equal(out + header, message, size);
    }
    rig_end(&rig);
}

TEST_MAIN(test_sound, test_broken, test_bounds, test_sent)
