// Key files: creates and reads the files of CURVE key pairs (elliptic-curve keys of ZeroMQ, as text
// in Z85).  All programs that authenticate a connection use them.
//
// The file of a secret key has mode 0600 and three lines:
//
//   inferstat-secret-key 1
//   public Z85
//   secret Z85
//
// Beside it is FILE.pub, for the peers that trust the key.  It has one line: the public key in Z85
// and a comment.
#pragma once

#include <stddef.h>

#include "common/core/base/error.h"
#include "common/wire/socket_keys.h"

enum {
    // Buffer sizes, terminating NUL included.
    KEYS_PATH_SIZE = 4096,
    KEYS_LINE_SIZE = 1024, // of a line of a key file
    KEYS_COMMENT_SIZE = 256,
};

// Creates a key pair and writes `path` (0600) and `path`.pub (0644), each atomically; creates
// missing parent folders (0700).  `comment` is one line.  Returns STATUS_BUSY if one of the files
// exists; existing files stay unchanged.
MUST_CHECK enum status keys_create(struct wire_keypair *out, const char *path, const char *comment,
                                   struct error *err);

// Reads the file of a secret key.  Returns STATUS_INVALID if it is not a key file or the two keys
// do not match; other errors are those of text_file_open with TEXT_FILE_SECRET.
MUST_CHECK enum status keys_read(struct wire_keypair *out, const char *path, struct error *err);

// Reads at most `max` public keys, one per line with an optional comment; skips blank lines and
// lines that begin with '#'.  Returns STATUS_INVALID if a line is invalid (`err` names it), there
// is no key, or there are more than `max` keys.
MUST_CHECK enum status keys_read_public(unsigned char (*out)[WIRE_KEY_SIZE], size_t max,
                                        size_t *count, const char *path, struct error *err);

// Writes the path of this user's configuration file `name`: $XDG_CONFIG_HOME/inferstat/NAME, or
// ~/.config/inferstat/NAME.  Returns STATUS_NOT_FOUND if the user has no home directory.
MUST_CHECK enum status keys_default_path(char *out, size_t size, const char *name,
                                         struct error *err);
