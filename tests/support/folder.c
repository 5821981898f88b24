#include "tests/support/folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void die(const char *what, const char *path)
{
    fprintf(stderr, "%s ", what);
    perror(path);
    exit(1);
}

void folder_make(char path[FOLDER_PATH_SIZE])
{
    const char *base = getenv("TMPDIR");
    const int n =
        snprintf(path, FOLDER_PATH_SIZE, "%s/inferstat-test-XXXXXX", base && *base ? base : "/tmp");
    if (n < 0 || n >= FOLDER_PATH_SIZE || !mkdtemp(path))
        die("cannot make the folder", path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void folder_remove(const char *path)
{
    if (strstr(path, "/inferstat-test-"))
        (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

char *folder_path(char *out, const char *folder, const char *name)
{
    const int n = snprintf(out, FOLDER_PATH_SIZE, "%s/%s", folder, name);
    if (n < 0 || n >= FOLDER_PATH_SIZE)
        die("too long a path in", folder);
    return out;
}

const char *write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "we");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        die("cannot write", path);
    return path;
}

const char *write_text(const char *path, const char *text)
{
    return write_file(path, text, strlen(text));
}

void *read_file(const char *path, size_t *size)
{
    struct stat about;
    FILE *file = fopen(path, "re");
    if (!file || fstat(fileno(file), &about) != 0)
        die("cannot read", path);
    const size_t bytes = (size_t)about.st_size;
    char *text = calloc(1, bytes + 1);
    if (!text || fread(text, 1, bytes, file) != bytes)
        die("cannot read", path);
    (void)fclose(file);
    if (size)
        *size = bytes;
    return text;
}

bool folder_has_holes(const char *folder)
{
    char path[FOLDER_PATH_SIZE];
    const int fd = open(folder_path(path, folder, "probe"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        die("cannot make", path);
    const bool has = ftruncate(fd, 8192) == 0 &&
                     fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
    (void)close(fd);
    return has;
}
