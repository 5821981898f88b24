#include "client/tui/settings/settings_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/tui/settings/settings.h"
#include "common/sys/config.h"
#include "common/sys/files.h"

enum { PATH_SIZE = 4096, FILE_SIZE_MAX = 65536 };

static enum status apply_line(void *context, const char *key, const char *value, struct error *err)
{
    return settings_apply(context, key, value, err);
}

static void complain(void *context, const struct error *why)
{
    struct model *model = context;
    const char *name = strstr(why->text, "top.conf"); // the folder would take the line's room
    if (!model->settings.error[0])                    // the first is enough
        (void)snprintf(model->settings.error, sizeof model->settings.error, "settings: %.240s",
                       name ? name : why->text);
}

void settings_load(struct model *model, const char *path)
{
    struct error err = {0};
    const enum status status = config_read(path, apply_line, complain, model, &err);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        complain(model, &err);
    if (model->settings.error[0])
        model_notify(model, model->settings.error);
}

// Reads the file; "" if there is none.  The caller frees it.
static enum status read_old(char **out, const char *path, struct error *err)
{
    char *text = calloc(1, FILE_SIZE_MAX + 1);
    FILE *file = text ? fopen(path, "re") : NULL;
    if (!text)
        return error_no_memory(err, "settings");
    *out = text;
    if (!file && errno == ENOENT)
        return STATUS_OK;
    const size_t size = file ? fread(text, 1, FILE_SIZE_MAX + 1, file) : 0;
    const bool failed = !file || ferror(file);
    if (file)
        (void)fclose(file);
    if (failed)
        return error_set(err, STATUS_IO, "%.512s: %s", path, strerror(errno));
    if (size > FILE_SIZE_MAX || memchr(text, '\0', size))
        return error_set(err, STATUS_INVALID, "%.512s: no text of at most 64 KB", path);
    return STATUS_OK;
}

enum status settings_save(struct model *model, const char *path, struct error *err)
{
    char folder[PATH_SIZE], *old = NULL, *text = NULL;
    char *target = realpath(path, NULL); // a link stays one
    struct stat info = {.st_mode = 0600};
    files_folder_of(folder, sizeof folder, path);
    (void)stat(path, &info); // its mode stays, too
    enum status status = files_make_folder(folder, 0700, err);
    if (status == STATUS_OK)
        status = read_old(&old, path, err);
    if (status == STATUS_OK && !(text = settings_text(model, old)))
        status = error_no_memory(err, "settings");
    if (status == STATUS_OK)
        status = files_write(target ? target : path, text, info.st_mode & 0777, true, err);
    if (status == STATUS_OK) {
        model->settings.changed = 0;
        memset(model->settings.columns, 0, sizeof model->settings.columns);
    }
    free(target);
    free(text);
    free(old);
    return status;
}
