#include "common/store/sqlite/file_mode.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/sqlite/fd_path.h"
#include "common/sys/log.h"

// O_PATH, because closing any other descriptor of the file would drop SQLite's locks on it.
static void restrict_file(const char *path, bool group_reads)
{
    struct stat about;
    char name[64];
    const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return; // missing, or SQLite cannot open it either
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        const mode_t before = about.st_mode & 07777;
        const mode_t mode = (before & S_IRWXU) | (group_reads ? S_IRGRP : 0);
        (void)snprintf(name, sizeof name, "%s%d", FD_PATH, fd);
        if (mode != before && chmod(name, mode) != 0)
            log_write(LOG_LEVEL_WARNING,
                      "%s: cannot change its permissions from %04o to %04o: %s (change them, or "
                      "others can stop the collector)",
                      path, (unsigned)before, (unsigned)mode, strerror(errno));
        else if (before & ~mode)
            log_write(LOG_LEVEL_INFO, "%s: its permissions were %04o, are %04o", path,
                      (unsigned)before, (unsigned)mode);
    }
    (void)close(fd);
}

void file_mode_restrict(const char *path, bool group_reads)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char real[PATH_MAX], name[PATH_MAX + 8];
    if (!realpath(path, real))
        return;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        (void)snprintf(name, sizeof name, "%s%s", real, endings[i]);
        restrict_file(name, group_reads);
    }
}
