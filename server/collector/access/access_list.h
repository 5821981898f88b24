// The list of public keys that may connect, as its file says it.  Pure: text in,
// a list out, and texts changed a line at a time so that comments stay.
//
// A line is
//
//   KEY ROLE[,ROLE]... NAME [replaces KEY]...
//
// KEY is a public key in Z85, ROLE producer, reader or admin, NAME 1 to 63 of
// a-z A-Z 0-9 . _ - and no other line's.  `replaces` names keys whose runs this
// one may go on with, all of them: also those that a replaced one replaced.  Blank lines and those
// that begin with '#', which no key does, are skipped.
#ifndef INFERSTAT_COLLECTOR_ACCESS_ACCESS_LIST_H
#define INFERSTAT_COLLECTOR_ACCESS_ACCESS_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/wire/socket.h"

enum {
    ACCESS_KEYS_MAX = 65536,            // lines with keys
    ACCESS_REPLACES_MAX = 16,           // of one line
    ACCESS_TEXT_MAX = 16 * 1024 * 1024, // bytes of the file
    ACCESS_LINE_MAX = 1024,             // of a line with a key
};

struct access_key {
    unsigned char key[WIRE_KEY_SIZE];
    uint32_t roles; // bit i: enum query_role i
    char name[QUERY_KEY_SIZE];
    unsigned char (*replaces)[WIRE_KEY_SIZE]; // or NULL
    unsigned replaces_count;
    unsigned line;
};

struct access_list {
    struct access_key *keys; // rising by key
    size_t count;
};

// Reads a file's text.  STATUS_INVALID names the file, the line and what is wrong
// with it.  On failure `*out` is empty.
MUST_CHECK enum status access_list_parse(struct access_list *out, const char *text, size_t size,
                                         const char *file, struct error *err);
void access_list_deinit(struct access_list *list); // an empty one is fine

// The key's line, or NULL.
const struct access_key *access_list_find(const struct access_list *list,
                                          const unsigned char key[WIRE_KEY_SIZE]);

// The line of that name, or NULL.
const struct access_key *access_list_named(const struct access_list *list, const char *name);

// Whether `key` may go on with what `owner` has begun: it is that key, or its line
// says that it replaces it.
bool access_list_continues(const struct access_list *list, const unsigned char key[WIRE_KEY_SIZE],
                           const unsigned char owner[WIRE_KEY_SIZE]);

// Whether some key of `before` may do less by `after`.
bool access_list_takes_away(const struct access_list *before, const struct access_list *after);

// Checks what an administrator asks for: the key, the roles, the name, and the key
// that it replaces (empty: none).  The name must not be another key's.
MUST_CHECK enum status access_list_check(const struct access_list *list, const struct query *query,
                                         struct error *err);

// The text with a line for the key: in the place of the one it had, or at the end.
// What it replaced before it still does, and what the replaced one did as well: the
// replaced one first, and of more than ACCESS_REPLACES_MAX the oldest are left out.
// The query was checked; the caller frees `*out`.
MUST_CHECK enum status access_text_with(char **out, const char *text, size_t size,
                                        const struct access_list *list, const struct query *query,
                                        struct error *err);

// The text without the line of that number; freed by the caller.
MUST_CHECK enum status access_text_without(char **out, const char *text, size_t size, unsigned line,
                                           struct error *err);

// Writes roles as the file has them ("producer,reader") to QUERY_KEY_SIZE bytes.
// Returns `out`.
char *access_roles_text(char *out, uint32_t roles);

// Whether `name` may be a key's.
bool access_name_is_sound(const char *name);

#endif
