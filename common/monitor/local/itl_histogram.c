#include "common/monitor/local/itl_histogram.h"

// The bucket of the 99th percentile of `count` gaps, searched from the highest.
static uint32_t find_p99(const uint64_t touched_words[ITL_WORDS],
                         const uint32_t counts[SKETCH_NS_BUCKETS], uint64_t count, uint64_t max_ns)
{
    const uint64_t above = count / 100; // by the nearest-rank method, as in sketch_rank
    if (above == 0)
        return sketch_ns_bucket(max_ns);
    uint64_t seen = 0;
    for (uint32_t word = sketch_ns_bucket(max_ns) / ITL_WORD_BITS + 1; word-- > 0;) {
        uint64_t touched = touched_words[word];
        while (touched) {
            const uint32_t bit = 63 - (uint32_t)__builtin_clzll(touched);
            const uint32_t bucket = word * ITL_WORD_BITS + bit;
            seen += counts[bucket];
            if (seen > above)
                return bucket;
            touched ^= UINT64_C(1) << bit;
        }
    }
    return 0;
}

// Counts the gaps as shared ones, too.
static void copy_to_shared(struct itl_histogram *histogram)
{
    for (uint32_t word = 0; word < ITL_WORDS; word++) {
        histogram->shared_touched[word] |= histogram->touched[word];
        for (uint64_t touched = histogram->touched[word]; touched; touched &= touched - 1) {
            const uint32_t bucket = word * ITL_WORD_BITS + (uint32_t)__builtin_ctzll(touched);
            histogram->shared_counts[bucket] += histogram->counts[bucket];
        }
    }
    histogram->shared_count += histogram->count;
}

// Adds the request's buckets to `span` and zeroes them.
static void empty_into(struct itl_histogram *histogram, struct itl_span *span)
{
    uint64_t left = histogram->count;
    for (uint32_t word = sketch_ns_bucket(histogram->max_ns) / ITL_WORD_BITS + 1;
         word-- > 0 && left > 0;) {
        uint64_t touched = histogram->touched[word];
        if (touched == 0)
            continue;
        histogram->touched[word] = 0;
        span->touched[word] |= touched;
        uint32_t *counts = &histogram->counts[(size_t)word * ITL_WORD_BITS];
        uint32_t *sums = &span->counts[(size_t)word * ITL_WORD_BITS];
        do {
            const unsigned bit = (unsigned)__builtin_ctzll(touched);
            const uint32_t count = counts[bit];
            counts[bit] = 0;
            sums[bit] += count;
            left -= count;
            touched &= touched - 1;
        } while (touched);
    }
}

static void zero_buckets(uint64_t touched[ITL_WORDS], uint32_t counts[SKETCH_NS_BUCKETS])
{
    for (uint32_t word = 0; word < ITL_WORDS; word++) {
        if (touched[word])
            memset(&counts[(size_t)word * ITL_WORD_BITS], 0, ITL_WORD_BITS * sizeof *counts);
        touched[word] = 0;
    }
}

// ---- Records -------------------------------------------------------------------

static void span_to_sketch(const struct itl_span *span, struct sketch *sketch)
{
    sketch_reset(sketch);
    for (uint32_t word = 0; word < ITL_WORDS; word++) {
        for (uint64_t touched = span->touched[word]; touched; touched &= touched - 1) {
            const uint32_t bucket = word * ITL_WORD_BITS + (uint32_t)__builtin_ctzll(touched);
            sketch_add_bucket(sketch, SKETCH_NS_OFFSET + bucket, span->counts[bucket]);
        }
    }
}

// Writes a span as one record or, if its sketch is too long, as several records whose
// sketches sum up to it; then empties it.
static void write_span(struct itl_span *span, int64_t wall_offset_ns, struct ring *ring,
                       struct sketch *sketch)
{
    span_to_sketch(span, sketch);
    uint32_t next = 0;
    while (next < SKETCH_BUCKETS) {
        struct record record;
        unsigned char bytes[(RECORD_SLOT_VALUES - ITL_COLUMNS) * 8];
        record_init(&record, RECORD_KIND_ITL, (int64_t)span->first_ns + wall_offset_ns);
        record_set_name(&record, ITL_MODEL, span->model);
        record_set_name(&record, ITL_DEVICE, span->device);
        record_set_int(&record, ITL_DURATION_NS, (int64_t)(span->last_ns - span->first_ns));
        const size_t size = sketch_encode(sketch, bytes, sizeof bytes, &next);
        if (size == 0)
            break;
        (void)record_set_blob(&record, ITL_SKETCH, bytes, size);
        (void)ring_push(ring, &record, 1);
    }
    zero_buckets(span->touched, span->counts);
    span->count = 0;
}

// ---- Engine thread ---------------------------------------------------------------

// The span of the place's key, or a free one; if there is neither, writes and reuses the least
// recently used one.
static struct itl_span *find_span(struct itl_span *bank, const struct itl_place *place)
{
    struct itl_span *oldest = bank;
    for (unsigned i = 0; i < ITL_KEYS; i++) {
        struct itl_span *span = &bank[i];
        if (span->count == 0 || (span->model == place->model && span->device == place->device))
            return span;
        if (span->last_ns < oldest->last_ns)
            oldest = span;
    }
    write_span(oldest, place->wall_offset_ns, place->ring, place->sketch);
    return oldest;
}

// Adds the request's time span to the span of its key in the bank.
static struct itl_span *join(struct itl_span *bank, const struct itl_place *place, uint64_t count)
{
    struct itl_span *span = find_span(bank, place);
    if (span->count + count > UINT32_MAX && span->count > 0)
        write_span(span, place->wall_offset_ns, place->ring, place->sketch);
    if (span->count == 0) {
        span->model = place->model;
        span->device = place->device;
        span->first_ns = place->first_ns;
        span->last_ns = place->last_ns;
    }
    span->count += count;
    span->first_ns = place->first_ns < span->first_ns ? place->first_ns : span->first_ns;
    span->last_ns = place->last_ns > span->last_ns ? place->last_ns : span->last_ns;
    return span;
}

// Dekker: this stores `busy` and then loads `turn`, the publisher stores `turn` and
// then loads `busy`, all in one total order, so that at least one of the two sees the
// other.
static void add_to_sums(struct itl_histogram *histogram, struct itl_sums *sums,
                        const struct itl_place *place)
{
    const uint64_t busy = atomic_load_explicit(&sums->busy, memory_order_relaxed);
    atomic_store_explicit(&sums->busy, busy + 1, memory_order_seq_cst);
    const uint32_t turn = atomic_load_explicit(&sums->turn, memory_order_seq_cst);
    empty_into(histogram, join(sums->banks[turn & 1], place, histogram->count));
    atomic_store_explicit(&sums->busy, busy + 2, memory_order_release);
}

void itl_histogram_share(struct itl_histogram *histogram, struct itl_sums *sums,
                         const struct itl_place *place)
{
    if (histogram->pending_ns)
        itl_histogram_count_pending(histogram);
    histogram->pending_ns = 0;
    if (histogram->count == 0)
        return;
    copy_to_shared(histogram);
    add_to_sums(histogram, sums, place);
    histogram->count = 0;
}

// The 99th percentile's bucket of a request that has shared gaps; forgets those.
static __attribute__((noinline, cold)) uint32_t find_shared_p99(struct itl_histogram *histogram)
{
    copy_to_shared(histogram);
    const uint32_t p99 = find_p99(histogram->shared_touched, histogram->shared_counts,
                                  histogram->shared_count, histogram->max_ns);
    zero_buckets(histogram->shared_touched, histogram->shared_counts);
    histogram->shared_count = 0;
    return p99;
}

uint64_t itl_histogram_finish(struct itl_histogram *histogram, struct itl_sums *sums,
                              const struct itl_place *place, uint64_t *max_ns)
{
    *max_ns = 0;
    if (itl_histogram_total(histogram) == 0)
        return 0;
    if (histogram->pending_ns)
        itl_histogram_count_pending(histogram);

    const uint32_t p99 =
        histogram->shared_count > 0
            ? find_shared_p99(histogram)
            : find_p99(histogram->touched, histogram->counts, histogram->count, histogram->max_ns);
    if (!sums)
        zero_buckets(histogram->touched, histogram->counts);
    else if (histogram->count > 0)
        add_to_sums(histogram, sums, place);

    *max_ns = histogram->max_ns;
    const uint64_t p99_ns = (uint64_t)(int64_t)(sketch_bucket_value(SKETCH_NS_OFFSET + p99) + 0.5);
    histogram->pending_ns = 0;
    histogram->count = 0;
    histogram->max_ns = 0;
    return p99_ns < *max_ns ? p99_ns : *max_ns;
}

// ---- Publisher thread --------------------------------------------------------------

bool itl_histogram_drain(struct itl_sums *sums, int64_t wall_offset_ns, struct ring *ring,
                         struct sketch *sketch)
{
    uint32_t turn = atomic_load_explicit(&sums->turn, memory_order_relaxed);
    if (!sums->waiting) {
        atomic_store_explicit(&sums->turn, ++turn, memory_order_seq_cst);
        const uint64_t busy = atomic_load_explicit(&sums->busy, memory_order_seq_cst);
        sums->waiting = busy & 1;
        sums->waited_for = busy;
    } else {
        // Any change means that the engine has left the bank since the switch.
        sums->waiting = atomic_load_explicit(&sums->busy, memory_order_acquire) == sums->waited_for;
    }
    if (sums->waiting)
        return false;
    struct itl_span *bank = sums->banks[(turn + 1) & 1];
    for (unsigned i = 0; i < ITL_KEYS && bank[i].count > 0; i++)
        write_span(&bank[i], wall_offset_ns, ring, sketch);
    return true;
}
