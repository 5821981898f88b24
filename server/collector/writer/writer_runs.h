// The runs as the writer knows them: what of each stream is stored or dropped,
// its names, its counts.  A cache of the store's tables run, run_name, stream,
// range and ledger: changes stay here until runs_flush writes them into the
// group's transaction, and where that is rolled back, runs_forget empties the
// cache so that everything is read again.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_RUNS_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery_run.h"
#include "common/core/record/record.h"
#include "common/wire/message.h"
#include "common/wire/socket.h"

struct sqlite3;
struct runs;

// The range that ends at next - 1, extended in place while it goes on.
struct run_range {
    uint64_t first, last; // first 0: there is none
    int state;            // SCHEMA_RANGE_STORED or _DROPPED
    enum delivery_reason reason;
    char *detail; // or NULL
    int64_t since_ns, until_ns;
    bool dirty;
};

// What the store has of a stream beside its numbers.
struct run_stream {
    struct run_range range;
    char *activity; // what its thread was doing when the process died; or NULL
    int64_t activity_since_ns;
    bool dirty;
};

struct run {
    int64_t id;
    unsigned char uuid[MESSAGE_RUN_SIZE];
    struct delivery_run delivery; // what the protocol knows of it
    int64_t heard_ns;             // the later of the collector's and the host's clock
    uint64_t heard_at_ns;         // monotonic
    int64_t flushed_heard_ns;
    int64_t told_ns; // the host's clock as it last told what it had lost
    int64_t stored, refused, clock_suspects, unknown_columns;
    int64_t device_count;
    // The host's wall clock less this collector's, as the run estimates it; an
    // error of 0: it does not.
    int64_t clock_offset_ns, clock_error_ns;
    int64_t stored_by_kind[RECORD_KIND_COUNT]; // since the last flush
    char *activity;
    bool dirty;

    bool has_key; // it was opened under this key
    unsigned char key[WIRE_KEY_SIZE];

    struct run_stream *streams; // parallel to delivery.lanes
    size_t stream_count, stream_room;
    int64_t *names; // [i]: the store's id of the run's name i + 1, of delivery.names_known
    uint32_t name_room;
    uint32_t names_told; // where it is not complete: delivery.names_known once it is
    uint32_t names_kept; // of them; the rest is beyond a limit, known but not stored

    // Whether streams and names are here; else they are only in the store, and read
    // again when the run is found.
    bool complete;
    uint64_t produced; // of all streams, as it was saved

    struct pending_ack *ack; // the run's latest in the group of that number
    uint64_t ack_group;

    struct run *next_in_bucket;
};

MUST_CHECK enum status runs_new(struct runs **out, struct sqlite3 *db, struct error *err);
void runs_free(struct runs *runs);

// After another part of the collector has added runs or names to the store.
MUST_CHECK enum status runs_look_again(struct runs *runs, struct error *err);

// Empties the cache.
void runs_forget(struct runs *runs);

// After a rollback: reloads the cache, with the recently active open runs.  Their Hello
// remains valid, since the collector has not restarted.
MUST_CHECK enum status runs_reload(struct runs *runs, uint64_t now_ns, struct error *err);

// Finds a run in the cache or the store; `*out` is NULL when there is none.
MUST_CHECK enum status runs_find(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                                 struct run **out, struct error *err);

// How many names a run may have from now on, and the store.
void runs_limit_names(struct runs *runs, uint32_t count, int64_t in_store);

// Whether the store has as many names as it may.
bool runs_names_are_full(const struct runs *runs);

// Whether the store has the name.
MUST_CHECK enum status runs_know_name(struct runs *runs, struct wire_bytes name, bool *known,
                                      struct error *err);

// Adds the run that a Hello describes; it belongs to `key` (NULL: to peers
// without keys).
MUST_CHECK enum status runs_add(struct runs *runs, const struct message_hello *hello,
                                const unsigned char *key, int64_t received_ns, struct run **out,
                                struct error *err);

// How many runs of the key (NULL: of those without one) are not over and were heard
// of since `since_ns`, by what was flushed.
MUST_CHECK enum status runs_count_unfinished(struct runs *runs, const unsigned char *key,
                                             int64_t since_ns, int64_t *count, struct error *err);

// Takes from a later Hello of the run what was not known at its first: a producer
// says Hello before it has looked for devices.
MUST_CHECK enum status runs_describe(struct runs *runs, struct run *run,
                                     const struct message_hello *hello, struct error *err);

// Calls `take` for each run in the cache.
void runs_each(struct runs *runs, void (*take)(void *context, struct run *run), void *context);

// Brings all runs that the store has as open into the cache, heard of just now.
MUST_CHECK enum status runs_load_open(struct runs *runs, uint64_t now_ns, struct error *err);

// Lets go of runs that are closed or silent and were not heard of since
// `before_ns` (monotonic); nothing of them may be dirty.
void runs_evict(struct runs *runs, uint64_t before_ns);

// Lets go of the streams and names of those runs that take more than their share of
// `limit` bytes, where all take more than that together; nothing of them may be dirty.
void runs_trim(struct runs *runs, size_t limit);

// Bytes that the cache takes, and runs that are complete in it.
size_t runs_size(const struct runs *runs, size_t *complete);

// Runs whose end is open, in the cache.
uint32_t runs_open_count(const struct runs *runs);

// Writes all changes into the running transaction.
MUST_CHECK enum status runs_flush(struct runs *runs, struct error *err);

// Whether there is anything to flush.
bool runs_are_dirty(const struct runs *runs);

// The highest number of a run given out.
int64_t runs_last_id(const struct runs *runs);

// ---- One run -----------------------------------------------------------------------

void run_free(struct run *run); // NULL is fine

// Bytes that the run takes.
size_t run_size(const struct run *run);

// Lets go of streams and names, which are in the store.
void run_lighten(struct run *run);

// The store's id of the run's next name; 0: it is not kept.  STATUS_NOMEM.
MUST_CHECK enum status run_append_name(struct run *run, int64_t name);

// A place for each stream that the protocol knows.
MUST_CHECK enum status run_make_streams(struct run *run, struct error *err);

// Whether there is anything of the run to flush.
bool run_is_dirty(const struct run *run);

// Interns names names_first.. of the run.  Those known are skipped; names beyond
// the next wanted are ignored, since the producer repeats them.
MUST_CHECK enum status run_add_names(struct runs *runs, struct run *run, uint32_t first,
                                     const struct wire_bytes *names, size_t count,
                                     struct error *err);

// Records that range->first..range->last of the stream at `place`, which go on
// from what was recorded last, are stored or dropped.
MUST_CHECK enum status run_record_range(struct runs *runs, struct run *run, size_t place, int state,
                                        const struct delivery_range *range, const char *detail,
                                        size_t detail_size, struct error *err);

// Records the unnumbered losses that the last message reported, if any: they happened
// after the previous report and up to `now_ns` of the host's clock.
MUST_CHECK enum status run_record_unnumbered(struct runs *runs, struct run *run,
                                             int64_t received_ns, int64_t now_ns,
                                             struct error *err);

// What the threads of a killed run were doing: of each stream, and all together
// as what the run did last ("stream 1: decode tiny request 17; stream 2: load tiny"),
// which is "idle" where none of them did anything.
MUST_CHECK enum status run_die(struct run *run, const struct wire_activity *activities,
                               size_t count, struct error *err);

// Takes the run's estimate of its clock; an error of 0 says nothing.  It is saved
// with the next other change, the first one at once.
void run_set_clock(struct run *run, int64_t offset_ns, int64_t error_ns);

// The run has so many devices, if it was not known to have more.
void run_count_devices(struct run *run, int64_t count);

// Remembers what the run says it is doing.
MUST_CHECK enum status run_set_activity(struct run *run, struct wire_bytes activity,
                                        struct error *err);

#endif
