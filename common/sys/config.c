#include "common/sys/config.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/files.h"

enum { LINE_ROOM = 4096, PATH_ROOM = 4096 };

// Cuts white space off both ends, in place.
static char *trim(char *text)
{
    static const char space[] = " \t\r\n";
    text += strspn(text, space);
    size_t size = strlen(text);
    while (size > 0 && strchr(space, text[size - 1]))
        size--;
    text[size] = '\0';
    return text;
}

static enum status parse_line(char *line, on_config_entry *callback, void *context,
                              struct error *err)
{
    char *text = trim(line);
    if (*text == '\0' || *text == '#')
        return STATUS_OK;
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return error_set(err, STATUS_INVALID, "\"%.60s\" is no \"key = value\"", text);
    *equals = '\0';
    return callback(context, trim(text), trim(equals + 1), err);
}

// One reading of a file.
struct reading {
    const char *path;
    unsigned line; // counted from 1
    on_config_entry *callback;
    config_complain *complain; // NULL: the first refused line ends it
    void *context;
};

static void pass_over_rest(FILE *file)
{
    int next = 0;
    while (next != '\n' && next != EOF)
        next = fgetc(file);
}

static enum status read_line(FILE *file, char *line, const struct reading *reading,
                             struct error *err)
{
    if (strchr(line, '\n') || feof(file))
        return parse_line(line, reading->callback, reading->context, err);
    pass_over_rest(file);
    return error_set(err, STATUS_INVALID, "line is longer than %d bytes", LINE_ROOM - 1);
}

static enum status read_lines(FILE *file, struct reading *reading, struct error *err)
{
    char line[LINE_ROOM];
    while (fgets(line, sizeof line, file)) {
        struct error why = {.status = STATUS_OK};
        enum status status = read_line(file, line, reading, &why);
        reading->line++;
        if (status == STATUS_OK)
            continue;
        (void)error_prefix(&why, status, "%s:%u", reading->path, reading->line);
        if (status != STATUS_INVALID || !reading->complain)
            return error_set(err, status, "%s", why.text);
        reading->complain(reading->context, &why);
    }
    return STATUS_OK;
}

enum status config_read(const char *path, on_config_entry *callback, config_complain *complain,
                        void *context, struct error *err)
{
    struct reading reading = {
        .path = path, .callback = callback, .complain = complain, .context = context};
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: cannot open: %s",
                         path, strerror(errno));
    enum status status = read_lines(file, &reading, err);
    const int reason = errno;
    const bool unreadable = ferror(file) != 0; // a folder, for one: not a line's fault
    (void)fclose(file);
    if (unreadable)
        return error_set(err, STATUS_IO, "%s: cannot read it: %s", path, strerror(reason));
    return status;
}

static int is_configuration(const struct dirent *entry)
{
    const size_t size = strlen(entry->d_name);
    return entry->d_name[0] != '.' && size > 5 && strcmp(entry->d_name + size - 5, ".conf") == 0;
}

// By bytes, so that it does not depend on the language.
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

enum status config_read_folder(const char *folder, on_config_entry *callback, void *context,
                               struct error *err)
{
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_configuration, by_name);
    if (count < 0 && (errno == ENOENT || errno == ENOTDIR))
        return STATUS_OK;
    if (count < 0)
        return error_set(err, errno == ENOMEM ? STATUS_NOMEM : STATUS_IO, "%s: cannot read it: %s",
                         folder, strerror(errno));
    enum status status = STATUS_OK;
    for (int i = 0; i < count; i++) {
        char path[PATH_ROOM];
        if (status == STATUS_OK)
            status = files_join(path, sizeof path, folder, entries[i]->d_name, err);
        if (status == STATUS_OK)
            status = config_read(path, callback, NULL, context, err);
        free(entries[i]);
    }
    free(entries);
    return status;
}
