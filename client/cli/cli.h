// The program `inferstat`: its commands and the state that each of them gets.
#ifndef INFERSTAT_CLIENT_CLI_CLI_H
#define INFERSTAT_CLIENT_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "client/remote/remote.h"
#include "common/core/base/error.h"
#include "common/core/query/result.h"

struct columns;

// Streams, terminal and clock of the process, set by main.
struct cli_environment {
    FILE *in;
    FILE *out;
    FILE *notes; // standard error: warnings and questions, never results
    bool in_is_terminal;
    bool out_is_terminal;
    unsigned width; // terminal columns of `out`; 0: no limit
    int64_t now_ns; // wall clock at the start
};

// One command being run.
struct cli {
    struct cli_environment env;
    struct cli_options options;
    const struct cli_command *command;
    struct query query;    // that the command asks, of its options or of a text
    struct remote *remote; // opened by the first question
    char expired[64];      // why the last query has no data: its records have expired; "": not so
};

// A command whose name is a verb of the query language takes the clauses of that verb.
struct cli_command {
    const char *name;
    const char *arguments;          // as usage shows them; "" for none
    const char *summary;            // one line
    const char *details;            // more lines for its own help; NULL: none
    const enum cli_option *options; // that it takes; OPTION_COUNT ends them
    unsigned arguments_min, arguments_max;
    enum status (*run)(struct cli *cli, struct error *err);
};

// All commands, in the order that help lists them.
const struct cli_command *cli_commands(unsigned *count);

// The command of that name.  STATUS_INVALID names the nearest one.
MUST_CHECK enum status cli_command_find(const struct cli_command **out, const char *name,
                                        struct error *err);

// Runs the program on a command line.  Results go to env->out, errors into `err`.
MUST_CHECK enum status cli_run(const struct cli_environment *env, int argc, char *const *argv,
                               struct error *err);

// The exit code of a status: 0 done, 1 a check failed, 2 usage, 3 no data, 4 the collector or
// file cannot be reached or used, 5 undecided.
int cli_exit_code(enum status status);

// ---- For commands -----------------------------------------------------------------

// Sends a query to the collector or file that the options name.
MUST_CHECK enum status cli_ask(struct cli *cli, const struct query *query, struct result **out,
                               struct error *err);

// The collector or file that the options name.
struct remote_target cli_target(const struct cli *cli);

// The name of the collector or file, which is opened first if necessary.
MUST_CHECK enum status cli_source(struct cli *cli, const char **out, struct error *err);

// The same; without data prints an empty list with --json and fails as cli_no_data does.
MUST_CHECK enum status cli_ask_for(struct cli *cli, const struct query *query, const char *what,
                                   struct result **out, struct error *err);

// Prints a result as a table with these columns, or as --json and --csv say.
MUST_CHECK enum status cli_print(const struct cli *cli, const struct columns *view,
                                 const struct result *result, struct error *err);

// STATUS_NO_DATA with the reason: expiry, a window in the future, the filters, an empty store.
enum status cli_no_data(const struct cli *cli, const char *what, struct error *err);

// Prints until when records have expired, if the answer's first row has an expired_ns.
void cli_note_expired(const struct cli *cli, const struct result *result);

// Writes the dimensions of a filter, "model a, host b", behind `before`; false if it has none.
bool cli_write_filter(FILE *out, const struct query_filter *filter, const char *before);

// Sends a query about a file, whose path may be relative, and prints the answer, which has
// one row: as JSON with --json, else by `print`.
MUST_CHECK enum status cli_ask_of_file(struct cli *cli, struct query *query, const char *path,
                                       void (*print)(struct cli *cli, const struct result *answer),
                                       struct error *err);

// Sends a comparison and prints its answer; the status is the verdict.
MUST_CHECK enum status cli_compare(struct cli *cli, const struct query *query, struct error *err);

// export --bundle: the store writes it.
MUST_CHECK enum status cli_bundle(struct cli *cli, struct error *err);

// One function per command; commands.c has the table.
MUST_CHECK enum status command_top(struct cli *cli, struct error *err);
MUST_CHECK enum status command_summary(struct cli *cli, struct error *err);
MUST_CHECK enum status command_average(struct cli *cli, struct error *err);
MUST_CHECK enum status command_query(struct cli *cli, struct error *err);
MUST_CHECK enum status command_loads(struct cli *cli, struct error *err);
MUST_CHECK enum status command_list(struct cli *cli, struct error *err);
MUST_CHECK enum status command_fleet(struct cli *cli, struct error *err);
MUST_CHECK enum status command_runs(struct cli *cli, struct error *err);
MUST_CHECK enum status command_metrics(struct cli *cli, struct error *err);
MUST_CHECK enum status command_tail(struct cli *cli, struct error *err);
MUST_CHECK enum status command_export(struct cli *cli, struct error *err);
MUST_CHECK enum status command_backup(struct cli *cli, struct error *err);
MUST_CHECK enum status command_import(struct cli *cli, struct error *err);
MUST_CHECK enum status command_audit(struct cli *cli, struct error *err);
MUST_CHECK enum status command_spool(struct cli *cli, struct error *err);
MUST_CHECK enum status command_clear(struct cli *cli, struct error *err);
MUST_CHECK enum status command_ping(struct cli *cli, struct error *err);
MUST_CHECK enum status command_help(struct cli *cli, struct error *err);
MUST_CHECK enum status command_keygen(struct cli *cli, struct error *err);
MUST_CHECK enum status command_trust(struct cli *cli, struct error *err);
MUST_CHECK enum status command_authorize(struct cli *cli, struct error *err);
MUST_CHECK enum status command_revoke(struct cli *cli, struct error *err);
MUST_CHECK enum status command_keys(struct cli *cli, struct error *err);
MUST_CHECK enum status command_baseline(struct cli *cli, struct error *err);
MUST_CHECK enum status command_compare(struct cli *cli, struct error *err);
MUST_CHECK enum status command_completion(struct cli *cli, struct error *err);

#endif
