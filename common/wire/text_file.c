#include "common/wire/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/wire/keys.h"

enum { FILE_MAX = 16 * 1024 * 1024 };

struct text_file {
    char *text;
    size_t size;
    size_t at; // where the next line begins
    unsigned line;
    bool faulty;
    struct stat about;
    char path[]; // for messages
};

static bool is_trusted_owner(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

// What of a file that was opened is against using it.
static enum status check_file(const struct text_file *file, enum text_file_privacy privacy,
                              struct error *err)
{
    const struct stat *about = &file->about;
    const char *path = file->path;
    if (!S_ISREG(about->st_mode))
        return error_set(err, STATUS_INVALID, "%.300s: not a file", path);
    if (!is_trusted_owner(about->st_uid))
        return error_set(err, STATUS_DENIED,
                         "%.300s: belongs to another user (make a copy of your own)", path);
    if (privacy == TEXT_FILE_SECRET && about->st_mode & 077)
        return error_set(err, STATUS_DENIED,
                         "%.300s: a secret that others may read (chmod 600 it; and if they have "
                         "read it, make a new one)",
                         path);
    if (about->st_mode & 022)
        return error_set(err, STATUS_DENIED, "%.300s: others may change it (chmod go-w it)", path);
    if (about->st_size > FILE_MAX)
        return error_set(err, STATUS_INVALID, "%.300s: longer than %d bytes", path, FILE_MAX);
    return STATUS_OK;
}

// A symbolic link of another user may lead to any file.
static enum status check_link(const char *path, struct error *err)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode) && !is_trusted_owner(about.st_uid))
        return error_set(err, STATUS_DENIED, "%.300s: a link that belongs to another user", path);
    return STATUS_OK;
}

static enum status read_all(struct text_file *file, int fd, struct error *err)
{
    const size_t size = (size_t)file->about.st_size;
    file->text = malloc(size + 1);
    if (!file->text)
        return error_set(err, STATUS_NOMEM, "%.300s: out of memory", file->path);
    while (file->size < size) {
        ssize_t got = read(fd, file->text + file->size, size - file->size);
        if (got == 0)
            break; // shorter than it was
        if (got < 0 && errno != EINTR)
            return error_set(err, STATUS_IO, "%.300s: cannot be read: %s", file->path,
                             strerror(errno));
        file->size += got > 0 ? (size_t)got : 0;
    }
    file->text[file->size] = '\0';
    return STATUS_OK;
}

enum status text_file_open(struct text_file **out, const char *path, enum text_file_privacy privacy,
                           struct error *err)
{
    enum status status = check_link(path, err);
    if (status != STATUS_OK)
        return status;
    // Without waiting for the other end of a pipe.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int reason = errno;
        return error_set(err,
                         reason == ENOENT || reason == ENOTDIR ? STATUS_NOT_FOUND
                         : reason == EACCES || reason == EPERM ? STATUS_DENIED
                                                               : STATUS_IO,
                         "%.300s: cannot be read: %s", path, strerror(reason));
    }
    struct text_file *file = calloc(1, sizeof *file + strlen(path) + 1);
    if (!file) {
        (void)close(fd);
        return error_set(err, STATUS_NOMEM, "%.300s: out of memory", path);
    }
    memcpy(file->path, path, strlen(path) + 1);
    if (fstat(fd, &file->about) != 0)
        status = error_set(err, STATUS_IO, "%.300s: %s", path, strerror(errno));
    else
        status = check_file(file, privacy, err);
    if (status == STATUS_OK)
        status = read_all(file, fd, err);
    (void)close(fd);
    if (status != STATUS_OK) {
        text_file_close(file);
        return status;
    }
    *out = file;
    return STATUS_OK;
}

void text_file_close(struct text_file *file)
{
    if (!file)
        return;
    if (file->text)
        explicit_bzero(file->text, file->size);
    free(file->text);
    free(file);
}

const char *text_file_contents(const struct text_file *file, size_t *size)
{
    *size = file->size;
    return file->text;
}

const struct stat *text_file_stat(const struct text_file *file)
{
    return &file->about;
}

static bool line_is_sound(const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == 0x7f)
            return false;
    return size < KEYS_LINE_SIZE && text_is_utf8(line, size);
}

char *text_file_next(struct text_file *file)
{
    if (file->faulty || file->at >= file->size)
        return NULL;
    char *line = file->text + file->at;
    const char *end = memchr(line, '\n', file->size - file->at);
    size_t size = end ? (size_t)(end - line) : file->size - file->at;
    file->at += size + 1;
    file->line++;
    file->faulty = !line_is_sound(line, size);
    if (file->faulty)
        return NULL;
    line[size] = '\0'; // in place of its end, or behind the text
    return line;
}

char *text_file_next_entry(struct text_file *file)
{
    char *line;
    while ((line = text_file_next(file))) {
        line += strspn(line, " \t");
        if (line[0] != '\0' && line[0] != '#')
            return line;
    }
    return NULL;
}

unsigned text_file_line(const struct text_file *file)
{
    return file->line;
}

enum status text_file_status(const struct text_file *file, struct error *err)
{
    if (!file->faulty)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "%.300s:%u: not a line of text of at most %d bytes",
                     file->path, file->line, KEYS_LINE_SIZE - 1);
}

char *text_file_word(char **line)
{
    char *word = *line + strspn(*line, " \t");
    size_t size = strcspn(word, " \t");
    if (size == 0)
        return NULL;
    *line = word + size;
    if (**line != '\0')
        *(*line)++ = '\0';
    return word;
}
