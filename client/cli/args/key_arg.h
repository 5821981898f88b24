// Parser of command-line arguments that name a public key (CURVE).
#ifndef INFERSTAT_CLIENT_CLI_ARGS_KEY_ARG_H
#define INFERSTAT_CLIENT_CLI_ARGS_KEY_ARG_H

#include "common/core/base/error.h"
#include "common/wire/socket.h"

// Reads the public key that `word` names and writes it to `key` as Z85 text.  `word` is the key as
// Z85 text, a line that begins with this text, or the path of a file with such a line (FILE.pub of
// `inferstat keygen`).  A `word` that is both is the path if the file exists.  Returns
// STATUS_INVALID if `word` is neither.  `what` names the argument in `err`.
MUST_CHECK enum status key_arg_parse(char key[WIRE_KEY_TEXT_SIZE], const char *word,
                                     const char *what, struct error *err);

#endif
