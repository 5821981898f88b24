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

void stop_on(int number)
{
    struct sigaction old;
    // Who started us may have asked for a signal to be ignored (nohup, a shell for
    // its background jobs): that stays.
    if (sigaction(number, NULL, &old) != 0 || old.sa_handler == SIG_IGN)
        return;
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(number, &action, NULL);
}

enum status stop_install(struct error *err)
{
    if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        return error_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        stop_on(signals[i]);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigaction(SIGXFSZ, &ignore, NULL);
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
