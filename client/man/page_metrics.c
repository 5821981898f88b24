// inferstat-metrics(7): every metric that can be averaged.
#include <stdio.h>

#include "client/man/pages.h"
#include "client/man/roff.h"
#include "common/core/query/query.h"
#include "common/core/stats/sketch.h"

enum { TEXT_SIZE = 512 };

// The units whose names do not suffice.
static const struct {
    enum unit unit;
    const char *meaning;
} units[] = {
    {UNIT_DURATION, "nanoseconds; tables show 850ns, 12.3ms, 2m 30s"},
    {UNIT_TIME, "nanoseconds since 1970-01-01 UTC"},
    {UNIT_BYTES, "bytes; tables show MB of 1024 * 1024 bytes"},
    {UNIT_RATIO, "0 to 1, or more where several run concurrently; tables show percent"},
};

static void put_head(void)
{
    printf(".TH INFERSTAT-METRICS 7 \"\" \"inferstat\" \"Miscellaneous Information\"\n");
    roff_macro("SH", "NAME");
    printf("inferstat\\-metrics \\- the metrics that inferstat measures and averages\n");
    roff_macro("SH", "DESCRIPTION");
    roff_text("A metric is a numeric column of a kind of record, stored or derived from stored "
              "ones.  Where several kinds have a metric of that name, write KIND.NAME, as in");
    roff_example("inferstat avg ttft_ns --by model --since 1h\n"
                 "inferstat avg load.duration_ns --by model,host");
    roff_macro("PP", NULL);
    roff_text("\"inferstat metrics\" prints the same list; this page is generated from it.");
}

static void put_averages(void)
{
    roff_macro("SH", "AVERAGES");
    roff_text("An average covers every record of its filter in which the metric is not NULL, "
              "including failed and cancelled requests, as plain SQL over the table does.");
    roff_tag("count, min, max", "");
    roff_text("are exact.");
    roff_tag("mean", "");
    roff_text("is the mean of the records' values: sums of integers are exact, of reals within a "
              "relative error of 1e-12.");
    roff_tag("total_over_total", "");
    roff_text("of derived metrics is the sum of the numerators divided by the sum of the "
              "denominators: for tokens_per_second all tokens / all time.  The mean describes a "
              "typical request, this one the machine.");
    roff_tag("met_ratio", "");
    roff_text("of goodput_per_second is the share of the requests that met every objective; its "
              "mean is the number of these per second.  Other metrics have none.");
    roff_tag("p50, p90, p95, p99", "");
    roff_text("are within 1 %% of a measured value: they come from sketches with %d "
              "buckets of equal width for each power of two (DDSketch: Masson, Rim and Lee, VLDB "
              "2019).",
              (int)SKETCH_PER_OCTAVE);
    roff_tag("coverage_ratio, lost", "");
    roff_text("refer to the window, or to the time step: records of all kinds stored / (stored + "
              "lost), and the number lost, of the hosts and runs that the filter and the row's "
              "group cover.  A loss counts in every window in which it may have happened; if its "
              "time is unknown, in its run's whole life, and the note says so.  Lost records have "
              "no known model, so these are never split by model.");
}

static void put_metric(const struct query_metric *metric)
{
    char behind[TEXT_SIZE];
    (void)snprintf(behind, sizeof behind, "  %s", unit_name(metric->unit));
    roff_tag(metric->name, behind);
    roff_text("%s.", metric->meaning);
    if (metric->derived)
        roff_text("Derived: %s / (%s).", metric->derived->numerator, metric->derived->denominator);
}

static void put_metrics(void)
{
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    roff_macro("SH", "METRICS");
    for (unsigned i = 0; i < count; i++) {
        if (i == 0 || metrics[i].kind != metrics[i - 1].kind) {
            const struct record_kind_info *info = record_kind_info(metrics[i].kind);
            roff_macro("SS", info->name);
            roff_text("%s.", info->meaning);
        }
        put_metric(&metrics[i]);
    }
}

static void put_units(void)
{
    roff_macro("SH", "UNITS");
    roff_text("JSON, CSV and the store have base units; tables are scaled.");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        roff_tag(unit_name(units[i].unit), "");
        roff_text("%s.", units[i].meaning);
    }
}

void page_enumerations(void)
{
    static const struct {
        enum column_type type;
        const char *name;
    } types[] = {{COLUMN_STATUS, "status"},
                 {COLUMN_FINISH, "finish"},
                 {COLUMN_RUN_END, "end"},
                 {COLUMN_SYNC, "sync"}};
    roff_macro("SH", "ENUMERATIONS");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char line[TEXT_SIZE];
        size_t used = 0;
        const char *text;
        for (int64_t n = 0; (text = column_enum_text(types[i].type, n)) && used < sizeof line; n++)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%lld %s", n ? ", " : "",
                                     (long long)n, text);
        roff_tag(types[i].name, "");
        roff_text("%s.", line);
    }
}

enum status page_metrics(struct error *err)
{
    (void)err;
    put_head();
    put_averages();
    put_metrics();
    put_units();
    page_enumerations();
    roff_macro("SH", "SEE ALSO");
    printf(".BR inferstat (1),\n.BR inferstat\\-schema (7)\n");
    return STATUS_OK;
}
