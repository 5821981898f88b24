#include "common/wire/rules_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/wire/text_file.h"

enum status rules_file_read(struct alert_file *out, const char *path, struct error *err)
{
    struct text_file *file = NULL;
    size_t size = 0;
    *out = (struct alert_file){0};
    if (!path[0])
        return alert_file_read(out, "", 0, err);
    enum status status = text_file_open(&file, path, TEXT_FILE_TRUSTED, err);
    if (status != STATUS_OK)
        return status;
    const char *text = text_file_contents(file, &size);
    status = alert_file_read(out, text, size, err);
    text_file_close(file);
    return status == STATUS_OK ? STATUS_OK : error_prefix(err, status, "%s", path);
}

enum status rules_file_check(const struct alert_file *file, const char *path, struct error *err)
{
    for (size_t i = 0; i < file->hook_count; i++) {
        const struct alert_hook *hook = &file->hooks[i];
        struct stat about;
        if (hook->kind == ALERT_HOOK_COMMAND &&
            (stat(hook->target, &about) != 0 || !S_ISREG(about.st_mode) ||
             access(hook->target, X_OK) != 0))
            return error_set(err, STATUS_INVALID,
                             "%s: line %u: hook %s: %.300s is not an executable file", path,
                             hook->line, hook->name, hook->target);
    }
    return STATUS_OK;
}
