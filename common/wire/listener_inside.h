// Structures of a listener, its ports and connections, and the functions between its files.
// Private to the files that implement listener.h.
//
// Two threads use a port: the listener's, which alone touches descriptors, and that of the socket's
// user.  listener->lock protects what both need; a member says so.  The lock is held for a few
// instructions, never while a message is copied, encrypted, received or sent.
#ifndef INFERSTAT_WIRE_LISTENER_INSIDE_H
#define INFERSTAT_WIRE_LISTENER_INSIDE_H

#include <pthread.h>
#include <sys/queue.h>

#include "common/sys/thread.h"
#include "common/wire/listener.h"
#include "common/wire/zmtp.h"

enum {
    READ_SIZE = 64 * 1024,      // most bytes of small frames that are received at once
    SEAL_OVERHEAD = 64,         // most bytes of a message on the wire beside its own
    LISTENER_RATE_SLOTS = 1024, // addresses and users whose handshakes are counted apart
    COMPLAINTS_MAX = 64,
};

// What epoll reports: the first member of the structure that it points to.
enum listener_event { EVENT_WAKE, EVENT_PORT, EVENT_CONNECTION };

// A frame that is being received, or was and is not released yet.
struct received {
    TAILQ_ENTRY(received) next; // in its connection's `unread`
    struct owner *owner;
    size_t cost; // what is held for it
    const void *message;
    size_t size;
    unsigned char room[];
};
TAILQ_HEAD(received_list, received);

// A message or a part of the handshake that is to be sent.
struct unsent {
    TAILQ_ENTRY(unsent) next;
    size_t message_size; // of a message that is still to be sealed, at bytes + SEAL_OVERHEAD
    size_t begin, end;   // of what is left for the wire; 0, 0: not sealed yet
    size_t cost;
    unsigned char bytes[];
};
TAILQ_HEAD(unsent_list, unsent);

TAILQ_HEAD(connection_list, connection);
TAILQ_HEAD(owner_list, owner);

// Bytes that the sockets of one service hold.  Under the lock.
struct pool {
    size_t received_max, unsent_max;
    size_t received, unsent;
    bool has_waiting;   // connections wait for room
    bool was_short;     // a message was refused since the last look
    bool was_shortened; // frames were released while connections wait
};

// Who has connections to a port.  Under the lock.
struct owner {
    TAILQ_ENTRY(owner) next;        // in the port's `owners`
    TAILQ_ENTRY(owner) next_active; // in the port's `active`
    struct port *port;
    struct wire_peer peer;
    unsigned connections; // structures, closed ones with unread frames among them
    size_t received, unsent;
    struct connection_list active; // those with a frame that may be read now
    size_t credit;                 // of its turns, in bytes
};

enum wait {
    WAIT_NOT,
    WAIT_ROOM,   // for memory
    WAIT_READER, // for wire_receive to take what is there
};

struct connection {
    enum listener_event event;
    struct port *port;
    uint64_t id;
    struct wire_peer peer;
    // Of the listener's thread.
    int fd;
    struct zmtp zmtp;
    TAILQ_ENTRY(connection) next_ready; // in the listener's `ready`
    bool is_ready, can_write;
    bool has_ended;      // the peer will send no more; what it sent may not be received yet
    bool is_admitted;    // its handshake is complete
    unsigned char *left; // received and not taken while it waits; or NULL
    size_t left_size;
    struct received *room; // of the frame that is being received; or NULL
    bool wants_room;       // a frame of `wanted` bytes waits for room
    size_t wanted;
    struct unsent *sending;
    uint64_t opened_ns, frame_ns, progress_ns;
    unsigned others; // heartbeats and the like in this second
    // Under the lock.
    struct owner *owner;                  // NULL until it is admitted
    TAILQ_ENTRY(connection) next;         // in the port's `connections`
    TAILQ_ENTRY(connection) next_unheard; // in the port's `unheard`
    TAILQ_ENTRY(connection) next_dirty;   // in the listener's `dirty`
    TAILQ_ENTRY(connection) next_waiting; // in the port's `waiting`
    TAILQ_ENTRY(connection) next_active;  // in its owner's `active`
    enum wait wait;
    bool is_heard, is_dirty, is_active, is_ended;
    bool is_cut;  // shut down, and no longer counted
    bool is_gone; // the peer reads no more
    struct received_list unread;
    size_t unread_size;
    struct unsent_list unsent;
    size_t unsent_size;
    size_t credit;
};

struct port_limits {
    uint64_t frame_max;
    size_t unread_max, unsent_max; // of a connection
    bool is_asked;                 // peers ask: one unsent answer, and no answer without the asker
};

struct port {
    enum listener_event event;
    struct listener *listener;
    enum address_service service;
    const struct port_limits *limits;
    int fd;       // listens
    int ready_fd; // eventfd for the user's thread
    char *file;   // of an ipc socket; or NULL
    uint64_t file_device, file_inode;
    bool is_guarded, is_paused;
    struct wire_guard guard;
    struct curve_keys keys;
    struct zmtp_rules rules;
    unsigned connections_max;
    bool (*enter)(void *context, const struct wire_peer *peer);
    void (*leave)(void *context, const struct wire_peer *peer);
    void *context;
    TAILQ_ENTRY(port) next;
    // Under the lock.  The thread alone changes the first four.
    struct connection_list connections, unheard;
    struct connection_list waiting; // see enum wait
    struct owner_list owners;
    struct owner_list active; // with something to read
    bool is_signalled;
    uint64_t skipped; // messages of several frames that wire_receive is to report
    struct connection **slots;
    unsigned slot_count, free_slot; // where to look first
    uint64_t last_serial;
    struct wire_counters counters;
    struct wire_complaint complaints[COMPLAINTS_MAX];
    unsigned complaint_count;
};
TAILQ_HEAD(port_list, port);

// What a user's thread asks the listener's thread to do, one at a time.
enum listener_request { REQUEST_NONE, REQUEST_ADD, REQUEST_REMOVE, REQUEST_STOP };

// When the handshakes so far would be due at an even pace.
struct rates {
    uint64_t peers[LISTENER_RATE_SLOTS], all;
};

struct listener {
    pthread_mutex_t turn; // held by the thread whose request it is
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct thread thread;
    enum listener_event event; // of wake_fd
    int epoll_fd, wake_fd;
    // Under the lock.
    struct pool pools[ADDRESS_SERVICES];
    struct connection_list dirty; // with something new for the thread
    bool is_asleep;               // the thread waits, or is about to
    enum listener_request request;
    struct port *requested;
    // Of the thread.
    struct port_list ports;
    struct connection_list ready; // may have bytes to receive
    uint64_t now_ns;
    struct rates tcp_rates, ipc_rates; // apart: a flood from outside cannot lock local users out
    uint32_t rate_seed;
    unsigned char scratch[READ_SIZE];
};

static inline void listener_lock(struct listener *listener)
{
    (void)pthread_mutex_lock(&listener->lock);
}

static inline void listener_unlock(struct listener *listener)
{
    (void)pthread_mutex_unlock(&listener->lock);
}

// ---- listener_bind.c -----------------------------------------------------------------

// Opens port->fd, which listens on the endpoint.
MUST_CHECK enum status port_bind(struct port *port, const char *endpoint, bool owner_only,
                                 struct error *err);
// Removes the file of an ipc socket, if it is still this port's.
void port_remove_file(const struct port *port);
// Accepts a connection and says whose it is.  Returns its descriptor, -1: none (errno).
int port_accept(const struct port *port, struct wire_peer *peer);

// ---- listener_queue.c: all under the lock ----------------------------------------------

// Wakes the thread after the lock is released, if that is needed.
bool listener_needs_wake(struct listener *listener);
void listener_wake(struct listener *listener);

struct pool *pool_of(const struct port *port);
// Bytes that the owner may have more than now.
size_t pool_room(const struct pool *pool, const struct owner *owner);
void pool_hold(struct owner *owner, size_t bytes);
// True if the thread is to be told that there is room.
bool pool_release(struct owner *owner, size_t bytes);

// The owner that the peer belongs to, made if it is new; NULL: out of memory.
struct owner *owner_of(struct port *port, const struct wire_peer *peer);
void owner_leave(struct owner *owner);
// Frees the owner if nothing of it is left.
void owner_free_unused(struct owner *owner);

// Gives the connection its number and a place; false: out of memory.
bool connection_enter(struct connection *connection);
struct connection *connection_find(const struct port *port, uint64_t id);
// Puts it among those that wire_receive may take from, or takes it out, and tells the user's
// thread.
void connection_update(struct connection *connection);
// Has the thread look at it: at what is unsent, and at the reason of its wait.
void connection_mark(struct connection *connection);
// Shuts it down; the thread closes it when epoll reports that.
void connection_shut_down(struct connection *connection);
void connection_free(struct connection *connection);
void connection_drop_unread(struct connection *connection);
// The next frame in fair order, and its connection; NULL: none.
struct received *port_next(struct port *port, struct connection **from);
void port_signal(struct port *port);
void port_complain(struct port *port, const struct wire_peer *peer, enum wire_cut cut);

// ---- listener_connection.c: the thread, without the lock ---------------------------------

// Takes over an accepted descriptor.
void connection_open(struct port *port, int fd, const struct wire_peer *peer);
// Receives what is there, up to a limit for one turn.
void connection_read(struct connection *connection);
// Goes on after a wait, if the reason is gone.
void connection_resume(struct connection *connection);
// Sends what the peer takes.
void connection_write(struct connection *connection);
// What epoll reported.
void connection_on_event(struct connection *connection, uint32_t events);
// Ends a connection for a reason that is the peer's fault.
void connection_cut(struct connection *connection, enum wire_cut why);
void connection_end(struct connection *connection, bool drops_unread);

#endif
