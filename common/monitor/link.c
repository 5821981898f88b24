#include "common/monitor/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t renew_min_ns = UINT64_C(1000000000);
static const uint64_t renew_max_ns = UINT64_C(10000000000);

struct link {
    struct wire_context *context;
    struct wire_socket *socket; // NULL: could not be made, and will be tried again
    char endpoint[ADDRESS_TEXT_SIZE];
    struct trust trust;
    unsigned attempt;     // counts the connections made
    uint64_t quiet_ns;    // since when nothing was heard
    uint64_t patience_ns; // how long that may last
};

static enum status connect_now(struct link *link, struct error *err)
{
    wire_close(link->socket);
    link->socket = NULL;
    return wire_connect(&link->socket, link->context, link->endpoint,
                        trust_pass(&link->trust, link->attempt++), err);
}

enum status link_open(struct link **out, const struct address *address,
                      const struct trust_options *trust, uint64_t now_ns, struct error *err)
{
    struct link *link = calloc(1, sizeof *link);
    if (!link)
        return error_set(err, STATUS_NOMEM, "connection: out of memory");
    link->quiet_ns = now_ns;
    link->patience_ns = renew_min_ns;
    (void)address_endpoint(link->endpoint, address, ADDRESS_INGEST);
    enum status status = trust_resolve(&link->trust, address, trust, err);
    if (status == STATUS_OK)
        status = wire_context_new(&link->context, err);
    if (status == STATUS_OK)
        status = connect_now(link, err);
    if (status != STATUS_OK) {
        link_close(link);
        return status;
    }
    *out = link;
    return STATUS_OK;
}

void link_close(struct link *link)
{
    if (!link)
        return;
    wire_close(link->socket);
    wire_context_free(link->context);
    explicit_bzero(&link->trust, sizeof link->trust);
    free(link);
}

const char *link_warning(const struct link *link)
{
    return link->trust.warning;
}

enum status link_send(struct link *link, const void *bytes, size_t size)
{
    return link->socket ? wire_send(link->socket, NULL, bytes, size) : STATUS_FULL;
}

enum status link_receive(struct link *link, struct wire_frame *frame)
{
    return link->socket ? wire_receive(link->socket, frame) : STATUS_NO_DATA;
}

void link_wait(struct link *link, int wake_fd, int64_t timeout_ns)
{
    uint32_t ready;
    wire_wait(&link->socket, 1, wake_fd, timeout_ns, &ready);
}

void link_heard(struct link *link, uint64_t now_ns)
{
    link->quiet_ns = now_ns;
    link->patience_ns = renew_min_ns;
}

bool link_renew(struct link *link, uint64_t now_ns)
{
    if (link->trust.pass_count == 0 || now_ns - link->quiet_ns < link->patience_ns)
        return false;
    link->quiet_ns = now_ns;
    link->patience_ns *= 2;
    if (link->patience_ns > renew_max_ns)
        link->patience_ns = renew_max_ns;
    return connect_now(link, NULL) == STATUS_OK; // else later
}

// Whether there is a socket that this user may not write to.
static bool is_not_permitted(const struct link *link)
{
    static const char scheme[] = "ipc://";
    const size_t size = sizeof scheme - 1;
    return strncmp(link->endpoint, scheme, size) == 0 &&
           faccessat(AT_FDCWD, link->endpoint + size, W_OK, AT_EACCESS) != 0 && errno == EACCES;
}

const char *link_trouble(struct link *link)
{
    if (is_not_permitted(link))
        return ": permission denied (its user or group may send to it)";
    switch (link->socket ? wire_handshake(link->socket) : WIRE_HANDSHAKE_NONE) {
    case WIRE_HANDSHAKE_REFUSED:
        return ": it does not admit this key (inferstat authorize, on the collector's side)";
    case WIRE_HANDSHAKE_BROKEN:
        return ": it has another key than the one expected (see --server-key, known_collectors)";
    case WIRE_HANDSHAKE_NONE:
    case WIRE_HANDSHAKE_DONE:
        break;
    }
    return "";
}
