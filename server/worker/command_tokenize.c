#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/sys/files.h"
#include "server/worker/worker.h"
#include "server/workload/llm/tokenizer/chat_template.h"
#include "server/workload/llm/gguf.h"
#include "server/workload/llm/tokenizer/tokenizer.h"

static struct {
    const char *model;
    int chat;
    bool parse_special, no_special, json;
} options;

#define OPTION_TARGET __typeof__(options)

static const struct option rows[] = {
    {"model", "FILE.gguf", "the model whose tokenizer is used", TEXT_AT(model)},
    {"chat", "TEMPLATE", CHAT_OPTION_HELP, CHOICE_AT(chat, chat_template_word)},
    {"parse-special", NULL, "control tokens in the text, as <s>, become those tokens",
     FLAG_AT(parse_special)},
    {"no-special", NULL, "add no tokens for the beginning and the end of the text",
     FLAG_AT(no_special)},
    {"json", NULL, "print one object", FLAG_AT(json)},
};

// Reads standard input to its end; of a text that is too long, enough to tell.  The caller frees
// `*text`.
static enum status read_input(char **text, size_t *size, struct error *err)
{
    enum { SIZE_MOST = TOKENIZER_TEXT_MAX + 1 };
    *text = malloc(SIZE_MOST);
    if (!*text)
        return error_no_memory(err, "text");
    *size = fread(*text, 1, SIZE_MOST, stdin);
    if (ferror(stdin))
        return error_set(err, STATUS_IO, "standard input: cannot be read: %s", strerror(errno));
    return STATUS_OK;
}

static enum status open_tokenizer(struct tokenizer **out, const struct chat_template **chat,
                                  struct error *err)
{
    struct byte_source source = {0};
    struct gguf *gguf = NULL;
    enum status status = gguf_open(&source, options.model, err);
    if (status == STATUS_OK)
        status = gguf_read_all(&gguf, &source, NULL, err);
    byte_source_close(&source);
    if (status == STATUS_OK)
        status = tokenizer_new(out, gguf, NULL, err);
    if (status == STATUS_OK)
        status = chat_template_choose(chat, (unsigned int)options.chat, gguf, err);
    gguf_free(gguf);
    return status == STATUS_OK ? status : gguf_name_error(err, status, options.model);
}

static enum status encode(const struct tokenizer *tokenizer, const struct chat_template *chat,
                          const char *text, size_t size, struct token_list *out, struct error *err)
{
    if (chat)
        return chat_template_encode(chat, tokenizer, text, size, out, err);
    const struct encode_options how = {.add_special = !options.no_special,
                                       .parse_special = options.parse_special};
    return tokenizer_encode(tokenizer, text, size, how, out, err);
}

// Writes a token's text, of a control token its name, and a NUL to `out`; returns its length.
static size_t describe(const struct tokenizer *tokenizer, uint32_t id, char out[TOKEN_SIZE_MAX + 1])
{
    size_t size = 0;
    const char *name = tokenizer_control_name(tokenizer, id, &size);
    if (name)
        memcpy(out, name, size);
    else
        size = tokenizer_piece(tokenizer, id, out);
    out[size] = '\0';
    return size;
}

// Bytes as hexadecimal digits, valid until the next call.
static const char *hex_of(const char *bytes, size_t size)
{
    static char hex[2 * TOKEN_SIZE_MAX + 1];
    for (size_t i = 0; i < size; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)bytes[i]);
    hex[2 * size] = '\0';
    return hex;
}

static void print_tokens(const struct tokenizer *tokenizer, const struct token_list *tokens)
{
    struct json_writer json = files_json(stdout);
    if (options.json) {
        json_write_begin(&json, NULL);
        json_write_begin_list(&json, "tokens");
    }
    for (size_t i = 0; i < tokens->count; i++) {
        static char piece[TOKEN_SIZE_MAX + 1], escaped[4 * TOKEN_SIZE_MAX + 1];
        const size_t size = describe(tokenizer, tokens->ids[i], piece);
        if (options.json) {
            json_write_begin(&json, NULL);
            json_write_uint(&json, "id", tokens->ids[i]);
            json_write_text(&json, "piece", piece);
            json_write_text(&json, "hex", hex_of(piece, size));
            json_write_end(&json);
        } else {
            (void)printf("%6u  '%s'\n", tokens->ids[i],
                         text_escape(escaped, sizeof escaped, piece, size));
        }
    }
    if (options.json) {
        json_write_end_list(&json);
        json_write_end(&json);
        (void)fputc('\n', stdout);
    }
}

static enum status tokenize(const char *word, struct error *err)
{
    struct tokenizer *tokenizer = NULL;
    const struct chat_template *chat = NULL;
    struct token_list tokens = {0};
    char *input = NULL;
    size_t size = strlen(word);
    enum status status = open_tokenizer(&tokenizer, &chat, err);
    if (status == STATUS_OK && strcmp(word, "-") == 0) {
        status = read_input(&input, &size, err);
        word = input;
    }
    if (status == STATUS_OK)
        status = encode(tokenizer, chat, word, size, &tokens, err);
    if (status == STATUS_OK)
        print_tokens(tokenizer, &tokens);
    free(tokens.ids);
    free(input);
    tokenizer_free(tokenizer);
    return status;
}

static int run(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    (void)worker;
    enum status status = STATUS_INVALID;
    if (!options.model)
        (void)error_set(&err, status, "tokenize: no model (give --model FILE.gguf)");
    else if (count != 1)
        (void)error_set(&err, status,
                        "tokenize: one text is needed (TEXT, or - for standard "
                        "input)");
    else if (options.chat != CHAT_NONE && (options.parse_special || options.no_special))
        (void)error_set(&err, status,
                        "tokenize: --chat decides about control tokens (leave out "
                        "--parse-special and --no-special)");
    else
        status = tokenize(words[0], &err);
    return status == STATUS_OK ? WORKER_DONE : worker_fail(&err);
}

const struct worker_command command_tokenize = {
    .name = "tokenize",
    .summary = "print the tokens of a text",
    .words = "TEXT|-",
    .options = {.options = rows, .count = sizeof rows / sizeof *rows, .target = &options},
    .run = run,
};
