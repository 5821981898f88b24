#include "common/wire/socket.h"

#include <zmq.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/wire/message.h"

enum { WAIT_SOCKETS_MAX = 31 };

struct wire_context {
    pthread_mutex_t lock;
    // Made with the first socket that needs it; under the lock.
    void *zmq;
    struct listener *listener;
};

struct wire_socket { // one of both
    struct port *port;
    struct dealer *dealer;
};

// Held while a context of libzmq begins or ends: the first one sets libpgm up and the last one
// takes it down, which libpgm does not guard against each other.
static pthread_mutex_t zmq_lifetime = PTHREAD_MUTEX_INITIALIZER;

enum status wire_context_new(struct wire_context **out, struct error *err)
{
    struct wire_context *context = calloc(1, sizeof *context);
    if (!context)
        return error_no_memory(err, "sockets");
    (void)pthread_mutex_init(&context->lock, NULL);
    *out = context;
    return STATUS_OK;
}

void wire_context_free(struct wire_context *context)
{
    if (!context)
        return;
    listener_free(context->listener);
    (void)pthread_mutex_lock(&zmq_lifetime);
    while (context->zmq && zmq_ctx_term(context->zmq) != 0 && errno == EINTR) {
        // A signal came: the wait for libzmq's threads goes on.
    }
    (void)pthread_mutex_unlock(&zmq_lifetime);
    (void)pthread_mutex_destroy(&context->lock);
    free(context);
}

// ---- Opening -------------------------------------------------------------------

static enum status get_listener(struct wire_context *context, struct error *err)
{
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&context->lock);
    if (!context->listener)
        status = listener_new(&context->listener, err);
    (void)pthread_mutex_unlock(&context->lock);
    return status;
}

enum status wire_bind(struct wire_socket **out, struct wire_context *context, const char *endpoint,
                      const struct wire_listen *listen, struct error *err)
{
    struct wire_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return error_no_memory(err, endpoint);
    enum status status = get_listener(context, err);
    if (status == STATUS_OK)
        status = port_open(&socket->port, context->listener, endpoint, listen, err);
    if (status != STATUS_OK) {
        wire_close(socket);
        return status;
    }
    *out = socket;
    return STATUS_OK;
}

static enum status get_zmq(struct wire_context *context, struct error *err)
{
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&context->lock);
    (void)pthread_mutex_lock(&zmq_lifetime);
    if (!context->zmq) {
        void *zmq = zmq_ctx_new();
        if (zmq && zmq_ctx_set(zmq, ZMQ_IO_THREADS, 1) == 0 && zmq_ctx_set(zmq, ZMQ_BLOCKY, 0) == 0)
            context->zmq = zmq;
        else
            status = error_set(err, STATUS_IO, "sockets: ZeroMQ does not start: %s",
                               zmq_strerror(errno));
        if (status != STATUS_OK && zmq)
            (void)zmq_ctx_term(zmq);
    }
    (void)pthread_mutex_unlock(&zmq_lifetime);
    (void)pthread_mutex_unlock(&context->lock);
    return status;
}

enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                         const char *endpoint, enum address_service service,
                         const struct wire_pass *pass, const struct peer_trust *trust,
                         struct error *err)
{
    enum status status = get_zmq(context, err);
    if (status != STATUS_OK)
        return status;
    struct wire_socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return error_no_memory(err, "socket");
    status = dealer_open(&socket->dealer, context->zmq, endpoint, service, pass, trust, err);
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
    port_close(socket->port);
    dealer_close(socket->dealer);
    free(socket);
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

void wire_hang_up(struct wire_socket *socket)
{
    port_hang_up(socket->port);
}

bool wire_is_connected(const struct wire_socket *socket, const struct wire_route *route)
{
    return port_is_connected(socket->port, route);
}

bool wire_has_unread(const struct wire_socket *socket, const struct wire_route *route,
                     uint64_t most)
{
    return port_has_unread(socket->port, route, most);
}

size_t wire_unsent_bytes(struct wire_context *context)
{
    (void)pthread_mutex_lock(&context->lock);
    const size_t bytes = context->listener ? listener_unsent_bytes(context->listener) : 0;
    (void)pthread_mutex_unlock(&context->lock);
    return bytes;
}

void wire_count(const struct wire_socket *socket, struct wire_counters *out)
{
    port_count(socket->port, out);
}

unsigned wire_complaints(const struct wire_socket *socket, struct wire_complaint *out, unsigned max)
{
    return port_complaints(socket->port, out, max);
}

// ---- Sending and receiving ---------------------------------------------------------

enum status wire_send(struct wire_socket *socket, const struct wire_route *route, const void *bytes,
                      size_t size)
{
    assert((socket->port != NULL) == (route != NULL));
    if (size > MESSAGE_SIZE_MAX)
        return STATUS_INVALID;
    return socket->port ? port_send(socket->port, route, bytes, size)
                        : dealer_send(socket->dealer, bytes, size);
}

enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame)
{
    *frame = (struct wire_frame){0};
    return socket->port ? port_receive(socket->port, frame) : dealer_receive(socket->dealer, frame);
}

void wire_frame_release(struct wire_frame *frame)
{
    if (frame->received)
        port_frame_release(frame);
    else if (frame->is_held)
        dealer_frame_release(frame);
    frame->received = NULL;
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
        void *zmq = socket && socket->dealer ? dealer_zmq(socket->dealer) : NULL;
        if (!zmq && !(socket && socket->port))
            continue;
        items[used] = (zmq_pollitem_t){
            .socket = zmq, .fd = zmq ? 0 : port_fd(socket->port), .events = ZMQ_POLLIN};
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
