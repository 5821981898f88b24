// Collector addresses: parses and validates an address, and derives from it the ZeroMQ endpoint of
// each service of the collector.  No I/O: opens no sockets and resolves no names.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

// A host that vanished is noticed by TCP: in silence after 10 s and three probes 5 s apart, else
// when what was sent stays unacknowledged.
enum {
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_PROBES = 3,
    UNACKNOWLEDGED_MS = 10000,
};

// ADDRESS_IPC_PATH_MAX: most bytes of the path of a Unix socket (sun_path).
enum { ADDRESS_TEXT_SIZE = 512, ADDRESS_DEFAULT_PORT = 5571, ADDRESS_IPC_PATH_MAX = 107 };

enum address_service {
    ADDRESS_INGEST,  // records from monitored processes
    ADDRESS_QUERY,   // queries of clients
    ADDRESS_LIVE,    // new records, as they are stored
    ADDRESS_ADMIN,   // administrators' queries
    ADDRESS_SERVICES // their count
};

struct address {
    bool is_ipc;
    char place[ADDRESS_TEXT_SIZE]; // ipc: folder of the sockets; tcp: host without brackets
    bool is_ipv6;
    unsigned port; // tcp: port of ingest; query, live and admin use port + 1, + 2 and + 3
};

// Parses "ipc:///absolute/folder", "tcp://HOST:PORT", "tcp://[::1]:PORT" or "tcp://HOST" (default
// port).  Returns STATUS_INVALID for an unknown scheme, a relative folder, a folder whose socket
// paths exceed ADDRESS_IPC_PATH_MAX bytes, an invalid host, a port outside 1..65532, or a wildcard.
// trust_decide (trust.h), not this function, decides whether a connection needs keys.
MUST_CHECK enum status address_parse(struct address *out, const char *text, struct error *err);

// Parses an address to listen on.  Unlike address_parse, it accepts wildcards ("tcp://*",
// "tcp://0.0.0.0", "tcp://[::]"), which mean all interfaces, and rejects host names other than
// localhost.
MUST_CHECK enum status address_parse_listen(struct address *out, const char *text,
                                            struct error *err);

// True for addresses that only this host can reach: ipc, 127.0.0.0/8, ::1, localhost.
bool address_is_local(const struct address *address);

// Writes the ZeroMQ endpoint of a service ("ipc:///run/inferstat/query", "tcp://127.0.0.1:5572" for
// localhost) to `text`, which holds ADDRESS_TEXT_SIZE bytes.  Returns `text`.
char *address_endpoint(char *text, const struct address *address, enum address_service service);

// The name of a service: "ingest", "query", "live" or "admin"; static.
const char *address_service_name(enum address_service service);

// Writes the address to `text`, which holds ADDRESS_TEXT_SIZE bytes, in the form that address_parse
// reads; an address with a wildcard only address_parse_listen can read back.  Returns `text`.
char *address_text(char *text, const struct address *address);
