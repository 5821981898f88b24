// Listening sockets and peers that speak ZMTP by hand: bounds of memory, fair turns, and who is
// disconnected for what.
#include "common/wire/listener/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/support/zmtp_rig.h"

enum { MIB = 1024 * 1024 };

static const uint64_t second_ns = 1000000000;

// Added to the monotonic clock; the low half of a peer's IPv6 address; epoll takes nothing.
static _Atomic uint64_t clock_ahead_ns;
static _Atomic bool is_from_one_network, is_epoll_full;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    const int result = __real_clock_gettime(clock, out);
    const uint64_t ahead_ns = clock == CLOCK_MONOTONIC ? atomic_load(&clock_ahead_ns) : 0;
    const uint64_t nsec = (uint64_t)out->tv_nsec + ahead_ns % 1000000000;
    out->tv_sec += (time_t)(ahead_ns / 1000000000 + nsec / 1000000000);
    out->tv_nsec = (long)(nsec % 1000000000);
    return result;
}

int __real_accept4(int fd, struct sockaddr *name, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *name, socklen_t *size, int flags)
{
    static unsigned last;
    const int accepted = __real_accept4(fd, name, size, flags);
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {0x20, 1, 0xd, 0xb8}};
    if (accepted >= 0 && atomic_load(&is_from_one_network)) {
        last++;
        memcpy(v6.sin6_addr.s6_addr + 8, &last, sizeof last);
        memcpy(name, &v6, sizeof v6);
    }
    return accepted;
}

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    errno = ENOSPC;
    return atomic_load(&is_epoll_full) ? -1 : __real_epoll_ctl(epoll, operation, fd, event);
}

static struct listener *listener;
static struct port *server;
static char folder[64], endpoint[96];

TEST_FIXTURE(set_up)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/inferstat-listener-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(endpoint, sizeof endpoint, "ipc://%s/socket", folder);
    assert_int_equal(listener_new(&listener, NULL), STATUS_OK);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    (void)state;
    port_close(server);
    server = NULL;
    listener_free(listener);
    return rmdir(folder);
}

static void listen_as(enum address_service service)
{
    const struct wire_listen listen = {.service = service};
    assert_int_equal(port_open(&server, listener, endpoint, &listen, NULL), STATUS_OK);
}

// ---- A peer --------------------------------------------------------------------------

static void send_all(int fd, const void *bytes, size_t size)
{
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

// Connects and sends greeting and READY with a routing id; reads the greeting.
static int greet(const char *id)
{
    unsigned char greeting[64] = {0xff, [9] = 0x7f, [10] = 3, [12] = 'N', 'U', 'L', 'L'};
    char ready[64] = "\x04\x00\x05READY\x0bSocket-Type\0\0\0\6DEALER\x08Identity\0\0\0";
    const size_t size = 2 + 6 + 22 + 13 + strlen(id);
    ready[1] = (char)(size - 2);
    ready[2 + 6 + 22 + 12] = (char)strlen(id);
    memcpy(ready + 2 + 6 + 22 + 13, id, strlen(id));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", endpoint + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);
    send_all(fd, greeting, sizeof greeting);
    send_all(fd, ready, size);
    assert_int_equal(recv(fd, greeting, sizeof greeting, MSG_WAITALL), (ssize_t)sizeof greeting);
    return fd;
}

// Reads a short frame; returns its size.
static size_t read_frame(int fd, unsigned char body[255])
{
    unsigned char head[2];
    assert_int_equal(recv(fd, head, sizeof head, MSG_WAITALL), (ssize_t)sizeof head);
    assert_int_equal(recv(fd, body, head[1], MSG_WAITALL), head[1]);
    return head[1];
}

static int join(void)
{
    unsigned char body[255];
    int fd = greet("");
    assert_true(read_frame(fd, body) > 6);
    assert_memory_equal(body, "\5READY", 6);
    return fd;
}

// Announces a message of `size` bytes.
static void announce(int fd, uint64_t size)
{
    unsigned char head[9] = {2};
    for (unsigned i = 0; i < 8; i++)
        head[8 - i] = (unsigned char)(size >> 8 * i);
    send_all(fd, head, sizeof head);
}

// ---- The server's side -----------------------------------------------------------------

static void receive(struct wire_frame *frame)
{
    uint32_t ready = 0;
    port_wait(&server, 1, -1, 10 * second_ns, &ready);
    assert_int_equal(ready, 1);
    assert_int_equal(port_receive(server, frame), STATUS_OK);
}

static void pause_ms(uint64_t ms)
{
    uint32_t ready;
    port_wait(NULL, 0, -1, ms * 1000000, &ready);
}

// Waits until a connection was closed for the reason, and checks whose it was.
static void await_cut(enum wire_cut cut)
{
    struct wire_counters counters = {0};
    struct wire_complaint complaint;
    for (int i = 0; i < 1000 && counters.cuts[cut] == 0; i++) {
        pause_ms(10);
        port_count(server, &counters);
    }
    assert_int_equal(counters.cuts[cut], 1);
    assert_int_equal(port_complaints(server, &complaint, 1), 1);
    assert_int_equal(complaint.cut, cut);
    assert_int_equal(complaint.count, 1);
    assert_int_equal(complaint.peer.kind, PEER_USER);
    assert_int_equal(complaint.peer.uid, getuid());
    assert_int_equal(complaint.peer.pid, getpid());
    assert_int_equal(port_complaints(server, &complaint, 1), 0);
}

static void await_pong(int fd)
{
    static const char ping[] = "\4\13\4PING\0\0abcd";
    unsigned char body[255];
    send_all(fd, ping, sizeof ping - 1);
    assert_int_equal(read_frame(fd, body), 9);
    assert_memory_equal(body, "\4PONGabcd", 9);
}

TEST_CASE(test_routing_ids_are_refused)
{
    unsigned char body[255];
    listen_as(ADDRESS_INGEST);
    int fd = greet("mine");
    assert_int_equal(read_frame(fd, body), 10);
    assert_memory_equal(body, "\5ERROR\003400", 10);
    assert_int_equal(recv(fd, body, 1, 0), 0);
    await_cut(WIRE_CUT_ROUTING_ID);
    (void)close(fd);
}

TEST_CASE(test_heartbeats)
{
    static const char ping[] = "\4\13\4PING\0\0abcd";
    listen_as(ADDRESS_INGEST);
    int fd = join();
    await_pong(fd);
    // Too many end the connection.
    for (int i = 0; i < 5000; i++)
        if (send(fd, ping, sizeof ping - 1, MSG_NOSIGNAL) < 0)
            break;
    await_cut(WIRE_CUT_PINGS);
    (void)close(fd);
}

// ---- Keys ----------------------------------------------------------------------------

static bool admit_all(void *nothing, enum address_service service,
                      const unsigned char key[WIRE_KEY_SIZE])
{
    (void)nothing, (void)service, (void)key;
    return true;
}

// Opens a socket with keys; returns its port.
static uint16_t listen_with_keys(struct port **out, struct wire_keypair *keys)
{
    char place[64];
    struct wire_guard guard = {.admit = admit_all};
    const struct wire_listen listen = {.service = ADDRESS_LIVE, .guard = &guard};
    assert_int_equal(wire_keypair_new(&guard.keys, NULL), STATUS_OK);
    memcpy(keys->public_key, guard.keys.public_key, WIRE_KEY_SIZE);
    for (uint16_t port = 20000; port < 30000; port++) {
        (void)snprintf(place, sizeof place, "tcp://127.0.0.1:%u", port);
        if (port_open(out, listener, place, &listen, NULL) == STATUS_OK)
            return port;
    }
    fail();
    return 0;
}

static int connect_tcp(uint16_t port)
{
    const struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

// Whoever comes too often over TCP does not keep local users out.
TEST_CASE(test_a_storm_over_tcp)
{
    struct port *tcp;
    struct wire_counters counters = {0};
    struct wire_keypair keys;
    listen_as(ADDRESS_INGEST);
    const uint16_t port = listen_with_keys(&tcp, &keys);
    for (int i = 0; i < 100000 && counters.cuts[WIRE_CUT_RATE] == 0; i++) {
        (void)close(connect_tcp(port));
        port_count(tcp, &counters);
    }
    assert_int_not_equal(counters.cuts[WIRE_CUT_RATE], 0);
    (void)close(join());
    port_close(tcp);
}

// Whoever has a network of IPv6 addresses does not come more often than with one of them: 2,000 in
// a second, which all peers together may.
TEST_CASE(test_a_storm_from_one_network)
{
    struct port *tcp;
    struct wire_counters counters = {0};
    struct wire_keypair keys;
    const uint16_t port = listen_with_keys(&tcp, &keys);
    atomic_store(&is_from_one_network, true);
    for (int i = 0; i < 4000 && counters.cuts[WIRE_CUT_RATE] == 0; i++) {
        atomic_fetch_add(&clock_ahead_ns, 2000000);
        (void)close(connect_tcp(port));
        port_count(tcp, &counters);
    }
    assert_int_not_equal(counters.cuts[WIRE_CUT_RATE], 0);
    atomic_store(&is_from_one_network, false);
    port_close(tcp);
}

TEST_CASE(test_epoll_takes_no_more)
{
    const struct wire_listen listen = {.service = ADDRESS_INGEST};
    struct error err = {0};
    atomic_store(&is_epoll_full, true);
    assert_int_equal(port_open(&server, listener, endpoint, &listen, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "cannot listen"));
    atomic_store(&is_epoll_full, false);
}

static _Atomic bool is_over;

// Answers the first message with many, a few at a time.
static void *talk(void *socket)
{
    struct port *const tcp = socket;
    struct wire_frame frame;
    uint32_t ready;
    port_wait(&tcp, 1, -1, 10 * second_ns, &ready);
    assert_int_equal(port_receive(tcp, &frame), STATUS_OK);
    for (unsigned i = 0; !atomic_load(&is_over); i++) {
        (void)!port_send(tcp, &frame.route, "answer", 6);
        if (i % 8 == 0)
            (void)usleep(10);
    }
    port_release(&frame);
    return NULL;
}

static size_t read_whole_frame(int fd, unsigned char out[512])
{
    assert_int_equal(recv(fd, out, 2, MSG_WAITALL), 2);
    assert_int_equal(out[0] & 2, 0);
    assert_int_equal(recv(fd, out + 2, out[1], MSG_WAITALL), out[1]);
    return 2U + out[1];
}

static int join_with_keys(uint16_t port, struct hands *hands)
{
    unsigned char greeting[64] = {0xff, [9] = 0x7f, [10] = 3, [12] = 'C', 'U', 'R', 'V', 'E'};
    unsigned char bytes[HANDS_COMMAND_MAX], text[512];
    uint64_t nonce;
    int fd = connect_tcp(port);
    send_all(fd, greeting, sizeof greeting);
    assert_int_equal(recv(fd, greeting, sizeof greeting, MSG_WAITALL), (ssize_t)sizeof greeting);
    send_all(fd, bytes, hands_hello(hands, bytes));
    assert_true(hands_welcome(hands, bytes, read_whole_frame(fd, bytes)));
    send_all(fd, bytes, hands_initiate(hands, bytes, "", 0));
    assert_true(
        hands_open(hands, "CurveZMQREADY---", bytes, read_whole_frame(fd, bytes), text, &nonce));
    return fd;
}

// Answers to heartbeats and messages of another thread are numbered as they are sent.
TEST_CASE(test_numbers_of_sealed_frames)
{
    enum { PINGS = 500, EACH = 50 };
    struct port *tcp;
    struct wire_keypair keys;
    struct hands hands;
    pthread_t thread;
    unsigned char bytes[HANDS_COMMAND_MAX], text[512];
    uint64_t nonce, last = 1;
    unsigned pongs = 0;
    const uint16_t port = listen_with_keys(&tcp, &keys);
    hands_begin(&hands, &keys);
    int fd = join_with_keys(port, &hands);
    atomic_store(&is_over, false);
    assert_int_equal(pthread_create(&thread, NULL, talk, tcp), 0);
    send_all(fd, bytes, hands_message(&hands, bytes, 0, "hello", 5));
    for (unsigned i = 0; i < EACH * PINGS; i++) {
        if (i % EACH == 0)
            send_all(fd, bytes, hands_message(&hands, bytes, 2, "\4PING\0\0", 7));
        const size_t size = read_whole_frame(fd, bytes);
        assert_true(hands_open(&hands, "CurveZMQMESSAGES", bytes, size, text, &nonce));
        assert_true(nonce > last);
        last = nonce;
        pongs += text[0] == 2;
    }
    assert_true(pongs > 0);
    atomic_store(&is_over, true);
    (void)close(fd);
    assert_int_equal(pthread_join(thread, NULL), 0);
    port_close(tcp);
}

// One connection with much to say does not keep another waiting.
TEST_CASE(test_turns)
{
    static char frames[100 * 2009];
    struct wire_frame frame;
    unsigned before = 0;
    listen_as(ADDRESS_INGEST);
    for (size_t i = 0; i < 100; i++)
        memcpy(frames + i * 2009, "\2\0\0\0\0\0\0\x07\xd0", 9);
    int many = join(), few = join();
    send_all(many, frames, sizeof frames);
    await_pong(many); // until all is received
    send_all(few, "\0\1x", 3);
    await_pong(few);
    bool is_there = false;
    while (!is_there) {
        receive(&frame);
        is_there = frame.size == 1;
        before += !is_there;
        port_release(&frame);
    }
    assert_in_range(before, 1, 2);
    (void)close(many);
    (void)close(few);
}

// Sends what the socket takes of a message of 1 MiB and its announcement.
static size_t pump(int fd, size_t sent)
{
    static unsigned char message[9 + MIB] = {2, [6] = 0x10};
    ssize_t more = send(fd, message + sent, sizeof message - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    assert_true(more > 0 || errno == EAGAIN);
    return sent + (more > 0 ? (size_t)more : 0);
}

// Forty peers send forty times a megabyte, and nobody takes it: the collector takes in what it may,
// which is half of the bound for one user, and the rest once there is room.
TEST_CASE(test_received_bytes_are_bounded)
{
    enum { PEERS = 40, BOUND = 16 * MIB / 2, KERNEL = 512 * 1024 };
    int fds[PEERS];
    size_t sent[PEERS] = {0}, all = 0;
    unsigned received = 0;
    listen_as(ADDRESS_INGEST);
    for (size_t i = 0; i < PEERS; i++)
        fds[i] = join();
    for (unsigned round = 0; round < 2000 && received < PEERS; round++) {
        for (size_t i = 0; i < PEERS; i++)
            sent[i] = sent[i] < 9 + MIB ? pump(fds[i], sent[i]) : sent[i];
        pause_ms(round < 100 ? 5 : 1);
        all = 0;
        for (size_t i = 0; i < PEERS; i++)
            all += sent[i];
        if (round < 100) {
            assert_true(all <= BOUND + (size_t)PEERS * KERNEL);
            continue;
        }
        struct wire_frame frame;
        if (port_receive(server, &frame) == STATUS_OK) {
            assert_int_equal(frame.size, MIB);
            port_release(&frame);
            received++;
        }
    }
    assert_int_equal(received, PEERS);
    assert_true(all == (size_t)PEERS * (9 + MIB));
    for (size_t i = 0; i < PEERS; i++)
        (void)close(fds[i]);
}

// A peer gets one answer at a time, and one that reads nothing has to go once others are refused
// for it.
TEST_CASE(test_a_deaf_peer)
{
    static unsigned char answer[15 * MIB];
    struct wire_frame frame;
    listen_as(ADDRESS_QUERY);
    int deaf = join(), other = join();
    send_all(deaf, "\0\1a\0\1b", 6);
    receive(&frame);
    const struct wire_route route = frame.route;
    port_release(&frame);
    assert_true(port_is_connected(server, &route));
    assert_int_equal(port_send(server, &route, answer, sizeof answer), STATUS_OK);
    assert_true(port_has_unread(server, &route, sizeof answer - 1));
    assert_true(port_has_unread(server, &route, UINT64_MAX)); // most of what is left
    pause_ms(100);
    assert_int_equal(port_receive(server, &frame), STATUS_NO_DATA);

    send_all(other, "\0\1c", 3);
    receive(&frame);
    assert_int_equal(port_send(server, &frame.route, answer, sizeof answer), STATUS_FULL);
    assert_int_equal(port_send(server, &frame.route, answer, 1000), STATUS_OK);
    port_release(&frame);
    for (int i = 0; i < 400 && port_is_connected(server, &route); i++) {
        (void)!port_send(server, &frame.route, answer, sizeof answer);
        pause_ms(10);
    }
    assert_false(port_is_connected(server, &route));
    assert_int_equal(port_send(server, &route, answer, 1), STATUS_UNREACHABLE);
    await_cut(WIRE_CUT_DEAF);
    (void)close(deaf);
    (void)close(other);
}

// A peer that reads a little at a time has to go when its answer is 30 s old.
TEST_CASE(test_a_slow_reader)
{
    enum { STEP_S = 4, PIECE = 400000 };
    static unsigned char answer[15 * MIB];
    struct wire_frame frame;
    listen_as(ADDRESS_QUERY);
    int fd = join(), steps = 0;
    send_all(fd, "\0\1a", 3);
    receive(&frame);
    assert_int_equal(port_send(server, &frame.route, answer, sizeof answer), STATUS_OK);
    port_release(&frame);
    for (; steps < 20 && port_is_connected(server, &frame.route); steps++) {
        (void)!recv(fd, answer, PIECE, MSG_WAITALL);
        pause_ms(50); // until the next bytes are sent
        atomic_fetch_add(&clock_ahead_ns, STEP_S * second_ns);
    }
    assert_in_range(steps, 7, 11);
    await_cut(WIRE_CUT_DEAF);
    (void)close(fd);
}

// The next query is taken once the answer was read; those of a peer that left are dropped.
TEST_CASE(test_an_answer_that_is_read)
{
    static unsigned char answer[4 * MIB];
    struct wire_frame frame;
    listen_as(ADDRESS_QUERY);
    int fd = join();
    send_all(fd, "\0\1a\0\1b\0\1c", 9);
    receive(&frame);
    assert_int_equal(port_send(server, &frame.route, answer, sizeof answer), STATUS_OK);
    port_release(&frame);
    assert_int_equal(port_receive(server, &frame), STATUS_NO_DATA);
    for (size_t got = 0; got < 9 + sizeof answer;) {
        ssize_t more = recv(fd, answer, sizeof answer, 0);
        assert_true(more > 0);
        got += (size_t)more;
    }
    receive(&frame);
    assert_memory_equal(frame.bytes, "b", 1);
    port_release(&frame);
    (void)close(fd);
    for (int i = 0; i < 1000 && port_is_connected(server, &frame.route); i++)
        pause_ms(10);
    assert_int_equal(port_receive(server, &frame), STATUS_NO_DATA);
}

// Peers that send a lot and leave: what they sent is received, and their connections end.
TEST_CASE(test_peers_that_leave)
{
    enum { PEERS = 100, FRAMES = 3000 };
    static char frames[FRAMES * 3];
    struct wire_counters counters = {.connections = 1};
    struct wire_frame frame;
    unsigned received = 0;
    listen_as(ADDRESS_INGEST);
    for (size_t i = 0; i < sizeof frames; i += 3)
        memcpy(frames + i, "\0\1x", 3);
    for (unsigned i = 0; i < PEERS; i++) {
        int fd = join();
        send_all(fd, frames, sizeof frames);
        (void)close(fd);
    }
    for (int i = 0; i < 5000 && counters.connections > 0; i++) {
        for (; port_receive(server, &frame) == STATUS_OK; received++)
            port_release(&frame);
        pause_ms(1);
        port_count(server, &counters);
    }
    assert_int_equal(counters.connections, 0);
    for (; port_receive(server, &frame) == STATUS_OK; received++)
        port_release(&frame);
    assert_int_equal(received, PEERS * FRAMES);
}

TEST_CASE(test_frames_that_are_too_large)
{
    listen_as(ADDRESS_QUERY);
    int fd = join();
    announce(fd, 65537);
    await_cut(WIRE_CUT_FRAME_SIZE);
    (void)close(fd);
}

// A message of frames without an end is cut off before it has taken any memory.
TEST_CASE(test_endless_frames)
{
    static const char part[] = "\1\4part";
    listen_as(ADDRESS_INGEST);
    int fd = join();
    for (int i = 0; i < 100; i++)
        (void)!send(fd, part, sizeof part - 1, MSG_NOSIGNAL);
    await_cut(WIRE_CUT_FRAMES);
    (void)close(fd);
}

TEST_MAIN_EACH(set_up, tear_down, test_routing_ids_are_refused, test_heartbeats,
               test_a_storm_over_tcp, test_a_storm_from_one_network, test_epoll_takes_no_more,
               test_numbers_of_sealed_frames, test_turns, test_received_bytes_are_bounded,
               test_a_deaf_peer, test_a_slow_reader, test_an_answer_that_is_read,
               test_peers_that_leave, test_frames_that_are_too_large, test_endless_frames)
