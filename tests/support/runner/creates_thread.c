// Breaks its promise of one thread, for the test of one_thread.c.
#include <pthread.h>
#include <stddef.h>

static void *run(void *context)
{
    return context;
}

int main(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0;
}
