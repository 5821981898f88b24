// When the emulated device does what (clock.h).
#include "tests/support/cuda/clock.h"
#include "tests/support/cuda/emulation.h"

#include <algorithm>
#include <map>

namespace
{

constexpr size_t SPANS_MAX = 4096; // of an engine: longer ago nobody asks

bool running;
emulation_rates rates;
int64_t latest;                           // of any thread
thread_local int64_t now = 0;             // of this one; it begins at the latest that there was
std::map<int64_t, int64_t> busy[ENGINES]; // where each span begins and ends, in ns

double rate_of(engine engine)
{
    return engine == ENGINE_COPY_IN    ? rates.h2d
           : engine == ENGINE_COPY_OUT ? rates.d2h
                                       : rates.memory;
}

} // namespace

void emulation_clock(const emulation_rates *given)
{
    running = given != nullptr;
    rates = given ? *given : emulation_rates{};
    for (auto &spans : busy)
        spans.clear();
}

int64_t emulation_now(void)
{
    return now;
}

bool clock_runs()
{
    return running;
}

int64_t clock_now()
{
    return now;
}

void clock_call()
{
    if (running && now == 0)
        now = latest;
    now += rates.call_ns;
    latest = std::max(latest, now);
}

void clock_wait(int64_t due)
{
    now = std::max(now, due);
    latest = std::max(latest, now);
}

// What is queued later may be done earlier: the first gap that is long enough is taken.
int64_t clock_queue(engine engine, int64_t earliest, size_t size)
{
    const int64_t time = static_cast<int64_t>(static_cast<double>(size) * 1e9 / rate_of(engine));
    std::map<int64_t, int64_t> &spans = busy[engine];
    if (spans.size() > SPANS_MAX)
        spans.erase(spans.begin());
    int64_t begin = std::max(now, earliest);
    for (const auto &[from, to] : spans) {
        if (from >= begin + time)
            break;
        begin = std::max(begin, to);
    }
    if (time > 0)
        spans[begin] = begin + time;
    return begin + time;
}

void emulation_pass(int64_t ns)
{
    now += ns;
}
