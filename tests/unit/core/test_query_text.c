#include "tests/support/test.h"

#include <time.h>

#include "common/core/base/text.h"
#include "common/core/query/query_text.h"
#include "common/sys/when.h"

#define S INT64_C(1000000000)

static const int64_t now_ns = 1774785600 * S; // 2026-03-29 12:00:00 UTC

static enum status when(void *context, int64_t *out_ns, const char *text, bool latest,
                        struct error *err)
{
    return when_parse(out_ns, text, *(const int64_t *)context, latest, "time", err);
}

static enum status read_line(struct query *query, const char *line, struct query_place *place,
                             struct error *err)
{
    int64_t now = now_ns;
    return query_text_read(query, line, when, &now, place, err);
}

// Each line, and another that says the same.
TEST_CASE(test_lines)
{
    static const struct {
        const char *line, *written;
    } cases[] = {
        {"summary", "summary"},
        {"  \t overview\n", "overview"},
        {"avg ttft_ns", "avg ttft_ns"},
        {"avg load.duration_ns by model , host", "avg load.duration_ns by model,host"},
        {"avg ttft_ns by model,host where host=a and model=\"x y\" since 1h until "
         "2026-03-29T11:30:00Z step 1m slo ttft=200ms,tpot=30ms limit 10",
         "avg ttft_ns by model,host where model=\"x y\" and host=a since 2026-03-29T11:00:00Z "
         "until "
         "2026-03-29T11:30:00Z step 1m slo ttft=200ms,tpot=30ms limit 10"},
        {"avg ttft_ns limit 3 host=a model=b by stage", // any order, "where" left out
         "avg ttft_ns by stage where model=b and host=a limit 3"},
        {"avg ttft_ns where host = a and model = 'b'", "avg ttft_ns where model=b and host=a"},
        {"avg ttft_ns where model=since since 2026-03-29 since=x", NULL},
        {"avg ttft_ns where model=since", "avg ttft_ns where model=since"},
        {"avg ttft_ns where model=\"\\\"\\\\ \\n\\t\\x1b\\u{202e}\\'\"",
         "avg ttft_ns where model=\"\\\"\\\\ \\x0A\\x09\\x1B\\u{202E}'\""},
        {"avg ttft_ns where model='x; DROP TABLE run; --'",
         "avg ttft_ns where model=\"x; DROP TABLE run; --\""},
        {"avg ttft_ns slo \"anything, goes\"", "avg ttft_ns slo \"anything, goes\""},
        {"avg ttft_ns slo 'ttft=1s'", "avg ttft_ns slo ttft=1s"},
        {"avg ttft_ns slo 'other=1s'", "avg ttft_ns slo \"other=1s\""},
        {"avg ttft_ns slo 'ttft'", "avg ttft_ns slo \"ttft\""},
        {"avg ttft_ns step 90", "avg ttft_ns step 90s"},
        {"avg ttft_ns step 9007199254740993ns", "avg ttft_ns step 9007199254740993ns"},
        {"loads", "loads"},
        {"load", "loads"},
        {"inferences oldest limit 7", "inferences oldest limit 7"},
        {"load_stages where stage=read", "load_stages where stage=read"},
        {"process_sample", "process_samples"},
        {"device_process", "device_processes"},
        {"runs limit 0", "runs"},
        {"audit run=1a2b", "audit where run=1a2b"},
        {"slowest limit 5", "slowest limit 5"},
        {"slowest e2e_ns where model=m", "slowest e2e_ns where model=m"},
        {"slowest model=m", "slowest where model=m"},
        {"stages by model", "stages by model"},
        {"errors by model,host host=h limit 5", "errors by model,host where host=h limit 5"},
        {"fleet ttft_ns since 1d", "fleet ttft_ns since 2026-03-28T12:00:00Z"},
        {"baselines", "baselines"},
        {"compare a against b", "compare a against b"},
        {"compare a against b force", "compare a force against b"},
        {"compare a against b margin 3% of ttft_ns", "compare a of ttft_ns margin 0.03 "
                                                     "against b"},
        {"compare 'since' against \"host\"", "compare \"since\" against \"host\""},
        {"compare model=m since 2d until 1d against model=m since 1d",
         "compare where model=m since 2026-03-27T12:00:00Z until 2026-03-28T12:00:00Z against "
         "where model=m since 2026-03-28T12:00:00Z"},
        {"loads since 2026-03-29 14:30", "loads since 2026-03-29T12:30:00Z"},
        {"loads since 2026-03-29 14:30:05.25 until '2026-03-29 15:00'",
         "loads since 2026-03-29T12:30:05.250000000Z until 2026-03-29T13:00:00Z"},
        {"loads since 2026-03-29 limit 2", "loads since 2026-03-28T23:00:00Z limit 2"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query, again;
        struct error err = {0};
        enum status status = read_line(&query, cases[i].line, NULL, &err);
        if (!cases[i].written) {
            assert_int_equal(status, STATUS_INVALID);
            continue;
        }
        if (status != STATUS_OK)
            fail_msg("'%s': %s", cases[i].line, err.text);
        assert_int_equal(read_line(&again, cases[i].written, NULL, &err), STATUS_OK);
        assert_memory_equal(&again, &query, sizeof query);
    }
}

TEST_CASE(test_fields)
{
    struct query query;
    assert_int_equal(read_line(&query,
                               "avg inference.ttft_ns by stage,run where run=1a2b-3c and "
                               "operation=o device=d since 1h until 1m step 5s limit 4294967295",
                               NULL, NULL),
                     STATUS_OK);
    assert_int_equal(query.kind, QUERY_AVERAGE);
    assert_string_equal(query.metric, "inference.ttft_ns");
    assert_int_equal(query.group_count, 2);
    assert_int_equal(query.group_by[0], QUERY_BY_STAGE);
    assert_int_equal(query.group_by[1], QUERY_BY_RUN);
    assert_string_equal(query.filter.by[QUERY_BY_RUN], "1a2b-3c");
    assert_string_equal(query.filter.by[QUERY_BY_OPERATION], "o");
    assert_string_equal(query.filter.by[QUERY_BY_DEVICE], "d");
    assert_int_equal(query.filter.since_ns, now_ns - 3600 * S);
    assert_int_equal(query.filter.until_ns, now_ns - 60 * S);
    assert_int_equal(query.step_ns, 5 * S);
    assert_int_equal(query.limit, UINT32_MAX);
    assert_int_equal(read_line(&query, "compare x host=a against y host=b", NULL, NULL), STATUS_OK);
    assert_int_equal(query.kind, QUERY_COMPARE);
    assert_string_equal(query.compare.baseline[0], "y"); // what it is compared with comes first
    assert_string_equal(query.compare.baseline[1], "x");
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "b");
    assert_string_equal(query.compare.other.by[QUERY_BY_HOST], "a");
}

// Every kind of records is a verb, in the singular and in the plural; but "events" asks for more.
TEST_CASE(test_kinds)
{
    for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        const char *const lines[] = {info->name, info->plural};
        for (unsigned i = 0; i < 2; i++) {
            struct query query;
            assert_int_equal(read_line(&query, lines[i], NULL, NULL), STATUS_OK);
            if (kind == RECORD_KIND_EVENT && i == 1) {
                assert_int_equal(query.kind, QUERY_EVENTS);
                continue;
            }
            assert_int_equal(query.kind, QUERY_RECORDS);
            assert_int_equal(query.records.kind, kind);
        }
    }
}

// What is wrong stands under the marks.
TEST_CASE(test_refusals)
{
    static const struct {
        const char *line, *marks, *why;
    } cases[] = {
        {"", "", "column 1: a verb (such as avg, summary, loads) is missing"},
        {"   ", "   ", "column 4: a verb"},
        {"sumary", "^^^^^^", "column 1: unknown verb \"sumary\" (did you mean summary?)"},
        {"qqqqqqqqqq", "^^^^^^^^^^", "unknown verb \"qqqqqqqqqq\""},
        {"= a", "^", "column 1: a verb (such as avg, summary, loads) is missing before \"=\""},
        {"clear", "^^^^^", "unknown verb"}, // what changes a store has no text
        {"avg", "   ", "column 4: METRIC is missing"},
        {"avg , x", "    ^", "column 5: METRIC is missing before \",\""},
        {"avg tft_ns by model", "    ^^^^^^",
         "column 5: unknown metric \"tft_ns\" (did you mean ttft_ns?)"},
        {"avg duration_ns", "    ^^^^^^^^^^^", "several kinds have the metric duration_ns"},
        {"avg ttft_ns wehre host=a", "            ^^^^^",
         "column 13: unknown word \"wehre\" (did you mean where?)"},
        {"avg ttft_ns hots=a", "            ^^^^", "unknown word \"hots\" (did you mean host?)"},
        {"avg ttft_ns \"where\" host=a", "            ^^^^^^^", "unknown word \"where\""},
        {"avg ttft_ns by modl", "               ^^^^",
         "column 16: unknown dimension \"modl\" (did you mean model?)"},
        {"avg ttft_ns by", "              ", "column 15: a dimension"},
        {"avg ttft_ns by model,", "                     ", "column 22: a dimension"},
        {"avg ttft_ns by model,host,model", "                          ^^^^^",
         "column 27: model is given twice"},
        {"avg ttft_ns where", "                 ", "a dimension"},
        {"avg ttft_ns where x=y", "                  ^",
         "unknown dimension \"x\" (one of model, host, device, run, operation, stage, workload,"
         " status, sync, chunk_bytes, pool_size, source, event)"},
        {"avg ttft_ns where status=eror", "                         ^^^^",
         "column 26: unknown status \"eror\" (did you mean error?)"},
        {"avg ttft_ns where status=bad", "                         ^^^",
         "column 26: unknown status \"bad\" (one of ok, error, cancelled)"},
        {"avg ttft_ns where host", "                      ", "= is missing"},
        {"avg ttft_ns where host a", "                       ^", "= is missing before \"a\""},
        {"avg ttft_ns where host=", "                       ", "a name is missing"},
        {"avg ttft_ns where host==a", "                       ^", "a name is missing before \"=\""},
        {"avg ttft_ns where host=''", "                       ^^", "the name of a host is empty"},
        {"avg ttft_ns where host=a and", "                            ", "a dimension"},
        {"avg ttft_ns where host=a, model=b", "                        ^", "unknown word \",\""},
        {"avg ttft_ns where host=a and host=b", "                             ^^^^",
         "host is given twice"},
        {"avg ttft_ns where run=xyz", "            ^^^^^^^^^^^^^", "column 13: run is not a UUID"},
        {"avg ttft_ns since tomorrow", "                  ^^^^^^^^", "cannot read the time"},
        {"avg ttft_ns since", "                 ", "a time is missing"},
        {"avg ttft_ns since 2026-03-29 02:30", "                  ^^^^^^^^^^^^^^^^",
         "the clocks skip it"},
        {"avg ttft_ns since 1h since 2h", "                     ^^^^^", "since is given twice"},
        {"avg ttft_ns since 1m until 1h limit 3", "                     ^^^^^^^^",
         "column 22: the window ends before it begins"},
        {"avg ttft_ns step 0s", "                 ^^", "the time must be above zero"},
        {"avg ttft_ns step 1parsec", "                 ^^^^^^^", "is not a duration"},
        {"avg ttft_ns slo tftt=1s", "                ^^^^",
         "unknown objective \"tftt\" (did you mean ttft?)"},
        {"avg ttft_ns slo ttft", "                    ", "= is missing"},
        {"avg ttft_ns slo ttft=fast", "                     ^^^^", "is not a duration"},
        {"avg ttft_ns slo ttft=1s,", "                        ", "an objective"},
        {"avg ttft_ns limit many", "                  ^^^^", "limit: \"many\" is not"},
        {"avg ttft_ns limit -1", "                  ^^", "limit: -1 is outside"},
        {"avg ttft_ns oldest", "            ^^^^^^", "column 13: avg takes no oldest"},
        {"loads by model", "      ^^", "loads takes no by"},
        {"baselines where host=a", "          ^^^^^", "baselines takes no where"},
        {"compare a against b against c", "                    ^^^^^^^", "against is given twice"},
        {"compare a margin 3", "                 ^", "margin: 3 is outside 0 to 1"},
        {"compare a of tft_ns", "             ^^^^^^", "did you mean ttft_ns?"},
        {"compare a!b against c", "        ^^^",
         "column 9: the name of a baseline has other characters"},
        {"loads where model='x", "                  ^", "column 19: the quote has no end"},
        {"loads where model=\"\\q\"", "                   ^^", "unknown escape"},
        {"loads where model=\"\\x00\"", "                   ^^^^", "\\x is to be"},
        {"loads where model=\"\\u{d800}\"", "                   ^^^^^^^", "\\u is to be"},
        {"loads where model=a\\b", "                   ^", "a backslash stands in quotes only"},
        {"loads where model=\"\\xff\"", "                  ^^^^^^", "is not UTF-8"},
        {"loads where model=größe typo", "                          ^^^^",
         "column 25: unknown word \"typo\""},
        {"loads where model=x \x1b[31m", "                    ^^^^^", "unknown word \"\\x1B[31m\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query;
        struct query_place place = {0};
        struct error err = {0};
        assert_int_equal(read_line(&query, cases[i].line, &place, &err), STATUS_INVALID);
        if (strcmp(cases[i].line, "compare a!b against c") != 0 && !strstr(err.text, cases[i].why))
            fail_msg("'%s': '%s' lacks '%s'", cases[i].line, err.text, cases[i].why);
        const size_t at = strspn(cases[i].marks, " ");
        if (place.at != at || place.size != strlen(cases[i].marks + at))
            fail_msg("'%s': %zu bytes from %zu on", cases[i].line, place.size, place.at);
        assert_int_equal(strncmp(err.text, "column ", 7), 0);
        assert_int_equal(read_line(&query, cases[i].line, NULL, NULL), STATUS_INVALID);
    }
}

TEST_CASE(test_long_names)
{
    char line[QUERY_TEXT_SIZE + 64], name[QUERY_TEXT_SIZE + 1];
    struct query query;
    struct error err = {0};
    memset(name, 'm', sizeof name);
    name[QUERY_TEXT_SIZE - 1] = '\0';
    (void)snprintf(line, sizeof line, "loads where model=%s", name);
    assert_int_equal(read_line(&query, line, NULL, &err), STATUS_OK);
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], name);
    name[QUERY_TEXT_SIZE - 1] = 'm';
    name[QUERY_TEXT_SIZE] = '\0';
    (void)snprintf(line, sizeof line, "loads where model=%s", name);
    assert_int_equal(read_line(&query, line, NULL, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "column 19: the name is too long"));
    (void)snprintf(line, sizeof line, "compare %.64s", name);
    assert_int_equal(read_line(&query, line, NULL, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "the name of a baseline is too long"));
}

TEST_CASE(test_filters)
{
    static const struct {
        const char *line, *written; // NULL: refused
    } cases[] = {
        {"", ""},
        {"where model=x since 1h", "where model=x since 2026-03-29T11:00:00Z"},
        {"model=x and host=y", "where model=x and host=y"},
        {"until 1m", "until 2026-03-29T11:59:00Z"},
        {"model", NULL},
        {"summary", NULL},
        {"limit 3", NULL},
        {"model=x extra", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query_filter filter;
        struct error err = {0};
        int64_t now = now_ns;
        enum status status = query_text_read_filter(&filter, cases[i].line, when, &now, NULL, &err);
        assert_int_equal(status, cases[i].written ? STATUS_OK : STATUS_INVALID);
        if (!cases[i].written)
            continue;
        char written[QUERY_LINE_SIZE];
        assert_int_equal(query_text_write_filter(written, sizeof written, &filter, NULL),
                         STATUS_OK);
        assert_string_equal(written, cases[i].written);
    }
}

static uint64_t seed = 20260329;

static unsigned any(unsigned below)
{
    return (unsigned)(test_random(&seed) >> 33) % below;
}

// A name of anything: quotes, blanks, escapes, letters of other scripts.
static void any_name(char *out, size_t size)
{
    static const char *const pieces[] = {
        "a",      "Z",    "0", "_", ".",  "\"", "'",        "\\",    " ",      "\t", "=",
        ",",      "\x1b", "[", "ä", "漢", "\n", "-",        "&",     "\x7f",   "€",  "and",
        "\u202e", "%s",   ";", "x", "u",  "{",  "\xc2\x85", "since", "\ufeff", "n"};
    size_t used = 0;
    for (unsigned count = 1 + any(40); count > 0; count--) {
        const char *piece = pieces[any(COUNT_OF(pieces))];
        if (used + strlen(piece) >= size)
            break;
        memcpy(out + used, piece, strlen(piece));
        used += strlen(piece);
    }
    out[used] = '\0';
}

// A value of a dimension whose values are numbers.
static void any_number(char *out, enum query_dimension dimension)
{
    const enum column_type type = query_dimension_words(dimension);
    if (type == COLUMN_INT)
        (void)snprintf(out, QUERY_TEXT_SIZE, "%uKB", any(UINT32_MAX));
    else
        (void)snprintf(out, QUERY_TEXT_SIZE, "%s", column_enum_text(type, any(2)));
}

static void any_filter(struct query_filter *filter)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++) {
        if (i == QUERY_BY_RUN || any(3) != 0)
            continue;
        if (query_dimension_is_number((enum query_dimension)i))
            any_number(filter->by[i], (enum query_dimension)i);
        else
            any_name(filter->by[i], QUERY_TEXT_SIZE);
    }
    if (any(3) == 0)
        (void)snprintf(filter->by[QUERY_BY_RUN], QUERY_TEXT_SIZE, "%08x-%x", any(UINT32_MAX),
                       any(65536));
    if (any(2))
        filter->since_ns = 1 + (int64_t)any(1U << 30) * (1 + any(4000000));
    if (any(2))
        filter->until_ns = filter->since_ns + 1 + (int64_t)any(1U << 30) * (1 + any(4000000));
}

static enum status read_filter(struct query_filter *filter, const char *line, struct error *err)
{
    int64_t now = now_ns;
    return query_text_read_filter(filter, line, when, &now, NULL, err);
}

// Any filter reads, once written, as what it was, and a terminal may show it.
TEST_CASE(test_there_and_back)
{
    static char line[QUERY_LINE_SIZE], shown[QUERY_LINE_SIZE];
    for (unsigned i = 0; i < 5000; i++) {
        struct query_filter filter = {0}, again;
        struct error err = {0};
        any_filter(&filter);
        assert_int_equal(query_text_write_filter(line, sizeof line, &filter, &err), STATUS_OK);
        assert_string_equal(text_escape(shown, sizeof shown, line, strlen(line)), line);
        if (read_filter(&again, line, &err) != STATUS_OK)
            fail_msg("%s: %s", line, err.text);
        assert_memory_equal(&again, &filter, sizeof filter);
        if (!line[0])
            continue;
        // Too little room is said, and nothing is written beyond it.
        const size_t room = 1 + any((unsigned)strlen(line));
        memset(shown, '#', room + 1);
        assert_int_equal(query_text_write_filter(shown, room, &filter, &err), STATUS_FULL);
        assert_int_equal(shown[room], '#');
    }
}

// The longest text there is has room.
TEST_CASE(test_longest)
{
    static char line[QUERY_LINE_SIZE];
    struct query_filter filter = {.since_ns = 1, .until_ns = 1700000000 * S + 1}, again;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        memset(filter.by[i], query_dimension_is_number((enum query_dimension)i) ? '\0' : '\x1b',
               QUERY_TEXT_SIZE - 1);
    memset(filter.by[QUERY_BY_RUN], '\0', QUERY_TEXT_SIZE);
    memset(filter.by[QUERY_BY_RUN], 'a', 36);
    memcpy(filter.by[QUERY_BY_STATUS], "cancelled", sizeof "cancelled");
    memcpy(filter.by[QUERY_BY_SYNC], "periodic", sizeof "periodic");
    memcpy(filter.by[QUERY_BY_CHUNK_BYTES], "1000000000000000", 17);
    memcpy(filter.by[QUERY_BY_POOL_SIZE], "1000000000", 11);
    assert_int_equal(query_text_write_filter(line, sizeof line, &filter, NULL), STATUS_OK);
    assert_int_equal(read_filter(&again, line, NULL), STATUS_OK);
    assert_memory_equal(&again, &filter, sizeof filter);
}

TEST_CASE(test_without_text)
{
    char line[QUERY_LINE_SIZE];
    static const int64_t times[] = {-1, INT64_MIN, INT64_C(9214646400000000000), INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        const struct query_filter filter = {.since_ns = times[i]};
        assert_int_equal(query_text_write_filter(line, sizeof line, &filter, NULL),
                         STATUS_UNSUPPORTED);
    }
}

// The window of an alert's rule: never what is named like its word, nor what is no time.
TEST_CASE(test_alert_window)
{
    static const char *const rules[][2] = {
        {"avg ttft_ns over 5m when p95 > 3s", "5m"},
        {"avg ttft_ns when p95 > 3s over 1.5h", "1.5h"},
        {"avg ttft_ns by model where model=over over 10m when p95 > 3s", "10m"},
        {"avg ttft_ns where model='a over 3m' over 20s when max > 3s", "20s"},
        {"avg ttft_ns over \x1b[31m when p95 > 3s", ""},
        {"avg ttft_ns over", ""},
        {"runs_killed over 10m when max > 0", ""},
        {"avg ttft_ns where model='a over 5m", ""},
        {"", ""},
    };
    char window[QUERY_WINDOW_SIZE];
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        assert_string_equal(query_text_alert_window(window, rules[i][0]), rules[i][1]);
}

int main(void)
{
    // Central European time by rule, whatever zone files are installed.
    if (setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1) != 0)
        return 77;
    tzset();
    return TEST_RUN(test_lines, test_fields, test_kinds, test_refusals, test_long_names,
                    test_filters, test_there_and_back, test_longest, test_without_text,
                    test_alert_window);
}
