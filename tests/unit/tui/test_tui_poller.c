// The poller over a remote made up here: what it asks and when, what it hands over,
// and that it ends while nobody answers.
#include "tests/support/test.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "client/tui/poller.h"
#include "tests/support/tui_fixture.h"

// What the remote below does; guarded by its lock.
static struct {
    pthread_mutex_t lock;
    unsigned queries;      // asked so far
    unsigned clears;       // of those, to clear
    unsigned stages;       // of those, for the stages of a load
    char filter[64];       // the last query's host
    char run[64];          // the last stages' run
    enum status answer;    // to every query
    enum query_kind fails; // this kind is answered with STATUS_CORRUPT
    bool silent;           // no answer until woken
    useconds_t takes_us;   // for an answer
    uint64_t cpu_ns;       // that an answer says it cost
    int wake_fd;
    unsigned live; // inferences to tell of
    bool hurries;  // what is waited for is over at once
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic long clock_ahead_s;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    const int result = __real_clock_gettime(clock, out);
    out->tv_sec += clock_ahead_s;
    return result;
}

// What has come in, over several takes.
static struct {
    unsigned answers[POLL_COUNT], nothing[POLL_COUNT], rounds, clears;
    struct error last_round, last_clear;
    uint64_t cleared;
    uint32_t generations[POLL_COUNT];
} seen;

TEST_FIXTURE(reset)
{
    (void)pthread_mutex_lock(&world.lock);
    world.queries = world.clears = world.stages = world.live = 0;
    world.filter[0] = world.run[0] = '\0';
    world.answer = STATUS_OK;
    world.fails = QUERY_KIND_COUNT;
    world.silent = world.hurries = false;
    world.takes_us = 0;
    world.cpu_ns = 0;
    world.wake_fd = -1;
    (void)pthread_mutex_unlock(&world.lock);
    memset(&seen, 0, sizeof seen);
    return 0;
}

struct remote {
    int unused;
};

enum status remote_open(struct remote **out, const struct remote_target *target, struct error *err)
{
    if (target->db)
        return error_set(err, STATUS_NOT_FOUND, "no such file");
    *out = calloc(1, sizeof **out);
    return *out ? STATUS_OK : STATUS_NOMEM;
}

void remote_close(struct remote *remote)
{
    free(remote);
}

void remote_wake_on(struct remote *remote, int wake_fd)
{
    (void)remote;
    world.wake_fd = wake_fd;
}

const char *remote_name(const struct remote *remote)
{
    (void)remote;
    return "made up";
}

bool remote_is_file(const struct remote *remote)
{
    (void)remote;
    return false;
}

static struct result *answer_to(const struct query *query)
{
    if (query->kind == QUERY_CLEAR)
        return fixture_result("cleared\n17\n");
    return fixture_result("figure\n1\n");
}

enum status remote_query(struct remote *remote, const struct query *query, struct result **out,
                         struct error *err)
{
    (void)remote;
    (void)pthread_mutex_lock(&world.lock);
    world.queries++;
    world.clears += query->kind == QUERY_CLEAR;
    if (query->kind == QUERY_RECORDS && query->records.kind == RECORD_KIND_LOAD_STAGE) {
        world.stages++;
        strcpy(world.run, query->filter.by[QUERY_BY_RUN]);
    } else {
        strcpy(world.filter, query->filter.by[QUERY_BY_HOST]);
    }
    enum status status = query->kind == world.fails ? STATUS_CORRUPT : world.answer;
    struct pollfd wake = {.fd = world.silent ? world.wake_fd : -1, .events = POLLIN};
    bool silent = world.silent;
    (void)pthread_mutex_unlock(&world.lock);
    (void)usleep(world.takes_us);
    if (silent) {
        (void)poll(&wake, 1, 60000);
        return error_set(err, STATUS_CANCELLED, "woken");
    }
    if (status != STATUS_OK)
        return error_set(err, status, "as told");
    *out = answer_to(query);
    result_set_cpu_ns(*out, world.cpu_ns);
    return STATUS_OK;
}

enum status remote_subscribe(struct remote *remote, uint32_t kinds, enum remote_live_mode mode,
                             struct error *err)
{
    (void)remote;
    (void)err;
    assert_int_equal(kinds, queries_kinds());
    assert_int_equal(mode, REMOTE_LIVE_NOTIFICATIONS);
    return STATUS_OK;
}

enum status remote_live_next(struct remote *remote, uint64_t timeout_ns, int wake_fd,
                             enum record_kind *kind, struct result **out, uint64_t *missed,
                             struct error *err)
{
    (void)remote;
    (void)err;
    (void)pthread_mutex_lock(&world.lock);
    bool tells = world.live > 0;
    world.live -= tells;
    clock_ahead_s += world.hurries && !tells ? (long)(timeout_ns / 1000000000) + 1 : 0;
    (void)pthread_mutex_unlock(&world.lock);
    if (tells) {
        *kind = RECORD_KIND_INFERENCE;
        *out = NULL;
        *missed = 0;
        return STATUS_OK;
    }
    struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
    return poll(&wake, 1, 5) > 0 ? STATUS_CANCELLED : STATUS_TIMEOUT;
}

static const char load_answer[] = "run|model|started_ns|duration_ns\nabcdef|m|9000000000|5\n";

// What is asked for: all queries, of a load.
static struct queries_scope all(const char *host)
{
    struct queries_scope scope = {.window = WINDOW_DEFAULT, .wanted = POLL_ALL};
    struct result *loads = fixture_result(load_answer);
    strcpy(scope.filter.by[QUERY_BY_HOST], host);
    strcpy(scope.machine.by[QUERY_BY_HOST], "gpu-17");
    for (unsigned subject = 0; subject < SUBJECT_COUNT; subject++)
        (void)queries_select(&scope, (enum queries_subject)subject, loads, 0);
    result_free(loads);
    return scope;
}

static struct poller *open_feed(const struct queries_scope *scope, double interval_seconds)
{
    struct poller *poller;
    struct remote_target target = {0};
    const struct queries_scope everything = all("");
    assert_int_equal(poller_open(&poller, &target, interval_seconds, NULL), STATUS_OK);
    poller_set_scope(poller, scope ? scope : &everything);
    assert_int_equal(poller_start(poller, NULL), STATUS_OK);
    return poller;
}

// Takes news once they come; fails the test where none do.
static void take(struct poller *poller)
{
    struct pollfd news_wait = {.fd = poller_fd(poller), .events = POLLIN};
    assert_int_equal(poll(&news_wait, 1, 60000), 1);
    struct poller_news news;
    poller_consume(poller, &news);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        seen.answers[polled] += news.answered[polled];
        seen.nothing[polled] += news.answered[polled] && !news.results[polled];
        if (news.answered[polled])
            seen.generations[polled] = news.generations[polled];
        result_free(news.results[polled]);
    }
    seen.rounds += news.round;
    seen.clears += news.change;
    if (news.round)
        seen.last_round = news.round_error;
    if (news.change)
        seen.last_clear = news.change_error;
    seen.cleared += news.cleared;
}

static void take_rounds(struct poller *poller, unsigned rounds)
{
    while (seen.rounds < rounds)
        take(poller);
}

static unsigned queries(void)
{
    (void)pthread_mutex_lock(&world.lock);
    unsigned count = world.queries;
    (void)pthread_mutex_unlock(&world.lock);
    return count;
}

// While the poller runs.
#define CHANGE(change)                                                                             \
    ((void)pthread_mutex_lock(&world.lock), (change), (void)pthread_mutex_unlock(&world.lock))

TEST_CASE(asks_everything_at_first)
{
    const struct queries_scope scope = all("gpu-17");
    struct poller *poller = open_feed(&scope, 3600);
    assert_string_equal(poller_name(poller), "made up");
    take_rounds(poller, 1);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        assert_int_equal(seen.answers[polled], 1);
    assert_int_equal(seen.last_round.status, STATUS_OK);
    poller_close(poller);
    assert_string_equal(world.filter, "gpu-17");
    assert_string_equal(world.run, "abcdef");
    assert_int_equal(world.queries, POLL_COUNT);
}

TEST_CASE(asks_again_when_told)
{
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    poller_query_now(poller, POLL_ALL);
    take_rounds(poller, 2);
    assert_int_equal(seen.answers[POLL_RUNS], 2);
    poller_close(poller);
}

// What reads much rests while rounds go on, but not when it is asked for.
TEST_CASE(costly_queries_rest)
{
    struct queries_scope scope = all("");
    scope.wanted = POLL(WINDOW) | POLL(FLEET);
    struct poller *poller = open_feed(&scope, 0.05);
    take_rounds(poller, 3);
    assert_true(seen.answers[POLL_WINDOW] >= 3);
    assert_int_equal(seen.answers[POLL_FLEET], 1);
    poller_query_now(poller, POLL(FLEET));
    while (seen.answers[POLL_FLEET] < 2)
        take(poller);
    poller_close(poller);
}

// A query that waited for a busy machine cost little: it does not rest for what it waited.
TEST_CASE(queries_rest_by_what_they_cost)
{
    struct queries_scope scope = all("");
    scope.wanted = POLL(DEVICES);
    world.takes_us = 40000; // would rest for 10 s
    world.cpu_ns = 1000;
    struct poller *poller = open_feed(&scope, 0.05);
    take_rounds(poller, 3);
    assert_int_equal(seen.answers[POLL_DEVICES], 3);
    poller_close(poller);
}

// What a window was that has ended is asked for once, and then now and then.
TEST_CASE(ended_windows_rest)
{
    struct queries_scope scope = all("");
    scope.wanted = POLL(NOW) | POLL(ALERTS);
    scope.window.until_ns = FIXTURE_WALL_NS;
    struct poller *poller = open_feed(&scope, 0.05);
    take_rounds(poller, 3);
    assert_int_equal(seen.answers[POLL_ALERTS], 3);
    assert_int_equal(seen.answers[POLL_NOW], 1);
    poller_close(poller);
}

// New records wake what rests once it has rested, not at the next interval: here a chart of a
// window that does not move.
TEST_CASE(records_are_shown_after_the_rest)
{
    struct queries_scope scope = all("");
    scope.wanted = POLL(TOKENS) | POLL(ALERTS);
    scope.now_ns = FIXTURE_WALL_NS;
    world.takes_us = 100; // it rests for half a second or more, thirty at most
    struct poller *poller = open_feed(&scope, 3600);
    take_rounds(poller, 1);
    CHANGE((world.live = 1, world.hurries = true));
    take_rounds(poller, 2);
    assert_int_equal(seen.answers[POLL_TOKENS], 2);
    assert_int_equal(seen.answers[POLL_ALERTS], 1);
    poller_close(poller);
}

// What the view does not show is not asked for, until it is.
TEST_CASE(asks_only_what_is_wanted)
{
    struct queries_scope scope = all("");
    scope.wanted = POLL(SUMMARY) | POLL(LOADS) | POLL(STAGES);
    scope.subjects[SUBJECT_LOAD].since_ns = 0;
    struct poller *poller = open_feed(&scope, 3600);
    take_rounds(poller, 1);
    assert_int_equal(queries(), 2); // there are no stages without a load
    assert_int_equal(seen.nothing[POLL_STAGES], 1);
    CHANGE(world.live = 1); // an inference, which is not shown
    take_rounds(poller, 2);
    assert_int_equal(seen.answers[POLL_SUMMARY], 2);
    assert_int_equal(seen.answers[POLL_INFERENCES], 0);
    poller_query_now(poller, POLL(INFERENCES));
    take_rounds(poller, 3);
    assert_int_equal(seen.answers[POLL_INFERENCES], 1);
    poller_close(poller);
}

// From the round after it on, and what a clear covers too.
TEST_CASE(asks_under_a_new_filter)
{
    struct queries_scope scope = all("gpu-18");
    scope.generations[POLL_RUNS] = 7;
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    assert_string_equal(world.filter, "");
    assert_int_equal(seen.generations[POLL_RUNS], 0);
    poller_set_scope(poller, &scope);
    poller_query_now(poller, POLL_ALL);
    take_rounds(poller, 2);
    assert_int_equal(seen.answers[POLL_RUNS], 2);
    assert_int_equal(seen.generations[POLL_RUNS], 7);
    (void)pthread_mutex_lock(&world.lock);
    assert_string_equal(world.filter, "gpu-18");
    world.filter[0] = '\0';
    (void)pthread_mutex_unlock(&world.lock);
    poller_change(poller, &(struct query){.kind = QUERY_CLEAR, .filter = scope.filter});
    while (seen.clears == 0)
        take(poller);
    poller_close(poller);
    assert_string_equal(world.filter, "gpu-18");
}

TEST_CASE(asks_again_with_the_interval)
{
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    poller_set_interval(poller, 0.1, false);
    take_rounds(poller, 4);
    assert_true(seen.answers[POLL_SUMMARY] >= 2);
    poller_close(poller);
}

// New records are asked for at once, and only what they have made stale.
TEST_CASE(live_records_make_it_ask)
{
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    CHANGE(world.live = 1);
    take_rounds(poller, 2);
    assert_int_equal(seen.answers[POLL_INFERENCES], 2);
    assert_int_equal(seen.answers[POLL_SUMMARY], 2);
    assert_int_equal(seen.answers[POLL_LOADS], 1);
    poller_close(poller);
}

// A thousand records in a row are not a thousand rounds.
TEST_CASE(many_records_make_few_rounds)
{
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    CHANGE(world.live = 1000);
    take_rounds(poller, 2);
    for (bool over = false; !over;) {
        (void)pthread_mutex_lock(&world.lock);
        over = world.live == 0;
        (void)pthread_mutex_unlock(&world.lock);
    }
    poller_close(poller);
    assert_true(queries() < 1000);
}

// A clear is made also in a pause, and after what was under way: with the second
// one answered, nothing that came before it is still to be asked.
TEST_CASE(a_pause_asks_nothing_until_told)
{
    struct poller *poller = open_feed(NULL, 0.1);
    take_rounds(poller, 1);
    poller_set_interval(poller, 0.1, true);
    for (unsigned clears = 1; clears <= 2; clears++) {
        poller_change(poller, &(struct query){.kind = QUERY_CLEAR});
        while (seen.clears < clears)
            take(poller);
    }
    unsigned before = queries();
    (void)poll(NULL, 0, 300);
    assert_int_equal(queries(), before);
    poller_query_now(poller, POLL_ALL);
    take_rounds(poller, seen.rounds + 1);
    assert_int_equal(queries(), before + POLL_COUNT);
    poller_close(poller);
}

TEST_CASE(one_failure_does_not_stop_the_others)
{
    world.fails = QUERY_OVERVIEW;
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    assert_int_equal(seen.answers[POLL_OVERVIEW], 0);
    assert_int_equal(seen.answers[POLL_RUNS], 1);
    assert_int_equal(seen.last_round.status, STATUS_CORRUPT);
    assert_string_equal(seen.last_round.text, "as told");
    poller_close(poller);
}

TEST_CASE(nobody_there_ends_the_round_and_is_tried_again)
{
    world.answer = STATUS_UNREACHABLE;
    struct poller *poller = open_feed(NULL, 0.1);
    take_rounds(poller, 1);
    assert_int_equal(seen.last_round.status, STATUS_UNREACHABLE);
    CHANGE(world.answer = STATUS_OK);
    while (seen.last_round.status != STATUS_OK)
        take(poller);
    assert_true(seen.answers[POLL_SUMMARY] >= 1);
    poller_close(poller);
}

// Also what rests, as what is shown may be about something else by now.
TEST_CASE(what_a_broken_round_left_out_is_asked_in_the_next)
{
    struct queries_scope scope = all("");
    scope.wanted = POLL(SUMMARY) | POLL(FLEET);
    struct poller *poller = open_feed(&scope, 0.5);
    take_rounds(poller, 1);
    CHANGE(world.answer = STATUS_TIMEOUT);
    scope.generations[POLL_FLEET] = 7;
    poller_set_scope(poller, &scope);
    poller_query_now(poller, POLL_ALL);
    while (seen.last_round.status == STATUS_OK)
        take(poller);
    CHANGE(world.answer = STATUS_OK);
    while (seen.last_round.status != STATUS_OK)
        take(poller);
    assert_int_equal(seen.generations[POLL_FLEET], 7);
    poller_close(poller);
}

TEST_CASE(no_data_is_an_answer)
{
    world.answer = STATUS_NO_DATA;
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    assert_int_equal(seen.last_round.status, STATUS_OK);
    assert_int_equal(seen.nothing[POLL_SUMMARY], 1);
    poller_close(poller);
}

TEST_CASE(says_what_was_cleared)
{
    struct poller *poller = open_feed(NULL, 3600);
    take_rounds(poller, 1);
    poller_change(poller, &(struct query){.kind = QUERY_CLEAR});
    while (seen.clears == 0)
        take(poller);
    assert_int_equal(seen.cleared, 17);
    assert_int_equal(seen.last_clear.status, STATUS_OK);
    CHANGE(world.answer = STATUS_DENIED);
    poller_change(poller, &(struct query){.kind = QUERY_CLEAR});
    while (seen.clears == 1)
        take(poller);
    assert_int_equal(seen.last_clear.status, STATUS_DENIED);
    poller_close(poller);
    assert_int_equal(world.clears, 2);
}

// With an answer that never comes, the end would wait for a minute.
TEST_CASE(ends_while_nobody_answers)
{
    world.silent = true;
    struct poller *poller = open_feed(NULL, 2);
    while (queries() == 0)
        (void)poll(NULL, 0, 1);
    poller_close(poller);
}

TEST_CASE(ends_before_it_started)
{
    struct poller *poller;
    struct remote_target target = {0};
    assert_int_equal(poller_open(&poller, &target, 2, NULL), STATUS_OK);
    poller_close(poller);
    poller_close(NULL);

    struct error err;
    struct remote_target file = {.db = "nowhere"};
    assert_int_equal(poller_open(&poller, &file, 2, &err), STATUS_NOT_FOUND);
    assert_string_equal(err.text, "no such file");
}

TEST_MAIN_EACH(reset, NULL, asks_everything_at_first, asks_again_when_told,
               asks_only_what_is_wanted, costly_queries_rest, queries_rest_by_what_they_cost,
               ended_windows_rest, records_are_shown_after_the_rest, asks_under_a_new_filter,
               asks_again_with_the_interval, live_records_make_it_ask, many_records_make_few_rounds,
               a_pause_asks_nothing_until_told, one_failure_does_not_stop_the_others,
               nobody_there_ends_the_round_and_is_tried_again,
               what_a_broken_round_left_out_is_asked_in_the_next, no_data_is_an_answer,
               says_what_was_cleared, ends_while_nobody_answers, ends_before_it_started)
