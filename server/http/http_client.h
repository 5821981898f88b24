// HTTP client: sends one POST request and waits for the answer's code.  It owns curl/curl.h.
//
// Only http:// and https:// URLs, no redirects; certificates are verified; proxies and .netrc are
// not used, whatever the environment says.  The answer's body is discarded; answers over
// HTTP_ANSWER_MAX are not read to their end.
#pragma once

#include <stddef.h>

#include "common/core/base/error.h"

enum {
    HTTP_CONNECT_MS = 5000, // for the name, the connection and TLS
    HTTP_TOTAL_MS = 10000,  // for all of it
    HTTP_ANSWER_MAX = 65536,
};

// Prepares the library: before the first request; http_client_end after the last one.  Calls may
// nest.  STATUS_UNSUPPORTED: it cannot be used.
MUST_CHECK enum status http_client_begin(struct error *err);
void http_client_end(void);

// Posts `size` bytes of `body`, which are JSON, to `url`.  STATUS_OK: `*code` is the answer's code,
// of any class.  STATUS_INVALID: the URL cannot be used; STATUS_UNREACHABLE: no answer, the text
// says why; STATUS_TIMEOUT: not within the time; STATUS_CANCELLED: `stop_fd` became readable (it is
// not read).  No text contains the URL, which may be a secret.  Any thread.
MUST_CHECK enum status http_client_post(const char *url, const char *body, size_t size, int stop_fd,
                                        long *code, struct error *err);
