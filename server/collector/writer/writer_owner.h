// Authorization of a run's messages: decides who may send them.  Writer thread only.
//
// A run's owner is the peer that opened it: a key, a user of this host over ipc, or all peers over
// TCP without keys.  A key that replaces the owner's key counts as the owner.  The run's connection
// is the one that sent its latest accepted Hello; only this connection may send its messages.  A
// Hello from another connection makes that one the run's connection:
// - TCP: if the sender is the owner, and the run's connection is closed or was silent for 3 s;
// - ipc, the same process: always;
// - ipc, another process of the owner: if the run's connection is closed, and only to send its
//   remaining records (a replay), unless a process number is unknown (another PID namespace);
// - ipc, root: if the run's connection is closed, for a replay of any run.
#pragma once

#include "common/core/base/error.h"
#include "common/core/delivery/delivery_run.h"
#include "server/collector/access/access.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer_runs.h"

// True if `peer` has the same owner or a key that replaces the owner's.  `access` decides which
// keys replace others; NULL: none do.
bool owner_may_send(const struct wire_peer *owner, const struct wire_peer *peer,
                    struct access *access);

// Classifies the sender of the job's message; `run` is NULL for a new run.  `access` decides which
// keys may continue the runs of other keys; NULL: none.
enum delivery_sender owner_sender(const struct run *run, const struct job *job,
                                  struct access *access, const struct channels *channels);

// Returns the age of the run when the message arrived, by the collector's clock; INT64_MAX if the
// run began later, as one of the clocks is then wrong.  `run` is NULL for a new run.
int64_t owner_life_ns(const struct run *run, const struct job *job);

// Call it after an accepted Hello: makes the job's connection the run's connection, and the sender
// the owner of a run that has none (not for a replay).
MUST_CHECK enum status owner_connect(struct runs *runs, struct run *run, const struct job *job,
                                     struct error *err);

// If `hearing` (the result of delivery_hear) rejects the message, counts it and names its sender in
// the log.  Returns the error to answer with, static text; NULL: no error.
const char *owner_reject(const struct run *run, const struct job *job,
                         enum delivery_hearing hearing, struct channels *channels);
