// Tasks one after another, most of them shorter than it takes a thread to start: threads that come
// late must neither repeat a part of an earlier task nor take one of a later task twice.
#include "server/device/cpu/thread_pool.h"

#include "tests/support/test.h"

enum { THREADS = 4, PARTS_MAX = 64, TASKS = 10000 };

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

TEST_MAIN(test_every_part_runs_once)
