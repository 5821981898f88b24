#include "common/wire/peer.h"

#include <stdio.h>
#include <string.h>

bool peer_is_same_owner(const struct wire_peer *a, const struct wire_peer *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PEER_USER)
        return a->uid == b->uid;
    return a->kind != PEER_KEY || memcmp(a->key, b->key, sizeof a->key) == 0;
}

char *peer_owner_text(char *text, const struct wire_peer *peer)
{
    char key[WIRE_KEY_TEXT_SIZE];
    if (peer->kind == PEER_USER)
        (void)snprintf(text, PEER_OWNER_SIZE, "user:%u", peer->uid);
    else if (peer->kind == PEER_KEY)
        (void)snprintf(text, PEER_OWNER_SIZE, "key:%s", wire_key_text(key, peer->key));
    else
        (void)snprintf(text, PEER_OWNER_SIZE, "loopback");
    return text;
}

char *peer_text(char *text, const struct wire_peer *peer)
{
    char key[WIRE_KEY_TEXT_SIZE];
    if (peer->kind == PEER_USER && peer->pid != 0)
        (void)snprintf(text, PEER_TEXT_SIZE, "user %u, process %d", peer->uid, (int)peer->pid);
    else if (peer->kind == PEER_USER)
        (void)snprintf(text, PEER_TEXT_SIZE, "user %u", peer->uid);
    else if (peer->kind == PEER_KEY)
        (void)snprintf(text, PEER_TEXT_SIZE, "key %s", wire_key_text(key, peer->key));
    else
        (void)snprintf(text, PEER_TEXT_SIZE, "%s", peer->host[0] ? peer->host : "unknown host");
    return text;
}

bool peer_read_address(struct wire_peer *peer, const char *text)
{
    char again[PEER_TEXT_SIZE];
    unsigned uid, gid;
    int pid;
    if (sscanf(text, "localhost:%u:%u:%d", &uid, &gid, &pid) != 3)
        return false;
    // No signs, leading zeros or numbers that are too large: the same text again.  The largest
    // number of a user or group means "none".
    (void)snprintf(again, sizeof again, "localhost:%u:%u:%d", uid, gid, pid);
    if (strcmp(again, text) != 0 || uid == UINT32_MAX || gid == UINT32_MAX || pid < 0)
        return false;
    *peer = (struct wire_peer){.kind = PEER_USER, .uid = uid, .pid = pid};
    return true;
}

bool peer_read_owner(struct wire_peer *peer, const char *text)
{
    char again[PEER_OWNER_SIZE];
    struct wire_peer read = {.kind = PEER_LOOPBACK};
    if (sscanf(text, "user:%u", &read.uid) == 1)
        read.kind = PEER_USER;
    else if (strncmp(text, "key:", 4) == 0 && wire_key_parse(read.key, text + 4))
        read.kind = PEER_KEY;
    if (strcmp(peer_owner_text(again, &read), text) != 0 || read.uid == UINT32_MAX)
        return false;
    *peer = read;
    return true;
}

void peer_set_host(struct wire_peer *peer, const char *host)
{
    *peer = (struct wire_peer){.kind = PEER_LOOPBACK};
    (void)snprintf(peer->host, sizeof peer->host, "%s", host ? host : "");
}
