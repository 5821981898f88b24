#include "server/collector/alerts/alert_delivery.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/store/alert/alert_queue.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/sys/thread.h"
#include "server/collector/alerts/alert_body.h"
#include "server/collector/alerts/command_hook.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"
#include "server/http/http_client.h"

#define SECOND_NS        INT64_C(1000000000)
#define PAUSE_FIRST_NS   (5 * SECOND_NS)
#define PAUSE_LONGEST_NS (300 * SECOND_NS)
#define STORE_PAUSE_NS   (5 * SECOND_NS) // after an error of the store

struct hook {
    struct alert_delivery *delivery;
    struct alert_hook config;
    struct store *store; // of its thread
    struct thread thread;
    int wake_fd;           // readable after alert_delivery_wake
    bool is_failing;       // the last call failed, and that was logged
    uint64_t repeat_at_ns; // Alertmanager: when it is told all open alerts again; monotonic
};

struct alert_delivery {
    struct channels *channels;
    int stop_fd; // readable once the threads are to end; it is never read
    bool has_http;
    size_t count;
    struct hook hooks[];
};

int64_t alert_delivery_pause_ns(unsigned attempts)
{
    int64_t pause_ns = PAUSE_FIRST_NS;
    for (unsigned i = 1; i < attempts && pause_ns < PAUSE_LONGEST_NS; i++)
        pause_ns *= 2;
    return pause_ns < PAUSE_LONGEST_NS ? pause_ns : PAUSE_LONGEST_NS;
}

// Waits until the time has passed, or until there is something new; true: the thread is to end.
static bool wait_for(struct hook *hook, int64_t wait_ns)
{
    struct pollfd polled[] = {{.fd = hook->delivery->stop_fd, .events = POLLIN},
                              {.fd = hook->wake_fd, .events = POLLIN}};
    eventfd_t ignored;
    (void)poll(polled, 2, (int)(wait_ns / 1000000) + (wait_ns > 0));
    if (polled[1].revents)
        (void)eventfd_read(hook->wake_fd, &ignored);
    return polled[0].revents != 0;
}

// ---- Calls ----------------------------------------------------------------------------

static enum status run_command(struct hook *hook, const char *body, size_t size, struct error *err)
{
    char *argv[ALERT_TEXT_SIZE / 2 + 1] = {NULL};
    char *word = hook->config.target;
    for (unsigned i = 0; i < hook->config.word_count; i++) {
        argv[i] = word;
        word += strlen(word) + 1;
    }
    return command_hook_run(argv, body, size, ALERT_COMMAND_SECONDS * (uint64_t)SECOND_NS,
                            hook->delivery->stop_fd, err);
}

// STATUS_INVALID: another attempt would be in vain.
static enum status post(struct hook *hook, const char *body, size_t size, struct error *err)
{
    long code = 0;
    enum status status =
        http_client_post(hook->config.target, body, size, hook->delivery->stop_fd, &code, err);
    if (status != STATUS_OK || (code >= 200 && code < 300))
        return status;
    return error_set(err, code >= 500 || code == 408 || code == 429 ? STATUS_IO : STATUS_INVALID,
                     "the answer has the code %ld", code);
}

static enum status call_hook(struct hook *hook, const struct alert_call *calls, size_t count,
                             struct error *err)
{
    char *body = NULL;
    size_t size = 0;
    enum status status =
        alert_body_new(&body, &size, hook->config.kind, calls, count, clock_wall_ns(), err);
    if (status != STATUS_OK)
        return status;
    status = hook->config.kind == ALERT_HOOK_COMMAND ? run_command(hook, body, size, err)
                                                     : post(hook, body, size, err);
    free(body);
    if (status == STATUS_OK && hook->is_failing)
        log_write(LOG_LEVEL_INFO, "hook %s: works again", hook->config.name);
    if (status != STATUS_CANCELLED && status != STATUS_INVALID)
        hook->is_failing = status != STATUS_OK;
    return status;
}

// Notes the outcome, until it is committed or the thread is to end; true: the thread is to end.
static bool note(struct hook *hook, struct alert_outcome outcome)
{
    struct channels *channels = hook->delivery->channels;
    uint64_t given_up = 0;
    struct error err;
    bool is_logged = false;
    outcome.given_up = &given_up;
    while (job_change_alerts(channels->inbox, alert_queue_note, &outcome, &err) != STATUS_OK) {
        if (!is_logged)
            log_write(LOG_LEVEL_WARNING, "hook %s: cannot note that it was called: %s",
                      hook->config.name, err.text);
        is_logged = true;
        if (wait_for(hook, STORE_PAUSE_NS))
            return true;
    }
    reject_counters_count(&channels->rejects, REFUSAL_UNDELIVERED, given_up);
    return false;
}

// Makes the call; true: the thread is to end.
static bool deliver(struct hook *hook, const struct alert_call *call)
{
    const bool was_failing = hook->is_failing;
    struct error err = {.text = ""};
    const enum status status = call_hook(hook, call, 1, &err);
    if (status == STATUS_CANCELLED)
        return true;
    const bool is_last = status == STATUS_INVALID;
    if (status != STATUS_OK && (is_last || !was_failing))
        log_write(is_last ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING,
                  "hook %s: alert %lld (%s, %s) is not delivered: %s%s", hook->config.name,
                  (long long)call->alert.id, call->alert.rule, alert_event_text(call->event),
                  err.text, is_last ? "" : " (it is called again)");
    return note(
        hook,
        (struct alert_outcome){
            .call = call,
            .has_failed = status != STATUS_OK,
            .due_ns = is_last ? 0 : clock_wall_ns() + alert_delivery_pause_ns(call->attempts + 1),
            .error = err.text});
}

// Tells Alertmanager all open alerts again; true: the thread is to end.
static bool repeat(struct hook *hook)
{
    struct alert_call *calls = calloc(ALERT_TOLD_MOST, sizeof *calls);
    const bool was_failing = hook->is_failing;
    struct error err = {.text = ""};
    size_t count = 0;
    int64_t after = 0;
    enum status status = calls ? STATUS_OK : error_no_memory(&err, "alerts");
    do {
        if (status == STATUS_OK)
            status = alert_queue_told(calls, &count, hook->store, after, clock_wall_ns(), &err);
        if (status == STATUS_OK && count > 0) {
            after = calls[count - 1].alert.id;
            status = call_hook(hook, calls, count, &err);
        }
    } while (status == STATUS_OK && count > 0);
    free(calls);
    hook->repeat_at_ns = clock_monotonic_ns() + ALERT_BODY_REPEATS_NS;
    if (status != STATUS_OK && status != STATUS_CANCELLED && !was_failing)
        log_write(LOG_LEVEL_WARNING, "hook %s: open alerts are not told again: %s",
                  hook->config.name, err.text);
    return status == STATUS_CANCELLED;
}

// How long until the hook's next call.
static int64_t next_wait(const struct alert_call *call)
{
    const int64_t wait_ns = call->id ? call->due_ns - clock_wall_ns() : PAUSE_LONGEST_NS;
    return wait_ns > PAUSE_LONGEST_NS ? 0 : wait_ns; // the clock was set back
}

// How long until open alerts are told again.
static int64_t repeat_wait(const struct hook *hook)
{
    return hook->config.kind == ALERT_HOOK_ALERTMANAGER
               ? (int64_t)(hook->repeat_at_ns - clock_monotonic_ns())
               : PAUSE_LONGEST_NS;
}

static void *hook_body(void *context)
{
    struct hook *hook = context;
    struct error err;
    bool is_ending = false;
    while (!is_ending) {
        struct alert_call call = {.id = 0};
        const enum status status =
            alert_queue_next(&call, hook->store, hook->config.name, clock_wall_ns(), &err);
        if (status != STATUS_OK)
            log_write(LOG_LEVEL_WARNING, "hook %s: %s", hook->config.name, err.text);
        const int64_t call_ns = status == STATUS_OK ? next_wait(&call) : STORE_PAUSE_NS;
        const int64_t repeat_ns = repeat_wait(hook),
                      wait_ns = call_ns < repeat_ns ? call_ns : repeat_ns;
        is_ending = wait_for(hook, wait_ns > 0 ? wait_ns : 0);
        if (!is_ending && status == STATUS_OK && call.id && call_ns <= 0)
            is_ending = deliver(hook, &call);
        if (!is_ending && repeat_ns <= 0)
            is_ending = repeat(hook);
    }
    return NULL;
}

// ---- Starting and stopping ------------------------------------------------------------

static enum status start_hook(struct hook *hook, const char *db, struct error *err)
{
    hook->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (hook->wake_fd < 0)
        return error_set(err, STATUS_IO, "hook %s: no descriptor is free", hook->config.name);
    enum status status = store_open(&hook->store, db, err);
    if (status == STATUS_OK)
        status = thread_start(&hook->thread, "hook", hook_body, hook, err);
    return status;
}

static enum status start_all(struct alert_delivery *delivery, const char *db, struct error *err)
{
    delivery->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (delivery->stop_fd < 0)
        return error_set(err, STATUS_IO, "hooks: no descriptor is free");
    // Else the kernel would not tell how commands ended, where the parent process ignores it.
    (void)signal(SIGCHLD, SIG_DFL);
    enum status status = http_client_begin(err);
    delivery->has_http = status == STATUS_OK;
    for (size_t i = 0; i < delivery->count && status == STATUS_OK; i++)
        status = start_hook(&delivery->hooks[i], db, err);
    return status;
}

enum status alert_delivery_start(struct alert_delivery **out, const struct alert_hook *hooks,
                                 size_t count, const char *db, struct channels *channels,
                                 struct error *err)
{
    struct alert_delivery *delivery = calloc(1, sizeof *delivery + count * sizeof *delivery->hooks);
    if (!delivery)
        return error_no_memory(err, "hooks");
    delivery->channels = channels;
    delivery->stop_fd = -1;
    delivery->count = count;
    for (size_t i = 0; i < count; i++)
        delivery->hooks[i] = (struct hook){.delivery = delivery, .config = hooks[i], .wake_fd = -1};
    enum status status = count > 0 ? start_all(delivery, db, err) : STATUS_OK;
    if (status != STATUS_OK) {
        alert_delivery_stop(delivery);
        return status;
    }
    *out = delivery;
    return STATUS_OK;
}

void alert_delivery_wake(struct alert_delivery *delivery)
{
    for (size_t i = 0; i < delivery->count; i++)
        (void)eventfd_write(delivery->hooks[i].wake_fd, 1);
}

void alert_delivery_stop(struct alert_delivery *delivery)
{
    if (!delivery)
        return;
    if (delivery->stop_fd >= 0)
        (void)eventfd_write(delivery->stop_fd, 1);
    for (size_t i = 0; i < delivery->count; i++) {
        struct hook *hook = &delivery->hooks[i];
        thread_join(&hook->thread);
        store_close(hook->store);
        if (hook->wake_fd >= 0)
            (void)close(hook->wake_fd);
    }
    if (delivery->has_http)
        http_client_end();
    if (delivery->stop_fd >= 0)
        (void)close(delivery->stop_fd);
    free(delivery);
}
