#include "common/wire/socket_dealer.h"

#include <zmq.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/wire/message.h"

enum {
    HANDSHAKE_MS = 5000,
    // A host that vanished is noticed by TCP: in silence after 10 s and three probes
    // 5 s apart, else when what was sent stays unacknowledged.
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_PROBES = 3,
    UNACKNOWLEDGED_MS = 10000,
    RECONNECT_MS = 50,
    RECONNECT_MAX_MS = 2000,
    // With a pass: libzmq does not wait longer each time a server with another key
    // cuts it off.
    RECONNECT_CURVE_MS = 250,
};

enum {
    QUEUE_OUT = 64, // messages
    GARBAGE_MAX = 64,
    TROUBLE_SIZE = PEER_TEXT_SIZE + 128,
};

static const uint64_t second_ns = UINT64_C(1000000000);

// What a collector may send.  Its Acks have up to 280 KiB, one for each
// batch; its answers and live records up to MESSAGE_SIZE_MAX, and what keys add.
static const struct dealer_limits {
    int64_t frame_max;
    uint64_t frames, bytes; // a second
} ingest_limits = {1 << 20, 8192, 16 << 20},
  other_limits = {MESSAGE_SIZE_MAX + 1024, 65536, 512 << 20};

struct dealer {
    void *zmq;
    void *peek; // over TCP: libzmq tells of handshakes there; else NULL
    enum wire_handshake handshake;
    bool is_shaking; // hands, at the moment
    const struct dealer_limits *limits;
    struct wire_peer last_peer;       // of the last message
    uint64_t frames, bytes, since_ns; // received since then, at most a second ago
    unsigned garbage;                 // messages that cannot be read since then,
    uint64_t garbage_since_ns;        // at most 10 s ago
    char trouble[TROUBLE_SIZE];       // why the connection was closed; "": it is not
    // Of an ipc endpoint with `trust`; else -1.
    int folder_fd;
    struct peer_trust trust;
    char folder[ADDRESS_TEXT_SIZE];
};

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
static bool set_options(void *zmq, const char *endpoint, const struct dealer_limits *limits)
{
    bool done = set_int(zmq, ZMQ_LINGER, 0) && set_int(zmq, ZMQ_SNDHWM, QUEUE_OUT) &&
                set_int(zmq, ZMQ_RCVHWM, 0);
    if (!done)
        return false;
    done = zmq_setsockopt(zmq, ZMQ_MAXMSGSIZE, &limits->frame_max, sizeof limits->frame_max) == 0 &&
           set_int(zmq, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) && set_int(zmq, ZMQ_TCP_KEEPALIVE, 1) &&
           set_int(zmq, ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S) &&
           set_int(zmq, ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_INTERVAL_S) &&
           set_int(zmq, ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_PROBES) &&
           set_int(zmq, ZMQ_TCP_MAXRT, UNACKNOWLEDGED_MS) &&
           set_int(zmq, ZMQ_IPV6, strchr(endpoint, '[') != NULL);
    if (!done)
        return false;
    return set_int(zmq, ZMQ_IMMEDIATE, 1) && set_int(zmq, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
           set_int(zmq, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS);
}

static enum status open_zmq(void **out, void *context, const char *endpoint,
                            const struct dealer_limits *limits, struct error *err)
{
    // The first socket starts libzmq's threads, which inherit the mask: signals
    // are for the program's own threads.
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    void *zmq = zmq_socket(context, ZMQ_DEALER);
    int fault = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (zmq && set_options(zmq, endpoint, limits)) {
        *out = zmq;
        return STATUS_OK;
    }
    if (zmq) {
        fault = errno;
        (void)zmq_close(zmq);
    }
    return error_set(err, STATUS_IO, "%s: the socket could not be made: %s", endpoint,
                     zmq_strerror(fault));
}

// Subscribes to libzmq's handshake events.  The queue has no limit, because libzmq would
// block on an event that does not fit.  Never HANDSHAKE_FAILED_PROTOCOL: libzmq 4.3.4 loses the
// reason on the way when it reports that one, and a connection with a malformed message stays open,
// unread.
static bool peek_at(struct dealer *dealer, void *context)
{
    const int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED;
    static _Atomic unsigned last_peek; // tells the sockets' monitors apart
    char place[48];
    (void)snprintf(place, sizeof place, "inproc://inferstat-peek-%u",
                   atomic_fetch_add(&last_peek, 1));
    dealer->peek = zmq_socket(context, ZMQ_PAIR);
    return dealer->peek && set_int(dealer->peek, ZMQ_RCVHWM, 0) &&
           zmq_socket_monitor(dealer->zmq, place, events) == 0 &&
           zmq_connect(dealer->peek, place) == 0;
}

static bool set_pass(const struct dealer *dealer, const struct wire_pass *pass)
{
    return zmq_setsockopt(dealer->zmq, ZMQ_CURVE_SERVERKEY, pass->server_key, WIRE_KEY_SIZE) == 0 &&
           zmq_setsockopt(dealer->zmq, ZMQ_CURVE_PUBLICKEY, pass->own.public_key, WIRE_KEY_SIZE) ==
               0 &&
           zmq_setsockopt(dealer->zmq, ZMQ_CURVE_SECRETKEY, pass->own.secret_key, WIRE_KEY_SIZE) ==
               0;
}

static enum status prepare_dealer(struct dealer *dealer, void *context, const char *endpoint,
                                  const struct wire_pass *pass, struct error *err)
{
    if (strncmp(endpoint, "tcp://", 6) != 0)
        return STATUS_OK;
    if (pass &&
        !(set_pass(dealer, pass) && set_int(dealer->zmq, ZMQ_RECONNECT_IVL, RECONNECT_CURVE_MS)))
        return error_set(err, STATUS_INVALID, "%s: libzmq does not take the keys: %s", endpoint,
                         zmq_strerror(errno));
    if (!peek_at(dealer, context))
        return error_set(err, STATUS_IO, "%s: the socket could not be made: %s", endpoint,
                         zmq_strerror(errno));
    return STATUS_OK;
}

static void note_event(struct dealer *dealer, uint16_t event)
{
    bool was_shaking = dealer->is_shaking;
    dealer->is_shaking = event == ZMQ_EVENT_CONNECTED;
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        dealer->handshake = WIRE_HANDSHAKE_DONE;
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        dealer->handshake = WIRE_HANDSHAKE_REFUSED;
    else if (event == ZMQ_EVENT_DISCONNECTED && was_shaking)
        dealer->handshake = WIRE_HANDSHAKE_BROKEN;
}

// Takes what libzmq has told since the last look.
static void look(struct dealer *dealer)
{
    unsigned char frame[6];
    uint16_t event;
    int size;
    while (dealer->peek &&
           (size = zmq_recv(dealer->peek, frame, sizeof frame, ZMQ_DONTWAIT)) >= 0) {
        if (size != (int)sizeof frame)
            continue; // the endpoint, which follows each event
        memcpy(&event, frame, sizeof event);
        note_event(dealer, event);
    }
}

const char *dealer_trouble(const struct dealer *dealer)
{
    return dealer->trouble;
}

// Closes libzmq's side, which frees what it had received.
static void disconnect(struct dealer *dealer)
{
    if (dealer->peek) {
        // Before its reader goes: see peek_at.
        (void)zmq_socket_monitor(dealer->zmq, NULL, 0);
        (void)zmq_close(dealer->peek);
    }
    if (dealer->zmq)
        (void)zmq_close(dealer->zmq);
    dealer->peek = NULL;
    dealer->zmq = NULL;
}

// Closes the connection because of what the last sender did.
static void close_connection(struct dealer *dealer, const char *what)
{
    char who[PEER_TEXT_SIZE];
    disconnect(dealer);
    dealer->handshake = WIRE_HANDSHAKE_CLOSED;
    (void)snprintf(dealer->trouble, sizeof dealer->trouble, "%s %s",
                   peer_text(who, &dealer->last_peer), what);
}

static bool is_moved(const struct dealer *dealer)
{
    struct stat held, found;
    return dealer->folder_fd >= 0 &&
           (fstat(dealer->folder_fd, &held) != 0 || stat(dealer->folder, &found) != 0 ||
            held.st_ino != found.st_ino || held.st_dev != found.st_dev);
}

enum wire_handshake dealer_handshake(struct dealer *dealer)
{
    look(dealer);
    return dealer->zmq && is_moved(dealer) ? WIRE_HANDSHAKE_MOVED : dealer->handshake;
}

// Checks and opens the folder of an ipc endpoint, and makes the endpoint lead through it: libzmq,
// which connects later and again, always reaches the folder that was checked.  Without /proc the
// endpoint stays.
static enum status open_folder(struct dealer *dealer, char endpoint[ADDRESS_TEXT_SIZE],
                               const struct peer_trust *trust, struct error *err)
{
    static const size_t scheme = sizeof "ipc://" - 1;
    char name[16], through[64];
    files_folder_of(dealer->folder, sizeof dealer->folder, endpoint + scheme);
    (void)snprintf(name, sizeof name, "%s", strrchr(endpoint, '/') + 1);
    dealer->trust = *trust;
    const enum status status =
        peer_open_folder(&dealer->folder_fd, &dealer->trust, dealer->folder, name, err);
    (void)snprintf(through, sizeof through, "ipc:///proc/self/fd/%d", dealer->folder_fd);
    if (status == STATUS_OK && access(through + scheme, F_OK) == 0)
        (void)snprintf(endpoint, ADDRESS_TEXT_SIZE, "%s/%s", through, name);
    return status;
}

enum status dealer_open(struct dealer **out, void *context, const char *endpoint,
                        enum address_service service, const struct wire_pass *pass,
                        const struct peer_trust *trust, struct error *err)
{
    char place[ADDRESS_TEXT_SIZE];
    struct dealer *dealer = calloc(1, sizeof *dealer);
    if (!dealer)
        return error_no_memory(err, endpoint);
    dealer->folder_fd = -1;
    dealer->limits = service == ADDRESS_INGEST ? &ingest_limits : &other_limits;
    (void)snprintf(place, sizeof place, "%s", endpoint);
    enum status status = STATUS_OK;
    if (trust && strncmp(place, "ipc://", 6) == 0)
        status = open_folder(dealer, place, trust, err);
    if (status == STATUS_OK)
        status = open_zmq(&dealer->zmq, context, place, dealer->limits, err);
    if (status == STATUS_OK)
        status = prepare_dealer(dealer, context, place, pass, err);
    if (status == STATUS_OK && zmq_connect(dealer->zmq, place) != 0)
        status = error_set(err, errno == EINVAL ? STATUS_INVALID : STATUS_IO,
                           "%s: cannot connect: %s", endpoint, zmq_strerror(errno));
    if (status != STATUS_OK) {
        dealer_close(dealer);
        return status;
    }
    *out = dealer;
    return STATUS_OK;
}

void dealer_close(struct dealer *dealer)
{
    if (!dealer)
        return;
    disconnect(dealer);
    if (dealer->folder_fd >= 0)
        (void)close(dealer->folder_fd);
    free(dealer);
}

void *dealer_zmq(struct dealer *dealer)
{
    return dealer->zmq;
}

// ---- Sending and receiving ---------------------------------------------------------

enum status dealer_send(struct dealer *dealer, const void *bytes, size_t size)
{
    if (!dealer->zmq)
        return STATUS_FULL;
    while (zmq_send(dealer->zmq, bytes, size, ZMQ_DONTWAIT) < 0)
        if (errno != EINTR)
            return errno == EAGAIN ? STATUS_FULL : errno == ENOMEM ? STATUS_NOMEM : STATUS_IO;
    return STATUS_OK;
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

_Static_assert(sizeof(((struct wire_frame *)NULL)->part) == sizeof(zmq_msg_t), "a message fits");

static zmq_msg_t *part_of(struct wire_frame *frame)
{
    return (zmq_msg_t *)(void *)frame->part;
}

static void read_peer(struct wire_frame *frame)
{
    const char *address = zmq_msg_gets(part_of(frame), "Peer-Address");
    if (!address || !peer_read_address(&frame->peer, address))
        peer_set_host(&frame->peer, address);
}

// Counts a received message; returns false once there are too many in a second.
static bool count_frame(struct dealer *dealer, size_t size)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - dealer->since_ns >= second_ns) {
        dealer->since_ns = now_ns;
        dealer->frames = 0;
        dealer->bytes = 0;
    }
    dealer->bytes += size;
    return ++dealer->frames <= dealer->limits->frames && dealer->bytes <= dealer->limits->bytes;
}

void dealer_count_garbage(struct dealer *dealer)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - dealer->garbage_since_ns >= 10 * second_ns) {
        dealer->garbage_since_ns = now_ns;
        dealer->garbage = 0;
    }
    if (++dealer->garbage >= GARBAGE_MAX && dealer->zmq)
        close_connection(dealer, "sends messages that cannot be read");
}

// Closes the connection if the peer may not answer or sends too much.
static enum status check_message(struct dealer *dealer, zmq_msg_t *part)
{
    if (zmq_msg_more(part))
        close_connection(dealer, "sends messages of several frames");
    else if (dealer->folder_fd >= 0 && !peer_is_trusted(&dealer->trust, &dealer->last_peer))
        close_connection(dealer, "answers, but is not trusted (--collector-user)");
    else if (!count_frame(dealer, zmq_msg_size(part)))
        close_connection(dealer, "sends more in a second than a collector does");
    return dealer->zmq ? STATUS_OK : STATUS_NO_DATA;
}

enum status dealer_receive(struct dealer *dealer, struct wire_frame *frame)
{
    if (!dealer->zmq)
        return STATUS_NO_DATA;
    look(dealer); // so that what is told does not pile up
    zmq_msg_t *part = part_of(frame);
    (void)zmq_msg_init(part);
    enum status status = receive_part(dealer->zmq, part);
    if (status == STATUS_OK) {
        read_peer(frame);
        dealer->last_peer = frame->peer;
        status = check_message(dealer, part);
    }
    if (status != STATUS_OK) {
        dealer_frame_release(frame);
        return status;
    }
    frame->is_held = true;
    frame->bytes = zmq_msg_data(part);
    frame->size = zmq_msg_size(part);
    return STATUS_OK;
}

void dealer_frame_release(struct wire_frame *frame)
{
    (void)zmq_msg_close(part_of(frame));
}
