// The options of the program `inferstat`: one table that parsing, help,
// completions and tests all read.  Pure: time is an argument.
#ifndef INFERSTAT_CLIENT_CLI_OPTIONS_H
#define INFERSTAT_CLIENT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query.h"
#include "common/wire/trust.h"

// One line an option: enum's end, long name, letter (0: none), what its argument
// is called (NULL: takes none), meaning.
#define CLI_OPTIONS(X)                                                                             \
    X(COLLECTOR, "collector", 0, "ADDR",                                                           \
      "ask the collector at ADDR: ipc:///FOLDER or tcp://HOST:PORT (else INFERSTAT_COLLECTOR)")    \
    X(DB, "db", 0, "FILE", "read the store file FILE instead of asking a collector")               \
    X(TIMEOUT, "timeout", 0, "TIME", "wait TIME for an answer (default 3s)")                       \
    X(KEY, "key", 0, "FILE", "this user's key file, made by keygen (else INFERSTAT_KEY)")          \
    X(SERVER_KEY, "server-key", 0, "KEY",                                                          \
      "the collector's public key, or a file of it (else INFERSTAT_SERVER_KEY, "                   \
      "known_collectors)")                                                                         \
    X(INSECURE, "insecure", 0, NULL, "speak TCP without keys to another host")                     \
    X(JSON, "json", 0, NULL, "print JSON: base units, stable keys, null for what is absent")       \
    X(CSV, "csv", 0, NULL, "print CSV: RFC 4180 quoting, LF line ends, a header of keys")          \
    X(LIMIT, "limit", 'n', "N",                                                                    \
      "at most N rows, 0 for all (without it people see 20 of a listing)")                         \
    X(OLDEST, "oldest", 0, NULL, "the oldest rows first")                                          \
    X(MODEL, "model", 0, "NAME", "only records of this model")                                     \
    X(HOST, "host", 0, "NAME", "only records of this host")                                        \
    X(DEVICE, "device", 0, "NAME", "only records of this device")                                  \
    X(RUN, "run", 0, "UUID", "only records of this run (4 or more of its first characters)")       \
    X(OPERATION, "operation", 0, "NAME", "only records of this operation")                         \
    X(STAGE, "stage", 0, "NAME", "only records of this load stage")                                \
    X(WORKLOAD, "workload", 0, "NAME", "only pipelines of this workload (encode, model_load)")     \
    X(STATUS, "status", 0, "NAME",                                                                 \
      "only loads, pipelines and requests that were ok, error or cancelled")                       \
    X(SINCE, "since", 0, "WHEN",                                                                   \
      "started at WHEN or later: 1h (ago), 2026-03-29 [14:30[:00]] (local), RFC 3339, "            \
      "unix seconds")                                                                              \
    X(UNTIL, "until", 0, "WHEN", "started before WHEN")                                            \
    X(BY, "by", 0, "LIST",                                                                         \
      "group by model, host, device, run, operation, stage, workload, status (comma between)")     \
    X(STEP, "step", 0, "TIME", "a row for each step of TIME (1m, 1h, ...) instead of one for all") \
    X(SLO, "slo", 0, "LIST", "objectives of a good answer, such as ttft=200ms,tpot=30ms")          \
    X(SLOWEST, "slowest", 0, "N", "the N slowest, and where their time went")                      \
    X(AVERAGE, "average", 0, NULL, "averaged by model, cold and warm apart")                       \
    X(COMPARE, "compare", 0, NULL, "two side by side")                                             \
    X(CHECK, "check", 0, NULL, "end with status 1 where something is worse")                       \
    X(AGAINST, "against", 0, "NAME", "compare with the baseline NAME")                             \
    X(METRIC, "metric", 0, "NAME", "compare only this metric; with --slowest, worst by it")        \
    X(MARGIN, "margin", 0, "RATIO", "differences below RATIO (3% or 0.03) count as none")          \
    X(MARKDOWN, "markdown", 0, NULL, "print Markdown, for a page or a pull request")               \
    X(BUNDLE, "bundle", 0, "FILE", "write a store of its own with what the filters cover")         \
    X(QUERY, "query", 0, "TEXT", "what the query TEXT, or the one of that name, answers")          \
    X(LINE, "line", 0, NULL, "one short line, for a status bar")                                   \
    X(COLUMNS, "columns", 0, NULL, "list the columns of every kind of record, as on the wire")     \
    X(FORMAT, "format", 0, "FORMAT", "csv, json or jsonl (default jsonl)")                         \
    X(OUTPUT, "output", 'o', "FILE", "write to FILE instead of standard output")                   \
    X(YES, "yes", 'y', NULL, "do not ask")                                                         \
    X(ROLE, "role", 0, "LIST", "what a key may do: producer, reader, admin (comma between)")       \
    X(NAME, "name", 0, "NAME", "what a key is called: 1 to 63 of a-z A-Z 0-9 . _ -")               \
    X(REPLACES, "replaces", 0, "KEY", "the key whose runs the new one goes on with")               \
    X(SERVER, "server", 0, NULL, "make the key of a collector")                                    \
    X(FORCE, "force", 0, NULL,                                                                     \
      "replace what is there; compare what is unlike; send a spool without its run file")          \
    X(SPOOL, "spool", 0, "DIR", "look for spools in DIR (else INFERSTAT_SPOOL)")                   \
    X(INTERVAL, "interval", 0, "TIME", "refresh every TIME at least (default 2s)")                 \
    X(ASCII, "ascii", 0, NULL, "draw with ASCII characters only")                                  \
    X(NO_MOUSE, "no-mouse", 0, NULL, "leave the mouse to the terminal")                            \
    X(READONLY, "readonly", 0, NULL, "refuse to clear from the dashboard")                         \
    X(NO_COLOR, "no-color", 0, NULL, "no colour (as with NO_COLOR in the environment)")            \
    X(HELP, "help", 'h', NULL, "show help and end")                                                \
    X(VERSION, "version", 'V', NULL, "show the version and end")

enum cli_option {
#define CLI_OPTION_ENUM(name, text, letter, argument, meaning) OPTION_##name,
    CLI_OPTIONS(CLI_OPTION_ENUM)
#undef CLI_OPTION_ENUM
        OPTION_COUNT
};

// A set of options: bit i is option i.
#define OPTION_BIT(name) (UINT64_C(1) << OPTION_##name)

_Static_assert(OPTION_COUNT < 64, "a set of options is 64 bits");

struct option_info {
    const char *name;     // without dashes
    const char *argument; // NULL: takes none
    const char *meaning;
    char letter; // 0: none
};

const struct option_info *option_info(enum cli_option option);

enum cli_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, FORMAT_JSONL };

enum { CLI_ARGUMENTS_MAX = 64 };

// Texts are borrowed from argv.
struct cli_options {
    uint64_t given; // set of options
    const char *collector;
    const char *db;
    uint64_t timeout_ns;  // 0: the default
    uint64_t interval_ns; // 0: the default
    uint32_t limit;       // where OPTION_LIMIT is given
    struct query_filter filter;
    const char *since, *until; // as they were given; NULL: not
    enum query_dimension group_by[QUERY_DIMENSION_COUNT];
    unsigned group_count;
    int64_t step_ns;        // 0: none
    const char *slo;        // NULL: none; as it was given
    uint32_t slowest;       // where OPTION_SLOWEST is given
    const char *against;    // NULL: none
    const char *metric;     // NULL: none
    double margin;          // where OPTION_MARGIN is given: 0.03 is 3 %
    const char *bundle;     // NULL: none
    const char *query;      // NULL: none
    enum cli_format format; // of --json, --csv and --format
    const char *output;
    struct trust_options trust;
    uint32_t roles; // of --role: bit i: enum query_role i
    const char *name;
    const char *replaces;
    const char *spool;                        // NULL: the default
    const char *command;                      // first word; NULL: none
    const char *arguments[CLI_ARGUMENTS_MAX]; // words behind it
    unsigned argument_count;
};

static inline bool option_given(const struct cli_options *options, enum cli_option option)
{
    return options->given >> option & 1;
}

// Reads a command line, argv[0] skipped.  Options stand anywhere, values behind
// "=" or in the next word; "--" ends them.  `now_ns` is what --since 1h counts
// from.  STATUS_INVALID names the option at fault and the nearest one known.
MUST_CHECK enum status options_parse(struct cli_options *out, int argc, char *const *argv,
                                     int64_t now_ns, struct error *err);

// STATUS_INVALID when an option was given that is not in `allowed`; `command`
// names the command in the message.
MUST_CHECK enum status options_check(const struct cli_options *options, uint64_t allowed,
                                     const char *command, struct error *err);

#endif
