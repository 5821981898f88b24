#include "common/monitor/runfile/fork_safe_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/core/base/array.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool child_closes;

// Guards the list, and keeps a fork() from coming between open and the list.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *open_fds;
static size_t count, room;

static void before_fork(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    for (size_t i = 0; i < count; i++)
        (void)close(open_fds[i]);
    count = 0;
    (void)pthread_mutex_unlock(&lock);
}

static void set_up_process(void)
{
    child_closes = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

int fork_safe_lock_acquire(const char *path, int flags, mode_t mode)
{
    (void)pthread_once(&once, set_up_process);
    int fd = -1;
    int fault = ENOMEM;
    (void)pthread_mutex_lock(&lock);
    if (child_closes && ARRAY_RESERVE(&open_fds, &room, count + 1)) {
        fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
        fault = errno;
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
            fault = errno;
            (void)close(fd);
            fd = -1;
        }
        if (fd >= 0)
            open_fds[count++] = fd;
    }
    (void)pthread_mutex_unlock(&lock);
    errno = fault;
    return fd;
}

void fork_safe_lock_close(int fd)
{
    if (fd < 0)
        return;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        if (open_fds[i] == fd) {
            open_fds[i] = open_fds[--count];
            (void)close(fd); // one that a child has closed already is another's by now
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}
