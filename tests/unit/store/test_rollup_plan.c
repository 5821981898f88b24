// Which pieces answer a window: the cases by hand, then what must hold of any.
#include "common/store/rollup/rollup_plan.h"

#include "tests/support/test.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
// 2026-03-01 00:00, a Sunday and the start of a month.
#define MARCH_NS INT64_C(1772323200000000000)

enum { PIECES_MAX = 8, GAPS_MAX = 3 };

struct expected {
    int level; // -1: records
    int64_t first, last;
};

struct period {
    struct rollup_span span;
    enum rollup_level level;
};

static const struct {
    const char *what;
    struct rollup_span window;
    int64_t step, expired; // expired 0: nothing has
    struct period gaps[GAPS_MAX];
    unsigned gap_count;
    struct expected pieces[PIECES_MAX];
    unsigned count;
    bool widened, lacking;
} cases[] = {
    {.what = "all of time is months",
     .window = {INT64_MIN, INT64_MAX},
     .pieces = {{ROLLUP_MONTH, INT64_MIN, INT64_MAX}},
     .count = 1},
    {.what = "one nanosecond is a record", .window = {5, 5}, .pieces = {{-1, 5, 5}}, .count = 1},
    {.what = "a minute",
     .window = {MARCH_NS, MARCH_NS + MINUTE_NS - 1},
     .pieces = {{ROLLUP_MINUTE, MARCH_NS, MARCH_NS + MINUTE_NS - 1}},
     .count = 1},
    {.what = "a minute less its last nanosecond",
     .window = {MARCH_NS, MARCH_NS + MINUTE_NS - 2},
     .pieces = {{-1, MARCH_NS, MARCH_NS + MINUTE_NS - 2}},
     .count = 1},
    {.what = "edges of records, minutes, an hour",
     .window = {MARCH_NS - MINUTE_NS - 1, MARCH_NS + HOUR_NS + 9},
     .pieces = {{-1, MARCH_NS - MINUTE_NS - 1, MARCH_NS - MINUTE_NS - 1},
                {ROLLUP_MINUTE, MARCH_NS - MINUTE_NS, MARCH_NS - 1},
                {ROLLUP_HOUR, MARCH_NS, MARCH_NS + HOUR_NS - 1},
                {-1, MARCH_NS + HOUR_NS, MARCH_NS + HOUR_NS + 9}},
     .count = 4},
    {.what = "steps keep hours apart",
     .window = {MARCH_NS, MARCH_NS + 2 * HOUR_NS - 1},
     .step = 90 * MINUTE_NS,
     .pieces = {{ROLLUP_HOUR, MARCH_NS, MARCH_NS + HOUR_NS - 1},
                {ROLLUP_MINUTE, MARCH_NS + HOUR_NS, MARCH_NS + 2 * HOUR_NS - 1}},
     .count = 2},
    {.what = "a gap of minutes leaves the hour",
     .window = {MARCH_NS, MARCH_NS + HOUR_NS + MINUTE_NS - 1},
     .gaps = {{{MARCH_NS, MARCH_NS + DAY_NS - 1}, ROLLUP_MINUTE}},
     .gap_count = 1,
     .pieces = {{ROLLUP_HOUR, MARCH_NS, MARCH_NS + HOUR_NS - 1},
                {-1, MARCH_NS + HOUR_NS, MARCH_NS + HOUR_NS + MINUTE_NS - 1}},
     .count = 2},
    {.what = "a gap of hours goes for minutes, too",
     .window = {MARCH_NS, MARCH_NS + HOUR_NS - 1},
     .gaps = {{{MARCH_NS + 7, MARCH_NS + 7}, ROLLUP_HOUR}},
     .gap_count = 1,
     .pieces = {{-1, MARCH_NS, MARCH_NS + MINUTE_NS - 1},
                {ROLLUP_MINUTE, MARCH_NS + MINUTE_NS, MARCH_NS + HOUR_NS - 1}},
     .count = 2},
    {.what = "expired records of a minute: the minute",
     .window = {MARCH_NS + 5, MARCH_NS + MINUTE_NS - 1},
     .expired = MARCH_NS + DAY_NS,
     .pieces = {{ROLLUP_MINUTE, MARCH_NS, MARCH_NS + MINUTE_NS - 1}},
     .count = 1,
     .widened = true},
    {.what = "expired, and no minutes: the hour, once",
     .window = {MARCH_NS + 5, MARCH_NS + 40 * MINUTE_NS},
     .expired = MARCH_NS + DAY_NS,
     .gaps = {{{MARCH_NS, MARCH_NS + 9 * MINUTE_NS}, ROLLUP_MINUTE}},
     .gap_count = 1,
     .pieces = {{ROLLUP_HOUR, MARCH_NS, MARCH_NS + HOUR_NS - 1}},
     .count = 1,
     .widened = true},
    {.what = "expired, and nothing left",
     .window = {MARCH_NS + 5, MARCH_NS + 40 * MINUTE_NS},
     .expired = MARCH_NS + DAY_NS,
     .gaps = {{{MARCH_NS, MARCH_NS + 9 * MINUTE_NS}, ROLLUP_MONTH}},
     .gap_count = 1,
     .pieces = {{-1, MARCH_NS + 5, MARCH_NS + 10 * MINUTE_NS - 1},
                {ROLLUP_MINUTE, MARCH_NS + 10 * MINUTE_NS, MARCH_NS + 41 * MINUTE_NS - 1}},
     .count = 2,
     .widened = true,
     .lacking = true},
    {.what = "records from the expiry on",
     .window = {MARCH_NS + HOUR_NS + 5, MARCH_NS + HOUR_NS + 9},
     .expired = MARCH_NS + HOUR_NS,
     .gaps = {{{MARCH_NS, MARCH_NS + DAY_NS}, ROLLUP_DAY}},
     .gap_count = 1,
     .pieces = {{-1, MARCH_NS + HOUR_NS + 5, MARCH_NS + HOUR_NS + 9}},
     .count = 1},
};

static struct rollup_plan plan;
static struct period gaps[6]; // of the question
static size_t gap_count;

static int by_first(const void *left, const void *right)
{
    const struct period *a = left, *b = right;
    return (a->span.first_ns > b->span.first_ns) - (a->span.first_ns < b->span.first_ns);
}

static void make(const struct rollup_question *question)
{
    struct gap_set set = {{0}, {0}, {0}};
    struct rollup_question asked = *question;
    asked.gaps = &set;
    qsort(gaps, gap_count, sizeof *gaps, by_first);
    for (size_t i = 0; i < gap_count; i++)
        assert_int_equal(
            gap_set_add(&set, gaps[i].level, gaps[i].span.first_ns, gaps[i].span.last_ns + 1),
            STATUS_OK);
    assert_int_equal(rollup_plan_make(&plan, &asked), STATUS_OK);
    gap_set_deinit(&set);
}

TEST_CASE(test_cases)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct rollup_question question = {
            .window = cases[i].window,
            .step_ns = cases[i].step,
            .expired_ns = cases[i].expired ? cases[i].expired : INT64_MIN,
        };
        gap_count = cases[i].gap_count;
        memcpy(gaps, cases[i].gaps, sizeof cases[i].gaps);
        make(&question);
        if (plan.count != cases[i].count || plan.is_widened != cases[i].widened ||
            plan.is_lacking != cases[i].lacking)
            fail_msg("%s: %zu pieces, widened %d, lacking %d", cases[i].what, plan.count,
                     plan.is_widened, plan.is_lacking);
        for (size_t p = 0; p < plan.count; p++) {
            const struct rollup_piece *piece = &plan.pieces[p];
            const struct expected *expected = &cases[i].pieces[p];
            if ((piece->is_raw ? -1 : (int)piece->level) != expected->level ||
                piece->span.first_ns != expected->first || piece->span.last_ns != expected->last)
                fail_msg("%s: piece %zu is %d %lld..%lld", cases[i].what, p,
                         piece->is_raw ? -1 : (int)piece->level, (long long)piece->span.first_ns,
                         (long long)piece->span.last_ns);
        }
    }
}

static int64_t bucket_last(enum rollup_level level, int64_t bucket)
{
    const int64_t next = rollup_next(level, bucket);
    return next == INT64_MAX ? next : next - 1;
}

static bool overlap(struct rollup_span a, struct rollup_span b)
{
    return a.first_ns <= b.last_ns && b.first_ns <= a.last_ns;
}

static bool is_forbidden(enum rollup_level level, struct rollup_span bucket)
{
    for (size_t i = 0; i < gap_count; i++)
        if (gaps[i].level >= level && overlap(gaps[i].span, bucket))
            return true;
    return false;
}

static struct rollup_span bucket_of(enum rollup_level level, int64_t time_ns)
{
    const int64_t first = rollup_bucket(level, time_ns);
    return (struct rollup_span){first, bucket_last(level, first)};
}

// The largest part around a time that the window and its step leave.
static struct rollup_span room_of(const struct rollup_question *question, int64_t time_ns)
{
    struct rollup_span room = question->window;
    if (question->step_ns == 0)
        return room;
    const int64_t start = rollup_step(question->step_ns, time_ns);
    if (start > room.first_ns)
        room.first_ns = start;
    if (start + (question->step_ns - 1) < room.last_ns)
        room.last_ns = start + (question->step_ns - 1);
    return room;
}

static bool is_inside(struct rollup_span inner, struct rollup_span outer)
{
    return inner.first_ns >= outer.first_ns && inner.last_ns <= outer.last_ns;
}

static bool is_usable(const struct rollup_question *question, enum rollup_level level,
                      int64_t time_ns)
{
    const struct rollup_span bucket = bucket_of(level, time_ns);
    return is_inside(bucket, room_of(question, time_ns)) && !is_forbidden(level, bucket);
}

// What must hold of one time of the window, whatever piece it is in.
static void check_time(const struct rollup_question *question, int64_t time_ns)
{
    size_t place = 0;
    while (place < plan.count && plan.pieces[place].span.last_ns < time_ns)
        place++;
    assert_true(place < plan.count && plan.pieces[place].span.first_ns <= time_ns);
    const struct rollup_piece *piece = &plan.pieces[place];
    if (!piece->is_raw) {
        const struct rollup_span bucket = bucket_of(piece->level, time_ns);
        assert_true(is_inside(bucket, piece->span));
        assert_false(is_forbidden(piece->level, bucket));
        if (!is_inside(bucket, room_of(question, time_ns)))
            assert_true(plan.is_widened && bucket.first_ns < question->expired_ns);
    } else if (time_ns < question->expired_ns) {
        assert_true(plan.is_lacking);
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++)
            assert_true(is_forbidden((enum rollup_level)level,
                                     bucket_of((enum rollup_level)level, time_ns)));
    }
    // No coarser bucket would have done.
    for (unsigned level = piece->is_raw ? 0 : piece->level + 1U; level < ROLLUP_LEVEL_COUNT;
         level++)
        assert_false(is_usable(question, (enum rollup_level)level, time_ns));
}

static void check_order(const struct rollup_question *question)
{
    int64_t next = question->window.first_ns;
    for (size_t i = 0; i < plan.count; i++) {
        const struct rollup_span span = plan.pieces[i].span;
        assert_true(span.first_ns <= span.last_ns);
        if (i == 0 && plan.is_widened)
            assert_true(span.first_ns <= next);
        else
            assert_true(span.first_ns == next);
        next = span.last_ns + 1;
    }
    assert_true(plan.is_widened ? next - 1 >= question->window.last_ns
                                : next - 1 == question->window.last_ns);
}

static int64_t pick(uint64_t *random, int64_t room)
{
    return (int64_t)(test_random(random) % (uint64_t)room);
}

// A time near March, often at the edge of a bucket.
static int64_t pick_time(uint64_t *random)
{
    int64_t time_ns = MARCH_NS + pick(random, 100 * DAY_NS) - 50 * DAY_NS;
    const unsigned level = (unsigned)pick(random, 6);
    if (level < ROLLUP_LEVEL_COUNT)
        time_ns = rollup_bucket((enum rollup_level)level, time_ns) + pick(random, 3) - 1;
    return time_ns;
}

static struct rollup_span pick_span(uint64_t *random)
{
    const int64_t a = pick_time(random), b = pick_time(random);
    return a < b ? (struct rollup_span){a, b} : (struct rollup_span){b, a};
}

TEST_CASE(test_any)
{
    static const int64_t steps[] = {MINUTE_NS, 7 * MINUTE_NS, HOUR_NS, DAY_NS, 7 * DAY_NS};
    uint64_t random = 20260301;
    for (unsigned round = 0; round < 1500; round++) {
        struct rollup_question question = {.window = pick_span(&random), .expired_ns = INT64_MIN};
        gap_count = (size_t)pick(&random, 1 + COUNT_OF(gaps));
        if (pick(&random, 2)) {
            question.step_ns = steps[pick(&random, COUNT_OF(steps))];
            if (question.step_ns < HOUR_NS &&
                question.window.last_ns - question.window.first_ns > DAY_NS)
                question.window.last_ns = question.window.first_ns + DAY_NS;
        }
        if (pick(&random, 2))
            question.expired_ns = pick_time(&random);
        for (size_t i = 0; i < gap_count; i++)
            gaps[i] = (struct period){pick_span(&random),
                                      (enum rollup_level)pick(&random, ROLLUP_LEVEL_COUNT)};
        make(&question);
        check_order(&question);
        check_time(&question, question.window.first_ns);
        check_time(&question, question.window.last_ns);
        for (unsigned i = 0; i < 40; i++) {
            const int64_t time_ns = pick_time(&random);
            if (time_ns >= question.window.first_ns && time_ns <= question.window.last_ns)
                check_time(&question, time_ns);
        }
    }
}

// A year, whatever its edges, is not more buckets than its calendar needs.
TEST_CASE(test_size)
{
    uint64_t random = 7;
    gap_count = 0;
    for (unsigned round = 0; round < 200; round++) {
        const int64_t first = pick_time(&random);
        const struct rollup_question question = {
            .window = {first, first + 365 * DAY_NS + pick(&random, DAY_NS)},
            .expired_ns = INT64_MIN,
        };
        make(&question);
        int64_t buckets[ROLLUP_LEVEL_COUNT] = {0}, raw_ns = 0;
        for (size_t i = 0; i < plan.count; i++) {
            const struct rollup_piece *piece = &plan.pieces[i];
            if (piece->is_raw)
                raw_ns += piece->span.last_ns - piece->span.first_ns + 1;
            for (int64_t at = piece->span.first_ns; !piece->is_raw && at <= piece->span.last_ns;
                 at = rollup_next(piece->level, at))
                buckets[piece->level]++;
        }
        assert_true(raw_ns < 2 * MINUTE_NS);
        assert_true(buckets[ROLLUP_MINUTE] <= 2 * 59);
        assert_true(buckets[ROLLUP_HOUR] <= 2 * 23);
        assert_true(buckets[ROLLUP_DAY] <= 2 * 30);
        assert_true(buckets[ROLLUP_MONTH] <= 12);
    }
}

TEST_CASE(test_steps)
{
    assert_true(rollup_step(10, 25) == 20);
    assert_true(rollup_step(10, -1) == -10);
    assert_true(rollup_step(10, -10) == -10);
    assert_true(rollup_step(INT64_MAX, INT64_MIN + 1) == -INT64_MAX);
    assert_true(rollup_step(INT64_MAX, INT64_MIN) == INT64_MIN);
    assert_true(rollup_step(1000, INT64_MIN) == INT64_MIN);
}

TEST_FIXTURE(tear_down)
{
    rollup_plan_deinit(&plan);
    return 0;
}

TEST_MAIN_ONCE(NULL, tear_down, test_cases, test_any, test_size, test_steps)
