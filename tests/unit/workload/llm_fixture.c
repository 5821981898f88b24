#include "tests/unit/workload/llm_fixture.h"

#include "common/sys/process.h"
#include "tests/support/test.h"

char load_line[LOAD_LINE_SIZE];
int64_t load_resident;

static void keep_line(void *context, enum inferstat_log_level level, const char *text)
{
    (void)context;
    if (level == INFERSTAT_LOG_INFO && strncmp(text, "[LOAD]", 6) == 0) {
        (void)snprintf(load_line, sizeof load_line, "%s", text);
        load_resident = process_memory_bytes();
    }
}

struct inferstat_monitor *open_monitor(void)
{
    struct inferstat_options options;
    struct inferstat_monitor *monitor = NULL;
    struct inferstat_error err;
    inferstat_options_init(&options);
    options.report = 0;
    options.log = keep_line;
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK)
        fail_msg("%s", err.text);
    return monitor;
}

void close_monitor(struct inferstat_monitor *monitor)
{
    assert_int_equal(inferstat_close(monitor, 0, NULL), INFERSTAT_OK);
}

struct inferstat_event last_event(struct inferstat_monitor *monitor, enum inferstat_event_kind kind)
{
    struct inferstat_event event;
    assert_int_equal(inferstat_history(monitor, kind, &event, 1), 1);
    return event;
}

enum status load(struct llm **llm, struct inferstat_monitor *monitor,
                 struct llm_load_options options, struct error *err)
{
    options.device.threads = 1;
    return llm_load(llm, &options, monitor, err);
}
