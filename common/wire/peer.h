// Peer identity: says who is at the other end of a connection: a CURVE key, a user of this host, or
// only an IP address.  The peer's owner (a key, a user, or all other peers) owns the data that
// the peer sends.  Any thread.
#pragma once

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
    PEER_TEXT_SIZE = 64,  // peer_text, terminating NUL included
    PEER_OWNER_SIZE = 48, // peer_owner_text, terminating NUL included
};

struct wire_peer {
    enum peer_kind kind;
    uid_t uid;                        // PEER_USER
    pid_t pid;                        // PEER_USER; 0: of another PID namespace
    unsigned char key[WIRE_KEY_SIZE]; // PEER_KEY
    char host[PEER_HOST_SIZE];        // PEER_KEY, PEER_LOOPBACK: the peer's IP address; "": unknown
};

// True if both peers have the same owner: the same key, or the same user.  All peers without key
// and user (PEER_LOOPBACK) have one owner.
bool peer_is_same_owner(const struct wire_peer *a, const struct wire_peer *b);

// Writes the name of the peer's owner to `text`, which holds PEER_OWNER_SIZE bytes: "key:Z85",
// "user:1000" or "loopback".  Peers have the same name if and only if peer_is_same_owner.
// Returns `text`.
char *peer_owner_text(char *text, const struct wire_peer *peer);

// Parses a name of peer_owner_text, and makes `peer` a peer of that owner.  Returns false, with
// `peer` unchanged, if the text is anything else.
bool peer_read_owner(struct wire_peer *peer, const char *text);

// Writes who the peer is to `text`, which holds PEER_TEXT_SIZE bytes: "user 1001, process 4711",
// "key Z85" or "127.0.0.1".  Returns `text`.
char *peer_text(char *text, const struct wire_peer *peer);

// Parses "localhost:UID:GID:PID", in which libzmq writes the credentials of a peer over ipc, and
// makes `peer` that user.  Returns false, with `peer` unchanged, if the text is anything else.
bool peer_read_address(struct wire_peer *peer, const char *text);

// Makes `peer` one without key and user, at the IP address `host` (cut at PEER_HOST_SIZE; NULL:
// unknown).
void peer_set_host(struct wire_peer *peer, const char *host);
