// HTTP server for read-only pages: one thread (libmicrohttpd's) answers GET requests through a
// callback, over TCP or TLS.  For the collector's metrics.  It owns microhttpd.h.
//
// Each connection serves one request; one that is silent for 10 s is closed.  At most
// HTTP_SERVER_CONNECTIONS are open: a further one is always accepted, and closes the oldest
// connection of the address that has the most.  So clients that read slowly or never end their
// requests delay no client of another address, unless they have that many addresses.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"

enum { HTTP_SERVER_CONNECTIONS = 8 };

struct http_request {
    const char *path;   // "/metrics", without a query
    const char *accept; // the header Accept; "": none
    bool is_authorized; // the token was right, or none is required
};

// What to answer.  `body` is from malloc and passes to the server; NULL with `size` 0: an empty
// body.  `type` is static text.
struct http_response {
    unsigned code; // 200, 404, ...
    const char *type;
    char *body;
    size_t size;
};

// Fills `*response`, which has code 500 and no body.  Server's thread, one call at a time.
typedef void http_handler(void *context, const struct http_request *request,
                          struct http_response *response);

struct http_server_settings {
    const char *host; // numeric address, "localhost", or "*" for all interfaces
    unsigned port;
    const char *token;       // required in "Authorization: Bearer TOKEN"; NULL: none is
    const char *certificate; // PEM texts for TLS; both NULL: plain TCP
    const char *key;
    http_handler *handler;
    void *context;
};

struct http_server;

// Returns what http_server_start would for the certificate and its key, and listens nowhere.
MUST_CHECK enum status http_server_check(const struct http_server_settings *settings,
                                         struct error *err);

// Listens and starts the thread.  The settings are copied, but not what `context` points to.
// Returns STATUS_BUSY if the address is in use, STATUS_INVALID for an unusable certificate or key,
// STATUS_UNSUPPORTED if libmicrohttpd lacks TLS.
MUST_CHECK enum status http_server_start(struct http_server **out,
                                         const struct http_server_settings *settings,
                                         struct error *err);

// Replaces `*server` by one with other settings at the same address, without a moment in which
// nothing listens there.  Closes the connections of the one before.  On failure that one goes on.
MUST_CHECK enum status http_server_restart(struct http_server **server,
                                           const struct http_server_settings *settings,
                                           struct error *err);

// Closes all connections and ends the thread.  Accepts NULL.
void http_server_stop(struct http_server *server);
