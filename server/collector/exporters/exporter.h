// Exporter of metrics: an HTTP server whose page /metrics Prometheus scrapes, in text format 0.0.4
// or OpenMetrics 1.0.0, and /health.
//
// Counters begin at zero when the exporter starts.  A thread of the exporter reads the store
// through a read-only connection of its own: each second the new records, a bounded number at a
// time, and now and then the rest.  A scrape composes the page from memory.  Neither holds up
// ingest.
//
// /health needs no token.  It answers 200 "ok", or 503 when the last commit failed.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "server/collector/threads/channels.h"

struct listener;

enum { EXPORTER_SERIES_DEFAULT = 100000, EXPORTER_SERIES_MOST = 2000000 };

struct exporter_options {
    bool is_on;
    struct address listen;      // tcp; its port alone is used
    char token[PATH_MAX];       // file of the bearer token; empty: none is required
    char certificate[PATH_MAX]; // files in PEM, for TLS; both empty: plain TCP
    char key[PATH_MAX];
    uint32_t series; // lines of the page, about
};

struct exporter;

// Checks that others than this host cannot get the page unprotected: that needs a token and TLS, or
// `insecure`.  Reads the files, to see that they are usable and that the certificate has the key.
MUST_CHECK enum status exporter_check(const struct exporter_options *options, bool insecure,
                                      struct error *err);

// Begins to count and starts the threads; to be called before records come.  `path` is the store's
// file.  All pointers are borrowed until exporter_stop.
MUST_CHECK enum status exporter_start(struct exporter **out, const struct exporter_options *options,
                                      const char *path, struct listener *listener,
                                      struct channels *channels, struct error *err);

// Reads the token, certificate and key again and serves with all three at once; scrapes in progress
// are ended.  On failure those of before stay in use.  Not while another thread calls
// exporter_stop.  Accepts NULL.
MUST_CHECK enum status exporter_reload(struct exporter *exporter, struct error *err);

// Ends the threads.  Accepts NULL.
void exporter_stop(struct exporter *exporter);
