// Access control for TCP peers: an in-memory allow-list of public keys and their roles, loaded from
// the file of authorized keys (access_list.h).  Roles and the services they permit:
// - "producer": "ingest"
// - "reader": "query" and "live"
// - "admin": all services
// Key rotation: a key's entry may name older keys that the key replaces; the key may then continue
// the runs of these older keys.
//
// Any thread may check a key, for every message; a check holds a lock for well under a microsecond.
// Adding or revoking a key replaces the file atomically; access_poll reloads a changed file.
#pragma once

#include <stdbool.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/wire/address.h"
#include "common/wire/socket_keys.h"

struct access;

// Reads the file at `path`.  A missing file counts as empty; it is created when the first key is
// added.  Returns STATUS_INVALID if a line is invalid (`err` names it), STATUS_DENIED if others
// may write to the file or it belongs to a user other than root and this process's, or another
// error of text_file_open.
MUST_CHECK enum status access_open(struct access **out, const char *path, struct error *err);
void access_close(struct access *access); // accepts NULL

// Checks if `key` may use `service`.
enum access_verdict {
    ACCESS_GRANTED,
    ACCESS_ROLE,    // the key lacks the role that the service needs
    ACCESS_UNKNOWN, // the key is not, or no longer, authorized
};
enum access_verdict access_check(struct access *access, enum address_service service,
                                 const unsigned char key[WIRE_KEY_SIZE]);

// True if `key` may continue runs that `owner` authenticated: it is the same key or replaces
// `owner`.
bool access_continues(struct access *access, const unsigned char key[WIRE_KEY_SIZE],
                      const unsigned char owner[WIRE_KEY_SIZE]);

// Sets `name` to the name of `key`, expired or not.  Returns false if the file lacks the key.
bool access_name_of(struct access *access, const unsigned char key[WIRE_KEY_SIZE],
                    char name[QUERY_KEY_SIZE]);

// Sets `key` to the key with this name, expired or not.  Returns false if there is none.
bool access_key_named(struct access *access, const char *name, unsigned char key[WIRE_KEY_SIZE]);

// Returns the number of revocations so far: reloads that removed a key or a role, and expiries of
// keys.  When it grows, open connections may belong to keys that are no longer authorized.
unsigned access_revocations(struct access *access);

// Reloads the file if it has changed, and counts keys that have expired as a revocation.  Call it
// every second.  A file counts as removed when it is missing at two calls, since editors replace
// files.  An unreadable or invalid file changes nothing and is logged once.
void access_poll(struct access *access);

// Reloads the file unconditionally.
MUST_CHECK enum status access_reload(struct access *access, struct error *err);

// Runs an administrator's QUERY_AUTHORIZE, QUERY_REVOKE (by key or name) or QUERY_KEYS.  The
// result has the columns key, name, roles, replaces, expires_ns (null: never), lost_roles (null:
// none; of QUERY_AUTHORIZE only), and a row for the key that was added or revoked, or for
// QUERY_KEYS a row for each key.
MUST_CHECK enum status access_query(struct access *access, const struct query *query,
                                    struct result **out, struct error *err);
