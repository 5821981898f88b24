#include "tests/fuzz/feed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 4 };

static char folder[256];
static struct fed {
    char path[512];
    char above[512]; // the folder made for it; or empty
    int fd;
} files[FILES_MAX];
static unsigned file_count;

static void give_up(const char *what)
{
    perror(what);
    abort();
}

static void clean_up(void)
{
    for (unsigned i = 0; i < file_count; i++) {
        (void)unlink(files[i].path);
        if (files[i].above[0])
            (void)rmdir(files[i].above);
    }
    (void)rmdir(folder);
}

const char *feed_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    if (folder[0])
        return folder;
    (void)snprintf(folder, sizeof folder, "%.200s/inferstat-fuzz-XXXXXX",
                   temporary && temporary[0] == '/' ? temporary : "/tmp");
    if (!mkdtemp(folder))
        give_up(folder);
    (void)atexit(clean_up);
    return folder;
}

static struct fed *make_file(const char *path, const char *name)
{
    if (file_count == FILES_MAX)
        give_up("too many files to feed");
    struct fed *fed = &files[file_count++];
    memcpy(fed->path, path, sizeof fed->path);
    const char *slash = strchr(name, '/');
    if (slash) {
        (void)snprintf(fed->above, sizeof fed->above, "%s/%.*s", folder, (int)(slash - name), name);
        if (mkdir(fed->above, 0700) != 0)
            give_up(fed->above);
    }
    fed->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fed;
}

const char *feed_file(const char *name, const uint8_t *data, size_t size)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%.200s", feed_folder(), name);
    struct fed *fed = NULL;
    for (unsigned i = 0; i < file_count; i++)
        if (strcmp(files[i].path, path) == 0)
            fed = &files[i];
    if (!fed)
        fed = make_file(path, name);
    if (fed->fd < 0 || ftruncate(fed->fd, 0) != 0 ||
        (size > 0 && pwrite(fed->fd, data, size, 0) != (ssize_t)size))
        give_up(path);
    return fed->path;
}
