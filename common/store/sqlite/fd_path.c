#include "common/store/sqlite/fd_path.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

// SQLite's usual files but for the one function.  The last link of a path it never follows
// when it opens a file, and all before it are in the folder's descriptor.
static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *usual;
} held;

static int full_path(sqlite3_vfs *vfs, const char *path, int size, char *out)
{
    (void)vfs;
    if (strncmp(path, FD_PATH, strlen(FD_PATH)) != 0)
        return held.usual->xFullPathname(held.usual, path, size, out);
    const int n = snprintf(out, (size_t)size, "%s", path);
    return n >= 0 && n < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

enum status fd_path_allow(struct error *err)
{
    if (held.usual)
        return STATUS_OK;
    sqlite3_vfs *usual = sqlite3_vfs_find("unix");
    if (!usual)
        return error_set(err, STATUS_IO, "store: this SQLite has no files as on Unix");
    held.vfs = *usual;
    held.vfs.zName = "inferstat-held";
    held.vfs.pNext = NULL;
    held.vfs.xFullPathname = full_path;
    held.usual = usual;
    if (sqlite3_vfs_register(&held.vfs, 1) == SQLITE_OK)
        return STATUS_OK;
    held.usual = NULL;
    return error_no_memory(err, "store");
}
