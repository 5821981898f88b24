#include "server/collector/writer_batch.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/delivery.h"
#include "common/core/saturate.h"
#include "common/store/schema.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"

enum {
    CREDIT_TOTAL = 262144, // records that may be under way, of all runs together
    CREDIT_MAX = 65536,    // of one run
    CREDIT_MIN = 4096,
    REFUSED_MAX = 64, // ranges named in one Ack; all are in the ledger
};

// An Ack to be sent when the group is committed.
struct pending_ack {
    struct pending_ack *next;
    struct work_return to;
    unsigned char run[MESSAGE_RUN_SIZE];
    bool is_hello;     // answers a Hello: names all streams
    bool hello_wanted; // the run is not known, or has not greeted this collector
    const char *error; // static
    uint64_t sequence;
    int64_t echo_sent_ns;
    size_t refused_count;
    struct wire_refused refused[REFUSED_MAX];
    char *reasons[REFUSED_MAX];
};

struct batches {
    struct runs *runs;
    struct inserter *inserter;
    struct queue *acks;
    unsigned char store[16];
    uint32_t records;
    struct pending_ack *first, **last; // in order of arrival
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "writer: out of memory");
}

enum status batches_new(struct batches **out, struct runs *runs, struct inserter *inserter,
                        const unsigned char store[16], struct queue *acks, struct error *err)
{
    struct batches *batches = calloc(1, sizeof *batches);
    if (!batches)
        return out_of_memory(err);
    batches->runs = runs;
    batches->inserter = inserter;
    batches->acks = acks;
    memcpy(batches->store, store, sizeof batches->store);
    batches->last = &batches->first;
    *out = batches;
    return STATUS_OK;
}

void batches_free(struct batches *batches)
{
    if (!batches)
        return;
    batches_drop_acks(batches);
    free(batches);
}

void batches_begin(struct batches *batches)
{
    batches->records = 0;
}

uint32_t batches_records(const struct batches *batches)
{
    return batches->records;
}

// ---- Acks ------------------------------------------------------------------------------

static void ack_free(struct pending_ack *ack)
{
    for (size_t i = 0; i < ack->refused_count; i++)
        free(ack->reasons[i]);
    free(ack);
}

void batches_drop_acks(struct batches *batches)
{
    while (batches->first) {
        struct pending_ack *ack = batches->first;
        batches->first = ack->next;
        ack_free(ack);
    }
    batches->last = &batches->first;
}

static struct pending_ack *add_ack(struct batches *batches, const struct work *work,
                                   const unsigned char run[MESSAGE_RUN_SIZE])
{
    struct pending_ack *ack = calloc(1, sizeof *ack);
    if (!ack)
        return NULL;
    ack->to = work->from;
    memcpy(ack->run, run, MESSAGE_RUN_SIZE);
    *batches->last = ack;
    batches->last = &ack->next;
    return ack;
}

// The Ack that a batch of this run joins: the run's last one of the group, where
// it goes the same way and is no answer to a Hello.
static struct pending_ack *join_ack(struct batches *batches, const struct work *work,
                                    const unsigned char run[MESSAGE_RUN_SIZE])
{
    struct pending_ack *found = NULL;
    for (struct pending_ack *ack = batches->first; ack; ack = ack->next)
        if (memcmp(ack->run, run, MESSAGE_RUN_SIZE) == 0)
            found = ack;
    if (found && !found->is_hello && found->to.socket == work->from.socket &&
        found->to.route.size == work->from.route.size &&
        memcmp(found->to.route.id, work->from.route.id, found->to.route.size) == 0)
        return found;
    return add_ack(batches, work, run);
}

static void name_refused(struct pending_ack *ack, uint32_t stream, uint64_t first, uint64_t last,
                         const char *reason)
{
    if (ack->refused_count == REFUSED_MAX)
        return;
    char *copy = strdup(reason);
    if (!copy)
        return; // the ledger has it
    ack->reasons[ack->refused_count] = copy;
    ack->refused[ack->refused_count++] = (struct wire_refused){
        .stream = stream, .first = first, .last = last, .reason = {strlen(copy), copy}};
}

static uint32_t credit(const struct batches *batches)
{
    const uint32_t open = runs_open_count(batches->runs);
    const uint32_t share = CREDIT_TOTAL / (open ? open : 1);
    if (share > CREDIT_MAX)
        return CREDIT_MAX;
    return share < CREDIT_MIN ? CREDIT_MIN : share;
}

// The numbers wanted next: of all streams after a Hello, else of those touched.
static size_t list_next(struct run *run, bool all, struct delivery_next *next)
{
    size_t count = 0;
    for (size_t i = 0; i < run->stream_count; i++) {
        struct run_stream *stream = &run->streams[i];
        if (all || stream->touched)
            next[count++] = (struct delivery_next){stream->stream, stream->next};
        stream->touched = false;
    }
    return count;
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
    out->delivery.credit = credit(batches);
    out->delivery.hello_wanted = ack->hello_wanted;
    out->refused = ack->refused;
    out->refused_count = ack->refused_count;
    out->sent_ns = clock_wall_ns();
    out->echo_sent_ns = ack->echo_sent_ns;
    struct run *run = NULL;
    if (ack->error)
        out->error = (struct wire_bytes){strlen(ack->error), ack->error};
    else if (!ack->hello_wanted && runs_find(batches->runs, ack->run, &run, NULL) != STATUS_OK)
        return;
    if (run) {
        out->delivery.next = next;
        out->delivery.next_count = list_next(run, ack->is_hello, next);
        out->delivery.names_known = run->name_count;
        out->delivery.closed = run_is_over(run);
    }
    struct answer *answer = answer_encode(&ack->to, &message);
    if (!answer || !queue_push(batches->acks, answer, answer->size))
        answer_free(answer); // the producer will ask again
}

void batches_send_acks(struct batches *batches)
{
    for (const struct pending_ack *ack = batches->first; ack; ack = ack->next)
        send_ack(batches, ack);
    batches_drop_acks(batches);
}

// ---- Messages ----------------------------------------------------------------------------

// The run speaks: by the collector's clock and its own, the later of the two, as
// long as its own is plausible.  What another process sends of a dead run is no
// sign of its life.
static void hear(struct run *run, int64_t received_ns, int64_t sent_ns)
{
    run->heard_at_ns = clock_monotonic_ns();
    if (run->replayed)
        return;
    if (received_ns > run->heard_ns)
        run->heard_ns = received_ns;
    if (sent_ns > run->heard_ns && sent_ns < received_ns + SCHEMA_CLOCK_AHEAD_NS)
        run->heard_ns = sent_ns;
    if (run->end == RECORD_RUN_END_SILENT) {
        run->end = RECORD_RUN_END_OPEN;
        run->dirty = true;
    }
}

static void reopen(struct run *run)
{
    const enum record_run_end end = run->replayed ? RECORD_RUN_END_SILENT : RECORD_RUN_END_OPEN;
    if (run->end == end)
        return;
    run->end = end;
    run->ended_ns = 0;
    run->goodbye_ns = 0; // that one is answered; it has to say it again
    run->dirty = true;
}

static void close_when_complete(struct run *run)
{
    const enum record_run_end end =
        run->goodbye_killed ? RECORD_RUN_END_KILLED : RECORD_RUN_END_CLOSED;
    // A run that has said itself that it is over was not killed.
    if (run->goodbye_ns == 0 || run->end == RECORD_RUN_END_CLOSED || run->end == end ||
        !run_is_complete(run))
        return;
    run->end = end;
    run->ended_ns = run->goodbye_ns;
    run->dirty = true;
}

// What the producer says of its streams.  A run that was over and has made more
// since is over no longer.
static enum status hear_streams(struct run *run, const struct delivery_stream *streams,
                                size_t count, struct error *err)
{
    enum status status = run_hear_streams(run, streams, count, err);
    if (run_is_over(run) && !run_is_complete(run))
        reopen(run);
    return status;
}

static enum status take_hello(struct batches *batches, const struct work *work, struct error *err)
{
    const struct message_hello *hello = &work->message.hello;
    struct pending_ack *ack = add_ack(batches, work, hello->run);
    if (!ack)
        return out_of_memory(err);
    ack->is_hello = true;
    if (hello->protocol < 1 || hello->protocol > MESSAGE_PROTOCOL + 1) {
        ack->error = "this collector does not speak that version of the protocol";
        return STATUS_OK;
    }
    struct run *run = NULL;
    enum status status = runs_find(batches->runs, hello->run, &run, err);
    if (status == STATUS_OK && !run)
        status = runs_add(batches->runs, hello, work->received_ns, &run, err);
    else if (status == STATUS_OK)
        status = runs_describe(batches->runs, run, hello, err);
    if (status != STATUS_OK)
        return status;
    run->greeted = true;
    run->replayed = hello->replay;
    if (run->replayed && run->end == RECORD_RUN_END_OPEN)
        reopen(run);
    hear(run, work->received_ns, 0);
    return hear_streams(run, hello->streams, hello->stream_count, err);
}

static enum status take_drops(struct batches *batches, struct run *run,
                              const struct wire_drop *drops, size_t count, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct delivery_range range = drops[i].range;
        struct run_stream *stream = NULL;
        status = run_stream_find(run, range.stream, &stream);
        if (status == STATUS_FULL) {
            status = STATUS_OK;
            continue;
        }
        if (status != STATUS_OK)
            return out_of_memory(err);
        stream->touched = true;
        if (delivery_offer_drop(stream->next, &range))
            status = run_advance(batches->runs, run, stream, SCHEMA_RANGE_DROPPED, &range,
                                 drops[i].detail.bytes, drops[i].detail.size, err);
    }
    return status;
}

// A batch that can never be taken: its numbers are dropped, with the reason.
static enum status refuse(struct batches *batches, struct run *run, struct run_stream *stream,
                          const struct work *work, uint64_t first, const char *reason,
                          struct pending_ack *ack, struct error *err)
{
    const struct delivery_range range = {.stream = stream->stream,
                                         .first = first,
                                         .last = work->message.batch.last,
                                         .reason = DELIVERY_REFUSED,
                                         .since_ns = work->received_ns,
                                         .until_ns = work->received_ns};
    // Said aloud once a run: a broken producer must not fill the log as well.
    log_write(run->refused ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
              "run %lld, stream %u: records %llu to %llu refused: %s", (long long)run->id,
              range.stream, (unsigned long long)range.first, (unsigned long long)range.last,
              reason);
    run->refused = saturate_add(run->refused, (int64_t)(range.last - range.first + 1));
    name_refused(ack, range.stream, range.first, range.last, reason);
    return run_advance(batches->runs, run, stream, SCHEMA_RANGE_DROPPED, &range, reason,
                       strlen(reason), err);
}

enum { DEVICES_MAX = 65536 }; // ordinals beyond are no places among devices

// Devices are numbered from 0 in their run.
static void count_devices(struct run *run, const struct wire_table *table)
{
    for (size_t c = 0; c < table->column_count; c++) {
        const struct wire_column *column = &table->columns[c];
        for (size_t row = 0; column->index == DEVICE_ORDINAL && row < table->count; row++)
            if (column->ints[row] >= 0 && column->ints[row] < DEVICES_MAX)
                run_count_devices(run, column->ints[row] + 1);
    }
}

static enum status store(struct batches *batches, struct run *run, struct run_stream *stream,
                         const struct work *work, uint64_t first, struct error *err)
{
    const struct message_batch *batch = &work->message.batch;
    const struct insert_run owner = {.run = run->id,
                                     .stream = batch->stream,
                                     .received_ns = work->received_ns,
                                     .names = run->names,
                                     .name_count = run->name_count};
    for (size_t i = 0; i < batch->table_count; i++) {
        int64_t stored = 0;
        enum status status = insert_table(batches->inserter, &owner, &batch->tables[i], first,
                                          &stored, &run->clock_suspects, err);
        if (status != STATUS_OK)
            return status;
        if (batch->tables[i].kind == RECORD_KIND_DEVICE)
            count_devices(run, &batch->tables[i]);
        run->stored += stored;
        run->stored_by_kind[batch->tables[i].kind] += stored;
        batches->records += (uint32_t)stored;
    }
    run->unknown_columns += batch->unknown_columns;
    const struct delivery_range range = {.stream = batch->stream,
                                         .first = first,
                                         .last = batch->last,
                                         .since_ns = work->received_ns,
                                         .until_ns = work->received_ns};
    return run_advance(batches->runs, run, stream, SCHEMA_RANGE_STORED, &range, NULL, 0, err);
}

static enum status take_records(struct batches *batches, struct run *run, const struct work *work,
                                struct pending_ack *ack, struct error *err)
{
    const struct message_batch *batch = &work->message.batch;
    struct run_stream *stream = NULL;
    enum status status = run_stream_find(run, batch->stream, &stream);
    if (status == STATUS_FULL) {
        ack->error = "more streams than a run may have";
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return out_of_memory(err);
    stream->touched = true;
    uint64_t first = 0, duplicates = 0;
    const enum delivery_verdict verdict =
        delivery_offer(stream->next, batch->first, batch->last, &first, &duplicates);
    if (verdict == DELIVERY_GAP)
        return STATUS_OK;
    if (duplicates) {
        run->duplicates = saturate_add(run->duplicates, (int64_t)duplicates);
        run->dirty = true;
    }
    if (verdict == DELIVERY_KNOWN)
        return STATUS_OK;
    reopen(run);
    const char *fault = batch->fault ? batch->fault : insert_fault(batch, run->name_count);
    if (fault)
        return refuse(batches, run, stream, work, first, fault, ack, err);
    return store(batches, run, stream, work, first, err);
}

// Dropped ranges may lie before the batch's records or behind them.
static enum status take_contents(struct batches *batches, struct run *run, const struct work *work,
                                 struct pending_ack *ack, struct error *err)
{
    const struct message_batch *batch = &work->message.batch;
    enum status status =
        run_add_names(batches->runs, run, batch->names_first, batch->names, batch->name_count, err);
    if (status == STATUS_OK)
        status = hear_streams(run, batch->streams, batch->stream_count, err);
    if (status == STATUS_OK)
        status = take_drops(batches, run, batch->drops, batch->drop_count, err);
    if (status == STATUS_OK && batch->first != 0)
        status = take_records(batches, run, work, ack, err);
    if (status == STATUS_OK && batch->first != 0)
        status = take_drops(batches, run, batch->drops, batch->drop_count, err);
    if (status == STATUS_OK && batch->activity.size)
        status = run_set_activity(run, batch->activity, err);
    return status;
}

static enum status take_batch(struct batches *batches, const struct work *work, struct error *err)
{
    const struct message_batch *batch = &work->message.batch;
    struct run *run = NULL;
    enum status status = runs_find(batches->runs, batch->run, &run, err);
    if (status != STATUS_OK)
        return status;
    struct pending_ack *ack = join_ack(batches, work, batch->run);
    if (!ack)
        return out_of_memory(err);
    if (batch->sequence > ack->sequence)
        ack->sequence = batch->sequence;
    ack->echo_sent_ns = batch->sent_ns;
    ack->hello_wanted = !run || !run->greeted;
    if (ack->hello_wanted)
        return STATUS_OK;
    hear(run, work->received_ns, batch->sent_ns);
    run_set_clock(run, batch->clock_offset_ns, batch->clock_error_ns);
    status = take_contents(batches, run, work, ack, err);
    close_when_complete(run);
    return status;
}

static enum status take_goodbye(struct batches *batches, const struct work *work, struct error *err)
{
    const struct message_goodbye *goodbye = &work->message.goodbye;
    struct run *run = NULL;
    enum status status = runs_find(batches->runs, goodbye->run, &run, err);
    if (status != STATUS_OK)
        return status;
    struct pending_ack *ack = join_ack(batches, work, goodbye->run);
    if (!ack)
        return out_of_memory(err);
    if (goodbye->sequence > ack->sequence)
        ack->sequence = goodbye->sequence;
    ack->hello_wanted = !run || !run->greeted;
    if (ack->hello_wanted)
        return STATUS_OK;
    hear(run, work->received_ns, 0);
    run->goodbye_ns = goodbye->ended_ns > 0 ? goodbye->ended_ns : work->received_ns;
    run->goodbye_killed = goodbye->killed;
    status = hear_streams(run, goodbye->streams, goodbye->stream_count, err);
    if (status == STATUS_OK && goodbye->killed && run->end != RECORD_RUN_END_CLOSED)
        status = run_die(run, goodbye->activities, goodbye->activity_count, err);
    if (status == STATUS_OK)
        status = take_drops(batches, run, goodbye->drops, goodbye->drop_count, err);
    for (size_t i = 0; i < run->stream_count; i++)
        run->streams[i].touched = true;
    close_when_complete(run);
    return status;
}

enum status batches_take(struct batches *batches, const struct work *work, struct error *err)
{
    if (work->message.kind == MESSAGE_HELLO)
        return take_hello(batches, work, err);
    if (work->message.kind == MESSAGE_GOODBYE)
        return take_goodbye(batches, work, err);
    return take_batch(batches, work, err);
}
