#include "common/wire/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"

// Ports of ingest, query, live and admin follow each other.
enum { PORT_MAX = 65535 - (ADDRESS_SERVICES - 1) };

// Names of the services, which their sockets' paths end in; the first is the
// longest.
static const char *const service_names[ADDRESS_SERVICES] = {
    [ADDRESS_INGEST] = "ingest",
    [ADDRESS_QUERY] = "query",
    [ADDRESS_LIVE] = "live",
    [ADDRESS_ADMIN] = "admin",
};

static enum status parse_ipc(struct address *out, const char *folder, struct error *err)
{
    if (folder[0] != '/')
        return error_set(err, STATUS_INVALID,
                         "ipc://%.200s: not an absolute folder (write ipc:///run/inferstat)",
                         folder);
    size_t length = strlen(folder);
    while (length > 0 && folder[length - 1] == '/')
        length--;
    if (length == 0)
        return error_set(err, STATUS_INVALID,
                         "ipc://%.200s: the folder is missing (write ipc:///run/inferstat)",
                         folder);
    size_t path = length + 1 + strlen(service_names[ADDRESS_INGEST]);
    if (path > ADDRESS_IPC_PATH_MAX)
        return error_set(err, STATUS_INVALID,
                         "ipc://%.200s: the path of a socket in it would have %zu bytes, the "
                         "limit is %d (choose a shorter folder)",
                         folder, path, ADDRESS_IPC_PATH_MAX);
    out->is_ipc = true;
    memcpy(out->place, folder, length);
    out->place[length] = '\0';
    return STATUS_OK;
}

// Splits "HOST:PORT", "[HOST]:PORT" or either without a port.  `*port` is NULL
// where there is none.
static enum status split_host(struct address *out, const char *text, const char **port,
                              struct error *err)
{
    const char *host = text;
    const char *end;
    if (text[0] == '[') {
        out->is_ipv6 = true;
        host = text + 1;
        end = strchr(host, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return error_set(err, STATUS_INVALID,
                             "tcp://%.200s: the bracket is not closed (write tcp://[::1]:5571)",
                             text);
        *port = end[1] == ':' ? end + 2 : NULL;
    } else {
        end = strchr(text, ':');
        if (end && strchr(end + 1, ':'))
            return error_set(err, STATUS_INVALID,
                             "tcp://%.200s: more than one colon (write IPv6 as tcp://[::1]:5571)",
                             text);
        *port = end ? end + 1 : NULL;
        if (!end)
            end = text + strlen(text);
    }
    size_t length = (size_t)(end - host);
    if (length == 0)
        return error_set(err, STATUS_INVALID, "tcp://%.200s: the host is missing", text);
    if (length > 255)
        return error_set(err, STATUS_INVALID, "tcp://%.60s...: the host is too long", text);
    memcpy(out->place, host, length);
    out->place[length] = '\0';
    return STATUS_OK;
}

static enum status parse_port(unsigned *out, const char *port, const char *text, struct error *err)
{
    int64_t value = 0;
    if (port[strspn(port, "0123456789")] != '\0' ||
        parse_int(&value, port, 1, PORT_MAX, "port", NULL) != STATUS_OK)
        return error_set(err, STATUS_INVALID, "tcp://%.200s: the port is not a number 1..%d", text,
                         PORT_MAX);
    *out = (unsigned)value;
    return STATUS_OK;
}

enum host_kind {
    HOST_INVALID,
    HOST_NAME,
    HOST_ADDRESS,
    HOST_LOOPBACK,
    HOST_WILDCARD,
};

// A name as DNS and /etc/hosts have them.  Anything else means something of its
// own to libzmq, or to a terminal that shows it.
static bool is_name(const char *host)
{
    const size_t size = strlen(host);
    return size > 0 && strspn(host, TEXT_NAME_CHARACTERS) == size &&
           strspn(host, "0123456789.") != size && host[0] != '-' && host[0] != '.';
}

// "ADDRESS" or "ADDRESS%SCOPE", the scope being a network interface's name.
static enum host_kind kind_of_ipv6(const char *host)
{
    char plain[INET6_ADDRSTRLEN];
    size_t size = strcspn(host, "%");
    if (size >= sizeof plain)
        return HOST_INVALID;
    memcpy(plain, host, size);
    plain[size] = '\0';
    struct in6_addr v6;
    if (inet_pton(AF_INET6, plain, &v6) != 1)
        return HOST_INVALID;
    if (host[size] == '%')
        return is_name(host + size + 1) && IN6_IS_ADDR_LINKLOCAL(&v6) ? HOST_ADDRESS : HOST_INVALID;
    if (IN6_IS_ADDR_UNSPECIFIED(&v6))
        return HOST_WILDCARD;
    return IN6_IS_ADDR_LOOPBACK(&v6) ? HOST_LOOPBACK : HOST_ADDRESS;
}

static enum host_kind kind_of_host(const struct address *address)
{
    const char *host = address->place;
    if (address->is_ipv6)
        return kind_of_ipv6(host);
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1) {
        if (v4.s_addr == htonl(INADDR_ANY))
            return HOST_WILDCARD;
        return ntohl(v4.s_addr) >> 24 == 127 ? HOST_LOOPBACK : HOST_ADDRESS;
    }
    if (strcmp(host, "*") == 0)
        return HOST_WILDCARD;
    if (strcmp(host, "localhost") == 0)
        return HOST_LOOPBACK;
    return is_name(host) ? HOST_NAME : HOST_INVALID;
}

static enum status check_host(const struct address *address, const char *text, bool listen,
                              struct error *err)
{
    enum host_kind kind = kind_of_host(address);
    if (kind == HOST_INVALID)
        return error_set(err, STATUS_INVALID, "tcp://%.200s: %s", text,
                         address->is_ipv6 ? "not an IPv6 address"
                                          : "the host is neither an address nor a name");
    if (kind == HOST_WILDCARD && !listen)
        return error_set(err, STATUS_INVALID,
                         "tcp://%.200s: a wildcard, which is for listening only (name the host)",
                         text);
    if (kind == HOST_NAME && listen)
        return error_set(err, STATUS_INVALID,
                         "tcp://%.200s: a name cannot be listened on (write one of the host's "
                         "addresses, or tcp://*:5571 for all)",
                         text);
    return STATUS_OK;
}

bool address_is_local(const struct address *address)
{
    return address->is_ipc || kind_of_host(address) == HOST_LOOPBACK;
}

static enum status parse_tcp(struct address *out, const char *text, bool listen, struct error *err)
{
    const char *port = NULL;
    enum status status = split_host(out, text, &port, err);
    out->port = ADDRESS_DEFAULT_PORT;
    if (status == STATUS_OK && port)
        status = parse_port(&out->port, port, text, err);
    if (status == STATUS_OK)
        status = check_host(out, text, listen, err);
    return status;
}

static enum status parse(struct address *out, const char *text, bool listen, struct error *err)
{
    *out = (struct address){0};
    if (strncmp(text, "ipc://", 6) == 0)
        return parse_ipc(out, text + 6, err);
    if (strncmp(text, "tcp://", 6) == 0)
        return parse_tcp(out, text + 6, listen, err);
    return error_set(err, STATUS_INVALID,
                     "%.200s: not an address (write ipc:///FOLDER or tcp://HOST:PORT)",
                     text[0] ? text : "an empty text");
}

enum status address_parse(struct address *out, const char *text, struct error *err)
{
    return parse(out, text, false, err);
}

enum status address_parse_listen(struct address *out, const char *text, struct error *err)
{
    return parse(out, text, true, err);
}

static char *tcp_text(char *text, const struct address *address, const char *host, unsigned port)
{
    (void)snprintf(text, ADDRESS_TEXT_SIZE,
                   address->is_ipv6 ? "tcp://[%.255s]:%u" : "tcp://%.255s:%u", host, port);
    return text;
}

char *address_endpoint(char *text, const struct address *address, enum address_service service)
{
    assert(service < ADDRESS_SERVICES);
    if (address->is_ipc) {
        (void)snprintf(text, ADDRESS_TEXT_SIZE, "ipc://%.*s/%s", ADDRESS_IPC_PATH_MAX,
                       address->place, service_names[service]);
        return text;
    }
    // A name can be connected to but not bound, and may mean ::1 to one side
    // and 127.0.0.1 to the other: both sides take the latter.
    const char *host = strcmp(address->place, "localhost") == 0 ? "127.0.0.1" : address->place;
    return tcp_text(text, address, host, address->port + (unsigned)service);
}

const char *address_service_name(enum address_service service)
{
    assert(service < ADDRESS_SERVICES);
    return service_names[service];
}

char *address_text(char *text, const struct address *address)
{
    if (!address->is_ipc)
        return tcp_text(text, address, address->place, address->port);
    (void)snprintf(text, ADDRESS_TEXT_SIZE, "ipc://%.*s", ADDRESS_IPC_PATH_MAX, address->place);
    return text;
}
