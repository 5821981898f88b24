// The store's tables and views, made from the record table.
//
// Tables
//   meta       key, value: the store's UUID, when it was made, and of a store that
//              is older than version 3 the last run of then (SCHEMA_NO_SET_HASHES)
//   name       id, text: models, hosts, devices, operations, stages
//   run        a row a run: the record table's columns, and heard_ns (when the
//              collector last heard of it), refused, clock_suspects, unknown_columns,
//              key (the public key that opened it; null: one without keys)
//   run_name   the run's own numbers of names, as batches use them
//   stream     per producing thread: the number wanted next, what it produced; of a
//              killed run what the thread was doing then, and since when
//   range      per stream: which numbers are stored (state 0) and which are
//              dropped (state 1), with the reason.  Ranges of a stream are
//              disjoint and follow each other from 1 to next - 1; neighbours of
//              one kind are merged
//   unnumbered  per run and ten minutes (of the collector's clock, from told_ns on): how many
//              unnumbered losses were reported then, and the interval of the host's clock in which
//              they happened.  The sum of all is stream.unnumbered; what is missing of it here
//              was lost at unknown times
//   ledger     per run and kind: rows stored, expired, cleared; the rows in the
//              kind's table are stored - expired - cleared.  gone_sum is the
//              set hash (set_hash.h) of what expired or was cleared; null: not
//              known, since it went before version 3
//   refusal    per reason: how many messages, connections or names were not taken
//   series     what a rollup counts together: a grouping (rollup.h) and the ids of its
//              names, 0 where it has none or does not keep them apart
//   rollup     per metric (by number: rollup.h), grouping, level, bucket of time (its
//              start) and series: count, sum (carry is what of an integer sum is above
//              64 bits), extremes, of rates numerator and denominator summed, and a
//              checksum with the sketch behind it (rollup_row.h)
//   rollup_state  per metric: the highest id that its rollups hold
//   rollup_gap    where a level of rollups, and all finer ones, are not kept, and why
//   expiry     per kind: rows started before have expired
//   baseline   what was kept to compare with: the filter in words, the fingerprint of
//              the machines as JSON; and its samples, 64-bit floats in order of time
//   KIND       a row a record: id, run, stream, number, started_ns, received_ns,
//              then the kind's columns; names as ids, enumerations as numbers.
//
// A record's identity (run, stream, number) is unique without an index on it: a
// record is inserted in the transaction that moves its stream's `next` beyond
// it, and nothing below `next` is ever inserted.  An index would cost more than
// the row.  `id` rises with arrival, which listings and the live feed use; the
// one index of a kind is on started_ns, for windows of time; small ones beside it hold
// what failed, and what few records belong to a run.
//
// A started_ns more than a day ahead of received_ns or before 2020 is stored as
// it came.  It needs no flag of its own: views show it as clock_suspect, and the
// run counts such records in clock_suspects.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_H

#include <stdint.h>

enum {
    SCHEMA_VERSION = 9,
    SCHEMA_APPLICATION_ID = 0x49667374, // "Ifst"
    SCHEMA_RANGE_STORED = 0,            // range.state
    SCHEMA_RANGE_DROPPED = 1,
};

// The key of `meta` for the last run that may have ledgers without gone_sum; none
// where the key is missing.
#define SCHEMA_NO_SET_HASHES "no_fingerprints_to_run"

// The slower of the rates that bring a load's weights (row t), as far as they are known.
#define SCHEMA_LOAD_RATE                                                                           \
    "coalesce(min(t.storage_bytes_per_second, t.h2d_bytes_per_second),"                            \
    " t.storage_bytes_per_second, t.h2d_bytes_per_second)"

// started_ns outside of (SCHEMA_CLOCK_FLOOR_NS, received_ns + SCHEMA_CLOCK_AHEAD_NS)
// is suspect.
#define SCHEMA_CLOCK_FLOOR_NS INT64_C(1577836800000000000) // 2020-01-01
#define SCHEMA_CLOCK_AHEAD_NS INT64_C(86400000000000)      // a day

#endif
