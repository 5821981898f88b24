#include "client/remote/remote.h"

#include <stdlib.h>

#include "client/remote/source.h"

struct remote {
    const struct source_ops *ops;
    void *source;
    const char *name, *warning; // of the source
};

enum status remote_open(struct remote **out, const struct remote_target *target, struct error *err)
{
    struct remote *remote = calloc(1, sizeof *remote);
    if (!remote)
        return error_no_memory(err, "remote");
    remote->ops = target->db ? &source_file : &source_collector;
    enum status status =
        remote->ops->open(&remote->source, target, &remote->name, &remote->warning, err);
    if (status != STATUS_OK) {
        remote_close(remote);
        return status;
    }
    *out = remote;
    return STATUS_OK;
}

void remote_close(struct remote *remote)
{
    if (!remote)
        return;
    remote->ops->close(remote->source);
    free(remote);
}

enum status remote_query(struct remote *remote, const struct query *query, struct result **out,
                         struct error *err)
{
    enum status status = query_check(query, err);
    return status == STATUS_OK ? remote->ops->query(remote->source, query, out, err) : status;
}

void remote_wake_on(struct remote *remote, int wake_fd)
{
    if (remote->ops->wake_on)
        remote->ops->wake_on(remote->source, wake_fd);
}

const char *remote_name(const struct remote *remote)
{
    return remote->name;
}

const char *remote_warning(const struct remote *remote)
{
    return remote->warning;
}

bool remote_is_file(const struct remote *remote)
{
    return remote->ops == &source_file;
}

enum status remote_subscribe(struct remote *remote, uint32_t kinds, enum remote_live_mode mode,
                             struct error *err)
{
    return remote->ops->subscribe(remote->source, kinds, mode, err);
}

enum status remote_live_next(struct remote *remote, uint64_t timeout_ns, int wake_fd,
                             enum record_kind *kind, struct result **out, uint64_t *missed,
                             struct error *err)
{
    return remote->ops->live_next(remote->source, timeout_ns, wake_fd, kind, out, missed, err);
}
