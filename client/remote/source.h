// Backend interface of remote.h: one table of operations for a collector, one for a store file.
// Internal to client/remote.
#ifndef INFERSTAT_CLIENT_REMOTE_SOURCE_H
#define INFERSTAT_CLIENT_REMOTE_SOURCE_H

#include "client/remote/remote.h"

struct address;

// `source` and `live` are the objects that `open` and `live_open` create.  The contracts are those
// of remote.h.
struct source_ops {
    enum status (*open)(void **source, const struct remote_target *target, struct error *err);
    void (*close)(void *source); // NULL is fine
    enum status (*query)(void *source, const struct query *query, struct result **out,
                         struct error *err);
    void (*wake_on)(void *source, int wake_fd); // NULL: queries do not block
    const char *(*name)(const void *source);
    const char *(*warning)(const void *source); // NULL: no warnings

    enum status (*live_open)(void **live, const struct remote_target *target, uint32_t kinds,
                             enum remote_live_mode mode, struct error *err);
    void (*live_close)(void *live);
    enum status (*live_next)(void *live, uint64_t timeout_ns, int wake_fd, enum record_kind *kind,
                             struct result **out, uint64_t *missed, struct error *err);
};

extern const struct source_ops source_collector;
extern const struct source_ops source_file;

// The live operations of source_collector (live_collector.c) and source_file (live_file.c).
enum status collector_live_open(void **live, const struct remote_target *target, uint32_t kinds,
                                enum remote_live_mode mode, struct error *err);
void collector_live_close(void *live);
enum status collector_live_next(void *live, uint64_t timeout_ns, int wake_fd,
                                enum record_kind *kind, struct result **out, uint64_t *missed,
                                struct error *err);

enum status file_live_open(void **live, const struct remote_target *target, uint32_t kinds,
                           enum remote_live_mode mode, struct error *err);
void file_live_close(void *live);
enum status file_live_next(void *live, uint64_t timeout_ns, int wake_fd, enum record_kind *kind,
                           struct result **out, uint64_t *missed, struct error *err);

// Parses the address of a target: target->collector, else INFERSTAT_COLLECTOR, else the default
// (address_default).
MUST_CHECK enum status collector_address(struct address *out, const struct remote_target *target,
                                         struct error *err);

#endif
