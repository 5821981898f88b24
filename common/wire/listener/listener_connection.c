#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire/listener/listener_inside.h"

enum {
    READ_MIN = 256,          // received at once where room is short, to learn what comes
    READ_SHAKING = 2048,     // bytes received at once in the handshake
    READ_LARGE = 256 * 1024, // received at once into a large frame
    DIRECT_MIN = 16 * 1024,  // left of a frame that is received straight into its room
    FRAME_COST = 128,        // held for a frame beside its bytes
    OTHERS_MAX = 1000,       // heartbeats and other commands in a second
};

_Static_assert(sizeof(struct received) <= FRAME_COST, "the cost covers the structure");

static void release(struct owner *owner, size_t bytes)
{
    struct listener *listener = owner->port->listener;
    listener_lock(listener);
    (void)pool_release(owner, bytes); // this thread needs not be woken
    listener_unlock(listener);
}

// ---- The end -------------------------------------------------------------------------

static void make_unready(struct connection *connection)
{
    if (connection->is_ready)
        TAILQ_REMOVE(&connection->port->listener->ready, connection, next_ready);
    connection->is_ready = false;
}

static void discard_room(struct connection *connection)
{
    struct received *room = connection->room;
    connection->room = NULL;
    if (room)
        release(room->owner, room->cost);
    free(room);
}

static void discard_left(struct connection *connection)
{
    if (connection->left)
        release(connection->owner, connection->left_size);
    free(connection->left);
    connection->left = NULL;
}

static void release_unsent(struct connection *connection, struct unsent *unsent)
{
    connection->unsent_size -= unsent->cost;
    if (!connection->owner)
        return; // a part of the handshake
    connection->owner->unsent -= unsent->cost;
    pool_of(connection->port)->unsent -= unsent->cost;
}

static void drop_unsent(struct connection *connection)
{
    struct unsent *unsent;
    if (connection->sending)
        TAILQ_INSERT_HEAD(&connection->unsent, connection->sending, next);
    connection->sending = NULL;
    while ((unsent = TAILQ_FIRST(&connection->unsent)) != NULL) {
        TAILQ_REMOVE(&connection->unsent, unsent, next);
        release_unsent(connection, unsent);
        free(unsent);
    }
}

// Takes the connection out of all that the port has of it, but for its unread frames.  Under the
// lock.
static void leave_port(struct connection *connection)
{
    struct port *port = connection->port;
    const unsigned slot = (unsigned)(connection->id % CONNECTIONS_MAX);
    port->slots[slot] = NULL;
    if (slot < port->free_slot)
        port->free_slot = slot;
    TAILQ_REMOVE(&port->connections, connection, next);
    if (!connection->is_heard) {
        TAILQ_REMOVE(&port->unheard, connection, next_unheard);
        port->counters.handshakes += !connection->is_cut;
    }
    port->counters.connections -= !connection->is_cut;
    if (connection->is_dirty)
        TAILQ_REMOVE(&port->listener->dirty, connection, next_dirty);
    if (connection->wait != WAIT_NOT)
        TAILQ_REMOVE(&port->waiting, connection, next_waiting);
}

void connection_end(struct connection *connection, bool drops_unread)
{
    struct port *port = connection->port;
    discard_room(connection);
    discard_left(connection);
    zmtp_deinit(&connection->zmtp);
    make_unready(connection);
    if (connection->is_admitted && port->listen.leave)
        port->listen.leave(port->listen.context, &connection->peer);
    const int fd = connection->fd;
    listener_lock(port->listener);
    leave_port(connection);
    connection->is_ended = true;
    drop_unsent(connection);
    if (drops_unread || connection->is_cut || port->limits->is_asked)
        connection_drop_unread(connection);
    else if (connection->owner)
        connection_update(connection); // its answer will never be read
    if (TAILQ_EMPTY(&connection->unread))
        connection_free(connection);
    listener_unlock(port->listener);
    (void)close(fd);
}

void connection_cut(struct connection *connection, enum wire_cut why)
{
    struct port *port = connection->port;
    listener_lock(port->listener);
    port_complain(port, &connection->peer, why);
    const bool is_known = why == WIRE_CUT_STRANGER || why == WIRE_CUT_CONNECTIONS;
    if (is_known && !connection->is_cut) { // not a failed handshake
        connection->is_cut = true;
        port->counters.connections--;
    }
    listener_unlock(port->listener);
    connection_end(connection, true);
}

// ---- Sending -------------------------------------------------------------------------

// The message as it goes to the wire, where it lies.
static void seal(struct connection *connection, struct unsent *unsent)
{
    const size_t size = unsent->message_size,
                 sealed_size = zmtp_frame_size(&connection->zmtp, size);
    unsent->end = SEAL_OVERHEAD + size;
    unsent->begin = unsent->end - sealed_size;
    zmtp_frame(&connection->zmtp, unsent->bytes + unsent->begin, unsent->bytes + SEAL_OVERHEAD,
               size);
}

static struct unsent *take_unsent(struct connection *connection)
{
    listener_lock(connection->port->listener);
    struct unsent *unsent = TAILQ_FIRST(&connection->unsent);
    if (unsent)
        TAILQ_REMOVE(&connection->unsent, unsent, next);
    listener_unlock(connection->port->listener);
    if (unsent && unsent->end == 0)
        seal(connection, unsent);
    return unsent;
}

static void finish_unsent(struct connection *connection)
{
    listener_lock(connection->port->listener);
    release_unsent(connection, connection->sending);
    if (connection->owner)
        connection_update(connection);
    listener_unlock(connection->port->listener);
    free(connection->sending);
    connection->sending = NULL;
}

// The peer reads no more: nothing is sent any more; what it sent before is still received.  Returns
// false if that is not wanted either.
static bool lose(struct connection *connection)
{
    listener_lock(connection->port->listener);
    const bool is_wanted = !connection->is_cut && !connection->port->limits->is_asked;
    connection->is_gone = true;
    drop_unsent(connection);
    if (connection->owner)
        connection_update(connection);
    listener_unlock(connection->port->listener);
    return is_wanted;
}

void connection_write(struct connection *connection)
{
    while (connection->can_write) {
        if (!connection->sending) {
            connection->sending = take_unsent(connection);
            connection->progress_ns = connection->port->listener->now_ns;
        }
        struct unsent *unsent = connection->sending;
        if (!unsent)
            return;
        const ssize_t sent = send(connection->fd, unsent->bytes + unsent->begin,
                                  unsent->end - unsent->begin, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            connection->can_write = false;
            if (errno != EAGAIN)
                (void)lose(connection);
            return;
        }
        connection->progress_ns = connection->port->listener->now_ns;
        unsent->begin += (size_t)sent;
        if (unsent->begin == unsent->end)
            finish_unsent(connection);
    }
}

// Sends bytes of the protocol itself, before messages that wait: these are sealed later, with a
// larger nonce.  They do not count as unsent.
static bool send_own(struct connection *connection, const unsigned char *bytes, size_t size)
{
    struct unsent *unsent = malloc(sizeof *unsent + size);
    if (!unsent)
        return false;
    *unsent = (struct unsent){.end = size, .since_ns = connection->port->listener->now_ns};
    memcpy(unsent->bytes, bytes, size);
    listener_lock(connection->port->listener);
    TAILQ_INSERT_HEAD(&connection->unsent, unsent, next);
    listener_unlock(connection->port->listener);
    connection_write(connection);
    return true;
}

// ---- Waiting -------------------------------------------------------------------------

static void begin_wait(struct connection *connection, enum wait wait)
{
    struct port *port = connection->port;
    make_unready(connection);
    listener_lock(port->listener);
    connection->wait = wait;
    TAILQ_INSERT_TAIL(&port->waiting, connection, next_waiting);
    pool_of(port)->has_waiting = true;
    connection_mark(connection); // the reason may have gone since it was found
    listener_unlock(port->listener);
}

static void end_wait(struct connection *connection)
{
    listener_lock(connection->port->listener);
    TAILQ_REMOVE(&connection->port->waiting, connection, next_waiting);
    connection->wait = WAIT_NOT;
    listener_unlock(connection->port->listener);
}

static void make_ready(struct connection *connection)
{
    if (connection->is_ready || connection->wait != WAIT_NOT)
        return;
    connection->is_ready = true;
    TAILQ_INSERT_TAIL(&connection->port->listener->ready, connection, next_ready);
}

// Room for small frames that may be received now.
static size_t room_of(struct connection *connection)
{
    listener_lock(connection->port->listener);
    const size_t room = pool_room(connection->owner);
    listener_unlock(connection->port->listener);
    return room;
}

// ---- Steps of the protocol -------------------------------------------------------------

bool connection_is_known(const struct connection *connection)
{
    const struct port *port = connection->port;
    return !port->listen.guard ||
           port->guard.admit(port->guard.context, port->listen.service, connection->peer.key);
}

// Makes the peer of a complete handshake an owner's; false: it has too many connections already,
// or was revoked at this moment.
static bool enter(struct connection *connection)
{
    struct port *port = connection->port;
    if (port->listen.enter && !port->listen.enter(port->listen.context, &connection->peer))
        return false;
    listener_lock(port->listener);
    // Asked again under the lock, since port_hang_up passes over connections without an owner.
    struct owner *owner =
        connection_is_known(connection) ? owner_of(port, &connection->peer) : NULL;
    if (owner)
        owner->connections++;
    connection->owner = owner;
    connection->is_admitted = owner != NULL;
    listener_unlock(port->listener);
    if (!owner && port->listen.leave)
        port->listen.leave(port->listen.context, &connection->peer);
    return owner != NULL;
}

// Decides whether the peer of a complete handshake may stay; false: it was closed.
static bool admit(struct connection *connection, const struct zmtp_step *proved)
{
    struct port *port = connection->port;
    struct zmtp_step answer = {0};
    if (port->listen.guard) {
        connection->peer.kind = PEER_KEY;
        memcpy(connection->peer.key, proved->key, WIRE_KEY_SIZE);
    }
    const bool is_known = connection_is_known(connection);
    if (is_known && !enter(connection)) { // closed without an ERROR, so that it tries again
        connection_cut(connection,
                       connection_is_known(connection) ? WIRE_CUT_CONNECTIONS : WIRE_CUT_STRANGER);
        return false;
    }
    zmtp_admit(&connection->zmtp, is_known, &answer);
    const bool is_sent = send_own(connection, answer.reply, answer.reply_size);
    if (!is_known)
        connection_cut(connection, WIRE_CUT_STRANGER);
    else if (!is_sent)
        connection_end(connection, true);
    return is_known && is_sent;
}

// Gives a frame of connection->wanted bytes its memory; false: there is none at the moment.
static bool give_room(struct connection *connection)
{
    const size_t size = connection->wanted, cost = size + FRAME_COST;
    struct port *port = connection->port;
    if (room_of(connection) < cost) // only this thread takes of it
        return false;
    struct received *room = malloc(sizeof *room + size);
    if (!room)
        return false;
    listener_lock(port->listener);
    pool_hold(connection->owner, cost);
    listener_unlock(port->listener);
    *room = (struct received){.owner = connection->owner, .cost = cost};
    connection->room = room;
    connection->wants_room = false;
    connection->frame_ns = port->listener->now_ns;
    zmtp_room(&connection->zmtp, size > 0 ? room->room : NULL);
    return true;
}

// Hands a complete message over to port_receive.
static void push(struct connection *connection, const struct zmtp_step *step)
{
    struct received *received = connection->room;
    connection->room = NULL;
    received->message = step->message;
    received->size = step->size;
    listener_lock(connection->port->listener);
    if (!connection->is_heard)
        TAILQ_REMOVE(&connection->port->unheard, connection, next_unheard);
    connection->is_heard = true;
    TAILQ_INSERT_TAIL(&connection->unread, received, next);
    connection->unread_size += received->cost;
    connection_update(connection);
    const bool is_full = connection->unread_size >= connection->port->limits->unread_max;
    listener_unlock(connection->port->listener);
    if (is_full)
        begin_wait(connection, WAIT_READER);
}

// A heartbeat is answered unless something is unsent already, which shows as much, or the peer
// reads nothing.
static void answer_ping(struct connection *connection, const struct zmtp_step *ping)
{
    unsigned char pong[ZMTP_PONG_MAX];
    if (connection->sending || !connection->can_write)
        return;
    const size_t size = zmtp_pong(&connection->zmtp, ping, pong);
    (void)send_own(connection, pong, size);
}

// Does what follows from a step; false: the connection was closed.
static bool take_step(struct connection *connection, const struct zmtp_step *step)
{
    switch (step->kind) {
    case ZMTP_MORE:
        return true;
    case ZMTP_REPLY:
        if (send_own(connection, step->reply, step->reply_size))
            return true;
        connection_end(connection, true);
        return false;
    case ZMTP_ADMIT:
        return admit(connection, step);
    case ZMTP_FRAME:
        connection->wanted = step->size;
        connection->wants_room = true;
        if (!give_room(connection))
            begin_wait(connection, WAIT_ROOM);
        return true;
    case ZMTP_MESSAGE:
        push(connection, step);
        return true;
    case ZMTP_PING:
        answer_ping(connection, step);
        break;
    case ZMTP_COMMAND:
        break;
    case ZMTP_BROKEN:
        if (step->reply_size > 0)
            (void)send_own(connection, step->reply, step->reply_size);
        connection_cut(connection, step->cut);
        return false;
    }
    discard_room(connection);
    if (++connection->others <= OTHERS_MAX)
        return true;
    connection_cut(connection, WIRE_CUT_PINGS);
    return false;
}

// ---- Receiving -----------------------------------------------------------------------

// Keeps what cannot be taken until the wait is over; false: the connection was closed.
static bool keep(struct connection *connection, const unsigned char *bytes, size_t size)
{
    if (size == 0)
        return true;
    connection->left = malloc(size);
    if (!connection->left) {
        connection_end(connection, false);
        return false;
    }
    memcpy(connection->left, bytes, size);
    connection->left_size = size;
    listener_lock(connection->port->listener);
    pool_hold(connection->owner, size);
    listener_unlock(connection->port->listener);
    return true;
}

// Takes received bytes, as many as there is room for; false: the connection was closed.
static bool consume(struct connection *connection, const unsigned char *bytes, size_t size)
{
    struct zmtp_step step = {.kind = ZMTP_COMMAND};
    while (step.kind != ZMTP_MORE) {
        step = (struct zmtp_step){0};
        const size_t used = zmtp_consume(&connection->zmtp, bytes, size, &step);
        bytes += used;
        size -= used;
        if (!take_step(connection, &step))
            return false;
        if (connection->wait != WAIT_NOT)
            return keep(connection, bytes, size);
    }
    return true;
}

// Where to receive, and how much; 0: there is no room.
static unsigned char *target(struct connection *connection, size_t *size)
{
    unsigned char *room = zmtp_room_left(&connection->zmtp, size);
    if (!connection->is_admitted) {
        *size = READ_SHAKING;
        return connection->port->listener->scratch;
    }
    // Where room is short only a little is read, since what is read has to be kept if the frame
    // that it belongs to finds none.
    const struct port_limits *limits = connection->port->limits;
    const size_t left = room_of(connection);
    const bool is_ample = left >= limits->frame_max + 2 * (limits->unread_max + READ_SIZE);
    if (room && (*size >= DIRECT_MIN || !is_ample)) {
        *size = *size < READ_LARGE ? *size : READ_LARGE;
        return room;
    }
    *size = is_ample ? READ_SIZE : left >= READ_MIN ? READ_MIN : 0;
    return connection->port->listener->scratch;
}

void connection_read(struct connection *connection)
{
    size_t size;
    unsigned char *at = target(connection, &size);
    if (size == 0) {
        begin_wait(connection, WAIT_ROOM);
        return;
    }
    const ssize_t got = recv(connection->fd, at, size, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
        return;
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        connection_end(connection, false);
        return;
    }
    if (got > 0 && !consume(connection, at, (size_t)got))
        return;
    // Fewer than asked for: there was no more, and epoll reports what comes.  The end of what the
    // peer sent it has reported already.
    if (got < 0 || ((size_t)got < size && !connection->has_ended))
        make_unready(connection);
}

// True if what the connection waits for is there.
static bool may_go_on(struct connection *connection)
{
    struct port *port = connection->port;
    if (connection->wait == WAIT_READER) {
        listener_lock(port->listener);
        const bool has_room = connection->unread_size <= port->limits->unread_max / 2;
        listener_unlock(port->listener);
        return has_room;
    }
    if (connection->wants_room)
        return give_room(connection);
    return room_of(connection) >= READ_MIN;
}

void connection_resume(struct connection *connection)
{
    if (!may_go_on(connection))
        return;
    end_wait(connection);
    static const unsigned char nothing[1];
    unsigned char *left = connection->left;
    const size_t size = left ? connection->left_size : 0;
    connection->left = NULL;
    release(connection->owner, size);
    const bool is_open = consume(connection, left ? left : nothing, size);
    free(left);
    if (is_open)
        make_ready(connection);
}

void connection_on_event(struct connection *connection, uint32_t events)
{
    const bool is_over = events & (EPOLLHUP | EPOLLERR);
    connection->has_ended = connection->has_ended || is_over || events & EPOLLRDHUP;
    if (is_over && !lose(connection)) {
        connection_end(connection, true);
        return;
    }
    if (!is_over && events & EPOLLOUT) {
        connection->can_write = true;
        connection_write(connection);
    }
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        make_ready(connection);
}

void connection_open(struct port *port, int fd, const struct wire_peer *peer)
{
    struct listener *listener = port->listener;
    struct connection *connection = calloc(1, sizeof *connection);
    struct zmtp_step greeting = {0};
    if (!connection) {
        (void)close(fd);
        return;
    }
    connection->event = EVENT_CONNECTION;
    connection->port = port;
    connection->fd = fd;
    connection->peer = *peer;
    connection->can_write = true;
    connection->opened_ns = listener->now_ns;
    TAILQ_INIT(&connection->unread);
    TAILQ_INIT(&connection->unsent);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = connection};
    listener_lock(port->listener);
    bool has_place = connection_enter(connection);
    listener_unlock(port->listener);
    if (!has_place) {
        free(connection);
        (void)close(fd);
        return;
    }
    zmtp_init(&connection->zmtp, &port->rules, &greeting);
    if (epoll_ctl(listener->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 ||
        !send_own(connection, greeting.reply, greeting.reply_size))
        connection_end(connection, true);
}
