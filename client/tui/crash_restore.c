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
    char text[RESCUE_TEXT_SIZE];
    size_t size;
    struct termios settings;
    struct sigaction before[FAULTS];
} rescue;

static void restore_actions(void)
{
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &rescue.before[i], NULL);
}

// Calls only what a signal handler may.
static void on_fault(int number)
{
    (void)!write(STDOUT_FILENO, rescue.text, rescue.size);
    (void)tcsetattr(STDOUT_FILENO, TCSANOW, &rescue.settings);
    restore_actions();
    (void)raise(number); // held back until this handler returns
}

void rescue_arm(const char *text, size_t size, const struct termios *settings)
{
    assert(size <= sizeof rescue.text && !rescue.armed);
    memcpy(rescue.text, text, size);
    rescue.size = size;
    rescue.settings = *settings;
    rescue.armed = true;
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], NULL, &rescue.before[i]);
    const struct sigaction action = {.sa_handler = on_fault};
    for (unsigned i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &action, NULL);
}

void rescue_disarm(void)
{
    if (!rescue.armed)
        return;
    restore_actions();
    rescue.armed = false;
}
