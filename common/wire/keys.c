#include "common/wire/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/sys/files.h"
#include "common/wire/text_file.h"

static const char heading[] = "inferstat-secret-key 1";

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
    enum status status = files_write(path, text, 0600, false, err);
    explicit_bzero(secret_text, sizeof secret_text);
    explicit_bzero(text, sizeof text);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(text, sizeof text, "%s%s%s\n", public_text, comment[0] ? " " : "", comment);
    status = files_write(pub, text, 0644, false, err);
    if (status != STATUS_OK)
        (void)unlink(path);
    return status;
}

enum status keys_create(struct wire_keypair *out, const char *path, const char *comment,
                        struct error *err)
{
    char pub[KEYS_PATH_SIZE], folder[KEYS_PATH_SIZE];
    const size_t size = strlen(comment);
    if (size >= KEYS_COMMENT_SIZE || !text_is_utf8(comment, size) || strpbrk(comment, "\r\n"))
        return error_set(err, STATUS_INVALID,
                         "the key's comment is not one line of at most %d bytes",
                         KEYS_COMMENT_SIZE - 1);
    const int needed = snprintf(pub, sizeof pub, "%s.pub", path);
    if (path[0] == '\0' || needed < 0 || needed >= KEYS_PATH_SIZE)
        return error_set(err, STATUS_INVALID, "a key file's path is empty or too long");
    files_folder_of(folder, sizeof folder, path);
    enum status status = files_make_folder(folder, 0700, err);
    if (status == STATUS_OK)
        status = wire_keypair_new(out, err);
    if (status == STATUS_OK)
        status = write_pair(out, path, pub, comment, err);
    return status;
}

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
