#include "common/sys/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

static enum status make_one(const char *path, mode_t mode, struct error *err)
{
    if (mkdir(path, mode) == 0)
        return STATUS_OK;
    const int reason = errno;
    struct stat info;
    if (reason == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return STATUS_OK;
    if (reason == EEXIST)
        return error_set(err, STATUS_INVALID, "%s: is there and is no folder", path);
    return error_set(err, reason == EACCES || reason == EROFS ? STATUS_DENIED : STATUS_IO,
                     "%s: cannot make the folder: %s", path, strerror(reason));
}

void files_open_standard(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        (void)close(fd);
}

enum status files_make_folder(const char *path, mode_t mode, struct error *err)
{
    char part[PATH_ROOM];
    const size_t size = strlen(path);
    if (size == 0 || size >= sizeof part)
        return error_set(err, STATUS_INVALID, "a folder's path is empty or too long");
    memcpy(part, path, size + 1);
    for (size_t i = 1; i < size; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        enum status status = access(part, F_OK) == 0 ? STATUS_OK : make_one(part, mode, err);
        part[i] = '/';
        if (status != STATUS_OK)
            return status;
    }
    return make_one(path, mode, err);
}

enum status files_join(char *out, size_t out_size, const char *folder, const char *name,
                       struct error *err)
{
    const int size = snprintf(out, out_size, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= out_size)
        return error_set(err, STATUS_FULL, "%.200s/%.100s: path is too long", folder, name);
    return STATUS_OK;
}

void files_folder_of(char *out, size_t out_size, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int size = slash && slash != path ? (int)(slash - path) : 1;
    (void)snprintf(out, out_size, "%.*s", size, slash ? path : ".");
}

bool files_sync(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool done = fd >= 0 && fsync(fd) == 0;
    const int reason = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = reason;
    return done;
}

bool files_sync_folder(const char *path)
{
    char folder[PATH_ROOM];
    files_folder_of(folder, sizeof folder, path);
    return files_sync(folder);
}

static enum status cannot_write(const char *path, struct error *err)
{
    const int reason = errno;
    if (reason == EEXIST)
        return error_set(err, STATUS_BUSY,
                         "%.300s: already exists (move it away, or name another file)", path);
    const bool denied = reason == EACCES || reason == EPERM || reason == EROFS;
    const bool full = reason == ENOSPC || reason == EDQUOT;
    return error_set(err,
                     denied ? STATUS_DENIED
                     : full ? STATUS_FULL
                            : STATUS_IO,
                     "%.300s: cannot be written: %s", path, strerror(reason));
}

static bool write_all(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        const ssize_t written = write(fd, text, left);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        left -= written > 0 ? (size_t)written : 0;
    }
    return fsync(fd) == 0;
}

enum status files_write(const char *path, const char *text, mode_t mode, bool replace,
                        struct error *err)
{
    char draft[PATH_ROOM];
    const int size = snprintf(draft, sizeof draft, "%s.XXXXXX", path);
    if (size < 0 || (size_t)size >= sizeof draft)
        return error_set(err, STATUS_INVALID, "%.300s: the path is too long", path);
    const int fd = mkostemp(draft, O_CLOEXEC); // with mode 0600
    if (fd < 0)
        return cannot_write(path, err);
    enum status status = STATUS_OK;
    if (!write_all(fd, text) || fchmod(fd, mode) != 0 ||
        (replace ? rename(draft, path) : link(draft, path)) != 0)
        status = cannot_write(path, err);
    (void)close(fd);
    if (status != STATUS_OK || !replace)
        (void)unlink(draft);
    (void)files_sync_folder(path);
    return status;
}

static enum status no_output(const char *path, struct error *err)
{
    return error_set(err, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
}

static void release(struct output *output)
{
    free(output->path);
    free(output->temporary);
    *output = (struct output){0};
}

// Creates the temporary file; `old` is the file to be replaced (NULL: none).
static FILE *open_beside(struct output *output, const struct stat *old)
{
    if (asprintf(&output->temporary, "%s.tmp-%ld", output->path, (long)getpid()) < 0) {
        output->temporary = NULL;
        return NULL;
    }
    (void)unlink(output->temporary); // of a process that ended early, or not ours at all
    int fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return NULL;
    if (old)
        (void)fchmod(fd, old->st_mode & 0777);
    FILE *out = fdopen(fd, "w");
    if (!out) {
        (void)close(fd);
        (void)unlink(output->temporary);
    }
    return out;
}

enum status output_open(struct output *output, const char *path, struct error *err)
{
    struct stat old;
    bool exists = stat(path, &old) == 0;
    *output = (struct output){.path = exists ? realpath(path, NULL) : strdup(path)};
    if (!output->path)
        return no_output(path, err);
    if (exists && !S_ISREG(old.st_mode))
        output->out = fopen(output->path, "w");
    else if (exists && access(output->path, W_OK) != 0)
        output->out = NULL; // read-only, although its folder allows replacing it
    else
        output->out = open_beside(output, exists ? &old : NULL);
    if (output->out)
        return STATUS_OK;
    enum status status = no_output(output->path, err);
    release(output);
    return status;
}

// Flushes the output, and syncs it if it is a file.
static bool finish(struct output *output)
{
    bool written = fflush(output->out) == 0 && !ferror(output->out);
    if (output->temporary)
        written = written && fsync(fileno(output->out)) == 0;
    return fclose(output->out) == 0 && written;
}

enum status output_close(struct output *output, enum status status, struct error *err)
{
    bool written = finish(output);
    if (written && status == STATUS_OK && output->temporary)
        written = rename(output->temporary, output->path) == 0;
    if (!written && status == STATUS_OK)
        status = no_output(output->path, err);
    if (status != STATUS_OK && output->temporary)
        (void)unlink(output->temporary);
    release(output);
    return status;
}

// "$VARIABLE/inferstat" if that is an absolute path, else "ROOT/inferstat" for root (NULL: as for
// others), else "$HOME/REST".
static enum status find_folder(char *out, size_t out_size, const char *variable, const char *root,
                               const char *rest, struct error *err)
{
    const char *base = getenv(variable), *home = getenv("HOME");
    if (base && base[0] == '/')
        return files_join(out, out_size, base, "inferstat", err);
    if (root && geteuid() == 0)
        return files_join(out, out_size, root, "inferstat", err);
    if (home && home[0] == '/')
        return files_join(out, out_size, home, rest, err);
    return error_set(err, STATUS_NOT_FOUND, "no folder for files: neither %s nor HOME is set",
                     variable);
}

enum status files_data_folder(char *out, size_t out_size, struct error *err)
{
    return find_folder(out, out_size, "XDG_DATA_HOME", "/var/lib", ".local/share/inferstat", err);
}

enum status files_cache_folder(char *out, size_t out_size, struct error *err)
{
    return find_folder(out, out_size, "XDG_CACHE_HOME", NULL, ".cache/inferstat", err);
}

static void put_json(void *sink, const char *bytes, size_t size)
{
    (void)fwrite(bytes, 1, size, sink);
}

struct json_writer files_json(FILE *out)
{
    return (struct json_writer){.put = put_json, .sink = out};
}
