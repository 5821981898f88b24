// Collector addresses: parsing, validation and the endpoints of a collector's services.  Pure: no
// sockets, no name resolution.
#ifndef INFERSTAT_WIRE_ADDRESS_H
#define INFERSTAT_WIRE_ADDRESS_H

#include <stdbool.h>

#include "common/core/base/error.h"

enum { ADDRESS_TEXT_SIZE = 512, ADDRESS_DEFAULT_PORT = 5571, ADDRESS_IPC_PATH_MAX = 107 };

enum address_service {
    ADDRESS_INGEST,
    ADDRESS_QUERY,
    ADDRESS_LIVE,
    ADDRESS_ADMIN,
    ADDRESS_SERVICES
};

struct address {
    bool is_ipc;
    char place[ADDRESS_TEXT_SIZE]; // ipc: folder of the sockets; tcp: host without brackets
    bool is_ipv6;
    unsigned port; // tcp: of ingest; the other services use the next ports
};

// Parses "ipc:///absolute/folder", "tcp://HOST:PORT", "tcp://[::1]:PORT" or "tcp://HOST" (default
// port).  STATUS_INVALID: unknown scheme, relative folder, a folder whose socket paths exceed
// ADDRESS_IPC_PATH_MAX bytes, an invalid host, a port outside 1..65532, or a wildcard.
// trust_resolve (trust.h) checks whether the address needs keys.
MUST_CHECK enum status address_parse(struct address *out, const char *text, struct error *err);

// As address_parse, for an address to listen on: accepts wildcards ("tcp://*", "tcp://0.0.0.0",
// "tcp://[::]"), which mean all interfaces, and rejects host names other than localhost.
MUST_CHECK enum status address_parse_listen(struct address *out, const char *text,
                                            struct error *err);

// True for addresses that only this host can reach: ipc, 127.0.0.0/8, ::1, localhost.
bool address_is_local(const struct address *address);

// The default address: `environment` (the value of INFERSTAT_COLLECTOR) if not NULL and not empty,
// else ipc://`runtime_dir`/inferstat, or ipc:///run/inferstat if `runtime_dir` is NULL.
MUST_CHECK enum status address_default(struct address *out, const char *environment,
                                       const char *runtime_dir, struct error *err);

// Writes the ZeroMQ endpoint of a service ("ipc:///run/inferstat/query",
// "tcp://127.0.0.1:5572").  `text` holds ADDRESS_TEXT_SIZE bytes.  Returns it.
char *address_endpoint(char *text, const struct address *address, enum address_service service);

// "ingest", "query", "live" or "admin"; static.
const char *address_service_name(enum address_service service);

// Formats the address for address_parse.  `text` holds ADDRESS_TEXT_SIZE bytes.  Returns it.
char *address_text(char *text, const struct address *address);

#endif
