// Key files.
//
// A secret key's file has three lines, mode 0600:
//
//   inferstat-secret-key 1
//   public Z85
//   secret Z85
//
// Beside it lies FILE.pub for those who are to trust the key: one line, the
// public key in Z85 and a comment.
#ifndef INFERSTAT_WIRE_KEYS_H
#define INFERSTAT_WIRE_KEYS_H

#include <stddef.h>

#include "common/core/error.h"
#include "common/wire/socket.h"

enum {
    KEYS_PATH_SIZE = 4096,   // of a path, terminating NUL included
    KEYS_LINE_SIZE = 1024,   // longest line of any of these files, likewise
    KEYS_COMMENT_SIZE = 256, // of a comment, likewise
};

// Makes a new pair and writes FILE (0600) and FILE.pub (0644), each whole or not at
// all, and folders missing above them (0700).  STATUS_BUSY when FILE is there:
// nothing is overwritten.  `comment` is one line of text.
MUST_CHECK enum status keys_create(struct wire_keypair *out, const char *path, const char *comment,
                                   struct error *err);

// Reads a secret key's file.  STATUS_NOT_FOUND: it is not there.  STATUS_DENIED:
// it may not be read, or group or others may, or it belongs to another user (the
// text says what to do); a symbolic link is followed where it belongs to this
// user or root.  STATUS_INVALID: it is no such file, or its keys do not fit.
MUST_CHECK enum status keys_read(struct wire_keypair *out, const char *path, struct error *err);

// Reads public keys, one a line, each the key and perhaps a comment; blank lines
// and those that begin with '#', which no key does, are skipped.  At most `max`; STATUS_INVALID
// names the line that is wrong, or says that there is none or are too many.
MUST_CHECK enum status keys_read_public(unsigned char (*out)[WIRE_KEY_SIZE], size_t max,
                                        size_t *count, const char *path, struct error *err);

// Where this user's keys are by default: $XDG_CONFIG_HOME/inferstat/NAME, or
// ~/.config/inferstat/NAME.  STATUS_NOT_FOUND without a home.
MUST_CHECK enum status keys_default_path(char *out, size_t size, const char *name,
                                         struct error *err);

#endif
