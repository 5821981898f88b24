#include "client/remote/remote.h"

#include <stdlib.h>

#include "client/remote/source.h"

struct remote {
    const struct source_ops *ops;
    void *source;
};

struct remote_live {
    const struct source_ops *ops;
    void *live;
};

static const struct source_ops *ops_of(const struct remote_target *target)
{
    return target->db ? &source_file : &source_collector;
}

enum status remote_open(struct remote **out, const struct remote_target *target, struct error *err)
{
    struct remote *remote = calloc(1, sizeof *remote);
    if (!remote)
        return error_no_memory(err, "remote");
    remote->ops = ops_of(target);
    enum status status = remote->ops->open(&remote->source, target, err);
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
    return remote->ops->name(remote->source);
}

const char *remote_warning(const struct remote *remote)
{
    return remote->ops->warning ? remote->ops->warning(remote->source) : "";
}

bool remote_is_file(const struct remote *remote)
{
    return remote->ops == &source_file;
}

enum status remote_live_open(struct remote_live **out, const struct remote_target *target,
                             uint32_t kinds, enum remote_live_mode mode, struct error *err)
{
    struct remote_live *live = calloc(1, sizeof *live);
    if (!live)
        return error_no_memory(err, "remote");
    live->ops = ops_of(target);
    enum status status = live->ops->live_open(&live->live, target, kinds, mode, err);
    if (status != STATUS_OK) {
        remote_live_close(live);
        return status;
    }
    *out = live;
    return STATUS_OK;
}

void remote_live_close(struct remote_live *live)
{
    if (!live)
        return;
    live->ops->live_close(live->live);
    free(live);
}

enum status remote_live_next(struct remote_live *live, uint64_t timeout_ns, int wake_fd,
                             enum record_kind *kind, struct result **out, uint64_t *missed,
                             struct error *err)
{
    return live->ops->live_next(live->live, timeout_ns, wake_fd, kind, out, missed, err);
}
