// Parsers of values on the command line: public keys (CURVE) and times ("1h", "2026-03-29 14:30").
#pragma once

#include "client/cli/cli.h"
#include "common/wire/socket_keys.h"

// Reads the public key that `word` names and writes it to `key` as Z85 text.  If a file `word`
// exists, reads the key from it (FILE.pub of `inferstat keygen`).  Else `word` itself is the key:
// Z85 text, followed by a comment or not.  Returns STATUS_INVALID if `word` is neither a file nor a
// key.  `what` names the argument in `err`.
MUST_CHECK enum status key_arg_parse(char key[WIRE_KEY_TEXT_SIZE], const char *word,
                                     const char *what, struct error *err);

// Parses a time, or a duration before now, as when_parse (common/sys/when.h) does; now is the time
// of a store file's last message (cli_as_of), else the clock's.  `what` names the option in `err`.
// A local time occurs twice when clocks are set back: then `latest` selects the second instant, and
// a warning on env.notes shows both and the one used.
MUST_CHECK enum status time_arg_parse(struct cli *cli, int64_t *out_ns, const char *text,
                                      bool latest, const char *what, struct error *err);

// Callback of the query parser (query_when in query_text.h): calls time_arg_parse; `cli` is a
// struct cli.
MUST_CHECK enum status time_arg_read(void *cli, int64_t *out_ns, const char *text, bool latest,
                                     struct error *err);
