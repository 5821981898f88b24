#include "common/wire/socket.h"

#include <zmq.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/wire/message.h"
#include "common/wire/socket_dealer.h"
#include "common/wire/socket_gate.h"

enum { WAIT_SOCKETS_MAX = 31 };

// What libzmq may hold of a peer, by service; the table in socket.h.
static const struct zmq_limits limits_of[ADDRESS_SERVICES] = {
    // Twice what a collector takes, so that a producer that is wrong by a little
    // is told so.
    [ADDRESS_INGEST] = {8 * 1024 * 1024, 8, 64},
    // Questions are small, answers may have 16 MiB.
    [ADDRESS_QUERY] = {64 * 1024, 16, 8},
    [ADDRESS_LIVE] = {64 * 1024, 16, 64},
    [ADDRESS_ADMIN] = {64 * 1024, 16, 8},
};

struct wire_context {
    void *zmq;
    pthread_mutex_t lock;
    struct gate *gate; // made with the first socket that needs it; under the lock
};

struct wire_socket {
    struct dealer *dealer;  // of a connecting socket; else NULL
    void *zmq;              // of a listening one, libzmq's ROUTER
    struct gate_post *post; // of a ROUTER with a guard or a limit; else NULL
    char *file;             // an ipc socket's, made by this bind; or NULL
    struct stat file_about; // of that file
};

// A ROUTER counts the ids of those who bring none, from where rand() says, and
// libzmq 4.3.4 ends the program where one that brought its own has taken the next.
static void seed_ids(void)
{
    unsigned seed = 0;
    if (getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed)
        srand(seed);
}

enum status wire_context_new(struct wire_context **out, struct error *err)
{
    struct wire_context *context = calloc(1, sizeof *context);
    if (!context)
        return error_no_memory(err, "sockets");
    (void)pthread_mutex_init(&context->lock, NULL);
    context->zmq = zmq_ctx_new();
    if (!context->zmq || zmq_ctx_set(context->zmq, ZMQ_IO_THREADS, 1) != 0 ||
        zmq_ctx_set(context->zmq, ZMQ_BLOCKY, 0) != 0) {
        enum status status =
            error_set(err, STATUS_IO, "sockets: ZeroMQ does not start: %s", zmq_strerror(errno));
        wire_context_free(context);
        return status;
    }
    *out = context;
    return STATUS_OK;
}

void wire_context_free(struct wire_context *context)
{
    if (!context)
        return;
    gate_free(context->gate);
    while (context->zmq && zmq_ctx_term(context->zmq) != 0 && errno == EINTR) {
        // A signal came: the wait for libzmq's threads goes on.
    }
    (void)pthread_mutex_destroy(&context->lock);
    free(context);
}

// ---- Opening -------------------------------------------------------------------

// libzmq unlinks whatever is at an ipc path before it binds, which is right for
// the socket of a dead program and wrong for anything else.
static enum status check_ipc_free(const char *endpoint, struct error *err)
{
    if (strncmp(endpoint, "ipc://", 6) != 0)
        return STATUS_OK;
    const char *path = endpoint + 6;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        return error_set(err, STATUS_INVALID, "%s: a socket's path has at most %zu bytes", endpoint,
                         sizeof name.sun_path - 1);
    struct stat about;
    if (lstat(path, &about) != 0)
        return STATUS_OK; // nothing there, or bind will say what is wrong
    if (!S_ISSOCK(about.st_mode))
        return error_set(err, STATUS_INVALID, "%s: something other than a socket is there",
                         endpoint);
    memcpy(name.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set(err, STATUS_IO, "%s: %s", endpoint, strerror(errno));
    bool alive = connect(fd, (const struct sockaddr *)&name, sizeof name) == 0 || errno == EAGAIN;
    (void)close(fd);
    if (alive)
        return error_set(err, STATUS_BUSY, "%s: another program listens there", endpoint);
    return STATUS_OK;
}

// Remembers the socket file that was just bound, for wire_close.
static enum status remember_file(struct wire_socket *socket, const char *endpoint,
                                 struct error *err)
{
    if (strncmp(endpoint, "ipc://", 6) != 0)
        return STATUS_OK;
    socket->file = strdup(endpoint + 6);
    if (!socket->file)
        return error_no_memory(err, endpoint);
    if (lstat(socket->file, &socket->file_about) != 0)
        return error_set(err, STATUS_IO, "%s: its file is not there: %s", endpoint,
                         strerror(errno));
    return STATUS_OK;
}

// libzmq leaves the file of a socket where it is.  It goes while the socket still
// listens, and only if it is still this socket's: its name is not yet another's.
static void remove_file(const struct wire_socket *socket)
{
    struct stat about;
    if (socket->file && lstat(socket->file, &about) == 0 && S_ISSOCK(about.st_mode) &&
        about.st_dev == socket->file_about.st_dev && about.st_ino == socket->file_about.st_ino)
        (void)unlink(socket->file);
}

// The context's gate, made when first needed.
static enum status gate_of(struct gate **out, struct wire_context *context, struct error *err)
{
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&context->lock);
    if (!context->gate)
        status = gate_new(&context->gate, context->zmq, err);
    *out = context->gate;
    (void)pthread_mutex_unlock(&context->lock);
    return status;
}

static enum status guard_socket(struct wire_socket *socket, struct wire_context *context,
                                const char *endpoint, const struct wire_listen *listen,
                                struct error *err)
{
    struct gate *gate = NULL;
    if (!listen->guard && !listen->connections_max)
        return STATUS_OK;
    enum status status = gate_of(&gate, context, err);
    return status == STATUS_OK ? gate_open(&socket->post, gate, socket->zmq, endpoint, listen, err)
                               : status;
}

enum status wire_bind(struct wire_socket **out, struct wire_context *context, const char *endpoint,
                      const struct wire_listen *listen, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, seed_ids); // a program that only connects has its own rand()
    struct wire_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return error_no_memory(err, endpoint);
    enum status status = check_ipc_free(endpoint, err);
    if (status == STATUS_OK)
        status = zmq_open(&socket->zmq, context->zmq, ZMQ_ROUTER, endpoint,
                          &limits_of[listen->service], err);
    if (status == STATUS_OK)
        status = guard_socket(socket, context, endpoint, listen, err);
    if (status == STATUS_OK) {
        // zmq_bind makes the socket file in this thread.
        mode_t before = umask(listen->owner_only ? 0177 : 0117);
        status = zmq_opened(zmq_bind(socket->zmq, endpoint), endpoint, "listen there", err);
        (void)umask(before);
    }
    if (status == STATUS_OK)
        status = remember_file(socket, endpoint, err);
    if (status != STATUS_OK) {
        wire_close(socket);
        return status;
    }
    *out = socket;
    return STATUS_OK;
}

void wire_hang_up(struct wire_socket *socket)
{
    if (socket->post)
        gate_hang_up(socket->post);
}

void wire_count(const struct wire_socket *socket, struct wire_counters *out)
{
    *out = (struct wire_counters){0};
    if (socket->post)
        gate_count(socket->post, out);
}

// Makes a socket of a dealer that was opened with `status`.
static enum status use_dealer(struct wire_socket **out, struct dealer *dealer, enum status status,
                              struct error *err)
{
    if (status != STATUS_OK)
        return status;
    struct wire_socket *socket = calloc(1, sizeof *socket);
    if (!socket) {
        dealer_close(dealer);
        return error_no_memory(err, "socket");
    }
    socket->dealer = dealer;
    *out = socket;
    return STATUS_OK;
}

enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                         const char *endpoint, enum address_service service,
                         const struct wire_pass *pass, struct error *err)
{
    struct dealer *dealer = NULL;
    const enum status status = dealer_open(&dealer, context->zmq, endpoint, service, pass, err);
    return use_dealer(out, dealer, status, err);
}

enum status wire_connect_ipc(struct wire_socket **out, struct wire_context *context,
                             const struct address *address, enum address_service service,
                             const struct peer_trust *trust, struct error *err)
{
    struct dealer *dealer = NULL;
    const enum status status = dealer_open_ipc(&dealer, context->zmq, address, service, trust, err);
    return use_dealer(out, dealer, status, err);
}

enum wire_handshake wire_handshake(struct wire_socket *socket)
{
    return dealer_handshake(socket->dealer);
}

const char *wire_trouble(const struct wire_socket *socket)
{
    return dealer_trouble(socket->dealer);
}

void wire_count_garbage(struct wire_socket *socket)
{
    dealer_count_garbage(socket->dealer);
}

void wire_close(struct wire_socket *socket)
{
    if (!socket)
        return;
    remove_file(socket);
    gate_close(socket->post);
    dealer_close(socket->dealer);
    if (socket->zmq)
        (void)zmq_close(socket->zmq);
    free(socket->file);
    free(socket);
}

// ---- Sending and receiving ---------------------------------------------------------

enum status wire_send(struct wire_socket *socket, const struct wire_route *route, const void *bytes,
                      size_t size)
{
    assert((socket->dealer == NULL) == (route != NULL));
    if (size > MESSAGE_SIZE_MAX)
        return STATUS_INVALID;
    if (socket->dealer)
        return dealer_send(socket->dealer, bytes, size);
    enum status status = zmq_send_part(socket->zmq, route->id, route->size, ZMQ_SNDMORE);
    return status == STATUS_OK ? zmq_send_part(socket->zmq, bytes, size, 0) : status;
}

// Reads the route in front of a ROUTER's message.  The parts of one message are
// all there once the first is.
static enum status receive_route(struct wire_socket *socket, struct wire_route *route,
                                 bool *payload_follows)
{
    zmq_msg_t part;
    (void)zmq_msg_init(&part);
    enum status status = zmq_receive_part(socket->zmq, &part);
    if (status == STATUS_OK) {
        size_t size = zmq_msg_size(&part);
        assert(size <= sizeof route->id); // libzmq's own bound on routing ids
        route->size = (unsigned char)size;
        memcpy(route->id, zmq_msg_data(&part), size);
        *payload_follows = zmq_msg_more(&part) != 0;
    }
    (void)zmq_msg_close(&part);
    return status;
}

_Static_assert(sizeof(((struct wire_frame *)NULL)->part) == sizeof(zmq_msg_t), "a message fits");

static zmq_msg_t *part_of(struct wire_frame *frame)
{
    return (zmq_msg_t *)(void *)frame->part;
}

// Sets the sender from the properties that libzmq read when the connection was made.
static enum status receive_sender(struct wire_socket *socket, struct wire_frame *frame)
{
    struct wire_peer *peer = &frame->peer;
    zmq_read_peer(frame);
    if (!socket->post)
        return STATUS_OK;
    const bool is_guarded = gate_is_guarded(socket->post);
    const char *user = is_guarded ? zmq_msg_gets(part_of(frame), "User-Id") : NULL;
    if (user && wire_key_parse(peer->key, user))
        peer->kind = PEER_KEY;
    const bool has_key = peer->kind == PEER_KEY;
    if (is_guarded && !has_key)
        return STATUS_INVALID;
    gate_heard(socket->post, zmq_msg_get(part_of(frame), ZMQ_SRCFD), has_key ? peer->key : NULL);
    return STATUS_OK;
}

enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame)
{
    *frame = (struct wire_frame){0};
    if (socket->dealer)
        return dealer_receive(socket->dealer, frame);
    bool payload_follows = true;
    enum status status = receive_route(socket, &frame->route, &payload_follows);
    if (status != STATUS_OK)
        return status;
    if (!payload_follows)
        return STATUS_INVALID;

    zmq_msg_t *part = part_of(frame);
    (void)zmq_msg_init(part);
    frame->is_held = true;
    status = zmq_receive_part(socket->zmq, part);
    if (status == STATUS_OK && zmq_msg_more(part)) {
        zmq_drain(socket->zmq);
        status = STATUS_INVALID;
    }
    if (status == STATUS_OK)
        status = receive_sender(socket, frame);
    if (status != STATUS_OK) {
        wire_frame_release(frame);
        return status;
    }
    frame->bytes = zmq_msg_data(part);
    frame->size = zmq_msg_size(part);
    return STATUS_OK;
}

void wire_frame_release(struct wire_frame *frame)
{
    if (frame->is_held)
        dealer_frame_release(frame);
    frame->is_held = false;
    frame->bytes = NULL;
    frame->size = 0;
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
    zmq_pollitem_t items[WAIT_SOCKETS_MAX + 1];
    unsigned bits[WAIT_SOCKETS_MAX + 1];
    int used = 0;
    for (unsigned i = 0; i < count; i++) {
        struct wire_socket *socket = sockets[i];
        void *zmq = socket && socket->dealer ? dealer_zmq(socket->dealer)
                    : socket                 ? socket->zmq
                                             : NULL;
        if (!zmq)
            continue;
        items[used] = (zmq_pollitem_t){.socket = zmq, .events = ZMQ_POLLIN};
        bits[used++] = i;
    }
    if (fd >= 0) {
        items[used] = (zmq_pollitem_t){.fd = fd, .events = ZMQ_POLLIN};
        bits[used++] = (unsigned)count;
    }
    *ready = 0;
    if (zmq_poll(items, used, poll_timeout(timeout_ns)) <= 0)
        return;
    for (int i = 0; i < used; i++)
        if (items[i].revents)
            *ready |= UINT32_C(1) << bits[i];
}
