// Key files of CURVE key pairs: creates and reads them.
//
// The file of a secret key has mode 0600 and three lines:
//
//   inferstat-secret-key 1
//   public Z85
//   secret Z85
//
// FILE.pub, for the peers that trust the key, has one line: the public key in Z85 and a comment.
#ifndef INFERSTAT_WIRE_KEYS_H
#define INFERSTAT_WIRE_KEYS_H

#include <stddef.h>

#include "common/core/base/error.h"
#include "common/wire/socket.h"

enum {
    // Buffer sizes, terminating NUL included.
    KEYS_PATH_SIZE = 4096,
    KEYS_LINE_SIZE = 1024, // of a line of these files
    KEYS_COMMENT_SIZE = 256,
};

// Creates a key pair and writes FILE (0600) and FILE.pub (0644), each atomically; creates missing
// parent folders (0700).  STATUS_BUSY: FILE exists and stays unchanged.  `comment` is one line.
MUST_CHECK enum status keys_create(struct wire_keypair *out, const char *path, const char *comment,
                                   struct error *err);

// Reads the file of a secret key.  Errors are those of text_file_open (TEXT_FILE_SECRET), and
// STATUS_INVALID: not a key file, or the two keys do not match.
MUST_CHECK enum status keys_read(struct wire_keypair *out, const char *path, struct error *err);

// Reads at most `max` public keys, one per line with an optional comment; skips blank lines and
// lines that begin with '#'.  STATUS_INVALID: an invalid line (the message names it), no key, or
// more than `max`.
MUST_CHECK enum status keys_read_public(unsigned char (*out)[WIRE_KEY_SIZE], size_t max,
                                        size_t *count, const char *path, struct error *err);

// The path of this user's configuration file NAME: $XDG_CONFIG_HOME/inferstat/NAME, or
// ~/.config/inferstat/NAME.  STATUS_NOT_FOUND without a home.
MUST_CHECK enum status keys_default_path(char *out, size_t size, const char *name,
                                         struct error *err);

#endif
