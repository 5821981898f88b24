#include "server/collector/board.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct board {
    pthread_mutex_t lock;
    int event;
    struct board_ids ids;
};

enum status board_new(struct board **out, struct error *err)
{
    struct board *board = calloc(1, sizeof *board);
    if (!board)
        return error_set(err, STATUS_NOMEM, "live feed: out of memory");
    (void)pthread_mutex_init(&board->lock, NULL);
    board->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (board->event < 0) {
        enum status status = error_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
        board_free(board);
        return status;
    }
    *out = board;
    return STATUS_OK;
}

void board_free(struct board *board)
{
    if (!board)
        return;
    if (board->event >= 0)
        (void)close(board->event);
    (void)pthread_mutex_destroy(&board->lock);
    free(board);
}

void board_post(struct board *board, const struct board_ids *ids)
{
    (void)pthread_mutex_lock(&board->lock);
    board->ids = *ids;
    (void)pthread_mutex_unlock(&board->lock);
    (void)eventfd_write(board->event, 1);
}

void board_wake(struct board *board)
{
    (void)eventfd_write(board->event, 1);
}

int board_fd(const struct board *board)
{
    return board->event;
}

void board_read(struct board *board, struct board_ids *ids)
{
    eventfd_t ignored;
    (void)eventfd_read(board->event, &ignored);
    (void)pthread_mutex_lock(&board->lock);
    *ids = board->ids;
    (void)pthread_mutex_unlock(&board->lock);
}
