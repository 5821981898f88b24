#include "common/sys/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static atomic_bool stop_wanted;
static int stop_pipe[2] = {-1, -1};

void stop_request(void)
{
    const int saved = errno;
    // The pipe holds one byte at most; it is never read.
    if (!atomic_exchange(&stop_wanted, true) && stop_pipe[1] >= 0)
        (void)!write(stop_pipe[1], "", 1);
    errno = saved;
}

static void on_signal(int number)
{
    (void)number;
    stop_request();
}

enum status stop_install(struct error *err)
{
    if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return error_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaction(signals[i], &action, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    return STATUS_OK;
}

bool stop_requested(void)
{
    return atomic_load_explicit(&stop_wanted, memory_order_relaxed);
}

int stop_fd(void)
{
    return stop_pipe[0];
}
