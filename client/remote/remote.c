#include "client/remote/remote.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote/remote_collector.h"
#include "common/store/alert/alert_table.h"
#include "common/store/compare/baseline.h"
#include "common/store/transfer/import.h"
#include "common/store/store.h"
#include "common/store/query/query_list.h"
#include "common/store/retention/clear.h"
#include "common/sys/clock.h"

enum { PAGE_ROWS = 1000 };

static const uint64_t look_every_ns = UINT64_C(500000000);

struct remote {
    struct collector *collector; // NULL: a store file
    struct store *store;
    char *path;

    // Where the reading of each kind of the file's live records stands.  Ids rise with arrival;
    // those that a clear has taken away are given out again, so a record that arrives within the
    // half second around a clear may be passed over.
    uint32_t kinds;
    enum remote_live_mode mode;
    unsigned next_kind;    // to look at; RECORD_KIND_COUNT: all were, until next_look_ns
    uint64_t next_look_ns; // monotonic
    int64_t seen[RECORD_KIND_COUNT];
};

enum status remote_open(struct remote **out, const struct remote_target *target, struct error *err)
{
    struct remote *remote = calloc(1, sizeof *remote);
    if (!remote)
        return error_no_memory(err, "remote");
    remote->path = target->db ? strdup(target->db) : NULL;
    enum status status = !target->db    ? collector_open(&remote->collector, target, err)
                         : remote->path ? store_open(&remote->store, target->db, err)
                                        : error_no_memory(err, "remote");
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
    collector_close(remote->collector);
    store_close(remote->store);
    free(remote->path);
    free(remote);
}

enum status remote_query(struct remote *remote, const struct query *query, struct result **out,
                         struct error *err)
{
    enum status status = query_check(query, err);
    if (status != STATUS_OK)
        return status;
    if (remote->collector)
        return collector_query(remote->collector, query, out, err);
    if (query->kind == QUERY_CLEAR || query->kind == QUERY_FORGET)
        return store_clear(remote->path, query, out, err);
    if (query->kind == QUERY_IMPORT)
        return store_import(remote->path, query, out, err);
    if (query->kind == QUERY_BASELINE_SAVE || query->kind == QUERY_BASELINE_DELETE)
        return baseline_write_file(remote->path, query, out, err);
    if (query->kind == QUERY_ALERT_EDIT)
        return alert_table_edit_file(remote->path, query, out, err);
    return store_query(remote->store, query, out, err);
}

void remote_wake_on(struct remote *remote, int wake_fd)
{
    if (remote->collector) // queries of a file do not block
        collector_wake_on(remote->collector, wake_fd);
}

const char *remote_name(const struct remote *remote)
{
    return remote->collector ? collector_name(remote->collector) : remote->path;
}

const char *remote_warning(const struct remote *remote)
{
    return remote->collector ? collector_warning(remote->collector) : store_warning(remote->store);
}

bool remote_is_file(const struct remote *remote)
{
    return !remote->collector;
}

static bool is_followed(const struct remote *remote, unsigned kind)
{
    return remote->kinds == 0 || remote->kinds >> kind & 1;
}

enum status remote_subscribe(struct remote *remote, uint32_t kinds, enum remote_live_mode mode,
                             struct error *err)
{
    if (remote->collector) {
        collector_subscribe(remote->collector, kinds, mode);
        return STATUS_OK;
    }
    remote->kinds = kinds;
    remote->mode = mode;
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        if (is_followed(remote, kind))
            status = store_last_id(remote->store, (enum record_kind)kind, &remote->seen[kind], err);
    return status;
}

// The next records of a kind; STATUS_NO_DATA when there are none.
static enum status look(struct remote *remote, enum record_kind kind, struct result **out,
                        struct error *err)
{
    int64_t last = 0;
    enum status status = store_last_id(remote->store, kind, &last, err);
    if (status != STATUS_OK)
        return status;
    int64_t seen = remote->seen[kind];
    remote->seen[kind] = last;
    if (last <= seen)
        return STATUS_NO_DATA;
    *out = NULL;
    if (remote->mode == REMOTE_LIVE_NOTIFICATIONS)
        return STATUS_OK;
    struct result *page = NULL;
    status = store_records_between(remote->store, kind, seen + 1, last, PAGE_ROWS, &page, err);
    if (status != STATUS_OK)
        return status;
    if (result_next_cursor(page) != 0)
        remote->seen[kind] = (int64_t)result_next_cursor(page);
    if (result_row_count(page) == 0) {
        result_free(page);
        return STATUS_NO_DATA;
    }
    *out = page;
    return STATUS_OK;
}

// Waits for the next look or the end of the caller's time.
static enum status wait_for_look(const struct remote *remote, uint64_t deadline_ns, int wake_fd)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t until_ns = remote->next_look_ns < deadline_ns ? remote->next_look_ns : deadline_ns;
    if (until_ns > now_ns || wake_fd >= 0) {
        uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
        int ready = poll(&wake, 1, (int)((left_ns + 999999) / 1000000));
        if (ready > 0)
            return STATUS_CANCELLED;
        if (ready < 0 && errno != EINTR)
            return STATUS_IO;
    }
    return clock_monotonic_ns() >= deadline_ns ? STATUS_TIMEOUT : STATUS_OK;
}

enum status remote_live_next(struct remote *remote, uint64_t timeout_ns, int wake_fd,
                             enum record_kind *kind, struct result **out, uint64_t *missed,
                             struct error *err)
{
    if (remote->collector)
        return collector_live_next(remote->collector, timeout_ns, wake_fd, kind, out, missed);
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    *missed = 0;
    for (;;) {
        for (; remote->next_kind < RECORD_KIND_COUNT; remote->next_kind++) {
            if (!is_followed(remote, remote->next_kind))
                continue;
            *kind = (enum record_kind)remote->next_kind;
            enum status status = look(remote, *kind, out, err);
            if (status != STATUS_NO_DATA)
                return status; // records: the same kind may have more
        }
        enum status status = wait_for_look(remote, deadline_ns, wake_fd);
        if (status != STATUS_OK)
            return status;
        if (clock_monotonic_ns() >= remote->next_look_ns) {
            remote->next_look_ns = clock_monotonic_ns() + look_every_ns;
            remote->next_kind = 0;
        }
    }
}
