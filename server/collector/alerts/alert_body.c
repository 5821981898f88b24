#include "server/collector/alerts/alert_body.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/core/query/json_writer.h"

enum { SUMMARY_SIZE = 1024, NAME_SIZE = 300, MARKED_SIZE = 8192, TIME_SIZE = 40 };

static const char *const dimensions[ALERT_GROUP_NAMES] = {"model", "host", "device"};

static void put(void *stream, const char *bytes, size_t size)
{
    (void)fwrite(bytes, 1, size, stream);
}

// "critical: slow_first_token of model m, host h: 4.8s in the last 5m (threshold 3.0s)"
static void summarise(char out[SUMMARY_SIZE], const struct alert_call *call)
{
    const struct alert_row *alert = &call->alert;
    char value[UNIT_TEXT_SIZE], threshold[UNIT_TEXT_SIZE], name[NAME_SIZE];
    const bool is_now = call->event == ALERT_EVENT_FIRING || call->event == ALERT_EVENT_ESCALATED;
    int size = snprintf(out, SUMMARY_SIZE, "%s: %s",
                        is_now ? alert_severity_text(alert->series.severity)
                               : alert_event_text(call->event),
                        alert->rule);
    const char *before = " of";
    for (int i = 0; i < ALERT_GROUP_NAMES; i++) {
        if (!alert->group[i][0] || size >= SUMMARY_SIZE)
            continue;
        size += snprintf(out + size, SUMMARY_SIZE - (size_t)size, "%s %s %s", before, dimensions[i],
                         text_escape(name, sizeof name, alert->group[i], strlen(alert->group[i])));
        before = ",";
    }
    if (size < SUMMARY_SIZE)
        (void)snprintf(out + size, SUMMARY_SIZE - (size_t)size, ": %s%s%s (threshold %s)",
                       unit_format(value, alert->unit, alert->series.value),
                       alert->window[0] ? " in the last " : "", alert->window,
                       unit_format(threshold, alert->unit, alert->threshold));
}

static void write_time(struct json_writer *json, const char *key, int64_t time_ns)
{
    if (time_ns)
        json_write_int(json, key, time_ns);
    else
        json_write_text(json, key, NULL);
}

static void write_plain(struct json_writer *json, const struct alert_call *call,
                        const char *summary)
{
    const struct alert_row *alert = &call->alert;
    json_write_begin(json, NULL);
    json_write_text(json, "event", alert_event_text(call->event));
    json_write_int(json, "id", alert->id);
    json_write_text(json, "rule", alert->rule);
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        json_write_text(json, dimensions[i], alert->group[i][0] ? alert->group[i] : NULL);
    json_write_text(json, "state", alert_state_text(alert->series.state));
    json_write_text(json, "severity", alert_severity_text(alert->series.severity));
    write_time(json, "started_ns", alert->series.started_ns);
    write_time(json, "firing_ns", alert->series.firing_ns);
    write_time(json, "resolved_ns", alert->series.resolved_ns);
    json_write_real(json, "value", alert->series.value);
    json_write_real(json, "threshold", alert->threshold);
    json_write_text(json, "unit", unit_name(alert->unit));
    json_write_text(json, "why", alert->why[0] ? alert->why : NULL);
    json_write_text(json, "summary", summary);
    json_write_end(json);
}

// Appends a text as Slack and the like show it literally: their markup and mentions begin with
// <, & or @.
static void mark(char *out, size_t out_size, const char *text)
{
    size_t size = strlen(out);
    for (; *text && size + 6 < out_size; text++) {
        const char *put = *text == '&'   ? "&amp;"
                          : *text == '<' ? "&lt;"
                          : *text == '>' ? "&gt;"
                          : *text == '@' ? "@\u200b" // no mention: a space of no width follows
                                         : NULL;
        size += (size_t)(put ? snprintf(out + size, out_size - size, "%s", put)
                             : snprintf(out + size, out_size - size, "%c", *text));
    }
}

static void write_slack(struct json_writer *json, const struct alert_call *call,
                        const char *summary)
{
    char text[MARKED_SIZE] = "", why[ALERT_WHY_SIZE * 4];
    mark(text, sizeof text, summary);
    if (call->alert.why[0]) {
        mark(text, sizeof text, "\n");
        mark(text, sizeof text,
             text_escape(why, sizeof why, call->alert.why, strlen(call->alert.why)));
    }
    json_write_begin(json, NULL);
    json_write_text(json, "text", text);
    json_write_end(json);
}

// RFC 3339, UTC.
static void write_instant(struct json_writer *json, const char *key, int64_t time_ns)
{
    char text[TIME_SIZE];
    (void)text_from_time(text, sizeof text, "%Y-%m-%dT%H:%M:%S", time_ns);
    json_write_text(
        json, key,
        text_append(text, sizeof text, "", ".%03dZ", (int)(time_ns % 1000000000 / 1000000)));
}

// Alertmanager knows an alert by its labels.
static void write_alert(struct json_writer *json, const struct alert_row *alert,
                        enum alert_severity severity, int64_t end_ns, const char *summary)
{
    const int64_t start_ns = alert->series.firing_ns;
    json_write_begin(json, NULL);
    json_write_begin(json, "labels");
    json_write_text(json, "alertname", alert->rule);
    json_write_text(json, "severity", alert_severity_text(severity));
    for (int i = 0; i < ALERT_GROUP_NAMES; i++)
        if (alert->group[i][0])
            json_write_text(json, dimensions[i], alert->group[i]);
    json_write_end(json);
    json_write_begin(json, "annotations");
    json_write_text(json, "summary", summary);
    if (alert->why[0])
        json_write_text(json, "description", alert->why);
    json_write_end(json);
    write_instant(json, "startsAt", start_ns);
    write_instant(json, "endsAt", end_ns > start_ns ? end_ns : start_ns);
    json_write_end(json);
}

static void write_alertmanager(struct json_writer *json, const struct alert_call *calls,
                               size_t count, int64_t now_ns)
{
    char summary[SUMMARY_SIZE];
    json_write_begin_list(json, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct alert_row *alert = &calls[i].alert;
        const int64_t resolved_ns = alert->series.resolved_ns;
        summarise(summary, &calls[i]);
        if (calls[i].event == ALERT_EVENT_ESCALATED)
            write_alert(json, alert, ALERT_WARNING, now_ns, summary);
        write_alert(json, alert, alert->series.severity,
                    resolved_ns ? resolved_ns : now_ns + ALERT_BODY_LASTS_NS, summary);
    }
    json_write_end_list(json);
}

enum status alert_body_new(char **out, size_t *size, enum alert_hook_kind kind,
                           const struct alert_call *calls, size_t count, int64_t now_ns,
                           struct error *err)
{
    FILE *stream = open_memstream(out, size);
    struct json_writer json = {.put = put, .sink = stream};
    char summary[SUMMARY_SIZE];
    if (!stream)
        return error_no_memory(err, "alerts");
    summarise(summary, calls);
    switch (kind) {
    case ALERT_HOOK_COMMAND:
    case ALERT_HOOK_JSON:
        write_plain(&json, calls, summary);
        break;
    case ALERT_HOOK_SLACK:
        write_slack(&json, calls, summary);
        break;
    case ALERT_HOOK_ALERTMANAGER:
        write_alertmanager(&json, calls, count, now_ns);
        break;
    }
    put(stream, "\n", 1);
    const bool has_failed = ferror(stream) != 0;
    if (fclose(stream) == 0 && !has_failed)
        return STATUS_OK;
    free(*out);
    *out = NULL;
    return error_no_memory(err, "alerts");
}
