// Decides which keys a connection to an address needs.
//
//   ipc               plain: file permissions protect it.
//   a server key is   CURVE with it and this user's key file.  Known by option, by
//   known             environment or by a line of known_collectors.
//   loopback          plain.
//   anything else     refused, unless `insecure`, which is plain.
//
// known_collectors is in $XDG_CONFIG_HOME/inferstat (~/.config/inferstat) and in
// /etc/inferstat; both are read.  Each line is "ADDRESS KEY [comment]"; blank lines
// and lines that begin with '#' are skipped.  An address may have several lines while its
// key is being changed.
#ifndef INFERSTAT_WIRE_TRUST_H
#define INFERSTAT_WIRE_TRUST_H

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"

enum {
    TRUST_PASSES_MAX = 4, // server keys of one address
    TRUST_WARNING_SIZE = 256,
};

// Options of the command line; NULL where not given.
struct trust_options {
    const char *key_file;   // NULL: $INFERSTAT_KEY, or "key" of the configuration folder
    const char *server_key; // a key in Z85 or a file of them (keys_read_public).  NULL:
                            // $INFERSTAT_SERVER_KEY, or known_collectors
    bool insecure;
};

// The options, completed from the environment.  It holds copies, so that a thread may
// decide again while other threads change the environment.
struct trust_source {
    const char *key_file;         // NULL: no configuration folder
    bool key_is_named;            // by an option or a variable, so it must exist
    const char *server_key;       // NULL: known_collectors
    const char *known_collectors; // this user's list; NULL: no configuration folder
    bool insecure;
    char *memory; // memory of all these texts
};

// Reads the environment; no other thread may change it during the call.  Fails with
// STATUS_NOMEM only; `*out` needs trust_source_deinit even then.
MUST_CHECK enum status trust_source_read(struct trust_source *out,
                                         const struct trust_options *options, struct error *err);

// Copies `*from`; fails as above.
MUST_CHECK enum status trust_source_copy(struct trust_source *out, const struct trust_source *from,
                                         struct error *err);

// Accepts a zeroed source.
void trust_source_deinit(struct trust_source *source);

struct trust {
    // Passes to try one after the other, all with the same own key; none: plain.
    struct wire_pass passes[TRUST_PASSES_MAX];
    unsigned pass_count;
    char warning[TRUST_WARNING_SIZE]; // to show to the user; empty: none
};

// The pass for the `attempt`-th try, cyclically; NULL: plain.
const struct wire_pass *trust_pass(const struct trust *trust, unsigned attempt);

// Decides how to connect to the address.  STATUS_DENIED: it is not trusted, or the
// key file or a known_collectors has too wide permissions; STATUS_NOT_FOUND: a named file
// does not exist, or there is no key yet (the text names `inferstat keygen`); STATUS_INVALID: a
// file is malformed (the text names the line).
MUST_CHECK enum status trust_decide(struct trust *out, const struct address *address,
                                    const struct trust_source *source, struct error *err);

// The same with the options and the current environment; may also fail with STATUS_NOMEM.
MUST_CHECK enum status trust_resolve(struct trust *out, const struct address *address,
                                     const struct trust_options *options, struct error *err);

#endif
