#include "client/tui/poller.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/sys/clock.h"

static const uint64_t second_ns = UINT64_C(1000000000);

// Between two rounds, whatever new records come: a tenth of a second, and four
// times as long as the last round took, so that the dashboard leaves whoever
// answers four fifths of the time.
static const uint64_t pause_least_ns = UINT64_C(100000000);
enum { PAUSE_FACTOR = 4 };

// Maximum polling interval while the source does not answer.
static const uint64_t retry_ns = UINT64_C(2000000000);

struct feed {
    // Of the thread that asks, and before it starts of the opener.
    struct remote *remote;
    struct query stages; // of the last load
    bool stages_known;   // there is a last load
    struct query_filter filter;
    bool filtered;

    struct remote_live *live; // of the thread that listens

    int news_fd; // readable while there are news
    int stop_fd; // readable once the feed ends

    pthread_t asker, listener;
    bool asker_runs, listener_runs;

    pthread_mutex_t lock; // guards all below
    pthread_cond_t wake;  // on the monotonic clock
    bool lock_made, wake_made;
    bool stop;
    unsigned stale; // asks to be made
    bool urgent;    // at once
    bool clear;     // clear before
    bool refilter;  // take the filter below before that
    struct query_filter next_filter;
    bool paused;
    uint64_t interval_ns;
    uint64_t round_ns;    // when the next round is due by the interval
    uint64_t earliest_ns; // when a round may start at all
    struct feed_news news;
};

// ---- The mailbox -----------------------------------------------------------------

// With the lock held.
static void ring(struct feed *feed)
{
    const uint64_t one = 1;
    (void)!write(feed->news_fd, &one, sizeof one);
}

static void post_answer(struct feed *feed, enum ask ask, struct result *result)
{
    (void)pthread_mutex_lock(&feed->lock);
    result_free(feed->news.results[ask]);
    feed->news.results[ask] = result;
    feed->news.answered[ask] = true;
    ring(feed);
    (void)pthread_mutex_unlock(&feed->lock);
}

static void post_round(struct feed *feed, const struct error *error)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->news.round = true;
    feed->news.round_error = *error;
    ring(feed);
    (void)pthread_mutex_unlock(&feed->lock);
}

static void post_clear(struct feed *feed, const struct error *error, uint64_t cleared)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->news.clear = true;
    feed->news.clear_error = *error;
    feed->news.cleared = cleared;
    ring(feed);
    (void)pthread_mutex_unlock(&feed->lock);
}

void feed_take(struct feed *feed, struct feed_news *news)
{
    uint64_t rings;
    (void)pthread_mutex_lock(&feed->lock);
    (void)!read(feed->news_fd, &rings, sizeof rings);
    *news = feed->news;
    feed->news = (struct feed_news){0};
    (void)pthread_mutex_unlock(&feed->lock);
}

int feed_fd(const struct feed *feed)
{
    return feed->news_fd;
}

// ---- Asking ------------------------------------------------------------------------

static bool is_end_of_round(enum status status)
{
    return status == STATUS_UNREACHABLE || status == STATUS_TIMEOUT || status == STATUS_CANCELLED;
}

// Makes one ask and posts the answer.
static enum status make_ask(struct feed *feed, enum ask ask, struct error *err)
{
    struct query query = feed->stages;
    if (ask != ASK_STAGES)
        (void)asks_query(ask, feed->filtered ? &feed->filter : NULL, NULL, &query);
    struct result *result = NULL;
    bool nothing = ask == ASK_STAGES && !feed->stages_known;
    enum status status = nothing ? STATUS_OK : remote_query(feed->remote, &query, &result, err);
    if (status == STATUS_NO_DATA)
        status = STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (ask == ASK_LOADS)
        feed->stages_known = asks_query(ASK_STAGES, NULL, result, &feed->stages);
    post_answer(feed, ask, result);
    return STATUS_OK;
}

// A failed query does not prevent the others, unless the source is unreachable.
static enum status make_round(struct feed *feed, unsigned stale)
{
    struct error first = {.status = STATUS_OK};
    for (unsigned ask = 0; ask < ASK_COUNT; ask++) {
        struct error error = {.status = STATUS_OK};
        if (!(stale >> ask & 1))
            continue;
        enum status status = make_ask(feed, (enum ask)ask, &error);
        error.status = status;
        if (status != STATUS_OK && first.status == STATUS_OK)
            first = error;
        if (is_end_of_round(status))
            break;
    }
    if (first.status != STATUS_CANCELLED)
        post_round(feed, &first);
    return first.status;
}

static void make_clear(struct feed *feed)
{
    struct error error = {.status = STATUS_OK};
    struct query query = {.kind = QUERY_CLEAR};
    if (feed->filtered)
        query.filter = feed->filter;
    struct result *result = NULL;
    enum status status = remote_query(feed->remote, &query, &result, &error);
    error.status = status;
    int64_t cleared = status == STATUS_OK ? result_integer(result, 0, "cleared", 0) : 0;
    result_free(result);
    post_clear(feed, &error, cleared > 0 ? (uint64_t)cleared : 0);
}

// ---- The thread that asks --------------------------------------------------------------

// With the lock held: whether there is something to do now; else `*until_ns` says
// when there may be.
static bool is_due(struct feed *feed, uint64_t now_ns, uint64_t *until_ns)
{
    if (feed->clear || (feed->urgent && feed->stale))
        return true;
    *until_ns = UINT64_MAX;
    if (feed->paused)
        return false;
    if (now_ns >= feed->round_ns)
        feed->stale = ASKS_ALL;
    *until_ns = feed->stale ? feed->earliest_ns : feed->round_ns;
    return feed->stale && now_ns >= feed->earliest_ns;
}

// Waits with the lock held, which a condition lets go meanwhile.
static void wait_until(struct feed *feed, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        (void)pthread_cond_wait(&feed->wake, &feed->lock);
        return;
    }
    struct timespec until = {.tv_sec = (time_t)(until_ns / second_ns),
                             .tv_nsec = (long)(until_ns % second_ns)};
    (void)pthread_cond_timedwait(&feed->wake, &feed->lock, &until);
}

// After a round that began at `began_ns`, with the lock held.
static void plan_next(struct feed *feed, unsigned stale, enum status status, uint64_t began_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t pause_ns = (now_ns - began_ns) * PAUSE_FACTOR;
    if (pause_ns < pause_least_ns || status != STATUS_OK)
        pause_ns = pause_least_ns;
    feed->earliest_ns = now_ns + pause_ns;
    uint64_t interval_ns = feed->interval_ns;
    if (status != STATUS_OK && interval_ns > retry_ns)
        interval_ns = retry_ns;
    if (status != STATUS_OK || stale == ASKS_ALL)
        feed->round_ns = began_ns + interval_ns;
}

static void *ask_on(void *argument)
{
    struct feed *feed = argument;
    (void)pthread_mutex_lock(&feed->lock);
    while (!feed->stop) {
        uint64_t until_ns, began_ns = clock_monotonic_ns();
        if (!is_due(feed, began_ns, &until_ns)) {
            wait_until(feed, until_ns);
            continue;
        }
        bool clear = feed->clear;
        unsigned stale = feed->paused && !feed->urgent ? 0 : feed->stale;
        feed->clear = feed->urgent = false;
        feed->stale &= ~stale;
        if (feed->refilter) {
            feed->filter = feed->next_filter;
            feed->filtered = true;
            feed->refilter = false;
        }
        (void)pthread_mutex_unlock(&feed->lock);
        if (clear)
            make_clear(feed);
        enum status status = stale ? make_round(feed, stale) : STATUS_OK;
        (void)pthread_mutex_lock(&feed->lock);
        if (stale)
            plan_next(feed, stale, status, began_ns);
    }
    (void)pthread_mutex_unlock(&feed->lock);
    return NULL;
}

// ---- The thread that listens --------------------------------------------------------------

static void *listen_on(void *argument)
{
    struct feed *feed = argument;
    struct pollfd stop = {.fd = feed->stop_fd, .events = POLLIN};
    uint64_t missed;
    while (poll(&stop, 1, 0) == 0) {
        enum record_kind kind;
        struct result *none;
        enum status status =
            remote_live_next(feed->live, second_ns, feed->stop_fd, &kind, &none, &missed, NULL);
        if (status != STATUS_OK) {
            if (status != STATUS_TIMEOUT) // not again at once; the end wakes it
                (void)poll(&stop, 1, 1000);
            continue;
        }
        (void)pthread_mutex_lock(&feed->lock);
        feed->stale |= asks_stale(kind);
        (void)pthread_cond_signal(&feed->wake);
        (void)pthread_mutex_unlock(&feed->lock);
    }
    return NULL;
}

// ---- Opening and closing ----------------------------------------------------------------

static enum status make_wake(struct feed *feed, struct error *err)
{
    feed->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    feed->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->news_fd < 0 || feed->stop_fd < 0)
        return error_set(err, STATUS_IO, "cannot make an event descriptor: %s", strerror(errno));
    pthread_condattr_t monotonic;
    feed->lock_made = pthread_mutex_init(&feed->lock, NULL) == 0;
    if (!feed->lock_made || pthread_condattr_init(&monotonic) != 0)
        return error_no_memory(err, "dashboard");
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    feed->wake_made = pthread_cond_init(&feed->wake, &monotonic) == 0;
    (void)pthread_condattr_destroy(&monotonic);
    return feed->wake_made ? STATUS_OK : error_no_memory(err, "dashboard");
}

static uint64_t interval_ns(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

enum status feed_open(struct feed **out, const struct remote_target *target,
                      const struct query_filter *filter, double interval_seconds, struct error *err)
{
    struct feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return error_no_memory(err, "dashboard");
    feed->news_fd = feed->stop_fd = -1;
    feed->filtered = filter != NULL;
    if (filter)
        feed->filter = *filter;
    feed->interval_ns = interval_ns(interval_seconds);
    enum status status = make_wake(feed, err);
    if (status == STATUS_OK)
        status = remote_open(&feed->remote, target, err);
    if (status == STATUS_OK)
        remote_wake_on(feed->remote, feed->stop_fd);
    if (status == STATUS_OK)
        status = remote_live_open(&feed->live, target, asks_kinds(), REMOTE_LIVE_IDS, err);
    if (status != STATUS_OK) {
        feed_close(feed);
        return status;
    }
    *out = feed;
    return STATUS_OK;
}

enum status feed_start(struct feed *feed, struct error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    feed->asker_runs = pthread_create(&feed->asker, NULL, ask_on, feed) == 0;
    feed->listener_runs = pthread_create(&feed->listener, NULL, listen_on, feed) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!feed->asker_runs || !feed->listener_runs)
        return error_set(err, STATUS_NOMEM, "cannot start a thread");
    return STATUS_OK;
}

static void stop_threads(struct feed *feed)
{
    if (!feed->asker_runs && !feed->listener_runs)
        return;
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    (void)!write(feed->stop_fd, &one, sizeof one);
    (void)pthread_cond_signal(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
    if (feed->asker_runs)
        (void)pthread_join(feed->asker, NULL);
    if (feed->listener_runs)
        (void)pthread_join(feed->listener, NULL);
}

void feed_close(struct feed *feed)
{
    if (!feed)
        return;
    stop_threads(feed);
    remote_live_close(feed->live);
    remote_close(feed->remote);
    for (unsigned ask = 0; ask < ASK_COUNT; ask++)
        result_free(feed->news.results[ask]);
    if (feed->wake_made)
        (void)pthread_cond_destroy(&feed->wake);
    if (feed->lock_made)
        (void)pthread_mutex_destroy(&feed->lock);
    if (feed->news_fd >= 0)
        (void)close(feed->news_fd);
    if (feed->stop_fd >= 0)
        (void)close(feed->stop_fd);
    free(feed);
}

const char *feed_name(const struct feed *feed)
{
    return remote_name(feed->remote);
}

bool feed_is_file(const struct feed *feed)
{
    return remote_is_file(feed->remote);
}

// ---- Wishes ----------------------------------------------------------------------------

void feed_ask(struct feed *feed)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->stale = ASKS_ALL;
    feed->urgent = true;
    (void)pthread_cond_signal(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
}

void feed_pace(struct feed *feed, double interval_seconds, bool paused)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->interval_ns = interval_ns(interval_seconds);
    feed->paused = paused;
    uint64_t next_ns = clock_monotonic_ns() + feed->interval_ns;
    if (feed->round_ns > next_ns)
        feed->round_ns = next_ns;
    (void)pthread_cond_signal(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
}

void feed_filter(struct feed *feed, const struct query_filter *filter)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->next_filter = *filter;
    feed->refilter = true;
    (void)pthread_mutex_unlock(&feed->lock);
}

void feed_clear(struct feed *feed)
{
    (void)pthread_mutex_lock(&feed->lock);
    feed->clear = true;
    (void)pthread_cond_signal(&feed->wake);
    (void)pthread_mutex_unlock(&feed->lock);
}
