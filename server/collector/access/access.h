// Who may do what over TCP: the file of authorized keys, as it is now.
//
// Every thread may ask at any time, for every message it receives; asking takes a
// lock for well under a microsecond.  The file is written whole, by rename, when an
// administrator adds or revokes a key, and read again when it has changed.
#ifndef INFERSTAT_COLLECTOR_ACCESS_ACCESS_H
#define INFERSTAT_COLLECTOR_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"

struct access;

// Reads the file at `path`; one that is not there has no keys, and is made when the
// first is added.  STATUS_INVALID names the line that is wrong.  STATUS_DENIED:
// others than its owner may write it, or it is another user's.
MUST_CHECK enum status access_open(struct access **out, const char *path, struct error *err);
void access_close(struct access *access); // NULL is fine

// What the key may do at a service.
enum access_verdict {
    ACCESS_GRANTED,
    ACCESS_ROLE,    // the key has not the role that it takes
    ACCESS_UNKNOWN, // the key is not, or no longer, in the list
};
enum access_verdict access_check(struct access *access, enum address_service service,
                                 const unsigned char key[WIRE_KEY_SIZE]);

// Whether the key may go on with what `owner` has begun.
bool access_continues(struct access *access, const unsigned char key[WIRE_KEY_SIZE],
                      const unsigned char owner[WIRE_KEY_SIZE]);

// How often something was taken away from a key so far.  Connections made before
// the latest time may be those of keys that are not admitted any longer.
unsigned access_revocations(struct access *access);

// Reads the file again where it has changed, at once; called every second.  One
// that cannot be read, or is wrong, changes nothing and is told in the log, once.
void access_look(struct access *access);

// Reads the file again whatever it looks like.
MUST_CHECK enum status access_reload(struct access *access, struct error *err);

// What an administrator asks for: QUERY_AUTHORIZE, QUERY_REVOKE (by key or by
// name) and QUERY_KEYS.  The answer's rows: key, name, roles, replaces; of the key
// that was added or revoked, or of all.
MUST_CHECK enum status access_query(struct access *access, const struct query *query,
                                    struct result **out, struct error *err);

#endif
