// Public keys as words of a command line.
#ifndef INFERSTAT_CLIENT_CLI_KEYS_H
#define INFERSTAT_CLIENT_CLI_KEYS_H

#include "common/core/base/error.h"
#include "common/wire/socket.h"

enum { CLI_PATH_TEXT_SIZE = 1024 };

// Reads a word that is a public key in Z85, the line of a file that begins with one, or the
// path of a file that holds one (FILE.pub of `inferstat keygen`), and writes the key's text. `what`
// names the word in what goes wrong.
MUST_CHECK enum status cli_key_read(char key[WIRE_KEY_TEXT_SIZE], const char *word,
                                    const char *what, struct error *err);

// A path as a terminal may be shown it, cut where it is long.  Returns `text`.
const char *cli_path_text(char text[CLI_PATH_TEXT_SIZE], const char *path);

#endif
