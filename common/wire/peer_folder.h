// Folders of ipc addresses: the default one, and the check that only trusted users can listen in
// one.  Any user may create a folder in /tmp before the collector does; a program that connected
// there would talk to that user.
#ifndef INFERSTAT_WIRE_PEER_FOLDER_H
#define INFERSTAT_WIRE_PEER_FOLDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/peer.h"

// The users that may own an ipc folder, and answer in it.
struct peer_trust {
    uid_t uids[4];
    unsigned count;
};

// Trusts this process's user, root, and `user`, a name or number (NULL: no other).  Returns
// STATUS_INVALID if there is no such user.
MUST_CHECK enum status peer_trust_init(struct peer_trust *out, const char *user, struct error *err);

// True if the peer is one of the users.
bool peer_is_trusted(const struct peer_trust *trust, const struct wire_peer *peer);

// Opens the folder (O_PATH) and checks that only trusted users can listen in it: a trusted user
// owns it, neither its group nor others may write to it, and a trusted user owns the socket
// `socket`, if it exists (NULL: not checked).  If root owns the parent and no other user may write
// to that, and no other user could have put a link into the path, root has given the folder to its
// owner: adds the owner to `trust`.  `folder` is absolute, at most ADDRESS_TEXT_SIZE.  The
// descriptor refers to this folder even if another one replaces it at its path; the caller closes
// it. Returns STATUS_DENIED if the check fails (`err` says who could listen, but does not name the
// folder), STATUS_NOT_FOUND if there is no folder.
MUST_CHECK enum status peer_open_folder(int *fd, struct peer_trust *trust, const char *folder,
                                        const char *socket, struct error *err);

// The default address: `collector` (the value of INFERSTAT_COLLECTOR) if not NULL and not empty,
// else the folder "inferstat" in the first of these that belongs to this user: `runtime_dir` (the
// value of XDG_RUNTIME_DIR, may be NULL), /run/user/UID; else /run/inferstat.  For root the
// folders of /run/user do not count, as they go when the user logs out.  With `connects`
// /run/inferstat also takes precedence if only there a collector listens.  Returns the errors of
// address_parse.
MUST_CHECK enum status peer_default_address(struct address *out, const char *collector,
                                            const char *runtime_dir, bool connects,
                                            struct error *err);

#endif
