#include "client/tui/crash_restore.h"

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};

enum { FAULTS = sizeof faults / sizeof *faults };

// What a handler needs, written while none is installed.
static struct {
    bool armed;
    char text[CRASH_RESTORE_TEXT_SIZE];
    size_t size;
    struct termios settings;
    struct sigaction before[FAULTS];
} saved;

static void restore_actions(void)
{
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &saved.before[i], NULL);
}

// Calls only what a signal handler may.
static void on_fault(int number)
{
    (void)!write(STDOUT_FILENO, saved.text, saved.size);
    (void)tcsetattr(STDOUT_FILENO, TCSANOW, &saved.settings);
    restore_actions();
    (void)raise(number); // held back until this handler returns
}

void crash_restore_arm(const char *text, size_t size, const struct termios *settings)
{
    assert(size <= sizeof saved.text && !saved.armed);
    memcpy(saved.text, text, size);
    saved.size = size;
    saved.settings = *settings;
    saved.armed = true;
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], NULL, &saved.before[i]);
    const struct sigaction action = {.sa_handler = on_fault};
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &action, NULL);
}

void crash_restore_disarm(void)
{
    if (!saved.armed)
        return;
    restore_actions();
    saved.armed = false;
}
