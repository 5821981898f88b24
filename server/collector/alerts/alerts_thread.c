#include "server/collector/alerts/alerts_thread.h"

#include <stdlib.h>

#include "common/store/alert/alert_config.h"
#include "common/store/alert/alert_evaluate.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/wire/rules_file.h"
#include "server/collector/alerts/alert_delivery.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/reader_thread.h"

enum { RULE_SECONDS = 4 }; // a rule is cancelled after this time

struct alerts {
    const struct alerts_options *options;
    const char *path;
    struct channels *channels;
    struct reader_thread reader;

    // Of the thread.
    struct alert_file file;
    struct alert_turns turns;
    struct alert_evaluator *evaluator; // of `file`, as is the next one
    struct alert_delivery *delivery;
    int64_t listening_ns;
    bool has_complained; // of the last failure

    pthread_mutex_t lock;      // of the members below
    bool has_next, has_failed; // a reload since the last evaluation
    struct alert_file next;    // replaces `file`
    struct error why;          // the reload has failed
};

enum status alerts_check(const struct alerts_options *options, bool with_commands,
                         struct error *err)
{
    struct alert_file file;
    enum status status = rules_file_read(&file, options->file, err);
    if (status == STATUS_OK && with_commands)
        status = rules_file_check(&file, options->file, err);
    alert_file_deinit(&file);
    return status;
}

// Takes what a reload has left: the rules, of which those that are the same keep their states,
// which are in the store; or why there are none.
static enum status take_next(struct alerts *alerts, struct error *err)
{
    struct queue *inbox = alerts->channels->inbox;
    struct error why;
    (void)pthread_mutex_lock(&alerts->lock);
    const bool has_failed = alerts->has_failed;
    why = alerts->why;
    if (alerts->has_next) {
        alert_evaluator_free(alerts->evaluator);
        alert_delivery_stop(alerts->delivery);
        alert_file_deinit(&alerts->file);
        alerts->evaluator = NULL;
        alerts->delivery = NULL;
        alerts->file = alerts->next;
    }
    alerts->has_next = alerts->has_failed = false;
    (void)pthread_mutex_unlock(&alerts->lock);
    enum status status = STATUS_OK;
    if (!alerts->delivery)
        status = job_change_alerts(inbox, alert_config_save, &alerts->file, err);
    if (status == STATUS_OK && has_failed)
        status = job_change_alerts(inbox, alert_config_note_file, why.text, err);
    if (status != STATUS_OK && has_failed) { // noted the next time, unless a newer file is right
        (void)pthread_mutex_lock(&alerts->lock);
        alerts->has_failed |= !alerts->has_next;
        (void)pthread_mutex_unlock(&alerts->lock);
    }
    if (status == STATUS_OK && !alerts->evaluator)
        status = alert_evaluator_new(&alerts->evaluator, &alerts->file, alerts->listening_ns,
                                     &alerts->turns, err);
    if (status == STATUS_OK && !alerts->delivery)
        status = alert_delivery_start(&alerts->delivery, alerts->file.hooks,
                                      alerts->file.hook_count, alerts->path, alerts->channels, err);
    return status;
}

static void begin_turn(void *context)
{
    reader_thread_enter(context, READER_SCAN, RULE_SECONDS);
}

static void end_turn(void *context)
{
    reader_thread_leave(context, READER_SCAN);
}

static enum status evaluate(struct alerts *alerts, struct error *err)
{
    struct channels *channels = alerts->channels;
    struct alert_pass pass = {0};
    uint64_t given_up = 0;
    enum status status = take_next(alerts, err);
    if (status == STATUS_OK)
        status =
            alert_evaluate(alerts->evaluator, alerts->reader.store, clock_wall_ns(), &pass, err);
    if (status == STATUS_OK) {
        pass.given_up = &given_up;
        status = job_change_alerts(channels->inbox, alert_table_save, &pass, err);
        alert_delivery_wake(alerts->delivery);
    }
    if (status == STATUS_OK)
        reject_counters_count(&channels->rejects, REFUSAL_UNDELIVERED, given_up);
    alert_pass_deinit(&pass);
    return status;
}

static void *alerts_body(void *context)
{
    struct alerts *alerts = context;
    const uint64_t every_ns = (uint64_t)alerts->options->every_ns;
    uint64_t due_ns = clock_monotonic_ns();
    struct error err = {.text = "failed"};
    enum status status = take_next(alerts, &err); // calls of before need no evaluation
    for (;;) {
        if (status != STATUS_OK && status != STATUS_CANCELLED && !alerts->has_complained)
            log_write(LOG_LEVEL_ERROR, "alerts: %s (they are evaluated again)", err.text);
        alerts->has_complained = status != STATUS_OK;
        const uint64_t now_ns = clock_monotonic_ns();
        due_ns = due_ns + every_ns > now_ns ? due_ns + every_ns : now_ns + every_ns;
        if (!reader_thread_wait(&alerts->reader, due_ns))
            return NULL;
        status = evaluate(alerts, &err);
    }
}

enum status alerts_start(struct alerts **out, const struct alerts_options *options,
                         const char *path, struct channels *channels, struct error *err)
{
    struct alerts *alerts = calloc(1, sizeof *alerts);
    if (!alerts)
        return error_no_memory(err, "alerts");
    alerts->options = options;
    alerts->path = path;
    alerts->channels = channels;
    alerts->listening_ns = clock_wall_ns();
    alerts->turns = (struct alert_turns){begin_turn, end_turn, &alerts->reader};
    (void)pthread_mutex_init(&alerts->lock, NULL);
    enum status status = rules_file_read(&alerts->file, options->file, err);
    if (status == STATUS_OK) // a command may come later, as with a mount
        alerts->has_failed =
            rules_file_check(&alerts->file, options->file, &alerts->why) != STATUS_OK;
    if (status == STATUS_OK)
        status = reader_thread_open(&alerts->reader, path, &channels->gate, err);
    if (status == STATUS_OK)
        status = reader_thread_start(&alerts->reader, "alerts", alerts_body, alerts, err);
    if (status != STATUS_OK) {
        alerts_stop(alerts);
        return status;
    }
    *out = alerts;
    return STATUS_OK;
}

void alerts_replace(struct alerts *alerts, struct alert_file *file, const struct error *why)
{
    (void)pthread_mutex_lock(&alerts->lock);
    if (why) {
        alerts->why = *why;
    } else {
        if (alerts->has_next)
            alert_file_deinit(&alerts->next);
        alerts->next = *file;
        alerts->has_next = true;
    }
    alerts->has_failed = why != NULL;
    (void)pthread_mutex_unlock(&alerts->lock);
}

void alerts_stop(struct alerts *alerts)
{
    if (!alerts)
        return;
    reader_thread_end(&alerts->reader);
    alert_delivery_stop(alerts->delivery);
    alert_evaluator_free(alerts->evaluator);
    alert_file_deinit(&alerts->file);
    if (alerts->has_next)
        alert_file_deinit(&alerts->next);
    (void)pthread_mutex_destroy(&alerts->lock);
    free(alerts);
}
