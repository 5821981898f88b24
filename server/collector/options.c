#include "server/collector/options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/sys/config.h"
#include "common/sys/files.h"
#include "common/sys/option_table.h"
#include "common/wire/keys.h"
#include "common/wire/peer_folder.h"

// ---- The table ------------------------------------------------------------------

static enum status parse_listen(void *member, const char *value, const char *what,
                                struct error *err)
{
    struct options *options = member;
    if (options->listen_count == ENDPOINTS_MAX)
        return error_set(err, STATUS_INVALID, "%s: at most %d addresses", what, ENDPOINTS_MAX);
    enum status status = address_parse_listen(&options->listen[options->listen_count], value, err);
    if (status == STATUS_OK)
        options->listen_count++;
    return status;
}

static enum status parse_files_under(void *member, const char *value, const char *what,
                                     struct error *err)
{
    if (value[0] != '/' || strlen(value) >= PATH_MAX)
        return error_set(err, STATUS_INVALID, "%s: %.200s: not an absolute path", what, value);
    memcpy(member, value, strlen(value) + 1);
    return STATUS_OK;
}

static enum status parse_retention(void *member, const char *value, const char *what,
                                   struct error *err)
{
    (void)what; // the message names the rule
    return retention_rules_parse(member, value, err);
}

static enum status parse_quota(void *member, const char *value, const char *what, struct error *err)
{
    struct quota_rules rules = quota_rules_default();
    (void)what; // the message names the quota
    enum status status = quota_rules_parse(&rules, value, err);
    if (status == STATUS_OK)
        memcpy(member, &rules, sizeof rules);
    return status;
}

static enum status parse_metrics(void *member, const char *value, const char *what,
                                 struct error *err)
{
    struct exporter_options *metrics = member;
    char text[ADDRESS_TEXT_SIZE];
    const char *port = strrchr(value, ':');
    const int n = snprintf(text, sizeof text, "tcp://%s", value);
    if (!port || strchr(port, ']') || n < 0 || (size_t)n >= sizeof text)
        return error_set(err, STATUS_INVALID, "%s: %.200s: not HOST:PORT", what, value);
    enum status status = address_parse_listen(&metrics->listen, text, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "%s", what);
    metrics->is_on = true;
    return STATUS_OK;
}

static enum status parse_ignored(void *member, const char *value, const char *what,
                                 struct error *err)
{
    (void)member, (void)value, (void)what, (void)err;
    return STATUS_OK;
}

#define OPTION_TARGET struct options

enum { ROW_LISTEN }; // the row of --listen

static const struct option rows[] = {
    [ROW_LISTEN] =
        {"listen", "ADDR",
         "listen at ipc:///FOLDER, tcp://ADDRESS:PORT or tcp://*:PORT; may be given several times "
         "(default: INFERSTAT_COLLECTOR, else \"inferstat\" in this user's runtime folder, else "
         "ipc:///run/inferstat)",
         .type = OPTION_CUSTOM, .parse = parse_listen},
    {"db", "FILE",
     "the store (default: $XDG_DATA_HOME/inferstat/inferstat.db, else for root "
     "/var/lib/inferstat/inferstat.db, for others ~/.local/share/inferstat/inferstat.db)",
     PATH_AT(db)},
    {"key", "FILE",
     "the collector's own keys, made by `inferstat keygen --server`: all TCP is encrypted and "
     "restricted to authorized keys (default: $XDG_CONFIG_HOME/inferstat/server.key, else "
     "/etc/inferstat/server.key, if it exists)",
     PATH_AT(key)},
    {"authorized-keys", "FILE",
     "who may connect: lines of KEY ROLES NAME, changed by `inferstat authorize` and `revoke` "
     "(default: the store's name and .keys)",
     PATH_AT(authorized_keys)},
    {"files-under", "FOLDER",
     "administrators connected over TCP may write copies and import files below FOLDER (default: "
     "nowhere)",
     CUSTOM_AT(files_under, parse_files_under)},
    {"group-read", NULL,
     "let the group of the store read its files; its members can then also stop the collector "
     "(default: only the store's owner)",
     FLAG_AT(group_read)},
    {"insecure", NULL, "listen on TCP without keys, for every peer; without it only on loopback",
     FLAG_AT(insecure)},
    {"max-names", "N", "names kept per run; others become \"other\" (default 65535)",
     UINT32_AT(limits.names, 1, LIMITS_NAMES)},
    {"max-runs-per-key", "N", "open runs per key (default 4096)",
     UINT32_AT(limits.runs_per_key, 1, LIMITS_RUNS_MOST)},
    {"max-connections", "N", "connections to each socket (default 4096)",
     UINT32_AT(limits.connections, 1, LIMITS_CONNECTIONS_MOST)},
    {"retention", "KEY=VALUE,...",
     "how long to keep what: raw (records), samples (those of devices and hosts), minute, hour, "
     "day, month (rollups), finest-minute.. "
     "(rollups of each model, host, device and operation separately): durations or forever; bytes "
     "(of the store): a size or unlimited (default: raw=forever,samples=1d,minute=35d,hour=400d,"
     "day=forever,month=forever,finest-minute=2d,finest-hour=35d,bytes=unlimited)",
     CUSTOM_AT(retention, parse_retention)},
    {"quota", "KEY=VALUE,...",
     "what one key or one user may use: names, runs (new ones an hour), bytes (a day, to ingest), "
     "records (a second), connections, answers (unread bytes), cells (of rollups), kills (killed "
     "runs a minute); numbers, sizes or unlimited (default: names=100000,runs=4096,bytes=half of "
     "the store's limit,records=unlimited,connections=1024,answers=4MB,cells=16384,kills=10)",
     CUSTOM_AT(quota, parse_quota)},
    {"alerts", "FILE",
     "alert rules and hooks beside the built-in rules (default: none): inferstatd-alerts(5)",
     PATH_AT(alerts.file)},
    {"alerts-every", "TIME", "evaluate alert rules every TIME (default 15s)",
     PERIOD_AT(alerts.every_ns)},
    {"metrics", "HOST:PORT",
     "serve metrics for Prometheus at http://HOST:PORT/metrics, and /health (default: nowhere); "
     "for other hosts than this with --metrics-token, --metrics-certificate and --metrics-key, or "
     "--insecure",
     CUSTOM_AT(metrics, parse_metrics)},
    {"metrics-token", "FILE", "the metrics are for those that send the bearer token in FILE",
     PATH_AT(metrics.token)},
    {"metrics-certificate", "FILE",
     "serve the metrics over TLS, with the certificates (PEM) in FILE",
     PATH_AT(metrics.certificate)},
    {"metrics-key", "FILE", "the certificate's private key (PEM)", PATH_AT(metrics.key)},
    {"metrics-series", "N",
     "most lines of the metrics, about: models, hosts and devices beyond are counted together as "
     "\"other\", or left out and counted (default 100000)",
     UINT32_AT(metrics.series, 1000, EXPORTER_SERIES_MOST)},
    // Files and units of older versions may have it; records are no longer sealed.
    {"seal-after", "AGE", NULL, .type = OPTION_CUSTOM, .parse = parse_ignored},
    // For measuring what rollups cost, and not in the help.
    {"rollups", "on|off", NULL, CHOICE_AT(rollups, NULL)},
    {"config", "FILE",
     "read these options from FILE, as \"key = value\" lines (default: "
     "/etc/inferstat/inferstatd.conf and conf.d/*.conf beside it)",
     PATH_AT(config), .not_in_file = true},
    {"check-config", NULL,
     "check options, files and keys, and end: one line and status 0 when they are valid, status 2 "
     "when not",
     FLAG_AT(check_config), .not_in_file = true},
    {"log-level", "LEVEL", "error, warning, info (default) or debug",
     CHOICE_AT(log_level, log_level_name)},
    {"help", NULL, "show this text", FLAG_AT(help), .letter = 'h', .not_in_file = true},
    {"version", NULL, "show the version", FLAG_AT(version), .letter = 'V', .not_in_file = true},
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

void options_help(FILE *out)
{
    const struct option_table table = {.options = rows, .count = ROW_COUNT};
    (void)fputs(
        "Usage: inferstatd [OPTION]...\n"
        "Collects records of inference from workers into one SQLite file and answers queries.\n"
        "\n",
        out);
    option_table_write_help(out, &table);
    (void)fputs(
        "\n"
        "SIGTERM and SIGINT commit received records and exit.  SIGHUP reloads the authorized\n"
        "keys, which also happens within a second of a change, and the alert rules.\n"
        "Exit status: 0 done; 2 wrong usage; 4 a store or an address cannot be used.\n",
        out);
}

// ---- Reading --------------------------------------------------------------------

struct reading {
    struct options *options;
    struct option_table table;
    bool given[ROW_COUNT]; // on the command line or in the environment, which override files
};

static enum status set_from_file(void *context, const char *key, const char *value,
                                 struct error *err)
{
    struct reading *reading = context;
    const struct option *option = option_find(&reading->table, key);
    if (!option || option->not_in_file)
        return option_unknown(&reading->table, 1, "", key, "inferstatd", err);
    // A value that an option overrides is only validated.
    struct options overridden = {0};
    return option_set(option, reading->given[option - rows] ? &overridden : reading->options, value,
                      err);
}

static enum status read_arguments(struct reading *reading, int argc, char *const *argv,
                                  struct error *err)
{
    struct option_reader reader = {.program = "inferstatd",
                                   .words = argv,
                                   .count = argc,
                                   .tables = &reading->table,
                                   .table_count = 1,
                                   .at = 1};
    const struct options *options = reading->options;
    while (reader.at < argc && !options->help && !options->version) {
        const char *word;
        enum status status = option_reader_next(&reader, &word, err);
        if (status == STATUS_OK && word)
            status =
                error_set(err, STATUS_INVALID, "%.60s: not an option (--help lists them)", word);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status read_files(struct reading *reading,
                              const struct options_environment *environment, struct error *err)
{
    char path[PATH_MAX];
    if (reading->options->config[0])
        return config_read(reading->options->config, set_from_file, NULL, reading, err);
    if (!environment->system_folder)
        return STATUS_OK;
    enum status status =
        files_join(path, sizeof path, environment->system_folder, "inferstatd.conf", err);
    if (status == STATUS_OK && access(path, F_OK) == 0)
        status = config_read(path, set_from_file, NULL, reading, err);
    if (status == STATUS_OK)
        status = files_join(path, sizeof path, environment->system_folder, "conf.d", err);
    if (status == STATUS_OK)
        status = config_read_folder(path, set_from_file, reading, err);
    return status;
}

// Uses the path if the file exists.  If that cannot be determined it fails, so that the
// collector never starts without keys by mistake.
static enum status use_key_at(struct options *options, const char *path, struct error *err)
{
    if (access(path, F_OK) == 0)
        (void)snprintf(options->key, sizeof options->key, "%s", path);
    else if (errno != ENOENT && errno != ENOTDIR)
        return error_set(err, STATUS_DENIED,
                         "%s: cannot see whether there are keys: %s (say --key FILE or --insecure)",
                         path, strerror(errno));
    return STATUS_OK;
}

// Finds the collector's default keys: the user's, or the system's.
static enum status find_key(struct options *options, const struct options_environment *environment,
                            struct error *err)
{
    char path[PATH_MAX];
    enum status status = STATUS_OK;
    if (options->key[0] || options->insecure)
        return STATUS_OK;
    if (keys_default_path(path, sizeof path, "server.key", NULL) == STATUS_OK)
        status = use_key_at(options, path, err);
    if (status != STATUS_OK || options->key[0] || !environment->system_folder)
        return status;
    status = files_join(path, sizeof path, environment->system_folder, "server.key", err);
    return status == STATUS_OK ? use_key_at(options, path, err) : status;
}

static enum status fill_defaults(struct options *options,
                                 const struct options_environment *environment, struct error *err)
{
    enum status status = STATUS_OK;
    if (options->listen_count == 0) {
        status =
            peer_default_address(&options->listen[0], NULL, environment->runtime_dir, false, err);
        options->listen_count = 1;
    }
    if (status == STATUS_OK && !options->db[0]) {
        char folder[PATH_MAX];
        options->db_is_default = true;
        status = files_data_folder(folder, sizeof folder, err);
        if (status == STATUS_OK)
            status = files_join(options->db, sizeof options->db, folder, "inferstat.db", err);
    }
    if (status == STATUS_OK)
        status = find_key(options, environment, err);
    if (status == STATUS_OK && !options->authorized_keys[0]) {
        const int n = snprintf(options->authorized_keys, PATH_MAX, "%s.keys", options->db);
        if (n >= PATH_MAX)
            status = error_set(err, STATUS_INVALID, "--db: the path is too long");
    }
    return status;
}

static enum status read_environment(struct reading *reading,
                                    const struct options_environment *environment,
                                    struct error *err)
{
    const char *collector = environment->collector;
    if (reading->given[ROW_LISTEN] || !collector || !collector[0])
        return STATUS_OK;
    reading->given[ROW_LISTEN] = true;
    enum status status = option_set(&rows[ROW_LISTEN], reading->options, collector, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "INFERSTAT_COLLECTOR");
}

enum status options_read(struct options *options, int argc, char *const *argv,
                         const struct options_environment *environment, struct error *err)
{
    *options = (struct options){.log_level = LOG_LEVEL_INFO,
                                .limits = LIMITS_DEFAULT,
                                .quota = quota_rules_default(),
                                .retention = retention_rules_default(),
                                .metrics = {.series = EXPORTER_SERIES_DEFAULT},
                                .alerts = {.every_ns = ALERTS_EVERY_NS}};
    struct reading reading = {.options = options,
                              .table = {.options = rows, .count = ROW_COUNT, .target = options}};
    reading.table.given = reading.given;
    enum status status = read_arguments(&reading, argc, argv, err);
    if (status != STATUS_OK || options->help || options->version)
        return status;
    status = read_environment(&reading, environment, err);
    if (status == STATUS_OK)
        status = read_files(&reading, environment, err);
    if (status == STATUS_OK)
        status = fill_defaults(options, environment, err);
    return status;
}

// ---- Checks -------------------------------------------------------------------

static enum status check_addresses(const struct options *options, struct error *err)
{
    char text[ADDRESS_TEXT_SIZE];
    for (unsigned i = 0; i < options->listen_count; i++) {
        const struct address *address = &options->listen[i];
        if (address_is_local(address) || options->key[0] || options->insecure)
            continue;
        return error_set(err, STATUS_DENIED,
                         "%.200s: others than this host could get there, and the collector has no "
                         "key (make one with `inferstat keygen --server`, or say --insecure in a "
                         "network that you trust)",
                         address_text(text, address));
    }
    return STATUS_OK;
}

enum status options_check(const struct options *options, struct wire_keypair *keys,
                          struct error *err)
{
    struct access *access = NULL;
    if (options->key[0] && options->insecure)
        return error_set(err, STATUS_INVALID,
                         "--key and --insecure contradict each other (say one of them)");
    enum status status = check_addresses(options, err);
    if (status == STATUS_OK)
        status = exporter_check(&options->metrics, options->insecure, err);
    if (status == STATUS_OK)
        status = alerts_check(&options->alerts, options->check_config, err);
    if (status != STATUS_OK || !options->key[0])
        return status;
    status = keys_read(keys, options->key, err);
    if (status == STATUS_OK)
        status = access_open(&access, options->authorized_keys, err);
    access_close(access);
    return status;
}
