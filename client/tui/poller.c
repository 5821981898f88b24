#include "client/tui/poller.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/tui/steps.h"
#include "common/sys/clock.h"
#include "common/sys/thread.h"

static const uint64_t second_ns = UINT64_C(1000000000);

// Between two rounds, whatever new records come: a tenth of a second, and four
// times as long as the last round took, so that the dashboard leaves whoever
// answers four fifths of the time; but an interval, or two seconds, at most: a
// collector that hung for a while is asked again soon.
static const uint64_t pause_least_ns = UINT64_C(100000000);
enum { PAUSE_FACTOR = 4 };

// Maximum polling interval while the source does not answer.
static const uint64_t retry_ns = UINT64_C(2000000000);

// Requests to the polling thread.
struct commands {
    bool stop;
    uint64_t urgent; // POLL_ bits: to be sent now
    bool change;     // `changing` is to be sent
    struct query changing;
    struct queries_scope scope;
    bool paused;
    uint64_t interval_ns;
};

struct poller {
    // Used by the polling thread, and before it starts by the opener.
    struct remote *remote;
    uint64_t stale;                 // POLL_ bits: queries to be sent
    uint64_t earliest_ns;           // when a round may start
    uint64_t last_ns;               // when the last round of all queries, or one that failed, began
    bool failed;                    // the last round did
    uint64_t asked_ns[POLL_COUNT];  // when a query was answered, a chart's whole; 0: never
    uint64_t rest_ns[POLL_COUNT];   // how long it rests after that
    struct steps steps[POLL_COUNT]; // of charts

    int news_fd; // readable while there are news
    int wake_fd; // readable while there are commands
    int stop_fd; // readable once the poller ends
    struct thread thread;

    pthread_mutex_t lock; // guards all below
    struct commands commands;
    struct poller_news news;
};

// ---- The mailbox -----------------------------------------------------------------

static void ring(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static void reset(int fd)
{
    uint64_t rings;
    (void)!read(fd, &rings, sizeof rings);
}

// Adds news; takes ownership of their results.
static void post(struct poller *poller, const struct poller_news *more)
{
    struct poller_news *news = &poller->news;
    (void)pthread_mutex_lock(&poller->lock);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        if (!more->answered[polled])
            continue;
        result_free(news->results[polled]);
        news->results[polled] = more->results[polled];
        news->generations[polled] = more->generations[polled];
        news->answered[polled] = true;
    }
    if (more->round) {
        news->round = true;
        news->round_error = more->round_error;
    }
    if (more->change) {
        news->change = true;
        news->change_error = more->change_error;
        news->cleared = more->cleared;
    }
    ring(poller->news_fd);
    (void)pthread_mutex_unlock(&poller->lock);
}

void poller_consume(struct poller *poller, struct poller_news *news)
{
    (void)pthread_mutex_lock(&poller->lock);
    reset(poller->news_fd);
    *news = poller->news;
    poller->news = (struct poller_news){0};
    (void)pthread_mutex_unlock(&poller->lock);
}

int poller_fd(const struct poller *poller)
{
    return poller->news_fd;
}

// Moves the commands to `out`; scope, interval and pause stay.
static void consume_commands(struct poller *poller, struct commands *out)
{
    (void)pthread_mutex_lock(&poller->lock);
    reset(poller->wake_fd);
    *out = poller->commands;
    poller->commands.urgent = 0;
    poller->commands.change = false;
    (void)pthread_mutex_unlock(&poller->lock);
}

// ---- Asking ------------------------------------------------------------------------

static bool is_end_of_round(enum status status)
{
    return status == STATUS_UNREACHABLE || status == STATUS_TIMEOUT || status == STATUS_CANCELLED;
}

static bool rests(const struct poller *poller, unsigned polled, uint64_t now_ns)
{
    return poller->asked_ns[polled] != 0 &&
           now_ns < poller->asked_ns[polled] + poller->rest_ns[polled];
}

// The queries that are not due at `now_ns`, although a round is.
static uint64_t resting(const struct poller *poller, uint64_t now_ns)
{
    uint64_t rest = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        const struct steps *steps = &poller->steps[polled];
        if (rests(poller, polled, now_ns) && (!steps->rows || steps->is_still))
            rest |= UINT64_C(1) << polled;
    }
    return rest;
}

// Sends one query: of a chart that rests, unless it is urgent, about its newest steps.  `*out`
// stays NULL without data.
static enum status make_query(struct poller *poller, enum polled_query polled,
                              const struct commands *commands, struct result **out,
                              struct error *err)
{
    const struct queries_scope *scope = &commands->scope;
    const uint32_t generation = scope->generations[polled];
    const uint64_t began_ns = clock_monotonic_ns();
    const int64_t now_ns = clock_wall_ns();
    struct steps *steps = &poller->steps[polled];
    struct query query;
    if (!queries_fill(polled, scope, now_ns, &query))
        return STATUS_OK;
    const int64_t since_ns = query.filter.since_ns;
    const bool is_past = query.filter.until_ns != 0 && query.filter.until_ns <= now_ns;
    const bool in_part = rests(poller, polled, began_ns) && !(commands->urgent >> polled & 1) &&
                         steps_narrow(steps, generation, now_ns, &query);
    enum status status = remote_query(poller->remote, &query, out, err);
    status = status == STATUS_NO_DATA ? STATUS_OK : status;
    const uint64_t told_ns = *out ? result_cpu_ns(*out) : 0;
    const uint64_t cost_ns = told_ns ? told_ns : clock_monotonic_ns() - began_ns;
    if (status == STATUS_OK && query.step_ns > 0) {
        status = steps_merge(steps, &query, since_ns, out, err);
        steps->generation = generation;
        steps->is_still = scope->now_ns != 0 || is_past;
    }
    if (status != STATUS_OK)
        poller->asked_ns[polled] = 0;
    else if (!in_part) {
        poller->asked_ns[polled] = began_ns;
        poller->rest_ns[polled] = queries_rest_ns(polled, cost_ns);
        if (is_past && polled == POLL_NOW) // of which records may come late
            poller->rest_ns[polled] = 30 * second_ns;
    }
    return status;
}

// Sends these queries and posts their answers together, so that a frame shows one round.
// A failed query does not prevent the others, unless the source is unreachable.
static void make_round(struct poller *poller, const struct commands *commands, uint64_t asked)
{
    const struct queries_scope *scope = &commands->scope;
    const uint64_t pause_most_ns =
        commands->interval_ns > retry_ns ? commands->interval_ns : retry_ns;
    const uint64_t began_ns = clock_monotonic_ns();
    const uint64_t due = scope->wanted & ~resting(poller, began_ns);
    const bool is_full = (asked & due) == due;
    struct poller_news news = {.round_error.status = STATUS_OK};
    struct error error = {.status = STATUS_OK};
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        if (!(asked >> polled & 1))
            continue;
        if (is_end_of_round(error.status)) {
            poller->asked_ns[polled] = 0; // the next round asks it
            continue;
        }
        error.status =
            make_query(poller, (enum polled_query)polled, commands, &news.results[polled], &error);
        news.answered[polled] = error.status == STATUS_OK;
        news.generations[polled] = scope->generations[polled];
        if (news.round_error.status == STATUS_OK)
            news.round_error = error;
    }
    poller->stale &= ~asked;
    poller->failed = news.round_error.status != STATUS_OK;
    if (poller->failed || is_full)
        poller->last_ns = began_ns;
    const uint64_t now_ns = clock_monotonic_ns();
    uint64_t pause_ns = poller->failed ? 0 : (now_ns - began_ns) * PAUSE_FACTOR;
    pause_ns = pause_ns < pause_most_ns ? pause_ns : pause_most_ns;
    poller->earliest_ns = now_ns + (pause_ns > pause_least_ns ? pause_ns : pause_least_ns);
    news.round = news.round_error.status != STATUS_CANCELLED;
    post(poller, &news);
}

static void make_change(struct poller *poller, const struct query *query)
{
    struct poller_news news = {.change = true};
    struct result *result = NULL;
    enum status status = remote_query(poller->remote, query, &result, &news.change_error);
    news.change_error.status = status;
    const int64_t cleared = result ? result_integer(result, 0, "cleared", 0) : 0;
    news.cleared = cleared > 0 ? (uint64_t)cleared : 0;
    result_free(result);
    post(poller, &news);
}

// ---- The polling thread --------------------------------------------------------------

// Waits until a time, or a command; new records make answers stale.
static void wait_until(struct poller *poller, uint64_t until_ns)
{
    const uint64_t now_ns = clock_monotonic_ns();
    const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    enum record_kind kind;
    struct result *none;
    uint64_t missed;
    enum status status =
        remote_live_next(poller->remote, left_ns, poller->wake_fd, &kind, &none, &missed, NULL);
    if (status == STATUS_OK)
        poller->stale |= queries_stale(kind);
    if (status == STATUS_OK || status == STATUS_TIMEOUT || status == STATUS_CANCELLED ||
        status == STATUS_UNREACHABLE) // connected again
        return;
    struct pollfd wake = {.fd = poller->wake_fd, .events = POLLIN}; // not again at once
    (void)poll(&wake, 1, (int)((left_ns < second_ns ? left_ns : second_ns) / 1000000));
}

// When the first stale query has rested, if that is before `until_ns`; all of them rest.
static uint64_t first_rested(const struct poller *poller, uint64_t until_ns)
{
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        if (poller->stale >> polled & 1 &&
            poller->asked_ns[polled] + poller->rest_ns[polled] < until_ns)
            until_ns = poller->asked_ns[polled] + poller->rest_ns[polled];
    return until_ns;
}

static void *poll_on(void *argument)
{
    struct poller *poller = argument;
    struct commands commands;
    for (consume_commands(poller, &commands); !commands.stop; consume_commands(poller, &commands)) {
        if (commands.change)
            make_change(poller, &commands.changing);
        const uint64_t now_ns = clock_monotonic_ns();
        const bool retries = poller->failed && commands.interval_ns > retry_ns;
        const uint64_t round_ns = poller->last_ns + (retries ? retry_ns : commands.interval_ns);
        poller->stale &= commands.scope.wanted;
        // The clock starts with the machine, perhaps less than an interval ago.
        if (!commands.paused && (poller->last_ns == 0 || now_ns >= round_ns))
            poller->stale |= commands.scope.wanted & ~resting(poller, now_ns);
        const uint64_t due = poller->stale & ~resting(poller, now_ns);
        if (commands.urgent || (!commands.paused && due && now_ns >= poller->earliest_ns))
            make_round(poller, &commands, due | commands.urgent);
        else if (commands.paused)
            wait_until(poller, now_ns + second_ns);
        else
            wait_until(poller, due ? poller->earliest_ns : first_rested(poller, round_ns));
    }
    return NULL;
}

// ---- Opening and closing ----------------------------------------------------------------

static uint64_t interval_ns(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

static enum status open_remote(struct poller *poller, const struct remote_target *target,
                               struct error *err)
{
    poller->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    poller->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    poller->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller->news_fd < 0 || poller->wake_fd < 0 || poller->stop_fd < 0)
        return error_set(err, STATUS_IO, "cannot make an event descriptor: %s", strerror(errno));
    enum status status = remote_open(&poller->remote, target, err);
    if (status != STATUS_OK)
        return status;
    remote_wake_on(poller->remote, poller->stop_fd);
    return remote_subscribe(poller->remote, queries_kinds(), REMOTE_LIVE_NOTIFICATIONS, err);
}

enum status poller_open(struct poller **out, const struct remote_target *target,
                        double interval_seconds, struct error *err)
{
    struct poller *poller = calloc(1, sizeof *poller);
    if (!poller)
        return error_no_memory(err, "dashboard");
    (void)pthread_mutex_init(&poller->lock, NULL);
    poller->commands.interval_ns = interval_ns(interval_seconds);
    enum status status = open_remote(poller, target, err);
    if (status != STATUS_OK) {
        poller_close(poller);
        return status;
    }
    *out = poller;
    return STATUS_OK;
}

enum status poller_start(struct poller *poller, struct error *err)
{
    return thread_start(&poller->thread, "dashboard", poll_on, poller, err);
}

void poller_close(struct poller *poller)
{
    if (!poller)
        return;
    if (poller->thread.running) {
        (void)pthread_mutex_lock(&poller->lock);
        poller->commands.stop = true;
        ring(poller->stop_fd);
        ring(poller->wake_fd);
        (void)pthread_mutex_unlock(&poller->lock);
        thread_join(&poller->thread);
    }
    remote_close(poller->remote);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        result_free(poller->news.results[polled]);
        result_free(poller->steps[polled].rows);
    }
    (void)pthread_mutex_destroy(&poller->lock);
    const int fds[] = {poller->news_fd, poller->wake_fd, poller->stop_fd};
    for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
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

static struct commands *begin_command(struct poller *poller)
{
    (void)pthread_mutex_lock(&poller->lock);
    return &poller->commands;
}

static void end_wish(struct poller *poller)
{
    ring(poller->wake_fd);
    (void)pthread_mutex_unlock(&poller->lock);
}

void poller_query_now(struct poller *poller, uint64_t queries)
{
    begin_command(poller)->urgent |= queries;
    end_wish(poller);
}

void poller_set_interval(struct poller *poller, double interval_seconds, bool paused)
{
    struct commands *commands = begin_command(poller);
    commands->interval_ns = interval_ns(interval_seconds);
    commands->paused = paused;
    end_wish(poller);
}

void poller_set_scope(struct poller *poller, const struct queries_scope *scope)
{
    begin_command(poller)->scope = *scope;
    end_wish(poller);
}

void poller_change(struct poller *poller, const struct query *query)
{
    struct commands *commands = begin_command(poller);
    commands->change = true;
    commands->changing = *query;
    end_wish(poller);
}
