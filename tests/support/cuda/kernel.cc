// Threads, blocks and clusters of kernels (kernel.h).
#include "tests/support/cuda/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <numeric>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace
{

constexpr size_t STACK_SIZE = 128 * 1024;
constexpr unsigned int WARP = 32;

[[noreturn]] void die(const char *what)
{
    fprintf(stderr, "emulated kernel: %s\n", what);
    abort();
}

enum waiting { RUNNING, AT_BARRIER, AT_WARP, AT_CLUSTER, ENDED };

// A copy to shared memory that was asked for, in its thread's batch of that number.
struct fetch {
    void *to;
    const void *from;
    size_t size, batch;
};

struct thread {
    ucontext_t context;
    dim3 index;
    waiting state;
    uint64_t offered[2]; // to the warp; two, as the next exchange may begin before all have read
    unsigned int exchanges;
    unsigned int arrivals, meetings; // of the cluster: the second follows the first
    std::vector<fetch> fetches;
    size_t batches;
    char *stack;
};

struct block {
    std::vector<thread> threads{EMULATED_THREADS_MAX};
    dim3 index;
    int barrier_or[2];
    unsigned int barriers;
    unsigned char *shared; // none once all its threads have ended
};

struct cluster {
    block blocks[EMULATED_CLUSTER_MAX];
    unsigned int turns[EMULATED_CLUSTER_MAX]; // blocks: who comes first goes as far as it can
    std::vector<unsigned int> order;          // of a block's threads
    ucontext_t scheduler;
    unsigned int count, blocks_count; // threads of a block; blocks
    size_t shared_size;
    block *own;
    unsigned int current; // thread of it
    const std::function<void()> *kernel;
    uint64_t random = 1; // of the order of threads and blocks
};

cluster &running = *new cluster(); // never ends: its stacks are used to the last

uint64_t next_random()
{
    uint64_t x = running.random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return running.random = x;
}

void shuffle(unsigned int *numbers, unsigned int count)
{
    for (unsigned int i = count; i > 1; i--)
        std::swap(numbers[i - 1], numbers[next_random() % i]);
}

thread &own_thread()
{
    return running.own->threads[running.current];
}

void leave(waiting state)
{
    thread &own = own_thread();
    own.state = state;
    (void)swapcontext(&own.context, &running.scheduler);
}

void enter()
{
    (*running.kernel)();
    if (!own_thread().fetches.empty())
        die("a copy to shared memory that its thread did not wait for");
    if (own_thread().arrivals != own_thread().meetings)
        die("a thread that came to the cluster's barrier and did not wait for the others");
    leave(ENDED);
    die("a thread that ended was resumed");
}

void begin_thread(thread &t, unsigned int i)
{
    if (!t.stack)
        t.stack = static_cast<char *>(malloc(STACK_SIZE));
    if (!t.stack || getcontext(&t.context) != 0)
        die("no memory for a thread");
    t.context.uc_stack.ss_sp = t.stack;
    t.context.uc_stack.ss_size = STACK_SIZE;
    t.context.uc_link = nullptr;
    makecontext(&t.context, enter, 0);
    t.index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
    t.state = RUNNING;
    t.exchanges = 0;
    t.arrivals = t.meetings = 0;
    t.batches = 0;
}

void begin_block(block &b, const dim3 &index)
{
    b.index = index;
    b.barriers = 0;
    b.barrier_or[0] = b.barrier_or[1] = 0;
    // Of a block's own, so that what reads past the end can be seen; contents are undefined.
    const size_t size = running.shared_size > 0 ? (running.shared_size + 15) / 16 * 16 : 16;
    b.shared = static_cast<unsigned char *>(aligned_alloc(16, size));
    if (!b.shared)
        die("no shared memory");
    memset(b.shared, 0xa5, size);
    for (unsigned int i = 0; i < running.count; i++)
        begin_thread(b.threads[i], i);
}

// Whether all of `first` .. `end` - 1 that have not ended wait in this way.
bool all_wait(const block &b, unsigned int first, unsigned int end, waiting state)
{
    bool any = false;
    for (unsigned int i = first; i < end; i++) {
        const waiting is = b.threads[i].state;
        if (is != state && is != ENDED)
            return false;
        any = any || is == state;
    }
    return any;
}

bool release(block &b, unsigned int first, unsigned int end, waiting state)
{
    if (!all_wait(b, first, end, state))
        return false;
    for (unsigned int i = first; i < end; i++) {
        thread &t = b.threads[i];
        // A thread that ended can no longer reach a barrier the others wait at.
        if (t.state == ENDED && state == AT_BARRIER)
            die("a barrier that not all threads of the block reach");
        if (t.state == state)
            t.state = RUNNING;
    }
    return true;
}

bool release_some(block &b)
{
    bool any = false;
    for (unsigned int first = 0; first < running.count; first += WARP) {
        const unsigned int end = first + WARP < running.count ? first + WARP : running.count;
        any = release(b, first, end, AT_WARP) || any;
    }
    if (release(b, 0, running.count, AT_BARRIER)) {
        b.barriers++;
        b.barrier_or[b.barriers % 2] = 0;
        any = true;
    }
    return any;
}

// Threads that wait for the cluster go on once all of it have come as often as they.
bool release_cluster()
{
    unsigned int least = UINT32_MAX;
    for (unsigned int b = 0; b < running.blocks_count; b++)
        for (unsigned int i = 0; i < running.count; i++) {
            const thread &t = running.blocks[b].threads[i];
            least = t.arrivals < least ? t.arrivals : least;
        }
    bool any = false;
    for (unsigned int b = 0; b < running.blocks_count; b++)
        for (unsigned int i = 0; i < running.count; i++) {
            thread &t = running.blocks[b].threads[i];
            if (t.state != AT_CLUSTER || t.meetings + 1 > least)
                continue;
            t.meetings++;
            t.state = RUNNING;
            any = true;
        }
    return any;
}

// Runs the block's threads until all of them wait; returns whether any ran.
bool run_turn(block &b)
{
    bool any = false;
    running.own = &b;
    blockIdx = b.index;
    shuffle(running.order.data(), running.count);
    for (unsigned int i : running.order) {
        if (b.threads[i].state != RUNNING)
            continue;
        any = true;
        running.current = i;
        threadIdx = b.threads[i].index;
        (void)swapcontext(&running.scheduler, &b.threads[i].context);
    }
    return any;
}

void run_block(block &b)
{
    while (run_turn(b))
        (void)release_some(b);
    for (unsigned int i = 0; i < running.count; i++)
        if (b.threads[i].state != ENDED)
            return;
    if (b.shared)
        memset(b.shared, 0xff, running.shared_size);
    free(b.shared);
    b.shared = nullptr;
}

void run_cluster(const dim3 &first)
{
    for (unsigned int b = 0; b < running.blocks_count; b++) {
        begin_block(running.blocks[b], dim3(first.x + b, first.y, first.z));
        running.turns[b] = b;
    }
    shuffle(running.turns, running.blocks_count);
    do {
        for (unsigned int b = 0; b < running.blocks_count; b++)
            run_block(running.blocks[running.turns[b]]);
    } while (release_cluster());
    for (unsigned int b = 0; b < running.blocks_count; b++)
        if (running.blocks[b].shared)
            die("threads wait for each other at different places");
}

} // namespace

void emulation_run(const emulated_shape &shape, const std::function<void()> &kernel)
{
    const dim3 grid = shape.grid, threads = shape.block;
    running.kernel = &kernel;
    running.blocks_count = shape.cluster;
    running.shared_size = shape.shared;
    running.count = threads.x * threads.y * threads.z;
    running.order.resize(running.count);
    std::iota(running.order.begin(), running.order.end(), 0U);
    gridDim = grid;
    blockDim = threads;
    for (unsigned int z = 0; z < grid.z; z++)
        for (unsigned int y = 0; y < grid.y; y++)
            for (unsigned int x = 0; x < grid.x; x += shape.cluster)
                run_cluster(dim3(x, y, z));
}

// ---- Inside kernels -------------------------------------------------------

void __syncthreads()
{
    leave(AT_BARRIER);
}

int __syncthreads_or(int predicate)
{
    block &own = *running.own;
    const unsigned int turn = own.barriers % 2;
    own.barrier_or[turn] |= predicate != 0;
    leave(AT_BARRIER);
    return own.barrier_or[turn];
}

uint64_t emulation_shuffle_xor(uint64_t bits, unsigned int mask)
{
    const unsigned int own = running.current, other = own ^ mask;
    const std::vector<thread> &threads = running.own->threads;
    thread &t = own_thread();
    const unsigned int turn = t.exchanges++ % 2;
    t.offered[turn] = bits;
    leave(AT_WARP);
    if (other >= running.count || threads[other].exchanges != t.exchanges)
        if (other >= running.count || threads[other].exchanges != t.exchanges + 1)
            die("a shuffle with a lane that is not there");
    return threads[other].offered[turn];
}

void __cluster_barrier_arrive()
{
    thread &own = own_thread();
    if (own.arrivals++ != own.meetings)
        die("a thread that comes to the cluster's barrier twice");
}

void __cluster_barrier_wait()
{
    const thread &own = own_thread();
    if (own.arrivals == own.meetings)
        die("a thread that waits for the cluster and has not come to its barrier");
    leave(AT_CLUSTER);
}

void *__cluster_map_shared_rank(const void *memory, unsigned int rank)
{
    const unsigned char *at = static_cast<const unsigned char *>(memory);
    const block &own = *running.own;
    if (rank >= running.blocks_count)
        die("shared memory of a block that is not of the cluster");
    if (at < own.shared || at >= own.shared + running.shared_size)
        die("what is no dynamic shared memory is looked for in another block");
    const block &other = running.blocks[rank];
    if (&other != &own && own_thread().meetings == 0)
        die("shared memory of a block that may not have begun");
    if (!other.shared)
        die("shared memory of a block that has ended");
    return other.shared + (at - own.shared);
}

unsigned char *emulation_shared_memory()
{
    return running.own->shared;
}

// As late as may be: a read before the wait finds what was there before.
void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t)
{
    if ((size != 4 && size != 8 && size != 16) || reinterpret_cast<uintptr_t>(to) % size != 0 ||
        reinterpret_cast<uintptr_t>(from) % size != 0)
        die("a copy to shared memory of a size or to a place that does not do");
    own_thread().fetches.push_back({to, from, size, own_thread().batches});
}

void __pipeline_commit()
{
    own_thread().batches++;
}

void __pipeline_wait_prior(size_t later)
{
    thread &own = own_thread();
    std::vector<fetch> rest;
    for (const fetch &f : own.fetches)
        if (f.batch + later < own.batches)
            memcpy(f.to, f.from, f.size);
        else
            rest.push_back(f);
    own.fetches = rest;
}
