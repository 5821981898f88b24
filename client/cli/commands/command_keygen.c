// inferstat keygen
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "common/core/base/text.h"
#include "common/sys/files.h"
#include "common/wire/keys.h"

// "USER@HOST" or as much of it as is known, for the line of the public key.
static void write_comment(char comment[KEYS_COMMENT_SIZE], bool is_server)
{
    char host[128] = "", user[64] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    if (getlogin_r(user, sizeof user) != 0)
        user[0] = '\0';
    (void)snprintf(comment, KEYS_COMMENT_SIZE, "%s%s%s", is_server ? "inferstatd" : user,
                   (is_server || user[0]) && host[0] ? "@" : "", host);
}

// Renames a file to FILE.old, if it exists.
static enum status move_aside(const char *path, struct error *err)
{
    char old[KEYS_PATH_SIZE + 8];
    (void)snprintf(old, sizeof old, "%s.old", path);
    if (rename(path, old) == 0 || errno == ENOENT)
        return STATUS_OK;
    return error_set(err, STATUS_IO, "%s: cannot be moved to %s: %s", path, old, strerror(errno));
}

static enum status find_path(struct cli *cli, char path[KEYS_PATH_SIZE], struct error *err)
{
    const bool is_server = option_given(&cli->options, OPTION_SERVER);
    if (cli->options.argument_count == 0)
        return keys_default_path(path, KEYS_PATH_SIZE, is_server ? "server.key" : "key", err);
    const int size = snprintf(path, KEYS_PATH_SIZE, "%s", cli->options.arguments[0]);
    if (size > 0 && size < KEYS_PATH_SIZE)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "keygen: invalid path");
}

static enum status create(struct cli *cli, struct wire_keypair *pair, const char *path,
                          struct error *err)
{
    char comment[KEYS_COMMENT_SIZE], public_path[KEYS_PATH_SIZE + 8];
    write_comment(comment, option_given(&cli->options, OPTION_SERVER));
    (void)snprintf(public_path, sizeof public_path, "%s.pub", path);
    enum status status = STATUS_OK;
    if (option_given(&cli->options, OPTION_FORCE)) {
        status = move_aside(path, err);
        if (status == STATUS_OK)
            status = move_aside(public_path, err);
    }
    if (status == STATUS_OK)
        status = keys_create(pair, path, comment, err);
    if (status == STATUS_BUSY)
        status = error_set(err, status,
                           "keygen: %s already exists and is kept (--force creates a new one and "
                           "keeps the old as %s.old)",
                           path, path);
    return status;
}

static void print_for_people(const struct cli *cli, const char *path, const char *key)
{
    FILE *out = cli->env.out;
    const bool is_server = option_given(&cli->options, OPTION_SERVER);
    char text[KEYS_PATH_SIZE];
    (void)fprintf(out, "key file     %s (readable by you only)\n",
                  text_escape(text, sizeof text, path, strlen(path)));
    (void)fprintf(out, "public key   %s\n", key);
    if (is_server)
        (void)fprintf(out,
                      "use it       inferstatd --key %s --listen tcp://HOST:PORT\n"
                      "trust it     inferstat trust tcp://HOST:PORT '%s'\n",
                      text, key);
    else
        (void)fprintf(out,
                      "admit it     inferstat authorize '%s' --role producer,reader --name NAME\n"
                      "             (as the owner of the collector)\n",
                      key);
}

static void print_json(FILE *out, const char *path, const char *key)
{
    struct json_writer json = files_json(out);
    json_write_begin(&json, NULL);
    json_write_text(&json, "key_file", path);
    json_write_text(&json, "public_key", key);
    json_write_end(&json);
    (void)fputc('\n', out);
}

enum status command_keygen(struct cli *cli, struct error *err)
{
    char path[KEYS_PATH_SIZE], key[WIRE_KEY_TEXT_SIZE];
    struct wire_keypair pair;
    enum status status = find_path(cli, path, err);
    if (status == STATUS_OK)
        status = create(cli, &pair, path, err);
    if (status != STATUS_OK)
        return status;
    (void)wire_key_text(key, pair.public_key);
    explicit_bzero(&pair, sizeof pair);
    if (cli->options.format == FORMAT_JSON)
        print_json(cli->env.out, path, key);
    else
        print_for_people(cli, path, key);
    return STATUS_OK;
}
