#include "client/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/args/query_line.h"
#include "common/core/base/parse.h"
#include "common/sys/clock.h"

// Sets of options, as lists.
#define KEYS     OPTION_COLLECTOR_USER, OPTION_KEY, OPTION_SERVER_KEY, OPTION_INSECURE
#define OWNER    OPTION_COLLECTOR, OPTION_TIMEOUT, KEYS
#define SOURCE   OWNER, OPTION_DB
#define WINDOW   OPTION_SINCE, OPTION_UNTIL
#define PLACES   OPTION_MODEL, OPTION_HOST, OPTION_DEVICE, OPTION_RUN
#define SETTINGS OPTION_WORKLOAD, OPTION_SYNC, OPTION_CHUNK_BYTES, OPTION_POOL_SIZE, OPTION_SOURCE
#define CLASSES  OPTION_OPERATION, OPTION_STATUS, SETTINGS
#define NAMES    PLACES, CLASSES, OPTION_STAGE
#define FILTERS  NAMES, WINDOW
#define ROWS     OPTION_JSON, OPTION_CSV, OPTION_WIDE, OPTION_FIELDS, OPTION_WATCH
#define LISTING  SOURCE, OPTION_HOST, OPTION_RUN, WINDOW, ROWS, OPTION_LIMIT, OPTION_OLDEST
#define ALWAYS   OPTION_HELP, OPTION_VERSION, OPTION_NO_COLOR, OPTION_UTC, OPTION_COUNT

#define TAKES(...)                                                                                 \
    (const enum cli_option[])                                                                      \
    {                                                                                              \
        __VA_ARGS__, ALWAYS                                                                        \
    }

// What a command's usage shows of its arguments, and how many it takes.
#define ARGUMENTS(text, min, max) .arguments = text, .arguments_min = min, .arguments_max = max

#define LISTED                                                                                     \
    "Newest first.  Tables show the 20 newest; --json and --csv print all, --limit N the "         \
    "N\nnewest."

const struct cli_command cli_commands[] = {
    {
        .name = "top",
        .summary = "the dashboard (also without any command, on a terminal)",
        .options = TAKES(SOURCE, PLACES, WINDOW, OPTION_INTERVAL, OPTION_ASCII, OPTION_NO_MOUSE,
                         OPTION_READONLY, OPTION_COMPACT),
        .run = command_top,
    },
    {
        .name = "now",
        .summary = "the state of each model on each host now, since when, and why",
        .details =
            "States: down, silent, errors, slow (than usual for the model and host at this hour),\n"
            "loading, ok, idle, ended; inferstat(1) explains them.  The figures are those of the\n"
            "last 5 minutes, or with --since 1m, --since 1h, ... of that time.  --by model or host "
            "puts\n"
            "a row with all requests before the rows of each model with several hosts, or the "
            "reverse.",
        .options = TAKES(SOURCE, OPTION_MODEL, OPTION_HOST, OPTION_SINCE, ROWS, OPTION_BY),
        .run = command_now,
    },
    {
        .name = "why",
        .summary = "why requests are slower than usual: causes, the most important first",
        .details =
            "Sets the requests of the last 10 minutes, or with --since 1m, --since 1h, ... of "
            "that\n"
            "time, against the usual ones of the same model, host and device, and splits the\n"
            "difference; below each cause is the command that shows it.  inferstat(1) explains "
            "the\ncauses.",
        .options = TAKES(SOURCE, OPTION_MODEL, OPTION_HOST, OPTION_SINCE, ROWS),
        .run = command_why,
    },
    {
        .name = "summary",
        .summary = "key figures, the last load by stage, and losses",
        .details = "--line prints one short line instead, for tmux and other status bars.",
        .options = TAKES(SOURCE, PLACES, CLASSES, WINDOW, ROWS, OPTION_LINE),
        .run = command_summary,
    },
    {
        .name = "avg",
        ARGUMENTS("METRIC", 1, 1),
        .summary = "count, mean, extremes and quantiles of a metric, with coverage",
        .details =
            "METRIC is a name from \"inferstat metrics\", such as ttft_ns or "
            "load.duration_ns.\nRates have two averages: mean (of the requests) and "
            "total/total (all tokens / all time).\ngoodput_per_second: mean is the number of good "
            "requests per second, met their share.",
        .options = TAKES(SOURCE, FILTERS, ROWS, OPTION_BY, OPTION_LIMIT, OPTION_STEP, OPTION_SLO),
        .run = command_average,
    },
    {
        .name = "query",
        ARGUMENTS("[TEXT|NAME]", 0, CLI_ARGUMENTS_MAX),
        .summary = "run a line of the query language",
        .details = "TEXT is a query such as \"avg ttft_ns by model,host where host=a since 1h step "
                   "5m\" or\n"
                   "\"inferences where model='x y' limit 10\"; inferstat(1) describes the "
                   "language.  NAME is\na named query of ~/.config/inferstat/queries, whose lines "
                   "are NAME = "
                   "TEXT; without an\nargument the names are listed.",
        .options = TAKES(SOURCE, ROWS),
        .run = command_query,
    },
    {
        .name = "loads",
        ARGUMENTS("[--compare A B]", 0, 2),
        .summary = "model loads, each with its stages as a waterfall",
        .details = LISTED
        "  --average shows one waterfall per model and device (or --by LIST):\n"
        "mean, median, maximum and share of each stage, cold and warm loads separately.\n"
        "--compare A B shows two of these side by side.  A and B are a run, or conditions of\n"
        "the query language: \"host=a\" \"host=b\", \"since 1d\" \"since 8d until 7d\".",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, OPTION_AVERAGE,
                         OPTION_COMPARE, OPTION_BY),
        .run = command_loads,
    },
    {
        .name = "inferences",
        .summary = "requests, newest first",
        .details = LISTED
        "  --slowest N shows the slowest ones (or the worst by --metric, a duration or\n"
        "a rate), each compared with the median of its model and device, and the excess\n"
        "attributed to phases, to more work, and to concurrent events: inferstat-latency(7).",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, OPTION_SLOWEST,
                         OPTION_METRIC),
        .run = command_list,
    },
    {
        .name = "operations",
        .summary = "timed operations",
        .details = LISTED,
        .options = TAKES(LISTING, OPTION_DEVICE, OPTION_OPERATION),
        .run = command_list,
    },
    {
        .name = "pipelines",
        .summary = "runs of the streaming copy/compute pipeline",
        .details =
            "Newest first.  overlap: time copy and compute ran concurrently / the shorter of "
            "the two.\n"
            "exposed copy: time copies ran and no kernel did.  copy starved: time no copy "
            "ran because\n"
            "no filled slot was ready, although there was input.  pool waits: share of slot "
            "acquisitions\n"
            "that had to wait, high by nature where copies are the bottleneck.  Tables show "
            "the 20\n"
            "newest; --json and --csv print all, --limit N the N newest.",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, SETTINGS),
        .run = command_list,
    },
    {
        .name = "devices",
        .verb = "health",
        .summary = "devices now: use, memory, temperature, power, clocks, PCIe, trouble",
        .details =
            "Figures are those of the newest sample: util is the share of time in which a kernel "
            "ran;\nmemory, temperature, power and clock are followed by their limits; PCIe is the "
            "link's\ngeneration and lanes, with ! below its best.  With --since or --until: means "
            "and extremes\nof that time.  inferstat-worker watch samples devices, also for other "
            "engines.",
        .options = TAKES(SOURCE, OPTION_HOST, OPTION_DEVICE, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_devices,
    },
    {
        .name = "hosts",
        .summary = "hosts now: processor, memory, pressure, disk, network, trouble",
        .details = "Pressure is the share of time in which some task waited.  With --since or "
                   "--until: means and\nextremes of that time.",
        .options = TAKES(SOURCE, OPTION_HOST, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_hosts,
    },
    {
        .name = "events",
        .summary = "trouble of devices and hosts, and what it cost in speed, tokens and energy",
        .details =
            "Newest first: throttling, XID errors, PCIe below its best, ECC errors, memory "
            "pressure,\nother processes on the device.  Below an event: each model's requests "
            "while it lasted,\ncompared with those of the hour before and after, with a 99 % "
            "interval.",
        .options = TAKES(SOURCE, PLACES, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_events,
    },
    {
        .name = "samples",
        ARGUMENTS("[process|device|host]", 0, 1),
        .summary = "samples of processes (requests in progress, memory), devices or hosts",
        .details = LISTED "  Of processes without an argument:\n--run or --host shows one, --model "
                          "one model's requests.",
        .options = TAKES(OPTION_MODEL, OPTION_DEVICE, LISTING),
        .run = command_list,
    },
    {
        .name = "runs",
        .summary = "worker processes: how each ended, records produced and lost",
        .details = LISTED "  --model and --device show the processes that used them.",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE),
        .run = command_list,
    },
    {
        .name = "metrics",
        .summary = "all metrics of avg: kind, unit, meaning",
        .details = "--columns lists the columns of every kind of record with their numbers on the "
                   "wire.",
        .options = TAKES(ROWS, OPTION_COLUMNS),
        .run = command_metrics,
    },
    {
        .name = "errors",
        .summary = "why requests, loads and operations failed: counts by text",
        .details =
            "Texts count together if they differ only in numbers and ids, which are shown as #.\n"
            "Most failures first: the 100 most frequent texts, or --limit N (at most 1000); the\n"
            "rest is counted as other.",
        .options = TAKES(SOURCE, PLACES, OPTION_OPERATION, WINDOW, ROWS, OPTION_BY, OPTION_LIMIT),
        .run = command_errors,
    },
    {
        .name = "fleet",
        ARGUMENTS("[METRIC]", 0, 1),
        .summary = "hosts that differ from others with the same model and device, and why",
        .details =
            "Compares each host's median of decode and prefill speed, TTFT and load speed (or of\n"
            "METRIC) with those of 2 or more others.  A host stands out if it differs by more "
            "than\n"
            "3 % and four spreads (deviations of the usual hosts).  --check exits with status 1\n"
            "where one is worse, 5 where nothing can be compared.",
        .options = TAKES(SOURCE, PLACES, WINDOW, ROWS, OPTION_LIMIT, OPTION_CHECK),
        .run = command_fleet,
    },
    {
        .name = "alerts",
        ARGUMENTS("[ack|unack ID|silence [RULE]|unsilence ID|silences|trouble|rules [FILE]]", 0, 2),
        .summary = "alerts that are pending or fire, and why; acknowledge, silence, check rules",
        .details =
            "--history lists all that fired, the newest first.  --check exits with status 1 while\n"
            "one fires that is not silenced.  ack ID notes who looks after an alert, and why\n"
            "(--text).  silence [RULE] --for 2h calls no hooks for the alerts of the rule, model,\n"
            "host and device; --all for all.  trouble lists rules that cannot be read, hooks that\n"
            "fail, and a file that is wrong.  rules lists the built-in rules; rules --check FILE\n"
            "checks a file of rules and hooks, and with --db or --collector counts the groups for\n"
            "which each rule holds now.  inferstatd-alerts(5) describes rules.",
        .options =
            TAKES(SOURCE, OPTION_MODEL, OPTION_HOST, OPTION_DEVICE, WINDOW, ROWS, OPTION_LIMIT,
                  OPTION_CHECK, OPTION_HISTORY, OPTION_ALL, OPTION_FOR, OPTION_REASON),
        .run = command_alerts,
    },
    {
        .name = "baseline",
        ARGUMENTS("save NAME|list|delete NAME", 1, 2),
        .summary = "samples kept for comparison, with their environment",
        .details =
            "save keeps up to 10,000 values of each metric, model and device that the filters\n"
            "cover, evenly chosen in order of time, and the environment: versions, driver,\n"
            "device, clocks, PCIe, model digest, quantisation.  --force replaces a baseline of\n"
            "that name.  NAME has 1 to 63 of a-z A-Z 0-9 . _ -",
        .options = TAKES(SOURCE, PLACES, OPTION_OPERATION, SETTINGS, WINDOW, ROWS, OPTION_FORCE),
        .run = command_baseline,
    },
    {
        .name = "compare",
        ARGUMENTS("[BEFORE AFTER]", 0, 2),
        .summary = "compare two baselines, a baseline with current records, or two models",
        .details =
            "compare BEFORE AFTER, or compare --against BEFORE with filters, or compare\n"
            "--models A,B: model B with model A, on the same device.  Each metric,\n"
            "model and device has the ratio of its medians with a 99 % interval and a verdict:\n"
            "BETTER or WORSE if the whole interval is outside the margin (--margin, 1 % by\n"
            "default), SAME if all of it is inside, else UNDECIDED.  Different environments are\n"
            "rejected without --force.  The exit status is 1 if one is worse, else 5 if one is\n"
            "undecided that had enough values (80 requests, 10 loads) or none had, else 0.\n"
            "inferstat-compare(7) explains the interval.",
        .options =
            TAKES(SOURCE, PLACES, OPTION_OPERATION, SETTINGS, WINDOW, ROWS, OPTION_AGAINST,
                  OPTION_MODELS, OPTION_METRIC, OPTION_MARGIN, OPTION_MARKDOWN, OPTION_FORCE),
        .run = command_compare,
    },
    {
        .name = "tail",
        ARGUMENTS("[KIND]...", 0, CLI_ARGUMENTS_MAX),
        .summary = "records as they arrive, one line each, until interrupted",
        .details = "KIND is a kind of record (inference, load, ...; \"inferstat metrics "
                   "--columns\" lists them).\n--json prints JSON Lines.  --limit N exits after "
                   "N records.",
        .options = TAKES(SOURCE, NAMES, OPTION_JSON, OPTION_LIMIT),
        .run = command_tail,
    },
    {
        .name = "export",
        ARGUMENTS("[KIND]...", 0, CLI_ARGUMENTS_MAX),
        .summary = "all records, oldest first, as CSV, JSON or JSON Lines",
        .details = "Without KIND all kinds are written, one after the other; a CSV holds one kind.",
        .options = TAKES(SOURCE, FILTERS, ROWS, OPTION_FORMAT, OPTION_OUTPUT, OPTION_LIMIT,
                         OPTION_QUERY, OPTION_BUNDLE),
        .run = command_export,
    },
    {
        .name = "backup",
        ARGUMENTS("FILE", 1, 1),
        .summary = "copy the whole store, also while the collector writes to it",
        .details = "FILE is on the collector's host and must not exist.  The copy is checked.",
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_backup,
    },
    {
        .name = "restore",
        ARGUMENTS("BACKUP", 1, 1),
        .summary = "put a backup in the place of a store file (--db), which is kept",
        .details =
            "No collector may have the store open.  The copy is checked first.  The earlier\n"
            "file becomes FILE.before-TIME.",
        .options = TAKES(OPTION_DB, OPTION_JSON),
        .run = command_restore,
    },
    {
        .name = "import",
        ARGUMENTS("FILE", 1, 1),
        .summary = "add the records of a bundle, a backup, or llama-bench -o json",
        .details = "FILE is on the collector's host.  Existing runs stay as they are, or get the "
                   "records\nthey lack.  Importing again completes an interrupted import.",
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_import,
    },
    {
        .name = "audit",
        .summary = "recount every record against the ledger, run by run",
        .details = "Reads the whole store.  A run's verdict is balanced, unbalanced (with the\n"
                   "findings), open (records in flight) or unknown (silent or down).  The exit\n"
                   "status is 1 if one is unbalanced.  Tables show all runs that do not balance,\n"
                   "and the 20 newest of the others.\n"
                   "--admin lists instead what administrators did and what retention deleted, the\n"
                   "newest first: for the owner of the collector.",
        .options = TAKES(SOURCE, OPTION_RUN, OPTION_HOST, WINDOW, ROWS, OPTION_ADMIN),
        .run = command_audit,
    },
    {
        .name = "spool",
        ARGUMENTS("list|flush", 1, 1),
        .summary = "records on this host that wait for their collector: list or send them",
        .details =
            "list shows the records that dead runs of this user left here, and the spools of\n"
            "live ones.  flush sends those of dead runs to the collector of each, or to\n"
            "--collector, and removes them; the exit status is 4 if records remain.  A spool\n"
            "whose run file is missing although the host was not rebooted may belong to\n"
            "another container and is kept; --force sends it.",
        .options = TAKES(OPTION_COLLECTOR, KEYS, OPTION_SPOOL, OPTION_FORCE, ROWS),
        .run = command_spool,
    },
    {
        .name = "clear",
        .summary = "delete records (all, or those the filters cover); runs and ledgers stay",
        .options = TAKES(SOURCE, FILTERS, OPTION_YES, OPTION_JSON),
        .run = command_clear,
    },
    {
        .name = "forget",
        .summary = "remove a run, or all runs of a key, with their records",
        .details =
            "For what a liar reported.  --run takes a whole UUID; --key is here the key whose\n"
            "runs go, or its name, or user:NUMBER for the runs of a user over ipc.  Nothing\n"
            "more of these runs is accepted.  What they reported stays as sums: see\n"
            "inferstat audit.",
        .options = TAKES(SOURCE, OPTION_RUN, OPTION_YES, OPTION_JSON),
        .run = command_forget,
    },
    {
        .name = "ping",
        .summary = "check that the collector answers; its round trip and store",
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_ping,
    },
    {
        .name = "keygen",
        ARGUMENTS("[FILE]", 0, 1),
        .summary = "create a key, for this user or (--server) for a collector",
        .details = "Without FILE: key, or server.key, in ~/.config/inferstat.  The public key is\n"
                   "in FILE.pub.",
        .options = TAKES(OPTION_SERVER, OPTION_FORCE, OPTION_JSON),
        .run = command_keygen,
    },
    {
        .name = "trust",
        ARGUMENTS("ADDRESS KEY", 2, 2),
        .summary = "trust a collector's public key (or the file of it) over TCP",
        .details = "Adds a line to ~/.config/inferstat/known_collectors.  A collector may have\n"
                   "several keys while its key is changed; --force makes this its only one.",
        .options = TAKES(OPTION_FORCE),
        .run = command_trust,
    },
    {
        .name = "authorize",
        ARGUMENTS("KEY", 1, 1),
        .summary = "let a public key (or the file of one) connect to the collector over TCP",
        .details = "For the owner of the collector, or over TCP for a key with the role admin.  A\n"
                   "producer reports, a reader queries, an admin may do everything.  The new key\n"
                   "continues the runs of the key that it replaces.",
        .options = TAKES(OWNER, OPTION_ROLE, OPTION_NAME, OPTION_REPLACES, OPTION_EXPIRES, ROWS),
        .run = command_authorize,
    },
    {
        .name = "revoke",
        ARGUMENTS("KEY", 1, 1),
        .summary = "remove an authorized key, given as key or name",
        .details = "Its open connections are closed within seconds.",
        .options = TAKES(OWNER, ROWS),
        .run = command_revoke,
    },
    {
        .name = "keys",
        .summary = "the keys that may connect to the collector, with their roles",
        .options = TAKES(OWNER, ROWS),
        .run = command_keys,
    },
    {
        .name = "completion",
        ARGUMENTS("bash|zsh|fish", 1, 1),
        .summary = "print the completion script of a shell",
        .options = (const enum cli_option[]){ALWAYS},
        .run = command_completion,
    },
    {
        .name = "help",
        ARGUMENTS("[COMMAND]", 0, 1),
        .summary = "show help, or that of one command",
        .options = (const enum cli_option[]){ALWAYS},
        .run = command_help,
    },
    {0},
};

enum { COMMAND_COUNT = sizeof cli_commands / sizeof *cli_commands - 1 };

enum status cli_command_find(const struct cli_command **out, const char *name, struct error *err)
{
    const char *names[COMMAND_COUNT];
    for (unsigned i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(cli_commands[i].name, name) == 0) {
            *out = &cli_commands[i];
            return STATUS_OK;
        }
        names[i] = cli_commands[i].name;
    }
    const char *nearest = parse_nearest(name, names, COMMAND_COUNT);
    return error_set(err, STATUS_INVALID, "%s: unknown command (%s%s%s)", name,
                     nearest ? "did you mean " : "see inferstat --help", nearest ? nearest : "",
                     nearest ? "?" : "");
}

// ---- Running ----------------------------------------------------------------------

static enum status check_arguments(const struct cli *cli, struct error *err)
{
    const struct cli_command *command = cli->command;
    unsigned count = cli->options.argument_count;
    if (count < command->arguments_min)
        return error_set(err, STATUS_INVALID, "%s: %s is missing (see inferstat %s --help)",
                         command->name, command->arguments, command->name);
    if (count > command->arguments_max)
        return error_set(err, STATUS_INVALID, "%s: unexpected argument '%s'", command->name,
                         cli->options.arguments[command->arguments_max]);
    return STATUS_OK;
}

// Without a command it is the dashboard on a terminal.
static enum status run_command(struct cli *cli, struct error *err)
{
    const char *name = cli->options.command;
    if (!name && !(cli->env.in_is_terminal && cli->env.out_is_terminal))
        return error_set(err, STATUS_INVALID,
                         "no command, and no terminal for the dashboard (see inferstat --help)");
    enum status status = cli_command_find(&cli->command, name ? name : "top", err);
    if (status == STATUS_OK)
        status = options_check(&cli->options, cli->command->options, cli->command->name, err);
    if (status == STATUS_OK)
        status = check_arguments(cli, err);
    if (status == STATUS_OK)
        status = query_line_read(cli, err);
    return status == STATUS_OK ? cli->command->run(cli, err) : status;
}

// True of what may be otherwise the next time: also a check that said no.
static bool status_can_pass(enum status status)
{
    const int code = cli_exit_code(status);
    return code != 2;
}

static void note_failure(const struct cli *cli, enum status status, const struct error *err)
{
    if (cli_exit_code(status) != 0)
        (void)fprintf(cli->env.out, "%s\n", err->text);
}

// Waits for the next time, and clears the screen of a terminal.
static void wait_watch(const struct cli *cli)
{
    const struct timespec time = {.tv_sec = (time_t)(cli->options.watch_ns / 1000000000),
                                  .tv_nsec = (long)(cli->options.watch_ns % 1000000000)};
    (void)fflush(cli->env.out);
    (void)nanosleep(&time, NULL);
    if (cli->env.out_is_terminal)
        (void)fputs("\033[H\033[2J\033[3J", cli->env.out);
}

enum status cli_run(const struct cli_environment *env, int argc, char *const *argv,
                    struct error *err)
{
    struct cli cli = {.env = *env};
    enum status status = options_parse(&cli.options, argc, argv, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(&cli.options, OPTION_HELP))
        return cli_show_help(&cli, cli.options.command, err);
    if (option_given(&cli.options, OPTION_VERSION)) {
        (void)fprintf(env->out, "inferstat %s\n", INFERSTAT_VERSION);
        return STATUS_OK;
    }
    if (option_given(&cli.options, OPTION_UTC)) {
        (void)setenv("TZ", "UTC", 1);
        tzset();
    }
    status = run_command(&cli, err);
    remote_close(cli.remote);
    while (cli.options.watch_ns > 0 && status_can_pass(status)) {
        note_failure(&cli, status, err);
        wait_watch(&cli);
        cli = (struct cli){.env = *env, .options = cli.options};
        cli.env.now_ns = clock_wall_ns();
        status = run_command(&cli, err);
        remote_close(cli.remote);
    }
    return status;
}
