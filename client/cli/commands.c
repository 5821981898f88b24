#include "client/cli/cli.h"

#include <string.h>

#include "common/core/base/parse.h"

// Sets of options, as lists.
#define KEYS    OPTION_KEY, OPTION_SERVER_KEY, OPTION_INSECURE
#define OWNER   OPTION_COLLECTOR, OPTION_TIMEOUT, KEYS
#define SOURCE  OWNER, OPTION_DB
#define WINDOW  OPTION_SINCE, OPTION_UNTIL
#define PLACES  OPTION_MODEL, OPTION_HOST, OPTION_DEVICE, OPTION_RUN
#define CLASSES OPTION_OPERATION, OPTION_WORKLOAD, OPTION_STATUS
#define NAMES   PLACES, CLASSES, OPTION_STAGE
#define FILTERS NAMES, WINDOW
#define ROWS    OPTION_JSON, OPTION_CSV
#define LISTING SOURCE, OPTION_HOST, OPTION_RUN, WINDOW, ROWS, OPTION_LIMIT, OPTION_OLDEST
#define ALWAYS  OPTION_HELP, OPTION_VERSION, OPTION_NO_COLOR, OPTION_COUNT

#define TAKES(...)                                                                                 \
    (const enum cli_option[])                                                                      \
    {                                                                                              \
        __VA_ARGS__, ALWAYS                                                                        \
    }

static const char listing_details[] =
    "Newest first.  People see the 20 newest; --json and --csv give all, --limit N the N newest.";

static const struct cli_command commands[] = {
    {
        .name = "top",
        .arguments = "",
        .summary = "the dashboard (also without any command, on a terminal)",
        .options = TAKES(SOURCE, PLACES, OPTION_SINCE, OPTION_UNTIL, OPTION_INTERVAL, OPTION_ASCII,
                         OPTION_NO_MOUSE, OPTION_READONLY),
        .run = command_top,
    },
    {
        .name = "summary",
        .arguments = "",
        .summary = "the key figures at a glance, the last load by stage, and what was lost",
        .details = "--line prints one short line instead, for tmux and other status bars.",
        .options = TAKES(SOURCE, PLACES, CLASSES, WINDOW, ROWS, OPTION_LINE),
        .run = command_summary,
    },
    {
        .name = "avg",
        .arguments = "METRIC",
        .summary = "a metric's count, mean, extremes and quantiles, with what they cover",
        .details = "METRIC is a name from \"inferstat metrics\", such as ttft_ns or "
                   "load.duration_ns.\nRates have two averages: mean (of the requests) and "
                   "total/total (all tokens / all time).\nOf goodput_per_second mean is the good "
                   "requests by time, and met their share of all.",
        .options = TAKES(SOURCE, FILTERS, ROWS, OPTION_BY, OPTION_LIMIT, OPTION_STEP, OPTION_SLO),
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_average,
    },
    {
        .name = "query",
        .arguments = "[TEXT|NAME]",
        .summary = "what a line of the query language asks, as the matching command shows it",
        .details =
            "TEXT is such as \"avg ttft_ns by model,host where host=a since 1h step 5m\" or\n"
            "\"inferences where model='x y' limit 10\"; inferstat(1) has the language.  NAME is "
            "one\n"
            "of ~/.config/inferstat/queries, whose lines are NAME = TEXT; without it, the names.",
        .options = TAKES(SOURCE, ROWS),
        .arguments_max = CLI_ARGUMENTS_MAX,
        .run = command_query,
    },
    {
        .name = "loads",
        .arguments = "[--compare A B]",
        .summary = "model loads, each with its stages as a waterfall",
        .details =
            "Newest first.  People see the 20 newest; --json and --csv give all, --limit N the N\n"
            "newest.  --average shows one waterfall a model and device (or --by LIST) instead:\n"
            "mean, median, longest and share of each stage, cold and warm loads apart.\n"
            "--compare A B sets two of these side by side.  A and B are a run, or conditions as\n"
            "\"inferstat query\" has them: \"host=a\" \"host=b\", \"since 1d\" \"since 8d until "
            "7d\".",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, OPTION_AVERAGE,
                         OPTION_COMPARE, OPTION_BY),
        .arguments_max = 2,
        .run = command_loads,
    },
    {
        .name = "inferences",
        .arguments = "",
        .summary = "requests answered",
        .details =
            "Newest first.  People see the 20 newest; --json and --csv give all, --limit N the N\n"
            "newest.  --slowest N shows those that took longest (or are worst by --metric, a time\n"
            "or a rate), each beside the median of its model and device: what it took more, by\n"
            "phase, by more work, and by what was going on at the time.",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, OPTION_SLOWEST,
                         OPTION_METRIC),
        .run = command_list,
    },
    {
        .name = "operations",
        .arguments = "",
        .summary = "timed operations",
        .details = listing_details,
        .options = TAKES(LISTING, OPTION_DEVICE, OPTION_OPERATION),
        .run = command_list,
    },
    {
        .name = "pipelines",
        .arguments = "",
        .summary = "runs of the streaming copy/compute pipeline",
        .details = "Newest first: of what workload and model, with how many items in a batch, and "
                   "how fast.\n"
                   "overlap: time copy and compute ran at once / the shorter of the two.  exposed "
                   "copy: time\n"
                   "copies ran and no kernel did.  copy starved: time no copy ran for want of a "
                   "filled slot,\n"
                   "though there were slots to fill.  pool waits: acquires of a slot that had to "
                   "wait, high\n"
                   "by nature where copies are the bottleneck.  People see the 20 newest; --json "
                   "and --csv\n"
                   "give all, --limit N the N newest.",
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_WORKLOAD, OPTION_STATUS),
        .run = command_list,
    },
    {
        .name = "devices",
        .arguments = "",
        .summary = "devices that runs have used",
        .details = listing_details,
        .options = TAKES(LISTING, OPTION_DEVICE),
        .run = command_list,
    },
    {
        .name = "runs",
        .arguments = "",
        .summary = "worker processes: how each ended, what it produced and what was lost",
        .details = listing_details,
        .options = TAKES(LISTING),
        .run = command_runs,
    },
    {
        .name = "metrics",
        .arguments = "",
        .summary = "every metric that avg knows: kind, unit, meaning",
        .details = "--columns lists the columns of every kind of record with their numbers on the "
                   "wire.",
        .options = TAKES(ROWS, OPTION_COLUMNS),
        .run = command_metrics,
    },
    {
        .name = "fleet",
        .arguments = "[METRIC]",
        .summary = "hosts that stand out among those with the same model and device, and why",
        .details =
            "Compares each host's median of decode and prefill speed, TTFT and load speed (or of\n"
            "METRIC) with those of 2 or more others.  One stands out that is over 3.5 spreads\n"
            "(of the median absolute deviation) and 3 % from their median.  --check ends with\n"
            "status 1 where one is worse, 5 where nothing can be compared.",
        .options =
            TAKES(SOURCE, PLACES, OPTION_SINCE, OPTION_UNTIL, ROWS, OPTION_LIMIT, OPTION_CHECK),
        .arguments_max = 1,
        .run = command_fleet,
    },
    {
        .name = "baseline",
        .arguments = "save NAME|list|delete NAME",
        .summary = "samples kept to compare with, and what they were measured on",
        .details =
            "save keeps up to 10,000 values of each metric, model and device that the filters\n"
            "cover, evenly chosen in order of time, and the fingerprint: versions, driver,\n"
            "device, clocks, PCIe, model digest, quantisation.  --force replaces a baseline of\n"
            "that name.  NAME has 1 to 63 of a-z A-Z 0-9 . _ -",
        .options =
            TAKES(SOURCE, PLACES, OPTION_OPERATION, OPTION_SINCE, OPTION_UNTIL, ROWS, OPTION_FORCE),
        .arguments_min = 1,
        .arguments_max = 2,
        .run = command_baseline,
    },
    {
        .name = "compare",
        .arguments = "[BEFORE AFTER]",
        .summary = "two baselines, or one and what the filters cover: what is better, or worse",
        .details =
            "compare BEFORE AFTER, or compare --against BEFORE with filters.  Each metric,\n"
            "model and device has the ratio of its medians with a 99 % interval, made for\n"
            "requests that are like their neighbours, and a verdict: BETTER or WORSE where the\n"
            "whole interval is beyond the margin (1 % unless --margin says more), SAME where all\n"
            "of it is within, else UNDECIDED.  Unlike fingerprints are refused without --force.\n"
            "The exit status is 1 where one is worse, else 5 where one is undecided that had\n"
            "values enough (80 requests, 10 loads) or none had, else 0.",
        .options =
            TAKES(SOURCE, PLACES, OPTION_OPERATION, OPTION_SINCE, OPTION_UNTIL, ROWS,
                  OPTION_AGAINST, OPTION_METRIC, OPTION_MARGIN, OPTION_MARKDOWN, OPTION_FORCE),
        .arguments_max = 2,
        .run = command_compare,
    },
    {
        .name = "tail",
        .arguments = "[KIND]...",
        .summary = "records as they come in, one line each, until interrupted",
        .details = "KIND is a kind of record (inference, load, ...; \"inferstat metrics "
                   "--columns\" lists them).\n--json prints JSON Lines.  --limit N ends after N "
                   "records.",
        .options = TAKES(SOURCE, NAMES, OPTION_JSON, OPTION_LIMIT),
        .arguments_max = CLI_ARGUMENTS_MAX,
        .run = command_tail,
    },
    {
        .name = "export",
        .arguments = "[KIND]...",
        .summary = "all records, oldest first, as CSV, JSON or JSON Lines",
        .details = "Without KIND every kind is written, one after the other; a CSV holds one.",
        .options = TAKES(SOURCE, FILTERS, ROWS, OPTION_FORMAT, OPTION_OUTPUT, OPTION_LIMIT,
                         OPTION_QUERY, OPTION_BUNDLE),
        .arguments_max = CLI_ARGUMENTS_MAX,
        .run = command_export,
    },
    {
        .name = "backup",
        .arguments = "FILE",
        .summary = "copy the whole store, also while the collector writes to it",
        .details = "FILE is on the collector's host and must not be there yet.  The copy is "
                   "checked.",
        .options = TAKES(SOURCE, OPTION_JSON),
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_backup,
    },
    {
        .name = "import",
        .arguments = "FILE",
        .summary = "bring in a bundle, a backup, or what llama-bench -o json wrote",
        .details = "FILE is on the collector's host.  Runs that are there already are left alone, "
                   "or given\nwhat they lack; an import that was cut short is completed by doing "
                   "it again.",
        .options = TAKES(SOURCE, OPTION_JSON),
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_import,
    },
    {
        .name = "audit",
        .arguments = "",
        .summary = "recount every record against the ledger, run by run",
        .details =
            "Reads the whole store.  A run's verdict is balanced, unbalanced (with what was\n"
            "found), open (it may still come right) or unknown (silent).  The exit status\n"
            "is 1 where one is unbalanced.  People see all runs but those that balance, and\n"
            "the 20 newest of these.",
        .options = TAKES(SOURCE, OPTION_RUN, OPTION_HOST, OPTION_SINCE, OPTION_UNTIL, ROWS),
        .run = command_audit,
    },
    {
        .name = "spool",
        .arguments = "list|flush",
        .summary = "records that wait on this host for their collector: show or send them",
        .details =
            "list shows what runs of this user have left here, and what living ones have\n"
            "spooled.  flush sends what the dead ones left to the collector of each, or to\n"
            "that of --collector, and removes it; the exit status is 4 where something is\n"
            "left.  A spool whose run file is not here although the host has been up since,\n"
            "as in another container, is left to who sees both; --force sends it without.",
        .options = TAKES(OPTION_COLLECTOR, KEYS, OPTION_SPOOL, OPTION_FORCE, ROWS),
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_spool,
    },
    {
        .name = "clear",
        .arguments = "",
        .summary = "forget records (all, or those the filters cover); runs and ledgers stay",
        .options = TAKES(SOURCE, FILTERS, OPTION_YES, OPTION_JSON),
        .run = command_clear,
    },
    {
        .name = "ping",
        .arguments = "",
        .summary = "whether the collector answers, how fast, and which store it keeps",
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_ping,
    },
    {
        .name = "keygen",
        .arguments = "[FILE]",
        .summary = "make a key, for this user or (--server) for a collector",
        .details =
            "Without FILE: key, or server.key, in ~/.config/inferstat.  The public key lies\n"
            "in FILE.pub.",
        .options = TAKES(OPTION_SERVER, OPTION_FORCE, OPTION_JSON),
        .arguments_max = 1,
        .run = command_keygen,
    },
    {
        .name = "trust",
        .arguments = "ADDRESS KEY",
        .summary = "know a collector over TCP by its public key (or the file of it)",
        .details = "Writes the line into ~/.config/inferstat/known_collectors.  A collector may\n"
                   "have several keys while its key is changed; --force makes this its only one.",
        .options = TAKES(OPTION_FORCE),
        .arguments_min = 2,
        .arguments_max = 2,
        .run = command_trust,
    },
    {
        .name = "authorize",
        .arguments = "KEY",
        .summary = "let a public key (or the file of one) connect to the collector over TCP",
        .details =
            "For the owner of the collector, or over TCP for a key with the role admin.  A\n"
            "producer reports, a reader asks, an admin does all.  The runs of a key that is\n"
            "replaced go on under the new one.",
        .options = TAKES(OWNER, OPTION_ROLE, OPTION_NAME, OPTION_REPLACES, ROWS),
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_authorize,
    },
    {
        .name = "revoke",
        .arguments = "KEY",
        .summary = "let a key (or the one of that name) connect no longer",
        .details = "What it has open is closed within seconds.",
        .options = TAKES(OWNER, ROWS),
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_revoke,
    },
    {
        .name = "keys",
        .arguments = "",
        .summary = "the keys that may connect to the collector, and what for",
        .options = TAKES(OWNER, ROWS),
        .run = command_keys,
    },
    {
        .name = "completion",
        .arguments = "bash|zsh|fish",
        .summary = "print the completion script of a shell",
        .options = (const enum cli_option[]){ALWAYS},
        .arguments_min = 1,
        .arguments_max = 1,
        .run = command_completion,
    },
    {
        .name = "help",
        .arguments = "[COMMAND]",
        .summary = "show help, also of one command",
        .options = (const enum cli_option[]){ALWAYS},
        .arguments_max = 1,
        .run = command_help,
    },
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

const struct cli_command *cli_commands(unsigned *count)
{
    *count = COMMAND_COUNT;
    return commands;
}

enum status cli_command_find(const struct cli_command **out, const char *name, struct error *err)
{
    const char *names[COMMAND_COUNT];
    for (unsigned i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            *out = &commands[i];
            return STATUS_OK;
        }
        names[i] = commands[i].name;
    }
    const char *nearest = parse_nearest(name, names, COMMAND_COUNT);
    if (nearest)
        return error_set(err, STATUS_INVALID, "%s: unknown command (did you mean %s?)", name,
                         nearest);
    return error_set(err, STATUS_INVALID, "%s: unknown command (see inferstat --help)", name);
}
