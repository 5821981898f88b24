// Dropped range: consecutive records of one stream that will never reach the store, with the
// reason.  A stream is the records of one ring buffer, numbered 1, 2, 3, ...
#pragma once

#include <stdint.h>

// Most unacknowledged dropped ranges of a run; delivery_dropped_add rejects more.
enum { DELIVERY_DROPS_MAX = 4096 };

// Reasons of a drop; the values are those of DropReason in proto/inferstat.proto.
//   SPOOL_FULL              the producer's spool (files of unsent records) was full
//   REFUSED                 the collector refused the records as invalid
//   ACKNOWLEDGED_ELSEWHERE  another store, or an older state of this one, acknowledged them
//   RING_FULL               the ring was full: the records got no number, so they form no range
//   SPOOL_DAMAGED           the producer's spool could not be read
//   HOST_LOST               the host of the run crashed before the records were saved
//   NO_ROOM                 the thread had no ring, since the run file (it has the rings) had no
//                           room: the records got no number, so they form no range
#define DELIVERY_REASONS(X)                                                                        \
    X(UNSPECIFIED, "unspecified")                                                                  \
    X(SPOOL_FULL, "spool_full")                                                                    \
    X(REFUSED, "refused")                                                                          \
    X(ACKNOWLEDGED_ELSEWHERE, "acknowledged_elsewhere")                                            \
    X(RING_FULL, "ring_full")                                                                      \
    X(SPOOL_DAMAGED, "spool_damaged")                                                              \
    X(HOST_LOST, "host_lost")                                                                      \
    X(NO_ROOM, "no_room")

enum delivery_reason {
#define DELIVERY_REASON_ENUM(name, text) DELIVERY_##name,
    DELIVERY_REASONS(DELIVERY_REASON_ENUM)
#undef DELIVERY_REASON_ENUM
        DELIVERY_REASON_COUNT
};

struct delivery_range {
    uint32_t stream;
    uint64_t first, last; // record numbers, both inclusive
    enum delivery_reason reason;
    int64_t since_ns, until_ns; // when the drops happened, by the host's wall clock
};

// Extends the interval *since_ns..*until_ns so that it covers since..until.
static inline void delivery_widen_times(int64_t *since_ns, int64_t *until_ns, int64_t since,
                                        int64_t until)
{
    *since_ns = since < *since_ns ? since : *since_ns;
    *until_ns = until > *until_ns ? until : *until_ns;
}
