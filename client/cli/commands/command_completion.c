// inferstat completion bash|zsh|fish: scripts generated from the tables of commands, options
// and kinds of records.
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/query/query_text.h"
#include "common/core/record/record.h"

// ---- Words ------------------------------------------------------------------------

// `taken` NULL: all options.
static void write_options(FILE *out, const enum cli_option *taken)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (!taken || options_contain(taken, (enum cli_option)i))
            (void)fprintf(out, " --%s", option_row((enum cli_option)i)->name);
}

static void write_commands(FILE *out)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        (void)fprintf(out, " %s", command->name);
}

// Each as KIND.NAME, and as NAME if only one kind has it.
static void write_metrics(FILE *out)
{
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        unsigned kinds = 0;
        for (unsigned j = 0; j < count; j++)
            kinds += strcmp(metrics[i].name, metrics[j].name) == 0;
        if (kinds == 1)
            (void)fprintf(out, " %s", metrics[i].name);
        (void)fprintf(out, " %s.%s", record_kind_info(metrics[i].kind)->name, metrics[i].name);
    }
}

// The words of the query language.
static void write_language(FILE *out)
{
    unsigned count;
    const struct query_verb *verbs = query_verbs(&count);
    for (unsigned i = 0; i < count; i++)
        (void)fprintf(out, " %s", verbs[i].word);
    for (int i = 0; i < (int)QUERY_CLAUSES_OF_QUERIES; i++)
        (void)fprintf(out, " %s", query_clause_word((enum query_clause)i));
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++)
        (void)fprintf(out, " %s", query_dimension_name((enum query_dimension)i));
    write_metrics(out);
}

// The arguments of a command.
static void write_words(FILE *out, const struct cli_command *command)
{
    if (command->run == command_average) {
        write_metrics(out);
    } else if (command->run == command_tail || command->run == command_export) {
        for (int i = 0; i < (int)RECORD_KIND_COUNT; i++)
            (void)fprintf(out, " %s", record_kind_info((enum record_kind)i)->name);
    } else if (command->run == command_query) {
        write_language(out);
    } else if (command->run == command_completion) {
        (void)fputs(" bash zsh fish", out);
    } else if (strcmp(command->name, "samples") == 0) {
        (void)fputs(" process device host", out);
    } else if (command->run == command_help) {
        write_commands(out);
    }
}

// The values that an option accepts, where they are known.
static void write_values(FILE *out, const struct option *option)
{
    const char *value = NULL;
    for (unsigned i = 0; (value = option->choices(i)); i++)
        (void)fprintf(out, " %s", value);
}

// Options whose value is a file, or a key that a file may hold.
static bool is_file(const struct option *option)
{
    return option->argument &&
           (strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "KEY") == 0);
}

// ---- bash (zsh reads the same through bashcompinit) --------------------------------

static void write_value_case(FILE *out, bool files)
{
    const char *separator = "    ";
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = option_row((enum cli_option)i);
        if (!option->argument || is_file(option) != files || option->choices)
            continue;
        (void)fprintf(out, "%s--%s", separator, option->name);
        separator = "|";
    }
    (void)fprintf(out, ") %s return ;;\n",
                  files ? "COMPREPLY=($(compgen -f -- \"$word\"));" : "COMPREPLY=();");
}

// Options with known values, one line each.
static void write_word_cases(FILE *out)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = option_row((enum cli_option)i);
        if (!option->choices)
            continue;
        (void)fprintf(out, "    --%s) COMPREPLY=($(compgen -W '", option->name);
        write_values(out, option);
        (void)fputs("' -- \"$word\")); return ;;\n", out);
    }
}

static void write_bash(FILE *out)
{
    (void)fputs("_inferstat() {\n"
                "  local word=${COMP_WORDS[COMP_CWORD]} command='' words='' i\n"
                "  case ${COMP_WORDS[COMP_CWORD-1]} in\n",
                out);
    write_value_case(out, true);
    write_value_case(out, false);
    write_word_cases(out);
    (void)fputs("  esac\n"
                "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
                "    case ${COMP_WORDS[i]} in\n"
                "      ",
                out);
    const struct cli_command *command;
    for (command = cli_commands; command->name; command++)
        (void)fprintf(out, "%s%s", command > cli_commands ? "|" : "", command->name);
    (void)fputs(") command=${COMP_WORDS[i]}; break ;;\n"
                "    esac\n"
                "  done\n"
                "  case $command in\n",
                out);
    for (command = cli_commands; command->name; command++) {
        (void)fprintf(out, "    %s) words='", command->name);
        write_words(out, command);
        write_options(out, command->options);
        (void)fputs("' ;;\n", out);
    }
    (void)fputs("    *) words='", out);
    write_commands(out);
    write_options(out, NULL);
    (void)fputs("' ;;\n"
                "  esac\n"
                "  if [ \"$command\" = query ]; then\n"
                "    words+=\" $(inferstat query --csv 2>/dev/null | sed -n '2,$s/,.*//p')\"\n"
                "  fi\n"
                "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                "}\n"
                "complete -F _inferstat inferstat\n",
                out);
}

static void write_zsh(FILE *out)
{
    (void)fputs("#compdef inferstat\n"
                "autoload -Uz bashcompinit && bashcompinit\n",
                out);
    write_bash(out);
}

// ---- fish -------------------------------------------------------------------------

// Writes text inside single quotes.
static void write_quoted(FILE *out, const char *text)
{
    (void)fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
    (void)fputc('\'', out);
}

static void write_fish_command(FILE *out, const struct cli_command *command)
{
    (void)fprintf(out, "complete -c inferstat -n __fish_use_subcommand -f -a %s -d ",
                  command->name);
    write_quoted(out, command->summary);
    (void)fputc('\n', out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = option_row((enum cli_option)i);
        if (!options_contain(command->options, (enum cli_option)i))
            continue;
        (void)fprintf(out,
                      "complete -c inferstat -n '__fish_seen_subcommand_from %s' -l %s%s%s -d ",
                      command->name, option->name, option->argument ? " -r" : "",
                      is_file(option) ? " -F" : "");
        write_quoted(out, option->help);
        if (option->choices) {
            (void)fputs(" -f -a '", out);
            write_values(out, option);
            (void)fputc('\'', out);
        }
        (void)fputc('\n', out);
    }
    (void)fprintf(out, "complete -c inferstat -n '__fish_seen_subcommand_from %s' -f -a '",
                  command->name);
    write_words(out, command);
    (void)fputs("'\n", out);
    if (command->run == command_query) // and the names that queries have
        (void)fprintf(out,
                      "complete -c inferstat -n '__fish_seen_subcommand_from %s' -f -a "
                      "'(inferstat query --csv 2>/dev/null | tail -n +2 | cut -d, -f1)'\n",
                      command->name);
}

static void write_fish(FILE *out)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        write_fish_command(out, command);
}

enum status command_completion(struct cli *cli, struct error *err)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *out);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    const char *shell = cli->options.arguments[0];
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].shell, shell) == 0) {
            shells[i].write(cli->env.out);
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_INVALID, "completion: unknown shell '%s' (bash, zsh or fish)",
                     shell);
}
