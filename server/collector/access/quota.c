#include "server/collector/access/quota.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/unit.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"

enum {
    OWNERS = 4096,
    SHARED_OWNER = 0,     // of all who find no place
    SMALL_MESSAGE = 4096, // bytes; without records it always passes
    ROW_BYTES = 96,       // what a row takes in the store beside the bytes of its message
    PRESS_PART = 16,      // the store may exceed its limit by 1/16
    PRESS_SHARE = 4,      // an owner may add so many times what is left of that
    PRESS_LAST = 8,       // 1/8 of it is for equal parts
    NAME_BYTES = 256,     // what a name takes in the store, about
    RUN_BYTES = 4096,
    NAMES_LEAST = 1024,
    RUNS_LEAST = 64,
    COMPLAINTS = 1024,
    COMPLAINT_PROBES = 8,
};

#define SECOND_NS  UINT64_C(1000000000)
#define EVERY_NS   (10 * SECOND_NS) // between two lines
#define NEAR_LIMIT 0.8
#define PRESS_S    87.0 // of calls of quota_press, until counts have fallen to 1/e: half a minute

static const struct {
    const char *name;
    uint64_t most;
    unsigned period_s;
    const char *period;
    enum unit unit;
    const char *effect;
} kinds[QUOTA_COUNT] = {
#define QUOTA_LINE(kind, name, most, period_s, period, unit, effect)                               \
    {name, most, period_s, period, UNIT_##unit, effect},
    QUOTAS(QUOTA_LINE)
#undef QUOTA_LINE
};

struct owner {
    struct wire_peer peer; // without its process and address
    double level[QUOTA_COUNT];
    uint64_t drained_ns; // when rates were last reduced
    unsigned next;       // in the bucket; SHARED_OWNER: the last one
};

// When a line was last logged, and what has been counted since.
struct complaint {
    uint64_t hash; // of owner and text; 0: free
    uint64_t logged_ns, count;
};

struct quota {
    pthread_mutex_t lock; // of the members below
    struct quota_rules rules;
    uint64_t store_names, store_names_most;
    uint64_t press_most, over; // how far the store may exceed its limit, and does
    uint64_t admitted;         // since the last quota_press: not in `over` yet
    uint64_t pressed_ns;       // of the last quota_press
    unsigned owner_count;      // slots in use, SHARED_OWNER among them
    unsigned buckets[OWNERS];
    struct complaint complaints[COMPLAINTS];
    struct owner owners[OWNERS];
};

// ---- Rules ----------------------------------------------------------------------------

struct quota_rules quota_rules_default(void)
{
    struct quota_rules rules = {0};
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        rules.most[i] = kinds[i].most;
    return rules;
}

static enum status parse_rule(struct quota_rules *rules, char *word, struct error *err)
{
    char what[64];
    char *value = strchr(word, '=');
    unsigned kind = 0;
    int64_t most = 0;
    enum status status = STATUS_OK;
    if (value)
        *value++ = '\0';
    while (kind < QUOTA_PRESSURE && strcmp(word, kinds[kind].name) != 0)
        kind++;
    (void)snprintf(what, sizeof what, "--quota: %.40s", word);
    if (kind == QUOTA_PRESSURE || !value)
        return error_set(err, STATUS_INVALID,
                         "%s: not a quota (such as runs=10000; --help lists them)", what);
    if (rules->given[kind])
        return error_set(err, STATUS_INVALID, "%s is there twice", what);
    rules->given[kind] = true;
    if (kinds[kind].unit == UNIT_BYTES)
        status = parse_size(&most, value, 1 << 16, what, err);
    else if (strcmp(value, "unlimited") != 0)
        status = parse_int(&most, value, 1, INT64_C(1) << 53, what, err);
    rules->most[kind] = (uint64_t)most;
    return status;
}

enum status quota_rules_parse(struct quota_rules *rules, const char *text, struct error *err)
{
    enum status status = STATUS_OK;
    char *copy = strdup(text), *at = copy, *word;
    if (!copy)
        return error_no_memory(err, "--quota");
    while (status == STATUS_OK && (word = strsep(&at, ",")))
        status = parse_rule(rules, word, err);
    free(copy);
    return status;
}

static void lower(uint64_t *most, uint64_t fitting, uint64_t least)
{
    if (*most > fitting)
        *most = fitting > least ? fitting : least;
}

// Names and runs cannot be deleted while in use: those of an owner fill a small part of the store.
static void fit_store(struct quota *quota, uint64_t store_bytes)
{
    const bool *given = quota->rules.given;
    uint64_t *most = quota->rules.most;
    if (!given[QUOTA_BYTES])
        most[QUOTA_BYTES] = store_bytes / 2;
    if (!given[QUOTA_NAMES])
        lower(&most[QUOTA_NAMES], store_bytes / 32 / NAME_BYTES, NAMES_LEAST);
    if (!given[QUOTA_RUNS])
        lower(&most[QUOTA_RUNS], store_bytes / 64 / RUN_BYTES, RUNS_LEAST);
    lower(&quota->store_names_most, store_bytes / 4 / NAME_BYTES, NAMES_LEAST);
}

enum status quota_new(struct quota **out, const struct quota_rules *rules, int64_t store_bytes,
                      uint64_t store_names, struct error *err)
{
    struct quota *quota = calloc(1, sizeof *quota);
    if (!quota)
        return error_no_memory(err, "quota");
    (void)pthread_mutex_init(&quota->lock, NULL);
    quota->rules = *rules;
    quota->store_names_most = store_names;
    if (store_bytes > 0)
        fit_store(quota, (uint64_t)store_bytes);
    quota->press_most = (uint64_t)store_bytes / PRESS_PART;
    quota->owner_count = SHARED_OWNER + 1;
    peer_set_host(&quota->owners[SHARED_OWNER].peer, "further owners");
    *out = quota;
    return STATUS_OK;
}

void quota_free(struct quota *quota)
{
    if (!quota)
        return;
    (void)pthread_mutex_destroy(&quota->lock);
    free(quota);
}

// ---- Warnings -------------------------------------------------------------------------

// FNV-1a, 64 bit.
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

// Equal for peers of one owner.
static uint64_t hash_peer(const struct wire_peer *peer)
{
    const uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)peer->kind;
    if (peer->kind == PEER_USER)
        return hash_bytes(hash, &peer->uid, sizeof peer->uid);
    return peer->kind == PEER_KEY ? hash_bytes(hash, peer->key, sizeof peer->key) : hash;
}

// Counts what a line is about; returns how often it happened since the last line, 0 if none is to
// be logged now, or the table has no free entry.
static uint64_t count_complaint(struct quota *quota, const struct wire_peer *peer, const char *what,
                                uint64_t count, uint64_t now_ns)
{
    uint64_t hash = hash_bytes(hash_peer(peer), what, strlen(what));
    if (peer->kind == PEER_LOOPBACK) // one owner, but the line names the address
        hash = hash_bytes(hash, peer->host, strlen(peer->host));
    hash |= 1;
    struct complaint *found = NULL;
    for (unsigned i = 0; i < COMPLAINT_PROBES && (!found || found->hash != hash); i++) {
        struct complaint *complaint = &quota->complaints[(hash / 2 + i) % COMPLAINTS];
        const bool is_free = complaint->hash == 0 || now_ns - complaint->logged_ns > 2 * EVERY_NS;
        if (complaint->hash == hash || (!found && is_free))
            found = complaint;
    }
    if (!found)
        return 0;
    if (found->hash != hash)
        *found = (struct complaint){.hash = hash};
    found->count += count;
    if (found->logged_ns != 0 && now_ns - found->logged_ns < EVERY_NS)
        return 0;
    const uint64_t total = found->count;
    found->logged_ns = now_ns;
    found->count = 0;
    return total;
}

static void write_line(const struct wire_peer *peer, const char *what, uint64_t times)
{
    char who[PEER_TEXT_SIZE];
    if (times == 1)
        log_write(LOG_LEVEL_WARNING, "%s: %s", peer_text(who, peer), what);
    else if (times > 1)
        log_write(LOG_LEVEL_WARNING, "%s: %s (%llu times)", peer_text(who, peer), what,
                  (unsigned long long)times);
}

void quota_complain(struct quota *quota, const struct wire_peer *peer, const char *what,
                    uint64_t count)
{
    if (!quota || count == 0)
        return;
    (void)pthread_mutex_lock(&quota->lock);
    const uint64_t times = count_complaint(quota, peer, what, count, clock_monotonic_ns());
    (void)pthread_mutex_unlock(&quota->lock);
    write_line(peer, what, times);
}

// A line about a quota, to be logged after the lock has been released.
struct warning {
    enum quota_kind kind;
    struct wire_peer peer;
    double level;
    uint64_t most, times; // times 0: none
    bool is_refused;
};

// "quota of names: 100000 of 100000: new names are stored as other"
static void write_warning(const struct warning *warning)
{
    char text[256], level[UNIT_TEXT_SIZE], most[UNIT_TEXT_SIZE];
    const enum unit unit = kinds[warning->kind].unit;
    if (warning->times == 0)
        return;
    (void)snprintf(text, sizeof text, "quota of %s: %s of %s%s%s%s", kinds[warning->kind].name,
                   unit_format_int(level, unit, (int64_t)warning->level),
                   unit_format_int(most, unit, (int64_t)warning->most), kinds[warning->kind].period,
                   warning->is_refused ? ": " : "",
                   warning->is_refused ? kinds[warning->kind].effect : "");
    write_line(&warning->peer, text, warning->is_refused ? warning->times : 1);
}

// What an owner may have added while the store exceeds its limit.
static uint64_t press_share(const struct quota *quota)
{
    const uint64_t last = quota->press_most / PRESS_LAST, most = quota->press_most - last;
    const uint64_t used = quota->over + quota->admitted;
    const uint64_t share = used < most ? PRESS_SHARE * (most - used) : 0;
    const uint64_t part = last / quota->owner_count;
    return share > part ? share : part;
}

static uint64_t most_of(const struct quota *quota, enum quota_kind kind)
{
    return kind == QUOTA_PRESSURE ? press_share(quota) : quota->rules.most[kind];
}

static bool has_limit(const struct quota *quota, enum quota_kind kind)
{
    return kind == QUOTA_PRESSURE ? quota->over > 0 : quota->rules.most[kind] != 0;
}

static void warn(struct quota *quota, const struct owner *owner, enum quota_kind kind,
                 bool is_refused, uint64_t now_ns, struct warning *out)
{
    const char *what = is_refused ? kinds[kind].effect : kinds[kind].name;
    if (out->times > 0)
        return; // the next message warns
    *out = (struct warning){.kind = kind,
                            .peer = owner->peer,
                            .level = owner->level[kind],
                            .most = most_of(quota, kind),
                            .times = count_complaint(quota, &owner->peer, what, 1, now_ns),
                            .is_refused = is_refused};
}

// ---- Owners ---------------------------------------------------------------------------

static void drain(struct quota *quota, struct owner *owner, uint64_t now_ns)
{
    if (now_ns <= owner->drained_ns)
        return;
    const double elapsed_s = (double)(now_ns - owner->drained_ns) / 1e9;
    owner->drained_ns = now_ns;
    for (unsigned i = 0; i < QUOTA_COUNT; i++) {
        if (kinds[i].period_s == 0 || owner->level[i] == 0)
            continue;
        const double drained = (double)most_of(quota, i) * elapsed_s / kinds[i].period_s;
        owner->level[i] =
            has_limit(quota, i) && drained < owner->level[i] ? owner->level[i] - drained : 0;
    }
}

static unsigned find_owner(struct quota *quota, const struct wire_peer *peer)
{
    unsigned *bucket = &quota->buckets[hash_peer(peer) % OWNERS];
    for (unsigned i = *bucket; i != SHARED_OWNER; i = quota->owners[i].next)
        if (peer_is_same_owner(&quota->owners[i].peer, peer))
            return i;
    if (quota->owner_count == OWNERS)
        return SHARED_OWNER;
    const unsigned slot = quota->owner_count++;
    quota->owners[slot] = (struct owner){.peer = *peer, .next = *bucket};
    quota->owners[slot].peer.pid = 0;
    *bucket = slot;
    return slot;
}

unsigned quota_owner(struct quota *quota, const struct wire_peer *peer)
{
    if (!quota)
        return SHARED_OWNER;
    (void)pthread_mutex_lock(&quota->lock);
    const unsigned owner = find_owner(quota, peer);
    (void)pthread_mutex_unlock(&quota->lock);
    return owner;
}

// ---- Taking and giving ----------------------------------------------------------------

static bool is_exceeded(const struct quota *quota, const struct owner *owner, enum quota_kind kind,
                        uint64_t amount)
{
    if (!has_limit(quota, kind))
        return false;
    const double most = (double)most_of(quota, kind);
    const bool may_be_large = kinds[kind].period_s != 0 && owner->level[kind] == 0 && most > 0;
    return owner->level[kind] + (double)amount > most && !may_be_large;
}

static void add(struct quota *quota, struct owner *owner, enum quota_kind kind, uint64_t amount,
                uint64_t now_ns, struct warning *warning)
{
    const double near_limit = NEAR_LIMIT * (double)most_of(quota, kind);
    if ((kinds[kind].period_s != 0 || kind == QUOTA_PRESSURE) && !has_limit(quota, kind))
        return;
    owner->level[kind] += (double)amount;
    if (has_limit(quota, kind) && owner->level[kind] >= near_limit && kind != QUOTA_KILLS &&
        kind != QUOTA_PRESSURE)
        warn(quota, owner, kind, false, now_ns, warning);
}

bool quota_take(struct quota *quota, unsigned owner, enum quota_kind kind, uint64_t amount,
                uint64_t now_ns)
{
    struct warning warning = {0};
    if (!quota)
        return true;
    (void)pthread_mutex_lock(&quota->lock);
    struct owner *slot = &quota->owners[owner];
    drain(quota, slot, now_ns);
    const bool taken = !is_exceeded(quota, slot, kind, amount);
    if (taken)
        add(quota, slot, kind, amount, now_ns, &warning);
    else
        warn(quota, slot, kind, true, now_ns, &warning);
    (void)pthread_mutex_unlock(&quota->lock);
    write_warning(&warning);
    return taken;
}

void quota_charge(struct quota *quota, unsigned owner, enum quota_kind kind, uint64_t amount)
{
    if (!quota)
        return;
    (void)pthread_mutex_lock(&quota->lock);
    quota->owners[owner].level[kind] += (double)amount;
    (void)pthread_mutex_unlock(&quota->lock);
}

uint64_t quota_most(const struct quota *quota, enum quota_kind kind)
{
    return quota ? quota->rules.most[kind] : 0;
}

void quota_give(struct quota *quota, unsigned owner, enum quota_kind kind, uint64_t amount)
{
    if (!quota)
        return;
    (void)pthread_mutex_lock(&quota->lock);
    double *level = &quota->owners[owner].level[kind];
    *level = *level > (double)amount ? *level - (double)amount : 0;
    (void)pthread_mutex_unlock(&quota->lock);
}

bool quota_take_name(struct quota *quota, unsigned owner, bool is_host, uint64_t now_ns)
{
    struct warning warning = {0};
    if (!quota)
        return true;
    (void)pthread_mutex_lock(&quota->lock);
    struct owner *slot = &quota->owners[owner];
    const uint64_t left = quota->store_names_most > quota->store_names
                              ? quota->store_names_most - quota->store_names
                              : 0;
    const bool has_room = left > quota->store_names_most / QUOTA_NAMES_LAST ||
                          (left > 0 && (is_host || slot->level[QUOTA_NAMES] < QUOTA_NAMES_FEW));
    const bool taken = has_room && !is_exceeded(quota, slot, QUOTA_NAMES, 1);
    if (taken) {
        quota->store_names++;
        add(quota, slot, QUOTA_NAMES, 1, now_ns, &warning);
    } else {
        warn(quota, slot, QUOTA_NAMES, true, now_ns, &warning);
    }
    if (!has_room)
        warning.most = quota->store_names_most; // of all owners: the store is full
    (void)pthread_mutex_unlock(&quota->lock);
    write_warning(&warning);
    return taken;
}

void quota_reset_names(struct quota *quota)
{
    if (!quota)
        return;
    (void)pthread_mutex_lock(&quota->lock);
    quota->store_names = 0;
    for (unsigned i = 0; i < OWNERS; i++)
        quota->owners[i].level[QUOTA_NAMES] = 0;
    (void)pthread_mutex_unlock(&quota->lock);
}

void quota_add_names(struct quota *quota, const char *who, uint64_t count)
{
    struct wire_peer peer;
    if (!quota)
        return;
    (void)pthread_mutex_lock(&quota->lock);
    quota->store_names += count;
    if (who && peer_read_owner(&peer, who))
        quota->owners[find_owner(quota, &peer)].level[QUOTA_NAMES] += (double)count;
    (void)pthread_mutex_unlock(&quota->lock);
}

// ---- Ingest -----------------------------------------------------------------------------

bool quota_admit(struct quota *quota, const struct wire_peer *peer,
                 const struct quota_message *message, uint64_t now_ns, unsigned *owner)
{
    const uint64_t added = message->rows > 0 ? message->bytes + ROW_BYTES * message->rows : 0;
    const struct {
        enum quota_kind kind;
        uint64_t amount, rows; // rows 0: a small message passes
    } takes[] = {{QUOTA_BYTES, message->bytes, message->records},
                 {QUOTA_RECORDS, message->records, message->records},
                 {QUOTA_PRESSURE, added, message->rows}};
    enum { TAKES = sizeof takes / sizeof *takes };
    struct warning warning = {0};
    bool is_admitted = true;
    *owner = SHARED_OWNER;
    if (!quota)
        return true;
    (void)pthread_mutex_lock(&quota->lock);
    *owner = find_owner(quota, peer);
    struct owner *slot = &quota->owners[*owner];
    drain(quota, slot, now_ns);
    for (unsigned i = 0; i < TAKES && is_admitted; i++) {
        is_admitted = (takes[i].rows == 0 && message->bytes <= SMALL_MESSAGE) ||
                      !is_exceeded(quota, slot, takes[i].kind, takes[i].amount);
        if (!is_admitted)
            warn(quota, slot, takes[i].kind, true, now_ns, &warning);
    }
    for (unsigned i = 0; i < TAKES && is_admitted; i++)
        add(quota, slot, takes[i].kind, takes[i].amount, now_ns, &warning);
    if (is_admitted)
        quota->admitted += added;
    (void)pthread_mutex_unlock(&quota->lock);
    write_warning(&warning);
    return is_admitted;
}

void quota_press(struct quota *quota, uint64_t over, uint64_t queued, uint64_t now_ns)
{
    if (!quota)
        return;
    (void)pthread_mutex_lock(&quota->lock);
    const double before = (double)(quota->over + quota->admitted), now = (double)(over + queued);
    double kept = now < before ? now / before : 1;
    kept /= 1 + (double)(now_ns - quota->pressed_ns) / (PRESS_S * 1e9);
    for (unsigned i = 0; i < quota->owner_count; i++)
        quota->owners[i].level[QUOTA_PRESSURE] *= over > 0 ? kept : 0;
    quota->over = over > 0 ? over + queued : 0;
    quota->admitted = 0;
    quota->pressed_ns = now_ns;
    (void)pthread_mutex_unlock(&quota->lock);
}
