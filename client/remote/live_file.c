// Following a store file: its newest ids, twice a second.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "client/remote/source.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/store/query/query_list.h"

enum { PAGE_ROWS = 1000 };

static const uint64_t look_every_ns = UINT64_C(500000000);

// Where the reading of each kind stands.  Ids rise with arrival; those that a
// clear has taken away are given out again, so a record that arrives within the
// half second around a clear may be passed over.
struct file_live {
    struct store *store;
    uint32_t kinds;
    enum remote_live_mode mode;
    unsigned next_kind;    // to look at; RECORD_KIND_COUNT: all were, until next_look_ns
    uint64_t next_look_ns; // monotonic
    int64_t seen[RECORD_KIND_COUNT];
};

static bool is_followed(const struct file_live *live, unsigned kind)
{
    return live->kinds == 0 || live->kinds >> kind & 1;
}

void file_live_close(void *source)
{
    struct file_live *live = source;
    if (!live)
        return;
    store_close(live->store);
    free(live);
}

static enum status find_ends(struct file_live *live, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++) {
        if (is_followed(live, kind))
            status = store_last_id(live->store, (enum record_kind)kind, &live->seen[kind], err);
    }
    return status;
}

enum status file_live_open(void **out, const struct remote_target *target, uint32_t kinds,
                           enum remote_live_mode mode, struct error *err)
{
    struct file_live *live = calloc(1, sizeof *live);
    if (!live)
        return error_no_memory(err, "remote");
    live->kinds = kinds;
    live->mode = mode;
    enum status status = store_open(&live->store, target->db, err);
    if (status == STATUS_OK)
        status = find_ends(live, err);
    if (status != STATUS_OK) {
        file_live_close(live);
        return status;
    }
    *out = live;
    return STATUS_OK;
}

// The next records of a kind; STATUS_NO_DATA when there are none.
static enum status look(struct file_live *live, enum record_kind kind, struct result **out,
                        struct error *err)
{
    int64_t last = 0;
    enum status status = store_last_id(live->store, kind, &last, err);
    if (status != STATUS_OK)
        return status;
    int64_t seen = live->seen[kind];
    live->seen[kind] = last;
    if (last <= seen)
        return STATUS_NO_DATA;
    *out = NULL;
    if (live->mode == REMOTE_LIVE_IDS)
        return STATUS_OK;
    struct result *page = NULL;
    status = store_records_between(live->store, kind, seen + 1, last, PAGE_ROWS, &page, err);
    if (status != STATUS_OK)
        return status;
    if (result_next_cursor(page) != 0)
        live->seen[kind] = (int64_t)result_next_cursor(page);
    if (result_row_count(page) == 0) {
        result_free(page);
        return STATUS_NO_DATA;
    }
    *out = page;
    return STATUS_OK;
}

// Waits for the next look or the end of the caller's time.
static enum status wait_for_look(const struct file_live *live, uint64_t deadline_ns, int wake_fd)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t until_ns = live->next_look_ns < deadline_ns ? live->next_look_ns : deadline_ns;
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

enum status file_live_next(void *source, uint64_t timeout_ns, int wake_fd, enum record_kind *kind,
                           struct result **out, uint64_t *missed, struct error *err)
{
    struct file_live *live = source;
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    *missed = 0;
    for (;;) {
        for (; live->next_kind < RECORD_KIND_COUNT; live->next_kind++) {
            if (!is_followed(live, live->next_kind))
                continue;
            *kind = (enum record_kind)live->next_kind;
            enum status status = look(live, *kind, out, err);
            if (status != STATUS_NO_DATA)
                return status; // records: the same kind may have more
        }
        enum status status = wait_for_look(live, deadline_ns, wake_fd);
        if (status != STATUS_OK)
            return status;
        if (clock_monotonic_ns() >= live->next_look_ns) {
            live->next_look_ns = clock_monotonic_ns() + look_every_ns;
            live->next_kind = 0;
        }
    }
}
