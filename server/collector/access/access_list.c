#include "server/collector/access/access_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/sys/when.h"

enum { WORDS_MAX = 3 + 2 * ACCESS_REPLACES_MAX + 4, TIME_SIZE = 32 };

#define SECOND_NS INT64_C(1000000000)

bool access_name_is_valid(const char *name)
{
    const size_t size = strlen(name);
    return size > 0 && size < QUERY_KEY_SIZE && strspn(name, TEXT_NAME_CHARACTERS) == size;
}

char *access_roles_text(char *out, uint32_t roles)
{
    out[0] = '\0';
    for (unsigned i = 0; i < QUERY_ROLE_COUNT; i++)
        if (roles >> i & 1)
            (void)text_append(out, QUERY_KEY_SIZE, ",", "%s", query_role_name((enum query_role)i));
    return out;
}

// ---- A line ------------------------------------------------------------------------

// Splits the line into words, in place: the first WORDS_MAX of them, which are too many.
static unsigned cut_words(char *line, char *words[WORDS_MAX])
{
    unsigned count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        if (count == WORDS_MAX)
            break;
        words[count++] = word;
    }
    return count;
}

static enum status parse_roles(uint32_t *out, char *text, struct error *err)
{
    char *rest = NULL;
    *out = 0;
    if (text[0] == ',' || text[strlen(text) - 1] == ',' || strstr(text, ",,"))
        return error_set(err, STATUS_INVALID, "\"%.60s\" is no list of roles", text);
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const enum query_role role = query_role_find(word);
        if (role == QUERY_ROLE_COUNT)
            return error_set(err, STATUS_INVALID,
                             "\"%.60s\" is no role (producer, reader or admin)", word);
        *out |= UINT32_C(1) << role;
    }
    return STATUS_OK;
}

static enum status parse_replaces(struct access_key *out, char *const *words, unsigned count,
                                  struct error *err)
{
    if (count % 2 != 0)
        return error_set(
            err, STATUS_INVALID,
            "\"%.60s\": \"replaces\" and a key are expected, or \"expires\" and a time",
            words[count - 1]);
    if (count > 2 * ACCESS_REPLACES_MAX)
        return error_set(err, STATUS_INVALID, "more than %d keys replaced", ACCESS_REPLACES_MAX);
    if (count == 0)
        return STATUS_OK;
    out->replaces = calloc(count / 2, sizeof *out->replaces);
    if (!out->replaces)
        return error_no_memory(err, "keys");
    for (unsigned i = 0; i < count; i += 2) {
        if (strcmp(words[i], "replaces") != 0)
            return error_set(err, STATUS_INVALID, "\"%.60s\": \"replaces\" is expected", words[i]);
        if (!wire_key_parse(out->replaces[out->replaces_count], words[i + 1]))
            return error_set(err, STATUS_INVALID, "\"%.60s\" is no public key", words[i + 1]);
        if (memcmp(out->replaces[out->replaces_count], out->key, WIRE_KEY_SIZE) == 0)
            return error_set(err, STATUS_INVALID, "the key cannot replace itself");
        out->replaces_count++;
    }
    return STATUS_OK;
}

// Parses "expires TIME" at the end of the words, and takes both off `*count`.
static enum status parse_expires(struct access_key *out, char *const *words, unsigned *count,
                                 struct error *err)
{
    if (*count < 2 || strcmp(words[*count - 2], "expires") != 0)
        return STATUS_OK;
    const char *text = words[*count - 1];
    *count -= 2;
    if (text[strlen(text) - 1] != 'Z' ||
        when_parse(&out->expires_ns, text, 0, false, "expires", NULL) != STATUS_OK ||
        out->expires_ns <= 0)
        return error_set(err, STATUS_INVALID,
                         "expires: \"%.60s\" is no time such as 2027-02-20T00:00:00Z", text);
    return STATUS_OK;
}

// Parses the words of a line.  The caller frees out->replaces, also on failure.
static enum status parse_words(struct access_key *out, char *const *words, unsigned count,
                               struct error *err)
{
    if (!wire_key_parse(out->key, words[0]))
        return error_set(err, STATUS_INVALID,
                         "\"%.60s\" is no public key (40 characters of Z85 are expected)",
                         words[0]);
    if (count < 3)
        return error_set(err, STATUS_INVALID, "KEY ROLES NAME are expected");
    enum status status = parse_roles(&out->roles, words[1], err);
    if (status != STATUS_OK)
        return status;
    if (!access_name_is_valid(words[2]))
        return error_set(err, STATUS_INVALID, "\"%.80s\" is no name (1 to %d of a-z A-Z 0-9 . _ -)",
                         words[2], QUERY_KEY_SIZE - 1);
    (void)snprintf(out->name, sizeof out->name, "%s", words[2]);
    count -= 3;
    status = parse_expires(out, words + 3, &count, err);
    return status == STATUS_OK ? parse_replaces(out, words + 3, count, err) : status;
}

// Parses one line of `size` bytes.  Sets `*has` to false when it has no key.
static enum status parse_line(struct access_key *out, const char *line, size_t size, bool *has,
                              struct error *err)
{
    char copy[ACCESS_LINE_MAX + 1];
    char *words[WORDS_MAX];
    *has = false;
    if (memchr(line, '\0', size))
        return error_set(err, STATUS_INVALID, "a NUL byte");
    if (size > ACCESS_LINE_MAX && line[0] == '#')
        return STATUS_OK;
    if (size > ACCESS_LINE_MAX)
        return error_set(err, STATUS_INVALID, "the line has more than %d bytes", ACCESS_LINE_MAX);
    memcpy(copy, line, size);
    copy[size] = '\0';
    const unsigned count = cut_words(copy, words);
    if (count == 0 || words[0][0] == '#')
        return STATUS_OK;
    *has = true;
    return parse_words(out, words, count, err);
}

// ---- The list ----------------------------------------------------------------------

static int compare_keys(const void *a, const void *b)
{
    return memcmp(((const struct access_key *)a)->key, ((const struct access_key *)b)->key,
                  WIRE_KEY_SIZE);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct access_key *)a)->name, ((const struct access_key *)b)->name);
}

void access_list_deinit(struct access_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->keys[i].replaces);
    free(list->keys);
    *list = (struct access_list){0};
}

// Takes ownership of the key, unless it fails.
static enum status append(struct access_list *list, size_t *room, const struct access_key *key,
                          struct error *err)
{
    if (list->count == ACCESS_KEYS_MAX)
        return error_set(err, STATUS_INVALID, "more than %d keys", ACCESS_KEYS_MAX);
    if (!ARRAY_RESERVE(&list->keys, room, list->count + 1))
        return error_no_memory(err, "keys");
    list->keys[list->count++] = *key;
    return STATUS_OK;
}

static enum status parse_lines(struct access_list *list, const char *text, size_t size,
                               unsigned *line, struct error *err)
{
    size_t room = 0;
    enum status status = STATUS_OK;
    for (const char *at = text, *end = text + size; at < end && status == STATUS_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop ? stop : end) - at);
        struct access_key key = {.line = ++*line};
        bool has = false;
        status = parse_line(&key, at, length, &has, err);
        if (status == STATUS_OK && has)
            status = append(list, &room, &key, err);
        if (status != STATUS_OK || !has)
            free(key.replaces);
        at += length + 1;
    }
    return status;
}

// Sorts the list by name or by key, and rejects two of the same.
static enum status sort(const struct access_list *list, bool by_name, unsigned *line,
                        struct error *err)
{
    int (*const compare)(const void *, const void *) = by_name ? compare_names : compare_keys;
    if (list->count > 0)
        qsort(list->keys, list->count, sizeof *list->keys, compare);
    for (size_t i = 1; i < list->count; i++) {
        const struct access_key *a = &list->keys[i - 1], *b = &list->keys[i];
        if (compare(a, b) != 0)
            continue;
        *line = a->line > b->line ? a->line : b->line;
        return error_set(err, STATUS_INVALID, "the %s%s of line %u again",
                         by_name ? "name " : "key", by_name ? b->name : "",
                         a->line > b->line ? b->line : a->line);
    }
    return STATUS_OK;
}

enum status access_list_parse(struct access_list *out, const char *text, size_t size,
                              const char *file, struct error *err)
{
    unsigned line = 0;
    *out = (struct access_list){0};
    if (size > ACCESS_TEXT_MAX)
        return error_set(err, STATUS_INVALID, "%s: more than %d bytes", file, ACCESS_TEXT_MAX);
    enum status status = parse_lines(out, text, size, &line, err);
    if (status == STATUS_OK)
        status = sort(out, true, &line, err);
    if (status == STATUS_OK)
        status = sort(out, false, &line, err);
    if (status == STATUS_OK)
        return STATUS_OK;
    access_list_deinit(out);
    return status == STATUS_NOMEM ? status : error_prefix(err, status, "%s:%u", file, line);
}

const struct access_key *access_list_find(const struct access_list *list,
                                          const unsigned char key[WIRE_KEY_SIZE])
{
    struct access_key wanted = {0};
    memcpy(wanted.key, key, WIRE_KEY_SIZE);
    if (list->count == 0)
        return NULL;
    return bsearch(&wanted, list->keys, list->count, sizeof *list->keys, compare_keys);
}

const struct access_key *access_list_named(const struct access_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->keys[i].name, name) == 0)
            return &list->keys[i];
    return NULL;
}

// A line names all keys that its key replaces (access_text_with): no chain has to be followed.
bool access_list_continues(const struct access_list *list, const unsigned char key[WIRE_KEY_SIZE],
                           const unsigned char owner[WIRE_KEY_SIZE])
{
    if (memcmp(key, owner, WIRE_KEY_SIZE) == 0)
        return true;
    const struct access_key *about = access_list_find(list, key);
    for (unsigned i = 0; about && i < about->replaces_count; i++)
        if (memcmp(about->replaces[i], owner, WIRE_KEY_SIZE) == 0)
            return true;
    return false;
}

uint32_t access_lost_roles(const struct access_key *before, const struct access_key *after)
{
    return after->roles >> QUERY_ROLE_ADMIN & 1 ? 0 : before->roles & ~after->roles;
}

bool access_list_revokes(const struct access_list *before, const struct access_list *after)
{
    for (size_t i = 0; i < before->count; i++) {
        const struct access_key *now = access_list_find(after, before->keys[i].key);
        if (!now || access_lost_roles(&before->keys[i], now))
            return true;
    }
    return false;
}

// ---- Changing the text ---------------------------------------------------------------

// The key to authorize; the query is valid but for the key that it replaces.
static enum status read_query(unsigned char key[WIRE_KEY_SIZE], const struct access_list *list,
                              const struct query *query, struct error *err)
{
    if (!wire_key_parse(key, query->key.text))
        return error_set(err, STATUS_INVALID,
                         "\"%.60s\" is no public key (40 characters of Z85 are expected)",
                         query->key.text);
    if (query->key.roles == 0 || query->key.roles >> QUERY_ROLE_COUNT)
        return error_set(err, STATUS_INVALID, "a role is wanted (producer, reader or admin)");
    if (!access_name_is_valid(query->key.name))
        return error_set(err, STATUS_INVALID, "\"%.80s\" is no name (1 to %d of a-z A-Z 0-9 . _ -)",
                         query->key.name, QUERY_KEY_SIZE - 1);
    const struct access_key *named = access_list_named(list, query->key.name);
    if (named && memcmp(named->key, key, WIRE_KEY_SIZE) != 0)
        return error_set(err, STATUS_INVALID,
                         "%s is the name of another key (choose one that is not taken, or revoke "
                         "that key first)",
                         query->key.name);
    return STATUS_OK;
}

// The keys that a line replaces, without duplicates and its own key.
struct replaced {
    unsigned char keys[ACCESS_REPLACES_MAX][WIRE_KEY_SIZE];
    unsigned count;
};

static void add_replaced(struct replaced *replaced, const unsigned char key[WIRE_KEY_SIZE],
                         const unsigned char own[WIRE_KEY_SIZE])
{
    bool known = memcmp(key, own, WIRE_KEY_SIZE) == 0;
    for (unsigned i = 0; i < replaced->count && !known; i++)
        known = memcmp(key, replaced->keys[i], WIRE_KEY_SIZE) == 0;
    if (!known && replaced->count < ACCESS_REPLACES_MAX)
        memcpy(replaced->keys[replaced->count++], key, WIRE_KEY_SIZE);
}

static void add_replaced_by(struct replaced *replaced, const struct access_key *about,
                            const unsigned char own[WIRE_KEY_SIZE])
{
    for (unsigned i = 0; about && i < about->replaces_count; i++)
        add_replaced(replaced, about->replaces[i], own);
}

// The keys that the line of `key` will replace: the query's, then those that it and `key` replaced.
static enum status find_replaced(struct replaced *out, const struct access_list *list,
                                 const struct query *query, const unsigned char key[WIRE_KEY_SIZE],
                                 struct error *err)
{
    unsigned char before[WIRE_KEY_SIZE];
    if (query->key.replaces[0]) {
        if (!wire_key_parse(before, query->key.replaces))
            return error_set(err, STATUS_INVALID, "\"%.60s\" is no public key",
                             query->key.replaces);
        if (memcmp(before, key, WIRE_KEY_SIZE) == 0)
            return error_set(err, STATUS_INVALID, "a key cannot replace itself");
        add_replaced(out, before, key);
        add_replaced_by(out, access_list_find(list, before), key);
    }
    add_replaced_by(out, access_list_find(list, key), key);
    return STATUS_OK;
}

// Finds where line `number` (from 1) and the line after it begin; both are `size` if the text
// has fewer lines.
static void find_line(const char *text, size_t size, unsigned number, size_t *begin, size_t *end)
{
    *begin = *end = 0;
    for (unsigned line = 1; line <= number; line++) {
        *begin = *end;
        const char *stop = memchr(text + *begin, '\n', size - *begin);
        *end = stop ? (size_t)(stop - text) + 1 : size;
    }
}

static enum status splice(char **out, const char *text, size_t size, size_t begin, size_t end,
                          const char *line, struct error *err)
{
    const bool wants_end = begin == size && size > 0 && text[size - 1] != '\n';
    const size_t added = strlen(line), room = size - (end - begin) + added + 2;
    char *copy = malloc(room);
    if (!copy)
        return error_no_memory(err, "keys");
    (void)snprintf(copy, room, "%.*s%s%s%.*s", (int)begin, text, wants_end ? "\n" : "", line,
                   (int)(size - end), text + end);
    *out = copy;
    return STATUS_OK;
}

// " expires TIME", or "" for 0.
static const char *expires_text(char text[TIME_SIZE + 10], int64_t expires_ns)
{
    return expires_ns
               ? text_from_time(text, TIME_SIZE + 10, " expires %Y-%m-%dT%H:%M:%SZ", expires_ns)
               : "";
}

enum status access_text_with(char **out, const char *text, size_t size,
                             const struct access_list *list, const struct query *query,
                             struct error *err)
{
    char line[ACCESS_LINE_MAX + 2], roles[QUERY_KEY_SIZE], key_text[WIRE_KEY_TEXT_SIZE];
    unsigned char key[WIRE_KEY_SIZE];
    struct replaced replaced = {0};
    enum status status = read_query(key, list, query, err);
    if (status == STATUS_OK)
        status = find_replaced(&replaced, list, query, key, err);
    if (status != STATUS_OK)
        return status;
    size_t used = (size_t)snprintf(line, sizeof line, "%s %s %s", query->key.text,
                                   access_roles_text(roles, query->key.roles), query->key.name);
    for (unsigned i = 0; i < replaced.count; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " replaces %s",
                                 wire_key_text(key_text, replaced.keys[i]));
    (void)snprintf(line + used, sizeof line - used, "%s\n",
                   expires_text((char[TIME_SIZE + 10]){""}, query->key.expires_ns));
    const struct access_key *known = access_list_find(list, key);
    size_t begin = size, end = size;
    if (known)
        find_line(text, size, known->line, &begin, &end);
    return splice(out, text, size, begin, end, line, err);
}

enum status access_text_without(char **out, const char *text, size_t size, unsigned line,
                                struct error *err)
{
    size_t begin = 0, end = 0;
    find_line(text, size, line, &begin, &end);
    return splice(out, text, size, begin, end, "", err);
}
