#include "server/workload/zoo/zoo_model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/workload/byte_source.h"
#include "server/workload/zoo/zoo_parser.h"

// The rest of the line without spaces around it.
static enum status parse_task(struct zoo_parser *parser)
{
    char *out = parser->model->task;
    const size_t size = sizeof parser->model->task;
    const char *from = parser->at, *end = parser->end;
    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    if (end == from || (size_t)(end - from) >= size)
        return zoo_fail(parser, "task: expected 1 to %zu characters, not %zu", size - 1,
                        (size_t)(end - from));
    memcpy(out, from, (size_t)(end - from));
    out[end - from] = '\0';
    parser->at = parser->end;
    return STATUS_OK;
}

static enum status parse_name(struct zoo_parser *parser)
{
    const struct zoo_token token = zoo_next(parser);
    return zoo_name(parser, &token, parser->model->name, sizeof parser->model->name);
}

static enum status parse_category(struct zoo_parser *parser)
{
    const struct zoo_token token = zoo_next(parser);
    return zoo_name(parser, &token, parser->model->category, sizeof parser->model->category);
}

static enum status parse_parameters(struct zoo_parser *parser)
{
    uint32_t stated;
    enum status status = zoo_number(parser, "parameters", 1, ZOO_ELEMENTS_MAX, &stated);
    if (status != STATUS_OK)
        return status;
    parser->model->stated_parameters = stated;
    const struct zoo_token token = zoo_peek(parser);
    parser->model->exactly = zoo_is(&token, "exactly");
    if (parser->model->exactly)
        (void)zoo_next(parser);
    return STATUS_OK;
}

// The shape of an input: 3x96x96, 40x49, 250, or ids 64 of 256.
static enum status parse_input_shape(struct zoo_parser *parser, struct zoo_layer *layer)
{
    const struct zoo_token token = zoo_peek(parser);
    uint32_t sizes[ZOO_SIZES_MAX];
    if (zoo_is(&token, "ids")) {
        (void)zoo_next(parser);
        layer->shape = (struct zoo_shape){1, 1, 1, 2};
        enum status status = zoo_number(parser, "ids", 1, ZOO_SIZE_MAX, &layer->shape.width);
        if (status == STATUS_OK)
            status = zoo_expect(parser, "of");
        if (status == STATUS_OK)
            status = zoo_number(parser, "vocabulary", 2, ZOO_IDS_MAX, &layer->vocabulary);
        return status;
    }
    struct zoo_shape *shape = &layer->shape;
    *shape = (struct zoo_shape){.height = 1, .width = 1};
    enum status status =
        zoo_sizes(parser, "input", 1, ZOO_SIZE_MAX, ZOO_SIZES_MAX, sizes, &shape->rank);
    if (status != STATUS_OK)
        return status;
    shape->channels = sizes[0];
    if (shape->rank > 1)
        shape->width = sizes[shape->rank - 1];
    if (shape->rank > 2)
        shape->height = sizes[1];
    if ((uint64_t)sizes[0] * shape->width > ZOO_ELEMENTS_MAX / shape->height)
        return zoo_fail_as(parser, STATUS_UNSUPPORTED, "input %s: more than %d elements",
                           layer->name, ZOO_ELEMENTS_MAX);
    return STATUS_OK;
}

static enum status parse_input(struct zoo_parser *parser)
{
    struct zoo_model *model = parser->model;
    struct zoo_request request = {.layer = {.kind = ZOO_INPUT, .weights_of = SIZE_MAX}};
    struct zoo_line *line;
    const struct zoo_token name = zoo_next(parser);
    if (model->input_count == ZOO_INPUTS_MAX)
        return zoo_fail(parser, "more than %d inputs", ZOO_INPUTS_MAX);
    enum status status = zoo_name(parser, &name, request.layer.name, ZOO_LINE_SIZE);
    if (status == STATUS_OK)
        status = parse_input_shape(parser, &request.layer);
    if (status == STATUS_OK)
        status = zoo_add_line(parser, request.layer.name, &line);
    if (status == STATUS_OK)
        status = zoo_add_layer(parser, &request);
    if (status != STATUS_OK)
        return status;
    line->count = 1;
    model->inputs[model->input_count++] = line->first;
    return STATUS_OK;
}

static enum status parse_output(struct zoo_parser *parser)
{
    struct zoo_model *model = parser->model;
    struct zoo_token token;
    do {
        token = zoo_next(parser);
        struct zoo_line *line = zoo_find_line(parser, &token);
        if (!line)
            return STATUS_CORRUPT;
        const size_t layer = line->first + line->count - 1;
        if (model->output_count == ZOO_OUTPUTS_MAX)
            return zoo_fail(parser, "more than %d outputs", ZOO_OUTPUTS_MAX);
        if (line->source_count == 0)
            return zoo_fail(parser, "the input '%s' is no output", line->name);
        for (size_t i = 0; i < model->output_count; i++)
            if (model->outputs[i] == layer)
                return zoo_fail(parser, "output '%s' is there twice", line->name);
        line->used = true;
        model->outputs[model->output_count++] = layer;
        token = zoo_peek(parser);
        if (zoo_is(&token, ","))
            (void)zoo_next(parser);
    } while (zoo_is(&token, ","));
    return STATUS_OK;
}

// Lines KEY: VALUE.
static const struct key {
    const char *name;
    enum status (*parse)(struct zoo_parser *parser);
    bool repeated;
} keys[] = {
    {"name", parse_name, false},  {"category", parse_category, false},
    {"task", parse_task, false},  {"parameters", parse_parameters, false},
    {"input", parse_input, true}, {"output", parse_output, false},
};

enum { KEYS = sizeof keys / sizeof keys[0] };

static enum status parse_key(struct zoo_parser *parser, const struct zoo_token *name,
                             bool seen[KEYS])
{
    char shown[ZOO_TOKEN_TEXT_SIZE];
    for (size_t i = 0; i < KEYS; i++) {
        if (!zoo_is(name, keys[i].name))
            continue;
        if (seen[i] && !keys[i].repeated)
            return zoo_fail(parser, "'%s:' is there twice", keys[i].name);
        seen[i] = true;
        enum status status = keys[i].parse(parser);
        const struct zoo_token rest = zoo_peek(parser);
        if (status == STATUS_OK && rest.size > 0)
            return zoo_fail(parser, "%s: unexpected %s", keys[i].name,
                            zoo_token_text(shown, &rest));
        return status;
    }
    return zoo_fail(parser, "unknown key %s", zoo_token_text(shown, name));
}

static enum status parse_line(struct zoo_parser *parser, bool seen[KEYS])
{
    char name[ZOO_LINE_SIZE];
    const struct zoo_token first = zoo_next(parser);
    if (first.size == 0)
        return STATUS_OK;
    const struct zoo_token mark = zoo_next(parser);
    if (zoo_is(&mark, ":"))
        return parse_key(parser, &first, seen);
    if (!zoo_is(&mark, "="))
        return zoo_fail(parser, "neither KEY: VALUE nor NAME = SOURCE -> LAYER");
    enum status status = zoo_name(parser, &first, name, sizeof name);
    return status == STATUS_OK ? zoo_parse_chain(parser, name) : status;
}

static enum status check_bytes(struct zoo_parser *parser)
{
    for (const char *at = parser->at; at < parser->end; at++)
        if ((*at < ' ' || *at > '~') && *at != '\t' && *at != '\r')
            return zoo_fail(parser, "byte 0x%02x is not printable ASCII",
                            (unsigned int)(unsigned char)*at);
    return STATUS_OK;
}

static enum status parse_lines(struct zoo_parser *parser, const char *text, size_t size)
{
    bool seen[KEYS] = {false};
    const char *end = text + size;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        if (!line_end)
            line_end = end;
        parser->number++;
        parser->at = text;
        parser->end = line_end;
        status = check_bytes(parser);
        const char *comment = memchr(text, '#', (size_t)(line_end - text));
        if (comment)
            parser->end = comment;
        if (status == STATUS_OK)
            status = parse_line(parser, seen);
        text = line_end < end ? line_end + 1 : end;
    }
    return status;
}

static enum status check_parameters(const struct zoo_parser *parser)
{
    const struct zoo_model *model = parser->model;
    const double stated = model->stated_parameters, counted = (double)model->parameters;
    const double allowed = model->exactly ? 0.0 : 0.1 * stated;
    if (stated > 0.0 && fabs(counted - stated) > allowed)
        return error_set(parser->err, STATUS_CORRUPT,
                         "%s: %.0f parameters, but %.0f are stated (%s)", parser->path, counted,
                         stated, model->exactly ? "exactly" : "10 % are allowed");
    return STATUS_OK;
}

// Checks on the whole model; without `output:` the last line is the output.
static enum status finish(struct zoo_parser *parser)
{
    struct zoo_model *model = parser->model;
    if (model->name[0] == '\0' || model->input_count == 0 ||
        model->layer_count == model->input_count)
        return error_set(parser->err, STATUS_CORRUPT, "%s: no %s", parser->path,
                         model->name[0] == '\0'    ? "line 'name:'"
                         : model->input_count == 0 ? "line 'input:'"
                                                   : "layers");
    if (model->category[0] == '\0')
        (void)snprintf(model->category, sizeof model->category, "other");
    struct zoo_line *last = &parser->lines[parser->line_count - 1];
    if (model->output_count == 0 && last->source_count > 0) {
        model->outputs[model->output_count++] = model->layer_count - 1;
        last->used = true;
    }
    for (size_t i = 0; i < parser->line_count; i++) {
        const struct zoo_line *line = &parser->lines[i];
        parser->number = line->number;
        if (!line->used)
            return zoo_fail(parser, "'%s' is not used by a line below, and no output", line->name);
    }
    return check_parameters(parser);
}

enum status zoo_model_parse(struct zoo_model **out, const char *path, const char *text, size_t size,
                            struct error *err)
{
    if (size > ZOO_TEXT_MAX)
        return error_set(err, STATUS_UNSUPPORTED, "%s: a description of %zu bytes (at most %d)",
                         path, size, ZOO_TEXT_MAX);
    struct zoo_parser parser = {.path = path, .err = err};
    parser.model = calloc(1, sizeof *parser.model);
    if (!parser.model || !(parser.model->text = calloc(size + 1, 1))) {
        zoo_model_free(parser.model);
        return error_no_memory(err, path);
    }
    memcpy(parser.model->text, text, size);
    enum status status = parse_lines(&parser, text, size);
    if (status == STATUS_OK)
        status = finish(&parser);
    free(parser.requests);
    free(parser.lines);
    if (status != STATUS_OK) {
        zoo_model_free(parser.model);
        return status;
    }
    *out = parser.model;
    return STATUS_OK;
}

enum status zoo_model_read(struct zoo_model **out, const char *path, struct error *err)
{
    struct byte_source source;
    enum status status = byte_source_open(&source, path, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "%s", path);
    char *text = NULL;
    if (source.size > ZOO_TEXT_MAX)
        status = error_set(err, STATUS_UNSUPPORTED, "%s: a description of %llu bytes (at most %d)",
                           path, (unsigned long long)source.size, ZOO_TEXT_MAX);
    else if (!(text = malloc(source.size + 1)))
        status = error_no_memory(err, path);
    else if ((status = byte_source_read(&source, 0, text, source.size, err)) != STATUS_OK)
        (void)error_prefix(err, status, "%s", path);
    if (status == STATUS_OK)
        status = zoo_model_parse(out, path, text, source.size, err);
    free(text);
    byte_source_close(&source);
    return status;
}

const struct zoo_text *zoo_text_find(const char *name)
{
    for (size_t i = 0; i < zoo_text_count; i++)
        if (strcasecmp(zoo_texts[i].name, name) == 0)
            return &zoo_texts[i];
    return NULL;
}

void zoo_model_free(struct zoo_model *model)
{
    if (!model)
        return;
    free(model->layers);
    free(model->tensors);
    free(model->text);
    free(model);
}
