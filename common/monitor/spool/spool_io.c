#include "common/monitor/spool/spool_io.h"

#include <fcntl.h>
#include <unistd.h>

static int open_at(int folder, const char *name, int flags, mode_t mode)
{
    return openat(folder, name, flags, mode);
}

static int remove_at(int folder, const char *name)
{
    return unlinkat(folder, name, 0);
}

const struct spool_io spool_io_real = {
    .open = open_at,
    .read = pread,
    .write = pwrite,
    .truncate = ftruncate,
    .sync = fdatasync,
    .sync_folder = fsync,
    .remove = remove_at,
    .space = fstatvfs,
};
