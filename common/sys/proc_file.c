#include "common/sys/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The kernel hands out long files of /proc in pieces.
static bool read_all(int fd, char *out, size_t size)
{
    size_t used = 0;
    while (used < size - 1) {
        const ssize_t more = read(fd, out + used, size - 1 - used);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return false;
        if (more == 0)
            break;
        used += (size_t)more;
    }
    out[used] = '\0';
    return true;
}

bool proc_file_read(char *out, size_t size, const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length <= 0 || (size_t)length >= sizeof path)
        return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    const bool is_read = read_all(fd, out, size);
    (void)close(fd);
    return is_read;
}

bool proc_file_find(int64_t *out, const char *text, const char *name)
{
    const size_t size = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, size) == 0)
            return sscanf(line + size, "%" SCNd64, out) == 1;
    }
    return false;
}

bool proc_file_number(int64_t *out, const char *folder, const char *name)
{
    char text[64];
    return proc_file_read(text, sizeof text, folder, name) && proc_file_find(out, text, "");
}
