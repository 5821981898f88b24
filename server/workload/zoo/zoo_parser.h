// Internal parts of the parser of small models: the lexer (zoo_lexer.c), the layers of a line
// (zoo_chain.c), and their shapes and weight tensors (zoo_shape.c).
#pragma once

#include "server/workload/zoo/zoo_model.h"

enum {
    ZOO_LINE_SIZE = ZOO_NAME_SIZE - 8,    // of a line's name, which a layer's place follows
    ZOO_WINDOW_MAX = 1024,                // kernel, stride, dilation, padding
    ZOO_SIZE_MAX = 1024 * 1024,           // channels, height, width
    ZOO_ELEMENTS_MAX = 1024 * 1024 * 256, // of an activation with its padding, and of all weights
};

// A word or one of -> , = ( ) * : of the current line; `size` 0: the end of the line.
struct zoo_token {
    const char *text;
    size_t size;
};

// A layer as the text describes it, before its shape is known.
struct zoo_request {
    struct zoo_layer layer; // pad[0] and pad[1] on both sides, if not `same`
    uint32_t out;
    bool same, global;
};

// A line NAME = ...: the layers first..first + count - 1.
struct zoo_line {
    char name[ZOO_NAME_SIZE];
    size_t first, count;
    size_t source; // of its first layer, if it has only one
    size_t source_count;
    unsigned int number;
    bool used;
};

// The caller zeroes it and sets `path`; `lines`, `requests` and `model` are freed by the caller.
struct zoo_parser {
    const char *path;
    struct error *err;
    const char *at, *end;          // the rest of the current line
    unsigned int number;           // of the current line, from 1
    const struct zoo_layer *layer; // being inferred, for messages; NULL: none
    struct zoo_model *model;
    struct zoo_request *requests; // one per layer
    struct zoo_line *lines;       // inputs too: one layer, no source
    size_t line_count;
    size_t request_capacity, layer_capacity, tensor_capacity, line_capacity;
};

// ---- zoo_lexer.c ----------------------------------------------------------

// Fails with "PATH: line N: ", and "LAYER (KIND): " if the shape of a layer is inferred.
enum status zoo_fail_as(const struct zoo_parser *parser, enum status status, const char *format,
                        ...) __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__
// Tells the analyzer the result, as error_set does.
#define zoo_fail_as(parser, status, ...)                                                           \
    ((void)(zoo_fail_as)(parser, status, __VA_ARGS__), (status))
#endif

#define zoo_fail(parser, ...) zoo_fail_as(parser, STATUS_CORRUPT, __VA_ARGS__)

// Consumes a token; zoo_peek does not.
struct zoo_token zoo_next(struct zoo_parser *parser);
struct zoo_token zoo_peek(const struct zoo_parser *parser);

bool zoo_is(const struct zoo_token *token, const char *word);

// For messages: at most 40 characters of the token, "the end of the line" if it is empty.
enum { ZOO_TOKEN_TEXT_SIZE = 48 };
const char *zoo_token_text(char text[ZOO_TOKEN_TEXT_SIZE], const struct zoo_token *token);

// Fails unless the next token is `word`.
MUST_CHECK enum status zoo_expect(struct zoo_parser *parser, const char *word);

// Parses up to `most` numbers minimum..maximum of "A x B x C" without spaces; `what` names them in
// messages.  Of a pair, "3" is 3 and 3.
enum { ZOO_SIZES_MAX = 3 };
MUST_CHECK enum status zoo_sizes(struct zoo_parser *parser, const char *what, uint32_t minimum,
                                 uint32_t maximum, unsigned int most, uint32_t *out,
                                 unsigned int *count);
MUST_CHECK enum status zoo_number(struct zoo_parser *parser, const char *what, uint32_t minimum,
                                  uint32_t maximum, uint32_t *out);
MUST_CHECK enum status zoo_pair(struct zoo_parser *parser, const char *what, uint32_t minimum,
                                uint32_t maximum, uint32_t out[2]);

// Copies a name: a letter, then letters, digits, `_` and `-`, less than `size`.
MUST_CHECK enum status zoo_name(const struct zoo_parser *parser, const struct zoo_token *token,
                                char *out, size_t size);

// ---- zoo_chain.c ----------------------------------------------------------

// Parses "SOURCE, ... -> LAYER -> ...", the rest of a line called `name`.
MUST_CHECK enum status zoo_parse_chain(struct zoo_parser *parser, const char *name);

// The input or line of that name; NULL after an error.
struct zoo_line *zoo_find_line(struct zoo_parser *parser, const struct zoo_token *token);

// Adds a line without layers.  Fails if the name is taken.
MUST_CHECK enum status zoo_add_line(struct zoo_parser *parser, const char *name,
                                    struct zoo_line **out);

// Appends a layer to the model; its shape, weights and multiplications are inferred.  Sets its
// `weights_of` to its own index if it is SIZE_MAX.
MUST_CHECK enum status zoo_add_layer(struct zoo_parser *parser, const struct zoo_request *request);

// ---- zoo_shape.c ----------------------------------------------------------

// Checks the shapes of the sources and sets those of the result, and `pad`, `groups` and `macs`.
MUST_CHECK enum status zoo_infer_shape(const struct zoo_parser *parser,
                                       const struct zoo_request *request, struct zoo_layer *layer);

// Appends the weight tensors of `layer` to the model, or, if it shares weights, checks that its
// tensors have the same dimensions.
MUST_CHECK enum status zoo_add_tensors(struct zoo_parser *parser, struct zoo_layer *layer);

// The word of a kind of layer, such as "conv".
const char *zoo_kind_name(enum zoo_kind kind);
