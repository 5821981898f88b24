// Parsers of argument values: public keys (CURVE), and times ("1h", "2026-03-29 14:30").
#ifndef INFERSTAT_CLIENT_CLI_ARGS_VALUE_ARGS_H
#define INFERSTAT_CLIENT_CLI_ARGS_VALUE_ARGS_H

#include "client/cli/cli.h"
#include "common/wire/socket_keys.h"

// Reads the public key that `word` names and writes it to `key` as Z85 text.  `word` is the key as
// Z85 text, a line that begins with this text, or the path of a file with such a line (FILE.pub of
// `inferstat keygen`).  A `word` that is both is the path if the file exists.  Returns
// STATUS_INVALID if `word` is neither.  `what` names the argument in `err`.
MUST_CHECK enum status key_arg_parse(char key[WIRE_KEY_TEXT_SIZE], const char *word,
                                     const char *what, struct error *err);

// Calls when_parse (common/sys/when.h) with the clock of `env`.  `what` names the option in `err`.
// A local time occurs twice when clocks are set back: then `latest` selects the second instant, and
// env->notes receives a warning with both instants and the one used.
MUST_CHECK enum status time_arg_parse(const struct cli_environment *env, int64_t *out_ns,
                                      const char *text, bool latest, const char *what,
                                      struct error *err);

// The same as a callback of the query parser (query_when in query_text.h); `env` is a struct
// cli_environment.
MUST_CHECK enum status time_arg_read(void *env, int64_t *out_ns, const char *text, bool latest,
                                     struct error *err);

#endif
