// The terminal: shows canvases, reads keys, mouse and size.  The only file that
// knows curses.  Main thread; one at a time.
#ifndef INFERSTAT_TUI_SCREEN_H
#define INFERSTAT_TUI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "client/tui/update.h"
#include "common/core/error.h"

struct screen;

struct screen_options {
    bool no_mouse;
    bool no_color;
};

// Takes over the terminal on standard input and output.  STATUS_INVALID where
// there is none, or none that curses can draw on.
MUST_CHECK enum status screen_open(struct screen **out, const struct screen_options *options,
                                   struct error *err);

// Gives the terminal back as it was.
void screen_close(struct screen *screen);

// Whether the terminal's locale has more than ASCII.
bool screen_has_unicode(const struct screen *screen);

void screen_size(const struct screen *screen, int *width, int *height);

// Shows the canvas, sending what has changed; after screen_repaint, everything.
void screen_show(struct screen *screen, const struct canvas *canvas);
void screen_repaint(struct screen *screen);

// Waits until the terminal has something to read, its size has changed, one of
// `count` descriptors (4 at most; negative ones are skipped) is readable or
// `timeout_ns` have passed.  Returns false when the terminal has gone away.
bool screen_wait(struct screen *screen, const int *fds, unsigned count, uint64_t timeout_ns);

// Takes the next thing that happened on the terminal: EVENT_KEY, EVENT_PRESS,
// EVENT_WHEEL or EVENT_RESIZE, its times left alone.  False when there is none.
bool screen_read(struct screen *screen, struct event *event);

#endif
