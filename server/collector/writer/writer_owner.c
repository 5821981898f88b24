#include "server/collector/writer/writer_owner.h"

#include "server/collector/access/quota.h"

// A connection over TCP without a message for so long may be that of a host that is gone: a run
// that lives sends one each second.
#define SILENT_NS INT64_C(3000000000)

static bool is_replay(const struct job *job)
{
    return job->message.kind == MESSAGE_HELLO && job->message.hello.replay;
}

static bool is_root(const struct wire_peer *peer)
{
    return peer->kind == PEER_USER && peer->uid == 0;
}

bool owner_may_send(const struct wire_peer *owner, const struct wire_peer *peer,
                    struct access *access)
{
    if (owner->kind == PEER_KEY && peer->kind == PEER_KEY && access)
        return access_continues(access, peer->key, owner->key);
    return peer_is_same_owner(owner, peer);
}

static bool is_owner(const struct run *run, const struct wire_peer *peer, struct access *access)
{
    if (run->owner == 0 && run->opener.kind != PEER_KEY)
        return peer->kind != PEER_KEY;
    return owner_may_send(&run->opener, peer, access);
}

static bool is_silent(const struct run_link *link, int64_t received_ns)
{
    const int64_t since_ns = received_ns - link->heard_ns;
    return since_ns > SILENT_NS || since_ns < 0; // the clock was set
}

// Whether the owner may send the run's messages from another connection than before.
static bool may_move(const struct run_link *link, const struct job *job, bool is_closed)
{
    const struct wire_peer *peer = &job->peer;
    if (peer->kind != PEER_USER)
        return is_closed || is_silent(link, job->received_ns);
    if (link->pid == peer->pid && peer->pid != 0)
        return true;
    // Processes of other PID namespaces have no number here.
    return is_closed && (link->pid == 0 || peer->pid == 0 || is_replay(job));
}

enum delivery_sender owner_sender(const struct run *run, const struct job *job,
                                  struct access *access, const struct channels *channels)
{
    if (!run)
        return DELIVERY_SENDER_KNOWN;
    const struct run_link *link = &run->link;
    const bool own = is_owner(run, &job->peer, access);
    if (link->is_known && (own || is_root(&job->peer)) && job_return_is_same(&link->at, &job->from))
        return DELIVERY_SENDER_KNOWN;
    if (!own && !(is_root(&job->peer) && is_replay(job)))
        return DELIVERY_SENDER_STRANGER;
    const bool is_closed = !link->is_known || !channels->is_connected ||
                           !channels->is_connected(channels->connections, &link->at);
    if (own && link->is_known ? may_move(link, job, is_closed) : is_closed)
        return DELIVERY_SENDER_NEW;
    return DELIVERY_SENDER_SECOND;
}

int64_t owner_life_ns(const struct run *run, const struct job *job)
{
    int64_t began_ns = job->received_ns;
    if (run)
        began_ns = run->began_ns;
    else if (job->message.kind == MESSAGE_HELLO && job->message.hello.started_ns > 0)
        began_ns = job->message.hello.started_ns;
    if (began_ns < 0 || began_ns > job->received_ns)
        return INT64_MAX;
    return job->received_ns - began_ns;
}

enum status owner_connect(struct runs *runs, struct run *run, const struct job *job,
                          struct error *err)
{
    enum status status = STATUS_OK;
    if (run->owner == 0 && !is_replay(job))
        status = runs_own(runs, run, &job->peer, err);
    run->link = (struct run_link){.is_known = true,
                                  .at = job->from,
                                  .pid = job->peer.kind == PEER_USER ? job->peer.pid : 0,
                                  .heard_ns = job->received_ns};
    return status;
}

static void count(struct channels *channels, const struct job *job, enum refusal reason,
                  const char *what)
{
    reject_counters_count(&channels->rejects, reason, 1);
    quota_complain(channels->quota, &job->peer, what, 1);
}

const char *owner_reject(const struct run *run, const struct job *job,
                         enum delivery_hearing hearing, struct channels *channels)
{
    switch (hearing) {
    case DELIVERY_FOREIGN:
        count(channels, job, REFUSAL_WRONG_OWNER,
              "sends messages of a run that belongs to another key or user");
        return run->opener.kind == PEER_KEY ? "this run belongs to another key"
                                            : "this run belongs to another user";
    case DELIVERY_BUSY:
        count(channels, job, REFUSAL_BUSY_RUN,
              "sends messages of a run that another of its processes reports");
        break;
    case DELIVERY_IMPLAUSIBLE:
        count(channels, job, REFUSAL_IMPLAUSIBLE,
              "claims more records than the run can have produced");
        return "the run cannot have produced so many records";
    case DELIVERY_UNKNOWN_PROTOCOL:
        return "this collector does not speak that version of the protocol";
    case DELIVERY_TOO_MANY_STREAMS:
        count(channels, job, REFUSAL_STREAMS, "reports more streams than a run may have");
        return "more streams than a run may have";
    case DELIVERY_HEARD:
    case DELIVERY_HELLO_WANTED:
        break;
    }
    return NULL;
}
