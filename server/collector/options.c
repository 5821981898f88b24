#include "server/collector/options.h"

#include <stdio.h>
#include <string.h>

#include "common/core/parse.h"
#include "common/sys/config.h"
#include "common/sys/files.h"

// What was set where: an option beats the file.
struct reading {
    struct options *options;
    bool from_file;
    bool db_set, level_set, listen_set; // by options
};

typedef enum status option_set(struct reading *reading, const char *value, struct error *err);

static enum status set_listen(struct reading *reading, const char *value, struct error *err)
{
    struct options *options = reading->options;
    if (reading->from_file && reading->listen_set)
        return STATUS_OK;
    reading->listen_set |= !reading->from_file;
    if (options->listen_count == ENDPOINTS_MAX)
        return error_set(err, STATUS_INVALID, "--listen: at most %d addresses", ENDPOINTS_MAX);
    enum status status = address_parse(&options->listen[options->listen_count], value, err);
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
    if (reading->from_file && reading->db_set)
        return STATUS_OK;
    reading->db_set |= !reading->from_file;
    return set_path(reading->options->db, value, "--db", err);
}

static enum status set_config(struct reading *reading, const char *value, struct error *err)
{
    if (reading->from_file)
        return error_set(err, STATUS_INVALID, "config: not in a configuration file");
    return set_path(reading->options->config, value, "--config", err);
}

static enum status set_log_level(struct reading *reading, const char *value, struct error *err)
{
    if (reading->from_file && reading->level_set)
        return STATUS_OK;
    reading->level_set |= !reading->from_file;
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

static const struct option {
    const char *name;
    bool has_value;
    bool in_file;
    option_set *set;
} table[] = {
    {"listen", true, true, set_listen},       {"db", true, true, set_db},
    {"config", true, false, set_config},      {"check-config", false, false, set_check_config},
    {"log-level", true, true, set_log_level}, {"help", false, false, set_help},
    {"version", false, false, set_version},
};

enum { OPTION_COUNT = sizeof table / sizeof *table };

static const char help[] =
    "Usage: inferstatd [OPTION]...\n"
    "Collects records of inference from workers into one SQLite file and answers queries.\n"
    "\n"
    "  --listen ADDR       listen at ipc:///FOLDER or tcp://127.0.0.1:PORT; may be given\n"
    "                      several times (default: INFERSTAT_COLLECTOR, else\n"
    "                      ipc://$XDG_RUNTIME_DIR/inferstat, else ipc:///run/inferstat)\n"
    "  --db FILE           the store (default: $XDG_DATA_HOME/inferstat/inferstat.db,\n"
    "                      else ~/.local/share/inferstat/inferstat.db)\n"
    "  --config FILE       read these options from FILE, as \"key = value\" lines\n"
    "  --check-config      say whether options and file are right, and end\n"
    "  --log-level LEVEL   error, warning, info (default) or debug\n"
    "  --help              show this text\n"
    "  --version           show the version\n"
    "\n"
    "SIGTERM and SIGINT end it after what has arrived is committed.\n"
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

static enum status take_from_file(void *context, const char *key, const char *value,
                                  struct error *err)
{
    struct reading *reading = context;
    const struct option *option = find(key, strlen(key));
    if (!option || !option->in_file)
        return unknown("", key, err);
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
    if (equals && !option->has_value)
        return error_set(err, STATUS_INVALID, "--%s: takes no value", option->name);
    if (!option->has_value)
        return option->set(reading, NULL, err);
    if (!equals && *index + 1 >= argc)
        return error_set(err, STATUS_INVALID, "--%s: its value is missing", option->name);
    return option->set(reading, equals ? equals + 1 : argv[++*index], err);
}

static enum status fill_defaults(struct options *options,
                                 const struct options_environment *environment, struct error *err)
{
    enum status status = STATUS_OK;
    if (options->listen_count == 0) {
        status = address_default(&options->listen[0], environment->collector,
                                 environment->runtime_dir, err);
        options->listen_count = 1;
    }
    if (status == STATUS_OK && !options->db[0]) {
        char folder[PATH_MAX];
        options->db_is_default = true;
        status = files_data_folder(folder, sizeof folder, err);
        if (status == STATUS_OK)
            status = files_join(options->db, sizeof options->db, folder, "inferstat.db", err);
    }
    return status;
}

enum status options_read(struct options *options, int argc, char *const *argv,
                         const struct options_environment *environment, struct error *err)
{
    *options = (struct options){.log_level = LOG_LEVEL_INFO};
    struct reading reading = {.options = options};
    enum status status = STATUS_OK;
    for (int i = 1; i < argc && status == STATUS_OK; i++) {
        status = take_argument(&reading, argc, argv, &i, err);
        if (options->help || options->version)
            return STATUS_OK;
    }
    reading.from_file = true;
    if (status == STATUS_OK && options->config[0])
        status = config_read(options->config, take_from_file, &reading, err);
    if (status == STATUS_OK)
        status = fill_defaults(options, environment, err);
    return status;
}
