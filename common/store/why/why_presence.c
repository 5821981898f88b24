#include "common/store/why/why_presence.h"

#include <stdlib.h>

#include "common/core/base/array.h"

bool why_presence_add(struct why_presence *presence, const struct why_span *span)
{
    if (span->until_ns <= span->since_ns)
        return true;
    if (!ARRAY_RESERVE(&presence->edges, &presence->room, presence->count + 2))
        return false;
    presence->edges[presence->count++] = (struct why_edge){
        .kind = span->kind, .at_ns = (double)span->since_ns, .weight = span->weight};
    presence->edges[presence->count++] = (struct why_edge){
        .kind = span->kind, .at_ns = (double)span->until_ns, .weight = -span->weight};
    return true;
}

static int by_kind(const void *left, const void *right)
{
    const struct why_edge *a = left, *b = right;
    return a->kind != b->kind ? (a->kind < b->kind ? -1 : 1)
                              : (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

void why_presence_order(struct why_presence *presence)
{
    struct why_edge *edges = presence->edges;
    size_t kind = 0;
    if (presence->count > 1)
        qsort(edges, presence->count, sizeof *edges, by_kind);
    for (size_t i = 0; i < presence->count; i++) {
        while (kind <= edges[i].kind)
            presence->first[kind++] = i;
        if (i == presence->first[edges[i].kind])
            continue;
        edges[i].before_ns =
            edges[i - 1].before_ns + edges[i - 1].weight * (edges[i].at_ns - edges[i - 1].at_ns);
        edges[i].weight += edges[i - 1].weight;
    }
    while (kind <= WHY_LASTING_END)
        presence->first[kind++] = presence->count;
}

// The integral up to a time.
static double present_until(const struct why_presence *presence, enum why_cause_kind kind,
                            double at_ns)
{
    size_t first = presence->first[kind], end = presence->first[kind + 1];
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (presence->edges[middle].at_ns <= at_ns)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == presence->first[kind])
        return 0;
    const struct why_edge *edge = &presence->edges[first - 1];
    return edge->before_ns + edge->weight * (at_ns - edge->at_ns);
}

double why_presence_of(const struct why_presence *presence, enum why_cause_kind kind,
                       double since_ns, double until_ns)
{
    if (presence->first[kind] == presence->first[kind + 1])
        return 0;
    return present_until(presence, kind, until_ns) - present_until(presence, kind, since_ns);
}
