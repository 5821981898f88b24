// SQLite schema of the store: tables, indexes and views.  The tables and views of records are
// generated from the column definitions in record.h.  A run is the lifetime of one monitored
// process.  Each thread of the run has a stream: its records, numbered from 1.  A record lost
// before it got a number is an unnumbered loss.
//
// Tables
//   meta       key, value: uuid of the store, its time of creation, and while a collector has the
//              store open the marker (database_open.h).  In a store created before version 3 also
//              the id of the last run before the upgrade (SCHEMA_NO_SET_HASHES): of runs up to this
//              id, gone_sum (below) may be unknown; of each alert rule its text (key rule:NAME)
//   name       id, text: models, hosts, devices, operations, stages; owner (who reported it first;
//              0: unknown, such as imported ones)
//   run        one row per run: the columns in record.h, and heard_ns (when the collector last
//              heard of the run), refused (records), clock_suspects, unknown_columns, key (the
//              public key that authenticated it; null: none), owner (who opened it; 0: imported, or
//              without a key and older than version 10)
//   owner      id and text of those who open runs: 'key:' with a public key, 'user:' with a user's
//              number (over ipc), 'loopback' (TCP without keys).  horizon_ns: cut-off time.  A run
//              that the store does not have and that started up to this time is refused: it may be
//              a removed run whose tombstone is gone, and which is being replayed
//   tombstone  the runs that were removed, the latest ones of each owner; run_ns: the earlier of
//              started_ns and received_ns
//   forgotten  statistics of removed runs, per owner and reason (why: 0 retention, 1 on request, 2
//              limit of bytes): sums of their ledgers, and how many replays of them were refused
//   admin      audit log of administrators' actions: when, who, what, the result, how many rows
//   run_name   per run: maps the name ids in its messages (`number`) to ids of the table name
//   stream     per producing thread: the next expected number, the count of records produced and of
//              unnumbered losses, and how many of these were lost for lack of space for the
//              thread's queue (no_room).  If the process was killed: the thread's last activity
//   range      per stream: intervals of record numbers, stored (state 0) or dropped (state 1, with
//              the reason).  The ranges of a stream are disjoint and cover 1 to next - 1; adjacent
//              ones with equal state, reason and detail are merged
//   unnumbered  the times of unnumbered losses: per run and period of ten minutes of the
//               collector's clock (told_ns: its start), the count of losses reported in it, and the
//               interval of the host's clock in which they happened.  stream.unnumbered is the
//               total; losses that this table lacks happened at unknown times
//   ledger     per run and kind, counts of rows.  stored: all that were ever stored.  expired:
//              deleted rows that rollups still count (most by retention).  cleared: rows that an
//              administrator deleted and rollups do not count.  So the kind's table has stored -
//              expired - cleared rows.  gone_sum is the set hash (set_hash.h) of expired and
//              cleared rows; null: unknown, since some were removed before version 3
//   refusal    per reason: how many messages, connections or names were refused
//   series     the dimensions of a rollup: a grouping (rollup.h) and its name ids; 0 for a
//              dimension that is absent or not in the grouping
//   rollup     one row per metric, grouping, level, bucket and series (rollup.h): count, sum,
//              minimum, maximum, checksum and sketch (rollup_row.h)
//   rollup_state  per metric: the watermark, the highest record id in its rollups; those of hosts
//   up
//                 to ahead_host have records up to ahead_id (rollup.h); 0: no host is ahead
//   rollup_gap    per kind, grouping and level: periods for which its rollups must not be used, and
//                 why (rollup.h)
//   expiry     per kind: a time; some or all of the rows that started before it have expired
//   baseline   a named set of samples kept for comparison: the filter in words, the environment as
//              JSON (fingerprint); baseline_sample has the values
//   alert      one row per episode of an alert, of a rule and a group (model, host, device; null
//              where the rule does not group by it).  state and severity: alert_state.h.  From
//              started_ns on the condition held; it fired at firing_ns and was over at resolved_ns
//              (null: it is open).  is_told: hooks were told that it fires, as a warning (1) or
//              critical (2).  held_ns and the like are the state machine's times.  value, threshold
//              and unit; why: its first cause
//   alert_silence   alerts of the rule and names (null: any) are not told to hooks in that time;
//              names may be patterns
//   alert_delivery  what a hook has not been told yet: the newest event of an alert, since when,
//              when to try next, how often that has failed, and why the last time
//   alert_config    the rules and hooks of the collector.  since_ns, error: since when a rule
//              cannot be read, why; when a hook's call was given up last, why; when the file was
//              wrong (a row of kind file).  dropped: calls of the hook that were given up
//   disk_sample     free bytes of the store's disk, about once a minute
//   KIND       one table per kind, one row per record: id, run, stream, number, started_ns,
//              received_ns, then the kind's columns; names as ids, enumerations as integers; some
//              of device_sample in fewer bytes (schema_scaled.h)
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
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SCHEMA_VERSION = 16,                // PRAGMA user_version of the file
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

#endif
