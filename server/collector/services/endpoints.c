#include "server/collector/services/endpoints.h"

#include <stddef.h>

// Names the address as the user gave it, not the endpoint derived from it.
static enum status in_use(const struct address *address, enum address_service service,
                          struct error *err)
{
    char text[ADDRESS_TEXT_SIZE];
    (void)address_text(text, address);
    if (address->is_ipc)
        return error_set(err, STATUS_BUSY,
                         "%.300s: its socket %s is in use (another program listens "
                         "there; name another folder)",
                         text, address_service_name(service));
    return error_set(err, STATUS_BUSY,
                     "%.300s: port %u (%s) is in use (name another with --listen)", text,
                     address->port + (unsigned)service, address_service_name(service));
}

// Called by a thread of the sockets, once per connection.
static bool admit(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE])
{
    return access_check(context, service, key) == ACCESS_GRANTED;
}

enum status endpoints_bind(struct wire_socket **sockets, const struct endpoints *endpoints,
                           enum address_service service, struct error *err)
{
    enum status status = STATUS_OK;
    const struct wire_guard guard = {
        .keys = endpoints->keys, .admit = admit, .context = endpoints->access};
    for (unsigned i = 0; i < endpoints->count && status == STATUS_OK; i++) {
        char endpoint[ADDRESS_TEXT_SIZE];
        (void)address_endpoint(endpoint, &endpoints->addresses[i], service);
        const struct wire_listen listen = {.service = service,
                                           .owner_only = service == ADDRESS_ADMIN,
                                           .guard = endpoints->access ? &guard : NULL,
                                           .connections_max = endpoints->connections_max};
        status = wire_bind(&sockets[i], endpoints->context, endpoint, &listen, err);
        if (status == STATUS_BUSY)
            status = in_use(&endpoints->addresses[i], service, err);
    }
    return status;
}

void endpoints_close(struct wire_socket **sockets)
{
    for (unsigned i = 0; i < ENDPOINTS_MAX; i++) {
        wire_close(sockets[i]);
        sockets[i] = NULL;
    }
}
