#include "server/workload/llm/prompts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE_MAX = 16 << 20, READ_SIZE = 65536 };

struct prompts {
    char *text; // of prompts_from_text; NULL: lines
    char *path; // for messages
    int fd;
    bool owned; // close fd
    bool repeat;
    bool ended; // nothing more can be read
    bool found; // a line since the beginning of the file
    int stop_fd;
    // Bytes read and not yet given out: buffer[start] up to buffer[end].
    char *buffer;
    size_t start, end, capacity;
};

enum status prompts_from_text(struct prompts **out, const char *text, struct error *err)
{
    struct prompts *prompts = calloc(1, sizeof *prompts);
    if (!prompts || !(prompts->text = strdup(text))) {
        prompts_free(prompts);
        return error_set(err, STATUS_NOMEM, "prompts: out of memory");
    }
    *out = prompts;
    return STATUS_OK;
}

enum status prompts_from_file(struct prompts **out, const char *path, bool repeat, int stop_fd,
                              struct error *err)
{
    struct prompts *prompts = calloc(1, sizeof *prompts);
    if (!prompts || !(prompts->path = strdup(path))) {
        prompts_free(prompts);
        return error_set(err, STATUS_NOMEM, "prompts: out of memory");
    }
    prompts->stop_fd = stop_fd;
    prompts->repeat = repeat;
    if (strcmp(path, "-") != 0) {
        prompts->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (prompts->fd < 0) {
            enum status status = error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                                           "%s: cannot open: %s", path, strerror(errno));
            prompts_free(prompts);
            return status;
        }
        prompts->owned = true;
    } else {
        prompts->fd = STDIN_FILENO;
    }
    *out = prompts;
    return STATUS_OK;
}

void prompts_free(struct prompts *prompts)
{
    if (!prompts)
        return;
    if (prompts->owned)
        (void)close(prompts->fd);
    free(prompts->text);
    free(prompts->path);
    free(prompts->buffer);
    free(prompts);
}

// ---- Lines ----------------------------------------------------------------

static enum status too_long(const struct prompts *prompts, struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s: a line of more than %d bytes", prompts->path,
                     LINE_SIZE_MAX);
}

// What is held is the beginning of one line.
static enum status make_room(struct prompts *prompts, struct error *err)
{
    size_t held = prompts->end - prompts->start;
    if (held > LINE_SIZE_MAX)
        return too_long(prompts, err);
    if (held > 0)
        memmove(prompts->buffer, prompts->buffer + prompts->start, held);
    prompts->start = 0;
    prompts->end = held;
    if (prompts->capacity - held >= READ_SIZE)
        return STATUS_OK;
    size_t capacity = 2 * prompts->capacity + READ_SIZE;
    char *buffer = realloc(prompts->buffer, capacity);
    if (!buffer)
        return error_set(err, STATUS_NOMEM, "%s: out of memory", prompts->path);
    prompts->buffer = buffer;
    prompts->capacity = capacity;
    return STATUS_OK;
}

// Waits until there is something to read, or a wish to stop.
static enum status wait_readable(const struct prompts *prompts, struct error *err)
{
    struct pollfd fds[] = {{.fd = prompts->fd, .events = POLLIN},
                           {.fd = prompts->stop_fd, .events = POLLIN}};
    int n;
    do
        n = poll(fds, 2, -1);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return error_set(err, STATUS_IO, "%s: cannot read: %s", prompts->path, strerror(errno));
    return fds[1].revents ? error_set(err, STATUS_CANCELLED, "stopped") : STATUS_OK;
}

// Reads more; at the end sets `ended`.
static enum status fill(struct prompts *prompts, struct error *err)
{
    enum status status = make_room(prompts, err);
    if (status == STATUS_OK)
        status = wait_readable(prompts, err);
    if (status != STATUS_OK)
        return status;
    ssize_t n = read(prompts->fd, prompts->buffer + prompts->end, prompts->capacity - prompts->end);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return STATUS_OK;
    if (n < 0)
        return error_set(err, STATUS_IO, "%s: cannot read: %s", prompts->path, strerror(errno));
    prompts->end += (size_t)n;
    prompts->ended = n == 0;
    return STATUS_OK;
}

// Takes one line, or at the end of the file what is left; false where neither is
// there.
static bool take_line(struct prompts *prompts, const char **text, size_t *size)
{
    size_t held = prompts->end - prompts->start;
    if (held == 0)
        return false;
    char *start = prompts->buffer + prompts->start;
    char *newline = memchr(start, '\n', held);
    if (!newline && !prompts->ended)
        return false;
    *text = start;
    *size = newline ? (size_t)(newline - start) : held;
    prompts->start += *size + (newline != NULL);
    if (*size > 0 && start[*size - 1] == '\r')
        (*size)--;
    return true;
}

// Back to the first line, where that is wanted and of use.
static bool begin_again(struct prompts *prompts)
{
    if (!prompts->repeat || !prompts->found || lseek(prompts->fd, 0, SEEK_SET) < 0)
        return false;
    prompts->ended = false;
    prompts->found = false;
    return true;
}

enum status prompts_next(struct prompts *prompts, const char **text, size_t *size,
                         struct error *err)
{
    if (prompts->text) {
        *text = prompts->text;
        *size = strlen(prompts->text);
        return STATUS_OK;
    }
    for (;;) {
        while (take_line(prompts, text, size)) {
            if (*size > LINE_SIZE_MAX)
                return too_long(prompts, err);
            if (*size > 0) {
                prompts->found = true;
                return STATUS_OK;
            }
        }
        if (prompts->ended && !begin_again(prompts))
            return error_set(err, STATUS_NO_DATA, "%s: no more prompts", prompts->path);
        enum status status = fill(prompts, err);
        if (status != STATUS_OK)
            return status;
    }
}
