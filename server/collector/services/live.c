#include "server/collector/services/services.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/sys/thread.h"
#include "common/wire/codec.h"
#include "common/store/query/query_list.h"
#include "server/collector/threads/job.h"

enum {
    READERS_MAX = 128,
    ROWS_PER_MESSAGE = 500,
    ROWS_PER_TURN = 2000, // of a kind; older ones count as missed
    CREDIT_MAX = 100000,
    FRAMES_PER_TURN = 64,
};

#define READER_SILENCE_NS UINT64_C(30000000000)

struct reader {
    struct job_return at;
    uint32_t kinds; // bit k: enum record_kind k
    uint32_t credit;
    uint64_t missed;
    bool ids_only;      // it gets kinds and last ids, no records
    uint32_t new_kinds; // then: kinds not reported to it yet
    uint64_t heard_at_ns;
};

struct live {
    struct channels *channels;
    struct thread thread;
    struct admission admission;
    struct store *store;
    struct commit_ids published; // last ids that readers got or missed
    struct reader readers[READERS_MAX];
    unsigned reader_count;
    bool full;        // readers were rejected, and that was logged
    atomic_bool stop; // set by main before it wakes the thread; publishes nothing else
};

// ---- Readers -----------------------------------------------------------------------

static struct reader *find_reader(struct live *live, const struct job_return *at)
{
    for (unsigned i = 0; i < live->reader_count; i++)
        if (job_return_is_same(&live->readers[i].at, at))
            return &live->readers[i];
    return NULL;
}

static void remove_reader(struct live *live, unsigned index)
{
    live->readers[index] = live->readers[--live->reader_count];
    live->full = false;
}

// The first message subscribes to records committed after it.
static void on_credit(struct live *live, const struct job_return *at,
                      const struct message_live_credit *asked)
{
    struct reader *reader = find_reader(live, at);
    if (!reader) {
        if (live->reader_count == READERS_MAX) {
            // Once, not for each message of rejected readers.
            log_write(live->full ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
                      "live feed: more than %d readers", READERS_MAX);
            live->full = true;
            return;
        }
        reader = &live->readers[live->reader_count++];
        *reader = (struct reader){.at = *at};
    }
    reader->heard_at_ns = clock_monotonic_ns();
    reader->kinds = asked->kinds ? asked->kinds : UINT32_MAX;
    reader->ids_only = asked->ids_only;
    const uint32_t room = CREDIT_MAX - reader->credit;
    reader->credit += asked->messages < room ? asked->messages : room;
}

static void on_frame(struct live *live, unsigned socket, const struct wire_frame *frame)
{
    const struct job_return at = {.socket = socket, .route = frame->route};
    struct message message;
    const char *ignored; // there is no error reply
    if (!admission_allows(&live->admission, socket, frame, &ignored)) {
        const struct reader *reader = find_reader(live, &at);
        if (reader)
            remove_reader(live, (unsigned)(reader - live->readers));
        return;
    }
    if (codec_decode_untrusted(&message, frame->bytes, frame->size, NULL) != STATUS_OK)
        return;
    if (message.kind == MESSAGE_LIVE_CREDIT && message.live_credit.protocol >= 1 &&
        message.live_credit.protocol <= MESSAGE_PROTOCOL + 1)
        on_credit(live, &at, &message.live_credit);
    message_free(&message);
}

static void receive(struct live *live, unsigned socket)
{
    for (unsigned i = 0; i < FRAMES_PER_TURN; i++) {
        struct wire_frame frame;
        if (port_receive(live->admission.sockets[socket], &frame) != STATUS_OK)
            return;
        on_frame(live, socket, &frame);
        port_release(&frame);
    }
}

// ---- Feeding -----------------------------------------------------------------------

static bool wants(const struct reader *reader, enum record_kind kind)
{
    return !reader->ids_only && reader->kinds >> kind & 1;
}

// Adds to the missed records of the kind's readers, or of those without credit only.
static void add_missed(struct live *live, enum record_kind kind, uint64_t count,
                       bool only_without_credit)
{
    for (unsigned i = 0; i < live->reader_count; i++) {
        struct reader *reader = &live->readers[i];
        if (wants(reader, kind) && !(only_without_credit && reader->credit > 0))
            reader->missed += count;
    }
}

static bool has_ready_reader(const struct live *live, enum record_kind kind)
{
    for (unsigned i = 0; i < live->reader_count; i++)
        if (wants(&live->readers[i], kind) && live->readers[i].credit > 0)
            return true;
    return false;
}

static enum status send_records(struct live *live, struct reader *reader,
                                const struct message_live_records *records)
{
    const struct message message = {.kind = MESSAGE_LIVE_RECORDS, .live_records = *records};
    const enum status status =
        answer_send(live->admission.sockets, answer_encode(&reader->at, &message));
    if (status == STATUS_OK)
        reader->credit--;
    return status;
}

// Returns false when the reader is gone.
static bool send_rows(struct live *live, struct reader *reader, enum record_kind kind,
                      struct result *rows)
{
    const struct message_live_records records = {
        .kind = kind, .missed = reader->missed, .result = rows};
    const enum status status = send_records(live, reader, &records);
    if (status != STATUS_OK)
        reader->missed += result_row_count(rows);
    return status != STATUS_UNREACHABLE;
}

// Sends the last ids of kinds with news for the reader, as far as its credit lasts.  Returns
// false when it is gone.
static bool send_ids(struct live *live, struct reader *reader)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && reader->credit > 0; kind++) {
        if (!(reader->new_kinds >> kind & 1))
            continue;
        const struct message_live_records records = {
            .kind = (enum record_kind)kind, .last_id = (uint64_t)live->published.last[kind]};
        const enum status status = send_records(live, reader, &records);
        if (status == STATUS_UNREACHABLE)
            return false;
        if (status == STATUS_OK)
            reader->new_kinds &= ~(UINT32_C(1) << kind);
    }
    return true;
}

static void send_to_all(struct live *live, enum record_kind kind, struct result *rows)
{
    for (unsigned i = live->reader_count; i-- > 0;) {
        struct reader *reader = &live->readers[i];
        if (wants(reader, kind) && reader->credit > 0 && !send_rows(live, reader, kind, rows))
            remove_reader(live, i);
    }
}

// Publishes rows first..last of a kind, as many as fit in one message; returns the next row.
static int64_t publish_batch(struct live *live, enum record_kind kind, int64_t first, int64_t last)
{
    struct error err;
    struct result *rows = NULL;
    const uint64_t count = (uint64_t)(last - first + 1);
    if (!has_ready_reader(live, kind)) {
        add_missed(live, kind, count, false);
        return last + 1;
    }
    if (store_records_between(live->store, kind, first, last, ROWS_PER_MESSAGE, &rows, &err) !=
        STATUS_OK) {
        log_write(LOG_LEVEL_WARNING, "live feed: %s", err.text);
        add_missed(live, kind, count, false);
        return last + 1;
    }
    const size_t sent = result_row_count(rows); // some may have been deleted
    // Long texts may end a message early; the rest follows in the next.
    const uint64_t cut = result_next_cursor(rows);
    add_missed(live, kind, sent, true);
    if (sent > 0)
        send_to_all(live, kind, rows);
    result_free(rows);
    return (cut ? (int64_t)cut : last) + 1;
}

static void publish_kind(struct live *live, enum record_kind kind, int64_t last)
{
    int64_t first = live->published.last[kind] + 1;
    live->published.last[kind] = last;
    for (unsigned i = 0; i < live->reader_count; i++)
        if (live->readers[i].ids_only)
            live->readers[i].new_kinds |= live->readers[i].kinds & UINT32_C(1) << kind;
    if (last - first + 1 > ROWS_PER_TURN) {
        add_missed(live, kind, (uint64_t)(last - first + 1 - ROWS_PER_TURN), false);
        first = last - ROWS_PER_TURN + 1;
    }
    while (first <= last) {
        const int64_t end = first + ROWS_PER_MESSAGE - 1;
        first = publish_batch(live, kind, first, end < last ? end : last);
    }
}

static void publish(struct live *live)
{
    struct commit_ids now;
    channels_read_commit(live->channels, &now);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        if (live->reader_count > 0 && now.last[kind] > live->published.last[kind])
            publish_kind(live, (enum record_kind)kind, now.last[kind]);
        else if (now.last[kind] > live->published.last[kind])
            live->published.last[kind] = now.last[kind];
    }
}

// ---- The thread -----------------------------------------------------------------------

static void run_once(struct live *live)
{
    uint32_t ready = 0;
    admission_wait(&live->admission, live->channels->commit_fd, &ready);
    for (unsigned i = 0; i < live->admission.count; i++)
        if (ready >> i & 1)
            receive(live, i);
    const uint64_t now_ns = clock_monotonic_ns();
    for (unsigned i = live->reader_count; i-- > 0;)
        if (now_ns - live->readers[i].heard_at_ns > READER_SILENCE_NS)
            remove_reader(live, i);
    if (ready >> live->admission.count & 1)
        publish(live);
    for (unsigned i = live->reader_count; i-- > 0;)
        if (live->readers[i].ids_only && !send_ids(live, &live->readers[i]))
            remove_reader(live, i);
}

static void *live_body(void *context)
{
    struct live *live = context;
    while (!atomic_load_explicit(&live->stop, memory_order_relaxed))
        run_once(live);
    return NULL;
}

enum status live_start(struct live **out, const struct endpoints *endpoints, const char *path,
                       struct channels *channels, struct error *err)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live)
        return error_no_memory(err, "live feed");
    live->channels = channels;
    enum status status = store_open(&live->store, path, err);
    if (status == STATUS_OK)
        status = admission_open(&live->admission, endpoints, ADDRESS_LIVE, err);
    channels_read_commit(channels, &live->published);
    if (status == STATUS_OK)
        status = thread_start(&live->thread, "live feed", live_body, live, err);
    if (status != STATUS_OK) {
        live_stop(live);
        return status;
    }
    *out = live;
    return STATUS_OK;
}

void live_stop(struct live *live)
{
    if (!live)
        return;
    atomic_store_explicit(&live->stop, true, memory_order_relaxed);
    channels_wake_live(live->channels);
    thread_join(&live->thread);
    admission_close(&live->admission);
    store_close(live->store);
    free(live);
}
