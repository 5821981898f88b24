// inferstat completion bash|zsh|fish: the script of a shell, which asks "inferstat completion typed
// -- WORD..." what the last word may become: the answer is from the tables of commands, options and
// kinds of records.  inferstat completion models|hosts|...: the names that a store has.
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/known_names.h"
#include "client/cli/args/saved_queries.h"
#include "client/cli/cli.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"
#include "common/core/record/record.h"

// ---- Scripts ------------------------------------------------------------------------

// The answer has a candidate a line, with its meaning behind a tab, and as the last line a slash
// where the word may be a file, too.  Names come from elsewhere: no shell reads them as anything
// but names.  bash replaces of a word what stands behind its last "=" or ":" or its open quote, as
// is; so the script reads the quotes of the line, cuts names there, and quotes the rest.
static const char bash_script[] =
    "_inferstat() {\n"
    "  local word=$2 line=${COMP_LINE:0:COMP_POINT} typed=('') quote= cut=0 name c i\n"
    "  for ((i = 0; i <= ${#line}; i++)); do\n"
    "    ((i + ${#word} != ${#line})) || cut=${#typed[-1]}\n"
    "    c=${line:i:1}\n"
    "    if [[ $c && $quote == \"$c\" ]]; then quote=\n"
    "    elif [[ ! $quote && $c == [\\'\\\"] ]]; then quote=$c\n"
    "    elif [[ ! $quote && $c == ' ' ]]; then [[ ! ${typed[-1]} ]] || typed+=('')\n"
    "    else [[ $c != \\\\ || $quote == \\' ]] || c=${line: ++i:1}; typed[-1]+=$c; fi\n"
    "  done\n"
    "  unset 'typed[0]' COMPREPLY\n"
    "  while IFS=$'\\t' read -r name _; do\n"
    "    if [[ $name == / ]]; then\n"
    "      compopt -o filenames\n"
    "      mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$word\")\n"
    "    elif [[ $name == \"${typed[-1]}\"* ]]; then\n"
    "      name=${name:cut}\n"
    "      case $quote in\n"
    "      \\\") for c in \\\\ \\\" \\$ \\`; do name=${name//\"$c\"/\\\\$c}; done ;;\n"
    "      \\') name=${name//\\'/\\'\\\\\\'\\'} ;;\n"
    "      *) name=$(printf %q \"$name\") ;;\n"
    "      esac\n"
    "      COMPREPLY+=(\"$name\")\n"
    "    fi\n"
    "  done < <(inferstat completion typed -- \"${typed[@]/#[~]\\//$HOME/}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _inferstat inferstat\n";

static const char zsh_script[] =
    "#compdef inferstat\n"
    "_inferstat() {\n"
    "  local -a lines names shown typed\n"
    "  typed=(\"${(@)${(@Q)words[2,CURRENT-1]}/#[~]\\//$HOME/}\" \"${(Q)PREFIX}\")\n"
    "  lines=(\"${(@f)$(inferstat completion typed -- \"${(@)typed}\" 2>/dev/null)}\")\n"
    "  [[ ${lines[-1]} = / ]] && { lines[-1]=(); compset -P '--*='; _files }\n"
    "  names=(\"${(@)lines%%$'\\t'*}\")\n"
    "  shown=(\"${(@)lines/$'\\t'/  -- }\")\n"
    "  if [[ \"$lines\" = *$'\\t'* ]]; then compadd -l -d shown -a names\n"
    "  else compadd -a names; fi\n"
    "}\n"
    "if [[ $funcstack[1] = _inferstat ]]; then _inferstat \"$@\"\n"
    "else compdef _inferstat inferstat; fi\n";

static const char fish_script[] =
    "function __inferstat\n"
    "  set -l words (commandline -opc | string replace -r '^~/' $HOME/)\n"
    "  set -l word (commandline -ct)\n"
    "  set -e words[1]\n"
    "  set -l lines (inferstat completion typed -- $words \"$word\" 2>/dev/null)\n"
    "  if test \"$lines[-1]\" = /\n"
    "    set -e lines[-1]\n"
    "    set -l option (string match -r -- '^--[^=]*=' \"$word\")\n"
    "    set -l path (string replace -r -- '^--[^=]*=' '' \"$word\")\n"
    "    string replace -r -- '^' \"$option\" (__fish_complete_path \"$path\")\n"
    "  end\n"
    "  string join \\n -- $lines\n"
    "end\n"
    "complete -c inferstat -f -a '(__inferstat)'\n";

// ---- Candidates ---------------------------------------------------------------------

// `taken` NULL: all options.
static void write_options(FILE *out, const enum cli_option *taken)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = option_row((enum cli_option)i);
        if (!taken || options_contain(taken, (enum cli_option)i))
            (void)fprintf(out, "--%s\t%s\n", option->name, option->help);
    }
}

static void write_commands(FILE *out)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        (void)fprintf(out, "%s\t%s\n", command->name, command->summary);
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
            (void)fprintf(out, "%s\n", metrics[i].name);
        (void)fprintf(out, "%s.%s\n", record_kind_info(metrics[i].kind)->name, metrics[i].name);
    }
}

static void write_language(FILE *out)
{
    unsigned count;
    const struct query_verb *verbs = query_verbs(&count);
    for (unsigned i = 0; i < count; i++)
        (void)fprintf(out, "%s\n", verbs[i].word);
    for (int i = 0; i < (int)QUERY_CLAUSES_OF_QUERIES; i++)
        (void)fprintf(out, "%s\n", query_clause_word((enum query_clause)i));
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++)
        (void)fprintf(out, "%s\n", query_dimension_name((enum query_dimension)i));
    write_metrics(out);
}

static void write_kinds(FILE *out)
{
    for (int i = 0; i < (int)RECORD_KIND_COUNT; i++)
        (void)fprintf(out, "%s\n", record_kind_info((enum record_kind)i)->name);
}

// What the arguments of commands complete to: words, one a line, and a list of names (see lists).
static const struct completed {
    const char *command;
    const char *words;        // NULL: none
    void (*write)(FILE *out); // NULL: `words`
    const char *names;        // NULL: none
    bool files;
} completed[] = {
    {"avg", .write = write_metrics},
    {"fleet", .write = write_metrics},
    {"tail", .write = write_kinds},
    {"export", .write = write_kinds},
    {"query", .write = write_language, .names = "queries"},
    {"help", .write = write_commands},
    {"alerts", .words = "ack\nunack\nsilence\nunsilence\nsilences\ntrouble\nrules\n",
     .files = true},
    {"baseline", .words = "save\nlist\ndelete\n", .names = "baselines"},
    {"compare", .names = "baselines"},
    {"completion", .words = "bash\nzsh\nfish\n"},
    {"samples", .words = "process\ndevice\nhost\n"},
    {"spool", .words = "list\nflush\n"},
    {"revoke", .names = "keys"},
    {"backup", .files = true},
    {"restore", .files = true},
    {"import", .files = true},
    {"keygen", .files = true},
    {"trust", .files = true},
    {"authorize", .files = true},
};

// ---- Lists --------------------------------------------------------------------------

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
    {"stages", QUERY_BY_STAGE, QUERY_KIND_COUNT, NULL},
    {"workloads", QUERY_BY_WORKLOAD, QUERY_KIND_COUNT, NULL},
    {"events", QUERY_BY_EVENT, QUERY_KIND_COUNT, NULL},
    {"baselines", QUERY_DIMENSION_COUNT, QUERY_BASELINES, "baseline"},
    {"keys", QUERY_DIMENSION_COUNT, QUERY_KEYS, "name"},
    {"queries", QUERY_DIMENSION_COUNT, QUERY_KIND_COUNT, "name"}, // saved by this user
};

static const struct list *find_list(const char *name)
{
    for (size_t i = 0; name && i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].name, name) == 0)
            return &lists[i];
    return NULL;
}

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

static int compare_names(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

// Writes the names in order, each after `before`.
static enum status write_list(struct cli *cli, const struct list *list, const char *before,
                              struct error *err)
{
    struct known_names names = {0};
    enum status status = read_list(&names, cli, list, err);
    if (names.count > 0)
        qsort(names.all, names.count, sizeof *names.all, compare_names);
    for (size_t i = 0; status == STATUS_OK && i < names.count; i++) {
        char *shown = text_escape_new(names.all[i], strlen(names.all[i]));
        (void)fprintf(cli->env.out, "%s%s\n", before, shown ? shown : "");
        free(shown);
    }
    known_names_deinit(&names);
    return status;
}

// ---- What is typed ------------------------------------------------------------------

// The list of names that an option's value is one of; NULL: none.
static const struct list *list_of(enum cli_option option)
{
    const char *name = option_row(option)->name;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i].dimension != QUERY_DIMENSION_COUNT &&
            strcmp(name, query_dimension_name(lists[i].dimension)) == 0)
            return &lists[i];
    return find_list(option == OPTION_AGAINST ? "baselines" : name); // "models" of --models
}

// Finds the option of "-o", "--option" or "--option=value"; OPTION_COUNT: the word is none.
static enum cli_option find_option(const char *word)
{
    const size_t size = strcspn(word, "=");
    int i = 0;
    for (; i < OPTION_COUNT && word[0] == '-'; i++) {
        const struct option *option = option_row((enum cli_option)i);
        if (word[1] == '-'
                ? strlen(option->name) == size - 2 && memcmp(option->name, word + 2, size - 2) == 0
                : word[1] != '\0' && word[1] == option->letter && word[2] == '\0')
            break;
    }
    return word[0] == '-' ? (enum cli_option)i : OPTION_COUNT;
}

// Names are those of the store or collector that was typed.
static void take_value(struct cli *cli, enum cli_option option, const char *value)
{
    if (option == OPTION_DB || option == OPTION_COLLECTOR || option == OPTION_COLLECTOR_USER ||
        option == OPTION_KEY || option == OPTION_SERVER_KEY || option == OPTION_INSECURE)
        (void)!option_set(option_row(option), &cli->options, value, NULL);
}

// What an option's value completes to, each after `before`: words, names, or files.
static enum status write_values(struct cli *cli, enum cli_option option, const char *before,
                                struct error *err)
{
    static const char *const files[] = {"FILE", "KEY", "DIR"};
    const struct option *row = option_row(option);
    const char *value = NULL;
    for (unsigned i = 0; row->choices && (value = row->choices(i)); i++)
        (void)fprintf(cli->env.out, "%s%s\n", before, value);
    for (size_t i = 0; row->argument && i < sizeof files / sizeof *files; i++)
        if (strcmp(row->argument, files[i]) == 0)
            (void)fputs("/\n", cli->env.out);
    return list_of(option) ? write_list(cli, list_of(option), before, err) : STATUS_OK;
}

// What an argument of the command, or an option, completes to.
static enum status write_words(struct cli *cli, const struct cli_command *command, const char *word,
                               struct error *err)
{
    static const struct completed nothing;
    const struct completed *of = &nothing;
    enum status status = STATUS_OK;
    for (size_t i = 0; command && i < sizeof completed / sizeof *completed; i++)
        if (strcmp(completed[i].command, command->name) == 0)
            of = &completed[i];
    if (word[0] == '-' || (command && of == &nothing)) {
        write_options(cli->env.out, command ? command->options : NULL);
        return STATUS_OK;
    }
    if (!command)
        write_commands(cli->env.out);
    if (of->write)
        of->write(cli->env.out);
    else if (of->words)
        (void)fputs(of->words, cli->env.out);
    if (of->names)
        status = write_list(cli, find_list(of->names), "", err);
    if (of->files)
        (void)fputs("/\n", cli->env.out);
    return status;
}

// What the last of the words may become.
static enum status write_candidates(struct cli *cli, const char *const *words, unsigned count,
                                    struct error *err)
{
    const struct cli_command *command = NULL;
    const char *last = count > 0 ? words[count - 1] : "";
    char before[64] = "";
    enum cli_option of = OPTION_COUNT; // the next word is its value
    cli->options.timeout_ns = 1000000000;
    for (unsigned i = 0; i + 1 < count; i++) {
        const enum cli_option option = find_option(words[i]);
        const char *value = strchr(words[i], '=');
        if (of != OPTION_COUNT)
            take_value(cli, of, words[i]);
        else if (option != OPTION_COUNT && (value || !option_row(option)->argument))
            take_value(cli, option, value ? value + 1 : NULL);
        else if (option == OPTION_COUNT && !command)
            (void)!cli_command_find(&command, words[i], NULL);
        const bool is_open = of == OPTION_COUNT && option != OPTION_COUNT && !value;
        of = is_open && option_row(option)->argument ? option : OPTION_COUNT;
    }
    if (of == OPTION_COUNT && strchr(last, '=')) {
        of = find_option(last);
        (void)snprintf(before, sizeof before, "%.*s", (int)strcspn(last, "=") + 1, last);
    }
    return of == OPTION_COUNT ? write_words(cli, command, last, err)
                              : write_values(cli, of, before, err);
}

// ---- The command --------------------------------------------------------------------

enum status command_completion(struct cli *cli, struct error *err)
{
    static const char *const shells[][2] = {
        {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    const struct cli_options *options = &cli->options;
    const char *what = options->arguments[0];
    if (strcmp(what, "typed") == 0)
        return write_candidates(cli, options->arguments + 1, options->argument_count - 1, err);
    if (options->argument_count > 1)
        return error_set(err, STATUS_INVALID, "completion: unexpected argument '%s'",
                         options->arguments[1]);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i][0], what) == 0) {
            (void)fputs(shells[i][1], cli->env.out);
            return STATUS_OK;
        }
    if (find_list(what))
        return write_list(cli, find_list(what), "", err);
    return error_set(err, STATUS_INVALID,
                     "completion: unknown shell or list '%s' (bash, zsh or fish)", what);
}
