// Parser and editor for the file of authorized keys.  Pure: parses text to a list, and edits
// one line of the text so that comments stay.
//
// A line is
//
//   KEY ROLE[,ROLE]... NAME [replaces KEY]...
//
// KEY is a public key in Z85, ROLE producer, reader or admin, NAME 1 to 63 of
// a-z A-Z 0-9 . _ - and unique.  `replaces` names all keys whose runs this one may continue,
// including those that a replaced key replaced.  Blank lines and lines that begin with '#',
// which no key does, are skipped.
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
    struct access_key *keys; // sorted by key
    size_t count;
};

// Parses a file's text.  Fails with STATUS_INVALID, naming the file, the line and the error;
// then `*out` is empty.
MUST_CHECK enum status access_list_parse(struct access_list *out, const char *text, size_t size,
                                         const char *file, struct error *err);
void access_list_deinit(struct access_list *list); // accepts an empty one

// The entry of the key, or NULL.
const struct access_key *access_list_find(const struct access_list *list,
                                          const unsigned char key[WIRE_KEY_SIZE]);

// The entry of that name, or NULL.
const struct access_key *access_list_named(const struct access_list *list, const char *name);

// True if `key` may continue runs of `owner`: it is the same key, or its line replaces it.
bool access_list_continues(const struct access_list *list, const unsigned char key[WIRE_KEY_SIZE],
                           const unsigned char owner[WIRE_KEY_SIZE]);

// True if `after` lacks a key of `before`, or one of its roles.
bool access_list_revokes(const struct access_list *before, const struct access_list *after);

// Returns the text with a line for the key of an administrator's query, in the place of its earlier
// line or at the end.  STATUS_INVALID: the key, its roles, its name, which must not belong to
// another key, or the key that it replaces is not valid.  The line replaces the query's key first,
// then what that one replaced, then what the key replaced before; beyond ACCESS_REPLACES_MAX the
// last are left out.  The caller frees `*out`.
MUST_CHECK enum status access_text_with(char **out, const char *text, size_t size,
                                        const struct access_list *list, const struct query *query,
                                        struct error *err);

// Returns the text without that line, to be freed by the caller.
MUST_CHECK enum status access_text_without(char **out, const char *text, size_t size, unsigned line,
                                           struct error *err);

// Formats roles as in the file ("producer,reader") in QUERY_KEY_SIZE bytes.  Returns `out`.
char *access_roles_text(char *out, uint32_t roles);

// True if `name` is valid for a key.
bool access_name_is_valid(const char *name);

#endif
