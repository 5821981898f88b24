// Message types of the wire protocol: C structures for the messages of proto/inferstat.proto.  That
// file documents all fields and the protocol's rules.  The codec (codec.h) converts messages to
// frames (one frame is one encoded message) and back.
//
// A run is the lifetime of one monitored process, the producer.  A stream is the records of one of
// its threads, numbered 1, 2, 3, ...  A message that is to be encoded borrows the memory that it
// points to from the caller; a decoded message owns it, and message_free (codec.h) releases it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

// Limits, which the codec checks.
enum {
    MESSAGE_PROTOCOL = DELIVERY_PROTOCOL, // our version of the protocol
    MESSAGE_SIZE_MAX = 16 * 1024 * 1024,  // bytes of a frame
    MESSAGE_RUN_SIZE = 16,                // bytes of a run's UUID
    MESSAGE_NAMES_MAX = 65535,            // interned names of a run
    MESSAGE_NAME_SIZE_MAX = 255,          // bytes of a name
    MESSAGE_TEXT_SIZE_MAX = 4096,         // bytes of any other text
    MESSAGE_ERROR_KEPT = 255,             // bytes of the column `error` that a reader keeps
    MESSAGE_COLUMNS_MAX = 64,             // columns of a table of records
    MESSAGE_ANSWER_COLUMNS_MAX = 128,     // columns of an answer
};

// The largest record number, and the largest count of unnumbered losses of a stream: 12 days at a
// million records a second.  The sum over all streams of 8,000 runs stays below 2^63.
#define MESSAGE_NUMBER_MAX (UINT64_C(1) << 40)

// The largest valid duration, size or count: exact in a double; 104 days in nanoseconds.
#define MESSAGE_VALUE_MAX (INT64_C(1) << 53)

// Text or bytes, without a terminating NUL.
struct wire_bytes {
    size_t size;
    const char *bytes;
};

struct wire_column {
    unsigned index;         // the column's position in its record kind
    const uint8_t *present; // bit i: row i has a value; NULL: all have
    // The values, one per row: one of these arrays, by the column's type.
    const int64_t *ints; // INT and enumerations
    const double *reals;
    const uint32_t *names;          // ids of interned names
    const struct wire_bytes *texts; // TEXT and BLOB
};

// True if a row has a value in a column with this presence bitmap.
static inline bool wire_has_value(const uint8_t *present, size_t row)
{
    return !present || (present[row / 8] >> row % 8 & 1);
}

// Records of one kind, by columns.
struct wire_table {
    enum record_kind kind;
    size_t count;            // of rows
    const uint64_t *numbers; // record numbers, ascending
    const int64_t *started_ns;
    const struct wire_column *columns;
    size_t column_count;
};

// Records that the producer no longer has, and why.
struct wire_drop {
    struct delivery_range range;
    struct wire_bytes detail; // for people; empty: none
};

// Producer: opens or reopens a run.  An empty text: unknown.
struct message_hello {
    uint32_t protocol; // the sender's version, here and below
    unsigned char run[MESSAGE_RUN_SIZE];
    struct wire_bytes host, worker_version, os, kernel, cpu, cpu_governor, container, driver, cuda;
    struct wire_bytes huge_pages, allocator, build_flags;
    int64_t pid, started_ns, cpu_count, host_memory_bytes, device_count;
    const struct delivery_stream *streams; // all of the run so far
    size_t stream_count;
    bool replay; // the run's process has ended; another one sends its remaining records
};

// Producer: records of one stream, or none (a heartbeat).
struct message_batch {
    unsigned char run[MESSAGE_RUN_SIZE];
    uint64_t sequence; // number of the Batch or Goodbye in the run, from 1
    int64_t sent_ns;   // producer's clock
    uint32_t stream;
    uint64_t first, last; // 0, 0: no records
    uint32_t names_first; // id of names[0]
    const struct wire_bytes *names;
    size_t name_count;
    const struct wire_table *tables;
    size_t table_count;
    const struct wire_drop *drops;
    size_t drop_count;
    const struct delivery_stream *streams; // those whose counts changed, or all
    size_t stream_count;
    struct wire_bytes activity; // what the run is doing; empty: unchanged
    int64_t clock_offset_ns;    // host's wall clock minus the collector's
    int64_t clock_error_ns;     // error bound of the offset; 0: no estimate
    uint32_t unknown_columns;   // decoded: columns newer than this program, skipped
    const char *fault;          // decoded: why the content is invalid; NULL: valid
};

// What a stream's thread was doing when its process ended.
struct wire_activity {
    uint32_t stream;
    struct wire_bytes text;
    int64_t since_ns; // host's wall clock
};

// Producer: closes the run.
struct message_goodbye {
    unsigned char run[MESSAGE_RUN_SIZE];
    uint64_t sequence; // as in message_batch
    int64_t ended_ns;
    const struct delivery_stream *streams;
    size_t stream_count;
    const struct wire_drop *drops;
    size_t drop_count;
    bool killed; // the process ended without Goodbye; another one sends it
    const struct wire_activity *activities; // if killed
    size_t activity_count;
};

// Records that the collector refused as invalid.
struct wire_refused {
    uint32_t stream;
    uint64_t first, last;
    struct wire_bytes reason;
};

// Collector: answers Hello, Batch and Goodbye.
struct message_ack {
    uint32_t protocol;
    unsigned char run[MESSAGE_RUN_SIZE];
    struct delivery_ack delivery;
    const struct wire_refused *refused;
    size_t refused_count;
    int64_t sent_ns, echo_sent_ns; // collector's clock; sent_ns of the batch answered last
    struct wire_bytes error;       // why the whole message was refused; empty: none
    bool forgotten; // with `error`: the collector has removed the run and takes no more of it
};

struct message_query {
    uint64_t id; // chosen by the client; the reply repeats it
    uint32_t protocol;
    struct query query;
};

// Result of a query; the values are those of Status in proto/inferstat.proto.
enum reply_status {
    REPLY_OK,
    REPLY_INVALID,
    REPLY_NO_DATA,
    REPLY_DENIED,
    REPLY_FAILED,
    REPLY_TOO_LARGE,
};

struct message_reply {
    uint64_t id;
    enum reply_status status;
    struct wire_bytes error;
    int64_t expired_ns;    // REPLY_NO_DATA: records before this time have expired; 0: none have
    struct result *result; // decoded: owned by the message; to keep it, set it to NULL
};

// Client: subscribes to new records and grants credit.
struct message_live_credit {
    uint32_t protocol;
    uint32_t messages; // how many more message_live_records the collector may send
    uint32_t kinds;    // bit k: enum record_kind k; 0: all
    bool ids_only;     // wants only `kind` and `last_id` of message_live_records
};

// Collector: newly committed records of one kind.
struct message_live_records {
    enum record_kind kind;
    uint64_t missed;       // records not sent so far for lack of credit
    struct result *result; // as in message_reply
    uint64_t last_id;      // id of the newest record, if the reader asked for ids only
};

enum message_kind {
    MESSAGE_HELLO = 1, // the values are the field numbers of Envelope.body
    MESSAGE_BATCH,
    MESSAGE_GOODBYE,
    MESSAGE_ACK,
    MESSAGE_QUERY,
    MESSAGE_REPLY,
    MESSAGE_LIVE_CREDIT,
    MESSAGE_LIVE_RECORDS,
};

struct message {
    enum message_kind kind;
    union {
        struct message_hello hello;
        struct message_batch batch;
        struct message_goodbye goodbye;
        struct message_ack ack;
        struct message_query query;
        struct message_reply reply;
        struct message_live_credit live_credit;
        struct message_live_records live_records;
    };
    void *memory; // decoded: owns the memory of the union
    // After STATUS_INVALID: the run of the message; all zero if the message has none.
    unsigned char failed_run[MESSAGE_RUN_SIZE];
};

// The run of a Hello, Batch or Goodbye; NULL for other messages.
const unsigned char *message_run(const struct message *message);
