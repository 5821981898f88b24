// The store's SQLite schema: tables and views, generated from the record table (record.h).  A run
// is the lifetime of one monitored process.  Each of its threads is a stream, which numbers its
// records from 1.  Records lost before they got a number are unnumbered.
//
// Tables
//   meta       key, value: the store's UUID, its time of creation, and, in a store created
//              before version 3, the last run of that time (SCHEMA_NO_SET_HASHES)
//   name       id, text: models, hosts, devices, operations, stages
//   run        one row per run: the record table's columns, and heard_ns (when the
//              collector last received data of it), refused, clock_suspects, unknown_columns,
//              key (the public key that authenticated it; null: none)
//   run_name   maps the name ids of a run's batches to texts
//   stream     per producing thread: the next expected number, records produced; of a
//              killed run the thread's last activity and its start
//   range      per stream: intervals of numbers stored (state 0) or dropped (state 1, with
//              the reason).  Ranges of a stream are disjoint and cover 1 to next - 1;
//              adjacent ones with equal state, reason and detail are merged
//   unnumbered  per run and ten minutes (of the collector's clock, from told_ns on): the
//              number of unnumbered losses reported, and the interval of the host's clock in
//              which they happened.  stream.unnumbered is the total; losses that are not in
//              this table happened at unknown times
//   ledger     per run and kind: rows stored, expired (or cleared, where rollups of the day
//              go on counting them), cleared; the rows in the kind's table are
//              stored - expired - cleared.  gone_sum is the set hash (set_hash.h) of
//              expired and cleared rows; null: unknown, some were removed before version 3
//   refusal    per reason: the number of messages, connections or names refused
//   series     the key of a rollup: a grouping (rollup.h) and its name ids; 0 for a
//              dimension that is absent or not in the grouping
//   rollup     per metric (number: rollup.h), grouping, level, bucket (its start) and
//              series: count, sum (carry: the high part of an integer sum beyond 64 bits),
//              minimum and maximum, for rates the sums of numerator and denominator, a
//              checksum with the sketch appended (rollup_row.h)
//   rollup_state  per metric: the watermark, the highest record id in its rollups
//   rollup_gap    intervals for which a level of rollups and all finer ones are not kept, and why
//   expiry     per kind: the time before which rows have expired
//   baseline   samples kept for comparison: the filter in words, the machines' fingerprint
//              as JSON, values as 64-bit floats in order of time
//   KIND       one row per record: id, run, stream, number, started_ns, received_ns,
//              then the kind's columns; names as ids, enumerations as numbers.
//
// A record's identity (run, stream, number) is unique without an index: a record is inserted in the
// transaction that advances its stream's `next` beyond it, and no number below `next` is ever
// inserted.  An index would be larger than the row.  `id` increases with arrival; listings and the
// live feed use it.  Each kind has an index on started_ns, for time windows; some have small ones
// by run, or on failed records only.
//
// A started_ns more than a day ahead of received_ns or before 2020 is stored unchanged: views
// compute the flag clock_suspect, and the run counts such records in clock_suspects.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_H

#include <stdint.h>

enum {
    SCHEMA_VERSION = 9,
    SCHEMA_APPLICATION_ID = 0x49667374, // "Ifst"
    SCHEMA_RANGE_STORED = 0,            // range.state
    SCHEMA_RANGE_DROPPED = 1,
};

// Key of `meta`: the id of the last run that may have ledgers without gone_sum; absent if none.
#define SCHEMA_NO_SET_HASHES "no_fingerprints_to_run"

// A load's (row t) throughput: the lower of storage and H2D rate, as far as known.
#define SCHEMA_LOAD_RATE                                                                           \
    "coalesce(min(t.storage_bytes_per_second, t.h2d_bytes_per_second),"                            \
    " t.storage_bytes_per_second, t.h2d_bytes_per_second)"

// A started_ns outside of (SCHEMA_CLOCK_FLOOR_NS, received_ns + SCHEMA_CLOCK_AHEAD_NS) is suspect.
#define SCHEMA_CLOCK_FLOOR_NS INT64_C(1577836800000000000) // 2020-01-01
#define SCHEMA_CLOCK_AHEAD_NS INT64_C(86400000000000)      // a day

#endif
