#include "common/wire/socket.h"

#include <zmq.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/wire/message.h"

enum {
    HANDSHAKE_MS = 5000,
    HEARTBEAT_INTERVAL_MS = 2000,
    HEARTBEAT_TIMEOUT_MS = 10000,
    RECONNECT_MS = 50,
    RECONNECT_MAX_MS = 2000,
    WAIT_SOCKETS_MAX = 31,
};

// What libzmq may hold of a peer, by service; the table in socket.h.
static const struct limits {
    int64_t frame_max;
    int queue_in, queue_out;
} limits_of[ADDRESS_SERVICES] = {
    // Twice what a collector takes, so that a producer that is wrong by a little
    // is told so.
    [ADDRESS_INGEST] = {8 * 1024 * 1024, 8, 64},
    // Questions are small, answers may have 16 MiB.
    [ADDRESS_QUERY] = {64 * 1024, 16, 4},
    [ADDRESS_LIVE] = {64 * 1024, 16, 64},
    [ADDRESS_ADMIN] = {64 * 1024, 16, 4},
};

// The same for the one collector a DEALER has.
static const struct limits dealer_limits = {MESSAGE_SIZE_MAX, 64, 64};

struct wire_context {
    void *zmq;
};

struct wire_socket {
    void *zmq;
    bool is_router;
    char *file;             // an ipc socket's, made by this bind; or NULL
    struct stat file_about; // of that file
};

enum status wire_context_new(struct wire_context **out, struct error *err)
{
    struct wire_context *context = calloc(1, sizeof *context);
    if (!context)
        return error_set(err, STATUS_NOMEM, "sockets: out of memory");
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
    while (context->zmq && zmq_ctx_term(context->zmq) != 0 && errno == EINTR) {
        // A signal came: the wait for libzmq's threads goes on.
    }
    free(context);
}

// ---- Opening -------------------------------------------------------------------

static bool set_int(void *zmq, int option, int value)
{
    return zmq_setsockopt(zmq, option, &value, sizeof value) == 0;
}

// What all sockets have, with what keeps a connection from hanging.  IPv6 is switched on only where
// the endpoint needs it, so that a host without it can use the rest.
static bool set_options(void *zmq, int type, const char *endpoint, const struct limits *limits)
{
    bool done = set_int(zmq, ZMQ_LINGER, 0) && set_int(zmq, ZMQ_SNDHWM, limits->queue_out) &&
                set_int(zmq, ZMQ_RCVHWM, limits->queue_in);
    if (!done)
        return false;
    done = zmq_setsockopt(zmq, ZMQ_MAXMSGSIZE, &limits->frame_max, sizeof limits->frame_max) == 0 &&
           set_int(zmq, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) &&
           set_int(zmq, ZMQ_HEARTBEAT_IVL, HEARTBEAT_INTERVAL_MS) &&
           set_int(zmq, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS) &&
           set_int(zmq, ZMQ_HEARTBEAT_TTL, HEARTBEAT_TIMEOUT_MS) &&
           set_int(zmq, ZMQ_TCP_KEEPALIVE, 1) &&
           set_int(zmq, ZMQ_IPV6, strchr(endpoint, '[') != NULL);
    if (!done)
        return false;
    if (type == ZMQ_ROUTER)
        return set_int(zmq, ZMQ_ROUTER_MANDATORY, 1);
    return set_int(zmq, ZMQ_IMMEDIATE, 1) && set_int(zmq, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
           set_int(zmq, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS);
}

static enum status open_socket(struct wire_socket **out, struct wire_context *context, int type,
                               const char *endpoint, const struct limits *limits, struct error *err)
{
    struct wire_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return error_set(err, STATUS_NOMEM, "%s: out of memory", endpoint);
    socket->is_router = type == ZMQ_ROUTER;

    // The first socket starts libzmq's threads, which inherit the mask: signals
    // are for the program's own threads.
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    socket->zmq = zmq_socket(context->zmq, type);
    int fault = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);

    bool done = socket->zmq != NULL;
    if (done && !set_options(socket->zmq, type, endpoint, limits)) {
        fault = errno;
        done = false;
    }
    if (!done) {
        wire_close(socket);
        return error_set(err, STATUS_IO, "%s: the socket could not be made: %s", endpoint,
                         zmq_strerror(fault));
    }
    *out = socket;
    return STATUS_OK;
}

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

static enum status bind_status(int fault)
{
    switch (fault) {
    case EADDRINUSE:
        return STATUS_BUSY;
    case EACCES:
    case EPERM:
        return STATUS_DENIED;
    case ENOENT:
    case ENOTDIR:
        return STATUS_NOT_FOUND;
    case ENAMETOOLONG:
    case EINVAL:
    case EPROTONOSUPPORT:
        return STATUS_INVALID;
    default:
        return STATUS_IO;
    }
}

static enum status bind_socket(struct wire_socket *socket, const char *endpoint, struct error *err)
{
    if (zmq_bind(socket->zmq, endpoint) == 0)
        return STATUS_OK;
    int fault = errno;
    return error_set(err, bind_status(fault), "%s: cannot listen there: %s", endpoint,
                     zmq_strerror(fault));
}

static enum status connect_socket(struct wire_socket *socket, const char *endpoint,
                                  struct error *err)
{
    if (zmq_connect(socket->zmq, endpoint) == 0)
        return STATUS_OK;
    int fault = errno;
    return error_set(err, bind_status(fault), "%s: cannot connect: %s", endpoint,
                     zmq_strerror(fault));
}

// Remembers the socket file that was just bound, for wire_close.
static enum status remember_file(struct wire_socket *socket, const char *endpoint,
                                 struct error *err)
{
    if (strncmp(endpoint, "ipc://", 6) != 0)
        return STATUS_OK;
    socket->file = strdup(endpoint + 6);
    if (!socket->file)
        return error_set(err, STATUS_NOMEM, "%s: out of memory", endpoint);
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

enum status wire_bind(struct wire_socket **out, struct wire_context *context, const char *endpoint,
                      const struct wire_listen *listen, struct error *err)
{
    struct wire_socket *socket = NULL;
    enum status status = check_ipc_free(endpoint, err);
    if (status == STATUS_OK && listen->guard)
        status = error_set(err, STATUS_UNSUPPORTED, "%s: keys are not supported", endpoint);
    if (status == STATUS_OK)
        status =
            open_socket(&socket, context, ZMQ_ROUTER, endpoint, &limits_of[listen->service], err);
    if (status == STATUS_OK) {
        // zmq_bind makes the socket file in this thread.
        mode_t before = umask(listen->owner_only ? 0177 : 0117);
        status = bind_socket(socket, endpoint, err);
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

enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                         const char *endpoint, const struct wire_pass *pass, struct error *err)
{
    struct wire_socket *socket = NULL;
    if (pass)
        return error_set(err, STATUS_UNSUPPORTED, "%s: keys are not supported", endpoint);
    enum status status = open_socket(&socket, context, ZMQ_DEALER, endpoint, &dealer_limits, err);
    if (status == STATUS_OK)
        status = connect_socket(socket, endpoint, err);
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
    remove_file(socket);
    if (socket->zmq)
        (void)zmq_close(socket->zmq);
    free(socket->file);
    free(socket);
}

// ---- Sending and receiving ---------------------------------------------------------

static enum status send_part(void *zmq, const void *bytes, size_t size, int flags)
{
    while (zmq_send(zmq, bytes, size, flags | ZMQ_DONTWAIT) < 0) {
        switch (errno) {
        case EINTR:
            break;
        case EAGAIN:
            return STATUS_FULL;
        case EHOSTUNREACH:
            return STATUS_UNREACHABLE;
        case ENOMEM:
            return STATUS_NOMEM;
        default:
            return STATUS_IO;
        }
    }
    return STATUS_OK;
}

enum status wire_send(struct wire_socket *socket, const struct wire_route *route, const void *bytes,
                      size_t size)
{
    assert(socket->is_router == (route != NULL));
    if (size > MESSAGE_SIZE_MAX)
        return STATUS_INVALID;
    if (route) {
        enum status status = send_part(socket->zmq, route->id, route->size, ZMQ_SNDMORE);
        if (status != STATUS_OK)
            return status;
    }
    return send_part(socket->zmq, bytes, size, 0);
}

static enum status receive_part(void *zmq, zmq_msg_t *part)
{
    while (zmq_msg_recv(part, zmq, ZMQ_DONTWAIT) < 0) {
        if (errno == EAGAIN)
            return STATUS_NO_DATA;
        if (errno != EINTR)
            return STATUS_IO;
    }
    return STATUS_OK;
}

// Reads the route in front of a ROUTER's message.  The parts of one message are
// all there once the first is.
static enum status receive_route(struct wire_socket *socket, struct wire_route *route,
                                 bool *payload_follows)
{
    zmq_msg_t part;
    (void)zmq_msg_init(&part);
    enum status status = receive_part(socket->zmq, &part);
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

// Throws away the rest of a message of too many parts.
static void drain(struct wire_socket *socket)
{
    zmq_msg_t part;
    (void)zmq_msg_init(&part);
    while (receive_part(socket->zmq, &part) == STATUS_OK && zmq_msg_more(&part)) {
        // The next part follows.
    }
    (void)zmq_msg_close(&part);
}

enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame)
{
    *frame = (struct wire_frame){0};
    bool payload_follows = true;
    enum status status = STATUS_OK;
    if (socket->is_router)
        status = receive_route(socket, &frame->route, &payload_follows);
    if (status != STATUS_OK)
        return status;
    if (!payload_follows)
        return STATUS_INVALID;

    zmq_msg_t *part = malloc(sizeof *part);
    if (!part) {
        drain(socket);
        return STATUS_NOMEM;
    }
    (void)zmq_msg_init(part);
    status = receive_part(socket->zmq, part);
    if (status == STATUS_OK && zmq_msg_more(part)) {
        drain(socket);
        status = STATUS_INVALID;
    }
    frame->handle = part;
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
    if (frame->handle) {
        (void)zmq_msg_close(frame->handle);
        free(frame->handle);
    }
    frame->handle = NULL;
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
        if (!sockets[i])
            continue;
        items[used] = (zmq_pollitem_t){.socket = sockets[i]->zmq, .events = ZMQ_POLLIN};
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
