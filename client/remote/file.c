// A store file as a source.  Its live records are found by their ids, twice a second.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/remote/source.h"
#include "common/store/compare/baseline.h"
#include "common/store/transfer/import.h"
#include "common/store/store.h"
#include "common/store/query/query_list.h"
#include "common/store/retention/clear.h"
#include "common/sys/clock.h"

enum { PAGE_ROWS = 1000 };

static const uint64_t look_every_ns = UINT64_C(500000000);

struct file {
    struct store *store;
    char *path;

    // Where the reading of each kind of live records stands.  Ids rise with arrival; those that a
    // clear has taken away are given out again, so a record that arrives within the half second
    // around a clear may be passed over.
    uint32_t kinds;
    enum remote_live_mode mode;
    unsigned next_kind;    // to look at; RECORD_KIND_COUNT: all were, until next_look_ns
    uint64_t next_look_ns; // monotonic
    int64_t seen[RECORD_KIND_COUNT];
};

static void file_close(void *source)
{
    struct file *file = source;
    if (!file)
        return;
    store_close(file->store);
    free(file->path);
    free(file);
}

static enum status file_open(void **source, const struct remote_target *target, const char **name,
                             const char **warning, struct error *err)
{
    struct file *file = calloc(1, sizeof *file);
    if (file)
        file->path = strdup(target->db);
    if (!file || !file->path) {
        file_close(file);
        return error_no_memory(err, "remote");
    }
    enum status status = store_open(&file->store, file->path, err);
    if (status != STATUS_OK) {
        file_close(file);
        return status;
    }
    *source = file;
    *name = file->path;
    *warning = store_warning(file->store);
    return STATUS_OK;
}

static enum status file_query(void *source, const struct query *query, struct result **out,
                              struct error *err)
{
    struct file *file = source;
    if (query->kind == QUERY_CLEAR || query->kind == QUERY_FORGET)
        return store_clear(file->path, query, out, err);
    if (query->kind == QUERY_IMPORT)
        return store_import(file->path, query, out, err);
    if (query->kind == QUERY_BASELINE_SAVE || query->kind == QUERY_BASELINE_DELETE)
        return baseline_write_file(file->path, query, out, err);
    return store_query(file->store, query, out, err);
}

// ---- Live records -----------------------------------------------------------------

static bool is_followed(const struct file *file, unsigned kind)
{
    return file->kinds == 0 || file->kinds >> kind & 1;
}

static enum status file_subscribe(void *source, uint32_t kinds, enum remote_live_mode mode,
                                  struct error *err)
{
    struct file *file = source;
    file->kinds = kinds;
    file->mode = mode;
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        if (is_followed(file, kind))
            status = store_last_id(file->store, (enum record_kind)kind, &file->seen[kind], err);
    return status;
}

// The next records of a kind; STATUS_NO_DATA when there are none.
static enum status look(struct file *file, enum record_kind kind, struct result **out,
                        struct error *err)
{
    int64_t last = 0;
    enum status status = store_last_id(file->store, kind, &last, err);
    if (status != STATUS_OK)
        return status;
    int64_t seen = file->seen[kind];
    file->seen[kind] = last;
    if (last <= seen)
        return STATUS_NO_DATA;
    *out = NULL;
    if (file->mode == REMOTE_LIVE_NOTIFICATIONS)
        return STATUS_OK;
    struct result *page = NULL;
    status = store_records_between(file->store, kind, seen + 1, last, PAGE_ROWS, &page, err);
    if (status != STATUS_OK)
        return status;
    if (result_next_cursor(page) != 0)
        file->seen[kind] = (int64_t)result_next_cursor(page);
    if (result_row_count(page) == 0) {
        result_free(page);
        return STATUS_NO_DATA;
    }
    *out = page;
    return STATUS_OK;
}

// Waits for the next look or the end of the caller's time.
static enum status wait_for_look(const struct file *file, uint64_t deadline_ns, int wake_fd)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t until_ns = file->next_look_ns < deadline_ns ? file->next_look_ns : deadline_ns;
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

static enum status file_live_next(void *source, uint64_t timeout_ns, int wake_fd,
                                  enum record_kind *kind, struct result **out, uint64_t *missed,
                                  struct error *err)
{
    struct file *file = source;
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    *missed = 0;
    for (;;) {
        for (; file->next_kind < RECORD_KIND_COUNT; file->next_kind++) {
            if (!is_followed(file, file->next_kind))
                continue;
            *kind = (enum record_kind)file->next_kind;
            enum status status = look(file, *kind, out, err);
            if (status != STATUS_NO_DATA)
                return status; // records: the same kind may have more
        }
        enum status status = wait_for_look(file, deadline_ns, wake_fd);
        if (status != STATUS_OK)
            return status;
        if (clock_monotonic_ns() >= file->next_look_ns) {
            file->next_look_ns = clock_monotonic_ns() + look_every_ns;
            file->next_kind = 0;
        }
    }
}

const struct source_ops source_file = {
    .open = file_open,
    .close = file_close,
    .query = file_query,
    .subscribe = file_subscribe,
    .live_next = file_live_next,
};
