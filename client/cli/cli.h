// Command dispatcher of the program `inferstat`: finds a command in the table of commands and runs
// it.  Also has the helper functions that commands share.  Only the main thread uses this module.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "client/cli/output/rows.h"
#include "client/remote/remote.h"
#include "common/core/base/error.h"
#include "common/core/query/result.h"

enum { CLI_ROWS_FOR_PEOPLE = 20 }; // of a table without --limit

// Files, terminal and clock of the process, set by main.
struct cli_environment {
    FILE *in;
    FILE *out;   // results
    FILE *notes; // standard error: warnings and questions, never results
    bool in_is_terminal;
    bool out_is_terminal;
    unsigned width; // terminal columns of `out`; 0: no limit
    int64_t now_ns; // wall clock at the start
};

// The command being run.
struct cli {
    struct cli_environment env;
    struct cli_options options;
    const struct cli_command *command;
    struct query query;    // built from the options, or parsed from a query text
    struct remote *remote; // connection or store file; NULL until the first query opens it
    bool has_widened;      // a note said what a part of a name stands for
    char nothing[512];     // set by cli_ask: why an answer has nothing; "": unknown
};

// Runs a command, which `cli` has.
typedef enum status cli_command_run(struct cli *cli, struct error *err);

// A row of the table of commands.  If the command has a verb of the query language, its arguments
// and options are the clauses of that verb.
struct cli_command {
    const char *group; // title of the help's group that begins here; NULL: the one before goes on
    const char *name;
    const char *verb;                      // NULL: `name`, if that is a verb
    const char *arguments;                 // names of the arguments in the usage line; NULL: none
    const char *summary;                   // help, one line
    const char *details;                   // further lines of `COMMAND --help`; NULL: none
    const char *examples[2];               // what follows "inferstat "
    const enum cli_option *options;        // accepted options, ended by OPTION_COUNT
    unsigned arguments_min, arguments_max; // accepted number of arguments
    cli_command_run *run;
};

// All commands, in the order of the help text; the end has no name (command_table.c).
extern const struct cli_command cli_commands[];

// Finds a command by name.  Returns STATUS_INVALID if there is none; `err` suggests the nearest
// name.
MUST_CHECK enum status cli_command_find(const struct cli_command **out, const char *name,
                                        struct error *err);

// True if the output is a terminal, and neither --no-color nor NO_COLOR says that colours are not
// wanted.
bool cli_has_colours(const struct cli *cli);

// Parses a command line and runs its command, which writes its results to env->out.  Without a
// command runs the dashboard if input and output are terminals.
MUST_CHECK enum status cli_run(const struct cli_environment *env, int argc, char *const *argv,
                               struct error *err);

// Maps a status to the exit code: 0 success or cancelled, 1 failed check, 2 usage error, 3 no data,
// 5 undecided comparison, 4 any other error (such as an unusable collector or file).
int cli_exit_code(enum status status);

// ---- For commands -----------------------------------------------------------------

// Answers a query: sends it to the collector, or runs it on the store file, that the options name.
// If nothing is found because a filter's name is a part of others, asks for these (known_names.h),
// also in cli->query.  The caller frees `*out`.
MUST_CHECK enum status cli_ask(struct cli *cli, const struct query *query, struct result **out,
                               struct error *err);

// The target that the options name: a collector or a store file.
struct remote_target cli_target(const struct cli *cli);

// The target's name for messages (remote_name); opens the target if necessary.
MUST_CHECK enum status cli_source(struct cli *cli, const char **out, struct error *err);

// Calls cli_ask.  On STATUS_NO_DATA also prints an empty list if --json is given, and sets `err` as
// in "errors: no failures: the filters match nothing" (`what`, `nothing` and the reason).
MUST_CHECK enum status cli_ask_for(struct cli *cli, const struct query *query, const char *what,
                                   const char *nothing, struct result **out, struct error *err);

// Returns the command's printer: JSON or CSV if the options request it, else a text table with
// `columns`.
struct rows cli_rows(const struct cli *cli, const struct columns *columns);

// Prints all rows of `result` with the printer of cli_rows.
MUST_CHECK enum status cli_print(const struct cli *cli, const struct columns *columns,
                                 const struct result *result, struct error *err);

// Prints so the rows that --limit allows, and cli_note_limit.  If `result` has no rows, then
// returns STATUS_NO_DATA; `err` has the command's name and the text `nothing`.
MUST_CHECK enum status cli_print_rows(const struct cli *cli, const struct columns *columns,
                                      const struct result *result, const char *nothing,
                                      struct error *err);

// Answers a query and prints the answer by cli_print_rows.
MUST_CHECK enum status cli_show(struct cli *cli, const struct query *query,
                                const struct columns *columns, const char *nothing,
                                struct error *err);

// The number in column `key` of the answer to PING, or to SUMMARY of cli->query.filter; 0: unknown,
// or no terminal to show progress on.
uint64_t cli_total(struct cli *cli, const char *key);

// Prints an empty JSON list if --json is given, else nothing.
void cli_print_none(const struct cli *cli);

// Returns STATUS_NO_DATA and sets `err` to `what`, "no data" and the reason that nothing was found,
// as in "summary: no data: the store holds none".
enum status cli_no_data(const struct cli *cli, const char *what, struct error *err);

// Prints words by table_print_words in the width of the terminal.
void cli_print_words(const struct cli *cli, int at, int indent, const char *text);

// Prints a line of words so, by a format of printf.
void cli_say(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prints each line of a text so, which it changes.
void cli_print_lines(const struct cli *cli, int indent, char *text);

// The time of the last message in the store file that the options name; 0: they name none, or it
// cannot be read.
int64_t cli_as_of(struct cli *cli);

// After a table of what is now: says that it is not, if it is of a file.
void cli_note_file(struct cli *cli);

// After a table: prints the store's note on the whole answer, such as that older rows have expired.
void cli_note(const struct cli *cli, const struct result *result);

// After a table: notes the rows that --limit left out, "(2 of 56; --limit 0 shows all)"; the advice
// only where it helps.  `all` is 0 where there are more, but their number is unknown.
void cli_note_limit(const struct cli *cli, uint64_t shown, uint64_t all);

// To env.notes: says that an answer to EVENTS has as many as it can, and not all.
void cli_note_events(const struct cli *cli, const struct result *result);

// Prints "(records before TIME have expired)" if the result's first row has an expired_ns.
void cli_note_expired(const struct cli *cli, const struct result *result);

// Writes the conditions of `filter`, as in "model a, host b, since TIME"; `none` if it has none.
void cli_write_filter(FILE *out, const struct query_filter *filter, const char *none);

// Answers a query whose parameter is a file: sets the parameter to the absolute form of `path`.
// The answer has one row, which is printed as JSON if --json is given, else by `print`.
MUST_CHECK enum status cli_ask_of_file(struct cli *cli, struct query *query, const char *path,
                                       void (*print)(struct cli *cli, const struct result *answer),
                                       struct error *err);

// Answers a comparison query, prints the answer, and returns the verdict: STATUS_OK,
// STATUS_CHECK_FAILED (a metric is worse) or STATUS_UNDECIDED.
MUST_CHECK enum status cli_compare(struct cli *cli, const struct query *query, struct error *err);

// Prints the help of a command, or of the program (`name` NULL).
MUST_CHECK enum status cli_show_help(struct cli *cli, const char *name, struct error *err);

// A count with its thousands separated; the text lasts until the end of the block.
#define CLI_COUNT(count) unit_format_int((char[UNIT_TEXT_SIZE]){0}, UNIT_COUNT, (int64_t)(count))

// The plural ending of a noun after a count: "" for one, else "s".
static inline const char *cli_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

// Implements `export --bundle`: writes the matching records to a new store file, the bundle.
MUST_CHECK enum status cli_bundle(struct cli *cli, struct error *err);

// The functions of the command table, and variants of `inferences` and `loads`: --slowest N;
// --average.
cli_command_run command_top, command_now, command_why, command_summary, command_average,
    command_query, command_loads, command_list, command_models, command_devices, command_hosts,
    command_events, command_alerts, command_errors, command_fleet, command_metrics, command_tail,
    command_export, command_backup, command_restore, command_import, command_audit, command_spool,
    command_clear, command_forget, command_doctor, command_ping, command_help, command_keygen,
    command_trust, command_authorize, command_revoke, command_keys, command_baseline,
    command_compare, command_completion, command_slowest, command_load_average;
