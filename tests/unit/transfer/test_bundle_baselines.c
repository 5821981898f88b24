// Which baselines go with a bundle: those of nothing but what it is of; that comparing with
// them there says what it says at home; and which of them an import brings.

#include <unistd.h>

#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/transfer/copy_fixture.h"

static struct query_filter filter_of(const char *model, const char *host)
{
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", model);
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", host);
    return filter;
}

static const struct {
    const char *name, *model, *host;
} kept[] = {
    {"all", "", ""},
    {"m-0", "m-0", ""},
    {"m-1", "m-1", ""},
    {"host-0", "", "host-0"},
    {"host-1", "", "host-1"},
    {"both", "m-0", "host-0"},
    {"mixed", "m-1", "host-0"},
};

static void make_store(const char *path)
{
    copy_make_store(path, 2, 100);
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        const struct query_filter filter = filter_of(kept[i].model, kept[i].host);
        copy_save_baseline(path, kept[i].name, &filter);
    }
}

static bool has_baseline(const char *path, const char *name)
{
    return copy_integer(path,
                        format_text("SELECT count(*) FROM baseline b WHERE name = '%s' AND EXISTS"
                                    " (SELECT 1 FROM baseline_sample s WHERE s.baseline = b.id)",
                                    name)) == 1;
}

static void bundle(const char *from, const char *to, const struct query_filter *filter,
                   int64_t there, int64_t left_out)
{
    struct result *answer = NULL;
    struct error err;
    expect_ok(copy_to(from, to, filter, &answer, &err), &err);
    assert_int_equal(result_integer(answer, 0, "baselines", -1), there);
    assert_int_equal(result_integer(answer, 0, "baselines_left_out", -1), left_out);
    result_free(answer);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM baseline"), there);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM baseline_sample"
                                      " WHERE baseline NOT IN (SELECT id FROM baseline)"),
                     0);
}

TEST_CASE(test_those_as_narrow_go)
{
    static const struct {
        const char *file, *model, *host, *going[COUNT_OF(kept)];
    } cases[] = {
        {"0.db", "", "", {"all", "m-0", "m-1", "host-0", "host-1", "both", "mixed"}},
        {"1.db", "m-0", "", {"m-0", "both"}},
        {"2.db", "", "host-0", {"host-0", "both", "mixed"}},
        {"3.db", "m-0", "host-0", {"both"}},
        {"4.db", "m-2", "", {NULL}},
        {"5.db", "m-0", "host-1", {NULL}},
    };
    const char *from = copy_path("s.db");
    make_store(from);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct query_filter filter = filter_of(cases[i].model, cases[i].host);
        const char *to = copy_path(cases[i].file);
        int64_t count = 0;
        while (count < (int64_t)COUNT_OF(kept) && cases[i].going[count])
            count++;
        bundle(from, to, &filter, count, (int64_t)COUNT_OF(kept) - count);
        for (int64_t g = 0; g < count; g++)
            assert_true(has_baseline(to, cases[i].going[g]));
    }
}

// A window is no name.
TEST_CASE(test_of_a_window_all_go)
{
    const char *from = copy_path("s.db");
    const struct query_filter filter = {.until_ns = COPY_BASE_NS + 10 * COPY_SECOND};
    make_store(from);
    bundle(from, copy_path("b.db"), &filter, COUNT_OF(kept), 0);
}

// Names that read like filters: what a baseline is of must not be mistaken.
TEST_CASE(test_names_that_read_like_filters)
{
    const char *from = copy_path("s.db");
    copy_make_store(from, 2, 100);
    copy_exec(from, "UPDATE name SET text = 'm-0, host=host-0' WHERE text = 'm-1';"
                    "UPDATE name SET text = 'x, device=y' WHERE text = 'm-2'");
    const struct query_filter odd = filter_of("m-0, host=host-0", ""),
                              plain = filter_of("m-0", "host-0"), host = filter_of("", "host-0"),
                              other = filter_of("x, device=y", "host-0");
    copy_save_baseline(from, "odd", &odd); // of host-1 too
    copy_save_baseline(from, "other", &other);
    bundle(from, copy_path("plain.db"), &plain, 0, 2);
    bundle(from, copy_path("host.db"), &host, 0, 2);
    bundle(from, copy_path("odd.db"), &odd, 0, 2); // nobody knows, so it stays
    copy_save_baseline(from, "right", &host);
    copy_save_baseline(from, "longer", &(struct query_filter){.by = {[QUERY_BY_HOST] = "host-1"}});
    bundle(from, copy_path("right.db"), &host, 1, 3);
    assert_true(has_baseline(copy_path("right.db"), "right"));
}

// A name that another begins or ends with is another.
TEST_CASE(test_parts_of_names)
{
    const char *from = copy_path("s.db");
    copy_make_store(from, 2, 100);
    copy_exec(from, "UPDATE name SET text = 'm-0, model' WHERE text = 'm-1'");
    const struct query_filter longer = filter_of("m-0, model", ""), wanted = filter_of("m-0", "");
    copy_save_baseline(from, "longer", &longer);
    bundle(from, copy_path("b.db"), &wanted, 0, 1);
    copy_exec(from, "UPDATE baseline SET filter = 'model=m-00'");
    bundle(from, copy_path("c.db"), &wanted, 0, 1);
    copy_exec(from, "UPDATE baseline SET filter = 'xmodel=m-0'");
    bundle(from, copy_path("d.db"), &wanted, 0, 1);
    copy_exec(from, "UPDATE baseline SET filter = 'model=m-0'");
    bundle(from, copy_path("e.db"), &wanted, 1, 0);
}

static void assert_same_cell(const struct result *a, const struct result *b, size_t row,
                             unsigned column)
{
    const struct value left = result_cell(a, row, column), right = result_cell(b, row, column);
    assert_int_equal(left.type, right.type);
    switch (left.type) {
    case VALUE_NULL:
        break;
    case VALUE_TEXT:
        assert_int_equal(left.text.size, right.text.size);
        assert_memory_equal(left.text.bytes, right.text.bytes, left.text.size);
        break;
    case VALUE_REAL:
        assert_memory_equal(&left.r, &right.r, sizeof left.r);
        break;
    case VALUE_INT:
        if (left.i != right.i)
            fail_msg("row %zu, %s: %lld, not %lld", row, result_column(a, column)->key,
                     (long long)right.i, (long long)left.i);
        break;
    }
}

TEST_CASE(test_a_comparison_on_a_bundle_is_the_store_s)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    struct result *here = NULL, *there = NULL;
    struct error err;
    copy_make_store(from, 2, 1400);
    struct query_filter before = filter_of("", "host-0");
    before.until_ns = COPY_BASE_NS + 700 * COPY_SECOND;
    copy_exec(from, "UPDATE inference SET ttft_ns = 1000 + request * 7919 % 101");
    copy_save_baseline(from, "before", &before);
    copy_exec(from, "UPDATE inference SET ttft_ns = ttft_ns * 2 WHERE request >= 700");
    struct query_filter after = filter_of("", "host-0");
    after.since_ns = before.until_ns;
    bundle(from, to, &after, 1, 0);
    struct query query = {
        .kind = QUERY_COMPARE, .compare.other = after, .compare.baseline = {"before"}};
    if (copy_ask(from, &query, &here, &err) != STATUS_OK ||
        copy_ask(to, &query, &there, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    const struct value verdict = result_cell(here, 0, (unsigned)result_find(here, "verdict"));
    assert_true(verdict.type == VALUE_TEXT && verdict.text.size == 5);
    assert_memory_equal(verdict.text.bytes, "WORSE", 5); // of what waits twice as long
    assert_int_equal(result_row_count(here), result_row_count(there));
    assert_int_equal(result_column_count(here), result_column_count(there));
    for (size_t row = 0; row < result_row_count(here); row++)
        for (unsigned column = 0; column < result_column_count(here); column++)
            assert_same_cell(here, there, row, column);
    result_free(here);
    result_free(there);
}

// ---- Where it is imported ------------------------------------------------------------------

static struct copy_import import_all(const char *into, const char *path)
{
    struct copy_import counts;
    struct error err;
    expect_ok(copy_import(into, path, &counts, &err), &err);
    return counts;
}

// All samples of one model by its name, whatever its id: how many and how long.
#define SAMPLES_OF(model)                                                                          \
    "SELECT sum(s.count * 1000000 + length(s.samples)) FROM baseline_sample s JOIN name n"         \
    " ON n.id = s.model WHERE n.text = '" model "'"

TEST_CASE(test_baselines_come_and_names_are_mapped)
{
    const char *from = copy_path("s.db"), *into = copy_path("into.db");
    const struct query_filter all = {0}, some = {.until_ns = COPY_BASE_NS + 50 * COPY_SECOND};
    struct copy_import found;
    copy_make_store(from, 2, 100);
    copy_save_baseline(from, "june", &all);
    copy_save_baseline(from, "july", &some);
    copy_make_store(into, 1, 5);
    copy_exec(into, "UPDATE run SET uuid = 'ffffffff-0000-4000-8000-000000000000';"
                    "UPDATE name SET text = 'x' || text WHERE text LIKE 'm-%'");
    found = import_all(into, from);
    assert_int_equal(found.baselines, 2);
    assert_int_equal(found.baselines_there, 0);
    assert_int_equal(found.baselines_refused, 0);
    for (unsigned i = 0; i < 2; i++) {
        const char *const asked[] = {SAMPLES_OF("m-1"), SAMPLES_OF("m-2")};
        assert_true(copy_integer(from, asked[i]) > 0);
        assert_int_equal(copy_integer(into, asked[i]), copy_integer(from, asked[i]));
    }
    assert_int_equal(copy_integer(into, SAMPLES_OF("xm-1")), 0);

    struct query query = {.kind = QUERY_COMPARE, .compare.baseline = {"june", "july"}};
    struct result *here = NULL, *there = NULL;
    struct error err;
    assert_int_equal(copy_ask(from, &query, &there, &err), STATUS_OK);
    assert_int_equal(copy_ask(into, &query, &here, &err), STATUS_OK);
    assert_int_equal(result_row_count(here), result_row_count(there));
    result_free(here);
    result_free(there);

    found = import_all(into, from); // once more
    assert_int_equal(found.baselines, 0);
    assert_int_equal(found.baselines_there, 2);
    assert_int_equal(found.baselines_refused, 0);
}

TEST_CASE(test_baselines_that_stay_out)
{
    const char *from = copy_path("s.db"), *into = copy_path("into.db");
    const struct query_filter all = {0}, some = {.until_ns = COPY_BASE_NS + 50 * COPY_SECOND};
    struct copy_import found;
    copy_make_store(from, 2, 100);
    copy_make_store(into, 2, 100);
    copy_save_baseline(from, "june", &all);
    copy_save_baseline(into, "june", &some);
    const int64_t before = copy_integer(into, SAMPLES_OF("m-1"));
    found = import_all(into, from);
    assert_int_equal(found.baselines, 0);
    assert_int_equal(found.baselines_refused, 1);
    assert_non_null(strstr(found.baseline_note, "june: this store has another of that name"));
    assert_int_equal(copy_integer(into, SAMPLES_OF("m-1")), before);

    static const struct {
        const char *damage, *said;
    } damages[] = {
        {"UPDATE baseline SET name = 'a b'", "a name that no baseline can have"},
        {"UPDATE baseline SET name = char(27) || '[2J'", "a name that no baseline can have"},
        {"UPDATE baseline_sample SET samples = zeroblob(length(samples))", "damaged"},
        {"UPDATE baseline_sample SET model = 999000 + model", "a name that is not there"},
        {"UPDATE baseline SET fingerprint = '{'", "damaged"},
        {"UPDATE baseline SET filter = CAST(x'ff' AS TEXT)", "not UTF-8"},
    };
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        struct error err;
        struct result *answer = NULL;
        const char *copy = copy_path("damaged.db");
        (void)unlink(copy);
        assert_int_equal(copy_to(from, copy, NULL, &answer, &err), STATUS_OK);
        result_free(answer);
        copy_exec(copy, format_text("UPDATE baseline SET name = 'other'; %s", damages[i].damage));
        found = import_all(into, copy);
        if (found.baselines != 0 || found.baselines_refused != 1 ||
            !strstr(found.baseline_note, damages[i].said))
            fail_msg("%s: \"%s\"", damages[i].damage, found.baseline_note);
        assert_int_equal(copy_integer(into, "SELECT count(*) FROM baseline"), 1);
    }
}

TEST_MAIN_EACH(copy_set_up, copy_tear_down, test_those_as_narrow_go, test_of_a_window_all_go,
               test_names_that_read_like_filters, test_parts_of_names,
               test_a_comparison_on_a_bundle_is_the_store_s,
               test_baselines_come_and_names_are_mapped, test_baselines_that_stay_out)
