// inferstat trust: writes the key of a collector into this user's known_collectors.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/args/value_args.h"
#include "common/core/base/text.h"
#include "common/sys/files.h"
#include "common/wire/address.h"
#include "common/wire/keys.h"
#include "common/wire/text_file.h"

// The list being rewritten.
struct list {
    char path[KEYS_PATH_SIZE];
    struct output output;
    const char *key;
    struct address address;
    bool alone;    // remove other keys of the address
    bool is_there; // the file has the key already
};

// Copies a line, unless it is another key of the address that is removed.
static void add_line(struct list *list, const char *line)
{
    char copy[KEYS_LINE_SIZE], text[ADDRESS_TEXT_SIZE], ours[ADDRESS_TEXT_SIZE];
    (void)snprintf(copy, sizeof copy, "%s", line);
    char *rest = copy;
    const char *place = text_file_word(&rest), *key = text_file_word(&rest);
    struct address address;
    const bool is_ours =
        place && key && place[0] != '#' && address_parse(&address, place, NULL) == STATUS_OK &&
        strcasecmp(address_text(text, &address), address_text(ours, &list->address)) == 0;
    const bool is_it = is_ours && strcmp(key, list->key) == 0;
    list->is_there |= is_it;
    if (!is_ours || is_it || !list->alone)
        (void)fprintf(list->output.out, "%s\n", line);
}

static enum status copy_lines(struct list *list, struct error *err)
{
    struct text_file *file = NULL;
    enum status status = text_file_open(&file, list->path, TEXT_FILE_TRUSTED, err);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    const char *line;
    while (status == STATUS_OK && (line = text_file_next(file)) != NULL)
        add_line(list, line);
    if (status == STATUS_OK)
        status = text_file_status(file, err);
    text_file_close(file);
    return status;
}

static enum status open_list(struct list *list, struct error *err)
{
    enum status status = keys_default_path(list->path, sizeof list->path, "known_collectors", err);
    if (status != STATUS_OK)
        return status;
    char folder[KEYS_PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", list->path);
    *strrchr(folder, '/') = '\0';
    status = files_make_folder(folder, 0700, err);
    if (status == STATUS_OK)
        status = output_open(&list->output, list->path, err);
    if (status == STATUS_OK) // whatever the umask: writable by the owner only, readable by all
        (void)fchmod(fileno(list->output.out), 0644);
    return status;
}

enum status command_trust(struct cli *cli, struct error *err)
{
    char key[WIRE_KEY_TEXT_SIZE];
    struct list list = {.key = key, .alone = option_given(&cli->options, OPTION_FORCE)};
    enum status status = address_parse(&list.address, cli->options.arguments[0], err);
    if (status == STATUS_OK && list.address.is_ipc)
        status = error_set(err, STATUS_INVALID,
                           "trust: an ipc:// address takes no key: its folder's permissions "
                           "control access");
    if (status == STATUS_OK)
        status = key_arg_parse(key, cli->options.arguments[1], "trust", err);
    if (status == STATUS_OK)
        status = open_list(&list, err);
    if (status != STATUS_OK)
        return status;
    char place[ADDRESS_TEXT_SIZE], text[KEYS_PATH_SIZE];
    status = copy_lines(&list, err);
    if (status == STATUS_OK && !list.is_there)
        (void)fprintf(list.output.out, "%s %s\n", address_text(place, &list.address), key);
    status = output_close(&list.output, status, err);
    if (status != STATUS_OK)
        return status;
    (void)fprintf(cli->env.out, "%s %s\n",
                  text_escape(text, sizeof text, list.path, strlen(list.path)),
                  list.is_there ? "has that key already" : "now has that key");
    return STATUS_OK;
}
