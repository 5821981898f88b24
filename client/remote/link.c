#include "client/remote/link.h"

#include <stdio.h>

#include "common/sys/clock.h"

// Between two sockets, doubled with every round through the keys.
static const uint64_t back_off_first_ns = UINT64_C(1000000000);
static const uint64_t back_off_most_ns = UINT64_C(10000000000);

// Between two looks for a folder or the end of a back-off.
static const uint64_t look_ns = UINT64_C(50000000);

// From the loss of a connection to the next.
static const uint64_t lost_ns = UINT64_C(100000000);

static enum status refused(const struct link *link, struct error *err)
{
    char place[ADDRESS_TEXT_SIZE], key[WIRE_KEY_TEXT_SIZE];
    if (link->trouble == WIRE_HANDSHAKE_CLOSED)
        return error_set(err, STATUS_DENIED, "collector %.200s: %s",
                         address_text(place, link->address), link->closed);
    return error_set(
        err, STATUS_DENIED,
        "collector %.200s: it refuses this key (its owner may: inferstat authorize"
        " '%s' --role %s --name NAME; these roles replace those that the key has)",
        address_text(place, link->address),
        wire_key_text(key, link->trust->passes[0].own.public_key),
        query_role_name(link->service == ADDRESS_ADMIN ? QUERY_ROLE_ADMIN : QUERY_ROLE_READER));
}

static uint64_t back_off_ns(unsigned rounds)
{
    const uint64_t wait_ns = back_off_first_ns << (rounds < 8 ? rounds - 1 : 7);
    return wait_ns < back_off_most_ns ? wait_ns : back_off_most_ns;
}

void link_drop(struct link *link)
{
    wire_close(link->socket);
    link->socket = NULL;
}

// The next key is tried at once, the first of the next round after a wait.
static void give_up(struct link *link, enum wire_handshake trouble)
{
    const unsigned round = link->trust->pass_count ? link->trust->pass_count : 1;
    if (trouble == WIRE_HANDSHAKE_CLOSED)
        (void)snprintf(link->closed, sizeof link->closed, "%s", wire_trouble(link->socket));
    link_drop(link);
    link->trouble = trouble;
    link->attempt++;
    link->failures++;
    if (link->failures % round == 0)
        link->retry_ns = clock_monotonic_ns() + back_off_ns(link->failures / round);
}

// Whether the connection has to be made again.
static bool is_useless(const struct link *link, enum wire_handshake handshake)
{
    if (handshake == WIRE_HANDSHAKE_REFUSED || handshake == WIRE_HANDSHAKE_BROKEN)
        return link->trust->pass_count > 0; // else libzmq tries again
    return handshake == WIRE_HANDSHAKE_CLOSED;
}

static enum status make(struct link *link, struct error *err)
{
    link->made++;
    const enum status status = trust_connect(&link->socket, link->context, link->trust,
                                             link->address, link->service, link->attempt, err);
    if (status == STATUS_NOT_FOUND) // no folder: no collector yet
        return STATUS_OK;
    char place[ADDRESS_TEXT_SIZE];
    return status == STATUS_OK
               ? status
               : error_prefix(err, status, "collector %.200s", address_text(place, link->address));
}

enum status link_look(struct link *link, struct error *err)
{
    const enum wire_handshake handshake =
        link->socket ? wire_handshake(link->socket) : WIRE_HANDSHAKE_NONE;
    if (handshake == WIRE_HANDSHAKE_DONE) {
        link->failures = 0;
        link->retry_ns = 0;
        link->trouble = WIRE_HANDSHAKE_DONE;
    } else if (handshake == WIRE_HANDSHAKE_MOVED) {
        link_drop(link);
    } else if (handshake == WIRE_HANDSHAKE_LOST) {
        link_drop(link);
        link->retry_ns = clock_monotonic_ns() + lost_ns;
    } else if (is_useless(link, handshake)) {
        give_up(link, handshake);
    }
    if (link->socket)
        return STATUS_OK;
    if (clock_monotonic_ns() >= link->retry_ns)
        return make(link, err);
    const bool is_refused =
        link->trouble == WIRE_HANDSHAKE_REFUSED || link->trouble == WIRE_HANDSHAKE_CLOSED;
    return is_refused ? refused(link, err) : STATUS_OK;
}

uint64_t link_patience_ns(const struct link *link)
{
    return link->socket ? UINT64_MAX : look_ns;
}

bool link_is_absent(const struct link *link)
{
    return link->trouble == WIRE_HANDSHAKE_NONE && link->made > 0 &&
           (!link->socket || wire_is_unanswered(link->socket));
}

const char *link_trouble(const struct link *link)
{
    if (link->trouble == WIRE_HANDSHAKE_BROKEN)
        return ": its handshake breaks off, so it has another key than the one known here, or none,"
               " or no room (compare with the .pub file beside its key)";
    return "";
}
