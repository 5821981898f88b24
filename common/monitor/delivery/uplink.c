#include "common/monitor/delivery/uplink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t renew_min_ns = UINT64_C(1000000000);
static const uint64_t look_ns = UINT64_C(250000000); // between two looks for an ipc folder
static const uint64_t renew_max_ns = UINT64_C(10000000000);
static const uint64_t silent_ns = UINT64_C(5000000000); // a collector answers each heartbeat
static const uint64_t calm_ns = UINT64_C(60000000000);  // without a closed connection: no back-off

struct uplink {
    struct wire_context *context;
    struct wire_socket *socket;        // NULL: connecting failed and is retried
    char trouble[ERROR_TEXT_SIZE + 2]; // why it failed or was closed, after ": "; "": unknown
    struct address address;
    struct trust_source source; // trust is decided again on reconnecting
    struct trust trust;
    unsigned attempt;     // counts the connections made
    uint64_t quiet_ns;    // time of the last valid message or reconnect
    uint64_t patience_ns; // silence after which it reconnects
    uint64_t closed_ns;   // when this side closed the connection last
    bool is_closed_told;  // it was logged
    const struct log_sink *log;
};

static const char *keep_trouble(struct uplink *uplink, const char *text)
{
    (void)snprintf(uplink->trouble, sizeof uplink->trouble, "%s%s", text[0] ? ": " : "", text);
    return uplink->trouble;
}

static enum status connect_now(struct uplink *uplink)
{
    struct error why = {0};
    wire_close(uplink->socket);
    uplink->socket = NULL;
    uplink->is_closed_told = false;
    const enum status status =
        trust_connect(&uplink->socket, uplink->context, &uplink->trust, &uplink->address,
                      ADDRESS_INGEST, uplink->attempt++, &why);
    const bool is_known = status != STATUS_OK && status != STATUS_NOT_FOUND; // no folder: no news
    (void)keep_trouble(uplink, is_known ? why.text : "");
    return status;
}

enum status uplink_open(struct uplink **out, const struct address *address,
                        const struct trust_source *trust, const struct log_sink *log,
                        struct error *err)
{
    struct uplink *uplink = calloc(1, sizeof *uplink);
    if (!uplink)
        return error_no_memory(err, "connection");
    uplink->patience_ns = renew_min_ns;
    uplink->address = *address;
    uplink->source = *trust;
    uplink->log = log;
    enum status status = trust_decide(&uplink->trust, address, &uplink->source, err);
    if (status == STATUS_OK)
        status = wire_context_new(&uplink->context, err);
    if (status != STATUS_OK) {
        uplink_close(uplink);
        return status;
    }
    if (*uplink->trust.warning)
        log_sink_write(log, INFERSTAT_LOG_WARNING, "%s", uplink->trust.warning);
    *out = uplink;
    return STATUS_OK;
}

void uplink_close(struct uplink *uplink)
{
    if (!uplink)
        return;
    wire_close(uplink->socket);
    wire_context_free(uplink->context);
    explicit_bzero(&uplink->trust, sizeof uplink->trust);
    free(uplink);
}

struct wire_socket *uplink_socket(const struct uplink *uplink)
{
    return uplink->socket;
}

void uplink_heard(struct uplink *uplink, uint64_t now_ns)
{
    uplink->quiet_ns = now_ns;
    if (now_ns - uplink->closed_ns > calm_ns)
        uplink->patience_ns = renew_min_ns;
}

// Reads the key files again; keeps the old keys if that fails or yields none.
static void reload_trust(struct uplink *uplink)
{
    struct trust trust;
    if (trust_decide(&trust, &uplink->address, &uplink->source, NULL) == STATUS_OK &&
        trust.pass_count > 0)
        uplink->trust = trust;
    explicit_bzero(&trust, sizeof trust);
}

// A connection without keys is useful until something is wrong with it: libzmq makes it again, but
// not after it ended for a breach of ZMTP, of which nothing is told but that nothing comes.
static bool is_useful(const struct uplink *uplink, uint64_t now_ns)
{
    if (uplink->trust.pass_count > 0 || !uplink->socket || now_ns - uplink->quiet_ns >= silent_ns)
        return false;
    const enum wire_handshake handshake = wire_handshake(uplink->socket);
    return handshake != WIRE_HANDSHAKE_CLOSED && handshake != WIRE_HANDSHAKE_MOVED;
}

static void note_closed(struct uplink *uplink, uint64_t now_ns)
{
    char address[ADDRESS_TEXT_SIZE];
    if (uplink->is_closed_told || !uplink->socket || !wire_trouble(uplink->socket)[0])
        return;
    uplink->is_closed_told = true;
    uplink->closed_ns = now_ns;
    log_sink_write(uplink->log, INFERSTAT_LOG_WARNING,
                   "the connection to the collector at %s was closed: %s",
                   address_text(address, &uplink->address), wire_trouble(uplink->socket));
}

bool uplink_renew(struct uplink *uplink, uint64_t now_ns)
{
    note_closed(uplink, now_ns);
    if (uplink->attempt > 0) {
        const bool has_folder = uplink->socket || !uplink->address.is_ipc;
        if (now_ns - uplink->quiet_ns < (has_folder ? uplink->patience_ns : look_ns) ||
            is_useful(uplink, now_ns))
            return false;
        uplink->patience_ns *= 2;
        if (uplink->patience_ns > renew_max_ns)
            uplink->patience_ns = renew_max_ns;
        reload_trust(uplink);
    }
    uplink->quiet_ns = now_ns;
    return connect_now(uplink) == STATUS_OK;
}

// Whether the ipc socket exists and this user may not write to it.
static bool is_not_permitted(const struct uplink *uplink)
{
    static const size_t scheme = sizeof "ipc://" - 1;
    char path[ADDRESS_TEXT_SIZE];
    return uplink->address.is_ipc &&
           faccessat(AT_FDCWD, address_endpoint(path, &uplink->address, ADDRESS_INGEST) + scheme,
                     W_OK, AT_EACCESS) != 0 &&
           errno == EACCES;
}

const char *uplink_trouble(struct uplink *uplink)
{
    if (!uplink->socket)
        return uplink->trouble;
    if (is_not_permitted(uplink))
        return ": permission denied (its user or group may send to it)";
    const enum wire_handshake handshake = wire_handshake(uplink->socket);
    const bool failed = handshake == WIRE_HANDSHAKE_REFUSED || handshake == WIRE_HANDSHAKE_BROKEN;
    if (failed && uplink->trust.pass_count == 0)
        return ": it wants keys, and there are none here (inferstat keygen, and trust its key; "
               "inferstat authorize, on the collector's side)";
    switch (handshake) {
    case WIRE_HANDSHAKE_REFUSED:
        return ": it refuses this key (it needs the role producer: inferstat authorize, on the "
               "collector's side)";
    case WIRE_HANDSHAKE_BROKEN:
        return ": it has another key than the one expected (see --server-key, known_collectors)";
    case WIRE_HANDSHAKE_CLOSED:
        return keep_trouble(uplink, wire_trouble(uplink->socket));
    case WIRE_HANDSHAKE_NONE:
    case WIRE_HANDSHAKE_DONE:
    case WIRE_HANDSHAKE_MOVED:
    case WIRE_HANDSHAKE_LOST:
        break;
    }
    return "";
}
