#include "client/cli/options.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/sys/when.h"

// ---- Values -------------------------------------------------------------------

static enum status parse_filter(void *member, const char *value, const char *what,
                                struct error *err)
{
    const size_t size = strlen(value);
    if (size == 0)
        return error_set(err, STATUS_INVALID, "%s: the name is empty", what);
    if (size >= QUERY_TEXT_SIZE)
        return error_set(err, STATUS_INVALID, "%s: the name is %zu bytes long (at most %d)", what,
                         size, QUERY_TEXT_SIZE - 1);
    memcpy(member, value, size + 1);
    return STATUS_OK;
}

static enum status parse_status(void *member, const char *value, const char *what,
                                struct error *err)
{
    if (value[0] && query_status_find(value) < 0)
        return error_set(err, STATUS_INVALID, "%s: no status is '%s' (ok, error or cancelled)",
                         what, value);
    return parse_filter(member, value, what, err);
}

static enum status unknown_dimension(const char *name, const char *what, struct error *err)
{
    const char *names[QUERY_DIMENSION_COUNT];
    char all[128] = "";
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++) {
        const size_t used = strlen(all);
        names[i] = query_dimension_name((enum query_dimension)i);
        (void)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = parse_nearest(name, names, QUERY_DIMENSION_COUNT);
    return error_set(err, STATUS_INVALID, "%s: cannot group by '%s'%s%s%s (one of %s)", what, name,
                     nearest ? ": did you mean " : "", nearest ? nearest : "", nearest ? "?" : "",
                     all);
}

static enum status parse_by(void *member, const char *value, const char *what, struct error *err)
{
    struct cli_options *options = member;
    options->group_count = 0;
    for (const char *rest = value;; rest++) {
        size_t size = strcspn(rest, ",");
        char name[64] = "";
        if (size < sizeof name)
            memcpy(name, rest, size);
        enum query_dimension dimension = query_dimension_find(name);
        if (dimension == QUERY_DIMENSION_COUNT)
            return unknown_dimension(name, what, err);
        for (unsigned i = 0; i < options->group_count; i++) {
            if (options->group_by[i] == dimension)
                return error_set(err, STATUS_INVALID, "%s: %s is there twice", what, name);
        }
        options->group_by[options->group_count++] = dimension;
        rest += size;
        if (*rest == '\0')
            return STATUS_OK;
    }
}

static enum status parse_margin(void *member, const char *value, const char *what,
                                struct error *err)
{
    return parse_ratio(member, value, what, err);
}

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

// A list that `function` sets in the whole of the options.
#define LIST_AT(function, words) .type = OPTION_CUSTOM, .parse = function, .choices = words

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

// Public keys may begin with a dash: such a word behind a command that takes keys is
// no option.
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

static enum status parse_window(struct cli_options *options, int64_t now_ns, struct error *err)
{
    struct query_filter *filter = &options->filter;
    enum status status = STATUS_OK;
    if (options->since)
        status = when_parse(&filter->since_ns, options->since, now_ns, false, "--since", err);
    if (status == STATUS_OK && options->until)
        status = when_parse(&filter->until_ns, options->until, now_ns, true, "--until", err);
    if (status == STATUS_OK && options->since && options->until &&
        filter->since_ns >= filter->until_ns)
        status = error_set(err, STATUS_INVALID,
                           "--since is not before --until: the window is "
                           "empty");
    return status;
}

// Options that depend on each other.
static enum status finish(struct cli_options *options, int64_t now_ns, struct error *err)
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
    return parse_window(options, now_ns, err);
}

enum status options_parse(struct cli_options *out, int argc, char *const *argv, int64_t now_ns,
                          struct error *err)
{
    *out = (struct cli_options){0};
    const struct option_table table = {
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
    }
    return finish(out, now_ns, err);
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
