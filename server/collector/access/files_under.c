#include "server/collector/access/files_under.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/sqlite/fd_path.h"

enum { FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

// Resolves the path to its real folder and the file's name in it.
static bool resolve(char real[PATH_MAX], char name[NAME_MAX + 1], const char *path)
{
    char folder[PATH_MAX];
    struct stat about;
    const char *slash = strrchr(path, '/'), *last;
    int n;
    if (!slash || path[0] != '/' || slash[1] == '\0')
        return false;
    if (lstat(path, &about) == 0) {
        if (!realpath(path, real))
            return false;
        char *end = strrchr(real, '/');
        n = snprintf(name, NAME_MAX + 1, "%s", end + 1);
        end[end == real] = '\0'; // the root keeps its slash
        return n > 0 && n <= NAME_MAX;
    }
    last = slash + 1;
    n = snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (n < 0 || (size_t)n >= sizeof folder || !realpath(folder, real))
        return false;
    n = snprintf(name, NAME_MAX + 1, "%s", last);
    return n > 0 && n <= NAME_MAX;
}

// The real path of an open folder.
static bool name_of(char out[PATH_MAX], int folder)
{
    char link[64];
    (void)snprintf(link, sizeof link, FD_PATH "%d", folder);
    return realpath(link, out) != NULL;
}

// Opens a folder below the open one, which it replaces, without following links.
static bool descend(int *folder, const char *below)
{
    char part[NAME_MAX + 1];
    while (*below) {
        const size_t size = strcspn(below, "/");
        if (size > NAME_MAX)
            return false;
        if (size > 0) {
            (void)snprintf(part, sizeof part, "%.*s", (int)size, below);
            const int next = openat(*folder, part, FOLDER_FLAGS);
            (void)close(*folder);
            *folder = next;
            if (next < 0)
                return false;
        }
        below += size + (below[size] == '/');
    }
    return true;
}

// Opens the file's folder if it is below the open one, which it replaces.
static bool reach(int *folder, char name[NAME_MAX + 1], const char *path)
{
    char base[PATH_MAX], real[PATH_MAX];
    if (!name_of(base, *folder) || !resolve(real, name, path))
        return false;
    const size_t size = strcmp(base, "/") == 0 ? 0 : strlen(base);
    return strncmp(real, base, size) == 0 && (real[size] == '/' || real[size] == '\0') &&
           descend(folder, real + size);
}

enum status files_under_hold(struct files_hold *out, const char *folder, const char *path,
                             struct error *err)
{
    char name[NAME_MAX + 1];
    *out = FILES_HOLD_NONE;
    if (!folder || !folder[0])
        return error_set(err, STATUS_DENIED,
                         "files are not named over TCP (use the collector's ipc:// address, or "
                         "start it with --files-under FOLDER)");
    out->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (out->folder >= 0 && reach(&out->folder, name, path)) {
        (void)snprintf(out->path, sizeof out->path, FD_PATH "%d/%s", out->folder, name);
        return STATUS_OK;
    }
    files_under_release(out);
    return error_set(err, STATUS_DENIED,
                     "%.200s: over TCP files are only named below %.200s of the collector's host",
                     path, folder);
}

enum status files_under_check(const char *folder, const char *path, struct error *err)
{
    struct files_hold hold;
    enum status status = files_under_hold(&hold, folder, path, err);
    files_under_release(&hold);
    return status;
}

void files_under_release(struct files_hold *hold)
{
    if (hold->folder >= 0)
        (void)close(hold->folder);
    *hold = FILES_HOLD_NONE;
}
