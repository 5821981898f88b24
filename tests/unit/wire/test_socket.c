#include "common/wire/socket.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "common/wire/listener/listener.h"
#include "tests/support/test.h"

static const int64_t second_ns = 1000000000;

static const struct wire_listen group = {.service = ADDRESS_INGEST};
static const struct wire_listen owner = {.service = ADDRESS_ADMIN, .owner_only = true};

struct fixture {
    char folder[64];
    char endpoint[96];
    struct wire_context *context;
    struct listener *listener;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/inferstat-socket-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(fixture->endpoint, sizeof fixture->endpoint, "ipc://%s/ingest", fixture->folder);
    assert_int_equal(wire_context_new(&fixture->context, NULL), STATUS_OK);
    assert_int_equal(listener_new(&fixture->listener, NULL), STATUS_OK);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    wire_context_free(fixture->context);
    listener_free(fixture->listener);
    (void)unlink(fixture->endpoint + 6);
    (void)rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static struct port *open_port(const struct fixture *fixture)
{
    struct port *port = NULL;
    assert_int_equal(port_open(&port, fixture->listener, fixture->endpoint, &group, NULL),
                     STATUS_OK);
    return port;
}

static struct wire_socket *connect_to(const struct fixture *fixture, const char *endpoint)
{
    struct wire_socket *socket = NULL;
    assert_int_equal(
        wire_connect(&socket, fixture->context, endpoint, ADDRESS_QUERY, NULL, NULL, NULL),
        STATUS_OK);
    return socket;
}

// Waits until the port has something, ten seconds at most.
static void wait_for(struct port *port)
{
    uint32_t ready = 0;
    port_wait(&port, 1, -1, 10 * (uint64_t)second_ns, &ready);
    assert_int_equal(ready, 1);
}

// Sends as soon as the connection is there, within ten seconds.
static void send_when_connected(struct wire_socket *socket, const void *bytes, size_t size)
{
    enum status status = STATUS_FULL;
    for (int i = 0; i < 10000 && status == STATUS_FULL; i++) {
        status = wire_send(socket, bytes, size);
        if (status == STATUS_FULL) {
            uint32_t ready;
            port_wait(NULL, 0, -1, 1000000, &ready);
        }
    }
    assert_int_equal(status, STATUS_OK);
}

// A ROUTER on a TCP port that was free; writes its endpoint.
static struct port *bind_free_port(struct listener *listener, char *endpoint, size_t size)
{
    struct port *router = NULL;
    enum status status = STATUS_BUSY;
    for (int i = 0; i < 1000 && status == STATUS_BUSY; i++) {
        (void)snprintf(endpoint, size, "tcp://127.0.0.1:%d", 20000 + (int)(getpid() + i) % 12000);
        status = port_open(&router, listener, endpoint, &group, NULL);
    }
    assert_int_equal(status, STATUS_OK);
    return router;
}

// The other end is this process, with an address over TCP and a user over ipc.
static void assert_is_us(const struct wire_peer *peer, const char *endpoint)
{
    const bool is_ipc = strncmp(endpoint, "ipc:", 4) == 0;
    assert_int_equal(peer->kind, is_ipc ? PEER_USER : PEER_LOOPBACK);
    assert_int_equal(peer->uid, is_ipc ? getuid() : 0);
    assert_int_equal(peer->pid, is_ipc ? getpid() : 0);
    assert_string_equal(peer->host, is_ipc ? "" : "127.0.0.1");
}

// There and back; closes the router.
static void echo_over(const struct fixture *fixture, struct port *router, const char *endpoint)
{
    struct wire_socket *dealer = connect_to(fixture, endpoint);
    send_when_connected(dealer, "ping", 4);
    wait_for(router);

    struct wire_frame frame;
    assert_int_equal(port_receive(router, &frame), STATUS_OK);
    assert_int_equal(frame.size, 4);
    assert_memory_equal(frame.bytes, "ping", 4);
    assert_true(frame.route.connection > 0);
    assert_is_us(&frame.peer, endpoint);
    assert_int_equal(port_send(router, &frame.route, frame.bytes, frame.size), STATUS_OK);
    port_release(&frame);
    assert_int_equal(port_receive(router, &frame), STATUS_NO_DATA);

    struct wire_bytes answer;
    uint32_t ready = 0;
    wire_wait(&dealer, 1, -1, 10 * second_ns, &ready);
    assert_int_equal(ready, 1);
    assert_int_equal(wire_receive(dealer, &answer), STATUS_OK);
    assert_int_equal(answer.size, 4);
    assert_memory_equal(answer.bytes, "ping", 4);
    assert_int_equal(wire_receive(dealer, &answer), STATUS_NO_DATA);
    wire_close(dealer);
    port_close(router);
}

STATE_CASE(test_echo, struct fixture *fixture)
{
    struct port *router = open_port(fixture);
    echo_over(fixture, router, fixture->endpoint);
    char endpoint[64];
    router = bind_free_port(fixture->listener, endpoint, sizeof endpoint);
    echo_over(fixture, router, endpoint);
}

STATE_CASE(test_modes, struct fixture *fixture)
{
    for (int owner_only = 0; owner_only < 2; owner_only++) {
        mode_t before = umask(0);
        struct port *router = NULL;
        assert_int_equal(port_open(&router, fixture->listener, fixture->endpoint,
                                   owner_only ? &owner : &group, NULL),
                         STATUS_OK);
        assert_int_equal(umask(before), 0); // left as it was
        struct stat about;
        assert_int_equal(stat(fixture->endpoint + 6, &about), 0);
        assert_int_equal(about.st_mode & 0777, owner_only ? 0600 : 0660);
        port_close(router);
    }
}

// The socket file of a collector that was killed is there, and nobody listens.
STATE_CASE(test_stale_socket_file, struct fixture *fixture)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", fixture->endpoint + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof name), 0);
    (void)close(fd);
    struct port *router = open_port(fixture);
    port_close(router);
}

STATE_CASE(test_bind_refusals, struct fixture *fixture)
{
    struct port *router = NULL, *second = NULL;
    struct error err = {0};

    // A living one is not robbed of its address.
    assert_int_equal(port_open(&router, fixture->listener, fixture->endpoint, &group, &err),
                     STATUS_OK);
    assert_int_equal(port_open(&second, fixture->listener, fixture->endpoint, &group, &err),
                     STATUS_BUSY);
    port_close(router);

    // A file that is no socket is not deleted.
    (void)unlink(fixture->endpoint + 6);
    FILE *file = fopen(fixture->endpoint + 6, "w");
    assert_non_null(file);
    (void)fclose(file);
    assert_int_equal(port_open(&router, fixture->listener, fixture->endpoint, &group, &err),
                     STATUS_INVALID);
    assert_int_equal(access(fixture->endpoint + 6, F_OK), 0);
    (void)unlink(fixture->endpoint + 6);

    assert_int_equal(
        port_open(&router, fixture->listener, "ipc:///tmp/inferstat-none/x/ingest", &group, &err),
        STATUS_NOT_FOUND);
    assert_int_equal(port_open(&router, fixture->listener, "nonsense", &group, &err),
                     STATUS_INVALID);
    char path[256] = "ipc:///";
    memset(path + 7, 'p', 107);
    assert_int_equal(port_open(&router, fixture->listener, path, &group, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "107"));

    char endpoint[64];
    router = bind_free_port(fixture->listener, endpoint, sizeof endpoint);
    assert_int_equal(port_open(&second, fixture->listener, endpoint, &group, &err), STATUS_BUSY);
    port_close(router);
}

STATE_CASE(test_nobody_there, struct fixture *fixture)
{
    struct wire_socket *dealer = connect_to(fixture, fixture->endpoint);
    assert_int_equal(wire_send(dealer, "x", 1), STATUS_FULL);
    struct wire_bytes nothing;
    assert_int_equal(wire_receive(dealer, &nothing), STATUS_NO_DATA);

    // The collector comes later: the same socket connects by itself.
    struct port *router = open_port(fixture);
    send_when_connected(dealer, "x", 1);
    wait_for(router);
    struct wire_frame frame;
    assert_int_equal(port_receive(router, &frame), STATUS_OK);
    struct wire_route gone = frame.route;
    port_release(&frame);

    // A peer that has left is said to be gone, at once or when libzmq notices.
    wire_close(dealer);
    enum status status = STATUS_OK;
    for (int i = 0; i < 10000 && status != STATUS_UNREACHABLE; i++) {
        uint32_t ready;
        port_wait(NULL, 0, -1, 1000000, &ready);
        status = port_send(router, &gone, "y", 1);
    }
    assert_int_equal(status, STATUS_UNREACHABLE);
    const struct wire_route never = {.connection = 3};
    assert_int_equal(port_send(router, &never, "y", 1), STATUS_UNREACHABLE);
    port_close(router);
}

// A peer that is not ours sends a message of several frames: its connection ends.
STATE_CASE(test_several_frames, struct fixture *fixture)
{
    struct wire_counters counters = {0};
    struct port *router = open_port(fixture);
    void *zmq = zmq_ctx_new();
    void *peer = zmq_socket(zmq, ZMQ_DEALER);
    int linger = 0;
    (void)zmq_setsockopt(peer, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal(zmq_connect(peer, fixture->endpoint), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(zmq_send(peer, "part", 4, i < 2 ? ZMQ_SNDMORE : 0), 4);
    for (int i = 0; i < 10000 && counters.cuts[WIRE_CUT_FRAMES] == 0; i++) {
        uint32_t ready;
        port_wait(NULL, 0, -1, 1000000, &ready);
        port_count(router, &counters);
    }
    assert_int_equal(counters.cuts[WIRE_CUT_FRAMES], 1);
    struct wire_frame frame;
    assert_int_equal(port_receive(router, &frame), STATUS_NO_DATA);
    (void)zmq_close(peer);
    (void)zmq_ctx_term(zmq);
    port_close(router);
}

STATE_CASE(test_sizes, struct fixture *fixture)
{
    struct port *router = open_port(fixture);
    struct wire_socket *dealer = connect_to(fixture, fixture->endpoint);
    unsigned char *bytes = calloc(1, MESSAGE_SIZE_MAX + 1);
    assert_non_null(bytes);
    static const size_t sizes[] = {0, 1, 255, 256, 65536, 4 * 1024 * 1024 + 65536};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        send_when_connected(dealer, bytes, sizes[i]);
        wait_for(router);
        struct wire_frame frame;
        assert_int_equal(port_receive(router, &frame), STATUS_OK);
        assert_int_equal(frame.size, sizes[i]);
        port_release(&frame);
    }
    assert_int_equal(wire_send(dealer, bytes, MESSAGE_SIZE_MAX + 1), STATUS_INVALID);
    free(bytes);
    wire_close(dealer);
    port_close(router);
}

// A reader that never reads fills its queue and then gets nothing more; nobody waits.
STATE_CASE(test_full_queue, struct fixture *fixture)
{
    struct port *router = open_port(fixture);
    struct wire_socket *dealer = connect_to(fixture, fixture->endpoint);
    send_when_connected(dealer, "x", 1);
    wait_for(router);
    struct wire_frame frame;
    assert_int_equal(port_receive(router, &frame), STATUS_OK);
    static unsigned char block[65536];
    enum status status = STATUS_OK;
    for (int i = 0; i < 100000 && status == STATUS_OK; i++)
        status = port_send(router, &frame.route, block, sizeof block);
    assert_int_equal(status, STATUS_FULL);
    port_release(&frame);
    wire_close(dealer);
    port_close(router);
}

static void on_signal(int number)
{
    (void)number;
}

STATE_CASE(test_wait, struct fixture *fixture)
{
    struct port *router = open_port(fixture);
    struct wire_socket *dealer = connect_to(fixture, fixture->endpoint);
    struct wire_socket *sockets[] = {NULL, NULL, dealer};
    struct port *ports[] = {router, router};
    uint32_t ready = 99;
    wire_wait(sockets, 3, -1, 0, &ready);
    assert_int_equal(ready, 0);
    port_wait(ports, 2, -1, 0, &ready);
    assert_int_equal(ready, 0);

    send_when_connected(dealer, "a", 1);
    port_wait(ports, 2, -1, 10 * (uint64_t)second_ns, &ready);
    assert_int_equal(ready, 3);
    struct wire_frame frame;
    assert_int_equal(port_receive(router, &frame), STATUS_OK);
    assert_int_equal(port_send(router, &frame.route, "b", 1), STATUS_OK);
    port_release(&frame);
    wire_wait(sockets, 3, -1, 10 * second_ns, &ready);
    assert_int_equal(ready, 1 << 2);
    struct wire_bytes answer;
    assert_int_equal(wire_receive(dealer, &answer), STATUS_OK);

    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "b", 1), 1);
    wire_wait(sockets, 3, fds[0], -1, &ready);
    assert_int_equal(ready, 1 << 3);
    port_wait(ports, 2, fds[0], UINT64_MAX, &ready);
    assert_int_equal(ready, 1 << 2);
    (void)close(fds[0]);
    (void)close(fds[1]);

    // A signal of this program ends the wait; the other threads do not eat it.
    struct sigaction action = {.sa_handler = on_signal};
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    (void)alarm(1);
    wire_wait(sockets, 3, -1, 60 * second_ns, &ready);
    assert_int_equal(ready, 0);
    (void)alarm(1);
    port_wait(ports, 2, -1, 60 * (uint64_t)second_ns, &ready);
    assert_int_equal(ready, 0);
    wire_close(dealer);
    port_close(router);
}

TEST_CASE(test_null_is_fine)
{
    wire_close(NULL);
    wire_context_free(NULL);
    port_close(NULL);
    listener_free(NULL);
}

TEST_MAIN_EACH(setup, teardown, test_echo, test_modes, test_stale_socket_file, test_bind_refusals,
               test_nobody_there, test_several_frames, test_sizes, test_full_queue, test_wait,
               test_null_is_fine)
