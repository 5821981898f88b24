#include "server/http/http_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

enum {
    BACKLOG = 64,
    SILENCE_SECONDS = 10,
    REQUEST_BYTES = 16 * 1024, // memory of a connection: its request's line and headers
    // Of libmicrohttpd, which stops to accept at its limit: room for connections that end.
    ACCEPTED_MAX = 3 * HTTP_SERVER_CONNECTIONS,
};

struct connection {
    uint64_t number; // of connections since the start; 0: free
    int fd;
    bool is_ending;
    unsigned char address[16]; // of the client; IPv4: 4 bytes, then zeros
};

struct http_server {
    struct MHD_Daemon *daemon;
    http_handler *handler;
    void *context;
    char *token; // NULL: none is required
    // Of libmicrohttpd's thread.
    struct connection connections[ACCEPTED_MAX];
    uint64_t accepted;
};

// ---- Listening ----------------------------------------------------------------------------

static enum status fail_to_listen(const struct http_server_settings *settings, const char *why,
                                  enum status status, struct error *err)
{
    return error_set(err, status, "http%s://%.200s:%u: cannot listen there: %s",
                     settings->certificate ? "s" : "", settings->host, settings->port, why);
}

// Opens a socket at one of the addresses found; -1: none could be, and errno says why.
static int open_socket(const struct addrinfo *found, int family, bool is_any)
{
    static const int yes = 1, no = 0;
    int fd = -1;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        if (at->ai_family != family)
            continue;
        fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (family == AF_INET6)
            (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_any ? &no : &yes, sizeof yes);
        if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
            continue;
        const int reason = errno;
        (void)close(fd);
        errno = reason;
        fd = -1;
    }
    return fd;
}

// Opens a listening socket.  That of "*" is for IPv6 and IPv4 if there is IPv6, else for IPv4.
static enum status listen_at(int *out, const struct http_server_settings *settings,
                             struct error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    const bool is_any = strcmp(settings->host, "*") == 0;
    const char *host = strcmp(settings->host, "localhost") == 0 ? "127.0.0.1" : settings->host;
    struct addrinfo *found = NULL;
    char port[16];
    (void)snprintf(port, sizeof port, "%u", settings->port);
    const int fault = getaddrinfo(is_any ? NULL : host, port, &hints, &found);
    if (fault != 0)
        return fail_to_listen(settings, gai_strerror(fault), STATUS_INVALID, err);
    errno = EAFNOSUPPORT;
    *out = open_socket(found, AF_INET6, is_any);
    if (*out < 0)
        *out = open_socket(found, AF_INET, is_any);
    const int reason = errno;
    freeaddrinfo(found);
    if (*out >= 0)
        return STATUS_OK;
    return fail_to_listen(settings, strerror(reason),
                          reason == EADDRINUSE                  ? STATUS_BUSY
                          : reason == EACCES || reason == EPERM ? STATUS_DENIED
                                                                : STATUS_IO,
                          err);
}

// ---- Connections -----------------------------------------------------------------------------

static void copy_address(unsigned char out[16], const struct sockaddr *from)
{
    if (from->sa_family == AF_INET6)
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    else if (from->sa_family == AF_INET)
        memcpy(out, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
}

// If too many are open, ends the oldest connection of the address that has the most.
static void make_room(struct http_server *server)
{
    struct connection *at = server->connections, *victim = NULL;
    unsigned open = 0, most = 0;
    for (unsigned i = 0; i < ACCEPTED_MAX; i++) {
        unsigned same = 0;
        if (at[i].number == 0 || at[i].is_ending)
            continue;
        for (unsigned k = 0; k < ACCEPTED_MAX; k++)
            same += at[k].number != 0 && !at[k].is_ending &&
                    memcmp(at[k].address, at[i].address, sizeof at[i].address) == 0;
        if (same > most || (same == most && at[i].number < victim->number)) {
            victim = &at[i];
            most = same;
        }
        open++;
    }
    if (open <= HTTP_SERVER_CONNECTIONS)
        return;
    victim->is_ending = true; // libmicrohttpd sees its end and closes it
    (void)shutdown(victim->fd, SHUT_RDWR);
}

static void on_connection(void *context, struct MHD_Connection *of, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *server = context;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*slot)
            ((struct connection *)*slot)->number = 0;
        return;
    }
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(of, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct connection *place = server->connections;
    while (place->number != 0) // there are as many as libmicrohttpd accepts
        place++;
    *place = (struct connection){.number = ++server->accepted, .fd = fd->connect_fd};
    copy_address(place->address, address->client_addr);
    *slot = place;
    make_room(server);
}

// ---- Requests ----------------------------------------------------------------------------------

// Compares without telling by its time how much of the token is right.
static bool is_token(const char *token, const char *given)
{
    const size_t size = strlen(token), given_size = strlen(given);
    unsigned char differs = size != given_size;
    for (size_t i = 0; i < size; i++)
        differs |= (unsigned char)(token[i] ^ (i < given_size ? given[i] : '\0'));
    return differs == 0;
}

static bool is_authorized(const struct http_server *server, struct MHD_Connection *of)
{
    static const char scheme[] = "Bearer ";
    const char *given =
        MHD_lookup_connection_value(of, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    if (!server->token)
        return true;
    if (!given || strncasecmp(given, scheme, sizeof scheme - 1) != 0)
        return false;
    return is_token(server->token, given + sizeof scheme - 1);
}

static enum MHD_Result send_response(struct MHD_Connection *to, const struct http_response *answer)
{
    static char nothing[1];
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->size, answer->body ? answer->body : nothing,
        answer->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) {
        free(answer->body);
        return MHD_NO; // closes the connection
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (answer->type)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    if (answer->code == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
    if (answer->code == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    const enum MHD_Result result = MHD_queue_response(to, answer->code, response);
    MHD_destroy_response(response); // the connection has its own reference
    return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *of, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **state)
{
    (void)version, (void)data, (void)state;
    *data_size = 0; // a body is not read
    struct http_server *server = context;
    struct http_response response = {.code = MHD_HTTP_INTERNAL_SERVER_ERROR};
    const char *accept = MHD_lookup_connection_value(of, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0) {
        response.code = MHD_HTTP_METHOD_NOT_ALLOWED;
    } else {
        const struct http_request request = {.path = path,
                                             .accept = accept ? accept : "",
                                             .is_authorized = is_authorized(server, of)};
        server->handler(server->context, &request, &response);
    }
    return send_response(of, &response);
}

// ---- Start and end --------------------------------------------------------------------------

// Consumes `fd`, also on failure; -1: listens nowhere.
static enum status start_daemon(struct http_server *server, int fd,
                                const struct http_server_settings *settings, struct error *err)
{
    const bool is_tls = settings->certificate != NULL;
    unsigned flags = MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC;
    if (is_tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        (void)close(fd);
        return fail_to_listen(settings, "this libmicrohttpd has no TLS", STATUS_UNSUPPORTED, err);
    }
    if (is_tls)
        flags |= MHD_USE_TLS;
    if (fd < 0)
        flags |= MHD_USE_NO_LISTEN_SOCKET;
    server->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, on_request, server,
                         fd < 0 ? MHD_OPTION_CONNECTION_LIMIT : MHD_OPTION_LISTEN_SOCKET,
                         fd < 0 ? (int)ACCEPTED_MAX : fd, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)ACCEPTED_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                         (unsigned)SILENCE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)REQUEST_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
                         // Without TLS the list of options ends here.
                         is_tls ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, settings->key,
                         MHD_OPTION_HTTPS_MEM_CERT, settings->certificate, MHD_OPTION_END);
    if (server->daemon)
        return STATUS_OK; // where it fails, libmicrohttpd has closed the socket, too
    return is_tls ? fail_to_listen(settings, "the certificate or its key cannot be used",
                                   STATUS_INVALID, err)
                  : fail_to_listen(settings, "cannot start the server", STATUS_IO, err);
}

// Consumes `fd`, also on failure.
static enum status start_at(struct http_server **out, int fd,
                            const struct http_server_settings *settings, struct error *err)
{
    struct http_server *server = calloc(1, sizeof *server);
    enum status status = STATUS_OK;
    if (!server || (settings->token && !(server->token = strdup(settings->token)))) {
        (void)close(fd);
        status = error_no_memory(err, "http server");
    } else {
        server->handler = settings->handler;
        server->context = settings->context;
        status = start_daemon(server, fd, settings, err);
    }
    if (status == STATUS_OK)
        *out = server;
    else
        http_server_stop(server);
    return status;
}

enum status http_server_check(const struct http_server_settings *settings, struct error *err)
{
    struct http_server *server = NULL;
    const enum status status = start_at(&server, -1, settings, err);
    http_server_stop(server);
    return status;
}

enum status http_server_start(struct http_server **out, const struct http_server_settings *settings,
                              struct error *err)
{
    int fd = -1;
    const enum status status = listen_at(&fd, settings, err);
    return status == STATUS_OK ? start_at(out, fd, settings, err) : status;
}

enum status http_server_restart(struct http_server **server,
                                const struct http_server_settings *settings, struct error *err)
{
    struct http_server *before = *server;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(before->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    const int fd = fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return fail_to_listen(settings, strerror(errno), STATUS_IO, err);
    const enum status status = start_at(server, fd, settings, err);
    if (status == STATUS_OK)
        http_server_stop(before);
    return status;
}

void http_server_stop(struct http_server *server)
{
    if (!server)
        return;
    if (server->daemon)
        MHD_stop_daemon(server->daemon); // closes the listening socket, too
    if (server->token)
        explicit_bzero(server->token, strlen(server->token));
    free(server->token);
    free(server);
}
