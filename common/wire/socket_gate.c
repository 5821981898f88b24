#include "common/wire/socket_gate.h"

#include <zmq.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/sys/thread.h"
#include "common/wire/socket_lines.h"

enum {
    POSTS_MAX = 64,
    FRAME_MAX = 256, // of a question or an event; longer ones are cut
    ZAP_FRAMES = 7,  // of a question with a key
    // Never HANDSHAKE_FAILED_PROTOCOL: libzmq 4.3.4 loses the reason on the way when it
    // reports that one, and a connection with a malformed message stays open and
    // unread.
    EVENTS = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED,
};

struct gate_post {
    struct gate *gate;
    void *socket;
    unsigned id;
    enum address_service service;
    struct wire_guard guard;
    bool is_guarded;
    struct lines *lines; // of the gate's thread, but for what any thread may call
    void *monitor;       // of the gate's thread: where libzmq's events come in
    _Atomic uint64_t strangers;
};

// What a socket's thread asks the gate's thread to do, one at a time.
enum request {
    REQUEST_NONE,
    REQUEST_WATCH,
    REQUEST_HANG_UP,
    REQUEST_LEAVE,
    REQUEST_STOP,
};

struct gate {
    void *zmq;
    int wake_fd;
    struct thread thread;
    pthread_mutex_t turn; // held by the thread whose request it is
    pthread_mutex_t lock; // of the request
    pthread_cond_t done;
    enum request request;
    struct gate_post *requested;
    bool succeeded;
    // Of the gate's thread.
    void *zap;
    struct gate_post *posts[POSTS_MAX];
    unsigned post_count;
    // Under `turn`.
    unsigned last_id;
};

// ---- Requests --------------------------------------------------------------------

static bool ask(struct gate *gate, enum request request, struct gate_post *post)
{
    static const uint64_t one = 1;
    (void)pthread_mutex_lock(&gate->turn);
    (void)pthread_mutex_lock(&gate->lock);
    gate->request = request;
    gate->requested = post;
    (void)!write(gate->wake_fd, &one, sizeof one); // cannot fail: its count is 0 or 1
    while (gate->request != REQUEST_NONE)
        (void)pthread_cond_wait(&gate->done, &gate->lock);
    bool succeeded = gate->succeeded;
    (void)pthread_mutex_unlock(&gate->lock);
    (void)pthread_mutex_unlock(&gate->turn);
    return succeeded;
}

static void answer(struct gate *gate, bool succeeded)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->request = REQUEST_NONE;
    gate->succeeded = succeeded;
    (void)pthread_cond_signal(&gate->done);
    (void)pthread_mutex_unlock(&gate->lock);
}

// ---- Frames ----------------------------------------------------------------------

struct small_frame {
    size_t size; // as it came; more than FRAME_MAX: cut
    unsigned char bytes[FRAME_MAX];
};

// Receives one message of at most `max` frames without waiting; 0: there is none.
// More frames are thrown away and counted all the same.
static unsigned receive(void *socket, struct small_frame *frames, unsigned max)
{
    unsigned count = 0;
    int more = 1;
    size_t size = sizeof more;
    while (more) {
        struct small_frame extra = {0};
        struct small_frame *frame = count < max ? &frames[count] : &extra;
        int got = zmq_recv(socket, frame->bytes, sizeof frame->bytes, ZMQ_DONTWAIT);
        if (got < 0)
            return 0;
        frame->size = (size_t)got;
        count++;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0)
            return 0;
    }
    return count;
}

static bool frame_is(const struct small_frame *frame, const char *text)
{
    return frame->size == strlen(text) && memcmp(frame->bytes, text, frame->size) == 0;
}

// ---- Who may connect ---------------------------------------------------------------

// The post whose id is the domain of the question.
static struct gate_post *find_post(struct gate *gate, const struct small_frame *domain)
{
    for (unsigned i = 0; i < gate->post_count; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%u", gate->posts[i]->id);
        if (frame_is(domain, id))
            return gate->posts[i];
    }
    return NULL;
}

static bool is_admitted(struct gate *gate, const struct small_frame *question, unsigned count)
{
    // Version, request, domain, address, identity, mechanism, key.
    if (count != ZAP_FRAMES || !frame_is(&question[0], "1.0") || !frame_is(&question[5], "CURVE") ||
        question[6].size != WIRE_KEY_SIZE)
        return false;
    struct gate_post *post = find_post(gate, &question[2]);
    if (!post || !post->is_guarded)
        return false;
    bool admitted = post->guard.admit(post->guard.context, post->service, question[6].bytes);
    if (!admitted)
        atomic_fetch_add(&post->strangers, 1);
    return admitted;
}

static void send_part(void *socket, const void *bytes, size_t size, int more)
{
    (void)zmq_send(socket, bytes, size, ZMQ_DONTWAIT | more);
}

// Answers one question, if there is one.
static bool answer_zap(struct gate *gate)
{
    struct small_frame question[ZAP_FRAMES];
    unsigned count = receive(gate->zap, question, ZAP_FRAMES);
    if (count == 0)
        return false;
    bool admitted = is_admitted(gate, question, count);
    char key[WIRE_KEY_TEXT_SIZE] = "";
    if (admitted)
        (void)wire_key_text(key, question[6].bytes);
    size_t request = count > 1 && question[1].size <= FRAME_MAX ? question[1].size : 0;
    send_part(gate->zap, "1.0", 3, ZMQ_SNDMORE);
    send_part(gate->zap, question[1].bytes, request, ZMQ_SNDMORE);
    send_part(gate->zap, admitted ? "200" : "400", 3, ZMQ_SNDMORE);
    send_part(gate->zap, NULL, 0, ZMQ_SNDMORE);
    send_part(gate->zap, key, strlen(key), ZMQ_SNDMORE); // the user id
    send_part(gate->zap, NULL, 0, 0);
    return true;
}

_Static_assert((int)LINES_KEY_SIZE == (int)WIRE_KEY_SIZE, "both are CURVE keys");

// True if a connection that sent messages with this key stays open when the others are closed.
static bool stays(void *context, const unsigned char key[WIRE_KEY_SIZE])
{
    const struct gate_post *post = context;
    return post->is_guarded && post->guard.admit(post->guard.context, post->service, key);
}

// ---- Connections -------------------------------------------------------------------

// Takes one event of the post's socket, if there is one.
static bool read_event(struct gate_post *post)
{
    struct small_frame frames[2];
    uint16_t event;
    int32_t value;
    unsigned count = receive(post->monitor, frames, 2);
    if (count == 0)
        return false;
    if (frames[0].size != sizeof event + sizeof value)
        return true;
    memcpy(&event, frames[0].bytes, sizeof event);
    memcpy(&value, frames[0].bytes + sizeof event, sizeof value);
    if (event == ZMQ_EVENT_ACCEPTED)
        lines_opened(post->lines, value);
    else
        lines_closed(post->lines, value);
    return true;
}

static void read_events(struct gate_post *post)
{
    while (read_event(post)) {
        // The next one follows.
    }
}

// ---- The thread --------------------------------------------------------------------

static bool watch(struct gate *gate, struct gate_post *post)
{
    char place[48];
    int unlimited = 0; // or libzmq's thread would wait for this one
    if (gate->post_count == POSTS_MAX)
        return false;
    post->monitor = zmq_socket(gate->zmq, ZMQ_PAIR);
    (void)snprintf(place, sizeof place, "inproc://inferstat-post-%u", post->id);
    if (!post->monitor ||
        zmq_setsockopt(post->monitor, ZMQ_RCVHWM, &unlimited, sizeof unlimited) != 0 ||
        zmq_connect(post->monitor, place) != 0) {
        if (post->monitor)
            (void)zmq_close(post->monitor);
        post->monitor = NULL;
        return false;
    }
    gate->posts[gate->post_count++] = post;
    return true;
}

static void leave(struct gate *gate, struct gate_post *post)
{
    unsigned at = 0;
    while (at < gate->post_count && gate->posts[at] != post)
        at++;
    if (at == gate->post_count)
        return;
    (void)zmq_close(post->monitor);
    post->monitor = NULL;
    gate->posts[at] = gate->posts[--gate->post_count];
}

// Does what is asked for; false when the thread is to end.
static bool serve_request(struct gate *gate)
{
    uint64_t woken;
    (void)!read(gate->wake_fd, &woken, sizeof woken);
    (void)pthread_mutex_lock(&gate->lock);
    enum request request = gate->request;
    struct gate_post *post = gate->requested;
    (void)pthread_mutex_unlock(&gate->lock);
    bool succeeded = true;
    switch (request) {
    case REQUEST_WATCH:
        succeeded = watch(gate, post);
        break;
    case REQUEST_HANG_UP:
        read_events(post); // whoever was admitted is among them
        lines_hang_up(post->lines, stays, post);
        break;
    case REQUEST_LEAVE:
        leave(gate, post);
        break;
    case REQUEST_STOP:
    case REQUEST_NONE:
        break;
    }
    if (request != REQUEST_NONE)
        answer(gate, succeeded);
    return request != REQUEST_STOP;
}

static void *run(void *context)
{
    struct gate *gate = context;
    bool running = true;
    while (running) {
        zmq_pollitem_t items[2 + POSTS_MAX] = {
            {.socket = gate->zap, .events = ZMQ_POLLIN},
            {.fd = gate->wake_fd, .events = ZMQ_POLLIN},
        };
        for (unsigned i = 0; i < gate->post_count; i++)
            items[2 + i] =
                (zmq_pollitem_t){.socket = gate->posts[i]->monitor, .events = ZMQ_POLLIN};
        if (zmq_poll(items, (int)(2 + gate->post_count), -1) < 0)
            continue; // a signal, though none is for this thread
        // Before the request, which may change the posts.
        for (unsigned i = 0; i < gate->post_count; i++)
            if (items[2 + i].revents)
                read_events(gate->posts[i]);
        while (answer_zap(gate)) {
            // The next question follows.
        }
        if (items[1].revents)
            running = serve_request(gate);
    }
    (void)zmq_close(gate->zap);
    return NULL;
}

// ---- Opening and closing -----------------------------------------------------------

enum status gate_new(struct gate **out, void *zmq, struct error *err)
{
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return error_no_memory(err, "sockets");
    gate->zmq = zmq;
    (void)pthread_mutex_init(&gate->turn, NULL);
    (void)pthread_mutex_init(&gate->lock, NULL);
    (void)pthread_cond_init(&gate->done, NULL);
    gate->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    // The socket goes over to the thread, which begins after it.
    int linger = 0;
    gate->zap = zmq_socket(zmq, ZMQ_REP);
    enum status status = STATUS_OK;
    if (gate->wake_fd < 0 || !gate->zap ||
        zmq_setsockopt(gate->zap, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_bind(gate->zap, "inproc://zeromq.zap.01") != 0)
        status = error_set(err, STATUS_IO, "sockets: cannot listen to requests of libzmq");
    if (status == STATUS_OK)
        status = thread_start(&gate->thread, "sockets", run, gate, err);
    if (status != STATUS_OK) {
        gate_free(gate);
        return status;
    }
    *out = gate;
    return STATUS_OK;
}

void gate_free(struct gate *gate)
{
    if (!gate)
        return;
    if (gate->thread.running) {
        (void)ask(gate, REQUEST_STOP, NULL);
        thread_join(&gate->thread);
    } else if (gate->zap) {
        (void)zmq_close(gate->zap);
    }
    if (gate->wake_fd >= 0)
        (void)close(gate->wake_fd);
    (void)pthread_cond_destroy(&gate->done);
    (void)pthread_mutex_destroy(&gate->lock);
    (void)pthread_mutex_destroy(&gate->turn);
    free(gate);
}

// Makes the socket a CURVE server whose ZAP domain is the post.
static bool set_guard(const struct gate_post *post)
{
    int yes = 1;
    char domain[16];
    int size = snprintf(domain, sizeof domain, "%u", post->id);
    return zmq_setsockopt(post->socket, ZMQ_CURVE_SERVER, &yes, sizeof yes) == 0 &&
           zmq_setsockopt(post->socket, ZMQ_CURVE_SECRETKEY, post->guard.keys.secret_key,
                          WIRE_KEY_SIZE) == 0 &&
           zmq_setsockopt(post->socket, ZMQ_ZAP_DOMAIN, domain, (size_t)size) == 0;
}

static unsigned next_id(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->turn);
    unsigned id = ++gate->last_id;
    (void)pthread_mutex_unlock(&gate->turn);
    return id;
}

enum status gate_open(struct gate_post **out, struct gate *gate, void *socket, const char *endpoint,
                      const struct wire_listen *listen, struct error *err)
{
    struct gate_post *post = calloc(1, sizeof *post);
    if (!post)
        return error_no_memory(err, endpoint);
    post->gate = gate;
    post->id = next_id(gate);
    post->service = listen->service;
    post->is_guarded = listen->guard && strncmp(endpoint, "tcp://", 6) == 0;
    if (post->is_guarded)
        post->guard = *listen->guard;
    if (lines_new(&post->lines, endpoint, listen->connections_max) != STATUS_OK) {
        gate_close(post);
        return error_no_memory(err, endpoint);
    }
    char place[48];
    (void)snprintf(place, sizeof place, "inproc://inferstat-post-%u", post->id);
    post->socket = socket;
    if ((post->is_guarded && !set_guard(post)) || zmq_socket_monitor(socket, place, EVENTS) != 0 ||
        !ask(gate, REQUEST_WATCH, post)) {
        gate_close(post);
        return error_set(err, STATUS_IO, "%s: its connections cannot be guarded: %s", endpoint,
                         zmq_strerror(errno));
    }
    *out = post;
    return STATUS_OK;
}

void gate_close(struct gate_post *post)
{
    if (!post)
        return;
    // In this order: libzmq's thread blocks on an event that no reader consumes.
    if (post->socket)
        (void)zmq_socket_monitor(post->socket, NULL, 0);
    (void)ask(post->gate, REQUEST_LEAVE, post);
    lines_free(post->lines);
    explicit_bzero(&post->guard, sizeof post->guard);
    free(post);
}

void gate_heard(struct gate_post *post, int fd, const unsigned char *key)
{
    lines_heard(post->lines, fd, key);
}

void gate_hang_up(struct gate_post *post)
{
    (void)ask(post->gate, REQUEST_HANG_UP, post);
}

void gate_count(const struct gate_post *post, struct wire_counters *out)
{
    struct lines_counters lines;
    lines_count(post->lines, &lines); // first: strangers are counted before their connections end
    const uint64_t strangers = atomic_load(&post->strangers);
    *out = (struct wire_counters){.connections = lines.open,
                                  .over_limit = lines.over_limit,
                                  .strangers = strangers,
                                  .handshakes =
                                      lines.unheard > strangers ? lines.unheard - strangers : 0};
}

bool gate_is_guarded(const struct gate_post *post)
{
    return post->is_guarded;
}
