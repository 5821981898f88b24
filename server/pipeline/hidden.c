#include "server/pipeline/hidden.h"

#include <math.h>

static void add_beside(struct hidden_copy *copy, double start_ns, double end_ns)
{
    const double both_ns = fmin(copy->end_ns, end_ns) - fmax(copy->start_ns, start_ns);
    copy->beside_ns += fmax(both_ns, 0);
}

void hidden_add_copy(struct hidden *hidden, uint64_t chunk, double start_ns, double end_ns)
{
    struct hidden_copy *copy = &hidden->copies[hidden->copies_in++ % HIDDEN_KEPT];
    *copy = (struct hidden_copy){.chunk = chunk, .start_ns = start_ns, .end_ns = end_ns};
    if (hidden->copies_in - hidden->copies_out > HIDDEN_KEPT)
        hidden->copies_out++;
    const uint64_t kept = hidden->computes_in < HIDDEN_KEPT ? hidden->computes_in : HIDDEN_KEPT;
    for (uint64_t i = hidden->computes_in - kept; i < hidden->computes_in; i++)
        add_beside(copy, hidden->computes[i % HIDDEN_KEPT].start_ns,
                   hidden->computes[i % HIDDEN_KEPT].end_ns);
}

void hidden_add_compute(struct hidden *hidden, double start_ns, double end_ns)
{
    const uint64_t place = hidden->computes_in++ % HIDDEN_KEPT;
    hidden->computes[place].start_ns = start_ns;
    hidden->computes[place].end_ns = end_ns;
    for (uint64_t i = hidden->copies_out; i < hidden->copies_in; i++)
        add_beside(&hidden->copies[i % HIDDEN_KEPT], start_ns, end_ns);
}

bool hidden_next(struct hidden *hidden, bool none_comes, struct hidden_copy *out)
{
    if (hidden->copies_out == hidden->copies_in)
        return false;
    const struct hidden_copy *copy = &hidden->copies[hidden->copies_out % HIDDEN_KEPT];
    const bool known =
        hidden->computes_in > 0 &&
        hidden->computes[(hidden->computes_in - 1) % HIDDEN_KEPT].end_ns >= copy->end_ns;
    if (!known && !none_comes)
        return false;
    *out = *copy;
    hidden->copies_out++;
    return true;
}
