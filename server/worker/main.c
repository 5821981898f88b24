// inferstat-worker: runs a workload and reports every load and inference.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "server/worker/worker.h"

static const struct worker_command *const commands[] = {
    &command_llm,      &command_encode, &command_gemm, &command_make_model,
    &command_tokenize, &command_watch,  &command_zoo};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static struct worker_options options = {.log_level = -1, .device_interval_ns = 1000000000};

#define OPTION_TARGET struct worker_options

static enum status parse_interval(void *member, const char *value, const char *what,
                                  struct error *err)
{
    int64_t *interval_ns = member;
    if (parse_duration(interval_ns, value, what, err) != STATUS_OK)
        return err->status;
    if (*interval_ns != 0 && (*interval_ns < 100000000 || *interval_ns > 3600000000000))
        return error_set(err, STATUS_INVALID, "%s: %s (0 or from 100ms to 1h)", what, value);
    return STATUS_OK;
}

static const struct option rows[] = {
    {"collector", "ADDR", "ipc:///FOLDER or tcp://HOST:PORT (also INFERSTAT_COLLECTOR)",
     TEXT_AT(collector)},
    {"collector-user", "USER",
     "user who may run the collector at ipc:// beside this user and root (also "
     "INFERSTAT_COLLECTOR_USER)",
     TEXT_AT(collector_user)},
    {"no-report", NULL, "measure, but send no records", FLAG_AT(no_report)},
    {"spool", "DIR",
     "folder for records while the collector is unreachable (also INFERSTAT_SPOOL); '': none",
     TEXT_AT(spool)},
    {"spool-bytes", "N", "maximum size of the spool in bytes (default 268435456)",
     INTEGER_AT(spool_bytes, 4194304, 1099511627776.0)},
    {"key", "FILE", "this user's key, for another host (also INFERSTAT_KEY)", TEXT_AT(key)},
    {"server-key", "KEY|FILE",
     "the collector's key (also INFERSTAT_SERVER_KEY; else known_collectors)", TEXT_AT(server_key)},
    {"insecure", NULL, "send unencrypted to a collector on another host", FLAG_AT(insecure)},
    {"device", "auto|cpu|cuda[:N,...]",
     "device (default auto); encode takes several: cuda:0,1, or cpu:0 to cpu:15, which "
     "share the processors",
     TEXT_AT(device.spec)},
    {"threads", "N", "threads of all cpu devices together (default: processors allowed)",
     UINT32_AT(device.threads, 1, 1024)},
    {"wait", "block|spin", "how host threads wait for a device: blocked (default) or spinning",
     CHOICE_AT(wait, NULL)},
    {"device-interval", "DURATION",
     "between samples of this host and its GPUs (default 1s; 0: none)",
     CUSTOM_AT(device_interval_ns, parse_interval)},
    {"log-level", "LEVEL", "error, warning, info or debug (default warning; of watch: info)",
     CHOICE_AT(log_level, log_level_name)},
    {"help", NULL, "show this text", FLAG_AT(help), .letter = 'h'},
    {"version", NULL, "show the version", FLAG_AT(version), .letter = 'V'},
};

static const struct option_table table = {
    .options = rows, .count = sizeof rows / sizeof *rows, .target = &options};

static int print_help(const struct worker_command *command)
{
    if (command) {
        (void)printf("usage: inferstat-worker [OPTIONS] %s [OPTIONS] %s\n\n%s\n\n", command->name,
                     command->words, command->summary);
        option_table_write_help(stdout, &command->options);
        (void)printf("\nof every workload:\n");
    } else {
        (void)printf(
            "usage: inferstat-worker [OPTIONS] WORKLOAD [OPTIONS]\n\n"
            "Runs a workload and reports its loads, requests and operations.\n\nworkloads:\n");
        for (size_t i = 0; i < COMMAND_COUNT; i++)
            option_write_entry(stdout, commands[i]->name, commands[i]->summary);
        (void)printf(
            "\ninferstat-worker WORKLOAD --help has the options of a workload.\n\noptions:\n");
    }
    option_table_write_help(stdout, &table);
    (void)printf(
        "\nexit codes: 0 done, 1 a request or a check failed, 2 wrong usage, 3 no prompt,\n"
        "            4 a file, a device or the output cannot be used, 130 encode, gemm, "
        "make-model\n"
        "            or zoo was stopped\n");
    return WORKER_DONE;
}

static const struct worker_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static enum status unknown_command(const char *name, struct error *err)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    const char *nearest = parse_nearest(name, names, COMMAND_COUNT);
    return error_set(err, STATUS_INVALID, "unknown workload '%.60s' (%s%s%s)", name,
                     nearest ? "did you mean " : "see --help", nearest ? nearest : "",
                     nearest ? "?" : "");
}

// Parses the command line: the program's options, the command, its options and positional
// arguments, which move to the front of `arguments`, `*words` of them.
static enum status read_arguments(const struct worker_command **command, char **arguments,
                                  int count, int *words, struct error *err)
{
    struct option_table tables[2] = {table};
    struct option_reader reader = {.program = "inferstat-worker",
                                   .words = arguments,
                                   .count = count,
                                   .tables = tables,
                                   .table_count = 1,
                                   .at = 1};
    *words = 0;
    while (reader.at < count) {
        const char *word;
        enum status status = option_reader_next(&reader, &word, err);
        if (status == STATUS_OK && word && !*command) {
            *command = find_command(word);
            if (!*command)
                return unknown_command(word, err);
            tables[0] = (*command)->options;
            tables[1] = table;
            reader.table_count = 2;
        } else if (status == STATUS_OK && word) {
            arguments[(*words)++] = arguments[reader.at - 1];
        }
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

// Fails if output could not be written, such as to a full disk.
static int finish_output(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    struct error err;
    (void)error_set(&err, STATUS_IO, "standard output: cannot write: %s",
                    errno ? strerror(errno) : "an earlier write failed");
    return worker_fail(&err);
}

int main(int argc, char **argv)
{
    files_open_standard();
    struct error err = {0};
    (void)signal(SIGXFSZ, SIG_IGN); // a file size limit is reported like a full disk
    log_open("inferstat-worker", LOG_LEVEL_WARNING);
    int words = 0;
    const struct worker_command *command = NULL;
    enum status status = read_arguments(&command, argv, argc, &words, &err);
    log_open("inferstat-worker",
             options.log_level < 0 ? LOG_LEVEL_WARNING : (enum log_level)options.log_level);
    options.device.spin = options.wait == WORKER_WAIT_SPIN;
    if (status != STATUS_OK)
        return worker_fail(&err);
    if (options.version) {
        (void)puts("inferstat-worker " INFERSTAT_VERSION);
        return finish_output(WORKER_DONE);
    }
    if (options.help)
        return finish_output(print_help(command));
    if (!command) {
        (void)error_set(&err, STATUS_INVALID, "no workload (see --help)");
        return worker_fail(&err);
    }
    struct device_list devices; // checked before a run is opened; the command parses it again
    if (device_list_parse(&devices, options.device.spec, &err) != STATUS_OK)
        return worker_fail(&err);
    return finish_output(command->run(&options, argv, words));
}
