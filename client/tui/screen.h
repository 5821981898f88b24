// Terminal driver (curses): shows canvases, and reads keys, mouse and terminal size.  Only
// screen.c uses curses.  Main thread; one screen at a time.
#ifndef INFERSTAT_TUI_SCREEN_H
#define INFERSTAT_TUI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "client/tui/update.h"
#include "common/core/base/error.h"

struct screen;

struct screen_options {
    bool no_mouse;
    bool no_color;
};

// Initialises the terminal on standard input and output, and restores it on a fatal signal
// (SIGSEGV, SIGABRT and similar), which is then raised again with its previous handler.
// STATUS_INVALID: these are not a terminal, or curses does not support it.
MUST_CHECK enum status screen_open(struct screen **out, const struct screen_options *options,
                                   struct error *err);

// Restores the terminal.
void screen_close(struct screen *screen);

// True if the locale's encoding can show characters other than ASCII.
bool screen_has_unicode(const struct screen *screen);

void screen_size(const struct screen *screen, int *width, int *height);

// Shows the canvas, sending changed cells only; after screen_repaint, all cells.
void screen_show(struct screen *screen, const struct canvas *canvas);
void screen_repaint(struct screen *screen);

// Waits until the terminal has input, its size has changed, one of `count` descriptors (4 at
// most; negative ones are skipped) is readable, or `timeout_ns` has elapsed.  False: the terminal
// was closed.
bool screen_wait(struct screen *screen, const int *fds, unsigned count, uint64_t timeout_ns);

// Reads the next event: EVENT_KEY, EVENT_PRESS, EVENT_WHEEL or EVENT_RESIZE.  The caller sets its
// times.  False if there is none.
bool screen_read(struct screen *screen, struct event *event);

#endif
