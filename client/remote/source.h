// Back-end interface (vtable) of the query client in remote.h: one struct of function pointers for
// a collector, one for a store file.  Internal to client/remote.
#ifndef INFERSTAT_CLIENT_REMOTE_SOURCE_H
#define INFERSTAT_CLIENT_REMOTE_SOURCE_H

#include "client/remote/remote.h"

// `source` is the back end's object, which `open` creates.  Each function has the contract of the
// function in remote.h with its name.
struct source_ops {
    // Also sets what remote_name and remote_warning return; both texts are valid until `close`.
    enum status (*open)(void **source, const struct remote_target *target, const char **name,
                        const char **warning, struct error *err);
    void (*close)(void *source); // NULL is fine
    enum status (*query)(void *source, const struct query *query, struct result **out,
                         struct error *err);
    void (*wake_on)(void *source, int wake_fd); // NULL: queries do not block
    enum status (*subscribe)(void *source, uint32_t kinds, enum remote_live_mode mode,
                             struct error *err);
    enum status (*live_next)(void *source, uint64_t timeout_ns, int wake_fd, enum record_kind *kind,
                             struct result **out, uint64_t *missed, struct error *err);
};

extern const struct source_ops source_collector;
extern const struct source_ops source_file;

#endif
