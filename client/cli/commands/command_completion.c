// inferstat completion bash|zsh|fish: scripts generated from the tables of commands, options
// and kinds of records.  inferstat completion models|hosts|...: the names that these scripts offer.
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/known_names.h"
#include "client/cli/args/saved_queries.h"
#include "client/cli/cli.h"
#include "common/core/base/text.h"
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

static void write_kinds(FILE *out)
{
    for (int i = 0; i < (int)RECORD_KIND_COUNT; i++)
        (void)fprintf(out, " %s", record_kind_info((enum record_kind)i)->name);
}

// What the arguments of commands complete to: words, and a list of names (see lists).
static const struct completed {
    const char *command;
    const char *words;        // or
    void (*write)(FILE *out); // NULL: `words`
    const char *names;        // NULL: none
    bool files;
} completed[] = {
    {"avg", NULL, write_metrics, NULL, false},
    {"fleet", NULL, write_metrics, NULL, false},
    {"tail", NULL, write_kinds, NULL, false},
    {"export", NULL, write_kinds, NULL, false},
    {"query", NULL, write_language, "queries", false},
    {"help", NULL, write_commands, NULL, false},
    {"alerts", " ack unack silence unsilence silences trouble rules", NULL, NULL, true},
    {"baseline", " save list delete", NULL, "baselines", false},
    {"compare", NULL, NULL, "baselines", false},
    {"completion", " bash zsh fish", NULL, NULL, false},
    {"samples", " process device host", NULL, NULL, false},
    {"spool", " list flush", NULL, NULL, false},
    {"revoke", NULL, NULL, "keys", false},
    {"backup", NULL, NULL, NULL, true},
    {"restore", NULL, NULL, NULL, true},
    {"import", NULL, NULL, NULL, true},
    {"keygen", NULL, NULL, NULL, true},
    {"trust", NULL, NULL, NULL, true},
    {"authorize", NULL, NULL, NULL, true},
};

static const struct completed *completed_of(const struct cli_command *command)
{
    static const struct completed nothing;
    for (size_t i = 0; i < sizeof completed / sizeof *completed; i++)
        if (strcmp(completed[i].command, command->name) == 0)
            return &completed[i];
    return &nothing;
}

// Writes each word after a blank.
static void write_words(FILE *out, const struct completed *of)
{
    if (of->write)
        of->write(out);
    else if (of->words)
        (void)fputs(of->words, out);
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
           (strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "KEY") == 0 ||
            strcmp(option->argument, "DIR") == 0);
}

// The list of names that an option's value is one of; NULL: none.
static const char *names_of(int option)
{
    switch (option) {
    case OPTION_MODEL:
    case OPTION_MODELS:
        return "models";
    case OPTION_HOST:
        return "hosts";
    case OPTION_DEVICE:
        return "devices";
    case OPTION_OPERATION:
        return "operations";
    case OPTION_AGAINST:
        return "baselines";
    default:
        return NULL;
    }
}

// ---- bash -------------------------------------------------------------------------

// Names come from elsewhere: no shell reads them as anything but names.
static const char bash_names[] =
    "# Offers the names that begin with $word.\n"
    "_inferstat_names() {\n"
    "  local line source=() i name\n"
    "  read -ra line <<<\"${COMP_LINE-}\"\n"
    "  for ((i = 1; i < ${#line[@]}; i++)); do\n"
    "    case ${line[i]} in\n"
    "      --db | --collector | --key | --server-key) source+=(\"${line[i]}\" \"${line[i+1]-}\") "
    ";;\n"
    "      --db=* | --collector=* | --key=* | --server-key=*) source+=(\"${line[i]}\") ;;\n"
    "    esac\n"
    "  done\n"
    "  while IFS= read -r name; do\n"
    "    [[ $name != \"$word\"* ]] || COMPREPLY+=(\"$(printf %q \"$name\")\")\n"
    "  done < <(inferstat \"${source[@]}\" --timeout 1s completion \"$1\" 2>/dev/null)\n"
    "}\n";

// What follows an option, one line each; then those with any value.
static void write_bash_values(FILE *out)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = option_row((enum cli_option)i);
        if (!option->argument || !(option->choices || names_of(i) || is_file(option)))
            continue;
        (void)fprintf(out, "    --%s) ", option->name);
        if (option->choices) {
            (void)fputs("mapfile -t COMPREPLY < <(compgen -W '", out);
            write_values(out, option);
            (void)fputs("' -- \"$word\");", out);
        } else if (names_of(i)) {
            (void)fprintf(out, "_inferstat_names %s;", names_of(i));
        } else {
            (void)fputs("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\");",
                        out);
        }
        (void)fputs(" return ;;\n", out);
    }
    (void)fputs("    -*) [[ $values == *\" ${COMP_WORDS[COMP_CWORD-1]} \"* ]] && return ;;\n", out);
}

static void write_bash_command(FILE *out, const struct cli_command *command)
{
    const struct completed *of = completed_of(command);
    (void)fprintf(out, "    %s) words='", command->name);
    write_words(out, of);
    write_options(out, command->options);
    (void)fprintf(out, "' names=%s files=%s ;;\n", of->names ? of->names : "",
                  of->files ? "yes" : "");
}

static void write_bash(FILE *out)
{
    (void)fputs(bash_names, out);
    (void)fputs("_inferstat() {\n"
                "  local word=${COMP_WORDS[COMP_CWORD]} command='' words='' names='' files='' i\n"
                "  local values='",
                out);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (option_row((enum cli_option)i)->argument)
            (void)fprintf(out, " --%s", option_row((enum cli_option)i)->name);
    (void)fputs(" '\n"
                "  COMPREPLY=()\n"
                "  case ${COMP_WORDS[COMP_CWORD-1]} in\n",
                out);
    write_bash_values(out);
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
    for (command = cli_commands; command->name; command++)
        write_bash_command(out, command);
    (void)fputs("    *) words='", out);
    write_commands(out);
    write_options(out, NULL);
    (void)fputs("' ;;\n"
                "  esac\n"
                "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                "  [ -z \"$names\" ] || _inferstat_names \"$names\"\n"
                "  if [ -n \"$files\" ] && [[ $word != -* ]]; then\n"
                "    compopt -o filenames\n"
                "    mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n"
                "  fi\n"
                "}\n"
                "complete -F _inferstat inferstat\n",
                out);
}

// ---- zsh --------------------------------------------------------------------------

static const char zsh_names[] =
    "#compdef inferstat\n"
    "_inferstat_names() {\n"
    "  local -a from names\n"
    "  local i\n"
    "  for ((i = 2; i < CURRENT; i++)); do\n"
    "    case $words_typed[i] in\n"
    "      --db|--collector|--key|--server-key) from+=(\"$words_typed[i]\" "
    "\"${(Q)words_typed[i+1]}\") ;;\n"
    "      (--db|--collector|--key|--server-key)=*) from+=(\"${(Q)words_typed[i]}\") ;;\n"
    "    esac\n"
    "  done\n"
    "  names=(\"${(@f)$(inferstat $from --timeout 1s completion $1 2>/dev/null)}\")\n"
    "  compadd -a names\n"
    "}\n";

// Writes text in single quotes, each of `special` behind a backslash.
static void write_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            (void)fputc('\\', out);
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fputc(*text, out);
    }
}

// "--limit=[at most N rows]:N: ", also for its letter.
static void write_zsh_option(FILE *out, int place)
{
    const struct option *option = option_row((enum cli_option)place);
    const char *names[] = {"--", "-"};
    for (int i = 0; i < (option->letter ? 2 : 1); i++) {
        (void)fprintf(out, "        '%s", names[i]);
        if (i == 0)
            (void)fprintf(out, "%s%s", option->name, option->argument ? "=" : "");
        else
            (void)fprintf(out, "%c%s", option->letter, option->argument ? "+" : "");
        (void)fputc('[', out);
        write_quoted(out, option->help, "[]:\\");
        (void)fputc(']', out);
        if (option->argument)
            (void)fprintf(out, ":%s:", option->argument);
        if (option->argument && option->choices) {
            (void)fputc('(', out);
            write_values(out, option);
            (void)fputc(')', out);
        } else if (names_of(place)) {
            (void)fprintf(out, "{_inferstat_names %s}", names_of(place));
        } else if (is_file(option)) {
            (void)fputs("_files", out);
        } else if (option->argument) {
            (void)fputc(' ', out);
        }
        (void)fputs("' \\\n", out);
    }
}

static void write_zsh_options(FILE *out, const enum cli_option *taken)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (!taken || options_contain(taken, (enum cli_option)i))
            write_zsh_option(out, i);
}

// What the arguments of a command are: `_inferstat_NAME`.
static void write_zsh_arguments(FILE *out, const struct cli_command *command)
{
    const struct completed *of = completed_of(command);
    (void)fprintf(out, "    %s)\n      arguments=(", command->name);
    write_words(out, of);
    (void)fprintf(out, ") names=%s files=%s\n      _arguments -s -S \\\n",
                  of->names ? of->names : "", of->files ? "_files" : "");
    write_zsh_options(out, command->options);
    (void)fputs("        '*: :_inferstat_arguments' ;;\n", out);
}

static void write_zsh(FILE *out)
{
    const struct cli_command *command;
    (void)fputs(zsh_names, out);
    (void)fputs("_inferstat_arguments() {\n"
                "  compadd -a arguments\n"
                "  [[ -z $names ]] || _inferstat_names $names\n"
                "  [[ -z $files ]] || _files\n"
                "}\n"
                "_inferstat_commands() {\n"
                "  _describe command commands\n"
                "}\n"
                "_inferstat() {\n"
                "  local command= names= files= word\n"
                "  local -a commands arguments words_typed\n"
                "  words_typed=(\"${words[@]}\")\n"
                "  commands=(\n",
                out);
    for (command = cli_commands; command->name; command++) {
        (void)fprintf(out, "    '%s:", command->name);
        write_quoted(out, command->summary, "");
        (void)fputs("'\n", out);
    }
    (void)fputs("  )\n"
                "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
                "    [[ -n ${commands[(r)${(b)word}:*]} ]] && command=$word && break\n"
                "  done\n"
                "  case $command in\n",
                out);
    for (command = cli_commands; command->name; command++)
        write_zsh_arguments(out, command);
    (void)fputs("    *)\n      _arguments -s -S \\\n", out);
    write_zsh_options(out, NULL);
    (void)fputs("        '*: :_inferstat_commands' ;;\n"
                "  esac\n"
                "}\n"
                "if [[ $funcstack[1] = _inferstat ]]; then _inferstat \"$@\"\n"
                "else compdef _inferstat inferstat; fi\n",
                out);
}

// ---- fish -------------------------------------------------------------------------

static const char fish_names[] =
    "function __inferstat_names\n"
    "  set -l words (commandline -opc)\n"
    "  set -l from\n"
    "  for i in (seq (count $words))\n"
    "    if contains -- $words[$i] --db --collector --key --server-key\n"
    "      set -a from $words[$i] $words[(math $i + 1)]\n"
    "    else if string match -qr '^--(db|collector|key|server-key)=' -- $words[$i]\n"
    "      set -a from $words[$i]\n"
    "    end\n"
    "  end\n"
    "  inferstat $from --timeout 1s completion $argv[1] 2>/dev/null\n"
    "end\n"
    "complete -c inferstat -f\n";

// What a command's arguments complete to.
static void write_fish_arguments(FILE *out, const struct cli_command *command)
{
    const struct completed *of = completed_of(command);
    (void)fprintf(out, "complete -c inferstat -n '__fish_seen_subcommand_from %s' %s -a '",
                  command->name, of->files ? "-F" : "-f");
    write_words(out, of);
    (void)fputs("'\n", out);
    if (of->names)
        (void)fprintf(out,
                      "complete -c inferstat -n '__fish_seen_subcommand_from %s' -f -a "
                      "'(__inferstat_names %s)'\n",
                      command->name, of->names);
}

static void write_fish_option(FILE *out, const struct cli_command *command, int place)
{
    const struct option *option = option_row((enum cli_option)place);
    (void)fprintf(out, "complete -c inferstat -n '__fish_seen_subcommand_from %s' -l %s",
                  command->name, option->name);
    if (option->letter)
        (void)fprintf(out, " -s %c", option->letter);
    (void)fprintf(out, "%s%s -d '", option->argument ? " -r" : "",
                  is_file(option)    ? " -F"
                  : option->argument ? " -f"
                                     : "");
    write_quoted(out, option->help, "\\");
    (void)fputc('\'', out);
    if (option->choices) {
        (void)fputs(" -a '", out);
        write_values(out, option);
        (void)fputc('\'', out);
    } else if (names_of(place)) {
        (void)fprintf(out, " -a '(__inferstat_names %s)'", names_of(place));
    }
    (void)fputc('\n', out);
}

static void write_fish(FILE *out)
{
    (void)fputs(fish_names, out);
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        (void)fprintf(out, "complete -c inferstat -n __fish_use_subcommand -f -a %s -d '",
                      command->name);
        write_quoted(out, command->summary, "\\");
        (void)fputs("'\n", out);
        for (int i = 0; i < OPTION_COUNT; i++)
            if (options_contain(command->options, (enum cli_option)i))
                write_fish_option(out, command, i);
        write_fish_arguments(out, command);
    }
}

// ---- Names ------------------------------------------------------------------------

// Lists of names, and where they are: a dimension, or a column of a query's answer.
static const struct list {
    const char *name;
    enum query_dimension dimension; // QUERY_DIMENSION_COUNT: none
    enum query_kind query;
    const char *column;
} lists[] = {
    {"models", QUERY_BY_MODEL, QUERY_KIND_COUNT, NULL},
    {"hosts", QUERY_BY_HOST, QUERY_KIND_COUNT, NULL},
    {"devices", QUERY_BY_DEVICE, QUERY_KIND_COUNT, NULL},
    {"operations", QUERY_BY_OPERATION, QUERY_KIND_COUNT, NULL},
    {"baselines", QUERY_DIMENSION_COUNT, QUERY_BASELINES, "baseline"},
    {"keys", QUERY_DIMENSION_COUNT, QUERY_KEYS, "name"},
    {"queries", QUERY_DIMENSION_COUNT, QUERY_KIND_COUNT, "name"}, // saved by this user
};

static enum status read_list(struct known_names *names, struct cli *cli, const struct list *list,
                             struct error *err)
{
    struct result *result = NULL;
    if (list->dimension != QUERY_DIMENSION_COUNT)
        return known_names_read(names, cli, list->dimension, err);
    const struct query query = {.kind = list->query};
    enum status status = list->query == QUERY_KIND_COUNT ? saved_queries_list(cli, &result, err)
                                                         : cli_ask(cli, &query, &result, err);
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(result); row++)
        status = known_names_add(names, result_get(result, row, list->column), err);
    result_free(result);
    return status;
}

static enum status write_list(struct cli *cli, const struct list *list, struct error *err)
{
    struct known_names names = {0};
    enum status status = read_list(&names, cli, list, err);
    for (size_t i = 0; status == STATUS_OK && i < names.count; i++) {
        char *shown = text_escape_new(names.all[i], strlen(names.all[i]));
        (void)fprintf(cli->env.out, "%s\n", shown ? shown : "");
        free(shown);
    }
    known_names_deinit(&names);
    return status;
}

enum status command_completion(struct cli *cli, struct error *err)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *out);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    const char *what = cli->options.arguments[0];
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].shell, what) == 0) {
            shells[i].write(cli->env.out);
            return STATUS_OK;
        }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].name, what) == 0)
            return write_list(cli, &lists[i], err);
    return error_set(err, STATUS_INVALID,
                     "completion: unknown shell or list '%s' (bash, zsh or fish)", what);
}
