#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/wire/listener/listener_inside.h"

enum { BACKLOG = 512 };

union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage largest;
};

static enum status bind_failed(const char *endpoint, struct error *err)
{
    const int fault = errno;
    const enum status status = fault == EADDRINUSE                        ? STATUS_BUSY
                               : fault == EACCES || fault == EPERM        ? STATUS_DENIED
                               : fault == ENOENT || fault == ENOTDIR      ? STATUS_NOT_FOUND
                               : fault == EINVAL || fault == ENAMETOOLONG ? STATUS_INVALID
                                                                          : STATUS_IO;
    return error_set(err, status, "%s: cannot listen there: %s", endpoint, strerror(fault));
}

// ---- ipc ---------------------------------------------------------------------------

// The socket file of a dead program may be replaced; nothing else may.
static enum status check_free(const char *endpoint, const union name *name, struct error *err)
{
    struct stat about;
    if (lstat(name->local.sun_path, &about) != 0)
        return STATUS_OK; // nothing there, or bind will say what is wrong
    if (!S_ISSOCK(about.st_mode))
        return error_set(err, STATUS_INVALID, "%s: something other than a socket is there",
                         endpoint);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return bind_failed(endpoint, err);
    bool alive = connect(fd, &name->any, sizeof name->local) == 0 || errno == EAGAIN;
    (void)close(fd);
    if (alive)
        return error_set(err, STATUS_BUSY, "%s: another program listens there", endpoint);
    (void)unlink(name->local.sun_path);
    return STATUS_OK;
}

// Remembers the file that was just made, for port_remove_file.
static enum status remember_file(struct port *port, const char *endpoint, struct error *err)
{
    struct stat about;
    port->file = strdup(endpoint + 6);
    if (!port->file)
        return error_no_memory(err, endpoint);
    if (lstat(port->file, &about) != 0)
        return error_set(err, STATUS_IO, "%s: its file is not there: %s", endpoint,
                         strerror(errno));
    port->file_device = about.st_dev;
    port->file_inode = about.st_ino;
    return STATUS_OK;
}

static enum status bind_ipc(struct port *port, const char *endpoint, bool owner_only,
                            struct error *err)
{
    const char *path = endpoint + 6;
    union name name = {.local = {.sun_family = AF_UNIX}};
    if (strlen(path) >= sizeof name.local.sun_path)
        return error_set(err, STATUS_INVALID, "%s: a socket's path has at most %zu bytes", endpoint,
                         sizeof name.local.sun_path - 1);
    memcpy(name.local.sun_path, path, strlen(path));
    enum status status = check_free(endpoint, &name, err);
    if (status != STATUS_OK)
        return status;
    port->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t before = umask(owner_only ? 0177 : 0117);
    bool done = port->fd >= 0 && bind(port->fd, &name.any, sizeof name.local) == 0;
    if (!done)
        status = bind_failed(endpoint, err);
    (void)umask(before);
    if (status == STATUS_OK)
        status = remember_file(port, endpoint, err);
    return status;
}

void port_remove_file(const struct port *port)
{
    struct stat about;
    if (port->file && lstat(port->file, &about) == 0 && S_ISSOCK(about.st_mode) &&
        about.st_dev == port->file_device && about.st_ino == port->file_inode)
        (void)unlink(port->file);
}

// ---- TCP ---------------------------------------------------------------------------

// Finds the address that "HOST:PORT", "[HOST]:PORT" or "*:PORT" means.
static enum status find_address(struct addrinfo **out, const char *endpoint, struct error *err)
{
    char host[ADDRESS_TEXT_SIZE];
    const char *text = endpoint + 6, *colon = strrchr(text, ':');
    const size_t size = colon ? (size_t)(colon - text) : 0;
    const bool has_brackets = size > 2 && text[0] == '[' && text[size - 1] == ']';
    if (size == 0 || size >= sizeof host)
        return error_set(err, STATUS_INVALID, "%.200s: not an address to listen on", endpoint);
    (void)snprintf(host, sizeof host, "%.*s", (int)(has_brackets ? size - 2 : size),
                   has_brackets ? text + 1 : text);
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_family = has_brackets ? AF_INET6 : AF_INET,
                                   .ai_socktype = SOCK_STREAM};
    const int fault = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, colon + 1, &hints, out);
    if (fault != 0)
        return error_set(err, STATUS_INVALID, "%.200s: not an address to listen on: %s", endpoint,
                         gai_strerror(fault));
    return STATUS_OK;
}

static enum status bind_tcp(struct port *port, const char *endpoint, struct error *err)
{
    static const int yes = 1, no = 0;
    struct addrinfo *found = NULL;
    enum status status = find_address(&found, endpoint, err);
    if (status != STATUS_OK)
        return status;
    port->fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->fd >= 0 && found->ai_family == AF_INET6)
        (void)setsockopt(port->fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (port->fd < 0 || setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(port->fd, found->ai_addr, found->ai_addrlen) != 0)
        status = bind_failed(endpoint, err);
    freeaddrinfo(found);
    return status;
}

enum status port_bind(struct port *port, const char *endpoint, bool owner_only, struct error *err)
{
    enum status status = strncmp(endpoint, "ipc://", 6) == 0
                             ? bind_ipc(port, endpoint, owner_only, err)
                         : strncmp(endpoint, "tcp://", 6) == 0
                             ? bind_tcp(port, endpoint, err)
                             : error_set(err, STATUS_INVALID, "%.200s: not an endpoint", endpoint);
    if (status == STATUS_OK && listen(port->fd, BACKLOG) != 0)
        status = bind_failed(endpoint, err);
    return status;
}

// ---- Accepted connections --------------------------------------------------------------

static void set_tcp_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                         sizeof options[i].value);
}

int port_accept(const struct port *port, struct wire_peer *peer)
{
    union name name = {0};
    socklen_t size = sizeof name;
    char text[INET6_ADDRSTRLEN] = "";
    *peer = (struct wire_peer){.kind = PEER_LOOPBACK};
    const int fd = accept4(port->fd, &name.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && port->file) {
        struct ucred who;
        size = sizeof who;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0) {
            peer->kind = PEER_USER;
            peer->uid = who.uid;
            peer->pid = who.pid;
        }
    } else if (fd >= 0) {
        set_tcp_options(fd);
        if (name.any.sa_family == AF_INET)
            (void)inet_ntop(AF_INET, &name.v4.sin_addr, text, sizeof text);
        else if (IN6_IS_ADDR_V4MAPPED(&name.v6.sin6_addr))
            (void)inet_ntop(AF_INET, name.v6.sin6_addr.s6_addr + 12, text, sizeof text);
        else
            (void)inet_ntop(AF_INET6, &name.v6.sin6_addr, text, sizeof text);
        peer_set_host(peer, text);
    }
    return fd;
}
