// Who may send a run's messages, from which connection, and what they may claim.

#include "tests/support/test.h"
#include "tests/unit/collector/writer_rig.h"

#define SECOND_NS INT64_C(1000000000)

enum what { END, HELLO, REPLAY, BATCH, GOODBYE, RESTART, ROLLBACK };
enum outcome { TAKEN, WANTED, SILENCE, REFUSED };

// Peers: 'u' and 'v' are users, 'r' is root, 'k' and 'l' have keys, 't' comes over TCP without a
// key.
struct step {
    enum what what;
    char who;
    pid_t pid;
    unsigned connection, open; // bit n of `open`: connection n is open
    enum outcome outcome;
    int64_t at_s; // seconds after the first message
};

static unsigned open_connections;

static bool is_connected(__attribute__((unused)) void *connections, const struct job_return *at)
{
    return open_connections >> at->socket & 1;
}

static void send_from(const struct step *step)
{
    static const unsigned char keys[] = {'k', 'l'};
    rig.sender = memchr(keys, step->who, sizeof keys) ? step->who : 0;
    rig.peer = (struct wire_peer){.kind = step->who == 't' ? PEER_LOOPBACK : PEER_USER,
                                  .uid = step->who == 'r' ? 0 : (uid_t)step->who,
                                  .pid = step->pid};
    rig.connection = step->connection;
    rig.later_ns = step->at_s * SECOND_NS;
    open_connections = step->open;
}

static enum outcome outcome_of(const struct message *message, bool fail)
{
    rig_group(message, fail);
    struct message *ack = rig_last_ack();
    enum outcome outcome = TAKEN;
    if (!ack)
        outcome = SILENCE;
    else if (ack->ack.error.size)
        outcome = REFUSED;
    else if (ack->ack.delivery.hello_wanted)
        outcome = WANTED;
    rig_free_ack(ack);
    return outcome;
}

static enum outcome take(const struct step *step)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){
        .protocol = 2, .host = {4, "host"}, .replay = step->what == REPLAY, .started_ns = RIG_NS};
    if (step->what == BATCH)
        message = (struct message){.kind = MESSAGE_BATCH};
    else if (step->what == GOODBYE)
        message = (struct message){.kind = MESSAGE_GOODBYE, .goodbye = {.ended_ns = 1}};
    unsigned char *run = message.hello.run;
    if (step->what == BATCH)
        run = message.batch.run;
    else if (step->what == GOODBYE)
        run = message.goodbye.run;
    memcpy(run, rig_run, sizeof rig_run);
    return outcome_of(&message, false);
}

// Also: the owner in the store is that of the first step's peer.
static void expect(const char *name, const struct step *steps)
{
    for (unsigned i = 0; steps[i].what != END; i++) {
        const struct step *step = &steps[i];
        struct error err = {0};
        send_from(step);
        if (step->what == RESTART)
            runs_forget(rig.runs);
        else if (step->what == ROLLBACK)
            assert_int_equal(runs_reload(rig.runs, 1, &err), STATUS_OK);
        else if (take(step) != step->outcome)
            fail_msg("%s: step %u ends otherwise", name, i);
    }
    char who[PEER_OWNER_SIZE];
    struct wire_peer peer = {.kind = PEER_KEY};
    send_from(&steps[0]);
    if (rig.sender == 0)
        peer = rig.peer;
    memset(peer.key, rig.sender, sizeof peer.key);
    assert_int_equal(
        rig_integer(format_text("SELECT count(*) FROM run NATURAL JOIN owner WHERE who = '%s'",
                                peer_owner_text(who, &peer))),
        1);
    rig_exec("DELETE FROM run");
    runs_forget(rig.runs);
}

TEST_CASE(test_who_may_send)
{
    rig.channels->is_connected = is_connected;
    enum { ONE = 2, TWO = 4, BOTH = 6 };
    static const struct {
        const char *name;
        struct step steps[10];
    } cases[] = {
        {"another user",
         {{HELLO, 'u', 7, 1, ONE, TAKEN, 0},
          {HELLO, 'v', 8, 2, BOTH, REFUSED, 0},
          {BATCH, 'v', 8, 2, BOTH, REFUSED, 0},
          {GOODBYE, 'v', 7, 2, BOTH, REFUSED, 0},
          {REPLAY, 'v', 8, 2, TWO, REFUSED, 0},
          {HELLO, 'k', 0, 2, TWO, REFUSED, 0},
          {HELLO, 't', 0, 2, TWO, REFUSED, 0},
          {BATCH, 'u', 7, 1, ONE, TAKEN, 0}}},
        {"another key",
         {{HELLO, 'k', 0, 1, ONE, TAKEN, 0},
          {HELLO, 'l', 0, 2, BOTH, REFUSED, 0},
          {REPLAY, 'l', 0, 2, TWO, REFUSED, 9},
          {REPLAY, 'u', 0, 2, TWO, REFUSED, 9},
          {BATCH, 'k', 0, 1, ONE, TAKEN, 9}}},
        {"the process connects again",
         {{HELLO, 'u', 7, 1, ONE, TAKEN, 0},
          {BATCH, 'u', 7, 2, BOTH, WANTED, 0},
          {HELLO, 'u', 7, 2, BOTH, TAKEN, 0},
          {BATCH, 'u', 7, 2, BOTH, TAKEN, 0},
          {BATCH, 'u', 7, 1, BOTH, WANTED, 0}}},
        {"another process of the user",
         {{HELLO, 'u', 7, 1, ONE, TAKEN, 0},
          {HELLO, 'u', 8, 2, BOTH, SILENCE, 0},
          {REPLAY, 'u', 8, 2, BOTH, SILENCE, 9},
          {BATCH, 'u', 8, 2, BOTH, SILENCE, 0},
          {GOODBYE, 'u', 8, 2, BOTH, SILENCE, 0},
          {HELLO, 'u', 8, 2, TWO, SILENCE, 0},
          {REPLAY, 'u', 8, 2, TWO, TAKEN, 0},
          {BATCH, 'u', 8, 2, TWO, TAKEN, 0},
          {BATCH, 'u', 7, 1, TWO, SILENCE, 0}}},
        {"processes of other namespaces",
         {{HELLO, 'u', 0, 1, ONE, TAKEN, 0},
          {HELLO, 'u', 0, 2, BOTH, SILENCE, 9},
          {HELLO, 'u', 0, 2, TWO, TAKEN, 9},
          {HELLO, 'u', 9, 3, TWO, SILENCE, 9},
          {HELLO, 'u', 9, 3, 0, TAKEN, 9}}},
        {"a key from another connection",
         {{HELLO, 'k', 0, 1, ONE, TAKEN, 0},
          {HELLO, 'k', 0, 2, BOTH, SILENCE, 3},
          {BATCH, 'k', 0, 1, BOTH, TAKEN, 3},
          {HELLO, 'k', 0, 2, BOTH, SILENCE, 6},
          {BATCH, 'k', 0, 2, BOTH, WANTED, 7},
          {HELLO, 'k', 0, 2, BOTH, TAKEN, 7},
          {HELLO, 'k', 0, 1, ONE, TAKEN, 7},
          {HELLO, 'k', 0, 2, BOTH, TAKEN, 6}}}, // the clock was set
        {"TCP without keys",
         {{HELLO, 't', 0, 1, ONE, TAKEN, 0},
          {REPLAY, 't', 0, 2, BOTH, SILENCE, 3},
          {REPLAY, 't', 0, 2, BOTH, TAKEN, 4},
          {BATCH, 't', 0, 1, BOTH, SILENCE, 4},
          {BATCH, 't', 0, 2, BOTH, TAKEN, 4}}},
        {"root replays what is closed",
         {{HELLO, 'u', 7, 1, ONE, TAKEN, 0},
          {HELLO, 'r', 8, 2, BOTH, REFUSED, 0},
          {REPLAY, 'r', 8, 2, BOTH, SILENCE, 9},
          {HELLO, 'r', 8, 2, TWO, REFUSED, 9},
          {BATCH, 'r', 8, 2, TWO, REFUSED, 9},
          {REPLAY, 'r', 8, 2, TWO, TAKEN, 9},
          {BATCH, 'r', 8, 2, TWO, TAKEN, 9},
          {BATCH, 'r', 8, 1, TWO, REFUSED, 9},
          {GOODBYE, 'r', 8, 2, TWO, TAKEN, 9}}},
        {"root replays a key's run",
         {{HELLO, 'k', 0, 1, ONE, TAKEN, 0},
          {REPLAY, 'r', 8, 2, TWO, TAKEN, 0},
          {BATCH, 'r', 8, 2, TWO, TAKEN, 0}}},
        {"after a restart the owner is known, its connection is not",
         {{HELLO, 'u', 7, 1, ONE, TAKEN, 0},
          {RESTART, 'u', 0, 0, 0, TAKEN, 0},
          {HELLO, 'v', 7, 1, ONE, REFUSED, 0},
          {BATCH, 'u', 9, 1, ONE, WANTED, 0},
          {HELLO, 'u', 9, 1, ONE, TAKEN, 0}}},
        {"after a rollback both are",
         {{HELLO, 'u', 7, 1, ONE, TAKEN, 0},
          {ROLLBACK, 'u', 0, 0, 0, TAKEN, 0},
          {REPLAY, 'u', 9, 2, BOTH, SILENCE, 0},
          {BATCH, 'u', 7, 1, ONE, TAKEN, 0}}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect(cases[i].name, cases[i].steps);
    uint64_t counts[REFUSAL_COUNT];
    reject_counters_read(&rig.channels->rejects, counts);
    assert_true(counts[REFUSAL_WRONG_OWNER] > 10);
    assert_true(counts[REFUSAL_BUSY_RUN] > 10);
}

// What a run holds is read only for those that may send its messages.
TEST_CASE(test_a_strangers_message_reads_little)
{
    static const struct step opens = {HELLO, 'u', 7, 1, 2, TAKEN, 0};
    static const struct step strange[] = {{HELLO, 'v', 9, 2, 6, REFUSED, 0},
                                          {BATCH, 'v', 9, 2, 6, REFUSED, 0},
                                          {GOODBYE, 'k', 0, 2, 6, REFUSED, 0},
                                          {REPLAY, 'v', 9, 2, 4, REFUSED, 0}};
    size_t complete;
    rig.channels->is_connected = is_connected;
    rig.trims = false;
    send_from(&opens);
    assert_int_equal(take(&opens), TAKEN);
    struct message honest = rig_operations(1, 2);
    assert_int_equal(outcome_of(&honest, false), TAKEN);
    for (size_t i = 0; i < COUNT_OF(strange); i++) {
        runs_forget(rig.runs);
        send_from(&strange[i]);
        assert_int_equal(take(&strange[i]), REFUSED);
        (void)runs_size(rig.runs, &complete);
        assert_int_equal(complete, 0);
    }
    send_from(&opens);
    assert_int_equal(take(&opens), TAKEN);
    (void)runs_size(rig.runs, &complete);
    assert_int_equal(complete, 1);
    assert_int_equal(rig_integer("SELECT next FROM stream"), 3);
}

// A run of before there were owners, or an imported one, becomes that of the first peer without a
// key that says Hello, but not of one that replays it.
TEST_CASE(test_a_run_without_an_owner)
{
    static const struct step opens = {HELLO, 'u', 7, 1, 2, TAKEN, 0};
    static const struct step replays = {REPLAY, 'r', 8, 2, 4, TAKEN, 0};
    static const struct step strange = {HELLO, 'k', 0, 2, 4, REFUSED, 0};
    static const struct step takes = {HELLO, 'v', 9, 3, 8, TAKEN, 0};
    static const struct step late = {HELLO, 'u', 7, 4, 16, REFUSED, 0};
    static const struct step *const steps[] = {&strange, &replays, NULL, &takes, &late, &takes};
    rig.channels->is_connected = is_connected;
    send_from(&opens);
    assert_int_equal(take(&opens), TAKEN);
    rig_exec("UPDATE run SET owner = 0");
    runs_forget(rig.runs);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (!steps[i]) { // the collector starts again
            runs_forget(rig.runs);
            continue;
        }
        send_from(steps[i]);
        if (take(steps[i]) != steps[i]->outcome)
            fail_msg("step %zu ends otherwise", i);
    }
    assert_int_equal(
        rig_integer("SELECT count(*) FROM run NATURAL JOIN owner WHERE who = 'user:118'"), 1);
}

// Claims are measured by the run's life, as the store has it, too.
TEST_CASE(test_forged_counts)
{
    static const struct delivery_stream produced[] = {{.produced = 1000000000}};
    static const struct delivery_stream unnumbered[] = {{.unnumbered = 2000000000}};
    static const struct wire_drop drops[] = {{.range = {.first = 1, .last = 1000000000}}};
    const struct step opens = {HELLO, 'u', 7, 1, 2, TAKEN, 0};
    struct message claims[3] = {
        {.kind = MESSAGE_BATCH}, {.kind = MESSAGE_BATCH}, {.kind = MESSAGE_GOODBYE}};
    claims[0].batch = (struct message_batch){.streams = produced, .stream_count = 1};
    claims[1].batch = (struct message_batch){.streams = unnumbered, .stream_count = 1};
    claims[2].goodbye = (struct message_goodbye){.ended_ns = 1, .drops = drops, .drop_count = 1};
    for (unsigned i = 0; i < 2; i++)
        memcpy(claims[i].batch.run, rig_run, sizeof rig_run);
    memcpy(claims[2].goodbye.run, rig_run, sizeof rig_run);
    send_from(&opens);
    assert_int_equal(take(&opens), TAKEN);
    struct message honest = rig_operations(1, 2);
    assert_int_equal(outcome_of(&honest, false), TAKEN);
    for (unsigned round = 0; round < 2; round++) {
        rig.later_ns = 5 * SECOND_NS;
        for (size_t i = 0; i < COUNT_OF(claims); i++)
            assert_int_equal(outcome_of(&claims[i], false), REFUSED);
        runs_forget(rig.runs);
        assert_int_equal(take(&opens), TAKEN);
    }
    honest = rig_operations(3, 4);
    assert_int_equal(outcome_of(&honest, false), TAKEN);
    assert_int_equal(rig_integer("SELECT stored FROM run"), 4);
    assert_int_equal(rig_integer("SELECT next FROM stream"), 5);
    assert_int_equal(rig_integer("SELECT produced FROM run"), 4);
    rig.later_ns = 60 * SECOND_NS; // so much is possible
    for (size_t i = 0; i < COUNT_OF(claims); i++)
        assert_int_equal(outcome_of(&claims[i], false), TAKEN);
}

TEST_MAIN_EACH(rig_set_up, rig_tear_down, test_who_may_send, test_a_run_without_an_owner,
               test_forged_counts, test_a_strangers_message_reads_little)
