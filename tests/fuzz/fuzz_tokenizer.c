// The tokenizer under libFuzzer: a vocabulary built from the input, mostly right, and
// the rest of the input as text.

#include "server/workload/llm/text_stream.h"
#include "server/workload/llm/tokenizer/tokenizer.h"
#include "tests/fuzz/gguf_feed.h"
#include "tests/fuzz/fuzz.h"

static void encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                   struct encode_options options)
{
    struct token_list list;
    struct error err = {0};
    if (tokenizer_encode(tokenizer, text, size, options, &list, &err) != STATUS_OK) {
        check(err.text[0] != '\0' && !list.ids);
        return;
    }
    // A space before each stretch between special tokens, BOS and EOS; a space mark
    // that is no token takes three bytes.
    check(list.count <= 6 * size + 5);
    struct text_stream stream = {0};
    char out[TEXT_STREAM_OUT_SIZE];
    for (size_t i = 0; i < list.count; i++) {
        check(list.ids[i] < tokenizer_count(tokenizer));
        char piece[TOKEN_SIZE_MAX];
        size_t piece_size = tokenizer_piece(tokenizer, list.ids[i], piece);
        for (size_t j = 0; j < piece_size; j++)
            check(text_stream_put(&stream, piece[j], out) <= sizeof out);
    }
    check(text_stream_finish(&stream, out) <= sizeof out);
    free(list.ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct byte_source source;
    struct gguf *gguf = NULL;
    struct tokenizer *tokenizer = NULL;
    size_t file_size;
    uint64_t choice = feed_take(&feed, 1);
    size_t text_size = feed.size / 2;
    feed.size -= text_size;
    const char *text = (const char *)feed.data + feed.size;
    unsigned char *file = feed_gguf(&feed, FEED_VOCABULARY, &file_size);
    byte_source_from_memory(&source, file, file_size);
    struct encode_options options = {.add_special = choice & 1, .parse_special = choice & 2};
    options.plain_to = choice & 4 ? text_size / 2 : 0;
    options.plain_from = (choice >> 3) % (options.plain_to + 1);
    if (gguf_read(&gguf, &source, NULL, NULL) == STATUS_OK &&
        tokenizer_new(&tokenizer, gguf, NULL, NULL) == STATUS_OK)
        encode(tokenizer, text, text_size, options);
    tokenizer_free(tokenizer);
    gguf_free(gguf);
    free(file);
    return 0;
}
