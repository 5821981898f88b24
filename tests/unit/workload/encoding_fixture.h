// Whole runs of the encode workload, for the tests of one device and of several.
#pragma once

#include "server/workload/encode/run.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

enum { TIMEOUT_S = 20 };

static enum status run_with(const struct encoding_options *options,
                            struct inferstat_monitor *monitor, struct encoding_figures *figures,
                            struct error *err)
{
    struct encoding *encoding = NULL;
    memset(figures, 0, sizeof *figures);
    enum status status = encoding_new(&encoding, options, monitor, err);
    if (status == STATUS_OK)
        status = encoding_run(encoding, figures, err);
    encoding_free(encoding);
    return status;
}

// The same, reported to the fixture's collector.
static void record_run(struct fixture *fixture, const struct encoding_options *options,
                       enum status expected, struct encoding_figures *figures, struct error *err)
{
    assert_int_equal(setenv("XDG_CACHE_HOME", fixture->folder, 1), 0); // of what is measured
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    assert_int_equal(run_with(options, monitor, figures, err), expected);
    assert_int_equal(close_monitor(fixture, TIMEOUT_S * SECOND, NULL), INFERSTAT_OK);
}
