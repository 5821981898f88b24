// The runs as the writer knows them: what of each stream is stored or dropped,
// its names, its counts.  A cache of the store's tables run, run_name, stream,
// range and ledger: changes stay here until runs_flush writes them into the
// group's transaction, and where that is rolled back, runs_forget empties the
// cache so that everything is read anew.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_RUNS_H
#define INFERSTAT_COLLECTOR_WRITER_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/delivery.h"
#include "common/core/error.h"
#include "common/core/record.h"
#include "common/wire/message.h"

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

struct run_stream {
    uint32_t stream;
    uint64_t next, produced, unnumbered;
    struct run_range range;
    char *activity; // what its thread was doing when the process died; or NULL
    int64_t activity_since_ns;
    bool dirty;
    bool touched; // to be named in the next Ack
};

struct run {
    int64_t id;
    unsigned char uuid[MESSAGE_RUN_SIZE];
    enum record_run_end end;
    int64_t ended_ns;     // 0: not known
    int64_t heard_ns;     // the later of the collector's and the host's clock
    uint64_t heard_at_ns; // monotonic
    int64_t flushed_heard_ns;
    int64_t goodbye_ns;  // a Goodbye that waits for the rest; 0: none
    bool goodbye_killed; // and it says that the process did not say it itself
    int64_t stored, duplicates, refused, clock_suspects, unknown_columns;
    int64_t device_count;
    // The host's wall clock less this collector's, as the run estimates it; an
    // error of 0: it does not.
    int64_t clock_offset_ns, clock_error_ns;
    int64_t stored_by_kind[RECORD_KIND_COUNT]; // since the last flush
    char *activity;
    bool greeted;  // has said Hello since it was read from the store: its producer
                   // knows what this store, perhaps an older copy, has and lacks
    bool replayed; // it is dead, and another process sends what it left
    bool dirty;

    struct run_stream *streams; // rising by stream
    size_t stream_count;
    int64_t *names; // [i]: the store's id of the run's name i + 1
    uint32_t name_count, name_room;

    struct run *next_in_bucket;
};

MUST_CHECK enum status runs_new(struct runs **out, struct sqlite3 *db, struct error *err);
void runs_free(struct runs *runs);

// Empties the cache.
void runs_forget(struct runs *runs);

// After a rollback: reads the cache anew, with the open runs heard of just now.
// Runs that had greeted have so still, since the collector has not changed.
MUST_CHECK enum status runs_reload(struct runs *runs, uint64_t now_ns, struct error *err);

// Finds a run in the cache or the store; `*out` is NULL when there is none.
MUST_CHECK enum status runs_find(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                                 struct run **out, struct error *err);

// Adds the run that a Hello describes.
MUST_CHECK enum status runs_add(struct runs *runs, const struct message_hello *hello,
                                int64_t received_ns, struct run **out, struct error *err);

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

// The store's id of the run's next name.  STATUS_NOMEM.
MUST_CHECK enum status run_append_name(struct run *run, int64_t name);

// The stream, added when it is new.  STATUS_FULL beyond DELIVERY_STREAMS_MAX.
MUST_CHECK enum status run_stream_find(struct run *run, uint32_t stream, struct run_stream **out);

// Takes what the producer says of its streams; figures never go down.
MUST_CHECK enum status run_hear_streams(struct run *run, const struct delivery_stream *streams,
                                        size_t count, struct error *err);

// Interns names names_first.. of the run.  Those known are skipped; names beyond
// the next wanted are ignored, since the producer repeats them.
MUST_CHECK enum status run_add_names(struct runs *runs, struct run *run, uint32_t first,
                                     const struct wire_bytes *names, size_t count,
                                     struct error *err);

// Moves a stream's next beyond `last`: first..last, which begins at next, is
// stored or dropped now.
MUST_CHECK enum status run_advance(struct runs *runs, struct run *run, struct run_stream *stream,
                                   int state, const struct delivery_range *range,
                                   const char *detail, size_t detail_size, struct error *err);

// Whether everything the run produced is stored or dropped.
bool run_is_complete(const struct run *run);

// Whether the run has ended and nothing of it is missing.
bool run_is_over(const struct run *run);

// What the threads of a killed run were doing: of each stream, and all together
// as what the run did last ("stream 1: decode tiny request 17; stream 2: idle").
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
