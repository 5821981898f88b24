// What is wrong with hosts and devices now, of runs that are open: events that began and have not
// ended, XIDs and uncorrected ECC errors of the last LASTING_ERROR_NS, and, by a device's newest
// sample, "memory_full" (over 95 % in use) and "ecc_uncorrected" (it has had such errors).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct sqlite3_str;
struct store;

#define LASTING_ERROR_NS INT64_C(600000000000)
enum { LASTING_TEXT_SIZE = 256 };

// One kind of event of one host, on all its devices that have it.
struct lasting_event {
    int64_t host;                 // id of the table name
    int64_t since_ns;             // 0: unknown
    int64_t newest_ns;            // start of its newest record; 0: unknown
    unsigned times;               // that it began, as far as records tell
    bool is_moment;               // XIDs and ECC errors, which do not last
    char name[QUERY_TEXT_SIZE];   // of the event, as in records
    char what[LASTING_TEXT_SIZE]; // "power cap (8 devices)"; "" if the name says all
};

// Appends a SELECT of host, run, device (null: the host), text (of the event), since_ns and detail.
// `runs` names a table of runs, `newest` one of the newest samples of their devices (run, id); $2
// is the present, `end` the SQL of the time before which records count.  Reads the newest 1,000
// records of events of each run.
void lasting_select(struct sqlite3_str *sql, const char *runs, const char *newest, const char *end);

// Initially zero.  By host; what most devices have first.
struct lasting {
    struct lasting_event *list;
    size_t count, room;
};

// Reads those of one host (id of the table name), or of all (0), of now or, with `until_ns`, of
// then. Call lasting_deinit also after a failure.
MUST_CHECK enum status lasting_read(struct lasting *out, struct store *store, int64_t host,
                                    int64_t until_ns, struct error *err);
void lasting_deinit(struct lasting *lasting);

// Appends ": power cap (8 devices)", or " (8 devices)", to the name of the event in `text` (`size`
// bytes).
void lasting_append(char *text, size_t size, const struct lasting_event *event);
