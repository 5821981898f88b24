#include <stdlib.h>
#include <string.h>

#include "tests/support/sim/sim.h"

void sim_network_init(struct sim *sim)
{
    struct sim_network *network = &sim->network;
    network->sent_count = 0;
    for (size_t i = 0; i < SIM_PACKETS; i++)
        network->unused[i] = (uint16_t)i;
}

struct sim_packet *sim_packet(struct sim *sim)
{
    struct sim_network *network = &sim->network;
    sim_check(sim, network->sent_count < SIM_PACKETS, "the network has room");
    struct sim_packet *packet =
        &network->packets[network->unused[SIM_PACKETS - 1 - network->sent_count]];
    memset(packet, 0, offsetof(struct sim_packet, drops));
    packet->drop_count = 0;
    memset(&packet->ack, 0, sizeof *packet - offsetof(struct sim_packet, ack));
    return packet;
}

// Puts the packet that sim_packet gave last on its way.
static void dispatch(struct sim *sim, struct sim_packet *packet)
{
    struct sim_network *network = &sim->network;
    uint64_t *latest_ns = &network->latest_ns[packet->to_collector];
    uint64_t arrives_ns = sim->now_ns + (1 + sim_below(sim, sim->delay_steps + 1)) * SIM_STEP_NS;
    if (arrives_ns < *latest_ns)
        arrives_ns = *latest_ns; // in order, on one connection
    *latest_ns = arrives_ns;
    packet->arrives_ns = arrives_ns;
    network->sent[network->sent_count] = (uint16_t)(packet - network->packets);
    network->sent_count++;
}

void sim_send(struct sim *sim, struct sim_packet *packet, uint32_t connection, bool to_collector)
{
    struct sim_network *network = &sim->network;
    packet->connection = connection;
    packet->to_collector = to_collector;
    if (connection == 0 || connection != network->connections || sim_strikes(sim, SIM_FAULT_lose))
        return;
    dispatch(sim, packet);
    while (network->sent_count < SIM_PACKETS / 2 && sim_strikes(sim, SIM_FAULT_repeat)) {
        struct sim_packet *again = sim_packet(sim);
        *again = *packet;
        dispatch(sim, again);
    }
}

static void take_away(struct sim_network *network, size_t at)
{
    const uint16_t place = network->sent[at];
    network->sent_count--;
    memmove(&network->sent[at], &network->sent[at + 1],
            (network->sent_count - at) * sizeof network->sent[0]);
    // The unused ones are a stack that begins behind as many as are sent.
    network->unused[SIM_PACKETS - 1 - network->sent_count] = place;
}

bool sim_arrived(struct sim *sim, bool at_collector, struct sim_packet *packet)
{
    struct sim_network *network = &sim->network;
    for (size_t i = 0; i < network->sent_count;) {
        const struct sim_packet *sent = &network->packets[network->sent[i]];
        if (sent->to_collector != at_collector || sent->arrives_ns > sim->now_ns) {
            i++;
            continue;
        }
        *packet = *sent;
        take_away(network, i);
        // A process hears nothing that was said to the one before it.
        if (at_collector || packet->connection >= sim->process.first_connection)
            return true;
    }
    return false;
}

// What the connection carried is lost, or arrives whenever it likes.
void sim_disconnect(struct sim *sim)
{
    struct sim_network *network = &sim->network;
    if (sim->process.connection)
        sim_trace(sim, "disconnected");
    sim->process.connection = 0;
    for (size_t i = network->sent_count; i-- > 0;) {
        struct sim_packet *packet = &network->packets[network->sent[i]];
        // A process that is gone hears nothing any more.
        if (packet->connection != network->connections)
            continue;
        if (sim_strikes(sim, SIM_FAULT_late))
            packet->arrives_ns += sim_below(sim, 60) * SIM_STEP_NS;
        else
            take_away(network, i);
    }
}

void sim_connect(struct sim *sim)
{
    struct sim_network *network = &sim->network;
    sim->process.connection = ++network->connections;
    network->latest_ns[0] = network->latest_ns[1] = 0;
    sim_trace(sim, "connected");
}
