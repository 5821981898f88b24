#include "common/core/alert/alert_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/alert/alert_builtin.h"
#include "common/core/base/array.h"
#include "common/core/query/query_text_reader.h"

struct reader {
    struct alert_file *file;
    size_t rule_room, hook_room;
    bool is_builtin;
    unsigned number; // of the line
    char line[ALERT_TEXT_SIZE];
    struct query_reader words; // of the line
};

static enum status fail_at_word(struct reader *reader, const char *why)
{
    (void)error_set(reader->words.err, STATUS_INVALID, "%s", why);
    return query_reader_fail(&reader->words, reader->words.word.place);
}

static size_t word_end(const struct query_word *word)
{
    return word->place.at + word->place.size;
}

static bool word_is(const struct reader *reader, const char *text)
{
    const struct query_word *word = &reader->words.word;
    return word->kind == QUERY_WORD_TEXT && !word->quoted && strcmp(word->text, text) == 0;
}

static bool is_name(const char *text, size_t size)
{
    return size > 0 && size < ALERT_NAME_SIZE &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") >=
               size;
}

// Parses "NAME:", or "NAME" unless `with_colon`, and reads no further.
static enum status parse_name(struct reader *reader, char name[ALERT_NAME_SIZE], bool with_colon)
{
    enum status status = query_reader_next(&reader->words);
    if (status != STATUS_OK)
        return status;
    const char *text = reader->words.word.text;
    size_t size = strlen(text);
    if (reader->words.word.kind != QUERY_WORD_TEXT)
        return fail_at_word(reader, "the name is missing");
    if (with_colon && (size == 0 || text[size - 1] != ':'))
        return fail_at_word(reader, "the name must end with a colon");
    size -= with_colon;
    if (!is_name(text, size))
        return fail_at_word(reader, "a name has up to 63 letters, digits, \"_\", \"-\" and \".\"");
    memcpy(name, text, size);
    name[size] = '\0';
    return STATUS_OK;
}

// ---- Rules -----------------------------------------------------------------------

static struct alert_rule *find_rule(const struct alert_file *file, const char *name)
{
    for (size_t i = 0; i < file->rule_count; i++)
        if (strcmp(file->rules[i].name, name) == 0)
            return &file->rules[i];
    return NULL;
}

static void remove_rule(struct alert_file *file, struct alert_rule *rule)
{
    const size_t after = file->rule_count - (size_t)(rule - file->rules) - 1;
    memmove(rule, rule + 1, after * sizeof *rule);
    file->rule_count--;
}

static enum status given_in_line(struct reader *reader, const char *name, unsigned line)
{
    (void)error_set(reader->words.err, STATUS_INVALID,
                    "the name %s is given twice (first in line %u)", name, line);
    return query_reader_fail(&reader->words, reader->words.word.place);
}

// Parses what follows the word of the name.
static enum status parse_rule(struct reader *reader, struct alert_rule *rule)
{
    const size_t from = word_end(&reader->words.word);
    char name[ALERT_NAME_SIZE];
    memcpy(name, rule->name, sizeof name);
    enum status status =
        query_text_read_alert(rule, reader->line, from, &reader->words.place, reader->words.err);
    memcpy(rule->name, name, sizeof name);
    rule->is_builtin = reader->is_builtin;
    rule->line = reader->number;
    (void)snprintf(rule->text, sizeof rule->text, "%s",
                   reader->line + from + strspn(reader->line + from, " \t"));
    return status;
}

static enum status read_alert(struct reader *reader)
{
    struct alert_file *file = reader->file;
    if (file->rule_count == ALERT_RULES_MAX)
        return fail_at_word(reader, "too many rules (at most 2000)");
    if (!ARRAY_RESERVE(&file->rules, &reader->rule_room, file->rule_count + 1))
        return error_no_memory(reader->words.err, "alerts");
    char name[ALERT_NAME_SIZE];
    enum status status = parse_name(reader, name, true);
    if (status != STATUS_OK)
        return status;
    struct alert_rule *former = find_rule(file, name);
    if (former && !former->is_builtin)
        return given_in_line(reader, name, former->line);
    if (former)
        remove_rule(file, former);
    struct alert_rule *rule = &file->rules[file->rule_count];
    memcpy(rule->name, name, sizeof name);
    status = parse_rule(reader, rule);
    if (status == STATUS_OK)
        file->rule_count++;
    return status;
}

static enum status read_disable(struct reader *reader)
{
    struct alert_file *file = reader->file;
    char name[ALERT_NAME_SIZE];
    enum status status = parse_name(reader, name, false);
    if (status != STATUS_OK)
        return status;
    struct alert_rule *rule = find_rule(file, name);
    if (!rule || !rule->is_builtin) {
        const char *words[ALERT_RULES_MAX];
        unsigned count = 0;
        for (size_t i = 0; i < file->rule_count; i++)
            if (file->rules[i].is_builtin)
                words[count++] = file->rules[i].name;
        return query_reader_unknown(&reader->words, "built-in rule", words, count);
    }
    remove_rule(file, rule);
    status = query_reader_next(&reader->words);
    if (status == STATUS_OK && reader->words.word.kind != QUERY_WORD_END)
        status = fail_at_word(reader, "disable takes one name");
    return status;
}

// ---- Hooks -----------------------------------------------------------------------

// Appends the next words that no blank separates to `target`, as one.  Sets `*size` to its bytes;
// 0 at the line's end.  The reader is then at the word after it.
static enum status append_target(struct reader *reader, struct alert_hook *hook, size_t *used,
                                 size_t *size)
{
    const size_t begin = *used;
    size_t end = reader->words.word.place.at;
    while (reader->words.word.kind != QUERY_WORD_END && reader->words.word.place.at == end) {
        const char *text = reader->words.word.kind == QUERY_WORD_EQUALS  ? "="
                           : reader->words.word.kind == QUERY_WORD_COMMA ? ","
                                                                         : reader->words.word.text;
        const size_t length = strlen(text);
        if (length + 1 > sizeof hook->target - *used)
            return fail_at_word(reader, "the hook's line is too long");
        memcpy(hook->target + *used, text, length + 1);
        *used += length;
        end = word_end(&reader->words.word);
        enum status status = query_reader_next(&reader->words);
        if (status != STATUS_OK)
            return status;
    }
    *size = *used - begin;
    (*used)++;
    return STATUS_OK;
}

static enum status parse_command(struct reader *reader, struct alert_hook *hook)
{
    size_t used = 0, size;
    if (reader->words.word.kind != QUERY_WORD_TEXT || reader->words.word.text[0] != '/')
        return fail_at_word(reader, "a command needs an absolute path");
    hook->kind = ALERT_HOOK_COMMAND;
    while (reader->words.word.kind != QUERY_WORD_END) {
        if (used >= sizeof hook->target)
            return fail_at_word(reader, "the hook's line is too long");
        enum status status = append_target(reader, hook, &used, &size);
        if (status != STATUS_OK)
            return status;
        hook->word_count++;
    }
    return STATUS_OK;
}

// True if the text is http:// or https://, a host with or without a port, and no blank or control
// character.
static bool is_url(const char *text)
{
    const char *host = strncmp(text, "https://", 8) == 0  ? text + 8
                       : strncmp(text, "http://", 7) == 0 ? text + 7
                                                          : "";
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
            return false;
    const char *user = memchr(host, '@', strcspn(host, "/?#"));
    host = user ? user + 1 : host;
    const size_t size = host[0] == '[' ? strcspn(host, "]/?#") + 1 : strcspn(host, ":/?#");
    if (size == 0 || size > strlen(host) || (host[0] == '[' && host[size - 1] != ']'))
        return false;
    const char *end = host + size;
    if (*end == ':') {
        const size_t digits = strspn(end + 1, "0123456789");
        if (digits == 0 || digits > 5 || strtol(end + 1, NULL, 10) > UINT16_MAX)
            return false;
        end += 1 + digits;
    }
    return strchr("/?#", *end) != NULL; // the end of the text is among these
}

static enum status parse_webhook(struct reader *reader, struct alert_hook *hook)
{
    static const char *const bodies[] = {"json", "slack", "alertmanager"};
    enum { BODY_COUNT = sizeof bodies / sizeof *bodies };
    const struct query_word first = reader->words.word;
    size_t used = 0, size = 0;
    enum status status = append_target(reader, hook, &used, &size);
    if (status != STATUS_OK)
        return status;
    if (size == 0 || !is_url(hook->target)) {
        (void)error_set(reader->words.err, STATUS_INVALID,
                        "a webhook needs a URL (http:// or https://, and a host)");
        return query_reader_fail(&reader->words, first.place);
    }
    hook->word_count = 1;
    hook->kind = ALERT_HOOK_JSON;
    if (reader->words.word.kind == QUERY_WORD_END)
        return STATUS_OK;
    if (!word_is(reader, "as"))
        return fail_at_word(reader, "after the URL of a webhook only \"as FORMAT\" may follow");
    status = query_reader_next(&reader->words);
    if (status != STATUS_OK)
        return status;
    unsigned body = 0;
    while (body < BODY_COUNT && !word_is(reader, bodies[body]))
        body++;
    if (body == BODY_COUNT)
        return query_reader_unknown(&reader->words, "format", bodies, BODY_COUNT);
    hook->kind = (enum alert_hook_kind)(ALERT_HOOK_JSON + body);
    status = query_reader_next(&reader->words);
    if (status == STATUS_OK && reader->words.word.kind != QUERY_WORD_END)
        status = fail_at_word(reader, "nothing may follow the format");
    return status;
}

static enum status read_hook(struct reader *reader)
{
    static const char *const kinds[] = {"command", "webhook"};
    struct alert_file *file = reader->file;
    if (file->hook_count == ALERT_HOOKS_MAX)
        return fail_at_word(reader, "too many hooks (at most 32)");
    if (!ARRAY_RESERVE(&file->hooks, &reader->hook_room, file->hook_count + 1))
        return error_no_memory(reader->words.err, "alerts");
    struct alert_hook *hook = &file->hooks[file->hook_count];
    *hook = (struct alert_hook){.line = reader->number};
    enum status status = parse_name(reader, hook->name, true);
    for (size_t i = 0; status == STATUS_OK && i < file->hook_count; i++)
        if (strcmp(file->hooks[i].name, hook->name) == 0)
            return given_in_line(reader, hook->name, file->hooks[i].line);
    if (status == STATUS_OK)
        status = query_reader_next(&reader->words);
    const bool is_command = word_is(reader, kinds[0]);
    if (status == STATUS_OK && !is_command && !word_is(reader, kinds[1]))
        return query_reader_unknown(&reader->words, "kind of hook", kinds, 2);
    if (status == STATUS_OK)
        status = query_reader_next(&reader->words);
    if (status == STATUS_OK)
        status = is_command ? parse_command(reader, hook) : parse_webhook(reader, hook);
    if (status == STATUS_OK)
        file->hook_count++;
    return status;
}

// ---- The file --------------------------------------------------------------------

static enum status read_line(struct reader *reader)
{
    static const char *const words[] = {"alert", "disable", "hook"};
    reader->words.word = (struct query_word){0};
    if (reader->line[strspn(reader->line, " \t\r")] == '#')
        return STATUS_OK;
    enum status status = query_reader_next(&reader->words);
    if (status != STATUS_OK || reader->words.word.kind == QUERY_WORD_END)
        return status;
    if (word_is(reader, words[0]))
        return read_alert(reader);
    if (word_is(reader, words[1]))
        return read_disable(reader);
    if (word_is(reader, words[2]))
        return read_hook(reader);
    return query_reader_unknown(&reader->words, "word", words, 3);
}

static enum status read_lines(struct reader *reader, const char *text, size_t size)
{
    enum status status = STATUS_OK;
    for (size_t at = 0; at < size && status == STATUS_OK; reader->number++) {
        const char *end = memchr(text + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - text) - at : size - at;
        const bool fits = length < sizeof reader->line && !memchr(text + at, '\0', length);
        memcpy(reader->line, text + at, fits ? length : 0);
        reader->line[fits ? length : 0] = '\0';
        at += length + 1;
        if (!fits)
            status =
                error_set(reader->words.err, STATUS_INVALID,
                          "the line has more than %zu bytes, or a NUL", sizeof reader->line - 1);
        else
            status = read_line(reader);
        if (status != STATUS_OK)
            break;
    }
    return status;
}

enum status alert_file_read(struct alert_file *out, const char *text, size_t size,
                            struct error *err)
{
    static const char builtin[] = ALERT_BUILTIN_TEXT;
    *out = (struct alert_file){0};
    struct reader reader = {.file = out, .is_builtin = true};
    reader.words.line = reader.line;
    reader.words.err = err ? err : &reader.words.spare;
    enum status status = read_lines(&reader, builtin, sizeof builtin - 1);
    for (size_t i = 0; i < out->rule_count; i++)
        out->rules[i].line = 0;
    reader.is_builtin = false;
    reader.number = 1;
    if (status == STATUS_OK && size > ALERT_FILE_MAX)
        status = error_set(reader.words.err, STATUS_INVALID, "the file has more than %d bytes",
                           ALERT_FILE_MAX);
    else if (status == STATUS_OK)
        status = read_lines(&reader, text, size);
    if (status == STATUS_INVALID)
        (void)error_prefix(reader.words.err, status, "line %u", reader.number);
    return status;
}

void alert_file_deinit(struct alert_file *file)
{
    free(file->rules);
    free(file->hooks);
    *file = (struct alert_file){0};
}
