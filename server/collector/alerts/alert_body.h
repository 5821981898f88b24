// Bodies of calls to hooks: JSON that tells of one alert.  Pure.  Whatever names hold, the JSON is
// valid; in texts for people control characters are escaped, and what a chat would take for markup
// or mentions is harmless.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/alert/alert_file.h"
#include "common/core/base/error.h"
#include "common/store/alert/alert_queue.h"

// An alert that is open is told to Alertmanager again and again; one that is not told for some of
// these intervals is over there, as if Prometheus told it.
#define ALERT_BODY_REPEATS_NS INT64_C(60000000000)
#define ALERT_BODY_LASTS_NS   (4 * ALERT_BODY_REPEATS_NS)

// Creates the body for a hook of the kind, of `count` calls (1, unless the kind is ALERTMANAGER).
// The caller frees `*out`.
//   COMMAND, JSON   {"event","id","rule","model","host","device","state","severity","started_ns",
//                   "firing_ns","resolved_ns","value","threshold","unit","why","summary"}
//   SLACK           {"text"}: the summary and why
//   ALERTMANAGER    a list for /api/v2/alerts; labels alertname severity model host device.  When
//   an
//                   alert has become critical, also the end of the one with the severity warning
MUST_CHECK enum status alert_body_new(char **out, size_t *size, enum alert_hook_kind kind,
                                      const struct alert_call *calls, size_t count, int64_t now_ns,
                                      struct error *err);
