#include "client/cli/args/cli_options.h"

#include <string.h>

// ---- Values -------------------------------------------------------------------

static const char *dimension_word(unsigned i)
{
    return i < QUERY_DIMENSION_COUNT ? query_dimension_name((enum query_dimension)i) : NULL;
}

static const char *format_word(unsigned i)
{
    static const char *const words[] = {"csv", "json", "jsonl"}; // as in enum cli_format
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const char *role_word(unsigned i)
{
    return i < QUERY_ROLE_COUNT ? query_role_name((enum query_role)i) : NULL;
}

#define OPTION_TARGET struct cli_options

// A text with values for completion.
#define WORDS_AT(member, words) OPTION_AT(TEXT, member), .choices = words

static const struct option rows[OPTION_COUNT] = {
#define CLI_OPTION_ROW(option, text, key, value, at, sense)                                        \
    [OPTION_##option] = {text, value, sense, .letter = key, at},
    CLI_OPTIONS(CLI_OPTION_ROW)
#undef CLI_OPTION_ROW
};

const struct option *option_row(enum cli_option option)
{
    return &rows[option];
}

// ---- The command line ---------------------------------------------------------

// Public keys may begin with a dash: after a command that takes keys such a word is a key.
static bool is_key(const struct cli_options *options, const char *word)
{
    static const char *const commands[] = {"authorize", "revoke", "trust"};
    const struct option_table table = {.options = rows, .count = OPTION_COUNT};
    unsigned char key[WIRE_KEY_SIZE];
    char name[WIRE_KEY_TEXT_SIZE];
    for (size_t i = 0; options->command && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(options->command, commands[i]) != 0 || !wire_key_parse(key, word))
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
        return !option_find(&table, name);
    }
    return false;
}

static enum status add_word(struct cli_options *options, const char *word, struct error *err)
{
    if (!options->command) {
        options->command = word;
        return STATUS_OK;
    }
    if (options->argument_count == CLI_ARGUMENTS_MAX)
        return error_set(err, STATUS_INVALID, "unexpected argument '%s': at most %d", word,
                         CLI_ARGUMENTS_MAX);
    options->arguments[options->argument_count++] = word;
    return STATUS_OK;
}

// Options that depend on each other.
static enum status finish(struct cli_options *options, struct error *err)
{
    const bool json = option_given(options, OPTION_JSON), csv = option_given(options, OPTION_CSV);
    const bool named = option_given(options, OPTION_FORMAT);
    if (option_given(options, OPTION_COLLECTOR) && option_given(options, OPTION_DB))
        return error_set(err, STATUS_INVALID, "--collector and --db: only one of them");
    if (json + csv + named > 1)
        return error_set(err, STATUS_INVALID, "--json, --csv and --format: only one of them");
    if (json || csv)
        options->format = json ? FORMAT_JSON : FORMAT_CSV;
    else if (named)
        options->format = (enum cli_format)(FORMAT_CSV + options->file_format);
    return STATUS_OK;
}

enum status options_parse(struct cli_options *out, int argc, char *const *argv,
                          options_of_command *options_of, struct error *err)
{
    *out = (struct cli_options){0};
    bool suggested[OPTION_COUNT];
    const enum cli_option *list = NULL;
    struct option_table table = {
        .options = rows, .count = OPTION_COUNT, .target = out, .given = out->given};
    struct option_reader reader = {.program = "inferstat",
                                   .words = argv,
                                   .count = argc,
                                   .tables = &table,
                                   .table_count = 1,
                                   .at = 1};
    while (reader.at < argc) {
        const char *word = NULL;
        enum status status = STATUS_OK;
        if (is_key(out, argv[reader.at]))
            word = argv[reader.at++];
        else
            status = option_reader_next(&reader, &word, err);
        if (status == STATUS_OK && word)
            status = add_word(out, word, err);
        if (status != STATUS_OK)
            return status;
        if (options_of && !list && out->command && (list = options_of(out->command)) != NULL)
            table.suggested = suggested;
        for (int i = 0; i < OPTION_COUNT && list; i++)
            suggested[i] = options_contain(list, (enum cli_option)i);
    }
    return finish(out, err);
}

enum status options_refuse(enum cli_option option, const char *command, struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s: unknown option --%s (see inferstat %.*s --help)",
                     command, rows[option].name, (int)strcspn(command, " "), command);
}

bool options_contain(const enum cli_option *list, enum cli_option option)
{
    while (*list != OPTION_COUNT && *list != option)
        list++;
    return *list == option;
}

enum cli_option options_first_given(const struct cli_options *options, const enum cli_option *list)
{
    while (*list != OPTION_COUNT && !options->given[*list])
        list++;
    return *list;
}

enum status options_check(const struct cli_options *options, const enum cli_option *allowed,
                          const char *command, struct error *err)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options->given[i] && !options_contain(allowed, (enum cli_option)i))
            return options_refuse((enum cli_option)i, command, err);
    return STATUS_OK;
}
