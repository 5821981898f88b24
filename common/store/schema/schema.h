// SQLite schema of the store: tables, indexes and views.  inferstat-schema(7), in
// client/man/inferstat-schema.7.in, says what each table and column means; the tables and views of
// records are generated from the column definitions in record.h.  A run is the lifetime of one
// monitored process.  Each thread of the run has a stream: its records, numbered from 1.  A record
// lost before it got a number is an unnumbered loss.
//
// What else the code relies on:
//   KIND       one table per kind, one row per record: id, run, stream, number, started_ns,
//              received_ns, then the kind's columns; names as ids, enumerations as integers; some
//              of device_sample in fewer bytes (schema_scaled.h)
//   range      the ranges of a stream are disjoint and cover 1 to next - 1; adjacent ones with
//              equal state, reason and detail are merged
//   ledger     expired: deleted rows that rollups still count (most by retention).  cleared: rows
//              that an administrator deleted and rollups do not count.  gone_sum is the set hash
//              (set_hash.h) of both; null: unknown, since some were removed before version 3
//   owner      a run that the store does not have and that started up to horizon_ns may be a
//              removed run without a tombstone, which is being replayed
//   rollup     with series, rollup_state and rollup_gap: rollup.h and rollup_row.h
//   alert      state and severity: alert_state.h; held_ns and the like are the times of its state
//              machine.  Names of alert_silence may be patterns
//
// Views: v_KIND (a record with names and enumerations as text, and derived columns), v_stream,
// v_range, v_ledger (per run, what became of all records that it produced).
//
// A record's identity (run, stream, number) is unique without an index: a record is inserted in the
// transaction that advances its stream's `next` beyond it, and no number below `next` is inserted
// later.  (Only an import does that; it skips existing records.)  An index would exceed the row.
// `id` increases with arrival; listings and the live feed use it.  Each kind has an index on
// started_ns, for time windows; some kinds have small indexes by run, or on failed records only.
//
// A started_ns more than a day ahead of received_ns or before 2020 is stored unchanged: views
// compute the flag clock_suspect, and the run counts such records in clock_suspects.  In rollups
// and averages all these records have the same time, SCHEMA_CLOCK_UNPLACED_NS, so that times spread
// over centuries need no buckets of their own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    SCHEMA_VERSION = 17,                // PRAGMA user_version of the file
    SCHEMA_APPLICATION_ID = 0x49667374, // PRAGMA application_id: "Ifst"
    SCHEMA_RANGE_STORED = 0,            // range.state
    SCHEMA_RANGE_DROPPED = 1,
    SCHEMA_FORGOTTEN_REQUEST = 1, // forgotten.why: on request
};

// Key in the table meta.  Its value is the id of the last run that may have ledgers without
// gone_sum; the row is absent if there is none.
#define SCHEMA_NO_SET_HASHES "no_fingerprints_to_run"

// SQL expression for the highest throughput that a load (row `t`) can have: the device's measured
// rate of copies from the host, which calibration makes steady.  The load's own rates are those of
// a disturbed machine.  NULL if the device's rate is not known, or if this load's copies were
// faster, which disproves it.
#define SCHEMA_LOAD_RATE                                                                           \
    "(SELECT d.h2d_bytes_per_second FROM device d WHERE d.run = t.run AND d.name = t.device"       \
    " AND d.h2d_bytes_per_second >= coalesce(t.h2d_bytes_per_second, 0)"                           \
    " ORDER BY d.id DESC LIMIT 1)"

// A started_ns outside of (SCHEMA_CLOCK_FLOOR_NS, received_ns + SCHEMA_CLOCK_AHEAD_NS) is suspect.
#define SCHEMA_CLOCK_FLOOR_NS INT64_C(1577836800000000000) // 2020-01-01
#define SCHEMA_CLOCK_AHEAD_NS INT64_C(86400000000000)      // a day

// 2019-12-01, the start of a month; see above.
#define SCHEMA_CLOCK_UNPLACED_NS INT64_C(1575158400000000000)

static inline bool schema_time_is_suspect(int64_t started_ns, int64_t received_ns)
{
    return started_ns < SCHEMA_CLOCK_FLOOR_NS || started_ns - SCHEMA_CLOCK_AHEAD_NS > received_ns;
}

// The time at which rollups and averages count a record.
static inline int64_t schema_placed_time(int64_t started_ns, int64_t received_ns)
{
    return schema_time_is_suspect(started_ns, received_ns) ? SCHEMA_CLOCK_UNPLACED_NS : started_ns;
}

// The same in SQL, of a record `t`: whether its time is plausible, and the time at which it counts.
// The plus keeps SQLite from finding rows by this lower bound where there is a better one.
#define SCHEMA_CLOCK_FLOOR_TEXT "1577836800000000000"
#define SCHEMA_IS_PLACED                                                                           \
    "+t.started_ns BETWEEN " SCHEMA_CLOCK_FLOOR_TEXT " AND t.received_ns + 86400000000000"
#define SCHEMA_PLACED_TIME "iif(" SCHEMA_IS_PLACED ", t.started_ns, 1575158400000000000)"
