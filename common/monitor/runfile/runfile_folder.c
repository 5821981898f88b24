#include "common/monitor/runfile/runfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/files.h"

static bool is_private_folder(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & 077) == 0 && access(path, W_OK | X_OK) == 0;
}

enum status runfile_make_folder(const char *path, struct error *err)
{
    struct stat about;
    enum status status = files_make_folder(path, 0700, err);
    if (status != STATUS_OK)
        return status;
    if (stat(path, &about) != 0)
        return error_set(err, STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
    if ((about.st_mode & S_IWOTH) && !(about.st_mode & S_ISVTX))
        return error_set(err, STATUS_DENIED,
                         "run folder %s: any user may delete files in it (chmod o-w, or +t)", path);
    return STATUS_OK;
}

enum status runfile_user_folder(char *out, size_t out_size, struct error *err)
{
    const char *temporary = getenv("TMPDIR");
    const char *const places[] = {"/dev/shm", temporary && *temporary ? temporary : "/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int size = snprintf(out, out_size, "%s/inferstat-%ld", places[i], (long)geteuid());
        if (size < 0 || (size_t)size >= out_size)
            continue;
        if ((mkdir(out, 0700) == 0 || errno == EEXIST) && is_private_folder(out))
            return STATUS_OK;
    }
    return error_set(err, STATUS_IO,
                     "no folder in /dev/shm, TMPDIR or /tmp is private to this user (set "
                     "INFERSTAT_RUN_DIR)");
}

enum status runfile_default_folder(char *out, size_t out_size, struct error *err)
{
    const char *wanted = getenv("INFERSTAT_RUN_DIR");
    if (wanted && *wanted) {
        if (strlen(wanted) >= out_size)
            return error_set(err, STATUS_INVALID, "INFERSTAT_RUN_DIR: path is too long");
        memcpy(out, wanted, strlen(wanted) + 1);
        return runfile_make_folder(out, err);
    }
    return runfile_user_folder(out, out_size, err);
}
