// The dashboard: `inferstat top`.
//
//   queries -> model update -> views -> canvas -> screen
//
// Threads of poller.c send queries; the caller's thread owns the model, draws and reads keys,
// so that an unreachable collector never blocks the screen.
#ifndef INFERSTAT_TUI_TUI_H
#define INFERSTAT_TUI_TUI_H

#include <stdbool.h>

#include "client/remote/remote.h"
#include "common/core/base/error.h"
#include "common/core/query/query.h"

#define TUI_INTERVAL_DEFAULT 2.0
#define TUI_INTERVAL_MINIMUM 0.1
#define TUI_INTERVAL_MAXIMUM 3600.0

struct tui_options {
    const struct remote_target *target;
    const struct query_filter *filter; // the records shown, and those that `c` clears; NULL: all
    double interval_seconds;           // polling interval; 0: TUI_INTERVAL_DEFAULT
    bool ascii;                        // ASCII only; implied where the locale is not UTF-8
    bool no_mouse;                     // leave the mouse to the terminal
    bool no_color;                     // --no-color, or NO_COLOR is set and not empty
    bool readonly;                     // refuse to clear
};

// Shows the dashboard on standard input and output until the user quits or a
// stop is requested (common/sys/stop.h, which the caller has installed).  Main
// thread.  Restores the terminal before it returns.  STATUS_INVALID: no suitable terminal,
// or an interval out of range; otherwise as remote_open.
MUST_CHECK enum status tui_run(const struct tui_options *options, struct error *err);

#endif
