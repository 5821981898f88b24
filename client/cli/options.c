#include "client/cli/options.h"

#include <stdio.h>
#include <string.h>

#include "common/sys/when.h"
#include "common/core/parse.h"

// Filters are options of the same names, in the same order, as the dimensions.
_Static_assert(OPTION_STATUS - OPTION_MODEL + 1 == (int)QUERY_DIMENSION_COUNT,
               "one filter a dimension");

static const struct option_info infos[OPTION_COUNT] = {
#define CLI_OPTION_INFO(option, text, key, value, sense)                                           \
    [OPTION_##option] = {.name = text, .argument = value, .meaning = sense, .letter = key},
    CLI_OPTIONS(CLI_OPTION_INFO)
#undef CLI_OPTION_INFO
};

const struct option_info *option_info(enum cli_option option)
{
    return &infos[option];
}

// ---- Finding ------------------------------------------------------------------

static enum status unknown_option(const char *word, const char *name, size_t size,
                                  struct error *err)
{
    const char *names[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++)
        names[i] = infos[i].name;
    char text[64] = "";
    if (size < sizeof text)
        memcpy(text, name, size);
    const char *nearest = parse_nearest(text, names, OPTION_COUNT);
    if (nearest)
        return error_set(err, STATUS_INVALID, "%s: unknown option (did you mean --%s?)", word,
                         nearest);
    return error_set(err, STATUS_INVALID, "%s: unknown option (see inferstat --help)", word);
}

static enum cli_option find_name(const char *name, size_t size)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (strlen(infos[i].name) == size && memcmp(infos[i].name, name, size) == 0)
            return (enum cli_option)i;
    }
    return OPTION_COUNT;
}

static enum cli_option find_letter(char letter)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (infos[i].letter != 0 && infos[i].letter == letter)
            return (enum cli_option)i;
    }
    return OPTION_COUNT;
}

// ---- Values -------------------------------------------------------------------

static enum status take_filter(struct cli_options *options, enum cli_option option,
                               const char *value, const char *what, struct error *err)
{
    char *place = options->filter.by[option - OPTION_MODEL];
    size_t size = strlen(value);
    if (size == 0)
        return error_set(err, STATUS_INVALID, "%s: the name is empty", what);
    if (size >= QUERY_TEXT_SIZE)
        return error_set(err, STATUS_INVALID, "%s: the name is %zu bytes long (at most %d)", what,
                         size, QUERY_TEXT_SIZE - 1);
    if (option == OPTION_STATUS && query_status_find(value) < 0)
        return error_set(err, STATUS_INVALID, "%s: no status is '%s' (ok, error or cancelled)",
                         what, value);
    memcpy(place, value, size + 1);
    return STATUS_OK;
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

static enum status take_by(struct cli_options *options, const char *value, const char *what,
                           struct error *err)
{
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

static enum status take_format(struct cli_options *options, const char *value, const char *what,
                               struct error *err)
{
    static const char *const names[] = {
        [FORMAT_CSV] = "csv", [FORMAT_JSON] = "json", [FORMAT_JSONL] = "jsonl"};
    for (int i = FORMAT_CSV; i <= FORMAT_JSONL; i++) {
        if (strcmp(value, names[i]) == 0) {
            options->format = (enum cli_format)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_INVALID, "%s: unknown format '%s' (csv, json or jsonl)", what,
                     value);
}

static enum status take_roles(struct cli_options *options, const char *value, const char *what,
                              struct error *err)
{
    options->roles = 0;
    for (const char *rest = value;; rest++) {
        const size_t size = strcspn(rest, ",");
        char name[64] = "";
        if (size < sizeof name)
            memcpy(name, rest, size);
        const enum query_role role = query_role_find(name);
        if (role == QUERY_ROLE_COUNT)
            return error_set(err, STATUS_INVALID,
                             "%s: unknown role '%s' (producer, reader or admin)", what, name);
        options->roles |= UINT32_C(1) << role;
        rest += size;
        if (*rest == '\0')
            return STATUS_OK;
    }
}

static enum status take_period(uint64_t *out, const char *value, const char *what,
                               struct error *err)
{
    int64_t duration_ns;
    enum status status = parse_duration(&duration_ns, value, what, err);
    if (status != STATUS_OK)
        return status;
    if (duration_ns == 0)
        return error_set(err, STATUS_INVALID, "%s: the time must be above zero", what);
    *out = (uint64_t)duration_ns;
    return STATUS_OK;
}

static enum status take_step(struct cli_options *options, const char *value, const char *what,
                             struct error *err)
{
    uint64_t step_ns = 0;
    enum status status = take_period(&step_ns, value, what, err);
    if (status == STATUS_OK)
        options->step_ns = (int64_t)step_ns;
    return status;
}

static enum status take_count(uint32_t *out, const char *value, int64_t least, const char *what,
                              struct error *err)
{
    int64_t count;
    enum status status = parse_int(&count, value, least, UINT32_MAX, what, err);
    if (status == STATUS_OK)
        *out = (uint32_t)count;
    return status;
}

static enum status take_value(struct cli_options *options, enum cli_option option,
                              const char *value, int64_t now_ns, struct error *err)
{
    char what[40];
    (void)snprintf(what, sizeof what, "--%s", infos[option].name);
    switch (option) {
    case OPTION_COLLECTOR:
        options->collector = value;
        return STATUS_OK;
    case OPTION_DB:
        options->db = value;
        return STATUS_OK;
    case OPTION_OUTPUT:
        options->output = value;
        return STATUS_OK;
    case OPTION_KEY:
        options->trust.key_file = value;
        return STATUS_OK;
    case OPTION_SERVER_KEY:
        options->trust.server_key = value;
        return STATUS_OK;
    case OPTION_INSECURE:
        options->trust.insecure = true;
        return STATUS_OK;
    case OPTION_ROLE:
        return take_roles(options, value, what, err);
    case OPTION_NAME:
        options->name = value;
        return STATUS_OK;
    case OPTION_REPLACES:
        options->replaces = value;
        return STATUS_OK;
    case OPTION_SPOOL:
        options->spool = value;
        return STATUS_OK;
    case OPTION_TIMEOUT:
        return take_period(&options->timeout_ns, value, what, err);
    case OPTION_INTERVAL:
        return take_period(&options->interval_ns, value, what, err);
    case OPTION_LIMIT:
        return take_count(&options->limit, value, 0, what, err);
    case OPTION_STEP:
        return take_step(options, value, what, err);
    case OPTION_SLO:
        options->slo = value;
        return STATUS_OK;
    case OPTION_SLOWEST:
        return take_count(&options->slowest, value, 1, what, err);
    case OPTION_AGAINST:
        options->against = value;
        return STATUS_OK;
    case OPTION_METRIC:
        options->metric = value;
        return STATUS_OK;
    case OPTION_MARGIN:
        return parse_ratio(&options->margin, value, what, err);
    case OPTION_BUNDLE:
        options->bundle = value;
        return STATUS_OK;
    case OPTION_QUERY:
        options->query = value;
        return STATUS_OK;
    case OPTION_SINCE:
        options->since = value;
        return when_parse(&options->filter.since_ns, value, now_ns, false, what, err);
    case OPTION_UNTIL:
        options->until = value;
        return when_parse(&options->filter.until_ns, value, now_ns, true, what, err);
    case OPTION_BY:
        return take_by(options, value, what, err);
    case OPTION_FORMAT:
        return take_format(options, value, what, err);
    case OPTION_MODEL:
    case OPTION_HOST:
    case OPTION_DEVICE:
    case OPTION_RUN:
    case OPTION_OPERATION:
    case OPTION_STAGE:
    case OPTION_WORKLOAD:
    case OPTION_STATUS:
        return take_filter(options, option, value, what, err);
    case OPTION_JSON:
        options->format = FORMAT_JSON;
        return STATUS_OK;
    case OPTION_CSV:
        options->format = FORMAT_CSV;
        return STATUS_OK;
    case OPTION_OLDEST:
    case OPTION_AVERAGE:
    case OPTION_COMPARE:
    case OPTION_CHECK:
    case OPTION_MARKDOWN:
    case OPTION_LINE:
    case OPTION_COLUMNS:
    case OPTION_YES:
    case OPTION_ASCII:
    case OPTION_NO_MOUSE:
    case OPTION_READONLY:
    case OPTION_SERVER:
    case OPTION_FORCE:
    case OPTION_NO_COLOR:
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_COUNT:
        break;
    }
    return STATUS_OK;
}

// ---- The line -----------------------------------------------------------------

// A command line being read.
struct words {
    char *const *next;
    int left;
    int64_t now_ns;
};

static enum status take_option(struct cli_options *options, enum cli_option option,
                               const char *attached, struct words *words, struct error *err)
{
    const struct option_info *info = &infos[option];
    const char *value = attached;
    if (info->argument && !value) {
        if (words->left == 0)
            return error_set(err, STATUS_INVALID, "--%s: its value is missing (--%s %s)",
                             info->name, info->name, info->argument);
        value = *words->next++;
        words->left--;
    }
    if (!info->argument && value)
        return error_set(err, STATUS_INVALID, "--%s: takes no value", info->name);
    options->given |= UINT64_C(1) << option;
    return take_value(options, option, value, words->now_ns, err);
}

static enum status take_long(struct cli_options *options, const char *word, struct words *words,
                             struct error *err)
{
    const char *name = word + 2;
    size_t size = strcspn(name, "=");
    enum cli_option option = find_name(name, size);
    if (option == OPTION_COUNT)
        return unknown_option(word, name, size, err);
    return take_option(options, option, name[size] == '=' ? name + size + 1 : NULL, words, err);
}

// Reads "-n5", "-n 5", and letters without a value run together ("-yh").
static enum status take_letters(struct cli_options *options, const char *word, struct words *words,
                                struct error *err)
{
    for (const char *letter = word + 1; *letter; letter++) {
        enum cli_option option = find_letter(*letter);
        if (option == OPTION_COUNT)
            return error_set(err, STATUS_INVALID, "%s: unknown option (see inferstat --help)",
                             word);
        const char *attached = infos[option].argument && letter[1] ? letter + 1 : NULL;
        enum status status = take_option(options, option, attached, words, err);
        if (status != STATUS_OK || infos[option].argument)
            return status;
    }
    return STATUS_OK;
}

// Public keys may begin with a dash: such a word behind a command that takes keys is
// no option.
static bool is_key(const struct cli_options *options, const char *word)
{
    static const char *const commands[] = {"authorize", "revoke", "trust"};
    unsigned char key[WIRE_KEY_SIZE];
    for (size_t i = 0; options->command && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(options->command, commands[i]) == 0)
            return wire_key_parse(key, word) &&
                   find_name(word + 2, strcspn(word + 2, "=")) == OPTION_COUNT;
    return false;
}

static enum status take_word(struct cli_options *options, const char *word, struct error *err)
{
    if (!options->command) {
        options->command = word;
        return STATUS_OK;
    }
    if (options->argument_count == CLI_ARGUMENTS_MAX)
        return error_set(err, STATUS_INVALID, "%s: one word too many", word);
    options->arguments[options->argument_count++] = word;
    return STATUS_OK;
}

static enum status check_together(const struct cli_options *options, struct error *err)
{
    if (option_given(options, OPTION_COLLECTOR) && option_given(options, OPTION_DB))
        return error_set(err, STATUS_INVALID, "--collector and --db: only one of them");
    if (option_given(options, OPTION_JSON) + option_given(options, OPTION_CSV) +
            option_given(options, OPTION_FORMAT) >
        1)
        return error_set(err, STATUS_INVALID, "--json, --csv and --format: only one of them");
    const struct query_filter *filter = &options->filter;
    if (option_given(options, OPTION_SINCE) && option_given(options, OPTION_UNTIL) &&
        filter->since_ns >= filter->until_ns)
        return error_set(err, STATUS_INVALID, "--since is not before --until: nothing is between");
    return STATUS_OK;
}

enum status options_parse(struct cli_options *out, int argc, char *const *argv, int64_t now_ns,
                          struct error *err)
{
    *out = (struct cli_options){0};
    struct words words = {.next = argv + 1, .left = argc - 1, .now_ns = now_ns};
    bool only_words = false;
    while (words.left > 0) {
        const char *word = *words.next++;
        words.left--;
        enum status status;
        if (only_words || word[0] != '-' || word[1] == '\0' || is_key(out, word))
            status = take_word(out, word, err);
        else if (strcmp(word, "--") == 0) {
            only_words = true;
            status = STATUS_OK;
        } else if (word[1] == '-')
            status = take_long(out, word, &words, err);
        else
            status = take_letters(out, word, &words, err);
        if (status != STATUS_OK)
            return status;
    }
    return check_together(out, err);
}

enum status options_check(const struct cli_options *options, uint64_t allowed, const char *command,
                          struct error *err)
{
    uint64_t stray = options->given & ~allowed;
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (stray >> i & 1)
            return error_set(err, STATUS_INVALID,
                             "%s: --%s is no option of it (see inferstat %s --help)", command,
                             infos[i].name, command);
    }
    return STATUS_OK;
}
