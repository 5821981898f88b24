// Terminal dashboard (`inferstat top`): live view of the records of a collector or store file.
//
//   queries -> model update -> views -> canvas -> screen
//
// The thread of poller.c sends the queries.  The caller's thread owns the model, draws and reads
// keys, so that an unreachable collector never blocks the screen.
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
    const struct query_filter *filter; // selects the records to show and to clear; NULL: all
    double interval_seconds;           // polling interval; 0: TUI_INTERVAL_DEFAULT
    bool ascii;                        // draw ASCII only; implied unless the locale is UTF-8
    bool no_mouse;                     // leave the mouse to the terminal
    bool no_color;                     // --no-color, or NO_COLOR is set and not empty
    bool readonly;                     // refuse to clear
};

// Runs the dashboard on standard input and output until the user quits or stop_requested
// (common/sys/stop.h) is true; then restores the terminal.  Call stop_install before.  Main
// thread.  STATUS_INVALID: no suitable terminal, or an interval out of range; other errors are
// those of remote_open.
MUST_CHECK enum status tui_run(const struct tui_options *options, struct error *err);

#endif
