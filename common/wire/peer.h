// Identity of the process at the other end of a connection: its key, its user, or only its
// address.  The single definition of who owns what a peer sends.  Any thread.
#ifndef INFERSTAT_WIRE_PEER_H
#define INFERSTAT_WIRE_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/wire/socket_keys.h"

enum peer_kind {
    PEER_LOOPBACK, // TCP without keys
    PEER_USER,     // ipc: a user of this host, as the kernel says
    PEER_KEY,      // TCP with keys: proved in the handshake
};

enum {
    PEER_HOST_SIZE = 46,  // an IPv6 address in text, terminating NUL included
    PEER_TEXT_SIZE = 128, // peer_text, terminating NUL included
    PEER_OWNER_SIZE = 48, // peer_owner_text, terminating NUL included
};

struct wire_peer {
    enum peer_kind kind;
    uid_t uid;                        // PEER_USER
    pid_t pid;                        // PEER_USER; 0: of another PID namespace
    unsigned char key[WIRE_KEY_SIZE]; // PEER_KEY
    char host[PEER_HOST_SIZE];        // PEER_KEY, PEER_LOOPBACK: the peer's IP address; "": unknown
};

// True if both belong to the same key or the same user.  Peers without either, over TCP without
// keys, have one owner.
bool peer_is_same_owner(const struct wire_peer *a, const struct wire_peer *b);

// Writes the name of the peer's owner to `text`, which holds PEER_OWNER_SIZE bytes: "key:Z85",
// "user:1000" or "loopback".  Peers have the same name if and only if peer_is_same_owner.
// Returns `text`.
char *peer_owner_text(char *text, const struct wire_peer *peer);

// Parses such a name, and makes `peer` a peer of that owner.  Returns false, with `peer` unchanged,
// if the text is anything else.
bool peer_read_owner(struct wire_peer *peer, const char *text);

// Writes who the peer is to `text`, which holds PEER_TEXT_SIZE bytes: "user alice (1001), process
// 4711", "key Z85" or "127.0.0.1".  Looks the user's name up in the system's database, which may
// wait for a server of names.  Returns `text`.
char *peer_text(char *text, const struct wire_peer *peer);

// Parses "localhost:UID:GID:PID", in which libzmq writes the credentials of a peer over ipc, and
// makes `peer` that user.  Returns false, with `peer` unchanged, if the text is anything else.
bool peer_read_address(struct wire_peer *peer, const char *text);

// Makes `peer` one without key and user, at the IP address `host` (cut at PEER_HOST_SIZE; NULL:
// unknown).
void peer_set_host(struct wire_peer *peer, const char *host);

#endif
