// Protection against socket squatting: checks that only trusted users can listen in the folder of
// an ipc address, and chooses the default folder.  Without the check another user could create a
// folder in /tmp before the collector does, and clients would connect to that user.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/peer.h"

// Trusted users: they may own an ipc folder and listen in it.
struct peer_trust {
    uid_t uids[4];
    unsigned count;
};

// Trusts this process's user, root, and `user`, a name or number (NULL: no other).  Returns
// STATUS_INVALID if there is no such user.
MUST_CHECK enum status peer_trust_init(struct peer_trust *out, const char *user, struct error *err);

bool peer_is_trusted(const struct peer_trust *trust, const struct wire_peer *peer);

// Opens the folder (O_PATH) and checks that only trusted users can listen in it:
// - a trusted user owns the folder;
// - neither its group nor others may write to it;
// - if the file `socket` exists in it, this is a socket of a trusted user (NULL: not checked).
// Adds the folder's owner to `trust` if root has given the folder to this user: only root may write
// to the parent folder, and no other user could have put a link into the path.  `folder` is an
// absolute path of at most ADDRESS_TEXT_SIZE bytes.  The caller closes `*fd`, which refers to this
// folder even if another one replaces it at its path.  Returns STATUS_DENIED if the check fails
// (`err` says who could listen, but does not name the folder), STATUS_NOT_FOUND if there is none.
MUST_CHECK enum status peer_open_folder(int *fd, struct peer_trust *trust, const char *folder,
                                        const char *socket, struct error *err);

// Sets the default address to the first of these:
// 1. `collector` (the value of INFERSTAT_COLLECTOR), if not NULL and not empty;
// 2. the folder "inferstat" in `runtime_dir` (the value of XDG_RUNTIME_DIR; may be NULL);
// 3. the folder "inferstat" in /run/user/UID;
// 4. /run/inferstat.
// 2 and 3 require that this user owns the parent folder and no other may write to it.  Root never
// uses a folder below /run/user, which is removed at logout.  If `connects`, /run/inferstat comes
// before 2 and 3 when a collector listens only there.  Returns the errors of address_parse.
MUST_CHECK enum status peer_default_address(struct address *out, const char *collector,
                                            const char *runtime_dir, bool connects,
                                            struct error *err);
// Sets the address to `text`, or if it is NULL to the default to connect to in this environment.
MUST_CHECK enum status peer_address(struct address *out, const char *text, struct error *err);
