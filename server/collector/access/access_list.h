// Parser and editor for the file of authorized keys, the allow-list of access.h.  Parses the
// file's text to a list, and edits one line of the text so that comments stay.  No I/O.
//
// A line is
//
//   KEY ROLE[,ROLE]... NAME [replaces KEY]... [expires TIME]
//
// KEY is a public key in Z85; ROLE is producer, reader or admin; NAME is unique, 1 to 63 of
// a-z A-Z 0-9 . _ -.  `replaces` lists every key whose runs this key may continue; keys that
// a replaced key replaced must be listed, too.  TIME, such as 2027-02-20T00:00:00Z, is when the
// authorization ends.  Blank lines and comments (lines that begin with '#') are skipped.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/wire/socket_keys.h"

// Limits; access_list_parse returns STATUS_INVALID beyond them.
enum {
    ACCESS_KEYS_MAX = 65536,            // lines with keys
    ACCESS_REPLACES_MAX = 16,           // replaced keys in a line
    ACCESS_TEXT_MAX = 16 * 1024 * 1024, // bytes of the file
    ACCESS_LINE_MAX = 1024,             // bytes of a line with a key
};

struct access_key {
    unsigned char key[WIRE_KEY_SIZE];
    uint32_t roles; // bit i: enum query_role i
    char name[QUERY_KEY_SIZE];
    unsigned char (*replaces)[WIRE_KEY_SIZE]; // replaced keys, or NULL
    unsigned replaces_count;
    int64_t expires_ns; // wall clock; 0: never
    unsigned line;      // its number in the file
};

struct access_list {
    struct access_key *keys; // sorted by key
    size_t count;
};

// Parses a file's text, which is copied; `file` is the file's name for messages.  Returns
// STATUS_INVALID if a line is invalid: `err` names file, line and reason, and `*out` is empty.
MUST_CHECK enum status access_list_parse(struct access_list *out, const char *text, size_t size,
                                         const char *file, struct error *err);
void access_list_deinit(struct access_list *list); // accepts an empty one

// Returns the entry of `key`, or NULL.
const struct access_key *access_list_find(const struct access_list *list,
                                          const unsigned char key[WIRE_KEY_SIZE]);

// Returns the entry with that name, or NULL.
const struct access_key *access_list_named(const struct access_list *list, const char *name);

// True if `key` may continue runs of `owner`: it is the same key, or its line replaces `owner`.
bool access_list_continues(const struct access_list *list, const unsigned char key[WIRE_KEY_SIZE],
                           const unsigned char owner[WIRE_KEY_SIZE]);

// Returns the roles of a key's line `before` that it lacks `after`; the role admin includes the
// others.
uint32_t access_lost_roles(const struct access_key *before, const struct access_key *after);

// True if `after` lacks a key of `before`, or a role that a key has in `before`.
bool access_list_revokes(const struct access_list *before, const struct access_list *after);

// Copies `text` and adds a line for the key that `query` (an administrator's QUERY_AUTHORIZE)
// names: in the place of the key's earlier line, or at the end.  `list` is the parsed `text`.
// Returns STATUS_INVALID if the key, its roles, its name or the key that the query replaces is
// invalid, or the name belongs to another key.
//
// The key expires when the query says, whatever the earlier line said.  After `replaces` the line
// has, in this order, the key that the query replaces, the keys that this key replaced, and the
// keys in the earlier line; beyond ACCESS_REPLACES_MAX the last are left out.  The caller frees
// `*out`.
MUST_CHECK enum status access_text_with(char **out, const char *text, size_t size,
                                        const struct access_list *list, const struct query *query,
                                        struct error *err);

// Copies `text` without line number `line`.  The caller frees `*out`.
MUST_CHECK enum status access_text_without(char **out, const char *text, size_t size, unsigned line,
                                           struct error *err);

// Writes the roles as in the file ("producer,reader") to `out`, which has QUERY_KEY_SIZE bytes.
// Returns `out`.
char *access_roles_text(char *out, uint32_t roles);

// True if `name` is valid for a key.
bool access_name_is_valid(const char *name);
