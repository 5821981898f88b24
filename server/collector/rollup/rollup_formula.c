#include "server/collector/rollup/rollup_formula.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    struct rollup_formula *formula;
    enum record_kind kind;
    const char *at;
    bool failed;
};

static void skip_spaces(struct parser *parser)
{
    while (*parser->at == ' ')
        parser->at++;
}

// Consumes a word or sign, if it comes next.
static bool accept(struct parser *parser, const char *text)
{
    skip_spaces(parser);
    const size_t size = strlen(text);
    if (strncmp(parser->at, text, size) != 0)
        return false;
    parser->at += size;
    return true;
}

static int input_of(struct parser *parser, int column)
{
    struct rollup_formula *formula = parser->formula;
    for (unsigned i = 0; i < formula->column_count; i++)
        if (formula->columns[i] == column)
            return (int)i;
    if (formula->column_count == ROLLUP_INPUTS_MAX) {
        parser->failed = true;
        return -1;
    }
    formula->columns[formula->column_count] = column;
    return (int)formula->column_count++;
}

static struct rollup_operand parse_operand(struct parser *parser)
{
    struct rollup_operand operand = {.input = -1};
    char name[64];
    size_t size = 0;
    skip_spaces(parser);
    if (isdigit((unsigned char)*parser->at)) {
        char *end;
        operand.constant = strtoll(parser->at, &end, 10);
        parser->at = end;
        return operand;
    }
    while ((isalnum((unsigned char)*parser->at) || *parser->at == '_') && size + 1 < sizeof name)
        name[size++] = *parser->at++;
    name[size] = '\0';
    const int column = record_column_find(parser->kind, name);
    parser->failed |= column < 0;
    if (column >= 0)
        operand.input = input_of(parser, column);
    return operand;
}

static void parse_condition(struct parser *parser, struct rollup_side *side)
{
    side->tested = parse_operand(parser);
    if (accept(parser, ">="))
        side->condition = CONDITION_AT_LEAST;
    else if (accept(parser, ">"))
        side->condition = CONDITION_ABOVE;
    else if (accept(parser, "="))
        side->condition = CONDITION_EQUAL;
    side->limit = parse_operand(parser);
    parser->failed |= side->condition == CONDITION_NONE || !accept(parser, "THEN");
}

static struct rollup_side parse_side(struct parser *parser, const char *text)
{
    struct rollup_side side = {.scale = 1};
    parser->at = text;
    if (accept(parser, "CASE WHEN"))
        parse_condition(parser, &side);
    if (accept(parser, "min("))
        side.term = TERM_LEAST;
    const bool is_nested = side.term == TERM_LEAST || accept(parser, "(");
    side.left = parse_operand(parser);
    if (side.term == TERM_LEAST)
        parser->failed |= !accept(parser, ",");
    else if (accept(parser, "-"))
        side.term = TERM_DIFFERENCE;
    if (side.term != TERM_ONE)
        side.right = parse_operand(parser);
    parser->failed |= is_nested && !accept(parser, ")");
    if (accept(parser, "* 1e9"))
        side.scale = 1e9;
    parser->failed |= side.condition != CONDITION_NONE && !accept(parser, "END");
    skip_spaces(parser);
    parser->failed |= *parser->at != '\0';
    return side;
}

bool rollup_formula_parse(struct rollup_formula *out, const struct record_derived *derived)
{
    struct parser parser = {.formula = out, .kind = derived->kind};
    *out = (struct rollup_formula){.column_count = 0};
    out->numerator = parse_side(&parser, derived->numerator);
    out->denominator = parse_side(&parser, derived->denominator);
    return !parser.failed && out->column_count > 0;
}

static int64_t value_of(const struct rollup_operand *operand, const int64_t *inputs)
{
    return operand->input < 0 ? operand->constant : inputs[operand->input];
}

static bool condition_holds(const struct rollup_side *side, const int64_t *inputs)
{
    if (side->condition == CONDITION_NONE)
        return true;
    const int64_t tested = value_of(&side->tested, inputs), limit = value_of(&side->limit, inputs);
    if (side->condition == CONDITION_AT_LEAST)
        return tested >= limit;
    return side->condition == CONDITION_ABOVE ? tested > limit : tested == limit;
}

static double side_value(const struct rollup_side *side, const int64_t *inputs)
{
    const int64_t left = value_of(&side->left, inputs);
    if (side->term == TERM_ONE)
        return (double)left * side->scale;
    const int64_t right = value_of(&side->right, inputs);
    if (side->term == TERM_LEAST)
        return (double)(left < right ? left : right) * side->scale;
    int64_t whole;
    const double difference =
        __builtin_sub_overflow(left, right, &whole) ? (double)left - (double)right : (double)whole;
    return difference * side->scale;
}

bool rollup_formula_value(const struct rollup_formula *formula, const int64_t *inputs,
                          double *numerator, double *denominator)
{
    if (!condition_holds(&formula->numerator, inputs) ||
        !condition_holds(&formula->denominator, inputs))
        return false;
    *numerator = side_value(&formula->numerator, inputs);
    *denominator = side_value(&formula->denominator, inputs);
    return *denominator > 0;
}
