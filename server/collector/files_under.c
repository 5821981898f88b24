#include "server/collector/files_under.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Where the path leads: that of a file that is there, else of the folder it would be in.
static bool resolve(char real[PATH_MAX], const char *path)
{
    char folder[PATH_MAX];
    struct stat about;
    const char *slash = strrchr(path, '/');
    if (!slash || path[0] != '/' || slash[1] == '\0')
        return false;
    if (lstat(path, &about) == 0)
        return realpath(path, real) != NULL;
    const int n =
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return n > 0 && (size_t)n < sizeof folder && realpath(folder, real) != NULL;
}

enum status files_under_check(const char *folder, const char *path, struct error *err)
{
    char below[PATH_MAX], real[PATH_MAX];
    if (!folder || !folder[0])
        return error_set(err, STATUS_DENIED,
                         "files are not named over TCP (use the collector's ipc:// address, or "
                         "start it with --files-under FOLDER)");
    const bool is_known = realpath(folder, below) && resolve(real, path);
    const size_t size = is_known ? strlen(below) : 0;
    const bool is_root = size == 1;
    if (is_known && strncmp(real, below, size) == 0 &&
        (is_root || real[size] == '/' || real[size] == '\0'))
        return STATUS_OK;
    return error_set(err, STATUS_DENIED,
                     "%.200s: over TCP files are only named below %.200s of the collector's host",
                     path, folder);
}
