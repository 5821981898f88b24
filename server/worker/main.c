// inferstat-worker: runs a workload and reports every load and inference.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/core/parse.h"
#include "common/sys/log.h"
#include "server/worker/worker.h"

static const struct worker_command *const commands[] = {&command_llm, &command_encode,
                                                        &command_make_model};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static struct worker_options options;

static struct option_table global_options(void)
{
    static const struct option_line lines[] = {
        {"--collector", "ADDR", OPTION_TEXT, offsetof(struct worker_options, collector), 0, 0,
         "ipc:///FOLDER or tcp://HOST:PORT (also INFERSTAT_COLLECTOR)"},
        {"--no-report", NULL, OPTION_FLAG, offsetof(struct worker_options, no_report), 0, 0,
         "measure, but send no records"},
        {"--spool", "DIR", OPTION_TEXT, offsetof(struct worker_options, spool), 0, 0,
         "keep records there while the collector is away (also INFERSTAT_SPOOL); '': nowhere"},
        {"--spool-bytes", "N", OPTION_INTEGER, offsetof(struct worker_options, spool_bytes),
         4194304, 1099511627776.0, "at most so many bytes of them (default 268435456)"},
        {"--key", "FILE", OPTION_TEXT, offsetof(struct worker_options, key), 0, 0,
         "who we are, off this host (also INFERSTAT_KEY)"},
        {"--server-key", "KEY|FILE", OPTION_TEXT, offsetof(struct worker_options, server_key), 0, 0,
         "who the collector is (also INFERSTAT_SERVER_KEY; else known_collectors)"},
        {"--insecure", NULL, OPTION_FLAG, offsetof(struct worker_options, insecure), 0, 0,
         "send in the clear to a collector on another host"},
        {"--device", "auto|cpu|cuda[:N,...]", OPTION_TEXT, offsetof(struct worker_options, device),
         0, 0,
         "what computes (default auto); encode takes several: cuda:0,1, or cpu:0 to cpu:15, which "
         "share the processors"},
        {"--threads", "N", OPTION_INTEGER, offsetof(struct worker_options, threads), 1, 1024,
         "of cpu devices in all (default: processors allowed)"},
        {"--wait", "block|spin", OPTION_TEXT, offsetof(struct worker_options, wait), 0, 0,
         "for a device: asleep (default), or busily, which answers sooner"},
        {"--log-level", "LEVEL", OPTION_TEXT, offsetof(struct worker_options, log_level), 0, 0,
         "error, warning, info or debug (default warning)"},
        {"--help", NULL, OPTION_FLAG, offsetof(struct worker_options, help), 0, 0, "this text"},
        {"--version", NULL, OPTION_FLAG, offsetof(struct worker_options, version), 0, 0,
         "the program's version"},
    };
    return (struct option_table){lines, sizeof lines / sizeof lines[0], &options};
}

// ---- Help -----------------------------------------------------------------

static int print_help(const struct worker_command *command)
{
    struct option_table global = global_options();
    if (command) {
        struct option_table own = command->options();
        (void)printf("usage: inferstat-worker [OPTIONS] %s [OPTIONS] %s\n\n%s\n\n", command->name,
                     command->words, command->summary);
        options_help(stdout, &own);
        (void)printf("\nof every workload:\n");
    } else {
        (void)printf("usage: inferstat-worker [OPTIONS] WORKLOAD [OPTIONS]\n\n"
                     "Runs a workload and reports every load and inference.\n\nworkloads:\n");
        for (size_t i = 0; i < COMMAND_COUNT; i++)
            (void)printf("  %-26s%s\n", commands[i]->name, commands[i]->summary);
        (void)printf("\ninferstat-worker WORKLOAD --help tells more.\n\noptions:\n");
    }
    options_help(stdout, &global);
    (void)printf(
        "\nexit codes: 0 done, 1 a request or a check failed, 2 wrong usage, 3 no prompt,\n"
        "            4 a file, a device or the output cannot be used, 130 encode was stopped\n");
    return WORKER_DONE;
}

// ---- Finding the workload -------------------------------------------------

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
    if (nearest)
        return error_set(err, STATUS_INVALID, "unknown workload '%.60s' (did you mean %s?)", name,
                         nearest);
    return error_set(err, STATUS_INVALID, "unknown workload '%.60s' (see --help)", name);
}

// Reads the options of the workload and the words between them; the words move to
// the front of `arguments`.
static enum status parse_command(const struct worker_command *command, char **arguments, int count,
                                 int at, bool ended, int *words, struct error *err)
{
    const struct option_table tables[] = {command->options(), global_options()};
    *words = 0;
    while (at < count) {
        enum status status = options_parse(arguments, count, &at, tables, 2, &ended, err);
        if (status != STATUS_OK)
            return status;
        if (at < count)
            arguments[(*words)++] = arguments[at++];
    }
    return STATUS_OK;
}

static enum status open_log(struct error *err)
{
    enum log_level level = LOG_LEVEL_WARNING;
    enum status status = STATUS_OK;
    if (options.log_level)
        status = log_level_parse(&level, options.log_level, err);
    log_open("inferstat-worker", level);
    return status;
}

static enum status read_wait(struct error *err)
{
    options.spins = options.wait && strcmp(options.wait, "spin") == 0;
    if (!options.wait || options.spins || strcmp(options.wait, "block") == 0)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "--wait: '%.40s' is none of block, spin", options.wait);
}

// What was printed must have arrived: a full disk is no success.
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
    struct error err = {0};
    struct option_table global = global_options();
    (void)signal(SIGXFSZ, SIG_IGN); // a file that may grow no more fails as a full disk does
    log_open("inferstat-worker", LOG_LEVEL_WARNING);
    int at = 1;
    int words = 0;
    bool ended = false; // behind "--"
    const struct worker_command *command = NULL;
    enum status status = options_parse(argv, argc, &at, &global, 1, &ended, &err);
    if (status == STATUS_OK && at < argc) {
        command = find_command(argv[at]);
        status = command ? parse_command(command, argv, argc, at + 1, ended, &words, &err)
                         : unknown_command(argv[at], &err);
    }
    if (status == STATUS_OK)
        status = open_log(&err);
    if (status == STATUS_OK)
        status = read_wait(&err);
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
    return finish_output(command->run(&options, argv, words));
}
