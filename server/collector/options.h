// Configuration of the server inferstatd, read from command-line options, the environment and
// configuration files.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/sys/log.h"
#include "common/wire/address.h"
#include "server/collector/access/quota.h"
#include "server/collector/alerts/alerts_thread.h"
#include "server/collector/exporters/exporter.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/limits.h"

struct options {
    struct address listen[ENDPOINTS_MAX];
    unsigned listen_count;
    char db[PATH_MAX];              // the store's file
    bool db_is_default;             // true if no option or file sets `db`
    char config[PATH_MAX];          // configuration file; empty: the system's files, if they exist
    char key[PATH_MAX];             // file of the collector's own keys; empty: none
    char authorized_keys[PATH_MAX]; // file of the keys that may connect (access_list.h)
    char files_under[PATH_MAX];     // folder of files named over TCP; empty: none may be named
    bool group_read;                // the store's group may read it, too
    bool insecure;                  // accept TCP addresses open to other hosts, without keys
    struct limits limits;
    struct quota_rules quota;
    struct retention_rules retention;
    struct exporter_options metrics;
    struct alerts_options alerts;
    int rollups; // not a bool: 0: on (the default); 1: off
    enum log_level log_level;
    bool check_config, help, version; // do only this; do not start the collector
};

// The relevant environment; members may be NULL.
struct options_environment {
    const char *collector;   // INFERSTAT_COLLECTOR
    const char *runtime_dir; // XDG_RUNTIME_DIR
    // Folder of the system's configuration: inferstatd.conf, conf.d/*.conf and server.key.
    // NULL: none.
    const char *system_folder;
};

// Reads options, the environment and configuration files, in this order of precedence, and sets
// the rest to defaults.  Returns STATUS_INVALID if the usage is wrong.  After --help or --version
// it reads nothing else.
MUST_CHECK enum status options_read(struct options *options, int argc, char *const *argv,
                                    const struct options_environment *environment,
                                    struct error *err);

// Checks that no address is open to other hosts without keys, unless `insecure`.  If options->key
// is set, reads the collector's keys to `*keys` and checks the file of authorized keys.
MUST_CHECK enum status options_check(const struct options *options, struct wire_keypair *keys,
                                     struct error *err);

// Writes the --help text.
void options_help(FILE *out);
