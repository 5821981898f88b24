// Addresses of collectors: parsing and validation.  Pure, no sockets.
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
    char place[ADDRESS_TEXT_SIZE]; // folder, or host without brackets
    bool is_ipv6;
    unsigned port; // tcp: of ingest
};

// Parses "ipc:///absolute/folder", "tcp://HOST:PORT", "tcp://[::1]:PORT",
// "tcp://HOST" (default port).  STATUS_INVALID with the reason: unknown scheme,
// relative folder, a folder whose socket paths would not fit in 107 bytes (the
// text names the length and the limit), a host that is no address and no name, a
// port outside 1..65532, a wildcard.  trust_resolve (trust.h) decides whether the address
// may be trusted.
MUST_CHECK enum status address_parse(struct address *out, const char *text, struct error *err);

// The same for an address to listen on: wildcards ("tcp://*", "tcp://0.0.0.0",
// "tcp://[::]") are accepted and mean every address of the host.  Host names other
// than localhost are rejected: an address or "*" is required.
MUST_CHECK enum status address_parse_listen(struct address *out, const char *text,
                                            struct error *err);

// True for addresses that only this host can reach: ipc, 127.0.0.0/8, ::1, localhost.
bool address_is_local(const struct address *address);

// The default: INFERSTAT_COLLECTOR when `environment` is not NULL and not empty,
// else ipc:// of `runtime_dir`/inferstat, or /run/inferstat where that is NULL.
MUST_CHECK enum status address_default(struct address *out, const char *environment,
                                       const char *runtime_dir, struct error *err);

// Writes the ZeroMQ endpoint of a service ("ipc:///run/inferstat/query",
// "tcp://127.0.0.1:5572").  `text` holds ADDRESS_TEXT_SIZE bytes.  Returns it.
char *address_endpoint(char *text, const struct address *address, enum address_service service);

// "ingest", "query", "live" or "admin"; static.
const char *address_service_name(enum address_service service);

// Writes the address in the form that address_parse reads.  Returns `text`.
char *address_text(char *text, const struct address *address);

#endif
