// Query request: a struct query describes one query to a collector or a store file (the SQLite file
// with the records).  The second part lists the metrics that queries can average.  No I/O.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

// The values are those of QueryKind in proto/inferstat.proto.
enum query_kind {
    QUERY_PING,            // version and uptime of the collector
    QUERY_SUMMARY,         // key figures and losses, in one row
    QUERY_AVERAGE,         // count, mean, extremes and quantiles of a metric, by group
    QUERY_OVERVIEW,        // counts and averages by host, device and model
    QUERY_RECORDS,         // records of one kind, with derived columns
    QUERY_CLEAR,           // delete the records that match the filter
    QUERY_AUDIT,           // compare each run's records with its ledger (counts of stored and lost)
    QUERY_AUTHORIZE,       // authorize a public key
    QUERY_REVOKE,          // revoke a public key
    QUERY_KEYS,            // list the authorized keys
    QUERY_SLOWEST,         // the slowest requests, with latency attribution
    QUERY_STAGES,          // averages of load stages, cold and warm loads separately
    QUERY_FLEET,           // hosts that differ from others with the same model and device
    QUERY_BASELINE_SAVE,   // save a sample of the records as a named baseline
    QUERY_BASELINE_DELETE, // delete a baseline
    QUERY_BASELINES,       // list the baselines
    QUERY_COMPARE,         // compare two baselines or sets of records: a verdict per metric
    QUERY_COPY,            // copy the store, or a part of it, to a file
    QUERY_IMPORT,          // add the records of another store file
    QUERY_FORGET,          // remove a run (of the filter), or all runs of a key
    QUERY_ADMIN_LOG,       // list what administrators did
    QUERY_NOW,             // the state of each model on each host, now or then
    QUERY_ERRORS,          // count failures by error text, and by group
    QUERY_EVENTS,          // trouble of devices and hosts, and what it cost
    QUERY_DEVICE_HEALTH,   // the devices now: their newest samples and trouble, means of a window
    QUERY_HOST_HEALTH,     // the hosts now, likewise
    QUERY_ALERTS,          // alerts that are open, or were; or silences
    QUERY_ALERT_EDIT,      // acknowledge an alert, or silence alerts
    QUERY_ALERT_TRY,       // the values that an alert rule has now, by group
    QUERY_WHY,             // why requests are slower than usual: causes, most important first
    QUERY_KIND_COUNT,
};

// Roles of a public key.  The values are those of Role in proto/inferstat.proto; the texts are
// used on the command line and in the list of authorized keys.
#define QUERY_ROLES(X)                                                                             \
    X(PRODUCER, "producer")                                                                        \
    X(READER, "reader")                                                                            \
    X(ADMIN, "admin")

enum query_role {
#define QUERY_ROLE_ENUM(name, text) QUERY_ROLE_##name,
    QUERY_ROLES(QUERY_ROLE_ENUM)
#undef QUERY_ROLE_ENUM
        QUERY_ROLE_COUNT
};

// Dimensions: what queries filter and group by.  The text is the name on the command line and the
// key of the column in results.  STATUS is the status of a load, a pipeline run or an inference.
// SYNC and what follows up to SOURCE are settings of a pipeline, EVENT is what happened.
#define QUERY_DIMENSIONS(X)                                                                        \
    X(MODEL, "model")                                                                              \
    X(HOST, "host")                                                                                \
    X(DEVICE, "device")                                                                            \
    X(RUN, "run")                                                                                  \
    X(OPERATION, "operation")                                                                      \
    X(STAGE, "stage")                                                                              \
    X(WORKLOAD, "workload")                                                                        \
    X(STATUS, "status")                                                                            \
    X(SYNC, "sync")                                                                                \
    X(CHUNK_BYTES, "chunk_bytes")                                                                  \
    X(POOL_SIZE, "pool_size")                                                                      \
    X(SOURCE, "source")                                                                            \
    X(EVENT, "event")

enum query_dimension {
#define QUERY_DIMENSION_ENUM(name, text) QUERY_BY_##name,
    QUERY_DIMENSIONS(QUERY_DIMENSION_ENUM)
#undef QUERY_DIMENSION_ENUM
        QUERY_DIMENSION_COUNT
};

// What QUERY_ALERTS lists, and what QUERY_ALERT_EDIT does.  The values are those of AlertList and
// AlertEdit in proto/inferstat.proto.
enum query_alert_list {
    QUERY_ALERTS_OPEN,     // pending, firing, or without data
    QUERY_ALERTS_HISTORY,  // all that fired in the window, or before and lasted into it
    QUERY_ALERTS_SILENCES, // silences that have not ended
    QUERY_ALERTS_TROUBLE,  // rules that cannot be read, hooks that fail, a file that is wrong
    QUERY_ALERT_LIST_COUNT,
};
enum query_alert_edit {
    QUERY_ALERT_ACK,
    QUERY_ALERT_UNACK,
    QUERY_ALERT_SILENCE,
    QUERY_ALERT_UNSILENCE,
    QUERY_ALERT_EDIT_COUNT,
};

enum {
    // Text sizes include the terminating NUL.
    QUERY_TEXT_SIZE = 256,  // of a filter or metric
    QUERY_ROWS_MAX = 10000, // rows of one result
    QUERY_EVENTS_MAX = 1000,
    QUERY_KEY_SIZE = 64,    // of a public key, a key's name or a baseline's name
    QUERY_PATH_SIZE = 1024, // of a file on the collector's host
    QUERY_RULE_SIZE = 1152, // of an alert rule, a line of an alert file
};

// Selects the records that match all conditions.  Texts are NUL-terminated.  An empty text or a
// time of 0 is no condition.  A name (not a run, nor a number) may be a pattern (query_is_pattern).
struct query_filter {
    char by[QUERY_DIMENSION_COUNT][QUERY_TEXT_SIZE]; // by[QUERY_BY_HOST]: this host only
    int64_t since_ns;                                // started_ns >= since_ns
    int64_t until_ns;                                // started_ns < until_ns; 0: open
};

// True if the filter has a condition.
bool query_filter_narrows(const struct query_filter *filter);

// query_is_pattern: true if a filter's text stands for several names: `*` any characters, `?` one,
// `[a-c]` one of these.  A name that is the text itself wins.  query_name_matches: true if the
// filter's text `wanted` stands for `name`.
bool query_is_pattern(const char *wanted);
bool query_name_matches(const char *wanted, const char *name);

// A tagged union: first fields that several query kinds use, then a union selected by `kind`.  The
// caller initialises it with zeros.
struct query {
    enum query_kind kind;
    struct query_filter filter;
    // QUERY_AVERAGE: required.  If empty, QUERY_SLOWEST: "e2e_ns"; QUERY_FLEET: the metrics that it
    // compares by default; QUERY_COMPARE: all comparable metrics.
    char metric[QUERY_TEXT_SIZE];
    // QUERY_AVERAGE, QUERY_STAGES, QUERY_ERRORS.  QUERY_RECORDS of devices: by device alone, the
    // newest record of each.
    enum query_dimension group_by[QUERY_DIMENSION_COUNT];
    unsigned group_count;
    int64_t step_ns; // QUERY_AVERAGE: a row per group and time step; 0: one per group
    uint32_t limit;  // most rows of the result; 0: QUERY_ROWS_MAX (QUERY_SLOWEST: 10,
                     // QUERY_ERRORS, QUERY_EVENTS: 100)
    uint64_t cursor; // QUERY_RECORDS, QUERY_AUDIT: 0, or the last result's next_cursor.
                     // QUERY_SLOWEST: 0, or only the requests with this started_ns
    union {
        // QUERY_COMPARE compares two sides.  Side i is the baseline (stored sample) baseline[i]; if
        // that name is empty, the records that match query.filter (side 0) or `other` (side 1).  If
        // both are filters that name a model, these two models are compared with each other.
        struct {
            struct query_filter other;
            char baseline[2][QUERY_KEY_SIZE];
            double margin; // smaller differences count as equal; 0: STATS_MARGIN_DEFAULT
            bool force;    // compare even if the environments differ
        } compare;
        struct {
            char slo[QUERY_TEXT_SIZE]; // objectives, "ttft=200ms,tpot=30ms"
            bool histogram; // the rows are its bins: value, count; without groups and steps
            bool uncovered; // without coverage_ratio and lost.  Not sent to a collector
        } average;          // QUERY_AVERAGE
        struct {
            enum record_kind kind;
            bool oldest_first;
        } records; // QUERY_RECORDS
        struct {
            char name[QUERY_KEY_SIZE];
            bool force; // replace an existing baseline
        } baseline;     // QUERY_BASELINE_SAVE, QUERY_BASELINE_DELETE
        struct {
            char text[QUERY_KEY_SIZE];     // the public key.  QUERY_REVOKE, QUERY_FORGET: also a
                                           // name; QUERY_FORGET: also "user:NUMBER", "loopback"
            char name[QUERY_KEY_SIZE];     // QUERY_AUTHORIZE: the key's new name
            char replaces[QUERY_KEY_SIZE]; // QUERY_AUTHORIZE: key whose runs this one continues
            uint32_t roles;                // QUERY_AUTHORIZE: bit i: enum query_role i
            int64_t expires_ns;            // QUERY_AUTHORIZE: when the key ends; 0: never
        } key; // QUERY_AUTHORIZE, QUERY_REVOKE, QUERY_FORGET (unless the filter has a run)
        struct {
            char path[QUERY_PATH_SIZE]; // on the collector's host
            bool bundle;                // QUERY_COPY: only matching records; else the whole store
        } file;                         // QUERY_COPY, QUERY_IMPORT
        struct {
            enum query_alert_list list;
            enum query_alert_edit edit;
            int64_t id;                 // of the alert; QUERY_ALERT_UNSILENCE: of the silence
            int64_t for_ns;             // QUERY_ALERT_SILENCE: how long
            char rule[QUERY_KEY_SIZE];  // QUERY_ALERTS, QUERY_ALERT_SILENCE: name; "": any; of a
                                        // silence that covers all alerts "*"
            char text[QUERY_RULE_SIZE]; // QUERY_ALERT_EDIT: the reason; QUERY_ALERT_TRY: the rule,
                                        // a line of an alert file
        } alert;                        // QUERY_ALERTS, QUERY_ALERT_EDIT, QUERY_ALERT_TRY
    };
};

// True if collectors accept the query only on the admin socket.
bool query_is_administrative(enum query_kind kind);

// query_role_name: the name of a role, static.  query_role_find: the role with this name;
// QUERY_ROLE_COUNT if there is none.
const char *query_role_name(enum query_role role);
enum query_role query_role_find(const char *name);

// query_dimension_name: the name of a dimension, static.  query_dimension_find: the dimension with
// this name; QUERY_DIMENSION_COUNT if there is none.
const char *query_dimension_name(enum query_dimension dimension);
enum query_dimension query_dimension_find(const char *name);

// query_dimension_is_number: true if the values of a dimension are numbers, not names: of an
// enumeration (status, sync), bytes or a count.  query_dimension_number: the number that a filter's
// text means ("error", "8MB"); -1 if it means none, or the dimension's values are names.
// query_dimension_words: the type of its enumeration; COLUMN_INT if it has none.
bool query_dimension_is_number(enum query_dimension dimension);
int64_t query_dimension_number(enum query_dimension dimension, const char *text);
enum column_type query_dimension_words(enum query_dimension dimension);

// Returns STATUS_INVALID if a member that the kind uses is invalid, as far as that shows without a
// store: an enumerator or a status is unknown, a text is not terminated or not UTF-8, a dimension
// occurs twice, the window ends before it begins, a run is not 4 to 36 characters of a UUID, ...
MUST_CHECK enum status query_check(const struct query *query, struct error *err);

// ---- Metrics --------------------------------------------------------------

// A metric that can be averaged.  It is a stored numeric column, a derived metric (RECORD_DERIVED
// in record_table.h), or an aggregate that the store computes from several records.  An aggregate
// is either a column of quantile sketches, or has `column` -1 and no `derived`.
struct query_metric {
    enum record_kind kind;
    const char *name; // "ttft_ns"
    const char *meaning;
    enum unit unit;
    int column;                           // index of the kind's column; -1: not stored
    const struct record_derived *derived; // NULL: not derived
};

// All metrics: `*count` of them, static.
const struct query_metric *query_metrics(unsigned *count);

// Metrics that exist only as aggregates.
#define QUERY_METRIC_ITL     "itl_ns"             // inter-token latency
#define QUERY_METRIC_MBU     "mbu_ratio"          // model bandwidth utilisation
#define QUERY_METRIC_MFU     "mfu_ratio"          // model arithmetic utilisation
#define QUERY_METRIC_FLOOR   "floor_ns"           // least time that a load can take
#define QUERY_METRIC_GOODPUT "goodput_per_second" // requests that met every objective / time

// Metrics of a window of time (store/aggregate/throughput.h).
#define QUERY_METRIC_REQUEST_RATE "request_rate"
#define QUERY_METRIC_PROMPT_RATE  "prompt_token_rate"
#define QUERY_METRIC_OUTPUT_RATE  "output_token_rate"
#define QUERY_METRIC_ITEM_RATE    "item_rate"
#define QUERY_METRIC_ERRORS       "error_ratio"
#define QUERY_METRIC_CANCELLED    "cancelled_ratio"
#define QUERY_METRIC_BUSY_RATE    "busy_output_token_rate" // only COMPARE has it

// Metrics of a window of time and its energy (store/aggregate/energy.h).
#define QUERY_METRIC_TOKENS_PER_JOULE   "tokens_per_joule"
#define QUERY_METRIC_JOULES_PER_REQUEST "joules_per_request"

// A short name of a metric of FLEET for people: "decode" of tokens_per_second; else the name
// itself.
const char *query_metric_short(const char *name);

// True if a single record has a value of the metric, stored or derived.
bool query_metric_is_of_records(const struct query_metric *metric);

// Finds a metric by "kind.name", or by "name": that of inferences if they have it, else if only one
// record kind has it.  Otherwise returns STATUS_INVALID; `err` names the alternatives, or the
// nearest name.
MUST_CHECK enum status query_metric_find(const struct query_metric **out, const char *name,
                                         struct error *err);
