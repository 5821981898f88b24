// Parser of the collector's file of alerts: rules, hooks, and built-in rules that are off.  No I/O.
//
//   # a comment
//   alert NAME: avg METRIC ...        a rule (query_text.h); the name of a built-in one replaces it
//   disable NAME                      a built-in rule is off
//   hook NAME: command PATH [ARG...]
//   hook NAME: webhook URL [as json|slack|alertmanager]
#pragma once

#include <stddef.h>

#include "common/core/query/alert_rule.h"

enum {
    ALERT_FILE_MAX = 1 << 20, // bytes
    ALERT_RULES_MAX = 2000,   // in a file, built-in ones included
    ALERT_HOOKS_MAX = 32,
};

enum alert_hook_kind {
    ALERT_HOOK_COMMAND,
    ALERT_HOOK_JSON, // a webhook, as the next ones
    ALERT_HOOK_SLACK,
    ALERT_HOOK_ALERTMANAGER,
};

// Plain data.
struct alert_hook {
    char name[ALERT_NAME_SIZE];
    enum alert_hook_kind kind;
    unsigned line;
    unsigned word_count;          // a command: its path and arguments; otherwise 1
    char target[ALERT_TEXT_SIZE]; // the words, each with its NUL: the path (absolute) and arguments
                                  // of the command, or the URL (http:// or https://)
};

struct alert_file {
    struct alert_rule *rules; // first the built-in ones, then those of the file in its order
    size_t rule_count;
    struct alert_hook *hooks;
    size_t hook_count;
};

// Reads the built-in rules, and a file of `size` bytes of `text` (need not be NUL-terminated).  If
// the file is invalid, returns STATUS_INVALID, and `err` begins with "line 3: column 7: ".  After
// any result the caller calls alert_file_deinit.
MUST_CHECK enum status alert_file_read(struct alert_file *out, const char *text, size_t size,
                                       struct error *err);
void alert_file_deinit(struct alert_file *file);
