// Quotas: count and limit the collector's resources that each owner uses.  An owner is a key, a
// user over ipc, or all peers over TCP without keys.  Two kinds of quotas:
// - a level (such as connections) rises with quota_take and falls with quota_give;
// - a rate (such as runs an hour) is a token bucket, which refills to its limit within its period.
//
// At 80 % of a limit (not of KILLS and PRESSURE), and when something is refused, a warning in the
// log names the owner, the quota and its numbers: at most one line per owner and reason in 10 s.
// Up to 4,095 owners are counted separately, all others together.
//
// All threads of the collector share one object.  Any thread may call the functions, each of which
// holds a mutex for some tens of nanoseconds.  A NULL object limits nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/peer.h"

struct quota;

// X(kind, its name in --quota, default limit (0: none), period in seconds (0: a level) and its
// text, unit of the limit, what happens beyond it)
#define QUOTAS(X)                                                                                  \
    /* names in the store that the owner reported first */                                         \
    X(NAMES, "names", 100000, 0, "", NONE, "new names are stored as other")                        \
    X(RUNS, "runs", 4096, 3600, " an hour", NONE, "new runs are refused")                          \
    /* messages to ingest */                                                                       \
    X(BYTES, "bytes", 0, 86400, " a day", BYTES, "messages are discarded")                         \
    X(RECORDS, "records", 0, 1, " a second", NONE, "messages are discarded")                       \
    X(CONNECTIONS, "connections", 1024, 0, "", NONE, "new connections are refused")                \
    /* answers that the peers have not read */                                                     \
    X(ANSWERS, "answers", 4194304, 0, "", BYTES, "queries are refused")                            \
    /* buckets of rollups, and dropped ranges, beyond those that each run may have */              \
    X(CELLS, "cells", 16384, 28800, " in 8 hours", NONE,                                           \
      "names become other, and further losses or old records wait")                                \
    X(KILLS, "kills", 10, 60, " a minute", NONE, "runs are killed again and again")                \
    /* what the owner added while the store is too large: see quota_press; not in --quota */       \
    X(PRESSURE, "bytes", 0, 0, "", BYTES,                                                          \
      "messages are discarded, since the store exceeds its limit of bytes")

enum quota_kind {
#define QUOTA_ENUM(kind, ...) QUOTA_##kind,
    QUOTAS(QUOTA_ENUM)
#undef QUOTA_ENUM
        QUOTA_COUNT
};

// Limits by kind; 0: none.
struct quota_rules {
    uint64_t most[QUOTA_COUNT];
    bool given[QUOTA_COUNT]; // set by quota_rules_parse: the text has this quota
};

enum {
    QUOTA_NAMES_LAST = 16, // 1/16 of the store's names are reserved: see quota_take_name
    QUOTA_NAMES_FEW = 256, // an owner with fewer names may use them
};

struct quota_rules quota_rules_default(void);

// Parses "KEY=VALUE,...", such as "names=200000,bytes=10GB,records=unlimited", over `rules`.
// Returns STATUS_INVALID if a key is unknown or given twice, or a value is invalid.
MUST_CHECK enum status quota_rules_parse(struct quota_rules *rules, const char *text,
                                         struct error *err);

// `store_bytes` is the limit of the store's size (0: none): half of it is the default of
// QUOTA_BYTES.  A store below 1 GB also lowers the defaults of QUOTA_NAMES (to 1/32 of it, at
// 256 bytes a name, at least 1024) and of QUOTA_RUNS (to 1/64 of it, at 4 KB a run, at least 64),
// and `store_names`, the limit of names in the store (to 1/4 of it, at least 1024).
MUST_CHECK enum status quota_new(struct quota **out, const struct quota_rules *rules,
                                 int64_t store_bytes, uint64_t store_names, struct error *err);
void quota_free(struct quota *quota); // accepts NULL

// Returns the number of the peer's owner, for the calls below; 0 if `quota` is NULL.
unsigned quota_owner(struct quota *quota, const struct wire_peer *peer);

// Takes `amount` of the owner's quota; returns false if that would exceed the limit.  Of a rate an
// amount above the limit passes if nothing was taken recently.  `now_ns` is the monotonic time,
// here and below.
bool quota_take(struct quota *quota, unsigned owner, enum quota_kind kind, uint64_t amount,
                uint64_t now_ns);

// Takes `amount` even where that exceeds the limit.
void quota_charge(struct quota *quota, unsigned owner, enum quota_kind kind, uint64_t amount);

// Returns the limit of a quota; 0: none.
uint64_t quota_most(const struct quota *quota, enum quota_kind kind);

// Gives `amount` of a level back.
void quota_give(struct quota *quota, unsigned owner, enum quota_kind kind, uint64_t amount);

// Takes a new name in the store: counts for the owner (QUOTA_NAMES) and for the store.  The last
// 1/QUOTA_NAMES_LAST of the store's names are for names of hosts (`is_host`), and for owners with
// fewer than QUOTA_NAMES_FEW.
bool quota_take_name(struct quota *quota, unsigned owner, bool is_host, uint64_t now_ns);

// Sets the counts of names to those of the store: call quota_reset_names, then quota_add_names for
// each owner of names; `who` is a name of the table owner (NULL: names without an owner).
void quota_reset_names(struct quota *quota);
void quota_add_names(struct quota *quota, const char *who, uint64_t count);

// A message to ingest.
struct quota_message {
    uint64_t bytes, records;
    uint64_t rows; // rows that it may add to the store: records, names, streams, dropped ranges
};

// Admits a message to ingest: returns false if the owner has exceeded its QUOTA_BYTES,
// QUOTA_RECORDS or QUOTA_PRESSURE; the message is then to be discarded, as if it had been lost, and
// the producer sends it again later.  Messages of at most 4096 bytes always pass, so that runs stay
// open, unless they have records (or, for QUOTA_PRESSURE, rows).  Sets `*owner` to the number of
// the peer's owner.
bool quota_admit(struct quota *quota, const struct wire_peer *peer,
                 const struct quota_message *message, uint64_t now_ns, unsigned *owner);

// Says that the store exceeds its limit by `over` bytes (0: it does not), beside `queued` bytes
// that were admitted and are not in it yet.  Meanwhile what each owner adds is counted
// (QUOTA_PRESSURE).  The store may exceed its limit by 1/16, the margin.  An owner may add the
// larger of two amounts:
// - four times what is left of the first 7/8 of the margin: those who add most are refused first;
// - an equal part of the last 1/8 of the margin.
// All counts shrink as the excess shrinks, and besides by half each minute.  Call it ten times a
// second.
void quota_press(struct quota *quota, uint64_t over, uint64_t queued, uint64_t now_ns);

// Logs a warning that `peer` did something wrong, `count` times: "user 1001, process 4711: WHAT
// (3 times)".  `what` is static text, such as "sends frames that cannot be decoded".  One line
// per text and owner, or address of a peer without key and user, each 10 s; the next line has the
// count of what was left out.
void quota_complain(struct quota *quota, const struct wire_peer *peer, const char *what,
                    uint64_t count);
