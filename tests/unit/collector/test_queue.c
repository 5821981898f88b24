// The queue between the collector's threads.
#include <poll.h>
#include <pthread.h>

#include "server/collector/threads/queue.h"
#include "tests/support/test.h"

static int freed;

static void free_item(void *item)
{
    (void)item;
    freed++;
}

static bool is_readable(const struct queue *queue)
{
    struct pollfd event = {.fd = queue_fd(queue), .events = POLLIN};
    return poll(&event, 1, 0) == 1;
}

static struct queue *new_queue(size_t capacity, size_t bytes)
{
    struct queue *queue = NULL;
    assert_int_equal(queue_new(&queue, capacity, bytes, NULL), STATUS_OK);
    return queue;
}

TEST_CASE(test_first_in_first_out)
{
    int items[7];
    struct queue *queue = new_queue(3, 1000);
    for (int round = 0; round < 5; round++) { // around the end of the array
        for (int i = 0; i < 3; i++)
            assert_true(queue_push(queue, &items[i], 1));
        assert_false(queue_push(queue, &items[3], 1));
        for (int i = 0; i < 3; i++) {
            assert_true(queue_is_nonempty(queue));
            assert_ptr_equal(queue_pop(queue), &items[i]);
        }
        assert_false(queue_is_nonempty(queue));
        assert_null(queue_pop(queue));
        assert_true(queue_push(queue, &items[6], 1));
        assert_ptr_equal(queue_pop(queue), &items[6]);
    }
    queue_free(queue, free_item);
}

TEST_CASE(test_bounded_in_bytes)
{
    int item;
    struct queue *queue = new_queue(10, 100);
    assert_true(queue_push(queue, &item, 1000)); // alone, whatever its size
    assert_false(queue_push(queue, &item, 1));
    assert_ptr_equal(queue_pop(queue), &item);
    assert_true(queue_push(queue, &item, 60));
    assert_false(queue_push(queue, &item, 41));
    assert_true(queue_push(queue, &item, 40));
    assert_false(queue_push(queue, &item, 0)); // nothing more when full
    assert_ptr_equal(queue_pop(queue), &item);
    assert_true(queue_push(queue, &item, 60));
    queue_free(queue, NULL);
}

TEST_CASE(test_readable_exactly_while_it_holds_something)
{
    int item;
    struct queue *queue = new_queue(4, 100);
    assert_false(is_readable(queue));
    assert_true(queue_push(queue, &item, 1));
    assert_true(queue_push(queue, &item, 1));
    assert_true(is_readable(queue));
    (void)queue_pop(queue);
    assert_true(is_readable(queue));
    (void)queue_pop(queue);
    assert_false(is_readable(queue));
    queue_wait(queue, 1000000); // comes back
    queue_free(queue, NULL);
}

TEST_CASE(test_what_is_left_is_freed)
{
    int item;
    freed = 0;
    struct queue *queue = new_queue(4, 100);
    for (int i = 0; i < 3; i++)
        assert_true(queue_push(queue, &item, 1));
    (void)queue_pop(queue);
    queue_free(queue, free_item);
    assert_int_equal(freed, 2);
    queue_free(NULL, free_item);
}

enum { ITEMS = 20000 };

static void *push_all(void *context)
{
    struct queue *queue = context;
    for (uintptr_t i = 1; i <= ITEMS; i++)
        while (!queue_push(queue, (char *)NULL + i, 1)) {
            // Full: the consumer is at work.
        }
    return NULL;
}

TEST_CASE(test_two_producers_lose_nothing)
{
    struct queue *queue = new_queue(64, 1000);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_all, queue), 0);
    uint64_t sum = 0, count = 0;
    while (count < 2 * ITEMS) {
        queue_wait(queue, 1000000000);
        void *item;
        while ((item = queue_pop(queue)) != NULL) {
            sum += (uintptr_t)item;
            count++;
        }
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(sum, (uint64_t)ITEMS * (ITEMS + 1));
    assert_false(is_readable(queue));
    queue_free(queue, NULL);
}

TEST_MAIN(test_first_in_first_out, test_bounded_in_bytes,
          test_readable_exactly_while_it_holds_something, test_what_is_left_is_freed,
          test_two_producers_lose_nothing)
