#include "common/wire/socket.h"

#include <zmq.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/sys/files.h"

enum {
    HANDSHAKE_MS = 5000,
    RECONNECT_MS = 50,
    UNANSWERED_ATTEMPTS = 2, // a collector that closes connections refuses for a moment
    RECONNECT_MAX_MS = 2000,
    // With a pass: libzmq does not wait longer each time a server with another key
    // cuts it off.
    RECONNECT_CURVE_MS = 250,
};

enum {
    SOCKETS_MAX = 1000, // of a context, each with its `peek`
    WAIT_SOCKETS_MAX = 31,
    QUEUE_OUT = 64, // messages
    GARBAGE_MAX = 64,
    TROUBLE_SIZE = PEER_TEXT_SIZE + 128,
};

static const uint64_t second_ns = UINT64_C(1000000000);

// What a collector may send.  Its Acks have up to 280 KiB, one for each
// batch; its answers and live records up to MESSAGE_SIZE_MAX, and what keys add.
static const struct wire_limits {
    int64_t frame_max;
    uint64_t messages, bytes; // a second
} ingest_limits = {1 << 20, 8192, 16 << 20},
  other_limits = {MESSAGE_SIZE_MAX + 1024, 65536, 512 << 20};

struct wire_context {
    void *zmq;
};

struct wire_socket {
    void *zmq;
    void *peek; // libzmq tells of connections there
    enum wire_handshake handshake;
    bool is_shaking;    // hands, at the moment
    unsigned failed;    // attempts to connect in a row, while there was no peer so far
    bool is_unanswered; // these were enough
    const struct wire_limits *limits;
    zmq_msg_t last;                     // the last message
    struct wire_peer peer;              // who sent it
    uint64_t messages, bytes, since_ns; // received since then, at most a second ago
    unsigned garbage;                   // messages that cannot be read since then,
    uint64_t garbage_since_ns;          // at most 10 s ago
    char trouble[TROUBLE_SIZE];         // why the connection was closed; "": it is not
    // Of an ipc endpoint with `trust`; else -1.
    int folder_fd;
    struct peer_trust trust;
    char folder[ADDRESS_TEXT_SIZE];
};

// Held while a context of libzmq begins or ends: the first one sets libpgm up and the last one
// takes it down, which libpgm does not guard against each other.
static pthread_mutex_t lifetime = PTHREAD_MUTEX_INITIALIZER;

enum status wire_context_new(struct wire_context **out, struct error *err)
{
    struct wire_context *context = calloc(1, sizeof *context);
    if (!context)
        return error_no_memory(err, "sockets");
    (void)pthread_mutex_lock(&lifetime);
    context->zmq = zmq_ctx_new();
    (void)pthread_mutex_unlock(&lifetime);
    if (!context->zmq || zmq_ctx_set(context->zmq, ZMQ_BLOCKY, 0) != 0 ||
        zmq_ctx_set(context->zmq, ZMQ_MAX_SOCKETS, 2 * SOCKETS_MAX) != 0) {
        (void)error_set(err, STATUS_IO, "sockets: ZeroMQ does not start: %s", zmq_strerror(errno));
        wire_context_free(context);
        return STATUS_IO;
    }
    *out = context;
    return STATUS_OK;
}

void wire_context_free(struct wire_context *context)
{
    if (!context)
        return;
    (void)pthread_mutex_lock(&lifetime);
    while (context->zmq && zmq_ctx_term(context->zmq) != 0 && errno == EINTR) {
        // A signal came: the wait for libzmq's threads goes on.
    }
    (void)pthread_mutex_unlock(&lifetime);
    free(context);
}

// ---- Opening and closing -----------------------------------------------------------

static bool set_int(void *zmq, int option, int value)
{
    return zmq_setsockopt(zmq, option, &value, sizeof value) == 0;
}

// What all sockets have, with what keeps a connection from hanging.  IPv6 is switched on only where
// the endpoint needs it, so that a host without it can use the rest.
//
// ZeroMQ's own heartbeats stay off: libzmq 4.3.4 ends the program with "Assertion
// failed: !_io_error" when it is time for one, or one arrives, on a connection that was
// lost while its queue was full.  So a DEALER's queue of received messages has no limit.
static bool set_options(void *zmq, const char *endpoint, const struct wire_limits *limits)
{
    const struct {
        int name, value;
    } options[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_SNDHWM, QUEUE_OUT},
        {ZMQ_RCVHWM, 0},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S},
        {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S},
        {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES},
        {ZMQ_TCP_MAXRT, UNACKNOWLEDGED_MS},
        {ZMQ_IPV6, strchr(endpoint, '[') != NULL},
        {ZMQ_IMMEDIATE, 1},
        {ZMQ_RECONNECT_IVL, RECONNECT_MS},
        {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
    };
    bool done = zmq_setsockopt(zmq, ZMQ_MAXMSGSIZE, &limits->frame_max, sizeof(int64_t)) == 0;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        done = done && set_int(zmq, options[i].name, options[i].value);
    return done;
}

// Subscribes to libzmq's handshake events.  The queue has no limit, because libzmq would
// block on an event that does not fit.  Never HANDSHAKE_FAILED_PROTOCOL: libzmq 4.3.4 loses the
// reason on the way when it reports that one, and a connection with a malformed message stays open,
// unread.
static bool peek_at(struct wire_socket *socket, void *context, bool is_tcp)
{
    const int events = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
                       ZMQ_EVENT_CONNECT_RETRIED |
                       (is_tcp ? ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH : 0);
    static _Atomic unsigned last_peek; // tells the sockets' monitors apart
    char place[48];
    (void)snprintf(place, sizeof place, "inproc://inferstat-peek-%u",
                   atomic_fetch_add(&last_peek, 1));
    socket->peek = zmq_socket(context, ZMQ_PAIR);
    return socket->peek && set_int(socket->peek, ZMQ_RCVHWM, 0) &&
           zmq_socket_monitor(socket->zmq, place, events) == 0 &&
           zmq_connect(socket->peek, place) == 0;
}

static bool set_pass(void *zmq, const struct wire_pass *pass)
{
    return zmq_setsockopt(zmq, ZMQ_CURVE_SERVERKEY, pass->server_key, WIRE_KEY_SIZE) == 0 &&
           zmq_setsockopt(zmq, ZMQ_CURVE_PUBLICKEY, pass->own.public_key, WIRE_KEY_SIZE) == 0 &&
           zmq_setsockopt(zmq, ZMQ_CURVE_SECRETKEY, pass->own.secret_key, WIRE_KEY_SIZE) == 0 &&
           set_int(zmq, ZMQ_RECONNECT_IVL, RECONNECT_CURVE_MS);
}

static enum status open_zmq(struct wire_socket *socket, void *context, const char *endpoint,
                            const struct wire_pass *pass, struct error *err)
{
    // The first socket starts libzmq's threads, which inherit the mask: signals
    // are for the program's own threads.
    const bool is_tcp = strncmp(endpoint, "tcp://", 6) == 0;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    socket->zmq = zmq_socket(context, ZMQ_DEALER);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!socket->zmq || !set_options(socket->zmq, endpoint, socket->limits) ||
        (is_tcp && pass && !set_pass(socket->zmq, pass)) || !peek_at(socket, context, is_tcp))
        return error_set(err, STATUS_IO, "%s: the socket could not be made: %s", endpoint,
                         zmq_strerror(errno));
    if (zmq_connect(socket->zmq, endpoint) != 0)
        return error_set(err, errno == EINVAL ? STATUS_INVALID : STATUS_IO,
                         "%s: cannot connect: %s", endpoint, zmq_strerror(errno));
    return STATUS_OK;
}

static void note_event(struct wire_socket *socket, uint16_t event)
{
    bool was_shaking = socket->is_shaking;
    if (event == ZMQ_EVENT_CONNECT_RETRIED) {
        socket->failed++;
        socket->is_unanswered =
            socket->failed >= UNANSWERED_ATTEMPTS && socket->handshake == WIRE_HANDSHAKE_NONE;
        return;
    }
    socket->failed = 0;
    socket->is_unanswered = false;
    socket->is_shaking = event == ZMQ_EVENT_CONNECTED;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        socket->handshake = WIRE_HANDSHAKE_REFUSED;
    else if (socket->handshake == WIRE_HANDSHAKE_LOST)
        return; // what was lost stays so
    else if (event == ZMQ_EVENT_DISCONNECTED && socket->handshake != WIRE_HANDSHAKE_REFUSED)
        socket->handshake = was_shaking ? WIRE_HANDSHAKE_BROKEN : WIRE_HANDSHAKE_LOST;
    else if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        socket->handshake = WIRE_HANDSHAKE_DONE;
}

// Takes what libzmq has told since the last look.
static void look(struct wire_socket *socket)
{
    unsigned char frame[6];
    uint16_t event;
    int size;
    while (socket->peek &&
           (size = zmq_recv(socket->peek, frame, sizeof frame, ZMQ_DONTWAIT)) >= 0) {
        if (size != (int)sizeof frame)
            continue; // the endpoint, which follows each event
        memcpy(&event, frame, sizeof event);
        note_event(socket, event);
    }
}

bool wire_is_unanswered(struct wire_socket *socket)
{
    look(socket);
    return socket->is_unanswered;
}

const char *wire_trouble(const struct wire_socket *socket)
{
    return socket->trouble;
}

// Closes libzmq's side, which frees what it had received.
static void disconnect(struct wire_socket *socket)
{
    if (socket->peek) {
        // Before its reader goes: see peek_at.
        (void)zmq_socket_monitor(socket->zmq, NULL, 0);
        (void)zmq_close(socket->peek);
    }
    if (socket->zmq)
        (void)zmq_close(socket->zmq);
    socket->peek = NULL;
    socket->zmq = NULL;
}

// Closes the connection because of what the last sender did.
static void close_connection(struct wire_socket *socket, const char *what)
{
    char who[PEER_TEXT_SIZE];
    disconnect(socket);
    socket->handshake = WIRE_HANDSHAKE_CLOSED;
    (void)snprintf(socket->trouble, sizeof socket->trouble, "%s %s", peer_text(who, &socket->peer),
                   what);
}

static bool is_moved(const struct wire_socket *socket)
{
    struct stat held, found;
    return socket->folder_fd >= 0 &&
           (fstat(socket->folder_fd, &held) != 0 || stat(socket->folder, &found) != 0 ||
            held.st_ino != found.st_ino || held.st_dev != found.st_dev);
}

enum wire_handshake wire_handshake(struct wire_socket *socket)
{
    look(socket);
    return socket->zmq && is_moved(socket) ? WIRE_HANDSHAKE_MOVED : socket->handshake;
}

// Checks and opens the folder of an ipc endpoint, and makes the endpoint lead through it: libzmq,
// which connects later and again, always reaches the folder that was checked.  Without /proc the
// endpoint stays.
static enum status open_folder(struct wire_socket *socket, char endpoint[ADDRESS_TEXT_SIZE],
                               const struct peer_trust *trust, struct error *err)
{
    static const size_t scheme = sizeof "ipc://" - 1;
    char name[16], through[64];
    files_folder_of(socket->folder, sizeof socket->folder, endpoint + scheme);
    (void)snprintf(name, sizeof name, "%s", strrchr(endpoint, '/') + 1);
    socket->trust = *trust;
    const enum status status =
        peer_open_folder(&socket->folder_fd, &socket->trust, socket->folder, name, err);
    (void)snprintf(through, sizeof through, "ipc:///proc/self/fd/%d", socket->folder_fd);
    if (status == STATUS_OK && access(through + scheme, F_OK) == 0)
        (void)snprintf(endpoint, ADDRESS_TEXT_SIZE, "%s/%s", through, name);
    return status;
}

enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                         const char *endpoint, enum address_service service,
                         const struct wire_pass *pass, const struct peer_trust *trust,
                         struct error *err)
{
    char place[ADDRESS_TEXT_SIZE];
    struct wire_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return error_no_memory(err, endpoint);
    (void)zmq_msg_init(&socket->last);
    socket->folder_fd = -1;
    socket->limits = service == ADDRESS_INGEST ? &ingest_limits : &other_limits;
    (void)snprintf(place, sizeof place, "%s", endpoint);
    enum status status = STATUS_OK;
    if (trust && strncmp(place, "ipc://", 6) == 0)
        status = open_folder(socket, place, trust, err);
    if (status == STATUS_OK)
        status = open_zmq(socket, context->zmq, place, pass, err);
    if (status != STATUS_OK) {
        wire_close(socket);
        return status;
    }
    *out = socket;
    return STATUS_OK;
}

void wire_close(struct wire_socket *socket)
{
    if (!socket)
        return;
    disconnect(socket);
    (void)zmq_msg_close(&socket->last);
    if (socket->folder_fd >= 0)
        (void)close(socket->folder_fd);
    free(socket);
}

// ---- Sending and receiving ---------------------------------------------------------

enum status wire_send(struct wire_socket *socket, const void *bytes, size_t size)
{
    if (size > MESSAGE_SIZE_MAX)
        return STATUS_INVALID;
    if (!socket->zmq)
        return STATUS_FULL;
    while (zmq_send(socket->zmq, bytes, size, ZMQ_DONTWAIT) < 0)
        if (errno != EINTR)
            return errno == EAGAIN ? STATUS_FULL : errno == ENOMEM ? STATUS_NOMEM : STATUS_IO;
    return STATUS_OK;
}

// Counts a received message; returns false once there are too many in a second.
static bool count_message(struct wire_socket *socket, size_t size)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - socket->since_ns >= second_ns) {
        socket->since_ns = now_ns;
        socket->messages = 0;
        socket->bytes = 0;
    }
    socket->bytes += size;
    return ++socket->messages <= socket->limits->messages && socket->bytes <= socket->limits->bytes;
}

void wire_count_garbage(struct wire_socket *socket)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - socket->garbage_since_ns >= 10 * second_ns) {
        socket->garbage_since_ns = now_ns;
        socket->garbage = 0;
    }
    if (++socket->garbage >= GARBAGE_MAX && socket->zmq)
        close_connection(socket, "sends messages that cannot be read");
}

// Closes the connection if the peer may not answer or sends too much.
static void check_message(struct wire_socket *socket)
{
    const char *address = zmq_msg_gets(&socket->last, "Peer-Address");
    if (!address || !peer_read_address(&socket->peer, address))
        peer_set_host(&socket->peer, address);
    if (zmq_msg_more(&socket->last))
        close_connection(socket, "sends messages of several frames");
    else if (socket->folder_fd >= 0 && !peer_is_trusted(&socket->trust, &socket->peer))
        close_connection(socket, "answers, but is not trusted (--collector-user)");
    else if (!count_message(socket, zmq_msg_size(&socket->last)))
        close_connection(socket, "sends more in a second than a collector does");
}

enum status wire_receive(struct wire_socket *socket, struct wire_bytes *out)
{
    int size = -1;
    if (socket->zmq) {
        look(socket); // so that what is told does not pile up
        do {
            size = zmq_msg_recv(&socket->last, socket->zmq, ZMQ_DONTWAIT);
        } while (size < 0 && errno == EINTR);
        if (size < 0 && errno != EAGAIN)
            return STATUS_IO;
    }
    if (size >= 0)
        check_message(socket);
    if (size < 0 || !socket->zmq) { // frees the last message
        (void)zmq_msg_close(&socket->last);
        (void)zmq_msg_init(&socket->last);
        return STATUS_NO_DATA;
    }
    *out = (struct wire_bytes){(size_t)size, zmq_msg_data(&socket->last)};
    return STATUS_OK;
}

// Nanoseconds to zmq_poll's milliseconds, rounded up so that a wait is never cut
// short into a busy loop.
static long poll_timeout(int64_t timeout_ns)
{
    const int64_t day_ms = 86400000;
    if (timeout_ns < 0)
        return -1;
    int64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    return (long)(ms < day_ms ? ms : day_ms);
}

void wire_wait(struct wire_socket *const *sockets, size_t count, int fd, int64_t timeout_ns,
               uint32_t *ready)
{
    assert(count <= WAIT_SOCKETS_MAX);
    zmq_pollitem_t items[2 * WAIT_SOCKETS_MAX + 1];
    unsigned bits[2 * WAIT_SOCKETS_MAX + 1];
    int used = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!sockets[i] || !sockets[i]->zmq)
            continue;
        items[used] = (zmq_pollitem_t){.socket = sockets[i]->zmq, .events = ZMQ_POLLIN};
        bits[used++] = i;
        items[used] = (zmq_pollitem_t){.socket = sockets[i]->peek, .events = ZMQ_POLLIN};
        bits[used++] = i;
    }
    if (fd >= 0) {
        items[used] = (zmq_pollitem_t){.fd = fd, .events = ZMQ_POLLIN};
        bits[used++] = (unsigned)count;
    }
    *ready = 0;
    bool is_news = false;
    while (!is_news && *ready == 0 && zmq_poll(items, used, poll_timeout(timeout_ns)) > 0)
        for (int i = 0; i < used; i++)
            if (items[i].revents && items[i].socket && items[i].socket == sockets[bits[i]]->peek) {
                const bool was_unanswered = sockets[bits[i]]->is_unanswered;
                look(sockets[bits[i]]);
                is_news = is_news || sockets[bits[i]]->handshake > WIRE_HANDSHAKE_DONE ||
                          sockets[bits[i]]->is_unanswered > was_unanswered;
            } else if (items[i].revents) {
                *ready |= UINT32_C(1) << bits[i];
            }
}
