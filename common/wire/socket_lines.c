#include "common/wire/socket_lines.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    FDS_MAX = 65536, // descriptors beyond are shut down at once
    WORD_BITS = 64,
};

struct lines {
    unsigned max;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; // ipc; else empty
    uint16_t port;                                          // tcp
    uint64_t opened;                                        // in all
    // Of those open now, shut down for the limit, ended without a message.
    _Atomic uint64_t open, over_limit, unheard;
    int highest;             // descriptor so far
    uint64_t since[FDS_MAX]; // `opened` when it came; 0: not open
    // Bit of a descriptor: it was heard.  Written by the socket's thread and read by
    // the gate's: a bit that is seen late, or is meant for a connection before this
    // one, costs at worst the wrong one of two connections.
    _Atomic uint64_t heard[FDS_MAX / WORD_BITS];
    unsigned char keys[FDS_MAX][LINES_KEY_SIZE]; // of the last message's sender
};

enum status lines_new(struct lines **out, const char *endpoint, unsigned max)
{
    // Large, zeroed and mostly never touched: the system gives it page by page.
    struct lines *lines = calloc(1, sizeof *lines);
    if (!lines)
        return STATUS_NOMEM;
    lines->max = max;
    if (strncmp(endpoint, "ipc://", 6) == 0) {
        size_t size = strnlen(endpoint + 6, sizeof lines->path - 1);
        memcpy(lines->path, endpoint + 6, size);
    } else {
        const char *port = strrchr(endpoint, ':');
        lines->port = port ? (uint16_t)strtoul(port + 1, NULL, 10) : 0;
    }
    *out = lines;
    return STATUS_OK;
}

void lines_free(struct lines *lines)
{
    free(lines);
}

// Whether the descriptor is a connection of this socket.  Between the last look at
// libzmq's events and now it may have been closed and given to something else.
static bool is_ours(const struct lines *lines, int fd)
{
    int listening = 1;
    socklen_t size = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening)
        return false;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } name = {0};
    size = sizeof name;
    if (getsockname(fd, &name.any, &size) != 0)
        return false;
    if (name.any.sa_family == AF_INET)
        return ntohs(name.v4.sin_port) == lines->port;
    if (name.any.sa_family == AF_INET6)
        return ntohs(name.v6.sin6_port) == lines->port;
    return name.any.sa_family == AF_UNIX && lines->path[0] &&
           strncmp(name.local.sun_path, lines->path, sizeof lines->path) == 0;
}

// Not when it opens: by then it may have been heard.
static void forget(struct lines *lines, int fd)
{
    if (lines->since[fd])
        lines->open--;
    lines->since[fd] = 0;
    (void)atomic_fetch_and_explicit(&lines->heard[fd / WORD_BITS], ~(UINT64_C(1) << fd % WORD_BITS),
                                    memory_order_relaxed);
}

// Ends a connection; false where there was none any more.
static bool end(struct lines *lines, int fd)
{
    bool ours = is_ours(lines, fd);
    if (ours)
        (void)shutdown(fd, SHUT_RDWR);
    forget(lines, fd);
    return ours;
}

static bool was_heard(const struct lines *lines, int fd)
{
    return atomic_load_explicit(&lines->heard[fd / WORD_BITS], memory_order_relaxed) >>
               fd % WORD_BITS &
           1;
}

// The oldest that has not been heard yet, or -1.
static int oldest_unheard(const struct lines *lines)
{
    int oldest = -1;
    for (int fd = 0; fd <= lines->highest; fd++)
        if (lines->since[fd] && !was_heard(lines, fd) &&
            (oldest < 0 || lines->since[fd] < lines->since[oldest]))
            oldest = fd;
    return oldest;
}

// Ends connections until no more than the limit are left, the newest among them.
static void make_room(struct lines *lines, int newest)
{
    while (lines->max && lines->open > lines->max) {
        int fd = oldest_unheard(lines);
        if (end(lines, fd < 0 ? newest : fd))
            lines->over_limit++;
    }
}

void lines_opened(struct lines *lines, int fd)
{
    if (fd < 0)
        return;
    if (fd >= FDS_MAX) {
        if (is_ours(lines, fd))
            (void)shutdown(fd, SHUT_RDWR);
        lines->over_limit++;
        return;
    }
    if (lines->since[fd])
        forget(lines, fd); // libzmq does not report every end: it closed that one
    lines->since[fd] = ++lines->opened;
    lines->open++;
    if (fd > lines->highest)
        lines->highest = fd;
    make_room(lines, fd);
}

void lines_closed(struct lines *lines, int fd)
{
    if (fd < 0 || fd >= FDS_MAX)
        return;
    if (lines->since[fd] && !was_heard(lines, fd))
        lines->unheard++;
    forget(lines, fd);
}

void lines_heard(struct lines *lines, int fd, const unsigned char *key)
{
    if (fd < 0 || fd >= FDS_MAX)
        return;
    if (key)
        memcpy(lines->keys[fd], key, LINES_KEY_SIZE);
    // Looked at first: only a connection's first message writes what both read.
    if (!was_heard(lines, fd))
        (void)atomic_fetch_or_explicit(&lines->heard[fd / WORD_BITS], UINT64_C(1) << fd % WORD_BITS,
                                       memory_order_relaxed);
}

void lines_hang_up(struct lines *lines,
                   bool (*stays)(void *context, const unsigned char key[LINES_KEY_SIZE]),
                   void *context)
{
    for (int fd = 0; fd <= lines->highest; fd++)
        if (lines->since[fd] && !(was_heard(lines, fd) && stays(context, lines->keys[fd])))
            (void)end(lines, fd);
}

void lines_count(const struct lines *lines, struct lines_counters *out)
{
    *out = (struct lines_counters){.open = atomic_load(&lines->open),
                                   .over_limit = atomic_load(&lines->over_limit),
                                   .unheard = atomic_load(&lines->unheard)};
}
