// Who may send a run's messages.  A run belongs to who opened it: a key, a user of this host over
// ipc, or all peers over TCP without keys.  Its messages come from one connection, that of its
// latest Hello.  Another connection may take its place with a Hello,
//
// - if it comes from the same process over ipc;
// - if the run's connection is closed; over ipc other processes of the user may then only replay
//   the run, and root may replay any run;
// - over TCP, if nothing has come from the run's connection for 3 s: its host may be gone.
//
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_OWNER_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_OWNER_H

#include "common/core/base/error.h"
#include "common/core/delivery/delivery_run.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer_runs.h"

// Who sends the job's message of `run` (NULL: a new run).  `access` decides which keys continue the
// runs of others (NULL: none do).
enum delivery_sender owner_sender(const struct run *run, const struct job *job,
                                  struct access *access, const struct channels *channels);

// How long the run has lived when the message arrived, by the collector's clock: INT64_MAX if it
// began later, since one of the clocks is wrong then.  `run` is NULL for a new run.
int64_t owner_life_ns(const struct run *run, const struct job *job);

// After a Hello: the run's messages come from the job's connection from now on.  A run without an
// owner gets the sender as its owner, except by a replay.
MUST_CHECK enum status owner_connect(struct runs *runs, struct run *run, const struct job *job,
                                     struct error *err);

// If `hearing` rejects the message, counts it and names its sender in the log.  Returns the error
// with which the message is to be answered, static text; NULL: none.
const char *owner_reject(const struct run *run, const struct job *job,
                         enum delivery_hearing hearing, struct channels *channels);

#endif
