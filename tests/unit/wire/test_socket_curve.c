// Sockets with keys: who gets in, who does not, and what both sides see of it.
#include "common/wire/socket.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire/listener/listener.h"
#include "tests/support/test.h"

enum { CLIENTS = 16, TRIES = 10000 };

// The keys of a test: `admitted` says by bits which clients' are on the list.
struct fixture {
    struct wire_context *context;
    struct listener *listener;
    struct port *server;
    char endpoint[64];
    unsigned port;
    struct wire_guard guard;
    struct wire_pass passes[CLIENTS];
    _Atomic uint32_t admitted;
    _Atomic int service; // asked for last
};

static bool admit(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE])
{
    struct fixture *fixture = context;
    atomic_store(&fixture->service, (int)service);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (memcmp(fixture->passes[i].own.public_key, key, WIRE_KEY_SIZE) == 0)
            return atomic_load(&fixture->admitted) >> i & 1;
    return false;
}

static struct port *bind_free_port(struct fixture *fixture, const char *host,
                                   const struct wire_listen *listen)
{
    static unsigned last = 0;
    struct port *server = NULL;
    enum status status = STATUS_BUSY;
    for (int i = 0; i < 1000 && status == STATUS_BUSY; i++) {
        fixture->port = 20000 + ((unsigned)getpid() * 7 + last++) % 12000;
        (void)snprintf(fixture->endpoint, sizeof fixture->endpoint, "tcp://%s:%u", host,
                       fixture->port);
        status = port_open(&server, fixture->listener, fixture->endpoint, listen, NULL);
    }
    return status == STATUS_OK ? server : NULL;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(wire_context_new(&fixture->context, NULL), STATUS_OK);
    assert_int_equal(listener_new(&fixture->listener, NULL), STATUS_OK);
    assert_int_equal(wire_keypair_new(&fixture->guard.keys, NULL), STATUS_OK);
    fixture->guard.admit = admit;
    fixture->guard.context = fixture;
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(wire_keypair_new(&fixture->passes[i].own, NULL), STATUS_OK);
        memcpy(fixture->passes[i].server_key, fixture->guard.keys.public_key, WIRE_KEY_SIZE);
    }
    atomic_store(&fixture->admitted, UINT32_MAX);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    port_close(fixture->server);
    wire_context_free(fixture->context);
    listener_free(fixture->listener);
    free(fixture);
    return 0;
}

static void start(struct fixture *fixture, unsigned connections_max)
{
    const struct wire_listen listen = {
        .service = ADDRESS_QUERY, .guard = &fixture->guard, .connections_max = connections_max};
    fixture->server = bind_free_port(fixture, "127.0.0.1", &listen);
    assert_non_null(fixture->server);
}

static struct wire_socket *join(struct fixture *fixture, unsigned client)
{
    struct wire_socket *socket = NULL;
    assert_int_equal(wire_connect(&socket, fixture->context, fixture->endpoint, ADDRESS_QUERY,
                                  &fixture->passes[client], NULL, NULL),
                     STATUS_OK);
    return socket;
}

// A millisecond in which the server's side does what it has to; what is for it is
// thrown away.
static void idle(struct fixture *fixture)
{
    uint32_t ready;
    struct wire_frame frame;
    port_wait(&fixture->server, 1, -1, 1000000, &ready);
    while (fixture->server && port_receive(fixture->server, &frame) == STATUS_OK)
        port_release(&frame);
}

// Sends until the server has it, within ten seconds; the frame is to be released.
static void deliver(struct fixture *fixture, struct wire_socket *client, struct wire_frame *frame)
{
    enum status status = STATUS_NO_DATA;
    bool sent = false;
    for (int i = 0; i < TRIES && status != STATUS_OK; i++) {
        uint32_t ready;
        sent = sent || wire_send(client, "ping", 4) == STATUS_OK;
        port_wait(&fixture->server, 1, -1, 1000000, &ready);
        status = port_receive(fixture->server, frame);
        // What was under way when a connection ended is lost: once more.
        sent = sent && i % 500 != 499;
    }
    assert_int_equal(status, STATUS_OK);
    assert_memory_equal(frame->bytes, "ping", 4);
}

static void assert_gets_in(struct fixture *fixture, struct wire_socket *client, unsigned key)
{
    struct wire_frame frame;
    deliver(fixture, client, &frame);
    assert_int_equal(frame.peer.kind, PEER_KEY);
    assert_memory_equal(frame.peer.key, fixture->passes[key].own.public_key, WIRE_KEY_SIZE);
    port_release(&frame);
}

// Waits until the client knows how its handshake went.
static void await(struct fixture *fixture, struct wire_socket *client, enum wire_handshake wanted)
{
    for (int i = 0; i < TRIES && wire_handshake(client) != wanted; i++)
        idle(fixture);
    assert_int_equal(wire_handshake(client), wanted);
}

// For a while nothing of this client arrives.
static void assert_stays_out(struct fixture *fixture, struct wire_socket *client)
{
    for (int i = 0; i < 300; i++) {
        assert_int_equal(wire_send(client, "ping", 4), STATUS_FULL);
        idle(fixture);
    }
}

// Waits until `counter` of the server's is at least so much.
#define AWAIT_COUNT(fixture, counter, wanted)                                                      \
    do {                                                                                           \
        struct wire_counters counters_ = {0};                                                      \
        for (int i_ = 0; i_ < TRIES && counters_.counter < (wanted); i_++) {                       \
            idle(fixture);                                                                         \
            port_count((fixture)->server, &counters_);                                             \
        }                                                                                          \
        assert_true(counters_.counter >= (wanted));                                                \
    } while (false)

TEST_CASE(test_keys)
{
    struct wire_keypair pair, other;
    char text[WIRE_KEY_TEXT_SIZE], other_text[WIRE_KEY_TEXT_SIZE];
    unsigned char key[WIRE_KEY_SIZE];
    assert_int_equal(wire_keypair_new(&pair, NULL), STATUS_OK);
    assert_int_equal(wire_keypair_new(&other, NULL), STATUS_OK);
    assert_memory_not_equal(pair.secret_key, other.secret_key, WIRE_KEY_SIZE);
    assert_true(wire_keypair_fits(&pair));
    assert_int_equal(strlen(wire_key_text(text, pair.public_key)), WIRE_KEY_TEXT_SIZE - 1);
    assert_true(wire_key_parse(key, text));
    assert_memory_equal(key, pair.public_key, WIRE_KEY_SIZE);
    assert_string_not_equal(text, wire_key_text(other_text, other.public_key));
    for (int i = 0; i < 200; i++) {
        struct wire_keypair many;
        assert_int_equal(wire_keypair_new(&many, NULL), STATUS_OK);
        assert_true(isalnum((unsigned char)wire_key_text(text, many.public_key)[0]));
    }
    (void)wire_key_text(text, pair.public_key);
    memcpy(other.secret_key, pair.secret_key, WIRE_KEY_SIZE);
    assert_false(wire_keypair_fits(&other));

    // The example of libzmq's manual, 32 bytes BB 88 ... C5 18.
    assert_true(wire_key_parse(key, "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"));
    assert_int_equal(key[0], 0xbb);
    assert_int_equal(key[31], 0x18);
}

TEST_CASE(test_no_keys)
{
    static const char *const cases[] = {
        "",
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hI",   // 39
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hIDx", // 41
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hIDxxxxx",
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h D",  // a space
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h\nD", // and worse
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h\"D",
        "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h\x7f\x80",
        "#####w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", // a group beyond 32 bits
        "0000000000000000000000000000000000000000", // zeroes
    };
    unsigned char key[WIRE_KEY_SIZE];
    memset(key, 7, sizeof key);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (wire_key_parse(key, cases[i]))
            fail_msg("%s was taken", cases[i]);
    assert_int_equal(key[9], 7);
}

// A connection may be counted after its first message has come.
static void await_one_connection(struct fixture *fixture, struct wire_counters *counters)
{
    port_count(fixture->server, counters);
    for (int i = 0; i < TRIES && counters->connections != 1; i++) {
        idle(fixture);
        port_count(fixture->server, counters);
    }
    assert_int_equal(counters->connections, 1);
}

STATE_CASE(test_admitted, struct fixture *fixture)
{
    start(fixture, 0);
    struct wire_socket *client = join(fixture, 3);
    assert_gets_in(fixture, client, 3);
    await(fixture, client, WIRE_HANDSHAKE_DONE);
    assert_int_equal(atomic_load(&fixture->service), ADDRESS_QUERY);

    // There and back.
    struct wire_frame frame;
    struct wire_bytes answer;
    deliver(fixture, client, &frame);
    assert_int_equal(port_send(fixture->server, &frame.route, "pong", 4), STATUS_OK);
    port_release(&frame);
    uint32_t ready;
    wire_wait(&client, 1, -1, INT64_C(10000000000), &ready);
    assert_int_equal(wire_receive(client, &answer), STATUS_OK);
    assert_memory_equal(answer.bytes, "pong", 4);

    struct wire_counters counters;
    await_one_connection(fixture, &counters);
    assert_int_equal(counters.cuts[WIRE_CUT_STRANGER] + counters.handshakes +
                         counters.cuts[WIRE_CUT_CONNECTIONS],
                     0);
    wire_close(client);
    for (int i = 0; i < TRIES && counters.connections; i++) {
        idle(fixture);
        port_count(fixture->server, &counters);
    }
    assert_int_equal(counters.connections, 0);
}

// The largest message fits, though keys make it longer.
STATE_CASE(test_the_largest_answer, struct fixture *fixture)
{
    static unsigned char answer[MESSAGE_SIZE_MAX];
    struct wire_frame frame;
    struct wire_bytes received;
    uint32_t ready;
    start(fixture, 0);
    struct wire_socket *client = join(fixture, 3);
    deliver(fixture, client, &frame);
    assert_int_equal(port_send(fixture->server, &frame.route, answer, sizeof answer), STATUS_OK);
    port_release(&frame);
    wire_wait(&client, 1, -1, INT64_C(10000000000), &ready);
    assert_int_equal(wire_receive(client, &received), STATUS_OK);
    assert_int_equal(received.size, sizeof answer);
    wire_close(client);
}

STATE_CASE(test_ipv6, struct fixture *fixture)
{
    const struct wire_listen listen = {.service = ADDRESS_INGEST, .guard = &fixture->guard};
    fixture->server = bind_free_port(fixture, "[::1]", &listen);
    if (!fixture->server) {
        print_message("no IPv6 here\n");
        skip();
    }
    struct wire_socket *client = join(fixture, 0);
    assert_gets_in(fixture, client, 0);
    assert_int_equal(atomic_load(&fixture->service), ADDRESS_INGEST);
    wire_close(client);
}

// Two sockets of one context, each with its own list.
STATE_CASE(test_two_guards, struct fixture *first)
{
    void *other_state = NULL;
    assert_int_equal(setup(&other_state), 0);
    struct fixture *second = other_state;
    wire_context_free(second->context);
    listener_free(second->listener);
    second->context = first->context;
    second->listener = first->listener;
    start(first, 0);
    start(second, 0);
    atomic_store(&first->admitted, 1);
    atomic_store(&second->admitted, 2);
    struct wire_socket *clients[] = {join(first, 0), join(second, 1), join(first, 1)};
    assert_gets_in(first, clients[0], 0);
    assert_gets_in(second, clients[1], 1);
    await(first, clients[2], WIRE_HANDSHAKE_REFUSED);
    for (size_t i = 0; i < COUNT_OF(clients); i++)
        wire_close(clients[i]);
    port_close(second->server);
    free(second);
}

STATE_CASE(test_wrong_server_key, struct fixture *fixture)
{
    start(fixture, 0);
    memcpy(fixture->passes[1].server_key, fixture->passes[2].own.public_key, WIRE_KEY_SIZE);
    struct wire_socket *wrong = join(fixture, 1), *right = join(fixture, 0);
    await(fixture, wrong, WIRE_HANDSHAKE_BROKEN);
    assert_stays_out(fixture, wrong);
    AWAIT_COUNT(fixture, handshakes, 1);
    assert_gets_in(fixture, right, 0);
    wire_close(wrong);
    wire_close(right);
}

// One that is not on the list stays out, even when it comes onto it, until it makes
// its socket anew.
STATE_CASE(test_stranger, struct fixture *fixture)
{
    start(fixture, 0);
    atomic_store(&fixture->admitted, 1);
    struct wire_socket *stranger = join(fixture, 1), *friend = join(fixture, 0);
    await(fixture, stranger, WIRE_HANDSHAKE_REFUSED);
    assert_stays_out(fixture, stranger);
    assert_gets_in(fixture, friend, 0);
    struct wire_counters counters;
    port_count(fixture->server, &counters);
    assert_int_equal(counters.cuts[WIRE_CUT_STRANGER], 1);

    atomic_store(&fixture->admitted, 3);
    assert_stays_out(fixture, stranger);
    assert_int_equal(wire_handshake(stranger), WIRE_HANDSHAKE_REFUSED);
    wire_close(stranger);
    stranger = join(fixture, 1);
    assert_gets_in(fixture, stranger, 1);
    wire_close(stranger);
    wire_close(friend);
}

STATE_CASE(test_revoked, struct fixture *fixture)
{
    start(fixture, 0);
    struct wire_socket *revoked = join(fixture, 1), *friend = join(fixture, 0);
    struct wire_socket *silent = join(fixture, 0), *silent_revoked = join(fixture, 1);
    struct wire_frame frame;
    assert_gets_in(fixture, revoked, 1);
    await(fixture, silent, WIRE_HANDSHAKE_DONE);
    await(fixture, silent_revoked, WIRE_HANDSHAKE_DONE);
    deliver(fixture, friend, &frame);
    const struct wire_route route = frame.route;
    port_release(&frame);

    // The list is asked no more, but each frame still says whose it is.
    atomic_store(&fixture->admitted, 1);
    assert_gets_in(fixture, revoked, 1);

    port_hang_up(fixture->server);
    // Whoever is admitted still has its connection, also without a message so far.
    struct wire_counters counters;
    port_count(fixture->server, &counters);
    assert_true(counters.connections >= 2);
    await(fixture, revoked, WIRE_HANDSHAKE_REFUSED);
    await(fixture, silent_revoked, WIRE_HANDSHAKE_REFUSED);
    assert_int_equal(wire_handshake(silent), WIRE_HANDSHAKE_DONE);
    wire_close(silent);
    wire_close(silent_revoked);
    assert_stays_out(fixture, revoked);
    assert_int_equal(port_send(fixture->server, &route, "pong", 4), STATUS_OK);
    uint32_t ready = 0;
    wire_wait(&friend, 1, -1, INT64_C(10000000000), &ready);
    struct wire_bytes answer;
    assert_int_equal(wire_receive(friend, &answer), STATUS_OK);
    assert_gets_in(fixture, friend, 0);
    AWAIT_COUNT(fixture, cuts[WIRE_CUT_STRANGER], 1);

    // On the list again.
    atomic_store(&fixture->admitted, 3);
    wire_close(revoked);
    revoked = join(fixture, 1);
    assert_gets_in(fixture, revoked, 1);
    wire_close(revoked);
    wire_close(friend);
}

STATE_CASE(test_other_mechanisms, struct fixture *fixture)
{
    start(fixture, 0);
    struct wire_socket *plain = NULL, *friend = join(fixture, 0);
    assert_int_equal(
        wire_connect(&plain, fixture->context, fixture->endpoint, ADDRESS_QUERY, NULL, NULL, NULL),
        STATUS_OK);
    await(fixture, plain, WIRE_HANDSHAKE_BROKEN);
    assert_stays_out(fixture, plain);
    AWAIT_COUNT(fixture, handshakes, 1);
    assert_gets_in(fixture, friend, 0);
    wire_close(plain);
    wire_close(friend);
    port_close(fixture->server);

    // And the other way round.
    const struct wire_listen without_keys = {.service = ADDRESS_QUERY};
    fixture->server = bind_free_port(fixture, "127.0.0.1", &without_keys);
    assert_non_null(fixture->server);
    struct wire_socket *with_keys = join(fixture, 0);
    await(fixture, with_keys, WIRE_HANDSHAKE_BROKEN);
    assert_stays_out(fixture, with_keys);
    wire_close(with_keys);
}

// An ipc socket goes by permission, whatever the guard says.
STATE_CASE(test_ipc_is_plain, struct fixture *fixture)
{
    char folder[] = "/tmp/inferstat-curve-XXXXXX";
    assert_non_null(mkdtemp(folder));
    (void)snprintf(fixture->endpoint, sizeof fixture->endpoint, "ipc://%s/query", folder);
    const struct wire_listen listen = {
        .service = ADDRESS_QUERY, .guard = &fixture->guard, .connections_max = 9};
    assert_int_equal(
        port_open(&fixture->server, fixture->listener, fixture->endpoint, &listen, NULL),
        STATUS_OK);
    struct wire_socket *client = NULL;
    assert_int_equal(
        wire_connect(&client, fixture->context, fixture->endpoint, ADDRESS_QUERY, NULL, NULL, NULL),
        STATUS_OK);
    struct wire_frame frame;
    deliver(fixture, client, &frame);
    assert_int_not_equal(frame.peer.kind, PEER_KEY);
    port_release(&frame);
    struct wire_counters counters;
    await_one_connection(fixture, &counters);

    // Hung up, it comes back.
    port_hang_up(fixture->server);
    deliver(fixture, client, &frame);
    port_release(&frame);
    wire_close(client);
    port_close(fixture->server);
    fixture->server = NULL;
    assert_int_equal(rmdir(folder), 0);
}

static int connect_raw(const struct fixture *fixture)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)fixture->port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&name, sizeof name), 0);
    return fd;
}

// Strangers who connect and say nothing take no place of one who speaks, and
// never more than there are.
static void test_silent_connections(void **state)
{
    enum { PLACES = 8, SILENT = 60 };
    struct fixture *fixture = *state;
    start(fixture, PLACES);
    struct wire_socket *before = join(fixture, 0);
    assert_gets_in(fixture, before, 0);
    int silent[SILENT];
    for (unsigned i = 0; i < SILENT; i++)
        silent[i] = connect_raw(fixture);
    AWAIT_COUNT(fixture, cuts[WIRE_CUT_CONNECTIONS], SILENT + 1 - PLACES);
    struct wire_counters counters;
    port_count(fixture->server, &counters);
    assert_int_equal(counters.connections, PLACES);
    struct wire_socket *after = join(fixture, 1);
    assert_gets_in(fixture, after, 1);
    assert_gets_in(fixture, before, 0);
    port_count(fixture->server, &counters);
    assert_int_equal(counters.connections, PLACES);
    assert_int_equal(counters.cuts[WIRE_CUT_CONNECTIONS], SILENT + 2 - PLACES);

    // The oldest were ended: they read the end.
    char greeting[64];
    ssize_t got = 1;
    while (got > 0)
        got = recv(silent[0], greeting, sizeof greeting, 0);
    assert_true(got == 0 || errno == ECONNRESET);
    for (unsigned i = 0; i < SILENT; i++)
        (void)close(silent[i]);
    wire_close(before);
    wire_close(after);
}

// Those who have spoken keep their places; one more gets in when one leaves.
static void test_all_places_taken(void **state)
{
    enum { PLACES = 4 };
    struct fixture *fixture = *state;
    start(fixture, PLACES);
    struct wire_socket *clients[PLACES];
    for (unsigned i = 0; i < PLACES; i++) {
        clients[i] = join(fixture, i);
        assert_gets_in(fixture, clients[i], i);
    }
    struct wire_socket *late = join(fixture, PLACES);
    AWAIT_COUNT(fixture, cuts[WIRE_CUT_CONNECTIONS], 1);
    assert_stays_out(fixture, late);
    for (unsigned i = 0; i < PLACES; i++)
        assert_gets_in(fixture, clients[i], i);
    wire_close(clients[0]);
    assert_gets_in(fixture, late, PLACES);
    for (unsigned i = 1; i < PLACES; i++)
        wire_close(clients[i]);
    wire_close(late);
}

TEST_MAIN_EACH(setup, teardown, test_keys, test_no_keys, test_admitted, test_the_largest_answer,
               test_ipv6, test_two_guards, test_wrong_server_key, test_stranger, test_revoked,
               test_other_mechanisms, test_ipc_is_plain, test_silent_connections,
               test_all_places_taken)
