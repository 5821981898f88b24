// The query language under libFuzzer: first a query made of the bytes, written and
// read again; then the bytes themselves as a line.
#include "common/core/query/query_text.h"

#include <string.h>

#include "common/core/base/text.h"
#include "common/sys/when.h"
#include "tests/fuzz/fuzz.h"

static enum status when(void *context, int64_t *out_ns, const char *text, bool latest,
                        struct error *err)
{
    (void)context;
    static const int64_t now_ns = INT64_C(1774785600000000000);
    return when_parse(out_ns, text, now_ns, latest, "time", err);
}

struct bytes {
    const uint8_t *next;
    size_t left;
};

static unsigned next_byte(struct bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->next++;
}

// A number of `count` bytes.
static int64_t take_number(struct bytes *bytes, unsigned count)
{
    uint64_t number = 0;
    while (count-- > 0)
        number = number << 8 | next_byte(bytes);
    return (int64_t)(number >> 1);
}

// A text of the next bytes: a length and as many, as far as they are UTF-8.
static void take_text(struct bytes *bytes, char *out, size_t size)
{
    size_t length = next_byte(bytes);
    if (length > bytes->left)
        length = bytes->left;
    if (length >= size)
        length = size - 1;
    size_t used = 0;
    while (used < length) {
        const char *text = (const char *)bytes->next + used;
        const size_t character = text_character(text, length - used, NULL);
        if (character == 0 || *text == '\0')
            break;
        memcpy(out + used, text, character);
        used += character;
    }
    out[used] = '\0';
    bytes->next += length;
    bytes->left -= length;
}

static void take_filter(struct bytes *bytes, struct query_filter *filter)
{
    const unsigned which = next_byte(bytes);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (which >> i & 1 && i == QUERY_BY_STATUS)
            (void)snprintf(filter->by[i], QUERY_TEXT_SIZE, "%s",
                           column_enum_text(COLUMN_STATUS, next_byte(bytes) % 3));
        else if (which >> i & 1)
            take_text(bytes, filter->by[i], i == QUERY_BY_RUN ? 37 : QUERY_TEXT_SIZE);
    if (which >> 6 & 1)
        filter->since_ns = take_number(bytes, 8);
    if (which >> 7 & 1)
        filter->until_ns = take_number(bytes, 8);
}

static void take_metric(struct bytes *bytes, struct query *query)
{
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    const struct query_metric *metric = &metrics[next_byte(bytes) % count];
    (void)snprintf(query->metric, sizeof query->metric, "%s.%s",
                   record_kind_info(metric->kind)->name, metric->name);
}

static void make_query(struct bytes *bytes, struct query *query)
{
    unsigned count;
    const struct query_verb *verb = &query_verbs(&count)[next_byte(bytes) % count];
    *query = (struct query){.kind = verb->kind};
    if (verb->kind == QUERY_RECORDS)
        query->records.kind = verb->record_kind;
    const unsigned takes = verb->clauses, has = next_byte(bytes);
    if (verb->subject == QUERY_METRIC || (verb->subject == QUERY_METRIC_OR_NONE && has & 1))
        take_metric(bytes, query);
    if (takes >> QUERY_CLAUSE_WHERE & 1)
        take_filter(bytes, &query->filter);
    for (unsigned i = 0; takes >> QUERY_CLAUSE_BY & 1 && i < has % 7; i++)
        query->group_by[query->group_count++] =
            (enum query_dimension)(next_byte(bytes) % QUERY_DIMENSION_COUNT);
    if (takes >> QUERY_CLAUSE_STEP & 1 && has & 8)
        query->step_ns = take_number(bytes, 1 + has % 8) & INT64_C(0x3fffffffffffffff);
    if (takes >> QUERY_CLAUSE_SLO & 1 && has & 16)
        take_text(bytes, query->average.slo, sizeof query->average.slo);
    if (takes >> QUERY_CLAUSE_LIMIT & 1 && has & 32)
        query->limit = (uint32_t)take_number(bytes, 5);
    if (takes >> QUERY_CLAUSE_OLDEST & 1)
        query->records.oldest_first = has & 64;
    if (takes >> QUERY_CLAUSE_OF & 1 && has & 2)
        take_metric(bytes, query);
    if (takes >> QUERY_CLAUSE_MARGIN & 1 && has & 4)
        query->compare.margin = (double)take_number(bytes, 6) / (double)(INT64_C(1) << 47);
    if (verb->subject != QUERY_BASELINE_OR_NONE)
        return;
    query->compare.force = has & 128;
    take_text(bytes, query->compare.baseline[0], QUERY_KEY_SIZE);
    take_text(bytes, query->compare.baseline[1], QUERY_KEY_SIZE);
    take_filter(bytes, &query->compare.other);
}

// Compares what a line says, which is more than bytes: what stands behind the end of
// a text is no part of it.
static bool filters_equal(const struct query_filter *a, const struct query_filter *b)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (strcmp(a->by[i], b->by[i]) != 0)
            return false;
    return a->since_ns == b->since_ns && a->until_ns == b->until_ns;
}

static bool own_equal(const struct query *a, const struct query *b)
{
    if (a->kind == QUERY_RECORDS)
        return a->records.kind == b->records.kind &&
               a->records.oldest_first == b->records.oldest_first;
    if (a->kind == QUERY_AVERAGE)
        return strcmp(a->average.slo, b->average.slo) == 0;
    if (a->kind == QUERY_COMPARE)
        return a->compare.force == b->compare.force &&
               memcmp(&a->compare.margin, &b->compare.margin, sizeof a->compare.margin) == 0 &&
               strcmp(a->compare.baseline[0], b->compare.baseline[0]) == 0 &&
               strcmp(a->compare.baseline[1], b->compare.baseline[1]) == 0 &&
               filters_equal(&a->compare.other, &b->compare.other);
    return true;
}

static bool queries_equal(const struct query *a, const struct query *b)
{
    bool equal = a->kind == b->kind && a->group_count == b->group_count &&
                 a->step_ns == b->step_ns && a->limit == b->limit &&
                 strcmp(a->metric, b->metric) == 0 && filters_equal(&a->filter, &b->filter) &&
                 own_equal(a, b);
    for (unsigned i = 0; equal && i < a->group_count; i++)
        equal = a->group_by[i] == b->group_by[i];
    return equal;
}

// A query that can be asked, and has a text, reads from it as it was.
static void check_round(const struct query *query)
{
    static char line[QUERY_LINE_SIZE];
    struct query again;
    struct error err = {0};
    if (query_check(query, &err) != STATUS_OK)
        return;
    enum status status = query_text_write(line, sizeof line, query, &err);
    check(status == STATUS_OK || status == STATUS_UNSUPPORTED); // a time that has none
    if (status != STATUS_OK)
        return;
    check(text_is_utf8(line, strlen(line)));
    check(query_text_read(&again, line, when, NULL, NULL, &err) == STATUS_OK);
    check(queries_equal(&again, query));
}

static void check_bytes(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    check(line != NULL);
    memcpy(line, data, size);
    line[size] = '\0';

    struct query query;
    struct query_filter filter;
    struct query_place place = {0};
    struct error err = {0};
    const size_t length = strlen(line);
    if (query_text_read(&query, line, when, NULL, &place, &err) == STATUS_OK) {
        check(query_check(&query, NULL) == STATUS_OK);
        check_round(&query);
    } else {
        check(place.at <= length && place.size <= length - place.at);
        check(strncmp(err.text, "column ", 7) == 0);
        check(!strpbrk(err.text, "\x1b\n\r\t")); // what it quotes is escaped
    }
    if (query_text_read_filter(&filter, line, when, NULL, &place, &err) == STATUS_OK) {
        query = (struct query){.kind = QUERY_SUMMARY, .filter = filter};
        check_round(&query);
    } else {
        check(place.at <= length && place.size <= length - place.at);
    }
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct query query;
    make_query(&bytes, &query);
    check_round(&query);
    check_bytes(data, size);
    return 0;
}
