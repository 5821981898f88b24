#include "server/collector/threads/notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *socket_path, const char *state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (!socket_path || (socket_path[0] != '/' && socket_path[0] != '@'))
        return;
    const size_t size = strlen(socket_path);
    if (size >= sizeof name.sun_path)
        return;
    memcpy(name.sun_path, socket_path, size);
    if (name.sun_path[0] == '@')
        name.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&name, length);
    (void)close(fd);
}
