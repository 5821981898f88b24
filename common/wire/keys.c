#include "common/wire/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/sys/files.h"
#include "common/wire/text_file.h"

static const char heading[] = "inferstat-secret-key 1";

// ---- Writing -----------------------------------------------------------------------

static enum status write_all(int fd, const char *text, const char *path, struct error *err)
{
    size_t size = strlen(text), done = 0;
    while (done < size) {
        ssize_t written = write(fd, text + done, size - done);
        if (written < 0 && errno != EINTR)
            return error_set(err, errno == ENOSPC || errno == EDQUOT ? STATUS_FULL : STATUS_IO,
                             "%.300s: cannot be written: %s", path, strerror(errno));
        done += written > 0 ? (size_t)written : 0;
    }
    if (fsync(fd) != 0)
        return error_set(err, STATUS_IO, "%.300s: cannot be written: %s", path, strerror(errno));
    return STATUS_OK;
}

static enum status write_status(int reason)
{
    if (reason == EEXIST)
        return STATUS_BUSY;
    return reason == EACCES || reason == EPERM || reason == EROFS ? STATUS_DENIED : STATUS_IO;
}

// Writes the file under another name and gives it its own only when it is whole;
// a file that is there is left alone.
static enum status write_whole(const char *path, const char *text, mode_t mode, struct error *err)
{
    char draft[KEYS_PATH_SIZE + 8];
    (void)snprintf(draft, sizeof draft, "%.*s.XXXXXX", KEYS_PATH_SIZE - 1, path);
    int fd = mkostemp(draft, O_CLOEXEC); // with mode 0600
    if (fd < 0)
        return error_set(err, write_status(errno), "%.300s: cannot be written: %s", path,
                         strerror(errno));
    enum status status = write_all(fd, text, path, err);
    if (status == STATUS_OK && fchmod(fd, mode) != 0)
        status = error_set(err, STATUS_IO, "%.300s: %s", path, strerror(errno));
    if (status == STATUS_OK && link(draft, path) != 0)
        status =
            errno == EEXIST
                ? error_set(err, STATUS_BUSY,
                            "%.300s: already exists (move it away, or name another file)", path)
                : error_set(err, write_status(errno), "%.300s: cannot be written: %s", path,
                            strerror(errno));
    (void)close(fd);
    (void)unlink(draft);
    return status;
}

static enum status make_folder_of(const char *path, struct error *err)
{
    char folder[KEYS_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return STATUS_OK;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    return files_make_folder(folder, 0700, err);
}

// The path of the public key's file.
static enum status public_path(char *out, const char *path, struct error *err)
{
    int size = snprintf(out, KEYS_PATH_SIZE, "%s.pub", path);
    if (path[0] == '\0' || size < 0 || size >= KEYS_PATH_SIZE)
        return error_set(err, STATUS_INVALID, "a key file's path is empty or too long");
    return STATUS_OK;
}

static bool comment_is_sound(const char *comment)
{
    size_t size = strlen(comment);
    return size < KEYS_COMMENT_SIZE && text_is_utf8(comment, size) && !strpbrk(comment, "\r\n");
}

static enum status write_pair(const struct wire_keypair *pair, const char *path, const char *pub,
                              const char *comment, struct error *err)
{
    char public_text[WIRE_KEY_TEXT_SIZE], secret_text[WIRE_KEY_TEXT_SIZE];
    char text[KEYS_COMMENT_SIZE + WIRE_KEY_TEXT_SIZE + 8];
    (void)wire_key_text(public_text, pair->public_key);
    (void)wire_key_text(secret_text, pair->secret_key);

    // The public file last: without it the secret one is removed again.
    (void)snprintf(text, sizeof text, "%s\npublic %s\nsecret %s\n", heading, public_text,
                   secret_text);
    enum status status = write_whole(path, text, 0600, err);
    explicit_bzero(secret_text, sizeof secret_text);
    explicit_bzero(text, sizeof text);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(text, sizeof text, "%s%s%s\n", public_text, comment[0] ? " " : "", comment);
    status = write_whole(pub, text, 0644, err);
    if (status != STATUS_OK)
        (void)unlink(path);
    return status;
}

enum status keys_create(struct wire_keypair *out, const char *path, const char *comment,
                        struct error *err)
{
    char pub[KEYS_PATH_SIZE];
    if (!comment_is_sound(comment))
        return error_set(err, STATUS_INVALID,
                         "the key's comment is not one line of at most %d bytes",
                         KEYS_COMMENT_SIZE - 1);
    enum status status = public_path(pub, path, err);
    if (status == STATUS_OK)
        status = make_folder_of(path, err);
    if (status == STATUS_OK)
        status = wire_keypair_new(out, err);
    if (status == STATUS_OK)
        status = write_pair(out, path, pub, comment, err);
    return status;
}

// ---- Reading -----------------------------------------------------------------------

// Reads "NAME KEY" as the next line.
static bool read_named(struct text_file *file, const char *name, unsigned char key[WIRE_KEY_SIZE])
{
    const char *line = text_file_next(file);
    size_t size = strlen(name);
    return line && strncmp(line, name, size) == 0 && line[size] == ' ' &&
           wire_key_parse(key, line + size + 1);
}

enum status keys_read(struct wire_keypair *out, const char *path, struct error *err)
{
    struct text_file *file = NULL;
    enum status status = text_file_open(&file, path, TEXT_FILE_SECRET, err);
    if (status != STATUS_OK)
        return status;
    const char *first = text_file_next(file);
    if (!first || strcmp(first, heading) != 0)
        status = error_set(err, STATUS_INVALID,
                           "%.300s: not a secret key's file (make one: inferstat keygen)", path);
    else if (!read_named(file, "public", out->public_key) ||
             !read_named(file, "secret", out->secret_key) || text_file_next(file))
        status = error_set(err, STATUS_INVALID,
                           "%.300s:%u: not a key where one belongs (the file is damaged)", path,
                           text_file_line(file));
    else if (!wire_keypair_fits(out))
        status = error_set(err, STATUS_INVALID,
                           "%.300s: its public key is not that of its secret key", path);
    else
        status = text_file_status(file, err);
    text_file_close(file);
    if (status != STATUS_OK)
        explicit_bzero(out, sizeof *out);
    return status;
}

enum status keys_read_public(unsigned char (*out)[WIRE_KEY_SIZE], size_t max, size_t *count,
                             const char *path, struct error *err)
{
    struct text_file *file = NULL;
    *count = 0;
    enum status status = text_file_open(&file, path, TEXT_FILE_TRUSTED, err);
    if (status != STATUS_OK)
        return status;
    char *line;
    while (status == STATUS_OK && (line = text_file_next_entry(file))) {
        const char *key = text_file_word(&line);
        if (*count == max)
            status = error_set(err, STATUS_INVALID, "%.300s:%u: more than %zu keys", path,
                               text_file_line(file), max);
        else if (!key || !wire_key_parse(out[*count], key))
            status = error_set(err, STATUS_INVALID,
                               "%.300s:%u: not a public key (40 characters of Z85, and perhaps a "
                               "comment)",
                               path, text_file_line(file));
        else
            ++*count;
    }
    if (status == STATUS_OK)
        status = text_file_status(file, err);
    if (status == STATUS_OK && *count == 0)
        status = error_set(err, STATUS_INVALID, "%.300s: there is no key in it", path);
    text_file_close(file);
    return status;
}

enum status keys_default_path(char *out, size_t size, const char *name, struct error *err)
{
    const char *configuration = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int needed = -1;
    if (configuration && configuration[0] == '/')
        needed = snprintf(out, size, "%s/inferstat/%s", configuration, name);
    else if (home && home[0] == '/')
        needed = snprintf(out, size, "%s/.config/inferstat/%s", home, name);
    else
        return error_set(err, STATUS_NOT_FOUND,
                         "no configuration folder: neither XDG_CONFIG_HOME nor HOME is set");
    if (needed < 0 || (size_t)needed >= size)
        return error_set(err, STATUS_INVALID, "the configuration folder's path is too long");
    return STATUS_OK;
}
