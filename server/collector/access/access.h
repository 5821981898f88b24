// Access control by public key for TCP peers: the current content of the file of authorized
// keys.
//
// Any thread may check a key, for every message; a check holds a lock for well under a
// microsecond.  Adding or revoking a key replaces the file atomically; a changed file is
// reloaded.
#ifndef INFERSTAT_COLLECTOR_ACCESS_ACCESS_H
#define INFERSTAT_COLLECTOR_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"

struct access;

// Reads the file at `path`; a missing one has no keys and is created when the first is added.
// Fails with STATUS_INVALID, naming the line, and with the errors of text_file_open: STATUS_DENIED
// when the file is writable by others or belongs to another user than this process's or root.
MUST_CHECK enum status access_open(struct access **out, const char *path, struct error *err);
void access_close(struct access *access); // accepts NULL

// Checks whether the key may use a service.
enum access_verdict {
    ACCESS_GRANTED,
    ACCESS_ROLE,    // the key lacks the role
    ACCESS_UNKNOWN, // the key is not, or no longer, authorized
};
enum access_verdict access_check(struct access *access, enum address_service service,
                                 const unsigned char key[WIRE_KEY_SIZE]);

// True if the key may continue runs of the key `owner`: it is the same or replaces it.
bool access_continues(struct access *access, const unsigned char key[WIRE_KEY_SIZE],
                      const unsigned char owner[WIRE_KEY_SIZE]);

// Counts the reloads that removed a key or a role.  Connections made before the latest may
// belong to keys that are no longer authorized.
unsigned access_revocations(struct access *access);

// Reloads the file if it has changed; called every second.  A file that disappears is reloaded
// at the second call, since editors replace files.  An unreadable or invalid file changes
// nothing and is logged once.
void access_poll(struct access *access);

// Reloads the file unconditionally.
MUST_CHECK enum status access_reload(struct access *access, struct error *err);

// Runs an administrator's QUERY_AUTHORIZE, QUERY_REVOKE (by key or name) or QUERY_KEYS.  The
// result's columns are key, name, roles, replaces; its rows the key that was added or revoked,
// or all keys.
MUST_CHECK enum status access_query(struct access *access, const struct query *query,
                                    struct result **out, struct error *err);

#endif
