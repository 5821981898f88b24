#include "server/collector/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/parse.h"
#include "common/sys/config.h"
#include "common/sys/files.h"
#include "common/wire/keys.h"
#include "server/collector/access/access.h"
#include "server/collector/sealing.h"

#define SEAL_AFTER_LEAST_NS INT64_C(3600000000000)

struct reading;
typedef enum status option_set(struct reading *reading, const char *value, struct error *err);

struct option {
    const char *name;
    bool has_value;
    bool in_file;
    option_set *set;
};

// What is being read: what was set by an option is not set by a file again.
struct reading {
    struct options *options;
    unsigned given; // bit i: table[i] was given as an option, or in the environment
};

static enum status set_listen(struct reading *reading, const char *value, struct error *err)
{
    struct options *options = reading->options;
    if (options->listen_count == ENDPOINTS_MAX)
        return error_set(err, STATUS_INVALID, "--listen: at most %d addresses", ENDPOINTS_MAX);
    enum status status = address_parse_listen(&options->listen[options->listen_count], value, err);
    if (status == STATUS_OK)
        options->listen_count++;
    return status;
}

static enum status set_path(char *out, const char *value, const char *option, struct error *err)
{
    const int n = snprintf(out, PATH_MAX, "%s", value);
    if (n <= 0 || n >= PATH_MAX)
        return error_set(err, STATUS_INVALID, "%s: the path is empty or too long", option);
    return STATUS_OK;
}

static enum status set_db(struct reading *reading, const char *value, struct error *err)
{
    return set_path(reading->options->db, value, "--db", err);
}

static enum status set_config(struct reading *reading, const char *value, struct error *err)
{
    return set_path(reading->options->config, value, "--config", err);
}

static enum status set_key(struct reading *reading, const char *value, struct error *err)
{
    return set_path(reading->options->key, value, "--key", err);
}

static enum status set_authorized_keys(struct reading *reading, const char *value,
                                       struct error *err)
{
    return set_path(reading->options->authorized_keys, value, "--authorized-keys", err);
}

static enum status set_files_under(struct reading *reading, const char *value, struct error *err)
{
    if (value[0] != '/')
        return error_set(err, STATUS_INVALID, "--files-under: %.200s: begin it with /", value);
    return set_path(reading->options->files_under, value, "--files-under", err);
}

// An option without a value; in a file it is "yes" or "no".
static enum status set_insecure(struct reading *reading, const char *value, struct error *err)
{
    if (value && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return error_set(err, STATUS_INVALID, "insecure: \"%.40s\" is neither yes nor no", value);
    reading->options->insecure = !value || strcmp(value, "yes") == 0;
    return STATUS_OK;
}

static enum status set_count(uint32_t *out, const char *value, uint32_t maximum, const char *option,
                             struct error *err)
{
    int64_t count = 0;
    enum status status = parse_int(&count, value, 1, maximum, option, err);
    if (status == STATUS_OK)
        *out = (uint32_t)count;
    return status;
}

static enum status set_names(struct reading *reading, const char *value, struct error *err)
{
    return set_count(&reading->options->limits.names, value, LIMITS_NAMES, "--max-names", err);
}

static enum status set_runs(struct reading *reading, const char *value, struct error *err)
{
    return set_count(&reading->options->limits.runs_per_key, value, LIMITS_RUNS_MOST,
                     "--max-runs-per-key", err);
}

static enum status set_connections(struct reading *reading, const char *value, struct error *err)
{
    return set_count(&reading->options->limits.connections, value, LIMITS_CONNECTIONS_MOST,
                     "--max-connections", err);
}

static enum status set_retention(struct reading *reading, const char *value, struct error *err)
{
    return retention_rules_parse(&reading->options->retention, value, err);
}

static enum status set_seal_after(struct reading *reading, const char *value, struct error *err)
{
    int64_t *after_ns = &reading->options->seal_after_ns;
    if (strcmp(value, "never") == 0) {
        *after_ns = SEALING_NEVER;
        return STATUS_OK;
    }
    enum status status = parse_duration(after_ns, value, "--seal-after", err);
    if (status == STATUS_OK && *after_ns < SEAL_AFTER_LEAST_NS)
        status = error_set(err, STATUS_INVALID,
                           "--seal-after: \"%.40s\" is less than an hour (or: never)", value);
    return status;
}

// For measuring what rollups cost, and in no help.
static enum status set_rollups(struct reading *reading, const char *value, struct error *err)
{
    if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        return error_set(err, STATUS_INVALID, "rollups: \"%.40s\" is neither on nor off", value);
    reading->options->no_rollups = strcmp(value, "off") == 0;
    return STATUS_OK;
}

static enum status set_log_level(struct reading *reading, const char *value, struct error *err)
{
    return log_level_parse(&reading->options->log_level, value, err);
}

static enum status set_check_config(struct reading *reading, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    reading->options->check_config = true;
    return STATUS_OK;
}

static enum status set_help(struct reading *reading, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    reading->options->help = true;
    return STATUS_OK;
}

static enum status set_version(struct reading *reading, const char *value, struct error *err)
{
    (void)value;
    (void)err;
    reading->options->version = true;
    return STATUS_OK;
}

enum { OPTION_LISTEN, OPTION_DB, OPTION_CONFIG, OPTION_KEY }; // places in the table

static const struct option table[] = {
    [OPTION_LISTEN] = {"listen", true, true, set_listen},
    [OPTION_DB] = {"db", true, true, set_db},
    [OPTION_CONFIG] = {"config", true, false, set_config},
    [OPTION_KEY] = {"key", true, true, set_key},
    {"authorized-keys", true, true, set_authorized_keys},
    {"files-under", true, true, set_files_under},
    {"insecure", false, true, set_insecure},
    {"max-names", true, true, set_names},
    {"max-runs-per-key", true, true, set_runs},
    {"max-connections", true, true, set_connections},
    {"retention", true, true, set_retention},
    {"seal-after", true, true, set_seal_after},
    {"rollups", true, true, set_rollups},
    {"check-config", false, false, set_check_config},
    {"log-level", true, true, set_log_level},
    {"help", false, false, set_help},
    {"version", false, false, set_version},
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static const char help[] =
    "Usage: inferstatd [OPTION]...\n"
    "Collects records of inference from workers into one SQLite file and answers queries.\n"
    "\n"
    "  --listen ADDR       listen at ipc:///FOLDER, tcp://ADDRESS:PORT or tcp://*:PORT; may\n"
    "                      be given several times (default: INFERSTAT_COLLECTOR, else\n"
    "                      ipc://$XDG_RUNTIME_DIR/inferstat, else ipc:///run/inferstat)\n"
    "  --db FILE           the store (default: $XDG_DATA_HOME/inferstat/inferstat.db,\n"
    "                      else of root /var/lib/inferstat/inferstat.db, of others\n"
    "                      ~/.local/share/inferstat/inferstat.db)\n"
    "  --key FILE          the collector's own keys, as `inferstat keygen --server` makes\n"
    "                      them: all TCP is encrypted, and for authorized keys only\n"
    "                      (default: $XDG_CONFIG_HOME/inferstat/server.key, else\n"
    "                      /etc/inferstat/server.key, where one is there)\n"
    "  --authorized-keys FILE\n"
    "                      who may connect: lines of KEY ROLES NAME, changed by `inferstat\n"
    "                      authorize` and `revoke` (default: the store's name and .keys)\n"
    "  --files-under FOLDER\n"
    "                      administrators who come over TCP may have copies written, and\n"
    "                      files imported, below it (default: nowhere)\n"
    "  --insecure          listen on TCP without keys, for everybody who gets there; without\n"
    "                      it only on loopback\n"
    "  --max-names N       names kept of a run (default 65535)\n"
    "  --max-runs-per-key N\n"
    "                      runs of one key that are not over (default 4096)\n"
    "  --max-connections N connections to each socket (default 4096)\n"
    "  --retention KEY=VALUE,...\n"
    "                      what is kept how long: raw (records), minute, hour, day, month\n"
    "                      (rollups), finest-minute.. (rollups of each model, host, device\n"
    "                      and operation apart): durations or forever; bytes (of the store):\n"
    "                      a size or unlimited (default: raw=forever,minute=35d,hour=400d,\n"
    "                      day=forever,month=forever,finest-minute=2d,finest-hour=35d,\n"
    "                      bytes=unlimited)\n"
    "  --seal-after AGE    pack inferences older than that into a sixth of the room, in the\n"
    "                      same file, 16384 at a time; all queries, exports and bundles have\n"
    "                      them as before, sqlite3 by itself has not: a duration or never\n"
    "                      (default: never)\n"
    "  --config FILE       read these options from FILE, as \"key = value\" lines (default:\n"
    "                      /etc/inferstat/inferstatd.conf and conf.d/*.conf beside it)\n"
    "  --check-config      say whether options, files and keys are right, and end: a line\n"
    "                      where they are, status 2 where they are not\n"
    "  --log-level LEVEL   error, warning, info (default) or debug\n"
    "  --help              show this text\n"
    "  --version           show the version\n"
    "\n"
    "SIGTERM and SIGINT end it after what has arrived is committed.  SIGHUP reads the\n"
    "authorized keys again, which it also does within a second of a change.\n"
    "Exit status: 0 done; 2 wrong usage; 4 a store or an address cannot be had.\n";

const char *options_help(void)
{
    return help;
}

static const struct option *find(const char *name, size_t size)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        if (strlen(table[i].name) == size && memcmp(table[i].name, name, size) == 0)
            return &table[i];
    return NULL;
}

static enum status unknown(const char *dashes, const char *name, struct error *err)
{
    const char *words[OPTION_COUNT];
    for (unsigned i = 0; i < OPTION_COUNT; i++)
        words[i] = table[i].name;
    const char *nearest = parse_nearest(name, words, OPTION_COUNT);
    if (nearest)
        return error_set(err, STATUS_INVALID, "%s%s: unknown option (did you mean %s%s?)", dashes,
                         name, dashes, nearest);
    return error_set(err, STATUS_INVALID, "%s%s: unknown option (--help lists them)", dashes, name);
}

// What is set already is checked all the same: a line that is wrong is wrong.
static enum status check_only(const struct option *option, const char *value, struct error *err)
{
    struct options *aside = calloc(1, sizeof *aside);
    if (!aside)
        return error_no_memory(err, "options");
    struct reading reading = {.options = aside};
    enum status status = option->set(&reading, value, err);
    free(aside);
    return status;
}

static enum status take_from_file(void *context, const char *key, const char *value,
                                  struct error *err)
{
    struct reading *reading = context;
    const struct option *option = find(key, strlen(key));
    if (!option || !option->in_file)
        return unknown("", key, err);
    if (reading->given >> (option - table) & 1)
        return check_only(option, value, err);
    return option->set(reading, value, err);
}

// One argument, and the next where its value is apart: "--db FILE", "--db=FILE".
static enum status take_argument(struct reading *reading, int argc, char *const *argv, int *index,
                                 struct error *err)
{
    const char *argument = argv[*index];
    if (strncmp(argument, "--", 2) != 0)
        return error_set(err, STATUS_INVALID, "%s: not an option (--help lists them)", argument);
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    const size_t size = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find(name, size);
    if (!option)
        return unknown("--", name, err);
    reading->given |= 1U << (option - table);
    if (equals && !option->has_value)
        return error_set(err, STATUS_INVALID, "--%s: takes no value", option->name);
    if (!option->has_value)
        return option->set(reading, NULL, err);
    if (!equals && *index + 1 >= argc)
        return error_set(err, STATUS_INVALID, "--%s: its value is missing", option->name);
    return option->set(reading, equals ? equals + 1 : argv[++*index], err);
}

static enum status read_files(struct reading *reading,
                              const struct options_environment *environment, struct error *err)
{
    char path[PATH_MAX];
    if (reading->options->config[0])
        return config_read(reading->options->config, take_from_file, reading, err);
    if (!environment->system_folder)
        return STATUS_OK;
    enum status status =
        files_join(path, sizeof path, environment->system_folder, "inferstatd.conf", err);
    if (status == STATUS_OK && access(path, F_OK) == 0)
        status = config_read(path, take_from_file, reading, err);
    if (status == STATUS_OK)
        status = files_join(path, sizeof path, environment->system_folder, "conf.d", err);
    if (status == STATUS_OK)
        status = config_read_folder(path, take_from_file, reading, err);
    return status;
}

// Takes the path where a file is there.  One that may be there is not passed over:
// the collector would do without keys.
static enum status take_key_at(struct options *options, const char *path, struct error *err)
{
    if (access(path, F_OK) == 0)
        (void)snprintf(options->key, sizeof options->key, "%s", path);
    else if (errno != ENOENT && errno != ENOTDIR)
        return error_set(err, STATUS_DENIED,
                         "%s: cannot see whether there are keys: %s (say --key FILE or --insecure)",
                         path, strerror(errno));
    return STATUS_OK;
}

// The collector's own keys where nobody says otherwise: this user's, or the system's.
static enum status find_key(struct options *options, const struct options_environment *environment,
                            struct error *err)
{
    char path[PATH_MAX];
    enum status status = STATUS_OK;
    if (options->key[0] || options->insecure)
        return STATUS_OK;
    if (keys_default_path(path, sizeof path, "server.key", NULL) == STATUS_OK)
        status = take_key_at(options, path, err);
    if (status != STATUS_OK || options->key[0] || !environment->system_folder)
        return status;
    status = files_join(path, sizeof path, environment->system_folder, "server.key", err);
    return status == STATUS_OK ? take_key_at(options, path, err) : status;
}

static enum status fill_defaults(struct options *options,
                                 const struct options_environment *environment, struct error *err)
{
    enum status status = STATUS_OK;
    if (options->listen_count == 0) {
        status = address_default(&options->listen[0], NULL, environment->runtime_dir, err);
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

static enum status take_environment(struct reading *reading,
                                    const struct options_environment *environment,
                                    struct error *err)
{
    const char *collector = environment->collector;
    if (reading->given >> OPTION_LISTEN & 1 || !collector || !collector[0])
        return STATUS_OK;
    reading->given |= 1U << OPTION_LISTEN;
    enum status status = set_listen(reading, collector, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "INFERSTAT_COLLECTOR");
}

enum status options_read(struct options *options, int argc, char *const *argv,
                         const struct options_environment *environment, struct error *err)
{
    *options = (struct options){.log_level = LOG_LEVEL_INFO,
                                .limits = LIMITS_DEFAULT,
                                .retention = retention_rules_default(),
                                .seal_after_ns = SEALING_NEVER};
    struct reading reading = {.options = options};
    enum status status = STATUS_OK;
    for (int i = 1; i < argc && status == STATUS_OK; i++) {
        status = take_argument(&reading, argc, argv, &i, err);
        if (options->help || options->version)
            return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = take_environment(&reading, environment, err);
    if (status == STATUS_OK)
        status = read_files(&reading, environment, err);
    if (status == STATUS_OK)
        status = fill_defaults(options, environment, err);
    return status;
}

// ---- What they name -------------------------------------------------------------------

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
    if (status != STATUS_OK || !options->key[0])
        return status;
    status = keys_read(keys, options->key, err);
    if (status == STATUS_OK)
        status = access_open(&access, options->authorized_keys, err);
    access_close(access);
    return status;
}
