// Trust policy of clients: selects the keys for a connection to a collector's address.  The first
// row that applies decides; "plain" is a connection without keys.
//
//   ipc address        plain: file permissions protect it.
//   known server key   CURVE with that key and this user's key file.  The server key comes
//                      from an option, the environment or a line of known_collectors.
//   loopback address   plain.
//   other address      refused; plain with the option `insecure`.
//
// The files known_collectors in $XDG_CONFIG_HOME/inferstat (~/.config/inferstat) and in
// /etc/inferstat are both read.  Each line is "ADDRESS KEY [comment]"; blank lines and lines that
// begin with '#' are skipped.  An address may have several lines, for a key change.
#ifndef INFERSTAT_WIRE_TRUST_H
#define INFERSTAT_WIRE_TRUST_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/keys.h"
#include "common/wire/socket.h"

enum {
    TRUST_PASSES_MAX = 4, // server keys of one address
    TRUST_WARNING_SIZE = 256,
};

// Command-line options; NULL: not given.
struct trust_options {
    const char *key_file;   // NULL: $INFERSTAT_KEY, or "key" of the configuration folder
    const char *server_key; // a key in Z85 or a file of them (keys_read_public).  NULL:
                            // $INFERSTAT_SERVER_KEY, or known_collectors
    bool insecure;
};

// The options, completed from the environment, so that a thread can call trust_decide again while
// other threads change the environment.  An empty text: none.
struct trust_source {
    char key_file[KEYS_PATH_SIZE];
    bool key_is_named;                     // given by an option or a variable: the file must exist
    char server_key[KEYS_PATH_SIZE];       // empty: look it up in known_collectors
    char known_collectors[KEYS_PATH_SIZE]; // path of this user's list
    bool insecure;
};

// Copies the options and the environment, which no other thread may change during the call.
// STATUS_INVALID: one of the texts is too long.
MUST_CHECK enum status trust_source_read(struct trust_source *out,
                                         const struct trust_options *options, struct error *err);

struct trust {
    // One pass per known server key, to try in turn, all with this user's key; none: plain.
    struct wire_pass passes[TRUST_PASSES_MAX];
    unsigned pass_count;
    char warning[TRUST_WARNING_SIZE]; // to show to the user; empty: none
};

// The pass for connection attempt `attempt`, cyclically; NULL: plain.
const struct wire_pass *trust_pass(const struct trust *trust, unsigned attempt);

// Applies the policy to an address.  STATUS_DENIED: the address is refused, or the permissions of
// the key file or of a known_collectors are too wide.  STATUS_NOT_FOUND: a file that was named does
// not exist, or this user has no key yet (the message suggests `inferstat keygen`).
// STATUS_INVALID: a file is malformed (the message names the line).
MUST_CHECK enum status trust_decide(struct trust *out, const struct address *address,
                                    const struct trust_source *source, struct error *err);

// trust_source_read and trust_decide in one call; errors of both.
MUST_CHECK enum status trust_resolve(struct trust *out, const struct address *address,
                                     const struct trust_options *options, struct error *err);

#endif
