// The table of commands.
#include "client/cli/cli.h"

// Sets of options, as lists.
#define KEYS     OPTION_COLLECTOR_USER, OPTION_KEY, OPTION_SERVER_KEY, OPTION_INSECURE
#define OWNER    OPTION_COLLECTOR, OPTION_TIMEOUT, KEYS
#define SOURCE   OWNER, OPTION_DB
#define WINDOW   OPTION_SINCE, OPTION_UNTIL
#define PLACES   OPTION_MODEL, OPTION_HOST, OPTION_DEVICE, OPTION_RUN
#define SETTINGS OPTION_WORKLOAD, OPTION_SYNC, OPTION_CHUNK_BYTES, OPTION_POOL_SIZE, OPTION_SOURCE
#define CLASSES  OPTION_OPERATION, OPTION_STATUS, SETTINGS
#define NAMES    PLACES, CLASSES, OPTION_STAGE, OPTION_EVENT
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
    "Newest first.  Tables show the 20 newest; --json and --csv print all, --limit N the N "       \
    "newest."

const struct cli_command cli_commands[] = {
    {
        .group = "What is happening now",
        .name = "top",
        .summary = "the dashboard (also without any command, on a terminal)",
        .examples = {"top --model 'llama*'", "--db bundle.db top"},
        .options = TAKES(SOURCE, PLACES, WINDOW, OPTION_INTERVAL, OPTION_ASCII, OPTION_NO_MOUSE,
                         OPTION_READONLY, OPTION_COMPACT),
        .run = command_top,
    },
    {
        .name = "now",
        .summary = "the state of each model on each host now, since when, and why",
        .details = "States: down, silent, errors, slow (than usual for the model and host at this "
                   "hour), loading, ok, idle, ended; inferstat(1) explains them.  The figures are "
                   "those of the last 5 minutes, or with --since 1m, --since 1h, ... of that time. "
                   " --until WHEN tells what was then.  --by model or host puts a row with all "
                   "requests before the rows of each model with several hosts, or the reverse.",
        .examples = {"now", "now --since 9h --until 8h"},
        .options = TAKES(SOURCE, OPTION_MODEL, OPTION_HOST, WINDOW, ROWS, OPTION_BY),
        .run = command_now,
    },
    {
        .name = "models",
        .verb = "overview",
        .summary = "models: requests, output tokens, hosts, speed, TTFT, when last seen",
        .details = "The model seen last comes first.  Figures are of all records, or of --since "
                   "and --until; t/s and TTFT are of single requests.  Type and size are those of "
                   "the newest load.",
        .examples = {"models", "models --since 7d --json"},
        .options = TAKES(SOURCE, PLACES, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_models,
    },
    {
        .name = "alerts",
        ARGUMENTS("[ack|unack ID|silence [RULE]|unsilence ID|silences|trouble|rules [FILE]]", 0, 2),
        .summary = "alerts that are pending or fire, and why; acknowledge, silence, check rules",
        .details =
            "--history lists all that fired, the newest first.  --check exits with status 1 while "
            "one fires that is not silenced.  ack ID notes who looks after an alert, and why "
            "(--text).  silence [RULE] --for 2h calls no hooks for the alerts of the rule, model, "
            "host and device; --all for all.  trouble lists rules that cannot be read, hooks that "
            "fail, and a file that is wrong.  rules lists the built-in rules; rules --check FILE "
            "checks a file of rules and hooks, and counts the groups for which each rule holds "
            "now, if a collector runs.  inferstatd-alerts(5) describes rules.",
        .examples = {"alerts --check", "alerts silence slow_tokens --for 2h --text maintenance"},
        .options =
            TAKES(SOURCE, OPTION_MODEL, OPTION_HOST, OPTION_DEVICE, WINDOW, ROWS, OPTION_LIMIT,
                  OPTION_CHECK, OPTION_HISTORY, OPTION_ALL, OPTION_FOR, OPTION_REASON),
        .run = command_alerts,
    },
    {
        .name = "tail",
        ARGUMENTS("[KIND]...", 0, CLI_ARGUMENTS_MAX),
        .summary = "records as they arrive, one line each, until interrupted",
        .details =
            "KIND is a kind of record (inference, load, ...; \"inferstat metrics --columns\" lists "
            "them).  --json prints JSON Lines.  --limit N exits after N records.",
        .examples = {"tail inference --model 'qwen*'", "tail --json --limit 10"},
        .options = TAKES(SOURCE, NAMES, OPTION_JSON, OPTION_LIMIT),
        .run = command_tail,
    },
    {
        .group = "Why",
        .name = "why",
        .summary = "why requests are slower than usual: causes, the most important first",
        .details = "Sets the requests of the last 10 minutes, or with --since 1m, --since 1h, ... "
                   "of that time, against the usual ones of the same model, host and device, and "
                   "splits the difference; below each cause is the command that shows it.  "
                   "inferstat(1) explains the causes.",
        .examples = {"why", "why --model llama-8b --since 1h"},
        .options = TAKES(SOURCE, OPTION_MODEL, OPTION_HOST, OPTION_SINCE, ROWS),
        .run = command_why,
    },
    {
        .name = "errors",
        .summary = "why requests, loads and operations failed: counts by text",
        .details = "Texts count together if they differ only in numbers and ids, which are shown "
                   "as #.  Most failures first: the 100 most frequent texts, or --limit N (at most "
                   "1000); the rest is counted as other.",
        .examples = {"errors --since 1d", "errors --by model,host"},
        .options = TAKES(SOURCE, PLACES, OPTION_OPERATION, WINDOW, ROWS, OPTION_BY, OPTION_LIMIT),
        .run = command_errors,
    },
    {
        .name = "events",
        .summary = "trouble of devices and hosts, and what it cost in speed, tokens and energy",
        .details = "Newest first: throttling, XID errors, PCIe below its best, ECC errors, memory "
                   "pressure, other processes on the device.  Below an event: each model's "
                   "requests while it lasted, compared with those of the hour before and after, "
                   "with a 99 % interval.  Energy lost is known of events of some minutes.  Tables "
                   "show the 20 newest; --json and --csv have all, but at most 1000.",
        .examples = {"events --since today", "events --event xid --host gpu07 --json"},
        .options = TAKES(SOURCE, PLACES, OPTION_EVENT, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_events,
    },
    {
        .group = "What was",
        .name = "summary",
        .summary = "key figures, the last load by stage, and losses",
        .details = "--line prints one short line instead, for tmux and other status bars.",
        .examples = {"summary", "summary --since today --line"},
        .options = TAKES(SOURCE, PLACES, CLASSES, WINDOW, ROWS, OPTION_LINE),
        .run = command_summary,
    },
    {
        .name = "avg",
        ARGUMENTS("METRIC", 1, 1),
        .summary = "count, mean, extremes and quantiles of a metric, with coverage",
        .details =
            "METRIC is a name from \"inferstat metrics\", such as ttft_ns or "
            "load.duration_ns.  Rates have two averages: mean (of the requests) and "
            "total/total (all tokens / all time).  goodput_per_second: mean is the number of "
            "good requests per second, met their share.",
        .examples = {"avg ttft_ns --by model --since 7d --step 1h",
                     "avg output_token_rate --by host --since 1h"},
        .options = TAKES(SOURCE, FILTERS, ROWS, OPTION_BY, OPTION_LIMIT, OPTION_STEP, OPTION_SLO),
        .run = command_average,
    },
    {
        .name = "query",
        ARGUMENTS("[TEXT|NAME]", 0, CLI_ARGUMENTS_MAX),
        .summary = "run a line of the query language",
        .details = "TEXT is a query such as \"avg ttft_ns by model,host where host=a since 1h step "
                   "5m\" or \"inferences where model='x y' limit 10\"; inferstat(1) describes the "
                   "language.  NAME is a named query of ~/.config/inferstat/queries, whose lines "
                   "are NAME = TEXT; without an argument the names are listed.",
        .examples = {"query \"avg ttft_ns by model where host=gpu07 since 1d\"", "query"},
        .options = TAKES(SOURCE, ROWS),
        .run = command_query,
    },
    {
        .name = "inferences",
        .summary = "requests, newest first",
        .details = LISTED
        "  --slowest N shows the slowest ones (or the worst by --metric, a duration or a rate), "
        "each compared with the median of its model and device, and the excess attributed to "
        "phases, to more work, and to concurrent events: inferstat-latency(7).",
        .examples = {"inferences --slowest 10 --since 1d",
                     "inferences --model 'qwen*' --status error"},
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, OPTION_SLOWEST,
                         OPTION_METRIC),
        .run = command_list,
    },
    {
        .name = "loads",
        ARGUMENTS("[--compare A B]", 0, 2),
        .summary = "model loads, each with its stages as a waterfall",
        .details = LISTED
        "  --average shows one waterfall per model and device (or --by LIST): mean, median, "
        "maximum and share of each stage, cold and warm loads separately.  --compare A B shows two "
        "of these side by side.  A and B are a run, or conditions of the query language: "
        "\"host=a\" \"host=b\", \"since 1d\" \"since 8d until 7d\".",
        .examples = {"loads --average --by model",
                     "loads --compare \"since 1d\" \"since 8d until 7d\""},
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, OPTION_AVERAGE,
                         OPTION_COMPARE, OPTION_BY),
        .run = command_loads,
    },
    {
        .name = "operations",
        .summary = "timed operations",
        .details = LISTED,
        .examples = {"operations --operation gemm", "operations --csv --limit 100"},
        .options = TAKES(LISTING, OPTION_DEVICE, OPTION_OPERATION),
        .run = command_list,
    },
    {
        .name = "pipelines",
        .summary = "runs of the streaming copy/compute pipeline",
        .details = LISTED
        "  overlap: time copy and compute ran concurrently / the shorter of the two.  exposed "
        "copy: "
        "time copies ran and no kernel did.  copy starved: time no copy ran because no filled slot "
        "was ready, although there was input.  pool waits: share of slot acquisitions that had to "
        "wait, high by nature where copies are the bottleneck.",
        .examples = {"pipelines --workload encode", "pipelines --since yesterday --wide"},
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE, OPTION_STATUS, SETTINGS),
        .run = command_list,
    },
    {
        .name = "samples",
        ARGUMENTS("[process|device|host]", 0, 1),
        .summary = "samples of processes (requests in progress, memory), devices or hosts",
        .details = LISTED "  Without an argument they are of processes: --run or --host shows one, "
                          "--model one model's requests.",
        .examples = {"samples device --host gpu07", "samples process --since 10m --csv"},
        .options = TAKES(OPTION_MODEL, OPTION_DEVICE, LISTING),
        .run = command_list,
    },
    {
        .name = "runs",
        .summary = "worker processes: how each ended, records produced and lost",
        .details = LISTED "  --model and --device show the processes that used them.",
        .examples = {"runs", "runs --host 'gpu*' --since 1d"},
        .options = TAKES(LISTING, OPTION_MODEL, OPTION_DEVICE),
        .run = command_list,
    },
    {
        .name = "metrics",
        .summary = "all metrics of avg: kind, unit, meaning",
        .details =
            "--columns lists the columns of every kind of record with their numbers on the wire.",
        .examples = {"metrics", "metrics --columns"},
        .options = TAKES(ROWS, OPTION_COLUMNS),
        .run = command_metrics,
    },
    {
        .name = "baseline",
        ARGUMENTS("save NAME|list|delete NAME", 1, 2),
        .summary = "samples kept for comparison, with their environment",
        .details = "save keeps up to 10,000 values of each metric, model and device that the "
                   "filters cover, evenly chosen in order of time, and the environment: versions, "
                   "driver, device, clocks, PCIe, model digest, quantisation.  --force replaces a "
                   "baseline of that name.  NAME has 1 to 63 of a-z A-Z 0-9 .  _ -",
        .examples = {"baseline save june --since 7d", "baseline list"},
        .options = TAKES(SOURCE, PLACES, OPTION_OPERATION, SETTINGS, WINDOW, ROWS, OPTION_FORCE),
        .run = command_baseline,
    },
    {
        .name = "compare",
        ARGUMENTS("[BEFORE AFTER]", 0, 2),
        .summary = "compare two baselines, a baseline with current records, or two models",
        .details =
            "compare BEFORE AFTER, or compare --against BEFORE with filters, or compare --models "
            "A,B: model B with model A, on the same device.  Each metric, model and device has the "
            "ratio of its medians with a 99 % interval and a verdict: BETTER or WORSE if the whole "
            "interval is outside the margin (--margin, 1 % by default), SAME if all of it is "
            "inside, else UNDECIDED.  Clocks, throttling, power and energy are shown without a "
            "verdict.  Different environments are rejected without --force.  The exit status is 1 "
            "if one is worse, else 5 if one is undecided that had enough values (80 requests, 10 "
            "loads) or none had, else 0.  Two windows or hosts: query \"compare since 1h against "
            "since "
            "1d until 1h\", query \"compare host=gpu07 against host=gpu08\".  "
            "inferstat-compare(7) explains the interval.",
        .examples = {"compare --against june --since 1h", "compare --models llama-8b,llama-8b-q4"},
        .options =
            TAKES(SOURCE, PLACES, OPTION_OPERATION, SETTINGS, WINDOW, ROWS, OPTION_AGAINST,
                  OPTION_MODELS, OPTION_METRIC, OPTION_MARGIN, OPTION_MARKDOWN, OPTION_FORCE),
        .run = command_compare,
    },
    {
        .name = "export",
        ARGUMENTS("[KIND]...", 0, CLI_ARGUMENTS_MAX),
        .summary = "all records, oldest first, as CSV, JSON or JSON Lines",
        .details = "Without KIND all kinds are written, one after the other; a CSV holds one kind. "
                   "The FILE of --output or --bundle must not exist.",
        .examples = {"export inference --csv --output requests.csv",
                     "export --bundle evidence.db --since 1h"},
        .options = TAKES(SOURCE, FILTERS, OPTION_JSON, OPTION_CSV, OPTION_WIDE, OPTION_FIELDS,
                         OPTION_FORMAT, OPTION_OUTPUT, OPTION_LIMIT, OPTION_QUERY, OPTION_BUNDLE),
        .run = command_export,
    },
    {
        .group = "The fleet",
        .name = "hosts",
        .summary = "hosts now: processor, memory, pressure, disk, network, trouble",
        .details = "Hosts in trouble first.  Pressure is the share of time in which some task "
                   "waited.  With --since or --until: means and extremes of that time.",
        .examples = {"hosts", "hosts --since 1h"},
        .options = TAKES(SOURCE, OPTION_HOST, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_hosts,
    },
    {
        .name = "devices",
        .verb = "health",
        .summary = "devices now: use, memory, temperature, power, clocks, PCIe, trouble",
        .details = "Devices in trouble first.  Figures are those of the newest sample: util is the "
                   "share of time in which a kernel ran; memory, temperature, power and clock are "
                   "followed by their limits; PCIe is the link's generation and lanes, with ! "
                   "below its best.  With --since or --until: means and extremes of that time.  "
                   "inferstat-worker watch samples devices, also for other engines.",
        .examples = {"devices --host 'gpu0?'", "devices --since 1d --wide"},
        .options = TAKES(SOURCE, OPTION_HOST, OPTION_DEVICE, WINDOW, ROWS, OPTION_LIMIT),
        .run = command_devices,
    },
    {
        .name = "fleet",
        ARGUMENTS("[METRIC]", 0, 1),
        .summary = "hosts that differ from others with the same model and device, and why",
        .details =
            "Compares each host's median of decode and prefill speed, TTFT and load speed (or of "
            "METRIC) with those of 2 or more others.  A host stands out if it differs by more than "
            "3 % and four spreads (deviations of the usual hosts).  A table has a row per host and "
            "cause: the median that is off most, and how many have it.  --check exits with status "
            "1 where one is worse, 5 where nothing can be compared.",
        .examples = {"fleet --check", "fleet ttft_ns --since 1d"},
        .options = TAKES(SOURCE, PLACES, WINDOW, ROWS, OPTION_LIMIT, OPTION_CHECK),
        .run = command_fleet,
    },
    {
        .group = "Administration",
        .name = "doctor",
        .summary = "check this host, the collector and the store, and say what to do",
        .details = "Checks addresses, folders, keys, versions, clocks, disk, driver, spool, build, "
                   "processor and limits; works without a collector.  Each line is ok, warning or "
                   "error; the exit status is 1 where one is an error.",
        .examples = {"doctor", "doctor --json"},
        .options = TAKES(SOURCE, OPTION_SPOOL, ROWS),
        .run = command_doctor,
    },
    {
        .name = "ping",
        .summary = "check that the collector answers; its round trip and store",
        .examples = {"ping", "ping --timeout 500ms --json"},
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_ping,
    },
    {
        .name = "audit",
        .summary = "recount every record against the ledger, run by run",
        .details =
            "Reads the whole store.  A run's verdict is balanced, unbalanced (with the "
            "findings), open (records in flight) or unknown (silent or down).  The exit "
            "status is 1 if one is unbalanced.  Tables show all runs that do not balance, "
            "and the 20 newest of the others.  --admin lists instead what administrators did "
            "and what retention deleted, the newest first: for the owner of the collector.",
        .examples = {"audit", "audit --admin --since 7d"},
        .options = TAKES(SOURCE, OPTION_RUN, OPTION_HOST, WINDOW, ROWS, OPTION_ADMIN),
        .run = command_audit,
    },
    {
        .name = "spool",
        ARGUMENTS("list|flush", 1, 1),
        .summary = "records on this host that wait for their collector: list or send them",
        .details = "list shows the records that dead runs of this user left here, and the spools "
                   "of live ones.  flush sends those of dead runs to the collector of each, or to "
                   "--collector, and removes them; the exit status is 4 if records remain.  A "
                   "spool whose run file is missing although the host was not rebooted may belong "
                   "to another container and is kept; --force sends it.",
        .examples = {"spool list", "spool flush --collector tcp://collector:5571"},
        .options = TAKES(OPTION_COLLECTOR, KEYS, OPTION_SPOOL, OPTION_FORCE, ROWS),
        .run = command_spool,
    },
    {
        .name = "backup",
        ARGUMENTS("FILE", 1, 1),
        .summary = "copy the whole store, also while the collector writes to it",
        .details = "FILE is on the collector's host and must not exist.  The copy is checked.",
        .examples = {"backup /var/backups/today.db", "--db records.db backup today.db"},
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_backup,
    },
    {
        .name = "restore",
        ARGUMENTS("BACKUP", 1, 1),
        .summary = "put a backup in the place of a store file (--db), which is kept",
        .details = "No collector may have the store open.  The copy is checked first.  The earlier "
                   "file becomes FILE.before-TIME.",
        .examples = {"--db records.db restore today.db", "--db records.db restore today.db --json"},
        .options = TAKES(OPTION_DB, OPTION_JSON),
        .run = command_restore,
    },
    {
        .name = "import",
        ARGUMENTS("FILE", 1, 1),
        .summary = "add the records of a bundle, a backup, or llama-bench -o json",
        .details = "FILE is on the collector's host.  Existing runs stay as they are, or get the "
                   "records they lack.  Importing again completes an interrupted import.",
        .examples = {"import evidence.db", "import bench.json"},
        .options = TAKES(SOURCE, OPTION_JSON),
        .run = command_import,
    },
    {
        .name = "clear",
        .summary = "delete records (all, or those the filters cover); runs and ledgers stay",
        .examples = {"clear --model test --yes", "clear --until 90d"},
        .options = TAKES(SOURCE, FILTERS, OPTION_YES, OPTION_JSON),
        .run = command_clear,
    },
    {
        .name = "forget",
        .summary = "remove a run, or all runs of a key, with their records",
        .details =
            "For what a liar reported.  --run takes a whole UUID; --key is here the key whose runs "
            "go, or its name, or user:NUMBER for the runs of a user over ipc.  Nothing more of "
            "these runs is accepted.  What they reported stays as sums: see inferstat audit.",
        .examples = {"forget --run 0f8c2a17-6f1e-4c3b-9a65-2d1f0e7b8c90",
                     "forget --key gpu07 --yes"},
        .options = TAKES(SOURCE, OPTION_RUN, OPTION_YES, OPTION_JSON),
        .run = command_forget,
    },
    {
        .name = "keygen",
        ARGUMENTS("[FILE]", 0, 1),
        .summary = "create a key, for this user or (--server) for a collector",
        .details = "Without FILE: key, or server.key, in ~/.config/inferstat.  The public key is "
                   "in FILE.pub.",
        .examples = {"keygen", "keygen --server server.key"},
        .options = TAKES(OPTION_SERVER, OPTION_FORCE, OPTION_JSON),
        .run = command_keygen,
    },
    {
        .name = "trust",
        ARGUMENTS("ADDRESS KEY", 2, 2),
        .summary = "trust a collector's public key (or the file of it) over TCP",
        .details = "Adds a line to ~/.config/inferstat/known_collectors.  A collector may have "
                   "several keys while its key is changed; --force makes this its only one.",
        .examples = {"trust tcp://collector:5571 server.key.pub",
                     "trust tcp://collector:5571 server.key.pub --force"},
        .options = TAKES(OPTION_FORCE),
        .run = command_trust,
    },
    {
        .name = "authorize",
        ARGUMENTS("KEY", 1, 1),
        .summary = "let a public key (or the file of one) connect to the collector over TCP",
        .details = "For the owner of the collector, or over TCP for a key with the role admin.  A "
                   "producer reports, a reader queries, an admin may do everything; --role "
                   "replaces the roles that the key has.  The new key continues the runs of the "
                   "key that it replaces.",
        .examples = {"authorize gpu07.pub --role producer,reader --name gpu07",
                     "authorize guest.pub --role reader --expires 30d"},
        .options = TAKES(OWNER, OPTION_ROLE, OPTION_NAME, OPTION_REPLACES, OPTION_EXPIRES, ROWS),
        .run = command_authorize,
    },
    {
        .name = "revoke",
        ARGUMENTS("KEY", 1, 1),
        .summary = "remove an authorized key, given as key or name",
        .details = "Its open connections are closed within seconds.",
        .examples = {"revoke gpu07", "revoke gpu07 --json"},
        .options = TAKES(OWNER, ROWS),
        .run = command_revoke,
    },
    {
        .name = "keys",
        .summary = "the keys that may connect to the collector, with their roles",
        .examples = {"keys", "keys --json"},
        .options = TAKES(OWNER, ROWS),
        .run = command_keys,
    },
    {
        .name = "completion",
        ARGUMENTS("bash|zsh|fish|LIST", 1, CLI_ARGUMENTS_MAX),
        .summary = "print the completion script of a shell, or names",
        .details = "LIST is models, hosts, devices, operations, baselines, keys or queries: the "
                   "names that the scripts offer, one a line.",
        .examples = {"completion bash", "--db records.db completion models"},
        .options = TAKES(SOURCE),
        .run = command_completion,
    },
    {
        .name = "help",
        ARGUMENTS("[COMMAND]", 0, 1),
        .summary = "show help, or that of one command",
        .examples = {"help avg", "help"},
        .options = (const enum cli_option[]){ALWAYS},
        .run = command_help,
    },
    {0},
};
