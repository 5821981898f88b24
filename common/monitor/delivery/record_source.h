// Reads unacknowledged records from where they are: the ring of their stream or, once
// released there, the spool.
#ifndef INFERSTAT_MONITOR_RECORD_SOURCE_H
#define INFERSTAT_MONITOR_RECORD_SOURCE_H

#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"

// The record of that number; borrowed until the next call.  `spool` may be NULL.  NULL:
// the record is lost.
const struct record *record_source_at(const struct runfile *file, struct spool *spool,
                                      uint32_t stream, uint64_t number);

#endif
