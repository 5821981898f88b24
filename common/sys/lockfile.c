#include "common/sys/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

// The pid the holder wrote into the file, 0 where there is none.  Only for the
// message: whether the lock is held is the kernel's word.
static long read_holder(int fd)
{
    char text[32] = "";
    const ssize_t size = pread(fd, text, sizeof text - 1, 0);
    return size > 0 ? strtol(text, NULL, 10) : 0;
}

static void write_holder(int fd)
{
    char text[32];
    const int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0 && size > 0)
        (void)!pwrite(fd, text, (size_t)size, 0);
}

enum status lockfile_acquire(int *out_fd, const char *path, struct error *err)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        const int reason = errno;
        return error_set(err, reason == EACCES || reason == EROFS ? STATUS_DENIED : STATUS_IO,
                         "%s: cannot open the lock file: %s", path, strerror(reason));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int reason = errno;
        const long holder = read_holder(fd);
        (void)close(fd);
        if (reason != EWOULDBLOCK)
            return error_set(err, STATUS_IO, "%s: cannot lock: %s", path, strerror(reason));
        if (holder > 0)
            return error_set(err, STATUS_BUSY, "%s: in use by process %ld", path, holder);
        return error_set(err, STATUS_BUSY, "%s: in use by another process", path);
    }
    write_holder(fd);
    *out_fd = fd;
    return STATUS_OK;
}
