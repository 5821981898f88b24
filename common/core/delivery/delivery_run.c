#include "common/core/delivery/delivery_run.h"

#include <stdlib.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"

enum part {
    PART_NAMES,
    PART_DROPS_BEFORE,
    PART_RECORDS,
    PART_DROPS_AFTER,
    PART_LOST,
    PART_END,
};

// ---- Streams -----------------------------------------------------------------------

void delivery_run_deinit(struct delivery_run *run)
{
    free(run->lanes);
    *run = (struct delivery_run){0};
}

// Fast path: streams are usually added in order.
size_t delivery_run_find(const struct delivery_run *run, uint32_t stream)
{
    size_t at = stream;
    if (at < run->lane_count && run->lanes[at].stream == stream)
        return at;
    for (at = 0; at < run->lane_count; at++)
        if (run->lanes[at].stream == stream)
            break;
    return at;
}

enum status delivery_run_restore(struct delivery_run *run, const struct delivery_lane *lane)
{
    if (delivery_run_find(run, lane->stream) < run->lane_count)
        return STATUS_INVALID;
    if (run->lane_count == DELIVERY_STREAMS_MAX)
        return STATUS_FULL;
    if (!ARRAY_RESERVE(&run->lanes, &run->lane_room, run->lane_count + 1))
        return STATUS_NOMEM;
    run->lanes[run->lane_count++] = *lane;
    return STATUS_OK;
}

enum status delivery_run_know(struct delivery_run *run, uint32_t stream, size_t *place)
{
    *place = delivery_run_find(run, stream);
    if (*place < run->lane_count)
        return STATUS_OK;
    const enum status status = delivery_run_restore(
        run, &(struct delivery_lane){.stream = stream, .next = 1, .changed = true});
    run->changed |= status == STATUS_OK;
    return status;
}

static void change(struct delivery_run *run, struct delivery_lane *lane)
{
    lane->changed = true;
    run->changed = true;
}

// ---- Its end -----------------------------------------------------------------------

static bool is_complete(const struct delivery_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++)
        if (run->lanes[i].next <= run->lanes[i].produced)
            return false;
    return true;
}

bool delivery_run_is_over(const struct delivery_run *run)
{
    return run->end == RECORD_RUN_END_CLOSED || run->end == RECORD_RUN_END_KILLED;
}

static void set_end(struct delivery_run *run, enum record_run_end end)
{
    run->changed |= run->end != end;
    run->end = end;
}

void delivery_run_silence(struct delivery_run *run, int64_t ended_ns)
{
    if (run->end != RECORD_RUN_END_OPEN)
        return;
    set_end(run, RECORD_RUN_END_SILENT);
    run->ended_ns = ended_ns;
}

// More records exist than its Goodbye said.
static void reopen(struct delivery_run *run)
{
    const enum record_run_end end = run->replayed ? RECORD_RUN_END_SILENT : RECORD_RUN_END_OPEN;
    if (run->end == end)
        return;
    set_end(run, end);
    run->ended_ns = 0;
    // That Goodbye was acknowledged: a live run must send it again, a dead one cannot.
    if (!run->replayed)
        run->goodbye_ns = 0;
}

static void close_when_complete(struct delivery_run *run)
{
    const enum record_run_end end =
        run->goodbye_killed ? RECORD_RUN_END_KILLED : RECORD_RUN_END_CLOSED;
    // A run that sent Goodbye itself was not killed.
    if (run->goodbye_ns == 0 || run->end == RECORD_RUN_END_CLOSED || run->end == end ||
        !is_complete(run))
        return;
    set_end(run, end);
    run->ended_ns = run->goodbye_ns;
    run->told_all = run->replayed;
}

// ---- Messages ------------------------------------------------------------------------

uint32_t delivery_run_names_after(const struct delivery_run *run,
                                  const struct delivery_message *message)
{
    const uint64_t last = (uint64_t)message->names_first + message->name_count - 1;
    if (message->name_count == 0 || last > UINT32_MAX || last <= run->names_known ||
        message->names_first > (uint64_t)run->names_known + 1)
        return run->names_known;
    return (uint32_t)last;
}

// Whether Hello must be requested because names are missing.
static bool is_doubtful(struct delivery_run *run, const struct delivery_message *message)
{
    const bool ask = message->names_missing && !run->doubted;
    if (message->first != 0)
        run->doubted = ask;
    run->greeted = run->greeted && !ask;
    return ask;
}

static bool is_plausible(const struct delivery_message *message)
{
    const uint64_t life_s = (uint64_t)message->life_ns / 1000000000;
    const uint64_t most = DELIVERY_BURST_RECORDS + life_s * DELIVERY_RECORDS_PER_S;
    const uint64_t unnumbered = DELIVERY_BURST_RECORDS + life_s * DELIVERY_UNNUMBERED_PER_S;
    for (size_t i = 0; i < message->stream_count; i++) {
        const struct delivery_stream *said = &message->streams[i];
        if (said->produced > most || said->unnumbered > unnumbered || said->no_room > unnumbered)
            return false;
    }
    for (size_t i = 0; i < message->drop_count; i++)
        if (message->drops[i].last > most)
            return false;
    return true;
}

enum delivery_hearing delivery_hear(struct delivery_run *run,
                                    const struct delivery_message *message)
{
    if (message->kind == DELIVERY_HELLO &&
        (message->protocol < 1 || message->protocol > DELIVERY_PROTOCOL + 1))
        return DELIVERY_UNKNOWN_PROTOCOL;
    if (message->sender == DELIVERY_SENDER_STRANGER)
        return DELIVERY_FOREIGN;
    if (message->sender == DELIVERY_SENDER_SECOND)
        return DELIVERY_BUSY;
    if (message->kind != DELIVERY_HELLO &&
        (!run || !run->greeted || message->sender == DELIVERY_SENDER_NEW))
        return DELIVERY_HELLO_WANTED;
    if (!is_plausible(message))
        return DELIVERY_IMPLAUSIBLE;
    if (message->kind != DELIVERY_BATCH)
        return DELIVERY_HEARD;
    if (message->first != 0 && run->lane_count == DELIVERY_STREAMS_MAX &&
        delivery_run_find(run, message->stream) == run->lane_count)
        return DELIVERY_TOO_MANY_STREAMS;
    return is_doubtful(run, message) ? DELIVERY_HELLO_WANTED : DELIVERY_HEARD;
}

// A stream that does not fit is omitted: its sender sees that from the missing entry in the
// Ack.
static enum status know_stream(struct delivery_run *run, uint32_t stream)
{
    size_t place;
    const enum status status = delivery_run_know(run, stream, &place);
    return status == STATUS_FULL ? STATUS_OK : status;
}

static enum status know_streams(struct delivery_run *run, const struct delivery_message *message)
{
    enum status status = STATUS_OK;
    if (message->kind == DELIVERY_BATCH && message->first != 0)
        status = know_stream(run, message->stream);
    for (size_t i = 0; i < message->stream_count && status == STATUS_OK; i++)
        status = know_stream(run, message->streams[i].stream);
    for (size_t i = 0; i < message->drop_count && status == STATUS_OK; i++)
        status = know_stream(run, message->drops[i].stream);
    return status;
}

// Updates produced and unnumbered of the streams; counts never decrease.  Reopens a run that
// produced more after its end.
static void on_streams(struct delivery_run *run, const struct delivery_message *message)
{
    for (size_t i = 0; i < message->stream_count; i++) {
        const struct delivery_stream *said = &message->streams[i];
        const size_t place = delivery_run_find(run, said->stream);
        if (place == run->lane_count)
            continue;
        struct delivery_lane *lane = &run->lanes[place];
        if (said->produced <= lane->produced && said->unnumbered <= lane->unnumbered &&
            said->no_room <= lane->no_room)
            continue;
        if (said->produced > lane->produced)
            lane->produced = said->produced;
        if (said->unnumbered > lane->unnumbered) {
            run->risen += said->unnumbered - lane->unnumbered;
            lane->unnumbered = said->unnumbered;
        }
        if (said->no_room > lane->no_room)
            lane->no_room = said->no_room;
        change(run, lane);
    }
    if (delivery_run_is_over(run) && !is_complete(run))
        reopen(run);
}

static void on_hello(struct delivery_run *run, const struct delivery_message *message)
{
    run->greeted = true;
    run->replayed |= message->replay; // earlier messages of the dead run may arrive late
    if (run->replayed && run->end == RECORD_RUN_END_OPEN)
        reopen(run);
}

static void on_goodbye(struct delivery_run *run, const struct delivery_message *message)
{
    run->goodbye_ns = message->ended_ns;
    run->goodbye_killed = message->killed;
    for (size_t i = 0; i < run->lane_count; i++)
        run->lanes[i].touched = true;
}

enum status delivery_accept(struct delivery_acceptance *taking, struct delivery_run *run,
                            const struct delivery_message *message)
{
    *taking = (struct delivery_acceptance){.run = run, .message = message};
    const enum status status = know_streams(run, message);
    if (status != STATUS_OK)
        return status;
    if (message->kind == DELIVERY_HELLO)
        on_hello(run, message);
    // A replay does not show that the run is alive.
    if (run->end == RECORD_RUN_END_SILENT && !run->replayed) {
        set_end(run, RECORD_RUN_END_OPEN);
        run->ended_ns = 0;
    }
    if (message->kind == DELIVERY_GOODBYE)
        on_goodbye(run, message);
    on_streams(run, message);
    return STATUS_OK;
}

// Advances the lane: the step stores or drops everything up to `last`.
static void advance(struct delivery_run *run, struct delivery_step *step)
{
    struct delivery_lane *lane = &run->lanes[step->place];
    lane->next = step->last + 1;
    if (lane->produced < step->last)
        lane->produced = step->last;
    change(run, lane);
}

static bool next_names(struct delivery_acceptance *taking, struct delivery_step *step)
{
    const struct delivery_message *message = taking->message;
    const uint64_t known = taking->run->names_known;
    taking->part++;
    if (message->kind != DELIVERY_BATCH)
        return false;
    *step = (struct delivery_step){.kind = DELIVERY_STEP_NAMES,
                                   .first = known + 1,
                                   .last = delivery_run_names_after(taking->run, message)};
    return step->last > known;
}

// Dropped ranges may be before or after the records of the batch.
static bool next_drop(struct delivery_acceptance *taking, struct delivery_step *step)
{
    struct delivery_run *run = taking->run;
    const struct delivery_message *message = taking->message;
    while (taking->index < message->drop_count) {
        const struct delivery_range range = message->drops[taking->index++];
        const size_t place = delivery_run_find(run, range.stream);
        if (place == run->lane_count)
            continue;
        run->lanes[place].touched = true;
        const uint64_t next = run->lanes[place].next;
        if (range.last < next || range.first > next)
            continue;
        *step = (struct delivery_step){.kind = DELIVERY_STEP_DROP,
                                       .place = place,
                                       .first = next,
                                       .last = range.last,
                                       .index = taking->index - 1};
        advance(run, step);
        return true;
    }
    taking->index = 0;
    taking->part++;
    return false;
}

static bool next_records(struct delivery_acceptance *taking, struct delivery_step *step)
{
    struct delivery_run *run = taking->run;
    const struct delivery_message *message = taking->message;
    taking->part++;
    if (message->kind != DELIVERY_BATCH || message->first == 0) {
        taking->part = PART_LOST; // dropped ranges were handled once; no records between
        return false;
    }
    const size_t place = delivery_run_find(run, message->stream);
    if (place == run->lane_count)
        return false;
    run->lanes[place].touched = true;
    const uint64_t next = run->lanes[place].next;
    if (message->first < next) {
        const uint64_t end = message->last < next ? message->last + 1 : next;
        run->duplicates = saturate_add(run->duplicates, (int64_t)(end - message->first));
        run->changed = true;
    }
    if (message->first > next || message->last < next)
        return false; // after a gap: the Ack requests `next`
    reopen(run);
    *step = (struct delivery_step){
        .kind = DELIVERY_STEP_STORE, .place = place, .first = next, .last = message->last};
    advance(run, step);
    return true;
}

// The final `produced` of the lane, if the message contains it.
static bool says_last(const struct delivery_acceptance *taking, size_t place, uint64_t *last)
{
    const struct delivery_message *message = taking->message;
    *last = 0;
    if (taking->run->told_all)
        return true; // records appeared after the final counts; no sender has them
    for (size_t i = 0; i < message->stream_count; i++) {
        *last = message->streams[i].produced;
        if (message->streams[i].stream == taking->run->lanes[place].stream)
            return true;
    }
    return false;
}

// A replay's Goodbye contains the last number left of each stream.  Records that the run
// had reported beyond that were lost with its host.
static bool next_lost(struct delivery_acceptance *taking, struct delivery_step *step)
{
    struct delivery_run *run = taking->run;
    const bool ends = run->told_all || (taking->message->kind == DELIVERY_GOODBYE && run->replayed);
    while (ends && taking->index < run->lane_count) {
        const size_t place = taking->index++;
        const struct delivery_lane *lane = &run->lanes[place];
        uint64_t last;
        if (lane->next > lane->produced || !says_last(taking, place, &last) || lane->next <= last)
            continue;
        *step = (struct delivery_step){.kind = DELIVERY_STEP_LOST,
                                       .place = place,
                                       .first = lane->next,
                                       .last = lane->produced};
        advance(run, step);
        return true;
    }
    taking->part++;
    return false;
}

bool delivery_accept_next(struct delivery_acceptance *taking, struct delivery_step *step)
{
    while (taking->part < PART_END) {
        switch ((enum part)taking->part) {
        case PART_NAMES:
            if (next_names(taking, step))
                return true;
            break;
        case PART_DROPS_BEFORE:
        case PART_DROPS_AFTER:
            if (next_drop(taking, step))
                return true;
            break;
        case PART_RECORDS:
            if (next_records(taking, step))
                return true;
            break;
        case PART_LOST:
            if (next_lost(taking, step))
                return true;
            break;
        case PART_END:
            break;
        }
    }
    if (taking->message->kind != DELIVERY_HELLO)
        close_when_complete(taking->run);
    return false;
}

// ---- Acknowledgement -----------------------------------------------------------------

void delivery_run_answer(const struct delivery_run *run, bool is_hello, struct delivery_ack *ack,
                         struct delivery_next *next)
{
    ack->next = next;
    ack->next_count = 0;
    for (size_t i = 0; i < run->lane_count; i++)
        if (is_hello || run->lanes[i].touched)
            next[ack->next_count++] =
                (struct delivery_next){run->lanes[i].stream, run->lanes[i].next};
    ack->names_known = run->names_known;
    ack->closed = delivery_run_is_over(run);
    ack->protocol = DELIVERY_PROTOCOL;
}

void delivery_run_answered(struct delivery_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++)
        run->lanes[i].touched = false;
}
