#include "server/collector/writer/writer_batch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/store/schema/schema.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/access/quota.h"
#include "server/collector/writer/writer_owner.h"

enum {
    CREDIT_TOTAL = 262144, // records in flight, of all runs together
    CREDIT_MAX = 65536,    // of one run
    CREDIT_MIN = 64,       // keeps the total for up to 4,096 runs
    REFUSED_MAX = 64,      // rejected ranges listed in one Ack; the store has all
    REASON_SIZE = 128,     // of each
};

// Runs that have been silent for longer do not count towards the limit per key: otherwise
// machines that died would lock out their replacements.
#define UNFINISHED_NS INT64_C(3600000000000)

// An Ack to be sent when the group is committed.
struct pending_ack {
    struct pending_ack *next;
    struct job_return to;
    unsigned char run[MESSAGE_RUN_SIZE];
    struct run *about; // the same run; NULL: unknown, or `error`
    bool is_hello;     // answers a Hello: lists all streams
    bool hello_wanted; // the run is unknown, or has not sent Hello to this collector
    bool forgotten;    // with `error`: the run was removed from the store
    const char *error; // static
    uint64_t sequence;
    int64_t echo_sent_ns;
    struct refused_list *refused; // NULL until there are any
};

// The rejected ranges that an Ack lists.
struct refused_list {
    size_t count;
    struct wire_refused ranges[REFUSED_MAX];
    char reasons[REFUSED_MAX][REASON_SIZE];
};

struct batches {
    struct runs *runs;
    struct inserter *inserter;
    struct channels *channels;
    struct access *access; // NULL: no keys
    struct limits limits;
    unsigned char store[16];
    uint32_t records;
    uint32_t open_runs;                // as of the last group, and those opened since
    struct pending_ack *first, **last; // in order of arrival
    uint64_t group;                    // number of the group, from 1
    uint32_t credit;                   // of each run, as last granted
    struct delivery_range *drops;      // of the current message
    uint8_t fold[DELIVERY_BATCH_MAX];  // of the current table: see cells_add
    bool has_folded;                   // names of any record, so far
    size_t drops_room;
};

enum status batches_new(struct batches **out, struct runs *runs, struct inserter *inserter,
                        const unsigned char store[16], struct channels *channels, struct error *err)
{
    struct batches *batches = calloc(1, sizeof *batches);
    if (!batches)
        return error_no_memory(err, "writer");
    batches->runs = runs;
    batches->inserter = inserter;
    batches->channels = channels;
    memcpy(batches->store, store, sizeof batches->store);
    batches->last = &batches->first;
    batches->limits = LIMITS_DEFAULT;
    batches->group = 1;
    *out = batches;
    return STATUS_OK;
}

void batches_set_rules(struct batches *batches, struct access *access, const struct limits *limits)
{
    batches->access = access;
    batches->limits = *limits;
    runs_limit_names(batches->runs, limits->names, batches->channels->quota);
}

void batches_free(struct batches *batches)
{
    if (!batches)
        return;
    batches_drop_acks(batches);
    free(batches->drops);
    free(batches);
}

void batches_begin(struct batches *batches)
{
    batches->records = 0;
    batches->group++;
}

uint32_t batches_records(const struct batches *batches)
{
    return batches->records;
}

// ---- Acks ------------------------------------------------------------------------------

void batches_drop_acks(struct batches *batches)
{
    while (batches->first) {
        struct pending_ack *ack = batches->first;
        batches->first = ack->next;
        free(ack->refused);
        free(ack);
    }
    batches->last = &batches->first;
}

static struct pending_ack *add_ack(struct batches *batches, const struct job *job,
                                   const unsigned char run[MESSAGE_RUN_SIZE])
{
    struct pending_ack *ack = calloc(1, sizeof *ack);
    if (!ack)
        return NULL;
    ack->to = job->from;
    memcpy(ack->run, run, MESSAGE_RUN_SIZE);
    *batches->last = ack;
    batches->last = &ack->next;
    return ack;
}

// The Ack that covers a message of this run: the run's latest in the group if it has the same
// route and does not answer a Hello.  Each message of an unknown run (NULL) gets its own.
static struct pending_ack *join_ack(struct batches *batches, const struct job *job, struct run *run,
                                    const unsigned char id[MESSAGE_RUN_SIZE])
{
    if (run && run->ack_group == batches->group && !run->ack->is_hello &&
        job_return_is_same(&run->ack->to, &job->from))
        return run->ack;
    struct pending_ack *ack = add_ack(batches, job, id);
    if (run && ack) {
        run->ack = ack;
        run->ack_group = batches->group;
    }
    return ack;
}

static uint32_t credit_per_run(struct batches *batches)
{
    const uint32_t open = runs_open_count(batches->runs);
    const uint32_t credit = CREDIT_TOTAL / (open ? open : 1);
    batches->open_runs = open;
    if (credit > CREDIT_MAX)
        return CREDIT_MAX;
    return credit < CREDIT_MIN ? CREDIT_MIN : credit;
}

static void send_ack(struct batches *batches, const struct pending_ack *ack)
{
    struct delivery_next next[DELIVERY_STREAMS_MAX];
    struct message message = {.kind = MESSAGE_ACK};
    struct message_ack *out = &message.ack;
    out->protocol = MESSAGE_PROTOCOL;
    memcpy(out->run, ack->run, MESSAGE_RUN_SIZE);
    memcpy(out->delivery.store, batches->store, sizeof batches->store);
    out->delivery.sequence = ack->is_hello ? 0 : ack->sequence;
    out->delivery.credit = batches->credit;
    out->delivery.hello_wanted = ack->hello_wanted;
    if (ack->refused) {
        out->refused = ack->refused->ranges;
        out->refused_count = ack->refused->count;
    }
    out->forgotten = ack->forgotten;
    out->sent_ns = clock_wall_ns();
    out->echo_sent_ns = ack->echo_sent_ns;
    if (ack->error)
        out->error = (struct wire_bytes){strlen(ack->error), ack->error};
    else if (ack->about && !ack->hello_wanted)
        delivery_run_answer(&ack->about->delivery, ack->is_hello, &out->delivery, next);
    answer_submit(batches->channels->acks, answer_encode(&ack->to, &message));
}

void batches_send_acks(struct batches *batches)
{
    batches->credit = credit_per_run(batches);
    peer_credit_set_credit(&batches->channels->credit, batches->credit, clock_monotonic_ns());
    for (const struct pending_ack *ack = batches->first; ack; ack = ack->next)
        send_ack(batches, ack);
    for (const struct pending_ack *ack = batches->first; ack; ack = ack->next)
        if (ack->about)
            delivery_run_answered(&ack->about->delivery);
    batches_drop_acks(batches);
}

// ---- Messages ----------------------------------------------------------------------------

// Updates the time of the run's last message: the later of the collector's clock and the
// run's, if that is plausible.  Messages that another process replays for a dead run do not
// count.
static void note_heard(struct run *run, int64_t received_ns, int64_t sent_ns)
{
    run->heard_at_ns = clock_monotonic_ns();
    run->link.heard_ns = received_ns;
    if (run->delivery.replayed)
        return;
    if (received_ns > run->heard_ns)
        run->heard_ns = received_ns;
    if (sent_ns > run->heard_ns && sent_ns < received_ns + SCHEMA_CLOCK_AHEAD_NS)
        run->heard_ns = sent_ns;
}

// Notes that an invalid batch is rejected for good.
static void note_refused(struct run *run, const struct delivery_range *range, const char *reason,
                         struct pending_ack *ack)
{
    // A warning once per run: a broken producer must not fill the log.
    log_write(run->refused ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
              "run %lld, stream %u: records %llu to %llu refused: %s", (long long)run->id,
              range->stream, (unsigned long long)range->first, (unsigned long long)range->last,
              reason);
    run->refused = saturate_add(run->refused, (int64_t)(range->last - range->first + 1));
    if (!ack->refused)
        ack->refused = calloc(1, sizeof *ack->refused);
    struct refused_list *refused = ack->refused;
    if (!refused || refused->count == REFUSED_MAX)
        return; // the store has it
    char *copy = refused->reasons[refused->count];
    (void)snprintf(copy, REASON_SIZE, "%s", reason);
    refused->ranges[refused->count++] = (struct wire_refused){.stream = range->stream,
                                                              .first = range->first,
                                                              .last = range->last,
                                                              .reason = {strlen(copy), copy}};
}

enum { DEVICES_MAX = 65536 }; // larger ordinals are not plausible

// A run's devices are numbered from 0.
static void count_devices(struct run *run, const struct wire_table *table)
{
    for (size_t c = 0; c < table->column_count; c++) {
        const struct wire_column *column = &table->columns[c];
        for (size_t row = 0; column->index == DEVICE_ORDINAL && row < table->count; row++)
            if (column->ints[row] >= 0 && column->ints[row] < DEVICES_MAX)
                run_count_devices(run, column->ints[row] + 1);
    }
}

static struct cells_batch cells_batch_of(const struct batches *batches, const struct run *run,
                                         const struct job *job)
{
    return (struct cells_batch){.quota = batches->channels->quota,
                                .owner = job->owner,
                                .received_ns = job->received_ns,
                                .names = run->names};
}

// True if a message must be discarded for now, as its owner has used up its quota of cells: it has
// old records, or adds dropped ranges to a run that has DELIVERY_DROPS_MAX.  These and the stored
// ranges between them stay in the store as long as the run.
static bool must_wait(struct batches *batches, const struct run *run, const struct job *job,
                      const struct delivery_message *head)
{
    const struct cells_batch cells = cells_batch_of(batches, run, job);
    const bool is_batch = head->kind == DELIVERY_BATCH;
    const bool is_faulty = is_batch && (job->message.batch.fault || head->names_missing);
    const uint64_t drops = run->drop_count < DELIVERY_DROPS_MAX ? 0 : head->drop_count + is_faulty;
    const bool waits =
        (drops > 0 &&
         !quota_take(cells.quota, cells.owner, QUOTA_CELLS, drops, clock_monotonic_ns())) ||
        (is_batch && batches->has_folded && cells_must_wait(&cells, &job->message.batch));
    reject_counters_count(&batches->channels->rejects, REFUSAL_QUOTA, waits);
    return waits;
}

// Stores the batch's records from number `first` on.
static enum status store(struct batches *batches, struct run *run, uint64_t first,
                         const struct job *job, struct error *err)
{
    const struct message_batch *batch = &job->message.batch;
    const struct cells_batch cells = cells_batch_of(batches, run, job);
    struct batch_run owner = {.run = run->id,
                              .stream = batch->stream,
                              .received_ns = job->received_ns,
                              .names = run->names};
    for (size_t i = 0; i < batch->table_count; i++) {
        int64_t stored = 0;
        bool folds = false;
        enum status status = STATUS_OK;
        assert(batch->tables[i].count <= DELIVERY_BATCH_MAX); // the codec checks it
        if (cells_add(&run->cells, &cells, &batch->tables[i], first, batches->fold, &folds) !=
            STATUS_OK)
            return error_no_memory(err, "writer");
        batches->has_folded = batches->has_folded || folds;
        owner.fold = folds ? batches->fold : NULL;
        if (folds) {
            quota_complain(cells.quota, &job->peer,
                           "spreads records over too many names and days: names become other", 1);
            status = runs_other_name(batches->runs, &owner.other, err);
        }
        if (status == STATUS_OK)
            status = insert_table(batches->inserter, &owner, &batch->tables[i], first, &stored,
                                  &run->clock_suspects, err);
        if (status != STATUS_OK)
            return status;
        if (batch->tables[i].kind == RECORD_KIND_DEVICE)
            count_devices(run, &batch->tables[i]);
        run->stored += stored;
        run->stored_by_kind[batch->tables[i].kind] += stored;
        batches->records += (uint32_t)stored;
    }
    run->unknown_columns += batch->unknown_columns;
    return STATUS_OK;
}

// ---- Applying a message ----------------------------------------------------------------------

static const struct wire_drop *drops_of(const struct message *message, size_t *count)
{
    const bool is_goodbye = message->kind == MESSAGE_GOODBYE;
    *count = is_goodbye ? message->goodbye.drop_count : message->batch.drop_count;
    return is_goodbye ? message->goodbye.drops : message->batch.drops;
}

// Describes the message for the delivery protocol; its dropped ranges are copied without their
// details.  `*run` is whose message it is.
static enum status describe(struct batches *batches, struct delivery_message *head,
                            const struct job *job, const unsigned char **run)
{
    const struct message *message = &job->message;
    const struct message_hello *hello = &message->hello;
    const struct message_batch *batch = &message->batch;
    const struct message_goodbye *goodbye = &message->goodbye;
    if (message->kind == MESSAGE_HELLO) {
        *run = hello->run;
        *head = (struct delivery_message){.kind = DELIVERY_HELLO,
                                          .protocol = hello->protocol,
                                          .replay = hello->replay,
                                          .streams = hello->streams,
                                          .stream_count = hello->stream_count};
        return STATUS_OK;
    }
    if (message->kind == MESSAGE_GOODBYE) {
        *run = goodbye->run;
        *head = (struct delivery_message){.kind = DELIVERY_GOODBYE,
                                          .streams = goodbye->streams,
                                          .stream_count = goodbye->stream_count,
                                          .ended_ns = goodbye->ended_ns > 0 ? goodbye->ended_ns
                                                                            : job->received_ns,
                                          .killed = goodbye->killed};
    } else {
        *run = batch->run;
        *head = (struct delivery_message){.kind = DELIVERY_BATCH,
                                          .streams = batch->streams,
                                          .stream_count = batch->stream_count,
                                          .stream = batch->stream,
                                          .first = batch->first,
                                          .last = batch->last,
                                          .names_first = batch->names_first,
                                          .name_count = batch->name_count};
    }
    const struct wire_drop *drops = drops_of(message, &head->drop_count);
    if (!ARRAY_RESERVE(&batches->drops, &batches->drops_room, head->drop_count))
        return STATUS_NOMEM;
    for (size_t i = 0; i < head->drop_count; i++)
        batches->drops[i] = drops[i].range;
    head->drops = batches->drops;
    return STATUS_OK;
}

static const char forgotten_error[] =
    "the collector has removed this run, and accepts nothing more of it";

// Creates or extends the Ack that will answer the message.
static struct pending_ack *ack_for(struct batches *batches, const struct job *job, struct run *run,
                                   const unsigned char id[MESSAGE_RUN_SIZE],
                                   enum delivery_hearing hearing, const char *error)
{
    const struct message *message = &job->message;
    const bool alone = message->kind == MESSAGE_HELLO || error;
    struct pending_ack *ack = alone ? add_ack(batches, job, id) : join_ack(batches, job, run, id);
    if (!ack)
        return NULL;
    uint64_t sequence = 0;
    if (message->kind == MESSAGE_BATCH) {
        sequence = message->batch.sequence;
        ack->echo_sent_ns = message->batch.sent_ns;
    } else if (message->kind == MESSAGE_GOODBYE) {
        sequence = message->goodbye.sequence;
    }
    if (sequence > ack->sequence)
        ack->sequence = sequence;
    ack->is_hello = message->kind == MESSAGE_HELLO;
    ack->hello_wanted = hearing == DELIVERY_HELLO_WANTED;
    ack->error = error;
    ack->about = error ? NULL : run;
    ack->forgotten = error == forgotten_error;
    return ack;
}

static enum status on_hello(struct batches *batches, const struct job *job, struct run **run,
                            struct error *err)
{
    const struct message_hello *hello = &job->message.hello;
    enum status status = STATUS_OK;
    if (*run) {
        status = runs_describe(batches->runs, *run, hello, err);
    } else {
        batches->open_runs++;
        status = runs_add(batches->runs, hello, &job->peer, job->owner, job->received_ns, run, err);
    }
    return status == STATUS_OK ? owner_connect(batches->runs, *run, job, err) : status;
}

// Sets `*error` where the sender's owner may not open another run.
static enum status check_new_run(struct batches *batches, const struct job *job, const char **error,
                                 struct error *err)
{
    struct quota *quota = batches->channels->quota;
    int64_t count = 0;
    bool is_forgotten = false;
    enum status status = runs_is_forgotten(batches->runs, &job->message.hello, &job->peer,
                                           batches->access, &is_forgotten, err);
    if (status == STATUS_OK && is_forgotten) {
        *error = forgotten_error;
        reject_counters_count(&batches->channels->rejects, REFUSAL_FORGOTTEN, 1);
        return STATUS_OK;
    }
    if (status == STATUS_OK)
        status = runs_count_unfinished(batches->runs, &job->peer, job->received_ns - UNFINISHED_NS,
                                       &count, err);
    if (status != STATUS_OK)
        return status;
    if (count >= (int64_t)batches->limits.runs_per_key)
        *error = "the key has more open runs than --max-runs-per-key";
    else if (count >= LIMITS_OPEN_SHARE * ((int64_t)LIMITS_OPEN_RUNS - batches->open_runs))
        *error = "the collector has as many open runs as it takes";
    if (*error)
        quota_complain(quota, &job->peer, *error, 1);
    else if (!quota_take(quota, job->owner, QUOTA_RUNS, 1, clock_monotonic_ns()))
        *error = "the key or user has opened as many runs as --quota allows";
    if (*error)
        reject_counters_count(&batches->channels->rejects, REFUSAL_RUNS, 1);
    return STATUS_OK;
}

// When the message was created, by the host's clock; estimated if the message does not say.
static int64_t host_now(const struct run *run, const struct job *job)
{
    const struct message *message = &job->message;
    int64_t now_ns = 0;
    if (message->kind == MESSAGE_BATCH)
        now_ns = message->batch.sent_ns;
    else if (message->kind == MESSAGE_GOODBYE)
        now_ns = message->goodbye.ended_ns;
    if (now_ns > 0)
        return now_ns;
    return saturate_add(job->received_ns, run->clock_error_ns ? run->clock_offset_ns : 0);
}

// Updates the run from the message's fields beside its records.
static enum status update_run(struct run *run, const struct job *job, struct error *err)
{
    const struct message *message = &job->message;
    const struct message_goodbye *goodbye = &message->goodbye;
    note_heard(run, job->received_ns, message->kind == MESSAGE_BATCH ? message->batch.sent_ns : 0);
    if (message->kind == MESSAGE_GOODBYE && goodbye->killed &&
        run->delivery.end != RECORD_RUN_END_CLOSED)
        return run_set_killed(run, goodbye->activities, goodbye->activity_count, err);
    if (message->kind != MESSAGE_BATCH)
        return STATUS_OK;
    run_set_clock(run, message->batch.clock_offset_ns, message->batch.clock_error_ns);
    struct wire_bytes activity = message->batch.activity;
    activity.size = text_cut(activity.bytes, activity.size, RUN_TEXT_MAX);
    return activity.size ? run_set_activity(run, activity, err) : STATUS_OK;
}

static enum status add_names(struct batches *batches, struct run *run, const struct job *job,
                             struct error *err)
{
    const struct message_batch *batch = &job->message.batch;
    uint64_t folded = 0;
    enum status status = run_add_names(batches->runs, run, job->owner, batch->names_first,
                                       batch->names, batch->name_count, &folded, err);
    if (folded > 0 && run->delivery.names_known >= batches->limits.names)
        quota_complain(batches->channels->quota, &job->peer,
                       "a run has more names than --max-names: stored as other", folded);
    reject_counters_count(&batches->channels->rejects, REFUSAL_NAMES, folded);
    return status;
}

static enum status apply_step(struct batches *batches, struct run *run,
                              const struct delivery_step *step, const struct job *job,
                              struct pending_ack *ack, struct error *err)
{
    const struct message_batch *batch = &job->message.batch;
    struct delivery_range range = {.since_ns = job->received_ns, .until_ns = job->received_ns};
    int state = SCHEMA_RANGE_DROPPED;
    const char *fault = NULL;
    struct wire_bytes detail = {0};
    enum status status = STATUS_OK;
    size_t count;
    switch (step->kind) {
    case DELIVERY_STEP_NAMES:
        return add_names(batches, run, job, err);
    case DELIVERY_STEP_DROP:
        range = drops_of(&job->message, &count)[step->index].range;
        detail = drops_of(&job->message, &count)[step->index].detail;
        break;
    case DELIVERY_STEP_LOST:
        range.reason = DELIVERY_HOST_LOST;
        break;
    case DELIVERY_STEP_STORE:
        fault = batch->fault ? batch->fault : insert_fault(batch, run->delivery.names_known);
        if (!fault) {
            state = SCHEMA_RANGE_STORED;
            status = store(batches, run, step->first, job, err);
        }
        break;
    }
    range.stream = run->delivery.lanes[step->place].stream;
    range.first = step->first;
    range.last = step->last;
    if (fault) {
        range.reason = DELIVERY_REFUSED;
        detail = (struct wire_bytes){strlen(fault), fault};
        note_refused(run, &range, fault, ack);
    }
    return status == STATUS_OK
               ? run_record_range(batches->runs, run, step->place, state, &range, detail, err)
               : status;
}

enum status batches_apply(struct batches *batches, const struct job *job, struct error *err)
{
    const unsigned char *id;
    struct delivery_message head;
    if (describe(batches, &head, job, &id) != STATUS_OK)
        return error_no_memory(err, "writer");
    struct run *run = NULL;
    enum status status = runs_find(batches->runs, id, &run, err);
    if (status != STATUS_OK)
        return status;
    head.sender = owner_sender(run, job, batches->access, batches->channels);
    head.life_ns = owner_life_ns(run, job);
    if (run && (head.sender == DELIVERY_SENDER_KNOWN || head.sender == DELIVERY_SENDER_NEW))
        status = runs_complete(batches->runs, run, err);
    if (status != STATUS_OK)
        return status;
    if (run && head.kind == DELIVERY_BATCH)
        head.names_missing = insert_fault(&job->message.batch,
                                          delivery_run_names_after(&run->delivery, &head)) != NULL;
    const enum delivery_hearing hearing = delivery_hear(run ? &run->delivery : NULL, &head);
    const char *error = owner_reject(run, job, hearing, batches->channels);
    if (hearing == DELIVERY_BUSY)
        return STATUS_OK; // the sender tries again
    if (hearing == DELIVERY_HEARD && !run)
        status = check_new_run(batches, job, &error, err);
    if (status != STATUS_OK)
        return status;
    if (run && hearing == DELIVERY_HEARD && must_wait(batches, run, job, &head))
        return STATUS_OK; // as if it had been lost
    struct pending_ack *ack = ack_for(batches, job, run, id, hearing, error);
    if (!ack)
        return error_no_memory(err, "writer");
    if (hearing != DELIVERY_HEARD || error)
        return STATUS_OK;
    if (head.kind == DELIVERY_HELLO)
        status = on_hello(batches, job, &run, err);
    if (status != STATUS_OK)
        return status;
    ack->about = run;
    const enum record_run_end end = run->delivery.end;
    struct delivery_acceptance taking;
    struct delivery_step step;
    if (delivery_accept(&taking, &run->delivery, &head) != STATUS_OK)
        return error_no_memory(err, "writer");
    status = run_make_streams(run, err);
    if (status == STATUS_OK)
        status = update_run(run, job, err);
    if (status == STATUS_OK)
        status =
            run_record_unnumbered(batches->runs, run, job->received_ns, host_now(run, job), err);
    while (status == STATUS_OK && delivery_accept_next(&taking, &step))
        status = apply_step(batches, run, &step, job, ack, err);
    if (run->delivery.end != end && run->delivery.end == RECORD_RUN_END_KILLED)
        (void)quota_take(batches->channels->quota, job->owner, QUOTA_KILLS, 1,
                         clock_monotonic_ns()); // warns
    return status;
}
