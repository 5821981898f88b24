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

struct poller {
    // Used by the polling thread, and before it starts by the opener.
    struct remote *remote;
    struct query stages; // of the last load
    bool stages_known;   // there is a last load
    struct query_filter filter;
    bool filtered;

    struct remote_live *live; // of the listening thread

    int news_fd; // readable while there are news
    int stop_fd; // readable once the poller ends

    pthread_t querier, listener;
    bool querier_runs, listener_runs;

    pthread_mutex_t lock; // guards all below
    pthread_cond_t wake;  // on the monotonic clock
    bool lock_made, wake_made;
    bool stop;
    unsigned stale; // POLL_ bits: queries to be sent
    bool urgent;    // at once
    bool clear;     // clear before
    bool refilter;  // take the filter below before that
    struct query_filter next_filter;
    bool paused;
    uint64_t interval_ns;
    uint64_t round_ns;    // when the next round is due by the interval
    uint64_t earliest_ns; // when a round may start at all
    struct poller_news news;
};

// ---- The mailbox -----------------------------------------------------------------

// With the lock held.
static void ring(struct poller *poller)
{
    const uint64_t one = 1;
    (void)!write(poller->news_fd, &one, sizeof one);
}

static void post_answer(struct poller *poller, enum polled_query polled, struct result *result)
{
    (void)pthread_mutex_lock(&poller->lock);
    result_free(poller->news.results[polled]);
    poller->news.results[polled] = result;
    poller->news.answered[polled] = true;
    ring(poller);
    (void)pthread_mutex_unlock(&poller->lock);
}

static void post_round(struct poller *poller, const struct error *error)
{
    (void)pthread_mutex_lock(&poller->lock);
    poller->news.round = true;
    poller->news.round_error = *error;
    ring(poller);
    (void)pthread_mutex_unlock(&poller->lock);
}

static void post_clear(struct poller *poller, const struct error *error, uint64_t cleared)
{
    (void)pthread_mutex_lock(&poller->lock);
    poller->news.clear = true;
    poller->news.clear_error = *error;
    poller->news.cleared = cleared;
    ring(poller);
    (void)pthread_mutex_unlock(&poller->lock);
}

void poller_consume(struct poller *poller, struct poller_news *news)
{
    uint64_t rings;
    (void)pthread_mutex_lock(&poller->lock);
    (void)!read(poller->news_fd, &rings, sizeof rings);
    *news = poller->news;
    poller->news = (struct poller_news){0};
    (void)pthread_mutex_unlock(&poller->lock);
}

int poller_fd(const struct poller *poller)
{
    return poller->news_fd;
}

// ---- Asking ------------------------------------------------------------------------

static bool is_end_of_round(enum status status)
{
    return status == STATUS_UNREACHABLE || status == STATUS_TIMEOUT || status == STATUS_CANCELLED;
}

// Sends one query and posts the answer.
static enum status make_query(struct poller *poller, enum polled_query polled, struct error *err)
{
    struct query query = poller->stages;
    if (polled != POLL_STAGES)
        (void)queries_fill(polled, poller->filtered ? &poller->filter : NULL, NULL, &query);
    struct result *result = NULL;
    bool nothing = polled == POLL_STAGES && !poller->stages_known;
    enum status status = nothing ? STATUS_OK : remote_query(poller->remote, &query, &result, err);
    if (status == STATUS_NO_DATA)
        status = STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (polled == POLL_LOADS)
        poller->stages_known = queries_fill(POLL_STAGES, NULL, result, &poller->stages);
    post_answer(poller, polled, result);
    return STATUS_OK;
}

// A failed query does not prevent the others, unless the source is unreachable.
static enum status make_round(struct poller *poller, unsigned stale)
{
    struct error first = {.status = STATUS_OK};
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        struct error error = {.status = STATUS_OK};
        if (!(stale >> polled & 1))
            continue;
        enum status status = make_query(poller, (enum polled_query)polled, &error);
        error.status = status;
        if (status != STATUS_OK && first.status == STATUS_OK)
            first = error;
        if (is_end_of_round(status))
            break;
    }
    if (first.status != STATUS_CANCELLED)
        post_round(poller, &first);
    return first.status;
}

static void make_clear(struct poller *poller)
{
    struct error error = {.status = STATUS_OK};
    struct query query = {.kind = QUERY_CLEAR};
    if (poller->filtered)
        query.filter = poller->filter;
    struct result *result = NULL;
    enum status status = remote_query(poller->remote, &query, &result, &error);
    error.status = status;
    int64_t cleared = status == STATUS_OK ? result_integer(result, 0, "cleared", 0) : 0;
    result_free(result);
    post_clear(poller, &error, cleared > 0 ? (uint64_t)cleared : 0);
}

// ---- The polling thread --------------------------------------------------------------

// With the lock held: whether there is something to do now; else `*until_ns` says
// when there may be.
static bool is_due(struct poller *poller, uint64_t now_ns, uint64_t *until_ns)
{
    if (poller->clear || (poller->urgent && poller->stale))
        return true;
    *until_ns = UINT64_MAX;
    if (poller->paused)
        return false;
    if (now_ns >= poller->round_ns)
        poller->stale = POLL_ALL;
    *until_ns = poller->stale ? poller->earliest_ns : poller->round_ns;
    return poller->stale && now_ns >= poller->earliest_ns;
}

// Waits with the lock held, which a condition lets go meanwhile.
static void wait_until(struct poller *poller, uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        (void)pthread_cond_wait(&poller->wake, &poller->lock);
        return;
    }
    struct timespec until = {.tv_sec = (time_t)(until_ns / second_ns),
                             .tv_nsec = (long)(until_ns % second_ns)};
    (void)pthread_cond_timedwait(&poller->wake, &poller->lock, &until);
}

// After a round that began at `began_ns`, with the lock held.
static void plan_next(struct poller *poller, unsigned stale, enum status status, uint64_t began_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t pause_ns = (now_ns - began_ns) * PAUSE_FACTOR;
    if (pause_ns < pause_least_ns || status != STATUS_OK)
        pause_ns = pause_least_ns;
    poller->earliest_ns = now_ns + pause_ns;
    uint64_t interval_ns = poller->interval_ns;
    if (status != STATUS_OK && interval_ns > retry_ns)
        interval_ns = retry_ns;
    if (status != STATUS_OK || stale == POLL_ALL)
        poller->round_ns = began_ns + interval_ns;
}

static void *poll_on(void *argument)
{
    struct poller *poller = argument;
    (void)pthread_mutex_lock(&poller->lock);
    while (!poller->stop) {
        uint64_t until_ns, began_ns = clock_monotonic_ns();
        if (!is_due(poller, began_ns, &until_ns)) {
            wait_until(poller, until_ns);
            continue;
        }
        bool clear = poller->clear;
        unsigned stale = poller->paused && !poller->urgent ? 0 : poller->stale;
        poller->clear = poller->urgent = false;
        poller->stale &= ~stale;
        if (poller->refilter) {
            poller->filter = poller->next_filter;
            poller->filtered = true;
            poller->refilter = false;
        }
        (void)pthread_mutex_unlock(&poller->lock);
        if (clear)
            make_clear(poller);
        enum status status = stale ? make_round(poller, stale) : STATUS_OK;
        (void)pthread_mutex_lock(&poller->lock);
        if (stale)
            plan_next(poller, stale, status, began_ns);
    }
    (void)pthread_mutex_unlock(&poller->lock);
    return NULL;
}

// ---- The listening thread --------------------------------------------------------------

static void *listen_on(void *argument)
{
    struct poller *poller = argument;
    struct pollfd stop = {.fd = poller->stop_fd, .events = POLLIN};
    uint64_t missed;
    while (poll(&stop, 1, 0) == 0) {
        enum record_kind kind;
        struct result *none;
        enum status status =
            remote_live_next(poller->live, second_ns, poller->stop_fd, &kind, &none, &missed, NULL);
        if (status != STATUS_OK) {
            if (status != STATUS_TIMEOUT) // not again at once; the end wakes it
                (void)poll(&stop, 1, 1000);
            continue;
        }
        (void)pthread_mutex_lock(&poller->lock);
        poller->stale |= queries_stale(kind);
        (void)pthread_cond_signal(&poller->wake);
        (void)pthread_mutex_unlock(&poller->lock);
    }
    return NULL;
}

// ---- Opening and closing ----------------------------------------------------------------

static enum status make_wake(struct poller *poller, struct error *err)
{
    poller->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    poller->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller->news_fd < 0 || poller->stop_fd < 0)
        return error_set(err, STATUS_IO, "cannot make an event descriptor: %s", strerror(errno));
    pthread_condattr_t monotonic;
    poller->lock_made = pthread_mutex_init(&poller->lock, NULL) == 0;
    if (!poller->lock_made || pthread_condattr_init(&monotonic) != 0)
        return error_no_memory(err, "dashboard");
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    poller->wake_made = pthread_cond_init(&poller->wake, &monotonic) == 0;
    (void)pthread_condattr_destroy(&monotonic);
    return poller->wake_made ? STATUS_OK : error_no_memory(err, "dashboard");
}

static uint64_t interval_ns(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

enum status poller_open(struct poller **out, const struct remote_target *target,
                        const struct query_filter *filter, double interval_seconds,
                        struct error *err)
{
    struct poller *poller = calloc(1, sizeof *poller);
    if (!poller)
        return error_no_memory(err, "dashboard");
    poller->news_fd = poller->stop_fd = -1;
    poller->filtered = filter != NULL;
    if (filter)
        poller->filter = *filter;
    poller->interval_ns = interval_ns(interval_seconds);
    enum status status = make_wake(poller, err);
    if (status == STATUS_OK)
        status = remote_open(&poller->remote, target, err);
    if (status == STATUS_OK)
        remote_wake_on(poller->remote, poller->stop_fd);
    if (status == STATUS_OK)
        status = remote_live_open(&poller->live, target, queries_kinds(), REMOTE_LIVE_IDS, err);
    if (status != STATUS_OK) {
        poller_close(poller);
        return status;
    }
    *out = poller;
    return STATUS_OK;
}

enum status poller_start(struct poller *poller, struct error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    poller->querier_runs = pthread_create(&poller->querier, NULL, poll_on, poller) == 0;
    poller->listener_runs = pthread_create(&poller->listener, NULL, listen_on, poller) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!poller->querier_runs || !poller->listener_runs)
        return error_set(err, STATUS_NOMEM, "cannot start a thread");
    return STATUS_OK;
}

static void stop_threads(struct poller *poller)
{
    if (!poller->querier_runs && !poller->listener_runs)
        return;
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&poller->lock);
    poller->stop = true;
    (void)!write(poller->stop_fd, &one, sizeof one);
    (void)pthread_cond_signal(&poller->wake);
    (void)pthread_mutex_unlock(&poller->lock);
    if (poller->querier_runs)
        (void)pthread_join(poller->querier, NULL);
    if (poller->listener_runs)
        (void)pthread_join(poller->listener, NULL);
}

void poller_close(struct poller *poller)
{
    if (!poller)
        return;
    stop_threads(poller);
    remote_live_close(poller->live);
    remote_close(poller->remote);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        result_free(poller->news.results[polled]);
    if (poller->wake_made)
        (void)pthread_cond_destroy(&poller->wake);
    if (poller->lock_made)
        (void)pthread_mutex_destroy(&poller->lock);
    if (poller->news_fd >= 0)
        (void)close(poller->news_fd);
    if (poller->stop_fd >= 0)
        (void)close(poller->stop_fd);
    free(poller);
}

const char *poller_name(const struct poller *poller)
{
    return remote_name(poller->remote);
}

bool poller_is_file(const struct poller *poller)
{
    return remote_is_file(poller->remote);
}

// ---- Wishes ----------------------------------------------------------------------------

void poller_query_now(struct poller *poller)
{
    (void)pthread_mutex_lock(&poller->lock);
    poller->stale = POLL_ALL;
    poller->urgent = true;
    (void)pthread_cond_signal(&poller->wake);
    (void)pthread_mutex_unlock(&poller->lock);
}

void poller_set_interval(struct poller *poller, double interval_seconds, bool paused)
{
    (void)pthread_mutex_lock(&poller->lock);
    poller->interval_ns = interval_ns(interval_seconds);
    poller->paused = paused;
    uint64_t next_ns = clock_monotonic_ns() + poller->interval_ns;
    if (poller->round_ns > next_ns)
        poller->round_ns = next_ns;
    (void)pthread_cond_signal(&poller->wake);
    (void)pthread_mutex_unlock(&poller->lock);
}

void poller_set_filter(struct poller *poller, const struct query_filter *filter)
{
    (void)pthread_mutex_lock(&poller->lock);
    poller->next_filter = *filter;
    poller->refilter = true;
    (void)pthread_mutex_unlock(&poller->lock);
}

void poller_clear(struct poller *poller)
{
    (void)pthread_mutex_lock(&poller->lock);
    poller->clear = true;
    (void)pthread_cond_signal(&poller->wake);
    (void)pthread_mutex_unlock(&poller->lock);
}
