#include "server/workload/llm/prompts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/array.h"
#include "common/sys/clock.h"

enum { LINE_SIZE_MAX = 16 << 20, READ_SIZE = 65536, MARKS_MAX = 64 };

// Arrival time of the bytes up to `end`, counted from the first byte read.
struct mark {
    uint64_t end, ns;
};

struct prompts {
    const char *text; // of prompts_from_text; NULL: lines
    char *path;       // for messages
    uint64_t line;    // number of the line that was begun last
    int fd;
    bool owned; // close fd
    bool repeat;
    bool ended;    // nothing more can be read
    bool found;    // a line was found since the start of the file
    bool any;      // a line was ever found
    bool skipping; // skipping the rest of a line that was too long
    bool stream;   // a pipe or terminal: bytes arrive over time
    int stop_fd;
    uint64_t consumed, filled; // bytes returned and bytes read, in total
    uint64_t ready_ns;         // of the last returned line
    struct mark marks[MARKS_MAX];
    size_t mark_count;
    // Bytes read and not yet returned: buffer[start] to buffer[end - 1].
    char *buffer;
    size_t start, end, capacity;
};

enum status prompts_from_text(struct prompts **out, const char *text, struct error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_no_memory(err, "prompts");
    (*out)->text = text;
    return STATUS_OK;
}

enum status prompts_from_file(struct prompts **out, const char *path, bool repeat, int stop_fd,
                              struct error *err)
{
    const bool standard_input = strcmp(path, "-") == 0;
    struct prompts *prompts = calloc(1, sizeof *prompts);
    if (!prompts || !(prompts->path = strdup(standard_input ? "standard input" : path))) {
        prompts_free(prompts);
        return error_no_memory(err, "prompts");
    }
    prompts->stop_fd = stop_fd;
    prompts->repeat = repeat;
    if (!standard_input) {
        // Without O_NONBLOCK, opening a pipe would wait for its writer and ignore a stop.
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
    free(prompts->path);
    free(prompts->buffer);
    free(prompts);
}

// Records the arrival time of the bytes just read.  When all marks are in use, the last one is
// extended and gets the latest time.
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

// Consumes `size` bytes; the arrival of the last one is the line's.
static void consume_bytes(struct prompts *prompts, size_t size)
{
    prompts->start += size;
    prompts->consumed += size;
    size_t first = 0;
    while (first < prompts->mark_count && prompts->marks[first].end < prompts->consumed)
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

static enum status too_long(const struct prompts *prompts, struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s:%" PRIu64 ": a line of more than %d bytes",
                     prompts->path, prompts->line, LINE_SIZE_MAX);
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

// Waits for input or a stop request.
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
    struct error later; // prompts_next reports the error again
    if (poll(&fd, 1, 0) > 0 && fd.revents & POLLIN)
        (void)!read_more(prompts, &later);
}

uint64_t prompts_count_ready(const struct prompts *prompts, uint64_t most)
{
    if (prompts->text || (prompts->repeat && !prompts->stream))
        return most;
    if (!prompts->buffer)
        return 0;
    const char *at = prompts->buffer + prompts->start;
    const char *end = prompts->buffer + prompts->end;
    uint64_t count = 0;
    while (count < most && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline && !prompts->ended)
            break;
        count += newline != at; // empty lines are no prompts
        at = newline ? newline + 1 : end;
    }
    return count;
}

// Skips the rest of a line that was too long; false while its end has not been read.
static bool skip_rest(struct prompts *prompts)
{
    size_t held = prompts->end - prompts->start;
    const char *start = prompts->buffer + prompts->start;
    const char *newline = held > 0 ? memchr(start, '\n', held) : NULL;
    consume_bytes(prompts, newline ? (size_t)(newline - start) + 1 : held);
    prompts->skipping = newline == NULL;
    return newline != NULL;
}

// Consumes one line, or the rest at the end of the file; false if there is none.
static bool consume_line(struct prompts *prompts, const char **text, size_t *size)
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
    prompts->line++;
    *text = start;
    *size = newline ? (size_t)(newline - start) : held;
    consume_bytes(prompts, *size + (newline != NULL));
    if (*size > 0 && start[*size - 1] == '\r')
        (*size)--;
    return true;
}

// Rewinds to the first line if repeating, unless the file has no line.
static bool begin_again(struct prompts *prompts)
{
    if (!prompts->repeat || !prompts->found || lseek(prompts->fd, 0, SEEK_SET) < 0)
        return false;
    prompts->ended = false;
    prompts->found = false;
    prompts->skipping = false;
    prompts->line = 0;
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
        while (consume_line(prompts, text, size)) {
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
            prompts->line++;
            return too_long(prompts, err);
        }
        enum status status = wait_readable(prompts, err);
        if (status == STATUS_OK)
            status = read_more(prompts, err);
        if (status != STATUS_OK)
            return status;
    }
}
