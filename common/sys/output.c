#include "common/sys/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status cannot_write(const struct output *output, struct error *err)
{
    return error_set(err, STATUS_IO, "%s: cannot write: %s", output->path, strerror(errno));
}

static void release(struct output *output)
{
    free(output->path);
    free(output->temporary);
    *output = (struct output){0};
}

// Creates the temporary file; `old` is the file to be replaced (NULL: none).
static FILE *open_beside(struct output *output, const struct stat *old)
{
    if (asprintf(&output->temporary, "%s.tmp-%ld", output->path, (long)getpid()) < 0) {
        output->temporary = NULL;
        return NULL;
    }
    (void)unlink(output->temporary); // of a process that ended early, or not ours at all
    int fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return NULL;
    if (old)
        (void)fchmod(fd, old->st_mode & 0777);
    FILE *out = fdopen(fd, "w");
    if (!out) {
        (void)close(fd);
        (void)unlink(output->temporary);
    }
    return out;
}

enum status output_open(struct output *output, const char *path, struct error *err)
{
    struct stat old;
    bool exists = stat(path, &old) == 0;
    *output = (struct output){.path = exists ? realpath(path, NULL) : strdup(path)};
    if (!output->path)
        return error_set(err, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    if (exists && !S_ISREG(old.st_mode))
        output->out = fopen(output->path, "w");
    else if (exists && access(output->path, W_OK) != 0)
        output->out = NULL; // read-only, although its folder allows replacing it
    else
        output->out = open_beside(output, exists ? &old : NULL);
    if (output->out)
        return STATUS_OK;
    enum status status = cannot_write(output, err);
    release(output);
    return status;
}

// Flushes the output, and syncs it if it is a file.
static bool finish(struct output *output)
{
    bool written = fflush(output->out) == 0 && !ferror(output->out);
    if (output->temporary)
        written = written && fsync(fileno(output->out)) == 0;
    return fclose(output->out) == 0 && written;
}

enum status output_close(struct output *output, enum status status, struct error *err)
{
    bool written = finish(output);
    if (written && status == STATUS_OK && output->temporary)
        written = rename(output->temporary, output->path) == 0;
    if (!written && status == STATUS_OK)
        status = cannot_write(output, err);
    if (status != STATUS_OK && output->temporary)
        (void)unlink(output->temporary);
    release(output);
    return status;
}
