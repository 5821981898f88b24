#include "server/collector/threads/write_error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct write_error {
    pthread_mutex_t lock;
    char why[ERROR_TEXT_SIZE];
};

enum status write_error_new(struct write_error **out, struct error *err)
{
    struct write_error *write_error = calloc(1, sizeof *write_error);
    if (!write_error)
        return error_no_memory(err, "collector");
    (void)pthread_mutex_init(&write_error->lock, NULL);
    *out = write_error;
    return STATUS_OK;
}

void write_error_free(struct write_error *write_error)
{
    if (!write_error)
        return;
    (void)pthread_mutex_destroy(&write_error->lock);
    free(write_error);
}

void write_error_set(struct write_error *write_error, const char *why)
{
    (void)pthread_mutex_lock(&write_error->lock);
    (void)snprintf(write_error->why, sizeof write_error->why, "%s", why);
    (void)pthread_mutex_unlock(&write_error->lock);
}

size_t write_error_read(struct write_error *write_error, char why[ERROR_TEXT_SIZE])
{
    (void)pthread_mutex_lock(&write_error->lock);
    const size_t size = strlen(write_error->why);
    memcpy(why, write_error->why, size + 1);
    (void)pthread_mutex_unlock(&write_error->lock);
    return size;
}
