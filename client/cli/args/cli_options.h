// Command-line options of the program `inferstat`: parses them into a struct cli_options.  The
// table CLI_OPTIONS lists all options; the parser, the help and the shell completion read it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/sys/option_table.h"
#include "common/wire/trust.h"

// One row per option: enumerator, long name, letter (0: none), name of its value in the help
// (NULL: the option has no value), type and struct member of its value, help text.  The macros of
// the types are in common/sys/option_table.h and, like the lists of words, in cli_options.c.
#define CLI_OPTIONS(X)                                                                             \
    X(COLLECTOR, "collector", 0, "ADDR", TEXT_AT(collector),                                       \
      "ask the collector at ADDR: ipc:///FOLDER or tcp://HOST:PORT (else INFERSTAT_COLLECTOR)")    \
    X(DB, "db", 0, "FILE", TEXT_AT(db), "read the store file FILE instead of asking a collector")  \
    X(TIMEOUT, "timeout", 0, "TIME", PERIOD_AT(timeout_ns),                                        \
      "wait TIME for an answer (default 3s)")                                                      \
    X(COLLECTOR_USER, "collector-user", 0, "USER", TEXT_AT(trust.collector_user),                  \
      "USER may run the collector at ipc://, beside this user and root (else "                     \
      "INFERSTAT_COLLECTOR_USER)")                                                                 \
    X(KEY, "key", 0, "FILE", TEXT_AT(trust.key_file),                                              \
      "this user's key file, made by keygen (else INFERSTAT_KEY)")                                 \
    X(SERVER_KEY, "server-key", 0, "KEY", TEXT_AT(trust.server_key),                               \
      "the collector's public key, or a file of it (else INFERSTAT_SERVER_KEY, "                   \
      "known_collectors)")                                                                         \
    X(INSECURE, "insecure", 0, NULL, FLAG_AT(trust.insecure),                                      \
      "speak TCP without keys to another host")                                                    \
    X(JSON, "json", 0, NULL, OPTION_IS_GIVEN,                                                      \
      "print JSON: base units, stable keys, null for absent values")                               \
    X(CSV, "csv", 0, NULL, OPTION_IS_GIVEN,                                                        \
      "print CSV: RFC 4180 quoting, LF line ends, a header of keys")                               \
    X(WIDE, "wide", 0, NULL, OPTION_IS_GIVEN, "all columns, however wide the terminal is")         \
    X(FIELDS, "fields", 0, "A,B", TEXT_AT(fields), "only these columns, by their keys of --json")  \
    X(WATCH, "watch", 0, "TIME", PERIOD_AT(watch_ns), "again every TIME, on a cleared screen")     \
    X(LIMIT, "limit", 'n', "N", UINT32_AT(limit, 0, UINT32_MAX),                                   \
      "at most N rows, 0 for all (tables of records, events, hosts and devices: 20)")              \
    X(OLDEST, "oldest", 0, NULL, OPTION_IS_GIVEN, "the oldest rows first")                         \
    X(MODEL, "model", 0, "NAME", TEXT_AT(where[QUERY_BY_MODEL]),                                   \
      "only records of this model, or of all like a pattern: 'a*'")                                \
    X(HOST, "host", 0, "NAME", TEXT_AT(where[QUERY_BY_HOST]),                                      \
      "only records of this host, or of all like a pattern: 'a*'")                                 \
    X(DEVICE, "device", 0, "NAME", TEXT_AT(where[QUERY_BY_DEVICE]),                                \
      "only records of this device, or of all like a pattern: 'a*'")                               \
    X(RUN, "run", 0, "UUID", TEXT_AT(where[QUERY_BY_RUN]),                                         \
      "only records of this run (its first 4 or more characters)")                                 \
    X(OPERATION, "operation", 0, "NAME", TEXT_AT(where[QUERY_BY_OPERATION]),                       \
      "only records of this operation, or of all like a pattern: 'a*'")                            \
    X(STAGE, "stage", 0, "NAME", TEXT_AT(where[QUERY_BY_STAGE]),                                   \
      "only records of this load stage")                                                           \
    X(WORKLOAD, "workload", 0, "NAME", TEXT_AT(where[QUERY_BY_WORKLOAD]),                          \
      "only pipelines of this workload (encode, model_load)")                                      \
    X(STATUS, "status", 0, "NAME", TEXT_AT(where[QUERY_BY_STATUS]),                                \
      "only loads, pipelines and requests that were ok, error or cancelled")                       \
    X(SYNC, "sync", 0, "NAME", TEXT_AT(where[QUERY_BY_SYNC]),                                      \
      "only pipelines that reuse slots by events, or periodic")                                    \
    X(CHUNK_BYTES, "chunk-bytes", 0, "SIZE", TEXT_AT(where[QUERY_BY_CHUNK_BYTES]),                 \
      "only pipelines with chunks of SIZE (8388608, 8MB)")                                         \
    X(POOL_SIZE, "pool-size", 0, "N", TEXT_AT(where[QUERY_BY_POOL_SIZE]),                          \
      "only pipelines with N slots")                                                               \
    X(SOURCE, "source", 0, "NAME", TEXT_AT(where[QUERY_BY_SOURCE]),                                \
      "only pipelines whose samples came from NAME")                                               \
    X(EVENT, "event", 0, "NAME", TEXT_AT(where[QUERY_BY_EVENT]),                                   \
      "only events of this name, or of all like a pattern: 'ecc*'")                                \
    X(SINCE, "since", 0, "WHEN", TEXT_AT(since),                                                   \
      "started at WHEN or later: 1h (ago), today, yesterday, 2026-03-29 [14:30] (local), "         \
      "RFC 3339, unix seconds; now is the time of the last message in --db FILE")                  \
    X(UNTIL, "until", 0, "WHEN", TEXT_AT(until),                                                   \
      "started before WHEN; now is the time of the last message in --db FILE")                     \
    X(BY, "by", 0, "LIST", WORDS_AT(by, dimension_word),                                           \
      "group by model, host, device, run, operation, stage, workload, status, sync, chunk_bytes, " \
      "pool_size, source, event (separated by commas); now: by model or host")                     \
    X(STEP, "step", 0, "TIME", TEXT_AT(step), "a row for each time step (1m, 1h, ...)")            \
    X(SLO, "slo", 0, "LIST", TEXT_AT(slo),                                                         \
      "objectives of a request, such as ttft=200ms,tpot=30ms")                                     \
    X(SLOWEST, "slowest", 0, "N", UINT32_AT(slowest, 1, UINT32_MAX),                               \
      "the N slowest, with latency attribution")                                                   \
    X(AVERAGE, "average", 0, NULL, OPTION_IS_GIVEN, "averages by model, cold and warm separately") \
    X(COMPARE, "compare", 0, NULL, OPTION_IS_GIVEN, "compare two sides, A and B")                  \
    X(CHECK, "check", 0, NULL, OPTION_IS_GIVEN,                                                    \
      "exit with status 1 where a host is worse or an alert fires; with rules: check FILE")        \
    X(HISTORY, "history", 0, NULL, OPTION_IS_GIVEN, "alerts that fired, also those that are over") \
    X(ALL, "all", 0, NULL, OPTION_IS_GIVEN, "silence all alerts")                                  \
    X(FOR, "for", 0, "TIME", PERIOD_AT(for_ns), "how long a silence lasts: 2h, 3d")                \
    X(REASON, "text", 0, "TEXT", TEXT_AT(text), "why")                                             \
    X(AGAINST, "against", 0, "NAME", TEXT_AT(against), "compare with the baseline NAME")           \
    X(MODELS, "models", 0, "A,B", TEXT_AT(models), "compare model B with model A")                 \
    X(METRIC, "metric", 0, "NAME", TEXT_AT(metric),                                                \
      "compare only this metric; with --slowest, sort by it")                                      \
    X(MARGIN, "margin", 0, "RATIO", TEXT_AT(margin),                                               \
      "differences below RATIO (3% or 0.03) count as none")                                        \
    X(MARKDOWN, "markdown", 0, NULL, OPTION_IS_GIVEN,                                              \
      "print Markdown, for a page or a pull request")                                              \
    X(BUNDLE, "bundle", 0, "FILE", TEXT_AT(bundle),                                                \
      "write a store with the records that the filters cover")                                     \
    X(QUERY, "query", 0, "TEXT", TEXT_AT(query),                                                   \
      "the result of the query TEXT, or of the named query")                                       \
    X(LINE, "line", 0, NULL, OPTION_IS_GIVEN, "summary: one short line, for a status bar")         \
    X(COLUMNS, "columns", 0, NULL, OPTION_IS_GIVEN,                                                \
      "list the columns of every kind of record, as on the wire")                                  \
    X(FORMAT, "format", 0, "FORMAT", CHOICE_AT(file_format, format_word),                          \
      "csv, json or jsonl (default jsonl)")                                                        \
    X(OUTPUT, "output", 'o', "FILE", TEXT_AT(output), "write to FILE, which must not exist")       \
    X(YES, "yes", 'y', NULL, OPTION_IS_GIVEN, "do not ask")                                        \
    X(ROLE, "role", 0, "LIST", SET_AT(roles, role_word),                                           \
      "roles of a key: producer, reader, admin (separated by commas)")                             \
    X(NAME, "name", 0, "NAME", TEXT_AT(name), "name of a key: 1 to 63 of a-z A-Z 0-9 . _ -")       \
    X(REPLACES, "replaces", 0, "KEY", TEXT_AT(replaces),                                           \
      "the key whose runs the new one continues")                                                  \
    X(EXPIRES, "expires", 0, "WHEN", TEXT_AT(expires),                                             \
      "when the key ends: 90d (from now), 2027-02-20, RFC 3339 (else never)")                      \
    X(ADMIN, "admin", 0, NULL, OPTION_IS_GIVEN, "list what administrators did")                    \
    X(SERVER, "server", 0, NULL, OPTION_IS_GIVEN, "create the key of a collector")                 \
    X(FORCE, "force", 0, NULL, OPTION_IS_GIVEN,                                                    \
      "replace existing data; compare different environments; send a spool without its run file")  \
    X(SPOOL, "spool", 0, "DIR", TEXT_AT(spool), "look for spools in DIR (else INFERSTAT_SPOOL)")   \
    X(INTERVAL, "interval", 0, "TIME", PERIOD_AT(interval_ns),                                     \
      "refresh at least every TIME (default 2s)")                                                  \
    X(ASCII, "ascii", 0, NULL, OPTION_IS_GIVEN, "draw with ASCII characters only")                 \
    X(NO_MOUSE, "no-mouse", 0, NULL, OPTION_IS_GIVEN, "leave the mouse to the terminal")           \
    X(COMPACT, "compact", 0, NULL, OPTION_IS_GIVEN, "three lines, for a small pane")               \
    X(READONLY, "readonly", 0, NULL, OPTION_IS_GIVEN, "refuse to clear from the dashboard")        \
    X(UTC, "utc", 0, NULL, OPTION_IS_GIVEN, "times in UTC, given and shown")                       \
    X(NO_COLOR, "no-color", 0, NULL, OPTION_IS_GIVEN,                                              \
      "no colour (as with NO_COLOR in the environment)")                                           \
    X(HELP, "help", 'h', NULL, OPTION_IS_GIVEN, "show help and exit")                              \
    X(VERSION, "version", 'V', NULL, OPTION_IS_GIVEN, "show the version and exit")

enum cli_option {
#define CLI_OPTION_ENUM(name, text, letter, argument, at, help) OPTION_##name,
    CLI_OPTIONS(CLI_OPTION_ENUM)
#undef CLI_OPTION_ENUM
        OPTION_COUNT
};

// The table row of an option, for the parser of common/sys/option_table.h.
const struct option *option_row(enum cli_option option);

// Format of the results.  FORMAT_TEXT, a text table, is the default.
enum cli_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, FORMAT_JSONL };

enum { CLI_ARGUMENTS_MAX = 64 }; // options_parse rejects more

// The parsed options.  Texts are borrowed from argv; NULL: not given.
struct cli_options {
    bool given[OPTION_COUNT]; // by enum cli_option
    const char *collector;
    const char *db;
    int64_t timeout_ns;  // 0: the default
    int64_t interval_ns; // 0: the default
    int64_t watch_ns;    // 0: once
    const char *fields;  // separated by commas; NULL: all
    int64_t for_ns;      // 0: not given
    const char *text;    // NULL: none
    uint32_t limit;      // valid if OPTION_LIMIT is given
    // Clauses of the query language, unparsed.
    const char *where[QUERY_DIMENSION_COUNT];
    const char *since, *until, *by, *step, *slo, *metric, *margin, *against, *models;
    uint32_t slowest;       // valid if OPTION_SLOWEST is given
    const char *bundle;     // NULL: none
    const char *query;      // NULL: none
    int file_format;        // value of --format; 0: csv, 1: json, 2: jsonl
    enum cli_format format; // the result of --json, --csv and --format
    const char *output;     // NULL: standard output
    struct trust_options trust;
    uint32_t roles; // of --role; bit i is enum query_role i
    const char *name;
    const char *replaces;
    const char *expires;
    const char *spool;                        // NULL: the default
    const char *command;                      // first word that is no option; NULL: none
    const char *arguments[CLI_ARGUMENTS_MAX]; // the words after the command
    unsigned argument_count;
};

static inline bool option_given(const struct cli_options *options, enum cli_option option)
{
    return options->given[option];
}

// Callback: the options that a command takes, ended by OPTION_COUNT; NULL: no such command.
typedef const enum cli_option *options_of_command(const char *name);

// Parses a command line; skips argv[0].  Options and arguments may be mixed.  An option's value
// follows "=" or is the next word.  "--" ends the options.  After the commands that take a key, a
// word that is a public key is an argument, even if it begins with "-".  Returns STATUS_INVALID if
// an option is invalid, or excludes another one (--collector and --db); `err` names the option, and
// of an unknown one the nearest that its command takes (all, if `options_of` is NULL).
MUST_CHECK enum status options_parse(struct cli_options *out, int argc, char *const *argv,
                                     options_of_command *options_of, struct error *err);

// Returns STATUS_INVALID if an option was given that is not in `allowed` (ended by OPTION_COUNT).
// `command` names the command in `err`.
MUST_CHECK enum status options_check(const struct cli_options *options,
                                     const enum cli_option *allowed, const char *command,
                                     struct error *err);

// True if `list` (ended by OPTION_COUNT) contains `option`.
bool options_contain(const enum cli_option *list, enum cli_option option);

// Returns the first option of `list` (ended by OPTION_COUNT) that was given, or OPTION_COUNT if
// none was.
enum cli_option options_first_given(const struct cli_options *options, const enum cli_option *list);

// Returns STATUS_INVALID; `err` says that `command` does not accept `option`.
enum status options_refuse(enum cli_option option, const char *command, struct error *err);
