// Internal structures of the server sockets (listener.h): the listener, its ports (one per server
// socket) and their connections.  Private to the listener*.c files.
//
// Two threads use a port: the listener thread, which alone touches the sockets' descriptors, and
// the user's thread, which calls the functions of listener.h.  listener->lock guards the members
// below the words "Under the lock"; the others are constant or belong to the listener thread.  The
// lock is held for a few instructions, never while a message is copied, encrypted, received or
// sent.
#pragma once

#include <pthread.h>
#include <sys/queue.h>

#include "common/sys/thread.h"
#include "common/wire/listener/listener.h"
#include "common/wire/listener/zmtp.h"

enum {
    CONNECTIONS_MAX = 65536, // of a port
    READ_SIZE = 64 * 1024,   // most bytes of small frames that are received at once
    SEAL_OVERHEAD = 64,      // most bytes that sealing (frame header, encryption) adds to a message
    LISTENER_RATE_SLOTS = 1024, // slots, by hash of address and user, that count handshakes
    COMPLAINTS_MAX = 64,        // peers that port_complaints names at most
};

// Kind of an epoll event: the first member of each structure to which epoll's data points.
enum listener_event { EVENT_WAKE, EVENT_PORT, EVENT_CONNECTION };

// A frame in memory: from its announcement until port_release.
struct received {
    TAILQ_ENTRY(received) next; // in its connection's `unread`
    struct owner *owner;
    size_t cost;         // bytes that count as received: the announced size and 128
    const void *message; // the decrypted message, in `room`
    size_t size;         // of the message
    unsigned char room[];
};
TAILQ_HEAD(received_list, received);

// Bytes to send: a message, or bytes of ZMTP itself (handshake, answer to a heartbeat).
struct unsent {
    TAILQ_ENTRY(unsent) next;
    size_t message_size; // size of the plain message, which begins at bytes + SEAL_OVERHEAD
    size_t begin, end;   // bytes[begin..end) are still to be sent; 0, 0: not sealed yet
    size_t cost;         // bytes that count as unsent; 0 for bytes of ZMTP
    uint64_t since_ns;   // monotonic time of port_send
    unsigned char bytes[];
};
TAILQ_HEAD(unsent_list, unsent);

TAILQ_HEAD(connection_list, connection);
TAILQ_HEAD(owner_list, owner);

// Bytes in use by the sockets of one service.  Under the lock.
struct pool {
    size_t received, unsent;
    bool has_waiting;   // connections wait for room
    bool was_short;     // port_send refused a message since the last check of times, each second
    bool was_shortened; // memory was released: connections that wait are to try again
};

// An owner (a key or user; peer_is_same_owner) with connections to a port.  Under the lock.
struct owner {
    TAILQ_ENTRY(owner) next;        // in the port's `owners`
    TAILQ_ENTRY(owner) next_active; // in the port's `active`
    struct port *port;
    struct wire_peer peer;
    unsigned connections;          // number of them, also closed ones with unread frames
    size_t received, unsent;       // the owner's bytes of pool.received and pool.unsent
    struct connection_list active; // connections with a frame that port_receive may take now
    size_t credit;                 // deficit round robin: bytes that the owner may still take
};

// Why nothing is received from a connection.
enum wait {
    WAIT_NOT,
    WAIT_ROOM,   // until the pool has memory for its owner
    WAIT_READER, // until port_receive has taken enough of its unread frames
};

struct connection {
    enum listener_event event;
    struct port *port;
    uint64_t id;
    struct wire_peer peer;
    // Of the listener thread.
    int fd;
    struct zmtp zmtp;
    TAILQ_ENTRY(connection) next_ready; // in the listener's `ready`
    bool is_ready, can_write;
    bool has_ended;      // the peer will send no more; bytes that it sent may still be unreceived
    bool is_admitted;    // the handshake is complete and the peer was admitted
    unsigned char *left; // bytes received, but not passed to `zmtp` because of `wait`; or NULL
    size_t left_size;
    struct received *room; // memory of the frame being received; or NULL
    bool wants_room;       // a frame of `wanted` bytes was announced and has no memory yet
    size_t wanted;
    struct unsent *sending; // partly sent, no longer in `unsent`; or NULL
    // Times of accepting it, of beginning the current frame, of the last progress in sending.
    uint64_t opened_ns, frame_ns, progress_ns;
    unsigned others; // heartbeats and other commands in this second
    // Under the lock.
    struct owner *owner;                  // NULL until it is admitted
    TAILQ_ENTRY(connection) next;         // in the port's `connections`
    TAILQ_ENTRY(connection) next_unheard; // in the port's `unheard`
    TAILQ_ENTRY(connection) next_dirty;   // in the listener's `dirty`
    TAILQ_ENTRY(connection) next_waiting; // in the port's `waiting`
    TAILQ_ENTRY(connection) next_active;  // in its owner's `active`
    enum wait wait;
    // is_heard: has sent a message (else it is in `unheard`).  is_dirty, is_active: is in that
    // list.  is_ended: its descriptor is closed, and only unread frames remain.
    bool is_heard, is_dirty, is_active, is_ended;
    bool is_cut;                 // shut down by this side; not in port->counters.connections
    bool is_gone;                // the peer reads no more
    struct received_list unread; // complete frames that port_receive has not taken
    size_t unread_size;          // sum of their `cost`
    struct unsent_list unsent;
    size_t unsent_size; // sum of `cost`, with that of `sending`
};

struct port_limits {
    uint64_t frame_max;
    size_t unread_max, unsent_max;             // of a connection
    size_t pool_received_max, pool_unsent_max; // of all sockets of the service
    bool is_asked; // query, admin: one answer at a time; frames of a closed connection are dropped
};

struct port {
    enum listener_event event;
    struct listener *listener;
    struct wire_listen listen; // its guard: NULL, or `guard`
    const struct port_limits *limits;
    int fd;                           // listens
    int ready_fd;                     // eventfd for the user's thread
    char *file;                       // path of an ipc socket; NULL: TCP
    uint64_t file_device, file_inode; // of `file`, to remove no other socket
    // is_paused: accepts nothing for a second, for lack of descriptors or memory.  is_refused:
    // epoll did not take the port's descriptor.
    bool is_paused, is_refused;
    struct wire_guard guard;
    struct zmtp_rules rules;
    TAILQ_ENTRY(port) next;
    // Under the lock.  Only the listener thread adds to the first three lists.
    // connections: all.  unheard: those that have sent no message, the oldest first.
    struct connection_list connections, unheard;
    struct connection_list waiting; // those with a `wait`
    struct owner_list owners;
    struct owner_list active; // owners with `active` connections
    bool is_signalled;        // ready_fd is readable
    // The connections by `id` modulo CONNECTIONS_MAX; NULL: free, as none below `free_slot` is.
    struct connection **slots;
    unsigned free_slot;
    uint64_t last_serial; // number of connections so far: the last `id` by CONNECTIONS_MAX
    struct wire_counters counters;
    struct wire_complaint complaints[COMPLAINTS_MAX];
    unsigned complaint_count;
};
TAILQ_HEAD(port_list, port);

// What a user's thread asks the listener thread to do with a port, one request at a time.
enum listener_request { REQUEST_NONE, REQUEST_ADD, REQUEST_REMOVE, REQUEST_STOP };

// Rate limit of handshakes (generic cell rate algorithm): per slot, and for all, the monotonic time
// at which the handshakes so far would be due at an even pace.
struct rates {
    uint64_t peers[LISTENER_RATE_SLOTS], all;
};

struct listener {
    pthread_mutex_t turn; // held by the user's thread that has made the request
    pthread_mutex_t lock;
    pthread_cond_t done; // `request` is REQUEST_NONE again
    struct thread thread;
    enum listener_event event; // of wake_fd
    int epoll_fd, wake_fd;
    // Under the lock.
    struct pool pools[ADDRESS_SERVICES];
    struct connection_list dirty; // connections that the thread is to look at (connection_mark)
    bool is_asleep;               // the thread waits in epoll, or is about to
    enum listener_request request;
    struct port *requested;
    // Of the listener thread.
    struct port_list ports;
    struct connection_list ready;      // connections that may have bytes to receive
    uint64_t now_ns;                   // monotonic time of this round
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
// Accepts a connection and identifies its peer.  Returns the descriptor; -1: none (errno).
int port_accept(const struct port *port, struct wire_peer *peer);

// ---- listener_queue.c: all under the lock ----------------------------------------------

// True if the thread sleeps: after releasing the lock the caller must call listener_wake.
bool listener_needs_wake(struct listener *listener);
void listener_wake(struct listener *listener);

struct pool *pool_of(const struct port *port);
// Bytes that the owner may still receive by the fair share of listener.h.
size_t pool_room(const struct owner *owner);
// Count bytes as received, and no longer so.  True: the caller must call listener_wake, as above.
void pool_hold(struct owner *owner, size_t bytes);
bool pool_release(struct owner *owner, size_t bytes);

// The owner that the peer belongs to, made if it is new; NULL: out of memory.
struct owner *owner_of(struct port *port, const struct wire_peer *peer);

// Adds the connection to its port and sets its `id`; false: out of slots.
bool connection_enter(struct connection *connection);
// Adds the connection to, or removes it from, those that port_receive may take from, and signals
// the user's thread.  Call it after `unread` or `unsent` has changed.
void connection_update(struct connection *connection);
// Makes the listener thread send the connection's unsent messages and check the reason of its wait.
void connection_mark(struct connection *connection);
// True if the port has no guard or it admits the connection's key.
bool connection_is_known(const struct connection *connection);
// Shuts the connection down; the thread closes it when epoll reports that.
void connection_shut_down(struct connection *connection);
void connection_free(struct connection *connection);
void connection_drop_unread(struct connection *connection);
// Counts a closed connection for port_count and port_complaints.
void port_complain(struct port *port, const struct wire_peer *peer, enum wire_cut cut);

// ---- listener_connection.c: the listener thread, without the lock ------------------------

// Takes over an accepted descriptor.
void connection_open(struct port *port, int fd, const struct wire_peer *peer);
// Receives once, up to a limit of bytes.
void connection_read(struct connection *connection);
// Ends the connection's wait if its reason is gone.
void connection_resume(struct connection *connection);
// Sends until the kernel's buffer is full or nothing is unsent.
void connection_write(struct connection *connection);
// Handles the events that epoll reported.
void connection_on_event(struct connection *connection, uint32_t events);
// Ends a connection for a reason that is the peer's fault.
void connection_cut(struct connection *connection, enum wire_cut why);
// Closes the descriptor.  Keeps the structure while it has unread frames, unless `drops_unread`,
// is_cut or is_asked.
void connection_end(struct connection *connection, bool drops_unread);
