#include "common/wire/listener/listener.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/wire/listener/listener_inside.h"

enum {
    EVENTS_MAX = 256,
    ACCEPTS_PER_TURN = 64,
    TICK_MS = 1000,
    MIB = 1024 * 1024,
    // Handshakes of one address or user that may come at once; later ones in steps of
    // rate_step_ns.
    BURST = 1000,
};

#define SECOND_NS UINT64_C(1000000000)

static const uint64_t handshake_ns = 5 * SECOND_NS;   // from the connection to the admission
static const uint64_t frame_long_ns = 30 * SECOND_NS; // from a frame's beginning to its end
static const uint64_t frame_short_ns = 2 * SECOND_NS; // the same while others wait for room
static const uint64_t deaf_long_ns = 10 * SECOND_NS;  // without reading anything
static const uint64_t deaf_short_ns = 2 * SECOND_NS;  // the same while messages are refused
static const uint64_t unread_ns = 30 * SECOND_NS;     // of a message, from port_send to its end

// A handshake with keys costs a quarter of a millisecond, one without a tenth of that.
static const uint64_t rate_step_ns = 1000000, keyed_rate_step_ns = 5000000;
static const uint64_t rate_of_all_step_ns = 200000, keyed_rate_of_all_step_ns = 1000000;

// The table of listener.h.
static const struct port_limits limits_of[ADDRESS_SERVICES] = {
    // More than a collector takes, so that a producer that is wrong by a little is told so.
    [ADDRESS_INGEST] = {4 * MIB + 65536, 256 * 1024, MIB, 16 * MIB, 4 * MIB, false},
    [ADDRESS_QUERY] = {65536, 128 * 1024, 16 * MIB, 2 * MIB, 17 * MIB, true},
    [ADDRESS_LIVE] = {65536, 128 * 1024, 5 * MIB, MIB, 13 * MIB, false},
    [ADDRESS_ADMIN] = {65536, 128 * 1024, 16 * MIB, MIB, MIB, true},
};

// ---- New connections -------------------------------------------------------------------

// Takes a step from a rate: `*rate` is when what was taken so far would be due at an even pace.
static bool take_step_of(uint64_t *rate, uint64_t step_ns, uint64_t now_ns)
{
    const uint64_t due_ns = *rate > now_ns ? *rate : now_ns;
    if (due_ns - now_ns > BURST * step_ns)
        return false;
    *rate = due_ns + step_ns;
    return true;
}

// The slot of a peer's user or address (FNV-1a with a seed that peers do not know).  Who has one
// address of IPv6 has a whole /64.
static unsigned rate_slot(const struct listener *listener, const struct wire_peer *peer)
{
    struct in6_addr v6;
    uint32_t hash = UINT32_C(2166136261) ^ listener->rate_seed ^ (uint32_t)peer->uid;
    const bool is_v6 = inet_pton(AF_INET6, peer->host, &v6) == 1;
    const unsigned char *bytes = is_v6 ? v6.s6_addr : (const unsigned char *)peer->host;
    const size_t size = is_v6 ? 8 : strlen(peer->host);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT32_C(16777619);
    hash *= UINT32_C(2654435769);
    return (hash ^ hash >> 16) % LISTENER_RATE_SLOTS;
}

static bool allow_handshake(struct port *port, const struct wire_peer *peer)
{
    struct listener *listener = port->listener;
    struct rates *rates = port->file ? &listener->ipc_rates : &listener->tcp_rates;
    return take_step_of(&rates->peers[rate_slot(listener, peer)],
                        port->listen.guard ? keyed_rate_step_ns : rate_step_ns, listener->now_ns) &&
           take_step_of(&rates->all,
                        port->listen.guard ? keyed_rate_of_all_step_ns : rate_of_all_step_ns,
                        listener->now_ns);
}

// Makes room for one connection more; false: there is none.
static bool make_place(struct port *port)
{
    listener_lock(port->listener);
    const unsigned most =
        port->listen.connections_max ? port->listen.connections_max : CONNECTIONS_MAX;
    bool has_place = port->counters.connections < most;
    struct connection *oldest = TAILQ_FIRST(&port->unheard);
    if (!has_place && oldest) {
        port_complain(port, &oldest->peer, WIRE_CUT_CONNECTIONS);
        connection_shut_down(oldest);
        has_place = true;
    }
    listener_unlock(port->listener);
    return has_place;
}

static void refuse(struct port *port, int fd, const struct wire_peer *peer, enum wire_cut why)
{
    listener_lock(port->listener);
    port_complain(port, peer, why);
    listener_unlock(port->listener);
    (void)close(fd);
}

static void pause_accepting(struct port *port, bool is_paused)
{
    struct epoll_event event = {.events = is_paused ? 0 : EPOLLIN, .data.ptr = port};
    port->is_paused = is_paused;
    (void)epoll_ctl(port->listener->epoll_fd, EPOLL_CTL_MOD, port->fd, &event);
}

static void accept_new(struct port *port)
{
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct wire_peer peer;
        const int fd = port_accept(port, &peer);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_accepting(port, true); // until the next tick
            return;
        }
        if (!allow_handshake(port, &peer))
            refuse(port, fd, &peer, WIRE_CUT_RATE);
        else if (!make_place(port))
            refuse(port, fd, &peer, WIRE_CUT_CONNECTIONS);
        else
            connection_open(port, fd, &peer);
    }
}

// ---- The thread ----------------------------------------------------------------------

// Looks at the connections that the users' threads marked.
static void serve_dirty(struct listener *listener)
{
    struct connection *connection;
    do {
        listener_lock(listener);
        connection = TAILQ_FIRST(&listener->dirty);
        if (connection) {
            TAILQ_REMOVE(&listener->dirty, connection, next_dirty);
            connection->is_dirty = false;
        }
        listener_unlock(listener);
        if (!connection)
            break;
        connection_write(connection);
        if (connection->wait != WAIT_NOT)
            connection_resume(connection);
    } while (true);
}

// Lets the connections of a port go on that wait, if the reason is gone.
static void serve_waiting_of(struct port *port)
{
    struct connection *connection = TAILQ_FIRST(&port->waiting);
    while (connection) {
        struct connection *after = TAILQ_NEXT(connection, next_waiting);
        connection_resume(connection);
        connection = after;
    }
}

// The same for all ports of services that released frames.
static void serve_waiting(struct listener *listener)
{
    bool is_due[ADDRESS_SERVICES], has_waiting[ADDRESS_SERVICES] = {false};
    listener_lock(listener);
    for (unsigned i = 0; i < ADDRESS_SERVICES; i++) {
        is_due[i] = listener->pools[i].was_shortened;
        listener->pools[i].was_shortened = false;
    }
    listener_unlock(listener);
    for (struct port *port = TAILQ_FIRST(&listener->ports); port; port = TAILQ_NEXT(port, next)) {
        if (is_due[port->listen.service])
            serve_waiting_of(port);
        has_waiting[port->listen.service] |= !TAILQ_EMPTY(&port->waiting);
    }
    listener_lock(listener);
    for (unsigned i = 0; i < ADDRESS_SERVICES; i++)
        listener->pools[i].has_waiting = has_waiting[i];
    listener_unlock(listener);
}

// One turn for each connection that may have bytes to receive.
static void serve_ready(struct listener *listener)
{
    struct connection *last = TAILQ_LAST(&listener->ready, connection_list);
    struct connection *connection = TAILQ_FIRST(&listener->ready);
    bool is_last = connection == NULL;
    while (!is_last) {
        is_last = connection == last;
        struct connection *after = TAILQ_NEXT(connection, next_ready);
        connection_read(connection);
        connection = after;
    }
}

static void serve_events(struct listener *listener, const struct epoll_event *events, int count)
{
    eventfd_t ignored;
    for (int i = 0; i < count; i++) {
        // All that epoll may point to begins with its kind.
        switch (*(enum listener_event *)events[i].data.ptr) {
        case EVENT_WAKE:
            (void)eventfd_read(listener->wake_fd, &ignored);
            break;
        case EVENT_PORT:
            accept_new(events[i].data.ptr);
            break;
        case EVENT_CONNECTION:
            connection_on_event(events[i].data.ptr, events[i].events);
            break;
        }
    }
}

// What the owner has who has least of those that wait for room; SIZE_MAX: none waits.
static size_t least_waiting(const struct port *port)
{
    size_t least = SIZE_MAX;
    for (const struct connection *connection = TAILQ_FIRST(&port->waiting); connection;
         connection = TAILQ_NEXT(connection, next_waiting))
        if (connection->wait == WAIT_ROOM && connection->owner->received < least)
            least = connection->owner->received;
    return least;
}

// Why the connection has exceeded its time; WIRE_CUT_NONE: it has not.
static enum wire_cut overdue(struct connection *connection, size_t least_waiting, bool was_short)
{
    const uint64_t now_ns = connection->port->listener->now_ns;
    if (!connection->is_admitted)
        return now_ns - connection->opened_ns > handshake_ns ? WIRE_CUT_GREETING : WIRE_CUT_NONE;
    listener_lock(connection->port->listener);
    const bool holds_more = connection->owner->received > least_waiting;
    listener_unlock(connection->port->listener);
    if (connection->room &&
        now_ns - connection->frame_ns > (holds_more ? frame_short_ns : frame_long_ns))
        return WIRE_CUT_SLOW_FRAME;
    if (connection->sending &&
        (now_ns - connection->progress_ns > (was_short ? deaf_short_ns : deaf_long_ns) ||
         now_ns > connection->sending->since_ns + unread_ns))
        return WIRE_CUT_DEAF;
    return WIRE_CUT_NONE;
}

static void check_times(struct port *port)
{
    listener_lock(port->listener);
    const size_t least = least_waiting(port);
    const bool was_short = pool_of(port)->was_short;
    listener_unlock(port->listener);
    struct connection *connection = TAILQ_FIRST(&port->connections);
    while (connection) {
        struct connection *after = TAILQ_NEXT(connection, next);
        const enum wire_cut why = overdue(connection, least, was_short);
        connection->others = 0;
        if (why != WIRE_CUT_NONE)
            connection_cut(connection, why);
        connection = after;
    }
}

static void tick(struct listener *listener)
{
    for (struct port *port = TAILQ_FIRST(&listener->ports); port; port = TAILQ_NEXT(port, next)) {
        check_times(port);
        if (port->is_paused)
            pause_accepting(port, false);
    }
    listener_lock(listener);
    for (unsigned i = 0; i < ADDRESS_SERVICES; i++) {
        listener->pools[i].was_short = false;
        listener->pools[i].was_shortened =
            listener->pools[i].has_waiting; // for malloc to try again
    }
    listener_unlock(listener);
}

static bool add_port(struct listener *listener, struct port *port)
{
    TAILQ_INSERT_TAIL(&listener->ports, port, next);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = port};
    return epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, port->fd, &event) == 0;
}

static void remove_port(struct listener *listener, struct port *port)
{
    (void)epoll_ctl(listener->epoll_fd, EPOLL_CTL_DEL, port->fd, NULL);
    TAILQ_REMOVE(&listener->ports, port, next);
    struct connection *connection;
    while ((connection = TAILQ_FIRST(&port->connections)) != NULL)
        connection_end(connection, true);
}

// Does what a user's thread asks for; false: the thread is to end.
static bool serve_request(struct listener *listener)
{
    listener_lock(listener);
    const enum listener_request request = listener->request;
    struct port *port = listener->requested;
    listener_unlock(listener);
    if (request == REQUEST_NONE)
        return true;
    if (request == REQUEST_ADD)
        port->is_refused = !add_port(listener, port);
    else if (request == REQUEST_REMOVE)
        remove_port(listener, port);
    listener_lock(listener);
    listener->request = REQUEST_NONE;
    (void)pthread_cond_broadcast(&listener->done);
    listener_unlock(listener);
    return request != REQUEST_STOP;
}

// How long epoll may wait, in milliseconds.  Unless that is 0, other threads wake this one from now
// on.
static int timeout(struct listener *listener, uint64_t ticked_ns)
{
    bool has_connections = false, is_due = !TAILQ_EMPTY(&listener->ready);
    for (struct port *port = TAILQ_FIRST(&listener->ports); port; port = TAILQ_NEXT(port, next))
        has_connections = has_connections || !TAILQ_EMPTY(&port->connections) || port->is_paused;
    listener_lock(listener);
    is_due = is_due || !TAILQ_EMPTY(&listener->dirty) || listener->request != REQUEST_NONE;
    for (unsigned i = 0; i < ADDRESS_SERVICES; i++)
        is_due = is_due || listener->pools[i].was_shortened;
    listener->is_asleep = !is_due;
    listener_unlock(listener);
    if (is_due)
        return 0;
    const uint64_t waited_ms = (listener->now_ns - ticked_ns) / 1000000;
    return !has_connections ? -1 : waited_ms >= TICK_MS ? 0 : TICK_MS - (int)waited_ms;
}

static void *run(void *context)
{
    struct listener *listener = context;
    struct epoll_event events[EVENTS_MAX];
    uint64_t ticked_ns = 0;
    do {
        const int count =
            epoll_wait(listener->epoll_fd, events, EVENTS_MAX, timeout(listener, ticked_ns));
        listener_lock(listener);
        listener->is_asleep = false;
        listener_unlock(listener);
        listener->now_ns = clock_monotonic_ns();
        serve_events(listener, events, count);
        serve_dirty(listener);
        serve_waiting(listener);
        serve_ready(listener);
        if (listener->now_ns - ticked_ns >= TICK_MS * UINT64_C(1000000)) {
            ticked_ns = listener->now_ns;
            tick(listener);
        }
    } while (serve_request(listener));
    return NULL;
}

// ---- Opening and closing -----------------------------------------------------------

// Has the thread do something, and waits until it is done.
static void ask(struct listener *listener, enum listener_request request, struct port *port)
{
    (void)pthread_mutex_lock(&listener->turn);
    listener_lock(listener);
    listener->request = request;
    listener->requested = port;
    if (listener_needs_wake(listener))
        listener_wake(listener);
    while (listener->request != REQUEST_NONE)
        (void)pthread_cond_wait(&listener->done, &listener->lock);
    listener_unlock(listener);
    (void)pthread_mutex_unlock(&listener->turn);
}

enum status listener_new(struct listener **out, struct error *err)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return error_no_memory(err, "sockets");
    (void)pthread_mutex_init(&listener->lock, NULL);
    (void)pthread_mutex_init(&listener->turn, NULL);
    (void)pthread_cond_init(&listener->done, NULL);
    TAILQ_INIT(&listener->ports);
    TAILQ_INIT(&listener->dirty);
    TAILQ_INIT(&listener->ready);
    (void)!getrandom(&listener->rate_seed, sizeof listener->rate_seed, 0);
    listener->event = EVENT_WAKE;
    listener->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    listener->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener->event};
    enum status status = STATUS_OK;
    if (listener->epoll_fd < 0 || listener->wake_fd < 0 ||
        epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, listener->wake_fd, &event) != 0)
        status = error_set(err, STATUS_IO, "sockets: %s", strerror(errno));
    if (status == STATUS_OK)
        status = thread_start(&listener->thread, "sockets", run, listener, err);
    if (status != STATUS_OK) {
        listener_free(listener);
        return status;
    }
    *out = listener;
    return STATUS_OK;
}

void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    if (listener->thread.running) {
        ask(listener, REQUEST_STOP, NULL);
        thread_join(&listener->thread);
    }
    if (listener->epoll_fd >= 0)
        (void)close(listener->epoll_fd);
    if (listener->wake_fd >= 0)
        (void)close(listener->wake_fd);
    (void)pthread_cond_destroy(&listener->done);
    (void)pthread_mutex_destroy(&listener->turn);
    (void)pthread_mutex_destroy(&listener->lock);
    free(listener);
}

static void set_rules(struct port *port, const char *endpoint, const struct wire_listen *listen)
{
    port->listen = *listen;
    port->listen.guard = NULL;
    port->limits = &limits_of[listen->service];
    port->rules.frame_max = port->limits->frame_max;
    if (!listen->guard || strncmp(endpoint, "tcp://", 6) != 0)
        return;
    port->guard = *listen->guard;
    port->listen.guard = &port->guard;
    port->rules.keys = &port->guard.keys;
}

static void port_free(struct port *port)
{
    if (port->fd >= 0)
        (void)close(port->fd);
    if (port->ready_fd >= 0)
        (void)close(port->ready_fd);
    explicit_bzero(&port->guard, sizeof port->guard);
    free(port->file);
    free(port->slots);
    free(port);
}

enum status port_open(struct port **out, struct listener *listener, const char *endpoint,
                      const struct wire_listen *listen, struct error *err)
{
    struct port *port = calloc(1, sizeof *port);
    if (!port)
        return error_no_memory(err, endpoint);
    port->event = EVENT_PORT;
    port->listener = listener;
    port->fd = -1;
    TAILQ_INIT(&port->connections);
    TAILQ_INIT(&port->unheard);
    TAILQ_INIT(&port->waiting);
    TAILQ_INIT(&port->owners);
    TAILQ_INIT(&port->active);
    set_rules(port, endpoint, listen);
    port->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    port->slots = calloc(CONNECTIONS_MAX, sizeof(struct connection *));
    enum status status =
        !port->slots ? error_no_memory(err, endpoint)
        : port->ready_fd >= 0
            ? port_bind(port, endpoint, listen->owner_only, err)
            : error_set(err, STATUS_IO, "%s: cannot listen there: %s", endpoint, strerror(errno));
    if (status != STATUS_OK) {
        port_remove_file(port);
        port_free(port);
        return status;
    }
    ask(listener, REQUEST_ADD, port);
    if (port->is_refused) {
        port_close(port);
        return error_set(err, STATUS_IO, "%s: cannot listen there: epoll takes no more", endpoint);
    }
    *out = port;
    return STATUS_OK;
}

void port_close(struct port *port)
{
    if (!port)
        return;
    port_remove_file(port);
    ask(port->listener, REQUEST_REMOVE, port);
    struct owner *owner;
    while ((owner = TAILQ_FIRST(&port->active)) != NULL) { // closed ones with unread frames
        struct connection *connection = TAILQ_FIRST(&owner->active);
        listener_lock(port->listener);
        connection_drop_unread(connection);
        connection_free(connection);
        listener_unlock(port->listener);
    }
    assert(TAILQ_EMPTY(&port->owners)); // else a frame was not released
    port_free(port);
}
