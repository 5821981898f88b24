// What inferstatd can be told: by options, by a file, by the environment.
#ifndef INFERSTAT_COLLECTOR_OPTIONS_H
#define INFERSTAT_COLLECTOR_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/sys/log.h"
#include "common/wire/address.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/services/endpoints.h"
#include "server/collector/threads/limits.h"

struct options {
    struct address listen[ENDPOINTS_MAX];
    unsigned listen_count;
    char db[PATH_MAX];
    bool db_is_default;    // neither an option nor the file named it
    char config[PATH_MAX]; // empty: those of the system, where they are
    char key[PATH_MAX];    // the collector's own keys; empty: it has none
    char authorized_keys[PATH_MAX];
    char files_under[PATH_MAX]; // empty: no file may be named over TCP
    bool insecure;
    struct limits limits;
    struct retention_rules retention;
    int rollups; // 0: on; 1: off
    enum log_level log_level;
    bool check_config, help, version;
};

// What of the environment matters; entries may be NULL.
struct options_environment {
    const char *collector;   // INFERSTAT_COLLECTOR
    const char *runtime_dir; // XDG_RUNTIME_DIR
    // Where the system's configuration lies: inferstatd.conf, conf.d/*.conf and
    // server.key.  NULL: there is none.
    const char *system_folder;
};

// Reads options, then the configuration files, and fills what is left with default
// values: an option beats the environment, and that the files.  STATUS_INVALID: what
// is wrong is the usage.  With --help or --version nothing else is looked at.
MUST_CHECK enum status options_read(struct options *options, int argc, char *const *argv,
                                    const struct options_environment *environment,
                                    struct error *err);

// Checks what the options name: that no address is open to other hosts without keys,
// that the collector's keys can be read (into `*keys`, where there are any) and that
// the file of authorized keys is right.
MUST_CHECK enum status options_check(const struct options *options, struct wire_keypair *keys,
                                     struct error *err);

// Writes the text of --help.
void options_help(FILE *out);

#endif
