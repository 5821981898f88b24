#include "server/collector/endpoints.h"

#include <stddef.h>

enum status endpoints_bind(struct wire_socket **sockets, const struct endpoints *endpoints,
                           enum address_service service, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < endpoints->count && status == STATUS_OK; i++) {
        char endpoint[ADDRESS_TEXT_SIZE];
        (void)address_endpoint(endpoint, &endpoints->addresses[i], service);
        status =
            wire_bind(&sockets[i], endpoints->context, endpoint, service == ADDRESS_ADMIN, err);
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
