// Parser for command-line arguments that are public keys.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_KEY_ARG_H
#define INFERSTAT_CLIENT_CLI_ARGS_KEY_ARG_H

#include "common/core/base/error.h"
#include "common/wire/socket.h"

// Accepts a public key in Z85, a line that begins with one, or the path of a file with one (such
// as FILE.pub of `inferstat keygen`); an existing path wins.  Writes the key in Z85.  `what` names
// the argument in errors.
MUST_CHECK enum status key_arg_parse(char key[WIRE_KEY_TEXT_SIZE], const char *word,
                                     const char *what, struct error *err);

#endif
