// What trouble costs: the requests of each model that began while an event lasted on a device or
// host, beside those before and after it.  Used by the query EVENTS.
//
// While it lasted are the requests that began from its start to its end; of an event of more than
// an hour only its last hour is looked at.  Usual are those that began in the EVENT_COST_AROUND_NS
// before and after it, unless they were in progress during any event of that device or host.  Speed
// and TTFT are medians (of an event of at least EVENT_COST_EDGE_LEAST_NS without the requests of
// its last second: it ends when a sample no longer shows it, and may have been over before); their
// ratio has an interval with the confidence 1 - STATS_ERROR_RATE: from STATS_SERIAL_MIN requests of
// each side it allows for the dependence of successive requests, with fewer (at least
// STATS_FEW_MIN) it takes them for independent (stats.h).
//
// Joules per token are the energy that the device used by its samples / the tokens put out in their
// time, each request's tokens spread evenly from the first one to its end.  Usual ones are those
// of the EVENT_COST_ENERGY_NS before and after the event.  They are known where requests of a
// single model ran.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/stats/stats.h"

struct store;

#define EVENT_COST_LONGEST_NS    INT64_C(3600000000000) // of an event, at its end
#define EVENT_COST_EDGE_NS       INT64_C(1000000000)
#define EVENT_COST_EDGE_LEAST_NS INT64_C(4000000000)
#define EVENT_COST_AROUND_NS     INT64_C(1800000000000) // half an hour
#define EVENT_COST_ENERGY_NS     INT64_C(300000000000)  // five minutes

// The most records of the device or host that are read, those nearest to the event; each before the
// event, while it lasted, and after it.
enum { EVENT_COST_REQUESTS_MAX = 3000, EVENT_COST_SAMPLES_MAX = 30000 };

struct event_span {
    int64_t since_ns, until_ns;
};

// An event.  Ids of the table name; device 0: it is of the host.
struct event_cost_question {
    int64_t run, host, device;
    struct event_span span;
    // The most requests of all hosts that are looked at, to find its own, before the event, while
    // it lasted, and after it; those nearest to it.
    int64_t rows_max;
    // The times in which any event of its device and host lasted, itself included; they rise and do
    // not overlap; borrowed.
    const struct event_span *others;
    size_t other_count;
};

// A figure while the event lasted and usually (NaN: unknown), and their ratio with its interval (0
// to infinity: none).
struct event_cost_figure {
    double during, usual;
    struct stats_effect effect;
};

// Of one model.
struct event_cost_model {
    int64_t model;
    size_t requests, usual_requests;
    double tokens; // put out by `requests`
    struct event_cost_figure tokens_per_second, ttft_ns;
};

struct event_cost {
    struct event_cost_model *models; // those with requests while it lasted
    size_t count;
    struct event_cost_figure joules_per_token;
    double joules;    // used while it lasted, by the samples
    bool has_several; // models, so that no energy is known of one
    bool is_cut;      // requests or time were left out
};

// `out` is freed with event_cost_deinit also after a failure.
MUST_CHECK enum status event_cost_read(struct event_cost *out, struct store *store,
                                       const struct event_cost_question *question,
                                       struct error *err);
void event_cost_deinit(struct event_cost *cost);
