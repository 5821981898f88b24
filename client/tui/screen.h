// Terminal driver (curses): shows a canvas, and reads the keyboard, the mouse and the terminal's
// size.  Only screen.c uses curses.  Main thread only; one screen at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "client/tui/update.h"
#include "common/core/base/error.h"

struct screen;

// Initialises the terminal on standard input and output.  From then on, a fatal signal (SIGSEGV,
// SIGABRT and similar) restores the terminal and is raised again with its previous handler.
// `mouse` enables the mouse, `colours` the colours if the terminal has any.  Returns STATUS_INVALID
// if standard input or output is no terminal, or curses does not support the terminal.
MUST_CHECK enum status screen_open(struct screen **out, bool mouse, bool colours,
                                   struct error *err);

// Sets the colours; at first they are those of THEME_DEFAULT.
void screen_set_theme(struct screen *screen, enum theme theme);

// Restores the terminal.
void screen_close(struct screen *screen);

// True if the locale's encoding can show characters other than ASCII.
bool screen_has_unicode(const struct screen *screen);

void screen_size(const struct screen *screen, int *width, int *height);

// Shows the canvas.  Sends only the cells that have changed.
void screen_show(struct screen *screen, const struct canvas *canvas);

// Makes the next screen_show send all cells.
void screen_repaint(struct screen *screen);

// Waits until the terminal has input, the terminal's size has changed, one of the descriptors `fds`
// is readable, or `timeout_ns` has elapsed.  Returns false if the terminal was closed.
bool screen_wait(struct screen *screen, const int fds[2], uint64_t timeout_ns);

// Reads the next event without waiting: EVENT_KEY, EVENT_PRESS, EVENT_WHEEL or EVENT_RESIZE.  The
// caller sets the event's times.  Returns false if there is no event.
bool screen_read(struct screen *screen, struct event *event);
