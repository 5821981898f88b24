// What the modules of WHY (why.h) share during one call of why_read.
//   why.c          finds series and ranks the causes
//   why_sample.c   reads requests, what lasted meanwhile, and settings
//   why_model.c    compares the series of a model and splits their differences
//   why_words.c    writes causes, and the commands that show them
//   why_process.c  finds processes that ended, lost records, and a host that is always slow
#pragma once

#include "common/store/why/why.h"
#include "common/store/why/why_split.h"
#include "common/store/read/device_names.h"

// A series, and what was found of it.
struct why_entry {
    struct why_series series;
    int64_t model, host, device;
    bool has_days, is_slow;
    struct why_level levels[WHY_METRICS][WHY_QUANTILES];
    struct why_parts parts; // of the subject's main quantile, if it is slow
    char *settings;         // that changed; NULL: none
};

struct why_reader {
    struct store *store;
    struct why *out;
    int64_t model, host; // only these, ids of the table name; 0: any
    struct why_request *requests;
    double seconds[WHY_READ]; // of which all requests that match were read; without times that have
                              // none
    bool is_sampled[WHY_READ]; // some of the requests were not read
    size_t failed;             // requests of the window
    struct why_span *spans;
    size_t request_count, request_room, span_count, span_room;
    struct device_names names;
    char since[32]; // of commands, for --since: "600s" or a time
    int64_t window_ns;
    struct why_entry *entries; // by model, host and device
    size_t count, room;
    size_t settings_read; // series whose settings were compared
    // Each has room for all requests.
    const struct why_request **order; // by series, side and start
    const struct why_request **merged;
    struct why_ranked *ranked;
    double *values;
    size_t cause_room, subject_room;
};

// Fails with STATUS_TIMEOUT if the query must stop (session.h).
MUST_CHECK enum status why_go_on(const struct why_reader *reader, struct error *err);

// Reads a bounded sample of the requests of the window and of usual times.  A time is cut into
// equal parts; of each part the first requests are read, by the index on their starts.
MUST_CHECK enum status why_read_requests(struct why_reader *reader, struct error *err);

// Reads what lasted in the window and in the usual times of slow series.
MUST_CHECK enum status why_read_spans(struct why_reader *reader, struct error *err);

// Compares the settings of the newest runs of both sides of a series, which have requests.
MUST_CHECK enum status why_read_settings(struct why_reader *reader, struct why_entry *entry,
                                         struct error *err);

// Compares the series of a model, entries[first .. end - 1] of the subject, and sets its figures.
MUST_CHECK enum status why_compare_model(struct why_reader *reader, struct why_subject *subject,
                                         struct error *err);

// Splits the differences of its slow series, after why_read_spans.
MUST_CHECK enum status why_split_model(struct why_reader *reader, const struct why_subject *subject,
                                       struct error *err);

// Adds the causes of a model that is slower, or else its verdict.  `subject` is its index.
MUST_CHECK enum status why_add_model(struct why_reader *reader, size_t subject, struct error *err);

// Adds that all requests of the window failed.
MUST_CHECK enum status why_add_failed(struct why_reader *reader, struct error *err);

// Adds processes that ended without closing or are silent: unless they were replaced, in the last
// 24 h, else in the window; after the requests are read.
MUST_CHECK enum status why_add_processes(struct why_reader *reader, struct error *err);

// Adds what lasts on the hosts (of the model) and is no cause yet, after the requests are read.
MUST_CHECK enum status why_add_lasting(struct why_reader *reader, struct error *err);

// Adds the hosts with notable losses of records in the window.
MUST_CHECK enum status why_add_losses(struct why_reader *reader, struct error *err);

// Adds for each model that is not slower than usual whether the host that is asked for is worse
// than its peers, as FLEET finds it in the window.
MUST_CHECK enum status why_add_peers(struct why_reader *reader, struct error *err);

// Adds a cause of a model and host (ids of the table name; 0: none, several) to the answer, with
// its words and the command that shows it.
MUST_CHECK enum status why_add_cause(struct why_reader *reader, struct why_cause **out,
                                     enum why_cause_kind kind, int64_t model, int64_t host,
                                     struct error *err);

// Appends to the text of a cause.
void why_say(struct why_cause *cause, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
