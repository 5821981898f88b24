// Reader gate: gives the writer a moment at which it can reset SQLite's write-ahead log (WAL).
//
// SQLite can reuse the log from its start only when no read transaction (snapshot) needs a part of
// it.  While queries overlap there is no such moment, and the log would grow without end.  So when
// the log has become long, the writer closes the gate.  New queries then wait, for a limited time.
// Running queries end, or are cancelled when the log has grown by reader_gate_log_limit since they
// began.  Then the writer resets the log (checkpoint_restart) and opens the gate.  If another
// process holds a snapshot, the reset fails, the gate is opened all the same, and the log grows.
// Exception: while a READER_LONG runs, the gate stays open, and only other READER_LONG wait.
//
// Thread-safe.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum reader_kind {
    READER_SHORT, // a query of the query service's thread
    READER_SCAN,  // an average that scans records, for seconds
    READER_LONG,  // an audit, comparison, baseline or copy, for minutes
    READER_KIND_COUNT
};

// Initialized by channels_new.
struct reader_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_closed;      // no READER_SCAN may begin, nor a READER_SHORT without one
    bool has_ended;      // no query waits any more
    uint64_t free_at_ns; // when the closed gate had no readers (see reader_gate_enter), or 0
    bool log_is_long;    // no READER_LONG may begin
    unsigned readers[READER_KIND_COUNT]; // that have entered
    int64_t store_bytes;                 // size limit of the store (--retention bytes); 0: none
};

void reader_gate_init(struct reader_gate *gate);
void reader_gate_deinit(struct reader_gate *gate);

// Call it before a query begins its read transaction, and reader_gate_leave after.  Waits while the
// gate is closed (READER_LONG: while the log is long), then enters even if it still is: after 5 s
// (READER_SCAN), after 10 s (READER_LONG), or 0.2 s after free_at_ns (READER_SHORT).
//
// The last reader that leaves the closed gate sets free_at_ns, unless it was set within the last
// 0.4 s.  So a READER_SHORT waits after each query that took 0.2 s or longer, but not after each
// shorter one: when all take 0.1 to 0.19 s, every second one begins without a moment for the
// writer.
void reader_gate_enter(struct reader_gate *gate, enum reader_kind kind);
void reader_gate_leave(struct reader_gate *gate, enum reader_kind kind);

// Returns by how many bytes the log may grow during a query of this kind.  The caller passes it to
// store_set_log_limit, which cancels the query then.
int64_t reader_gate_log_limit(const struct reader_gate *gate, enum reader_kind kind);

// Sets the size limit of the store, before readers enter.  Writer thread.
void reader_gate_limit_store(struct reader_gate *gate, int64_t bytes);

// Says that the log is long, and closes the gate unless a READER_LONG has entered.  Returns true if
// the gate is closed and no reader has entered: the log can be reset.  Writer thread.
bool reader_gate_close(struct reader_gate *gate);

// Opens the gate permanently: no query waits while the collector stops.  Any thread.
void reader_gate_end(struct reader_gate *gate);

// Opens the gate; `log_is_long`: the log could not be reset.  Writer thread.
void reader_gate_open(struct reader_gate *gate, bool log_is_long);
