// What inferstatd can be told: by options, by a file, by the environment.
#ifndef INFERSTAT_COLLECTOR_OPTIONS_H
#define INFERSTAT_COLLECTOR_OPTIONS_H

#include <limits.h>
#include <stdbool.h>

#include "common/core/error.h"
#include "common/sys/log.h"
#include "common/wire/address.h"
#include "server/collector/endpoints.h"

struct options {
    struct address listen[ENDPOINTS_MAX];
    unsigned listen_count;
    char db[PATH_MAX];
    bool db_is_default;    // neither an option nor the file named it
    char config[PATH_MAX]; // empty: none
    enum log_level log_level;
    bool check_config, help, version;
};

// What of the environment matters; entries may be NULL.
struct options_environment {
    const char *collector;   // INFERSTAT_COLLECTOR
    const char *runtime_dir; // XDG_RUNTIME_DIR
};

// Reads options, then the configuration file they name, then fills what is left
// with the environment's and the default values.  STATUS_INVALID: what is wrong
// is the usage.  With --help or --version nothing else is looked at.
MUST_CHECK enum status options_read(struct options *options, int argc, char *const *argv,
                                    const struct options_environment *environment,
                                    struct error *err);

// Text of --help; static.
const char *options_help(void);

#endif
