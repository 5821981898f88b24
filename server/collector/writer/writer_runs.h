// Cache of runs over the SQL tables run, run_name, stream, range, unnumbered and ledger.  A run is
// one execution of a producer's process; a stream, the numbered records of one of its threads.
//   Written at once: new runs, their owners, names and descriptions, unnumbered losses, and a
//   stream's latest range when the next one begins.
//   Written by runs_flush: streams, latest ranges, and the counters of runs and ledgers.
// All are written in the transaction of the writer's group commit.  After a rollback runs_reload
// reads the cache from the store again.  Writer thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery_run.h"
#include "common/core/record/record.h"
#include "common/wire/message.h"
#include "common/wire/peer.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer_cells.h"

struct access;
struct runs;

// Longest text in the store that describes a run, a loss or an activity, in bytes; longer ones are
// cut.  Only the joined activities of a killed run may be longer.
enum { RUN_TEXT_MAX = 255 };

// A stream's latest range of record numbers, all stored or all dropped for one reason; extended in
// place.  `dirty`, here and below: changed since the last flush.
struct run_range {
    uint64_t first, last;        // record numbers; first 0: no range
    int state;                   // SCHEMA_RANGE_STORED or SCHEMA_RANGE_DROPPED
    enum delivery_reason reason; // of dropped records
    char *detail;                // text of the reason, or NULL
    int64_t since_ns, until_ns;  // of dropped records: when they were dropped
    bool dirty;
};

// A stream, without the protocol's state, which is in delivery.lanes.
struct run_stream {
    struct run_range range;
    char *activity; // its thread's activity when the process was killed; or NULL
    int64_t activity_since_ns;
    bool dirty;
};

// The connection that a run's messages come from; not in the store.
struct run_link {
    bool is_known; // else the run has sent no Hello to this collector
    struct job_return at;
    pid_t pid;             // of the process over ipc; 0: unknown
    int64_t heard_ns;      // when its last message arrived; the collector's wall clock
    uint64_t closed_at_ns; // when it was first found closed, monotonic; 0: it is open
    int64_t closed_ns;     // the same by the collector's wall clock
};

struct run {
    int64_t id;
    unsigned char uuid[MESSAGE_RUN_SIZE];
    struct delivery_run delivery; // the protocol's state
    int64_t heard_ns;     // last message; the later of the collector's and the host's wall clock
    uint64_t heard_at_ns; // last message; monotonic
    int64_t flushed_heard_ns; // heard_ns as last written to the store
    int64_t told_ns; // host's clock at the last run_record_unnumbered; the next losses are later
    // Numbers of: records stored; records refused, as they were invalid or beyond a limit; records
    // with implausible times; columns received that this version does not know.
    int64_t stored, refused, clock_suspects, unknown_columns;
    int64_t device_count;
    // The host's wall clock minus the collector's, as the run estimates it, and the largest error
    // of the estimate; error 0: unknown.
    int64_t clock_offset_ns, clock_error_ns;
    int64_t stored_by_kind[RECORD_KIND_COUNT]; // since the last flush
    char *activity;                            // what the run does now or did last; or NULL
    bool dirty;

    int64_t owner;           // id in the SQL table owner; 0: none yet, unless `opener` has a key
    struct wire_peer opener; // identifies the owner (peer_is_same_owner)
    int64_t began_ns;        // start, by the host's clock; unknown: time of the first Hello
    struct run_link link;

    struct run_stream *streams; // parallel to delivery.lanes
    size_t stream_count, stream_room;
    int64_t *names; // [i]: the store's id of the run's name i + 1, of delivery.names_known
    size_t name_room;
    uint32_t drop_count; // number of dropped ranges; valid if `complete`
    struct cells cells;  // cells of rollups that the run has filled today (writer_cells.h)
    // Number of names that the producer has sent; valid if not `complete`.  0: just read.
    uint32_t names_told;

    // True while streams and names are in memory; else runs_complete reads them from the store.
    bool complete;
    uint64_t produced; // records produced by all streams, as last saved

    struct pending_ack *ack; // the run's latest Ack; set by writer_batch.c
    uint64_t ack_group;      // the group commit that the Ack waits for; `ack` is valid only in it

    struct run *next_in_bucket;
};

MUST_CHECK enum status runs_new(struct runs **out, struct sqlite3 *db, struct error *err);
void runs_free(struct runs *runs);

// Call it after an import has added runs or names, or names have been removed: reads the highest id
// again, and makes the next new name count all names for the quota again.
MUST_CHECK enum status runs_refresh_ids(struct runs *runs, struct error *err);

// Empties the cache.
void runs_forget(struct runs *runs);

// Empties the cache and reloads the open runs; call it after a rollback.  A run whose Hello was
// committed need not send it again.
MUST_CHECK enum status runs_reload(struct runs *runs, uint64_t now_ns, struct error *err);

// Finds a run in the cache or the store; `*out` is NULL when there is none, or if it has a
// tombstone (forget.h).  It may lack its streams and names.
MUST_CHECK enum status runs_find(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                                 struct run **out, struct error *err);

// Reads the streams and names of a run, unless they are in memory.
MUST_CHECK enum status runs_complete(struct runs *runs, struct run *run, struct error *err);

// Sets `*id` to the id of the name "other", which stands for names beyond a limit.
MUST_CHECK enum status runs_other_name(struct runs *runs, int64_t *id, struct error *err);

// Sets the limit of names per run, and the quota of names in the store (borrowed; NULL: none).
// Names beyond them are stored as the one name "other".
void runs_limit_names(struct runs *runs, uint32_t count, struct quota *quota);

// Call it for a Hello whose run runs_find does not find.  Sets `*is` to true, and counts the
// attempt, if the run must not be opened: the store has removed it (a tombstone), or it began no
// later than the horizon (the latest start of a removed run without a tombstone; forget.h) of an
// owner whose runs the peer continues: itself, or a key that its key replaces.
MUST_CHECK enum status runs_is_forgotten(struct runs *runs, const struct message_hello *hello,
                                         const struct wire_peer *peer, struct access *access,
                                         bool *is, struct error *err);

// Inserts the run that a Hello of `peer` describes; the peer's owner is the run's.  `owner` is its
// number in the quota.
MUST_CHECK enum status runs_add(struct runs *runs, const struct message_hello *hello,
                                const struct wire_peer *peer, unsigned owner, int64_t received_ns,
                                struct run **out, struct error *err);

// Makes the peer's owner the owner of the run, which has none.
MUST_CHECK enum status runs_own(struct runs *runs, struct run *run, const struct wire_peer *peer,
                                struct error *err);

// Counts the runs of the peer's owner that are open or silent and have sent a message since
// `since_ns`, as far as flushed.
MUST_CHECK enum status runs_count_unfinished(struct runs *runs, const struct wire_peer *peer,
                                             int64_t since_ns, int64_t *count, struct error *err);

// Updates the run's description from a later Hello: cpu_governor, container, driver, cuda,
// huge_pages, allocator and build_flags unless empty, and the number of devices if higher.  A
// producer sends its first Hello before it has detected its devices.
MUST_CHECK enum status runs_describe(struct runs *runs, struct run *run,
                                     const struct message_hello *hello, struct error *err);

// Iterates over the runs in the cache.  Returns the run after `run` (the first after NULL), or
// NULL at the end.
struct run *runs_next(const struct runs *runs, const struct run *run);

// Loads all open runs into the cache, as if each had sent a message at `now_ns` (monotonic).
MUST_CHECK enum status runs_load_open(struct runs *runs, uint64_t now_ns, struct error *err);

// Evicts runs that are closed or silent and have sent nothing since `before_ns` (monotonic).
// Call it only after a flush.
void runs_evict(struct runs *runs, uint64_t before_ns);

// Call it after maintenance has removed runs and names from the store: evicts all runs that are
// closed or silent.
void runs_were_removed(struct runs *runs);

// If the cache exceeds `limit` bytes, drops the streams and names of runs that take more than
// their share, `limit` divided by the number of complete runs.  Dirty runs stay complete.
void runs_trim(struct runs *runs, size_t limit);

// Returns the bytes of the cache, and sets `*complete` to the number of complete runs in it.
size_t runs_size(const struct runs *runs, size_t *complete);

// Returns the number of open runs in the cache.
uint32_t runs_open_count(const struct runs *runs);

// Writes all changes in the current transaction.
MUST_CHECK enum status runs_flush(struct runs *runs, struct error *err);

// True if there is anything to flush.
bool runs_are_dirty(const struct runs *runs);

// Returns the highest assigned id of a run.
int64_t runs_last_id(const struct runs *runs);

// ---- One run -----------------------------------------------------------------------

void run_free(struct run *run); // accepts NULL

// Returns the bytes of memory of the run.
size_t run_size(const struct run *run);

// Frees streams and names, which must be in the store.
void run_drop_details(struct run *run);

// Appends the run's next name, by its id in the store.  May return STATUS_NOMEM.
MUST_CHECK enum status run_append_name(struct run *run, int64_t name);

// Extends `streams` to all streams in delivery.lanes.
MUST_CHECK enum status run_make_streams(struct run *run, struct error *err);

// True if the run has anything to flush.
bool run_is_dirty(const struct run *run);

// Adds names of the run, which have the ids `first`, `first` + 1, ... in the run, and interns them
// in the store.  Known names are skipped; names after a gap are ignored, since the producer
// repeats them.  `owner` is the number of the run's owner in the quota.  Adds to `*folded` how many
// names were beyond a limit.
MUST_CHECK enum status run_add_names(struct runs *runs, struct run *run, unsigned owner,
                                     uint32_t first, const struct wire_bytes *names, size_t count,
                                     uint64_t *folded, struct error *err);

// Records that the record numbers range->first .. range->last of the stream at index `place` are
// stored or dropped, as `state` says.  They follow the last recorded numbers of that stream.  Once
// the run has DELIVERY_DROPS_MAX dropped ranges, adjacent ones become one, with the reason and
// detail of the first.
MUST_CHECK enum status run_record_range(struct runs *runs, struct run *run, size_t place, int state,
                                        const struct delivery_range *range,
                                        struct wire_bytes detail, struct error *err);

// Records the unnumbered losses that the last message reported, if any: records that the producer
// dropped before they got a record number.  They were dropped after the previous report and up
// to `now_ns` of the host's clock.
MUST_CHECK enum status run_record_unnumbered(struct runs *runs, struct run *run,
                                             int64_t received_ns, int64_t now_ns,
                                             struct error *err);

// Sets the last activities of a killed run's streams, and joins them as the run's last activity
// ("stream 1: decode tiny request 17; stream 2: load tiny"; "idle" if all threads were idle).
MUST_CHECK enum status run_set_killed(struct run *run, const struct wire_activity *activities,
                                      size_t count, struct error *err);

// Sets the run's estimate of its clock offset; an estimate with error 0 is ignored.  Only the
// first estimate makes the run dirty; later ones are saved with the next change.
void run_set_clock(struct run *run, int64_t offset_ns, int64_t error_ns);

// Raises the run's number of devices to `count`.
void run_count_devices(struct run *run, int64_t count);

MUST_CHECK enum status run_set_activity(struct run *run, struct wire_bytes activity,
                                        struct error *err);
