// Terminal dashboard (`inferstat top`): live view of the records of a collector or store file.
//
//   queries -> model update -> views -> canvas -> screen
//
// A background thread (poller.h) sends the queries.  The caller's thread owns the model, draws, and
// reads the keyboard.  An unreachable collector therefore never blocks the screen.
#pragma once

#include <stdbool.h>

#include "client/remote/remote.h"
#include "client/tui/export.h"
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
    bool readonly;                     // refuse to clear (delete) records
    bool compact;                      // three lines: figures, trouble, throughput
    export_rows *rows;                 // writes exported rows
    const char *settings;              // path of the file with the settings; NULL: none
};

// Runs the dashboard on standard input and output until the user quits or stop_requested
// (common/sys/stop.h) is true; then restores the terminal.  Only the main thread may call it, after
// stop_install.  Returns STATUS_INVALID if standard input or output is no suitable terminal, or
// the interval is out of range; else errors as remote_open does.
MUST_CHECK enum status tui_run(const struct tui_options *options, struct error *err);
