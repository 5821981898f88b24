#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/sys/clock.h"
#include "common/wire/listener/listener_inside.h"
#include "common/wire/message.h"

enum {
    // Bytes of frames that an owner may have taken before the next one's turn.  A query counts as
    // many, as what it costs is not its size.
    QUANTUM = 64 * 1024,
    // A small message may exceed its owner's share, down to a part of the bound.
    SMALL_COST = 64 * 1024,
    RESERVE = 32,
    WAIT_PORTS_MAX = 31,
};

// ---- Waking the other thread -----------------------------------------------------------

bool listener_needs_wake(struct listener *listener)
{
    const bool was_asleep = listener->is_asleep;
    listener->is_asleep = false;
    return was_asleep;
}

void listener_wake(struct listener *listener)
{
    (void)eventfd_write(listener->wake_fd, 1); // cannot fail: its count stays small
}

// Makes ready_fd readable if port_receive has something to return, else unreadable.
static void port_signal(struct port *port)
{
    const bool has_something = !TAILQ_EMPTY(&port->active);
    eventfd_t ignored;
    if (has_something == port->is_signalled)
        return;
    port->is_signalled = has_something;
    if (has_something)
        (void)eventfd_write(port->ready_fd, 1);
    else
        (void)eventfd_read(port->ready_fd, &ignored);
}

// ---- Memory ------------------------------------------------------------------------

struct pool *pool_of(const struct port *port)
{
    return &port->listener->pools[port->listen.service];
}

size_t pool_room(const struct owner *owner)
{
    const struct pool *pool = pool_of(owner->port);
    const size_t most = owner->port->limits->pool_received_max;
    const size_t free_bytes = pool->received < most ? most - pool->received : 0;
    return free_bytes > owner->received ? free_bytes - owner->received : 0;
}

void pool_hold(struct owner *owner, size_t bytes)
{
    owner->received += bytes;
    pool_of(owner->port)->received += bytes;
}

bool pool_release(struct owner *owner, size_t bytes)
{
    struct pool *pool = pool_of(owner->port);
    assert(owner->received >= bytes && pool->received >= bytes);
    owner->received -= bytes;
    pool->received -= bytes;
    if (!pool->has_waiting || pool->was_shortened)
        return false;
    pool->was_shortened = true;
    return listener_needs_wake(owner->port->listener);
}

// ---- Owners ------------------------------------------------------------------------

struct owner *owner_of(struct port *port, const struct wire_peer *peer)
{
    for (struct owner *known = TAILQ_FIRST(&port->owners); known; known = TAILQ_NEXT(known, next))
        if (peer_is_same_owner(&known->peer, peer))
            return known;
    struct owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    owner->port = port;
    owner->peer = *peer;
    TAILQ_INIT(&owner->active);
    TAILQ_INSERT_HEAD(&port->owners, owner, next);
    return owner;
}

static void owner_free_unused(struct owner *owner)
{
    if (owner->connections > 0 || owner->received > 0)
        return;
    TAILQ_REMOVE(&owner->port->owners, owner, next);
    free(owner);
}

// ---- Connections -------------------------------------------------------------------

bool connection_enter(struct connection *connection)
{
    struct port *port = connection->port;
    while (port->free_slot < CONNECTIONS_MAX && port->slots[port->free_slot])
        port->free_slot++;
    if (port->free_slot == CONNECTIONS_MAX)
        return false;
    port->slots[port->free_slot] = connection;
    connection->id = ++port->last_serial * CONNECTIONS_MAX + port->free_slot;
    TAILQ_INSERT_TAIL(&port->connections, connection, next);
    TAILQ_INSERT_TAIL(&port->unheard, connection, next_unheard);
    port->counters.connections++;
    return true;
}

static struct connection *connection_find(const struct port *port, uint64_t id)
{
    struct connection *connection = port->slots[id % CONNECTIONS_MAX];
    return connection && connection->id == id && !connection->is_cut && !connection->is_gone
               ? connection
               : NULL;
}

void connection_update(struct connection *connection)
{
    struct owner *owner = connection->owner;
    struct port *port = connection->port;
    // One that asks gets one answer at a time, so that it cannot have many unsent ones.
    const bool is_active = !TAILQ_EMPTY(&connection->unread) &&
                           !(port->limits->is_asked && connection->unsent_size > 0);
    if (is_active == connection->is_active)
        return;
    connection->is_active = is_active;
    if (is_active) {
        if (TAILQ_EMPTY(&owner->active)) {
            owner->credit = 0;
            TAILQ_INSERT_TAIL(&port->active, owner, next_active);
        }
        TAILQ_INSERT_TAIL(&owner->active, connection, next_active);
    } else {
        TAILQ_REMOVE(&owner->active, connection, next_active);
        if (TAILQ_EMPTY(&owner->active))
            TAILQ_REMOVE(&port->active, owner, next_active);
    }
    port_signal(port);
}

void connection_mark(struct connection *connection)
{
    if (connection->is_dirty)
        return;
    connection->is_dirty = true;
    TAILQ_INSERT_TAIL(&connection->port->listener->dirty, connection, next_dirty);
}

void connection_shut_down(struct connection *connection)
{
    if (connection->is_cut)
        return;
    connection->is_cut = true;
    connection->port->counters.connections--;
    if (!connection->is_heard)
        TAILQ_REMOVE(&connection->port->unheard, connection, next_unheard);
    connection->is_heard = true;
    (void)shutdown(connection->fd, SHUT_RDWR);
}

void connection_drop_unread(struct connection *connection)
{
    struct received *received;
    while ((received = TAILQ_FIRST(&connection->unread)) != NULL) {
        TAILQ_REMOVE(&connection->unread, received, next);
        (void)pool_release(received->owner, received->cost);
        free(received);
    }
    connection->unread_size = 0;
    if (connection->owner)
        connection_update(connection);
}

void connection_free(struct connection *connection)
{
    struct owner *owner = connection->owner;
    if (owner) {
        owner->connections--;
        owner_free_unused(owner);
    }
    free(connection);
}

// ---- Fair order --------------------------------------------------------------------

// Deficit round robin among owners: each gets QUANTUM bytes a round, and saves them up for a frame
// that is larger.  The connections of one take turns.
static struct connection *choose(struct port *port)
{
    struct owner *owner;
    while ((owner = TAILQ_FIRST(&port->active)) != NULL) {
        struct connection *connection = TAILQ_FIRST(&owner->active);
        const size_t cost =
            port->limits->is_asked ? QUANTUM : TAILQ_FIRST(&connection->unread)->cost;
        if (owner->credit >= cost) {
            owner->credit -= cost;
            TAILQ_REMOVE(&owner->active, connection, next_active);
            TAILQ_INSERT_TAIL(&owner->active, connection, next_active);
            return connection;
        }
        owner->credit += QUANTUM;
        TAILQ_REMOVE(&port->active, owner, next_active);
        TAILQ_INSERT_TAIL(&port->active, owner, next_active);
    }
    return NULL;
}

// ---- Complaints --------------------------------------------------------------------

void port_complain(struct port *port, const struct wire_peer *peer, enum wire_cut cut)
{
    port->counters.cuts[cut]++;
    for (unsigned i = 0; i < port->complaint_count; i++) {
        struct wire_complaint *known = &port->complaints[i];
        if (known->cut == cut && peer_is_same_owner(&known->peer, peer) &&
            strcmp(known->peer.host, peer->host) == 0) {
            known->count++;
            return;
        }
    }
    if (port->complaint_count < COMPLAINTS_MAX)
        port->complaints[port->complaint_count++] =
            (struct wire_complaint){.peer = *peer, .cut = cut, .count = 1};
}

// ==== The functions of a port that its user calls, without the lock =====================

// ---- Receiving -----------------------------------------------------------------------

// What follows from a frame being taken from a connection; true: the thread is to be woken.
static bool after_receive(struct connection *connection)
{
    const size_t half = connection->port->limits->unread_max / 2;
    if (connection->is_ended && TAILQ_EMPTY(&connection->unread)) {
        connection_free(connection);
        return false;
    }
    if (connection->wait != WAIT_READER || connection->unread_size > half)
        return false;
    connection_mark(connection);
    return listener_needs_wake(connection->port->listener);
}

enum status port_receive(struct port *port, struct wire_frame *frame)
{
    struct received *received = NULL;
    bool needs_wake = false;
    listener_lock(port->listener);
    struct connection *from = choose(port);
    if (from) {
        received = TAILQ_FIRST(&from->unread);
        TAILQ_REMOVE(&from->unread, received, next);
        from->unread_size -= received->cost;
        connection_update(from);
        frame->route.connection = from->id;
        frame->peer = from->peer;
        needs_wake = after_receive(from);
    }
    listener_unlock(port->listener);
    if (needs_wake)
        listener_wake(port->listener);
    if (!received)
        return STATUS_NO_DATA;
    frame->bytes = received->message; // NULL if it is empty
    frame->size = received->size;
    frame->received = received;
    return STATUS_OK;
}

void port_release(struct wire_frame *frame)
{
    struct received *received = frame->received;
    struct owner *owner = received->owner;
    struct port *port = owner->port;
    listener_lock(port->listener);
    const bool needs_wake = pool_release(owner, received->cost);
    owner_free_unused(owner);
    listener_unlock(port->listener);
    if (needs_wake)
        listener_wake(port->listener);
    free(received);
}

void port_wait(struct port *const *ports, size_t count, int fd, uint64_t timeout_ns,
               uint32_t *ready)
{
    struct pollfd items[WAIT_PORTS_MAX + 1];
    const struct timespec timeout = clock_timespec(timeout_ns);
    assert(count <= WAIT_PORTS_MAX);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct pollfd){.fd = ports[i]->ready_fd, .events = POLLIN};
    items[count] = (struct pollfd){.fd = fd, .events = POLLIN};
    *ready = 0;
    if (ppoll(items, count + 1, &timeout, NULL) <= 0)
        return;
    for (size_t i = 0; i <= count; i++)
        if (items[i].revents)
            *ready |= UINT32_C(1) << i;
}

// ---- Sending -------------------------------------------------------------------------

// Whether a message of `cost` bytes may be sent now.  Under the lock.
static enum status may_send(struct port *port, const struct connection *connection, size_t cost)
{
    struct pool *pool = pool_of(port);
    if (!connection || !connection->owner)
        return STATUS_UNREACHABLE;
    if (connection->unsent_size > port->limits->unsent_max)
        return STATUS_FULL;
    const size_t most = port->limits->pool_unsent_max;
    const size_t left = pool->unsent < most ? most - pool->unsent : 0;
    const bool is_small = cost <= SMALL_COST && cost + most / RESERVE <= left;
    if (pool->unsent == 0 || connection->owner->unsent + cost <= left || is_small)
        return STATUS_OK;
    pool->was_short = true;
    return STATUS_FULL;
}

static void count_unsent(struct connection *connection, size_t cost)
{
    connection->unsent_size += cost;
    connection->owner->unsent += cost;
    pool_of(connection->port)->unsent += cost;
    connection_update(connection);
}

enum status port_send(struct port *port, const struct wire_route *route, const void *bytes,
                      size_t size)
{
    const size_t cost = sizeof(struct unsent) + SEAL_OVERHEAD + size;
    if (size > MESSAGE_SIZE_MAX)
        return STATUS_INVALID;
    listener_lock(port->listener);
    enum status status = may_send(port, connection_find(port, route->connection), cost);
    listener_unlock(port->listener);
    struct unsent *unsent = status == STATUS_OK ? malloc(cost) : NULL;
    if (!unsent)
        return status == STATUS_OK ? STATUS_NOMEM : status;
    *unsent = (struct unsent){.message_size = size, .cost = cost, .since_ns = clock_monotonic_ns()};
    if (size > 0)
        memcpy(unsent->bytes + SEAL_OVERHEAD, bytes, size);

    bool needs_wake = false;
    listener_lock(port->listener);
    struct connection *connection = connection_find(port, route->connection);
    status = may_send(port, connection, cost); // again: the lock was released meanwhile
    if (status == STATUS_OK) {
        TAILQ_INSERT_TAIL(&connection->unsent, unsent, next);
        count_unsent(connection, cost);
        connection_mark(connection);
        needs_wake = listener_needs_wake(port->listener);
    }
    listener_unlock(port->listener);
    if (status != STATUS_OK)
        free(unsent);
    if (needs_wake)
        listener_wake(port->listener);
    return status;
}

// ---- Connections -------------------------------------------------------------------

bool port_is_connected(struct port *port, const struct wire_route *route)
{
    listener_lock(port->listener);
    const bool is_connected = connection_find(port, route->connection) != NULL;
    listener_unlock(port->listener);
    return is_connected;
}

bool port_has_unread(struct port *port, const struct wire_route *route, uint64_t most)
{
    listener_lock(port->listener);
    const struct pool *pool = pool_of(port);
    const size_t all = port->limits->pool_unsent_max;
    const size_t left = pool->unsent < all ? all - pool->unsent : 0;
    const struct connection *connection = connection_find(port, route->connection);
    const size_t unsent = connection && connection->owner ? connection->owner->unsent : 0;
    listener_unlock(port->listener);
    return unsent > most || unsent > left / 2;
}

void port_hang_up(struct port *port)
{
    listener_lock(port->listener);
    for (struct connection *connection = TAILQ_FIRST(&port->connections); connection;
         connection = TAILQ_NEXT(connection, next))
        // One without an owner is in its handshake, at whose end the guard is asked.
        if (!port->listen.guard || (connection->owner && !connection_is_known(connection)))
            connection_shut_down(connection);
    listener_unlock(port->listener);
}

size_t listener_unsent_bytes(struct listener *listener)
{
    size_t bytes = 0;
    listener_lock(listener);
    for (unsigned i = 0; i < ADDRESS_SERVICES; i++)
        bytes += listener->pools[i].unsent;
    listener_unlock(listener);
    return bytes;
}

void port_count(struct port *port, struct wire_counters *out)
{
    listener_lock(port->listener);
    *out = port->counters;
    listener_unlock(port->listener);
}

unsigned port_complaints(struct port *port, struct wire_complaint *out, unsigned max)
{
    listener_lock(port->listener);
    const unsigned count = port->complaint_count < max ? port->complaint_count : max;
    memcpy(out, port->complaints, count * sizeof *out);
    port->complaint_count -= count;
    memmove(port->complaints, port->complaints + count, port->complaint_count * sizeof *out);
    listener_unlock(port->listener);
    return count;
}
