#include "common/wire/peer.h"

#include <stdint.h>
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

// Consumes a decimal number up to `max`, written as printf("%u") writes it.
static bool read_number(uint32_t *out, const char **text, uint32_t max)
{
    const char *at = *text;
    uint64_t number = 0;
    if (at[0] == '0' && at[1] >= '0' && at[1] <= '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (uint64_t)(*at - '0');
        if (number > max)
            return false;
    }
    if (at == *text)
        return false;
    *out = (uint32_t)number;
    *text = at;
    return true;
}

bool peer_read_address(struct wire_peer *peer, const char *text)
{
    static const char prefix[] = "localhost:";
    uint32_t uid, gid, pid;
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return false;
    text += sizeof prefix - 1;
    // The largest number of a user or group means "none".
    const bool parsed = read_number(&uid, &text, UINT32_MAX - 1) && *text++ == ':' &&
                        read_number(&gid, &text, UINT32_MAX - 1) && *text++ == ':' &&
                        read_number(&pid, &text, INT32_MAX) && *text == '\0';
    if (parsed)
        *peer = (struct wire_peer){.kind = PEER_USER, .uid = uid, .pid = (pid_t)pid};
    return parsed;
}

bool peer_read_owner(struct wire_peer *peer, const char *text)
{
    struct wire_peer read = {.kind = PEER_LOOPBACK};
    uint32_t uid = 0;
    bool parsed = strcmp(text, "loopback") == 0;
    if (strncmp(text, "user:", 5) == 0) {
        text += 5;
        parsed = read_number(&uid, &text, UINT32_MAX - 1) && *text == '\0';
        read.kind = PEER_USER;
        read.uid = uid;
    } else if (strncmp(text, "key:", 4) == 0) {
        parsed = wire_key_parse(read.key, text + 4);
        read.kind = PEER_KEY;
    }
    if (parsed)
        *peer = read;
    return parsed;
}

void peer_set_host(struct wire_peer *peer, const char *host)
{
    *peer = (struct wire_peer){.kind = PEER_LOOPBACK};
    (void)snprintf(peer->host, sizeof peer->host, "%s", host ? host : "");
}
