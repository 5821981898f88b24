// Our side of ZMTP against libzmq's clients, over TCP: what both see of it.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#include "common/wire/socket.h"
#include "common/wire/listener/zmtp.h"
#include "tests/support/test.h"

enum { TRIES = 10000, MESSAGE_MAX = 1 << 20 };

// A server of one connection at a time; answers every message with the same.
struct server {
    struct wire_keypair keys;
    struct zmtp_rules rules;
    bool refuses;
    size_t piece; // bytes read at once
    int listener, connection;
    struct zmtp zmtp;
    struct wire_context *context;
    struct wire_pass pass; // with which a client is admitted
    struct wire_socket *client;
    char endpoint[64];
    unsigned char *room;
    unsigned messages, pings;
    size_t last_size;
    enum wire_cut cut; // of the last connection that broke
    unsigned char key[WIRE_KEY_SIZE];
};

static void hang_up(struct server *server)
{
    if (server->connection < 0)
        return;
    (void)close(server->connection);
    server->connection = -1;
    zmtp_deinit(&server->zmtp);
    free(server->room);
    server->room = NULL;
}

static void put(const struct server *server, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(server->connection, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            continue;
        if (sent < 0)
            return; // the client has gone, which the next read tells
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void answer(struct server *server, const struct zmtp_step *step)
{
    const size_t size = zmtp_frame_size(&server->zmtp, step->size);
    unsigned char *frame = malloc(size);
    assert_non_null(frame);
    zmtp_frame(&server->zmtp, frame, step->message, step->size);
    put(server, frame, size);
    free(frame);
    server->messages++;
    server->last_size = step->size;
}

static void follow(struct server *server, struct zmtp_step *step)
{
    unsigned char pong[ZMTP_PONG_MAX];
    if (step->kind == ZMTP_ADMIT) {
        memcpy(server->key, step->key, sizeof server->key);
        zmtp_admit(&server->zmtp, !server->refuses, step);
    }
    put(server, step->reply, step->reply_size);
    if (step->kind == ZMTP_FRAME) {
        server->room = malloc(step->size + 1);
        assert_non_null(server->room);
        zmtp_room(&server->zmtp, server->room);
        return;
    }
    if (step->kind == ZMTP_MESSAGE)
        answer(server, step);
    if (step->kind == ZMTP_PING) {
        put(server, pong, zmtp_pong(&server->zmtp, step, pong));
        server->pings++;
    }
    if (step->kind != ZMTP_MORE) {
        free(server->room);
        server->room = NULL;
    }
    if (step->kind == ZMTP_BROKEN) {
        server->cut = step->cut;
        hang_up(server);
    }
}

static void accept_one(struct server *server)
{
    struct zmtp_step step = {.kind = ZMTP_MORE};
    server->connection = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (server->connection < 0)
        return;
    zmtp_init(&server->zmtp, &server->rules, &step);
    put(server, step.reply, step.reply_size);
}

// Does what there is to do; waits a millisecond where that is nothing.
static void serve(struct server *server)
{
    static unsigned char bytes[65536];
    struct zmtp_step step = {.kind = ZMTP_REPLY};
    if (server->connection < 0)
        accept_one(server);
    const ssize_t got =
        server->connection < 0 ? -1 : recv(server->connection, bytes, server->piece, 0);
    if (got == 0 || (got < 0 && server->connection >= 0 && errno != EAGAIN))
        hang_up(server);
    if (got <= 0)
        (void)usleep(1000);
    for (size_t used = 0; got > 0 && server->connection >= 0 && step.kind != ZMTP_MORE;) {
        used += zmtp_consume(&server->zmtp, bytes + used, (size_t)got - used, &step);
        follow(server, &step);
    }
}

static int setup(void **state)
{
    struct server *server = calloc(1, sizeof *server);
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof where;
    assert_non_null(server);
    server->rules.frame_max = MESSAGE_MAX;
    server->piece = 65536;
    server->connection = -1;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&where, size), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&where, &size), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    (void)snprintf(server->endpoint, sizeof server->endpoint, "tcp://127.0.0.1:%u",
                   ntohs(where.sin_port));
    assert_int_equal(wire_context_new(&server->context, NULL), STATUS_OK);
    assert_int_equal(wire_keypair_new(&server->keys, NULL), STATUS_OK);
    assert_int_equal(wire_keypair_new(&server->pass.own, NULL), STATUS_OK);
    memcpy(server->pass.server_key, server->keys.public_key, WIRE_KEY_SIZE);
    *state = server;
    return 0;
}

static int teardown(void **state)
{
    struct server *server = *state;
    hang_up(server);
    wire_close(server->client);
    (void)close(server->listener);
    wire_context_free(server->context);
    free(server);
    return 0;
}

static void leave(struct server *server)
{
    wire_close(server->client);
    server->client = NULL;
    hang_up(server);
}

static void join(struct server *server, bool has_keys)
{
    assert_int_equal(wire_connect(&server->client, server->context, server->endpoint, ADDRESS_QUERY,
                                  has_keys ? &server->pass : NULL, NULL, NULL),
                     STATUS_OK);
}

// Sends a message of `size` bytes and waits for the same back.
static void exchange(struct server *server, size_t size)
{
    unsigned char *message = malloc(size + 1);
    struct wire_bytes frame;
    enum status status = STATUS_FULL;
    assert_non_null(message);
    memset(message, 'a' + (int)(size % 26), size + 1);
    for (int i = 0; i < TRIES && status != STATUS_OK; i++) {
        status = wire_send(server->client, message, size);
        serve(server);
    }
    assert_int_equal(status, STATUS_OK);
    status = STATUS_NO_DATA;
    for (int i = 0; i < TRIES * 10 && status == STATUS_NO_DATA; i++) {
        serve(server);
        status = wire_receive(server->client, &frame);
    }
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(frame.size, size);
    assert_memory_equal(frame.bytes, message, size);
    free(message);
}

static void check_exchanges(struct server *server)
{
    static const size_t sizes[] = {1, 222, 223, 255, 256, 8192, 65536, MESSAGE_MAX};
    static const size_t pieces[] = {65536, 7, 1};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        server->piece = pieces[i];
        join(server, server->rules.keys);
        for (size_t k = 0; k < COUNT_OF(sizes) && sizes[k] <= 2000 * pieces[i]; k++)
            exchange(server, sizes[k]);
        assert_int_equal(wire_handshake(server->client), WIRE_HANDSHAKE_DONE);
        leave(server);
    }
    assert_int_equal(server->cut, WIRE_CUT_NONE);
}

STATE_CASE(test_without_keys, struct server *server)
{
    check_exchanges(server);
}

STATE_CASE(test_with_keys, struct server *server)
{
    server->rules.keys = &server->keys;
    check_exchanges(server);
    assert_memory_equal(server->key, server->pass.own.public_key, WIRE_KEY_SIZE);
}

// Serves until the client knows how its handshake went, and the server why it broke the connection.
// A client that finds the wrong mechanism in the server's greeting leaves by itself:
// WIRE_CUT_NONE.
static void await(struct server *server, bool has_keys, enum wire_handshake wanted,
                  enum wire_cut cut)
{
    enum wire_handshake handshake = WIRE_HANDSHAKE_NONE;
    join(server, has_keys);
    server->cut = WIRE_CUT_NONE;
    for (int i = 0; i < TRIES && (handshake != wanted || server->cut != cut); i++) {
        serve(server);
        handshake = wire_handshake(server->client);
    }
    assert_int_equal(handshake, wanted);
    assert_int_equal(server->cut, cut);
    leave(server);
}

STATE_CASE(test_refused, struct server *server)
{
    server->refuses = true;
    await(server, false, WIRE_HANDSHAKE_REFUSED, WIRE_CUT_STRANGER);
    server->rules.keys = &server->keys;
    await(server, true, WIRE_HANDSHAKE_REFUSED, WIRE_CUT_STRANGER);
}

STATE_CASE(test_misfits, struct server *server)
{
    await(server, true, WIRE_HANDSHAKE_BROKEN, WIRE_CUT_NONE);
    server->rules.keys = &server->keys;
    await(server, false, WIRE_HANDSHAKE_BROKEN, WIRE_CUT_NONE);
    server->pass.server_key[3] ^= 1;
    await(server, true, WIRE_HANDSHAKE_BROKEN, WIRE_CUT_KEYS);
}

// ---- What our own sockets do not do ------------------------------------------------

struct raw {
    void *context, *socket;
};

static struct raw raw_join(const struct server *server, int type, const char *id, int heartbeat_ms)
{
    struct raw raw = {.context = zmq_ctx_new()};
    const int zero = 0;
    raw.socket = zmq_socket(raw.context, type);
    assert_non_null(raw.socket);
    assert_int_equal(zmq_setsockopt(raw.socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    assert_int_equal(
        zmq_setsockopt(raw.socket, ZMQ_HEARTBEAT_IVL, &heartbeat_ms, sizeof heartbeat_ms), 0);
    if (id)
        assert_int_equal(zmq_setsockopt(raw.socket, ZMQ_ROUTING_ID, id, strlen(id)), 0);
    if (server->rules.keys) {
        const struct wire_pass *pass = &server->pass;
        assert_int_equal(
            zmq_setsockopt(raw.socket, ZMQ_CURVE_SERVERKEY, pass->server_key, WIRE_KEY_SIZE), 0);
        assert_int_equal(
            zmq_setsockopt(raw.socket, ZMQ_CURVE_PUBLICKEY, pass->own.public_key, WIRE_KEY_SIZE),
            0);
        assert_int_equal(
            zmq_setsockopt(raw.socket, ZMQ_CURVE_SECRETKEY, pass->own.secret_key, WIRE_KEY_SIZE),
            0);
    }
    assert_int_equal(zmq_connect(raw.socket, server->endpoint), 0);
    return raw;
}

static void raw_leave(struct raw *raw)
{
    (void)zmq_close(raw->socket);
    (void)zmq_ctx_term(raw->context);
}

// Heartbeats are answered, or the client would cut the connection; a message of several frames ends
// it.
static void check_heartbeats(struct server *server)
{
    char text[8] = "";
    server->pings = 0;
    server->cut = WIRE_CUT_NONE;
    struct raw raw = raw_join(server, ZMQ_DEALER, NULL, 20);
    for (int i = 0; i < TRIES && server->pings < 20; i++)
        serve(server);
    assert_true(server->pings >= 20);
    assert_int_equal(zmq_send(raw.socket, "hello", 5, 0), 5);
    for (int i = 0; i < TRIES && zmq_recv(raw.socket, text, 5, ZMQ_DONTWAIT) != 5; i++)
        serve(server);
    assert_string_equal(text, "hello");
    assert_int_equal(server->cut, WIRE_CUT_NONE);
    assert_int_equal(zmq_send(raw.socket, "a", 1, ZMQ_SNDMORE), 1);
    assert_int_equal(zmq_send(raw.socket, "", 0, 0), 0);
    for (int i = 0; i < TRIES && server->cut == WIRE_CUT_NONE; i++)
        serve(server);
    assert_int_equal(server->cut, WIRE_CUT_FRAMES);
    raw_leave(&raw);
    hang_up(server);
}

STATE_CASE(test_heartbeats, struct server *server)
{
    check_heartbeats(server);
    server->rules.keys = &server->keys;
    check_heartbeats(server);
}

STATE_CASE(test_unwelcome, struct server *server)
{
    static const struct {
        int type;
        const char *id;
        bool has_keys;
        enum wire_cut cut;
    } cases[] = {
        {ZMQ_DEALER, "mine", false, WIRE_CUT_ROUTING_ID},
        {ZMQ_DEALER, "mine", true, WIRE_CUT_ROUTING_ID},
        {ZMQ_REQ, NULL, false, WIRE_CUT_GARBAGE},
        {ZMQ_SUB, NULL, false, WIRE_CUT_GARBAGE},
        {ZMQ_PUSH, NULL, true, WIRE_CUT_GARBAGE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        server->rules.keys = cases[i].has_keys ? &server->keys : NULL;
        server->cut = WIRE_CUT_NONE;
        struct raw raw = raw_join(server, cases[i].type, cases[i].id, 0);
        for (int k = 0; k < TRIES && server->cut == WIRE_CUT_NONE; k++)
            serve(server);
        assert_int_equal(server->cut, cases[i].cut);
        raw_leave(&raw);
    }
}

TEST_MAIN_EACH(setup, teardown, test_without_keys, test_with_keys, test_refused, test_misfits,
               test_heartbeats, test_unwelcome)
