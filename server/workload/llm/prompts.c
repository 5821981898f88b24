#include "server/workload/llm/prompts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/sys/clock.h"

enum { LINE_SIZE_MAX = 16 << 20, READ_SIZE = 65536, MARKS_MAX = 64 };

// Bytes up to `end`, counted from the first one ever read, were there at `ns`.
struct mark {
    uint64_t end, ns;
};

struct prompts {
    char *text; // of prompts_from_text; NULL: lines
    char *path; // for messages
    int fd;
    bool owned; // close fd
    bool repeat;
    bool ended;    // nothing more can be read
    bool found;    // a line since the beginning of the file
    bool any;      // a line ever
    bool skipping; // the rest of a line that was too long
    bool stream;   // bytes come in their own time
    int stop_fd;
    uint64_t taken, filled; // bytes ever given out, ever read
    uint64_t ready_ns;      // of the line given out last
    struct mark marks[MARKS_MAX];
    size_t mark_count;
    // Bytes read and not yet given out: buffer[start] up to buffer[end].
    char *buffer;
    size_t start, end, capacity;
};

enum status prompts_from_text(struct prompts **out, const char *text, struct error *err)
{
    struct prompts *prompts = calloc(1, sizeof *prompts);
    if (!prompts || !(prompts->text = strdup(text))) {
        prompts_free(prompts);
        return error_no_memory(err, "prompts");
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
        return error_no_memory(err, "prompts");
    }
    prompts->stop_fd = stop_fd;
    prompts->repeat = repeat;
    if (strcmp(path, "-") != 0) {
        // Without O_NONBLOCK a pipe's open would wait for its other end, deaf to a stop.
        prompts->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
    struct stat info;
    prompts->stream = fstat(prompts->fd, &info) == 0 && !S_ISREG(info.st_mode);
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

// ---- When lines were there -------------------------------------------------

// Marks when the bytes read just now arrived.  With many reads waiting to be given
// out, the last of them share a time: the latest.
static void mark_read(struct prompts *prompts, size_t size)
{
    prompts->filled += size;
    if (!prompts->stream)
        return;
    if (prompts->mark_count == MARKS_MAX)
        prompts->mark_count--;
    prompts->marks[prompts->mark_count++] =
        (struct mark){.end = prompts->filled, .ns = clock_monotonic_ns()};
}

// Gives out `size` bytes: the time the last of them was there is the line's.
static void take_bytes(struct prompts *prompts, size_t size)
{
    prompts->start += size;
    prompts->taken += size;
    size_t first = 0;
    while (first < prompts->mark_count && prompts->marks[first].end < prompts->taken)
        first++;
    prompts->mark_count -= first;
    memmove(prompts->marks, prompts->marks + first, prompts->mark_count * sizeof *prompts->marks);
    if (prompts->mark_count > 0)
        prompts->ready_ns = prompts->marks[0].ns;
}

uint64_t prompts_ready_ns(const struct prompts *prompts)
{
    return prompts->ready_ns;
}

// ---- Lines ----------------------------------------------------------------

static enum status too_long(const struct prompts *prompts, struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s: a line of more than %d bytes", prompts->path,
                     LINE_SIZE_MAX);
}

// The buffer holds the beginning of one line.
static enum status make_room(struct prompts *prompts, struct error *err)
{
    size_t held = prompts->end - prompts->start;
    if (held > 0)
        memmove(prompts->buffer, prompts->buffer + prompts->start, held);
    prompts->start = 0;
    prompts->end = held;
    return ARRAY_RESERVE(&prompts->buffer, &prompts->capacity, held + READ_SIZE)
               ? STATUS_OK
               : error_no_memory(err, prompts->path);
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
static enum status read_more(struct prompts *prompts, struct error *err)
{
    enum status status = make_room(prompts, err);
    if (status != STATUS_OK)
        return status;
    ssize_t n = read(prompts->fd, prompts->buffer + prompts->end, prompts->capacity - prompts->end);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return STATUS_OK;
    if (n < 0)
        return error_set(err, STATUS_IO, "%s: cannot read: %s", prompts->path, strerror(errno));
    prompts->end += (size_t)n;
    prompts->ended = n == 0;
    mark_read(prompts, (size_t)n);
    return STATUS_OK;
}

void prompts_poll(struct prompts *prompts)
{
    if (!prompts->stream || prompts->ended || prompts->end - prompts->start > READ_SIZE)
        return;
    struct pollfd fd = {.fd = prompts->fd, .events = POLLIN};
    struct error later; // what is wrong is still so when a line is asked for
    if (poll(&fd, 1, 0) > 0 && fd.revents & POLLIN)
        (void)!read_more(prompts, &later);
}

// Leaves out the rest of a line that was too long; false where its end was not read
// yet.
static bool skip_rest(struct prompts *prompts)
{
    size_t held = prompts->end - prompts->start;
    const char *start = prompts->buffer + prompts->start;
    const char *newline = held > 0 ? memchr(start, '\n', held) : NULL;
    take_bytes(prompts, newline ? (size_t)(newline - start) + 1 : held);
    prompts->skipping = newline == NULL;
    return newline != NULL;
}

// Takes one line, or at the end of the file what is left; false where neither is
// there.
static bool take_line(struct prompts *prompts, const char **text, size_t *size)
{
    if (prompts->skipping && !skip_rest(prompts))
        return false;
    size_t held = prompts->end - prompts->start;
    if (held == 0)
        return false;
    char *start = prompts->buffer + prompts->start;
    char *newline = memchr(start, '\n', held);
    if (!newline && !prompts->ended)
        return false;
    *text = start;
    *size = newline ? (size_t)(newline - start) : held;
    take_bytes(prompts, *size + (newline != NULL));
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
    prompts->skipping = false;
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
            if (*size == 0)
                continue;
            prompts->any = prompts->found = true;
            return *size > LINE_SIZE_MAX ? too_long(prompts, err) : STATUS_OK;
        }
        if (prompts->ended && !begin_again(prompts))
            return error_set(err, STATUS_NO_DATA, "%s: no%s prompts", prompts->path,
                             prompts->any ? " more" : "");
        if (prompts->end - prompts->start > LINE_SIZE_MAX) {
            prompts->any = prompts->found = prompts->skipping = true;
            return too_long(prompts, err);
        }
        enum status status = wait_readable(prompts, err);
        if (status == STATUS_OK)
            status = read_more(prompts, err);
        if (status != STATUS_OK)
            return status;
    }
}
