#include "common/sys/option_table.h"

#include <limits.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"

enum { NAMES_MAX = 128, NAME_SIZE = 64, HELP_WIDTH = 80, TERM_WIDTH = 20 };

// ---- Values -------------------------------------------------------------------

static enum status set_flag(bool *member, const char *value, const char *what, struct error *err)
{
    if (value && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return error_set(err, STATUS_INVALID, "%s: \"%.40s\" is neither yes nor no", what, value);
    *member = !value || strcmp(value, "yes") == 0;
    return STATUS_OK;
}

static enum status set_path(char *member, const char *value, const char *what, struct error *err)
{
    const size_t size = strlen(value);
    if (size == 0 || size >= PATH_MAX)
        return error_set(err, STATUS_INVALID, "%s: the path is %s", what,
                         size == 0 ? "empty" : "too long");
    memcpy(member, value, size + 1);
    return STATUS_OK;
}

static enum status set_number(void *member, const struct option *option, const char *value,
                              const char *what, struct error *err)
{
    const bool is_period = option->type == OPTION_PERIOD;
    int64_t number = 0;
    enum status status = is_period ? parse_duration(&number, value, what, err)
                                   : parse_int(&number, value, (int64_t)option->minimum,
                                               (int64_t)option->maximum, what, err);
    if (status == STATUS_OK && is_period && number == 0)
        status = error_set(err, STATUS_INVALID, "%s: the time must be above zero", what);
    if (status == STATUS_OK && option->type == OPTION_UINT32)
        *(uint32_t *)member = (uint32_t)number;
    else if (status == STATUS_OK)
        *(int64_t *)member = number;
    return status;
}

// The i-th word that the option accepts; returns its size, 0 after the last one.
static size_t word_at(const struct option *option, unsigned i, const char **word)
{
    if (option->choices) {
        *word = option->choices(i);
        return *word ? strlen(*word) : 0;
    }
    *word = option->argument;
    for (; i > 0 && **word; i--) {
        *word += strcspn(*word, "|");
        *word += **word == '|';
    }
    return strcspn(*word, "|");
}

// The index of the `size` bytes of `value` among the choices.
static enum status find_choice(int *out, const struct option *option, const char *value,
                               size_t size, const char *what, struct error *err)
{
    char all[192] = "";
    const char *word = NULL;
    size_t used;
    for (unsigned i = 0; (used = word_at(option, i, &word)) > 0; i++) {
        if (used == size && memcmp(word, value, size) == 0) {
            *out = (int)i;
            return STATUS_OK;
        }
        (void)text_append(all, sizeof all, ", ", "%.*s", (int)used, word);
    }
    return error_set(err, STATUS_INVALID, "%s: '%.*s' is none of %s", what,
                     (int)(size < 40 ? size : 40), value, all);
}

static enum status set_set(uint32_t *member, const struct option *option, const char *value,
                           const char *what, struct error *err)
{
    uint32_t set = 0;
    for (;; value++) {
        int choice = 0;
        const size_t size = strcspn(value, ",");
        enum status status = find_choice(&choice, option, value, size, what, err);
        if (status != STATUS_OK)
            return status;
        set |= UINT32_C(1) << choice;
        value += size;
        if (*value == '\0')
            break;
    }
    *member |= set;
    return STATUS_OK;
}

static enum status add_numbers(struct option_numbers *member, const struct option *option,
                               const char *value, const char *what, struct error *err)
{
    for (const char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[NAME_SIZE];
        int64_t number;
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (parse_int(&number, word, (int64_t)option->minimum, (int64_t)option->maximum, what,
                      err) != STATUS_OK)
            return err->status;
        for (size_t i = 0; i < member->count; i++)
            if (member->values[i] == (size_t)number)
                return error_set(err, STATUS_INVALID, "%s: %s is there twice", what, word);
        if (member->count == OPTION_NUMBERS_MAX)
            return error_set(err, STATUS_INVALID, "%s: more than %d numbers", what,
                             OPTION_NUMBERS_MAX);
        member->values[member->count++] = (size_t)number;
    }
    return STATUS_OK;
}

enum status option_set(const struct option *option, void *target, const char *value,
                       struct error *err)
{
    char what[NAME_SIZE];
    void *member = (unsigned char *)target + option->offset;
    (void)snprintf(what, sizeof what, "--%s", option->name);
    if (!value && option->type != OPTION_GIVEN && option->type != OPTION_FLAG &&
        option->type != OPTION_CUSTOM)
        return error_set(err, STATUS_INVALID, "%s: the value is missing", what);
    switch (option->type) {
    case OPTION_GIVEN:
        break;
    case OPTION_FLAG:
        return set_flag(member, value, what, err);
    case OPTION_TEXT:
        *(const char **)member = value;
        return STATUS_OK;
    case OPTION_PATH:
        return set_path(member, value, what, err);
    case OPTION_INTEGER:
    case OPTION_UINT32:
    case OPTION_PERIOD:
        return set_number(member, option, value, what, err);
    case OPTION_REAL:
        return parse_real(member, value, option->minimum, option->maximum, what, err);
    case OPTION_CHOICE:
        return find_choice(member, option, value, strlen(value), what, err);
    case OPTION_SET:
        return set_set(member, option, value, what, err);
    case OPTION_NUMBERS:
        return add_numbers(member, option, value, what, err);
    case OPTION_CUSTOM:
        return option->parse(member, value, what, err);
    }
    return STATUS_OK;
}

// ---- Names --------------------------------------------------------------------

static const struct option *find_name(const struct option_table *table, const char *name,
                                      size_t size)
{
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->options[i].name) == size &&
            memcmp(table->options[i].name, name, size) == 0)
            return &table->options[i];
    return NULL;
}

const struct option *option_find(const struct option_table *table, const char *name)
{
    return find_name(table, name, strlen(name));
}

static const struct option *find_letter(const struct option_table *table, char letter)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->options[i].letter == letter)
            return &table->options[i];
    return NULL;
}

enum status option_unknown(const struct option_table *tables, size_t table_count,
                           const char *prefix, const char *name, const char *program,
                           struct error *err)
{
    const char *names[NAMES_MAX];
    unsigned count = 0;
    for (size_t t = 0; t < table_count; t++)
        for (size_t i = 0; i < tables[t].count && count < NAMES_MAX; i++)
            if (!tables[t].suggested || tables[t].suggested[i])
                names[count++] = tables[t].options[i].name;
    const char *nearest = parse_nearest(name, names, count);
    if (nearest)
        return error_set(err, STATUS_INVALID, "%s%.60s: unknown option (did you mean %s%s?)",
                         prefix, name, prefix, nearest);
    return error_set(err, STATUS_INVALID, "%s%.60s: unknown option (see %s --help)", prefix, name,
                     program);
}

// ---- The command line ---------------------------------------------------------

// Sets an option of `table`; its value is `attached` (NULL: none), or the next word.
static enum status read_option(struct option_reader *reader, const struct option_table *table,
                               const struct option *option, const char *attached, struct error *err)
{
    const char *value = attached;
    if (!option->argument && value)
        return error_set(err, STATUS_INVALID, "--%s: takes no value", option->name);
    if (option->argument && !value) {
        if (reader->at == reader->count)
            return error_set(err, STATUS_INVALID, "--%s: a value is missing (--%s %s)",
                             option->name, option->name, option->argument);
        value = reader->words[reader->at++];
    }
    if (table->given)
        table->given[option - table->options] = true;
    return option_set(option, table->target, value, err);
}

static enum status read_long(struct option_reader *reader, const char *name, struct error *err)
{
    const size_t size = strcspn(name, "=");
    for (size_t t = 0; t < reader->table_count; t++) {
        const struct option *option = find_name(&reader->tables[t], name, size);
        if (option)
            return read_option(reader, &reader->tables[t], option,
                               name[size] == '=' ? name + size + 1 : NULL, err);
    }
    char copy[NAME_SIZE];
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(size < NAME_SIZE ? size : NAME_SIZE), name);
    return option_unknown(reader->tables, reader->table_count, "--", copy, reader->program, err);
}

// "-n5", "-n 5", and flags in one word ("-yh").
static enum status read_letters(struct option_reader *reader, const char *word, struct error *err)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const struct option *option = NULL;
        size_t t = 0;
        while (t < reader->table_count && !(option = find_letter(&reader->tables[t], *letter)))
            t++;
        if (!option)
            return error_set(err, STATUS_INVALID, "%.60s: unknown option (see %s --help)", word,
                             reader->program);
        enum status status = read_option(reader, &reader->tables[t], option,
                                         option->argument && letter[1] ? letter + 1 : NULL, err);
        if (status != STATUS_OK || option->argument)
            return status;
    }
    return STATUS_OK;
}

enum status option_reader_next(struct option_reader *reader, const char **word, struct error *err)
{
    const char *text = reader->words[reader->at++];
    *word = NULL;
    if (reader->words_only || text[0] != '-' || text[1] == '\0') {
        *word = text;
        return STATUS_OK;
    }
    if (text[1] != '-')
        return read_letters(reader, text, err);
    if (text[2] != '\0')
        return read_long(reader, text + 2, err);
    reader->words_only = true;
    return STATUS_OK;
}

// ---- Help ---------------------------------------------------------------------

void option_write_entry(FILE *out, const char *term, const char *meaning)
{
    const int used = fprintf(out, "  %-*s", TERM_WIDTH, term);
    if (used > TERM_WIDTH + 2)
        (void)fprintf(out, "\n%*s", TERM_WIDTH + 2, "");
    size_t column = TERM_WIDTH + 2;
    for (const char *word = meaning; *word != '\0';) {
        const size_t size = strcspn(word, " ");
        if (column + 1 + size > HELP_WIDTH) {
            (void)fprintf(out, "\n%*s", TERM_WIDTH + 2, "");
            column = TERM_WIDTH + 2;
        }
        (void)fprintf(out, " %.*s", (int)size, word);
        column += 1 + size;
        word += size;
        word += strspn(word, " ");
    }
    (void)fputc('\n', out);
}

void option_write_help(FILE *out, const struct option *option)
{
    char term[NAME_SIZE * 2], letter[8] = "";
    if (!option->help)
        return;
    if (option->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    (void)snprintf(term, sizeof term, "%s--%s%s%s", letter, option->name,
                   option->argument ? " " : "", option->argument ? option->argument : "");
    option_write_entry(out, term, option->help);
}

void option_table_write_help(FILE *out, const struct option_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        option_write_help(out, &table->options[i]);
}
