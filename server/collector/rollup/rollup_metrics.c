#include "server/collector/rollup/rollup_metrics.h"

#include <assert.h>
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct rollup_metric *metric;
    enum record_kind kind;
    const char *at;
};

// Consumes a word or sign, if it comes next.
static bool accept(struct parser *parser, const char *text)
{
    parser->at += strspn(parser->at, " ");
    const size_t size = strlen(text);
    if (strncmp(parser->at, text, size) != 0)
        return false;
    parser->at += size;
    return true;
}

// RECORD_DERIVED is our own.
static void expect(struct parser *parser, const char *text)
{
    const bool accepted = accept(parser, text);
    assert(accepted && "RECORD_DERIVED has formulas of the form that rollup_metrics.h describes");
    (void)accepted;
}

static int64_t parse_integer(struct parser *parser)
{
    char *end;
    const int64_t value = strtoll(parser->at, &end, 10);
    parser->at = end;
    return value;
}

static struct rollup_operand parse_operand(struct parser *parser)
{
    struct rollup_metric *metric = parser->metric;
    struct rollup_operand operand = {.input = 0};
    char name[64] = "";
    parser->at += strspn(parser->at, " ");
    if (isdigit((unsigned char)*parser->at))
        return (struct rollup_operand){.input = -1, .constant = parse_integer(parser)};
    const size_t size = strspn(parser->at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    assert(size < sizeof name);
    memcpy(name, parser->at, size);
    parser->at += size;
    const int column = record_column_find(parser->kind, name);
    assert(column >= 0);
    while (operand.input < (int)metric->column_count && metric->columns[operand.input] != column)
        operand.input++;
    assert(operand.input < ROLLUP_INPUTS_MAX);
    metric->columns[operand.input] = column;
    if (operand.input == (int)metric->column_count)
        metric->column_count++;
    return operand;
}

static struct rollup_side parse_side(struct parser *parser, const char *text)
{
    struct rollup_side side = {.tested = {.input = -1},
                               .mask = -1,
                               .at_least = INT64_MIN,
                               .at_most = INT64_MAX,
                               .scale = 1};
    parser->at = text;
    const bool is_tested = accept(parser, "CASE WHEN");
    if (is_tested) {
        side.tested = parse_operand(parser);
        if (accept(parser, "&"))
            side.mask = parse_integer(parser);
        const bool is_least = accept(parser, ">="), is_above = !is_least && accept(parser, ">");
        if (!is_least && !is_above)
            expect(parser, "=");
        side.at_least = parse_integer(parser) + is_above;
        side.at_most = is_least || is_above ? INT64_MAX : side.at_least;
        expect(parser, "THEN");
    }
    if (accept(parser, "min("))
        side.term = TERM_LEAST;
    const bool is_nested = side.term == TERM_LEAST || accept(parser, "(");
    side.left = parse_operand(parser);
    if (side.term == TERM_LEAST)
        expect(parser, ",");
    else if (accept(parser, "-"))
        side.term = TERM_DIFFERENCE;
    if (side.term != TERM_ONE)
        side.right = parse_operand(parser);
    if (is_nested)
        expect(parser, ")");
    if (accept(parser, "* 1e9"))
        side.scale = 1e9;
    side.has_otherwise = is_tested && accept(parser, "ELSE");
    if (side.has_otherwise)
        side.otherwise = (double)parse_integer(parser);
    if (is_tested)
        expect(parser, "END");
    assert(*parser->at == '\0');
    return side;
}

// The operand of each record; constants are put into `room`.
static const int64_t *values_of(const struct rollup_operand *operand,
                                int64_t inputs[][ROLLUP_BLOCK], size_t count, int64_t *room)
{
    if (operand->input >= 0)
        return inputs[operand->input];
    for (size_t i = 0; i < count; i++)
        room[i] = operand->constant;
    return room;
}

static void compute_side(const struct rollup_side *side, int64_t inputs[][ROLLUP_BLOCK],
                         size_t count, double *out)
{
    int64_t rooms[2][ROLLUP_BLOCK], whole;
    const int64_t *left = values_of(&side->left, inputs, count, rooms[0]);
    const int64_t *right = values_of(&side->right, inputs, count, rooms[1]);
    for (size_t i = 0; i < count; i++) {
        if (side->term == TERM_ONE || (side->term == TERM_LEAST && left[i] < right[i]))
            out[i] = (double)left[i];
        else if (side->term == TERM_LEAST)
            out[i] = (double)right[i];
        else
            out[i] = __builtin_sub_overflow(left[i], right[i], &whole)
                         ? (double)left[i] - (double)right[i]
                         : (double)whole;
        out[i] *= side->scale;
    }
}

// Applies the side's test to its values, `out`: those of records that fail it become `otherwise`,
// or the records are marked as having none.
static void test_side(const struct rollup_side *side, int64_t inputs[][ROLLUP_BLOCK], size_t count,
                      double *out, bool *passes)
{
    for (size_t i = 0; i < count && side->tested.input >= 0; i++) {
        const int64_t value = inputs[side->tested.input][i] & side->mask;
        const bool is_met = value >= side->at_least && value <= side->at_most;
        if (!is_met && side->has_otherwise)
            out[i] = side->otherwise;
        passes[i] &= is_met || side->has_otherwise;
    }
}

size_t rollup_metric_ratios(const struct rollup_metric *metric, int64_t inputs[][ROLLUP_BLOCK],
                            size_t count, double *numerators, double *denominators)
{
    bool passes[ROLLUP_BLOCK];
    size_t kept = 0;
    memset(passes, true, count);
    compute_side(&metric->numerator, inputs, count, numerators);
    compute_side(&metric->denominator, inputs, count, denominators);
    test_side(&metric->numerator, inputs, count, numerators, passes);
    test_side(&metric->denominator, inputs, count, denominators, passes);
    for (size_t i = 0; i < count; i++) {
        numerators[kept] = numerators[i];
        denominators[kept] = denominators[i];
        kept += passes[i] && denominators[i] > 0;
    }
    return kept;
}

static struct rollup_metric make_metric(const struct query_metric *metric)
{
    struct rollup_metric out = {.number = rollup_metric_number(metric), .source = ROLLUP_RATIOS};
    if (metric->derived) {
        struct parser parser = {.metric = &out, .kind = metric->kind};
        out.numerator = parse_side(&parser, metric->derived->numerator);
        out.denominator = parse_side(&parser, metric->derived->denominator);
        return out;
    }
    const enum column_type type = record_kind_info(metric->kind)->columns[metric->column].type;
    out.source = ROLLUP_INTEGERS;
    if (type == COLUMN_REAL)
        out.source = ROLLUP_REALS;
    else if (type == COLUMN_BLOB)
        out.source = ROLLUP_SKETCHES;
    out.columns[out.column_count++] = metric->column;
    return out;
}

static struct rollup_metrics all[RECORD_KIND_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_all(void)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const bool has = rollup_has_kind((enum record_kind)kind);
        const unsigned count = has ? rollup_metrics((enum record_kind)kind, metrics) : 0;
        for (unsigned i = 0; i < count; i++)
            all[kind].list[all[kind].count++] = make_metric(metrics[i]);
    }
}

const struct rollup_metrics *rollup_metrics_of(enum record_kind kind)
{
    (void)pthread_once(&once, make_all);
    return &all[kind];
}
