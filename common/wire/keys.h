// Key files.
//
// A secret key's file has three lines, mode 0600:
//
//   inferstat-secret-key 1
//   public Z85
//   secret Z85
//
// FILE.pub, for peers that shall trust the key, has one line: the public key in Z85 and a
// comment.
#ifndef INFERSTAT_WIRE_KEYS_H
#define INFERSTAT_WIRE_KEYS_H

#include <stddef.h>

#include "common/core/base/error.h"
#include "common/wire/socket.h"

enum {
    KEYS_PATH_SIZE = 4096,   // of a path, terminating NUL included
    KEYS_LINE_SIZE = 1024,   // longest line of any of these files, likewise
    KEYS_COMMENT_SIZE = 256, // of a comment, likewise
};

// Creates a pair and writes FILE (0600) and FILE.pub (0644), each atomically, and missing
// parent folders (0700).  STATUS_BUSY if FILE exists: nothing is overwritten.  `comment` is one
// line of text.
MUST_CHECK enum status keys_create(struct wire_keypair *out, const char *path, const char *comment,
                                   struct error *err);

// Reads a secret key's file.  STATUS_NOT_FOUND: no such file.  STATUS_DENIED: it
// is not readable, or readable by group or others, or belongs to another user (the text
// says what to do); a symbolic link is followed if it belongs to this user or root.
// STATUS_INVALID: not a key file, or its two keys do not match.
MUST_CHECK enum status keys_read(struct wire_keypair *out, const char *path, struct error *err);

// Reads at most `max` public keys, one per line with an optional comment; blank lines and
// lines that begin with '#' (no key does) are skipped.  STATUS_INVALID names the invalid
// line, or reports no key or too many.
MUST_CHECK enum status keys_read_public(unsigned char (*out)[WIRE_KEY_SIZE], size_t max,
                                        size_t *count, const char *path, struct error *err);

// The default path of this user's keys: $XDG_CONFIG_HOME/inferstat/NAME, or
// ~/.config/inferstat/NAME.  STATUS_NOT_FOUND without a home.
MUST_CHECK enum status keys_default_path(char *out, size_t size, const char *name,
                                         struct error *err);

#endif
