#include "server/workload/zoo/zoo_parser.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/parse.h"

// Parts of a layer's description; those up to WITH_LAST are options.
enum {
    WITH_STRIDE = 1,
    WITH_PAD = 2,
    WITH_DILATION = 4,
    WITH_GROUPS = 8,
    WITH_NOBIAS = 32,
    WITH_NORM = 64,
    WITH_ACTIVATION = 128,
    WITH_LAST = 256,
    WITH_OUT = 512, // arguments before the options
    WITH_KERNEL = 1024,
    WITH_GLOBAL = 2048, // in place of the kernel
    WITH_SOURCES = 4096,
    OF_WEIGHTS = WITH_OUT | WITH_NOBIAS | WITH_NORM | WITH_ACTIVATION,
    OF_CONV = WITH_KERNEL | WITH_STRIDE | WITH_PAD | WITH_DILATION,
    OF_POOL = WITH_KERNEL | WITH_GLOBAL | WITH_STRIDE | WITH_PAD,
};

static const struct option {
    const char *name;
    unsigned int with;
} options[] = {
    {"stride", WITH_STRIDE}, {"pad", WITH_PAD},       {"dilate", WITH_DILATION},
    {"groups", WITH_GROUPS}, {"nobias", WITH_NOBIAS}, {"norm", WITH_NORM},
    {"last", WITH_LAST},
};

struct word {
    const char *name;
    enum zoo_kind kind;
    unsigned int with;
    enum network_activation activation;
};

static const struct word words[] = {
    {"conv", ZOO_CONV, OF_WEIGHTS | OF_CONV | WITH_GROUPS, NETWORK_LINEAR},
    {"depthwise", ZOO_DEPTHWISE, (OF_WEIGHTS & ~WITH_OUT) | OF_CONV, NETWORK_LINEAR},
    {"dense", ZOO_DENSE, OF_WEIGHTS, NETWORK_LINEAR},
    {"embed", ZOO_EMBED, WITH_OUT, NETWORK_LINEAR},
    {"gru", ZOO_GRU, WITH_OUT | WITH_LAST, NETWORK_LINEAR},
    {"maxpool", ZOO_MAX_POOL, OF_POOL, NETWORK_LINEAR},
    {"avgpool", ZOO_AVERAGE_POOL, OF_POOL, NETWORK_LINEAR},
    {"upsample", ZOO_UPSAMPLE, WITH_KERNEL, NETWORK_LINEAR},
    {"add", ZOO_ADD, WITH_SOURCES, NETWORK_LINEAR},
    {"multiply", ZOO_MULTIPLY, WITH_SOURCES, NETWORK_LINEAR},
    {"concat", ZOO_CONCAT, WITH_SOURCES, NETWORK_LINEAR},
    {"relu", ZOO_ACTIVATE, 0, NETWORK_RELU},
    {"relu6", ZOO_ACTIVATE, 0, NETWORK_RELU6},
    {"sigmoid", ZOO_ACTIVATE, 0, NETWORK_SIGMOID},
    {"tanh", ZOO_ACTIVATE, 0, NETWORK_TANH},
    {"softmax", ZOO_ACTIVATE, 0, NETWORK_SOFTMAX},
};

enum { WORDS = sizeof words / sizeof words[0] };

const char *zoo_kind_name(enum zoo_kind kind)
{
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].kind == kind)
            return kind == ZOO_ACTIVATE ? "activation" : words[i].name;
    return "input";
}

static const struct word *find_word(const struct zoo_token *token)
{
    for (size_t i = 0; i < WORDS; i++)
        if (zoo_is(token, words[i].name))
            return &words[i];
    return NULL;
}

static enum status fail_unknown_layer(struct zoo_parser *parser, const struct zoo_token *token)
{
    const char *names[WORDS];
    char shown[ZOO_TOKEN_TEXT_SIZE], text[ZOO_TOKEN_TEXT_SIZE];
    for (size_t i = 0; i < WORDS; i++)
        names[i] = words[i].name;
    (void)snprintf(text, sizeof text, "%.*s", (int)(token->size < 40 ? token->size : 40),
                   token->text);
    const char *near = parse_nearest(text, names, WORDS);
    return zoo_fail(parser, "unknown layer %s%s%s%s", zoo_token_text(shown, token),
                    near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

struct zoo_line *zoo_find_line(struct zoo_parser *parser, const struct zoo_token *token)
{
    char shown[ZOO_TOKEN_TEXT_SIZE];
    for (size_t i = 0; i < parser->line_count; i++)
        if (zoo_is(token, parser->lines[i].name) && parser->lines[i].number != parser->number)
            return &parser->lines[i];
    (void)zoo_fail(parser, "%s is neither an input nor a line above, so models have no cycles",
                   zoo_token_text(shown, token));
    return NULL;
}

// The result of a line.
static enum status find_source(struct zoo_parser *parser, const struct zoo_token *token,
                               size_t *out)
{
    struct zoo_line *line = zoo_find_line(parser, token);
    if (!line)
        return STATUS_CORRUPT;
    line->used = true;
    *out = line->first + line->count - 1;
    return STATUS_OK;
}

enum status zoo_add_line(struct zoo_parser *parser, const char *name, struct zoo_line **out)
{
    for (size_t i = 0; i < parser->line_count; i++)
        if (strcmp(parser->lines[i].name, name) == 0)
            return zoo_fail(parser, "'%s' is already line %u", name, parser->lines[i].number);
    if (!ARRAY_RESERVE(&parser->lines, &parser->line_capacity, parser->line_count + 1))
        return error_no_memory(parser->err, parser->path);
    struct zoo_line *line = &parser->lines[parser->line_count++];
    *line = (struct zoo_line){.first = parser->model->layer_count, .number = parser->number};
    (void)snprintf(line->name, sizeof line->name, "%s", name);
    *out = line;
    return STATUS_OK;
}

enum status zoo_add_layer(struct zoo_parser *parser, const struct zoo_request *request)
{
    struct zoo_model *model = parser->model;
    const size_t count = model->layer_count;
    if (count >= ZOO_LAYERS_MAX)
        return zoo_fail_as(parser, STATUS_UNSUPPORTED, "more than %d layers, inputs included",
                           ZOO_LAYERS_MAX);
    if (!ARRAY_RESERVE(&model->layers, &parser->layer_capacity, count + 1) ||
        !ARRAY_RESERVE(&parser->requests, &parser->request_capacity, count + 1))
        return error_no_memory(parser->err, parser->path);
    parser->requests[count] = *request;
    struct zoo_layer *layer = &model->layers[count];
    *layer = request->layer;
    layer->line = parser->number;
    if (layer->weights_of == SIZE_MAX)
        layer->weights_of = count;
    enum status status = STATUS_OK;
    parser->layer = layer;
    if (layer->kind != ZOO_INPUT)
        status = zoo_infer_shape(parser, request, layer);
    if (status == STATUS_OK)
        status = zoo_add_tensors(parser, layer);
    parser->layer = NULL;
    if (status != STATUS_OK)
        return status;
    model->layer_count++;
    model->macs += layer->macs;
    return STATUS_OK;
}

// ---- Layers of a line -----------------------------------------------------

struct chain {
    struct zoo_line *line;
    size_t flow[ZOO_SOURCES_MAX]; // results that the next layer reads
    size_t flow_count;
};

// Appends a layer behind the results so far.
static enum status append(struct zoo_parser *parser, struct chain *chain,
                          struct zoo_request *request)
{
    struct zoo_layer *layer = &request->layer;
    if (layer->source_count > 1 && layer->kind != ZOO_ADD && layer->kind != ZOO_MULTIPLY &&
        layer->kind != ZOO_CONCAT)
        return zoo_fail(parser, "%s reads one source, not %zu (merge them by concat or add)",
                        zoo_kind_name(layer->kind), layer->source_count);
    (void)snprintf(layer->name, sizeof layer->name, "%.*s.%zu", ZOO_LINE_SIZE, chain->line->name,
                   chain->line->count + 1);
    enum status status = zoo_add_layer(parser, request);
    if (status != STATUS_OK)
        return status;
    chain->line->count++;
    chain->flow[0] = parser->model->layer_count - 1;
    chain->flow_count = 1;
    return STATUS_OK;
}

static bool ends_layer(const struct zoo_token *token)
{
    return token->size == 0 || zoo_is(token, "->") || zoo_is(token, ")");
}

// The bit of the option `token`; 0: there is no such option.
static unsigned int option_of(const struct zoo_token *token)
{
    const struct word *word = find_word(token);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (zoo_is(token, options[i].name))
            return options[i].with;
    return word && word->kind == ZOO_ACTIVATE ? WITH_ACTIVATION : 0;
}

static enum status parse_pad(struct zoo_parser *parser, struct zoo_request *request)
{
    const struct zoo_token value = zoo_peek(parser);
    request->same = zoo_is(&value, "same");
    if (!request->same && !zoo_is(&value, "valid"))
        return zoo_pair(parser, "pad", 0, ZOO_WINDOW_MAX, request->layer.pad);
    (void)zoo_next(parser);
    return STATUS_OK;
}

static enum status parse_option(struct zoo_parser *parser, const struct zoo_token *token,
                                struct zoo_request *request)
{
    struct zoo_layer *layer = &request->layer;
    const struct word *word = find_word(token);
    const unsigned int option = option_of(token);
    if (option == WITH_STRIDE)
        return zoo_pair(parser, "stride", 1, ZOO_WINDOW_MAX, layer->stride);
    if (option == WITH_DILATION)
        return zoo_pair(parser, "dilate", 1, ZOO_WINDOW_MAX, layer->dilation);
    if (option == WITH_GROUPS)
        return zoo_number(parser, "groups", 1, ZOO_SIZE_MAX, &layer->groups);
    if (option == WITH_PAD)
        return parse_pad(parser, request);
    layer->bias = layer->bias && option != WITH_NOBIAS;
    layer->norm = layer->norm || option == WITH_NORM;
    layer->last = layer->last || option == WITH_LAST;
    if (word && option == WITH_ACTIVATION)
        layer->activation = word->activation;
    return STATUS_OK;
}

static enum status parse_options(struct zoo_parser *parser, const struct word *word,
                                 struct zoo_request *request)
{
    unsigned int allowed = word->with, given = 0;
    char shown[ZOO_TOKEN_TEXT_SIZE];
    if (request->global)
        allowed &= ~(unsigned int)(WITH_STRIDE | WITH_PAD);
    for (struct zoo_token token = zoo_peek(parser); !ends_layer(&token); token = zoo_peek(parser)) {
        const unsigned int option = option_of(&token);
        if ((allowed & option) == 0)
            return zoo_fail(parser, "%s: unknown option %s", word->name,
                            zoo_token_text(shown, &token));
        if (given & option)
            return zoo_fail(parser, "%s: %s is a second option of its kind", word->name,
                            zoo_token_text(shown, &token));
        given |= option;
        (void)zoo_next(parser);
        enum status status = parse_option(parser, &token, request);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

// The arguments before the options.
static enum status parse_arguments(struct zoo_parser *parser, const struct word *word,
                                   struct zoo_request *request)
{
    struct zoo_layer *layer = &request->layer;
    enum status status = STATUS_OK;
    if (word->with & WITH_OUT)
        status = zoo_number(parser, word->name, 1, ZOO_SIZE_MAX, &request->out);
    const struct zoo_token token = zoo_peek(parser);
    if (status == STATUS_OK && word->with & WITH_GLOBAL && zoo_is(&token, "global")) {
        (void)zoo_next(parser);
        request->global = true;
    } else if (status == STATUS_OK && word->with & WITH_KERNEL) {
        status = zoo_pair(parser, word->name, 1, ZOO_WINDOW_MAX, layer->kernel);
    }
    if (word->with & WITH_GLOBAL) // of pools
        memcpy(layer->stride, layer->kernel, sizeof layer->stride);
    while (status == STATUS_OK && word->with & WITH_SOURCES) {
        const struct zoo_token name = zoo_peek(parser);
        if (ends_layer(&name))
            break;
        if (layer->source_count == ZOO_SOURCES_MAX)
            return zoo_fail(parser, "%s: more than %d sources", word->name, ZOO_SOURCES_MAX);
        (void)zoo_next(parser);
        status = find_source(parser, &name, &layer->sources[layer->source_count++]);
    }
    return status;
}

// The layers of another line once more, with the same weights, behind another source.
static enum status repeat_line(struct zoo_parser *parser, struct chain *chain)
{
    const struct zoo_token name = zoo_next(parser);
    const struct zoo_line *found = zoo_find_line(parser, &name);
    if (!found)
        return STATUS_CORRUPT;
    const struct zoo_line line = *found;
    if (line.source_count != 1 || chain->flow_count != 1)
        return zoo_fail(parser, "like '%s': both lines must have one source", line.name);
    const size_t source = chain->flow[0], first = parser->model->layer_count;
    for (size_t i = line.first; i < line.first + line.count; i++) {
        struct zoo_request request = parser->requests[i];
        struct zoo_layer *layer = &request.layer;
        for (size_t j = 0; j < layer->source_count; j++)
            if (layer->sources[j] == line.source)
                layer->sources[j] = source;
            else if (layer->sources[j] >= line.first && layer->sources[j] < line.first + line.count)
                layer->sources[j] += first - line.first;
        layer->weights_of = parser->model->layers[i].weights_of;
        enum status status = append(parser, chain, &request);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status parse_layer(struct zoo_parser *parser, struct chain *chain)
{
    const struct zoo_token token = zoo_next(parser);
    if (zoo_is(&token, "like"))
        return repeat_line(parser, chain);
    const struct word *word = find_word(&token);
    if (!word)
        return fail_unknown_layer(parser, &token);
    struct zoo_request request = {
        .layer = {.kind = word->kind,
                  .activation = word->activation,
                  .kernel = {1, 1},
                  .stride = {1, 1},
                  .dilation = {1, 1},
                  .groups = 1,
                  .bias = (word->with & WITH_NOBIAS) != 0,
                  .weights_of = SIZE_MAX,
                  .source_count = chain->flow_count},
        .same = (word->with & WITH_PAD) != 0 && (word->with & WITH_GLOBAL) == 0,
    };
    memcpy(request.layer.sources, chain->flow, chain->flow_count * sizeof chain->flow[0]);
    enum status status = parse_arguments(parser, word, &request);
    if (status == STATUS_OK)
        status = parse_options(parser, word, &request);
    if (status == STATUS_OK)
        status = append(parser, chain, &request);
    return status;
}

// LAYER -> LAYER ..., up to a `)` or the end of the line, which is not consumed.
static enum status parse_layers(struct zoo_parser *parser, struct chain *chain, bool repeated);

// N * (LAYER -> ...): parses the parenthesis N times.
static enum status parse_repeat(struct zoo_parser *parser, struct chain *chain)
{
    uint32_t times;
    enum status status = zoo_number(parser, "repeat", 1, ZOO_LAYERS_MAX, &times);
    if (status == STATUS_OK)
        status = zoo_expect(parser, "*");
    if (status == STATUS_OK)
        status = zoo_expect(parser, "(");
    const char *start = parser->at;
    for (uint32_t i = 0; status == STATUS_OK && i < times; i++) {
        parser->at = start;
        status = parse_layers(parser, chain, true);
    }
    return status == STATUS_OK ? zoo_expect(parser, ")") : status;
}

static enum status parse_layers(struct zoo_parser *parser, struct chain *chain, bool repeated)
{
    for (;;) {
        struct zoo_token token = zoo_peek(parser);
        const bool repeat = token.size > 0 && token.text[0] >= '0' && token.text[0] <= '9';
        if (repeat && repeated)
            return zoo_fail(parser, "a repeat within a repeat");
        enum status status = repeat ? parse_repeat(parser, chain) : parse_layer(parser, chain);
        if (status != STATUS_OK)
            return status;
        token = zoo_peek(parser);
        if (!zoo_is(&token, "->"))
            return STATUS_OK;
        (void)zoo_next(parser);
    }
}

static enum status parse_sources(struct zoo_parser *parser, struct chain *chain)
{
    for (;;) {
        struct zoo_token token = zoo_next(parser);
        if (chain->flow_count == ZOO_SOURCES_MAX)
            return zoo_fail(parser, "more than %d sources", ZOO_SOURCES_MAX);
        enum status status = find_source(parser, &token, &chain->flow[chain->flow_count++]);
        if (status != STATUS_OK)
            return status;
        token = zoo_peek(parser);
        if (!zoo_is(&token, ","))
            return zoo_expect(parser, "->");
        (void)zoo_next(parser);
    }
}

enum status zoo_parse_chain(struct zoo_parser *parser, const char *name)
{
    struct chain chain = {0};
    // The line is added after its sources are found, so that it is none of them.
    enum status status = parse_sources(parser, &chain);
    if (status == STATUS_OK)
        status = zoo_add_line(parser, name, &chain.line);
    if (status != STATUS_OK)
        return status;
    chain.line->source = chain.flow[0];
    chain.line->source_count = chain.flow_count;
    status = parse_layers(parser, &chain, false);
    if (status != STATUS_OK)
        return status;
    const struct zoo_token token = zoo_peek(parser);
    char shown[ZOO_TOKEN_TEXT_SIZE];
    if (token.size > 0)
        return zoo_fail(parser, "expected '->', not %s", zoo_token_text(shown, &token));
    return STATUS_OK;
}
