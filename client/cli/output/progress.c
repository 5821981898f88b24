#include "client/cli/output/progress.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"

static const uint64_t first_ns = UINT64_C(500000000), every_ns = UINT64_C(200000000);

char *progress_text(char text[PROGRESS_TEXT_SIZE], const struct progress *progress, uint64_t done,
                    uint64_t elapsed_ns)
{
    enum { SIZE = PROGRESS_TEXT_SIZE };
    char part[UNIT_TEXT_SIZE];
    const enum unit unit = progress->unit;
    const double seconds = (double)elapsed_ns / 1e9, rate = (double)done / seconds;
    const uint64_t total = progress->total > done ? progress->total : 0;
    (void)snprintf(text, SIZE, "%s: %s", progress->what,
                   unit_format_int(part, unit, (int64_t)done));
    if (total > 0)
        (void)text_append(text, SIZE, " of ", "%s", unit_format_int(part, unit, (int64_t)total));
    (void)text_append(text, SIZE, progress->things[0] ? " " : "", "%s", progress->things);
    if (total > 0)
        (void)text_append(text, SIZE, ", ", "%s",
                          unit_format(part, UNIT_RATIO, (double)done / (double)total));
    if (done == 0 || seconds <= 0)
        (void)text_append(text, SIZE, ", ", "%s",
                          unit_format_int(part, UNIT_DURATION, (int64_t)elapsed_ns));
    else
        (void)text_append(text, SIZE, ", ", "%s/s", unit_format_int(part, unit, (int64_t)rate));
    if (done > 0 && seconds > 0 && total > 0)
        (void)text_append(text, SIZE, ", ", "%s left",
                          unit_format(part, UNIT_DURATION, (double)(total - done) / rate * 1e9));
    return text;
}

void progress_begin(struct progress *progress, FILE *out, const char *what, const char *things,
                    enum unit unit, uint64_t total)
{
    const uint64_t now_ns = clock_monotonic_ns();
    *progress = (struct progress){.out = isatty(fileno(out)) == 1 ? out : NULL,
                                  .what = what,
                                  .things = things,
                                  .unit = unit,
                                  .total = total,
                                  .began_ns = now_ns,
                                  .next_ns = now_ns + first_ns};
}

void progress_set(struct progress *progress, uint64_t done)
{
    char text[PROGRESS_TEXT_SIZE];
    const uint64_t now_ns = clock_monotonic_ns();
    if (!progress->out || now_ns < progress->next_ns)
        return;
    progress->next_ns = now_ns + every_ns;
    (void)fprintf(progress->out, "\r\033[K%s",
                  progress_text(text, progress, done, now_ns - progress->began_ns));
    (void)fflush(progress->out);
}

static uint64_t size_of(const char *path)
{
    char log[PROGRESS_PATH_SIZE + 8];
    struct stat info;
    (void)snprintf(log, sizeof log, "%s-wal", path);
    const uint64_t size = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
    return stat(log, &info) == 0 ? size + (uint64_t)info.st_size : size;
}

static void *draw(void *context)
{
    struct progress *progress = context;
    while (!atomic_load(&progress->ends)) {
        const uint64_t size = size_of(progress->watched);
        progress_set(progress, size > progress->begun_size ? size - progress->begun_size : 0);
        clock_sleep_until_ns(clock_monotonic_ns() + every_ns / 4);
    }
    return NULL;
}

void progress_watch(struct progress *progress, const char *path)
{
    if (!progress->out || strlen(path) >= sizeof progress->watched)
        return;
    memcpy(progress->watched, path, strlen(path) + 1);
    progress->begun_size = size_of(path);
    (void)!thread_start(&progress->thread, progress->what, draw, progress, NULL);
}

void progress_end(struct progress *progress)
{
    atomic_store(&progress->ends, true);
    thread_join(&progress->thread);
    if (progress->out && progress->next_ns > progress->began_ns + first_ns)
        (void)fputs("\r\033[K", progress->out);
    progress->out = NULL;
}
