// The view of pipeline runs: what it marks, and what it says of that.
#include "tests/support/test.h"

#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

#define COLUMNS                                                                                    \
    "workload|chunk_bytes:bytes|bytes_h2d:bytes|overlap_ratio:ratio|duration_ns:ns|"               \
    "copy_starved_ns:ns|status\n"

static const struct grid *grid_of_view(void)
{
    return view_pipelines.panels[0].grid;
}

// Whether the first row is marked in that column.
static bool marks(const struct result *result, const char *key)
{
    const struct grid *grid = grid_of_view();
    bool marked = false, found = false;
    for (unsigned i = 0; i < grid->count; i++) {
        bool here = grid->deserves_look(result, 0, &grid->columns[i]);
        if (strcmp(grid->columns[i].key, key) == 0) {
            marked = here;
            found = true;
        }
    }
    assert_true(found);
    return marked;
}

TEST_CASE(marks_copies_that_show_and_engines_that_starve)
{
    static const struct {
        const char *row;
        bool overlap, starved;
    } cases[] = {
        {"encode|8|80|0.59999|1000000000|50000000|ok", true, false},
        {"encode|8|80|0.6|1000000000|51000000|ok", false, true},
        {"encode|8|80|0.0|1000000000|1000000000|ok", true, true},
        {"encode|8|9|0.1|1000000000|0|ok", true, false},
        {"encode|8|8|0.0|1000000000|0|ok", false, false}, // nothing for one chunk to overlap with
        {"encode|8|0|-|0|0|ok", false, false},            // ended before anything ran
        {"encode|8|80|-|1000000000|-|ok", false, false},  // not tracked
        {"encode|8|80|-|0|7|ok", false, false},           // no time to have a share of
        {"encode|8|80|-|-|7|ok", false, false},
        {"encode|-|-|0.3|-|-|ok", true, false},
        {"encode|8|80|0.9|99999999|90000000|ok", false, false}, // mostly its first slot
        {"encode|8|80|0.9|100000000|6000000|ok", false, true},
        {"encode|8|80|0.9|1000000000|900000000|error", false, false},
        {"encode|8|80|0.9|1000000000|900000000|cancelled", false, false},
        {"model_load|8|80|-|1000000000|900000000|ok", false, false}, // storage is what it is
        {"-|-|-|-|-|-|-", false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct result *result = fixture_result(format_text(COLUMNS "%s\n", cases[i].row));
        assert_int_equal(marks(result, "overlap_ratio"), cases[i].overlap);
        assert_int_equal(marks(result, "copy_starved_ns"), cases[i].starved);
        assert_false(marks(result, "exposed_copy_ns"));
        assert_false(marks(result, "pool_starvation_ratio")); // no fault by itself
        result_free(result);
    }
}

// What took next to no time need not hide.
TEST_CASE(marks_no_overlap_of_copies_that_take_no_time)
{
    static const struct {
        const char *exposed;
        bool marked;
    } cases[] = {{"50000000", false}, {"51000000", true}, {"0", false}, {"-", true}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct result *result = fixture_result(
            format_text("chunk_bytes:bytes|bytes_h2d:bytes|overlap_ratio:ratio|duration_ns:ns|"
                        "exposed_copy_ns:ns\n8|80|0.5|1000000000|%s\n",
                        cases[i].exposed));
        assert_int_equal(marks(result, "overlap_ratio"), cases[i].marked);
        result_free(result);
    }
}

static char *drawn(const char *rows)
{
    struct model *model = fixture_new(120, 20, scene_normal);
    fixture_answer(model, POLL_PIPELINES, rows);
    fixture_key(model, '5');
    char *screen = fixture_screen(model, false);
    fixture_free(model);
    return screen;
}

TEST_CASE(says_how_many_are_marked)
{
    static const struct {
        const char *rows, *said, *unsaid;
    } cases[] = {
        {COLUMNS "a|8|80|0.9|1000000000|0|ok\n", "90.0 %", "!"},
        {COLUMNS "a|8|80|0.5|1000000000|0|ok\nb|8|80|0.4|1000000000|0|ok\n",
         "! 2 under 60 % overlap ═", "starved over"},
        {COLUMNS "a|8|80|0.9|1000000000|99000000|ok\nb|8|80|0.9|1000000000|0|ok\n",
         "! 1 starved over 5 % ═", "under 60"},
        {COLUMNS "a|8|80|0.1|1000000000|99000000|ok\n",
         "! 1 under 60 % overlap · ! 1 starved over 5 % ═", "! 2"},
        {COLUMNS, "no run in the window: inferstat-worker encode makes one", "!"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *screen = drawn(cases[i].rows);
        assert_non_null(strstr(screen, cases[i].said));
        assert_null(strstr(screen, cases[i].unsaid));
        free(screen);
    }
}

// An answer of another version has other columns.
TEST_CASE(takes_answers_that_lack_everything)
{
    char *screen = drawn("other|overlap_ratio|copy_starved_ns\nx|text|text\n-|-|-\n");
    assert_non_null(strstr(screen, "time "));
    assert_null(strstr(screen, "!"));
    free(screen);
}

TEST_MAIN(marks_copies_that_show_and_engines_that_starve,
          marks_no_overlap_of_copies_that_take_no_time, says_how_many_are_marked,
          takes_answers_that_lack_everything)
