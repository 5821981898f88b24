// Linked into every test that says it has one thread: creating another ends the test.  The
// thread sanitizer has nothing to find in such a test, and .ci/run leaves it out there.  A
// program's own definition also serves the shared libraries that it is linked with.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

static _Noreturn void refuse(const char *call)
{
    (void)fprintf(
        stderr, "%s: this test is labelled one_thread (give inferstat_unit_test THREADS)\n", call);
    abort();
}

// The signatures are those of the C library.  NOLINTBEGIN(readability-non-const-parameter)
__attribute__((visibility("default"))) int pthread_create(pthread_t *restrict thread,
                                                          const pthread_attr_t *restrict attributes,
                                                          void *(*routine)(void *),
                                                          void *restrict argument)
{
    (void)thread, (void)attributes, (void)routine, (void)argument;
    refuse("pthread_create");
}

__attribute__((visibility("default"))) int thrd_create(thrd_t *thread, thrd_start_t routine,
                                                       void *argument)
{
    (void)thread, (void)routine, (void)argument;
    refuse("thrd_create");
}
// NOLINTEND(readability-non-const-parameter)
