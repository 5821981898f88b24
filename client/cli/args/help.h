// Help text, generated from the tables of commands and options.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_HELP_H
#define INFERSTAT_CLIENT_CLI_ARGS_HELP_H

#include <stdio.h>

struct cli_command;

// Writes the help of the program.
void help_write(FILE *out);

// Writes the help of one command.
void help_write_command(FILE *out, const struct cli_command *command);

#endif
