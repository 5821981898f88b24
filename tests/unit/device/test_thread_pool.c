// Tasks one after another, most of them shorter than it takes a thread to start: threads that come
// late must neither repeat a part of an earlier task nor take one of a later task twice.  A thread
// that shares the owner's core moves, and stays allowed everywhere.
#include "server/device/cpu/thread_pool.h"

#include <sched.h>
#include <stdatomic.h>

#include "tests/support/test.h"

enum { THREADS = 4, PARTS_MAX = 64, TASKS = 10000, ROUNDS = 20 };

struct sums {
    unsigned int added;
    unsigned int of[PARTS_MAX];
};

static void add(void *context, size_t part, unsigned int thread)
{
    struct sums *sums = context;
    assert_true(thread < THREADS);
    const unsigned int before = sums->of[part];
    // As long as another thread needs to start.
    for (volatile unsigned int i = 0; i < sums->added % 8 * 100; i++) {
    }
    sums->of[part] = before + sums->added;
}

TEST_CASE(test_every_part_runs_once)
{
    struct error err = {0};
    struct thread_pool *pool = NULL;
    struct sums sums = {0};
    unsigned int expected[PARTS_MAX] = {0};
    uint64_t seed = 3;
    expect_ok(thread_pool_new(&pool, THREADS, &err), &err);
    for (unsigned int task = 0; task < TASKS; task++) {
        const size_t parts = test_random(&seed) % (PARTS_MAX + 1);
        sums.added = task;
        thread_pool_run(pool, add, &sums, parts);
        for (size_t i = 0; i < parts; i++)
            expected[i] += task;
        assert_memory_equal(sums.of, expected, sizeof expected);
    }
    thread_pool_free(pool);
}

struct meeting {
    cpu_set_t all;
    int core; // the owner's
    bool shares_core;
    atomic_bool has_other;
    int found; // core of the other thread
};

// The owner waits for the other thread, which goes to the owner's core or tells where it is.
static void meet(void *context, size_t part, unsigned int thread)
{
    (void)part;
    struct meeting *meeting = context;
    if (thread == 0) {
        while (!atomic_load(&meeting->has_other))
            (void)sched_yield();
        return;
    }
    meeting->found = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)meeting->core, &one);
    if (meeting->shares_core) {
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(sched_setaffinity(0, sizeof meeting->all, &meeting->all), 0);
    } else {
        cpu_set_t allowed;
        assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
        assert_true(CPU_EQUAL(&allowed, &meeting->all));
    }
    atomic_store(&meeting->has_other, true);
}

static void run_meeting(struct thread_pool *pool, struct meeting *meeting, bool shares_core)
{
    meeting->shares_core = shares_core;
    atomic_store(&meeting->has_other, false);
    thread_pool_run(pool, meet, meeting, 2);
}

TEST_CASE(test_a_thread_leaves_the_owners_core)
{
    struct error err = {0};
    struct thread_pool *pool = NULL;
    struct meeting meeting = {.core = sched_getcpu()};
    assert_int_equal(sched_getaffinity(0, sizeof meeting.all, &meeting.all), 0);
    if (CPU_COUNT(&meeting.all) < 2)
        skip();
    cpu_set_t one, others = meeting.all;
    CPU_ZERO(&one);
    CPU_SET((size_t)meeting.core, &one);
    CPU_CLR((size_t)meeting.core, &others);
    unsigned int apart = 0;
    for (unsigned int round = 0; round < ROUNDS; round++) {
        // A new thread runs where its maker may: elsewhere, so that it has not moved before.
        assert_int_equal(sched_setaffinity(0, sizeof others, &others), 0);
        expect_ok(thread_pool_new(&pool, 2, &err), &err);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        run_meeting(pool, &meeting, true);
        run_meeting(pool, &meeting, false);
        apart += meeting.found != meeting.core;
        thread_pool_free(pool);
    }
    assert_int_equal(sched_setaffinity(0, sizeof meeting.all, &meeting.all), 0);
    assert_true(apart > ROUNDS / 2); // the system may move it back
}

TEST_MAIN(test_every_part_runs_once, test_a_thread_leaves_the_owners_core)
