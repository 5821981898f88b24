// Trust policy of clients: selects the CURVE keys for a connection to a collector's address.  The
// first row that applies decides.  A "plain" connection has no keys: no encryption and no
// authentication.
//
//   ipc address        plain; trust_connect checks who can listen there (peer_folder.h).
//   known server key   CURVE with that key and this user's key file.  The server key comes
//                      from an option, the environment or a line of known_collectors.
//   loopback address   plain.
//   other address      refused; plain with the option `insecure`.
//
// The files known_collectors in $XDG_CONFIG_HOME/inferstat (~/.config/inferstat) and in
// /etc/inferstat are both read.  Each line is "ADDRESS KEY [comment]"; blank lines and lines that
// begin with '#' are skipped.  An address may have several lines, for a key change.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/keys.h"
#include "common/wire/peer_folder.h"
#include "common/wire/socket.h"

enum {
    TRUST_PASSES_MAX = 4, // most server keys of one address; further lines of it are ignored
    TRUST_WARNING_SIZE = 256,
};

// Command-line options; NULL: not given.
struct trust_options {
    const char *collector_user; // a user who may own an ipc address, beside this user and root
                                // (peer_trust_init).  NULL: $INFERSTAT_COLLECTOR_USER, or none
    const char *key_file;       // NULL: $INFERSTAT_KEY, or "key" in the configuration folder
    const char *server_key;     // a key in Z85, or the path of a file with such keys
                            // (keys_read_public).  NULL: $INFERSTAT_SERVER_KEY, or known_collectors
    bool insecure; // permit a plain connection to any address
};

// Copy of the options, completed from the environment, so that a thread can call trust_decide again
// while other threads change the environment.  An empty text means: not set.
struct trust_source {
    char key_file[KEYS_PATH_SIZE];
    bool key_is_named;                     // by an option or a variable: the key file must exist
    char server_key[KEYS_PATH_SIZE];       // empty: look it up in known_collectors
    char known_collectors[KEYS_PATH_SIZE]; // path of this user's list
    struct peer_trust users;               // who may listen at an ipc address
    bool insecure;
};

// Copies the options and the environment's variables.  No other thread may change the environment
// during the call.  Returns STATUS_INVALID if one of the texts is too long, or if there is no such
// user.
MUST_CHECK enum status trust_source_read(struct trust_source *out,
                                         const struct trust_options *options, struct error *err);

// Who may be the collector at one address.
struct trust {
    // Client credentials (wire_pass), one for each known server key, to try in turn.  All have this
    // user's key pair.  Without any, the connection is plain.
    struct wire_pass passes[TRUST_PASSES_MAX];
    unsigned pass_count;
    struct peer_trust users;          // who may listen at an ipc address
    char warning[TRUST_WARNING_SIZE]; // to show to the user; empty: none
};

// The credentials for connection attempt number `attempt`: attempts use the passes in turn.  NULL:
// plain.
const struct wire_pass *trust_pass(const struct trust *trust, unsigned attempt);

// Applies the policy to an address.  Returns STATUS_DENIED if the policy refuses the address, or if
// the permissions of the key file or of a known_collectors file are too wide; STATUS_NOT_FOUND if a
// named file does not exist, or this user has no key yet (`err` suggests `inferstat keygen`);
// STATUS_INVALID if a file is malformed (`err` names the line).
MUST_CHECK enum status trust_decide(struct trust *out, const struct address *address,
                                    const struct trust_source *source, struct error *err);

// Connects to a service of the address that `trust` was decided for, as attempt number `attempt`;
// returns the errors of wire_connect.
MUST_CHECK enum status trust_connect(struct wire_socket **out, struct wire_context *context,
                                     const struct trust *trust, const struct address *address,
                                     enum address_service service, unsigned attempt,
                                     struct error *err);
