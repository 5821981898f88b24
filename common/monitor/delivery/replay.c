#include "common/monitor/delivery/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/monitor/delivery/publisher.h"
#include "common/sys/clock.h"
#include "common/sys/thread.h"

enum {
    SILENT_MAX = 16, // unresponsive collectors remembered during a round
    TROUBLE_SIZE = 256,
};

// The longest time without an acknowledgement before a run is given up for this round.
static const uint64_t patience_ns = UINT64_C(5000000000);
static const int64_t step_ns = INT64_C(10000000);
// Back-off between two rounds, doubling: after a temporary error it starts at retry_min_ms,
// after an unresponsive collector at round_min_ms, because a round reads all files again.
static const int retry_min_ms = 1000, round_min_ms = 30000, round_max_ms = 480000;

// A round over all orphans.
struct round {
    const struct replay_settings *settings;
    const _Atomic bool *stop;
    int stop_fd;
    replay_listener *listener;
    void *context;
    struct replay_counts counts;
    struct silent {
        char collector[ADDRESS_TEXT_SIZE];
        char trouble[TROUBLE_SIZE]; // the reason, or ""
    } silent[SILENT_MAX];
    unsigned silent_count;
    char trouble[TROUBLE_SIZE]; // of the current run
    bool is_later;              // not the first round: what stays was logged before
};

static bool is_stopped(const struct round *round)
{
    return round->stop && atomic_load_explicit(round->stop, memory_order_acquire);
}

// ---- One run ----------------------------------------------------------------------

// Steps the publisher until everything is committed or there is no progress.
static enum replay_end drive(const struct round *round, struct publisher *publisher,
                             struct publisher_state *state)
{
    uint64_t since = clock_monotonic_ns();
    uint64_t acknowledged = 0;
    bool contact = false;
    publisher_finish(publisher);
    for (;;) {
        *state = *publisher_step(publisher);
        if (state->finished)
            return state->forgotten ? REPLAY_FORGOTTEN : REPLAY_SENT;
        if (is_stopped(round))
            return REPLAY_STOPPED;
        if (state->refused)
            return REPLAY_AWAY;
        const uint64_t now = clock_monotonic_ns();
        if (publisher_acknowledged(publisher) != acknowledged || (!contact && state->has_contact)) {
            since = now;
            acknowledged = publisher_acknowledged(publisher);
            contact = state->has_contact;
        }
        if (now - since >= patience_ns)
            return REPLAY_AWAY;
        publisher_wait(publisher, round->stop_fd, step_ns);
    }
}

// The entry of an unresponsive collector, or NULL.
static const struct silent *find_silent(const struct round *round, const char *address)
{
    for (unsigned i = 0; i < round->silent_count; i++)
        if (strcmp(round->silent[i].collector, address) == 0)
            return &round->silent[i];
    return NULL;
}

static void note_silent(struct round *round, const char *address)
{
    if (round->silent_count == SILENT_MAX || find_silent(round, address))
        return;
    struct silent *silent = &round->silent[round->silent_count++];
    (void)snprintf(silent->collector, sizeof silent->collector, "%s", address);
    (void)snprintf(silent->trouble, sizeof silent->trouble, "%s", round->trouble);
}

// The address of the run's collector, parsed and as text.
static enum status find_collector(const struct round *round, const struct orphan *orphan,
                                  struct address *address, char text[ADDRESS_TEXT_SIZE],
                                  struct error *err)
{
    const char *given = round->settings->collector;
    enum status status =
        address_parse(address, given ? given : runfile_run(orphan->file)->collector, err);
    if (status == STATUS_OK)
        (void)address_text(text, address);
    return status;
}

// Logs errors only: an unresponsive collector is logged once by the round.
static void log_errors(void *context, enum inferstat_log_level level, const char *text)
{
    const struct round *round = context;
    if (level == INFERSTAT_LOG_ERROR)
        log_sink_write(&round->settings->log, level, "replay: %s", text);
}

static enum status send_orphan(struct round *round, const struct orphan *orphan,
                               struct replay_report *report, struct error *err)
{
    struct address address;
    enum status status = find_collector(round, orphan, &address, report->collector, err);
    if (status != STATUS_OK)
        return status;
    report->end = REPLAY_AWAY;
    const struct silent *silent = find_silent(round, report->collector);
    if (silent) {
        report->trouble = silent->trouble;
        return STATUS_OK;
    }
    const struct publisher_settings settings = {
        .file = orphan->file,
        .spool = orphan->spool,
        .address = &address,
        .trust = round->settings->trust,
        .replay = true,
        .log = {log_errors, round},
    };
    struct publisher *publisher;
    status = publisher_open(&publisher, &settings, err);
    if (status != STATUS_OK)
        return status;
    struct publisher_state state;
    report->end = drive(round, publisher, &state);
    if (report->end == REPLAY_AWAY) {
        (void)snprintf(round->trouble, sizeof round->trouble, "%s", publisher_trouble(publisher));
        report->trouble = round->trouble;
        if (!state.has_contact && !state.refused)
            note_silent(round, report->collector);
    }
    publisher_close(publisher);
    return STATUS_OK;
}

static void log_report(const struct round *round, const struct replay_report *report)
{
    char uuid[37];
    text_from_uuid(uuid, report->run->uuid);
    if (report->end == REPLAY_SENT)
        log_sink_write(&round->settings->log, INFERSTAT_LOG_INFO,
                       "run %s (process %" PRId64 ") had left %" PRIu64 " records: sent to %s",
                       uuid, report->run->pid, report->records, report->collector);
    else if (report->end == REPLAY_FORGOTTEN)
        log_sink_write(&round->settings->log, INFERSTAT_LOG_WARNING,
                       "run %s (process %" PRId64 ") had left %" PRIu64
                       " records: discarded, since the collector at %s has removed this run",
                       uuid, report->run->pid, report->records, report->collector);
    else if (report->end == REPLAY_AWAY && !round->is_later)
        log_sink_write(
            &round->settings->log, INFERSTAT_LOG_WARNING,
            "run %s (process %" PRId64 ") has left %" PRIu64
            " records, and the collector at %s does not take them: they stay until it does",
            uuid, report->run->pid, report->records, report->collector);
}

static void log_skipped(const struct round *round, const struct error *err)
{
    if (!round->is_later)
        log_sink_write(&round->settings->log, INFERSTAT_LOG_WARNING, "a run is skipped: %s",
                       err->text);
}

// Whether the orphan's collector is known to be unresponsive, so that reading its files can be
// skipped.
static bool is_unresponsive(const struct round *round, const struct orphans_place *place)
{
    if (round->silent_count == 0)
        return false;
    char collector[ADDRESS_TEXT_SIZE];
    if (round->settings->collector)
        (void)snprintf(collector, sizeof collector, "%s", round->settings->collector);
    else if (!orphans_collector(&round->settings->folders, place, collector))
        return false;
    return find_silent(round, collector) != NULL;
}

// The outcome for an orphan that could not be opened.
static enum replay_end end_of(enum status status)
{
    switch ((int)status) {
    case STATUS_BUSY:
    case STATUS_NOT_FOUND:
        return REPLAY_BUSY;
    case STATUS_TIMEOUT:
        return REPLAY_HELD;
    case STATUS_NOMEM:
    case STATUS_IO:
    case STATUS_FULL:
        return REPLAY_LATER;
    case STATUS_CANCELLED:
        return REPLAY_STOPPED;
    default:
        return REPLAY_UNUSABLE;
    }
}

// Replays one run if it is an orphan.
static enum replay_end replay_place(struct round *round, const struct orphans_place *place)
{
    struct orphan orphan;
    struct error err = {.status = STATUS_OK};
    if (!round->listener && is_unresponsive(round, place))
        return REPLAY_AWAY;
    struct orphans_folders folders = round->settings->folders;
    folders.stop = round->stop;
    enum status status = orphan_open(&orphan, &folders, place, &err);
    if (status != STATUS_OK) {
        const enum replay_end end = end_of(status);
        if (end != REPLAY_BUSY && end != REPLAY_STOPPED)
            log_skipped(round, &err);
        return end;
    }
    struct replay_report report = {
        .run = runfile_run(orphan.file), .trouble = "", .records = orphan_records(&orphan)};
    status = send_orphan(round, &orphan, &report, &err);
    if (status != STATUS_OK) {
        log_skipped(round, &err);
        report.end = end_of(status);
    } else {
        log_report(round, &report);
    }
    if (round->listener)
        round->listener(round->context, &report);
    if (report.end == REPLAY_SENT || report.end == REPLAY_FORGOTTEN)
        orphan_remove(&orphan);
    else
        orphan_close(&orphan);
    return report.end;
}

// ---- All --------------------------------------------------------------------------

static bool is_for(const struct round *round, const struct orphans_place *place,
                   const char *collector)
{
    char text[ADDRESS_TEXT_SIZE];
    return orphans_collector(&round->settings->folders, place, text) &&
           strcmp(text, collector) == 0;
}

// Removes the replaying run from the list, and moves those of its collector to the front.
static void order_list(const struct round *round, struct orphans_list *list)
{
    const struct runfile_run *own = round->settings->own;
    size_t first = 0, kept = 0;
    for (size_t i = 0; own && i < list->count; i++) {
        const struct orphans_place place = list->places[i];
        if (memcmp(place.uuid, own->uuid, RUNFILE_UUID_SIZE) == 0)
            continue;
        list->places[kept] = place;
        if (is_for(round, &place, own->collector)) {
            list->places[kept] = list->places[first];
            list->places[first++] = place;
        }
        kept++;
    }
    if (own)
        list->count = kept;
}

static enum status replay_round(struct round *round, struct error *err)
{
    struct orphans_list list;
    round->counts = (struct replay_counts){{0}};
    round->silent_count = 0;
    enum status status = orphans_find(&list, &round->settings->folders, err);
    if (status != STATUS_OK)
        return status;
    order_list(round, &list);
    for (size_t i = 0; i < list.count && !is_stopped(round); i++)
        round->counts.ends[replay_place(round, &list.places[i])]++;
    orphans_deinit(&list);
    return STATUS_OK;
}

enum status replay_all(const struct replay_settings *settings, const _Atomic bool *stop,
                       replay_listener *listener, void *context, struct replay_counts *counts,
                       struct error *err)
{
    struct round round = {
        .settings = settings,
        .stop = stop,
        .stop_fd = -1,
        .listener = listener,
        .context = context,
    };
    const enum status status = replay_round(&round, err);
    *counts = round.counts;
    return status;
}

// ---- In the background -------------------------------------------------------------

struct replay {
    struct replay_settings settings;
    struct thread thread;
    int wake_fd;
    _Atomic bool stopping;
    struct round round;
};

// The pause before the next round, given the previous one (`before_ms`, 0: none), with
// back-off.  0: nothing is left to retry.
static int next_wait_ms(const struct replay_counts *counts, bool failed, int before_ms)
{
    const bool away = counts->ends[REPLAY_AWAY] + counts->ends[REPLAY_HELD] > 0;
    const bool later = failed || counts->ends[REPLAY_LATER] > 0;
    const bool busy = counts->ends[REPLAY_BUSY] > 0 && before_ms < round_min_ms / 2;
    if (!away && !later && !busy)
        return 0;
    int wait_ms = before_ms ? 2 * before_ms : retry_min_ms;
    if (away && wait_ms < round_min_ms)
        wait_ms = round_min_ms;
    return wait_ms < round_max_ms ? wait_ms : round_max_ms;
}

static void *run(void *context)
{
    struct replay *replay = context;
    struct round *round = &replay->round;
    struct orphans_folders folders = replay->settings.folders;
    const struct orphans_bounds bounds =
        orphans_default_bounds(folders.runs, replay->settings.spool_bytes);
    folders.stop = &replay->stopping;
    for (int wait_ms = 0;;) {
        struct error err = {.status = STATUS_OK};
        orphans_tidy(&folders, &bounds, &replay->settings.log);
        const bool failed = replay_round(round, &err) != STATUS_OK;
        round->is_later = !failed;
        if (failed && wait_ms == 0)
            log_sink_write(&replay->settings.log, INFERSTAT_LOG_WARNING,
                           "replay cannot list ended runs: %s", err.text);
        wait_ms = next_wait_ms(&round->counts, failed, wait_ms);
        if (wait_ms == 0 || is_stopped(round))
            return NULL;
        struct pollfd wake = {.fd = replay->wake_fd, .events = POLLIN};
        (void)poll(&wake, 1, wait_ms);
        if (is_stopped(round))
            return NULL;
    }
}

enum status replay_start(struct replay **out, const struct replay_settings *settings,
                         struct error *err)
{
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return error_no_memory(err, "replay");
    replay->settings = *settings;
    replay->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    replay->round = (struct round){
        .settings = &replay->settings, .stop = &replay->stopping, .stop_fd = replay->wake_fd};
    enum status status = replay->wake_fd < 0
                             ? error_set(err, STATUS_IO, "replay: eventfd: %s", strerror(errno))
                             : thread_start(&replay->thread, "replay", run, replay, err);
    if (status != STATUS_OK) {
        if (replay->wake_fd >= 0)
            (void)close(replay->wake_fd);
        free(replay);
        return status;
    }
    (void)pthread_setname_np(replay->thread.id, "inferstat-past");
    *out = replay;
    return STATUS_OK;
}

void replay_stop(struct replay *replay)
{
    if (!replay)
        return;
    atomic_store_explicit(&replay->stopping, true, memory_order_release);
    (void)eventfd_write(replay->wake_fd, 1);
    thread_join(&replay->thread);
    (void)close(replay->wake_fd);
    free(replay);
}
