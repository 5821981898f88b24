#include "server/collector/trouble.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trouble {
    pthread_mutex_t lock;
    char why[ERROR_TEXT_SIZE];
};

enum status trouble_new(struct trouble **out, struct error *err)
{
    struct trouble *trouble = calloc(1, sizeof *trouble);
    if (!trouble)
        return error_set(err, STATUS_NOMEM, "collector: out of memory");
    (void)pthread_mutex_init(&trouble->lock, NULL);
    *out = trouble;
    return STATUS_OK;
}

void trouble_free(struct trouble *trouble)
{
    if (!trouble)
        return;
    (void)pthread_mutex_destroy(&trouble->lock);
    free(trouble);
}

void trouble_tell(struct trouble *trouble, const char *why)
{
    (void)pthread_mutex_lock(&trouble->lock);
    (void)snprintf(trouble->why, sizeof trouble->why, "%s", why);
    (void)pthread_mutex_unlock(&trouble->lock);
}

size_t trouble_read(struct trouble *trouble, char why[ERROR_TEXT_SIZE])
{
    (void)pthread_mutex_lock(&trouble->lock);
    const size_t size = strlen(trouble->why);
    memcpy(why, trouble->why, size + 1);
    (void)pthread_mutex_unlock(&trouble->lock);
    return size;
}
