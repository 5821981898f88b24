// Tokenizers over vocabularies made here.

#include "server/workload/llm/gguf_writer.h"
#include "server/workload/llm/tokenizer/tokenizer.h"
#include "server/workload/llm/tokenizer/vocabulary.h"
#include "tests/support/test.h"
#include "tests/unit/workload/model_files.h"

#define MARK "\u2581"

struct piece {
    const char *text;
    float score;
    int32_t kind;
};

static const struct piece pieces[] = {
    {"<unk>", 0, TOKEN_UNKNOWN},         // 0
    {"<s>", 0, TOKEN_CONTROL},           // 1
    {"</s>", 0, TOKEN_CONTROL},          // 2
    {MARK, -1, TOKEN_NORMAL},            // 3
    {"a", -2, TOKEN_NORMAL},             // 4
    {"b", -3, TOKEN_NORMAL},             // 5
    {"c", -4, TOKEN_NORMAL},             // 6
    {"ab", -10, TOKEN_NORMAL},           // 7
    {"bc", -9, TOKEN_NORMAL},            // 8, better than ab
    {"abc", -20, TOKEN_NORMAL},          // 9
    {MARK "a", -30, TOKEN_NORMAL},       // 10
    {"aa", -5, TOKEN_NORMAL},            // 11
    {"aaaa", -6, TOKEN_NORMAL},          // 12
    {"<|user|>", 0, TOKEN_USER_DEFINED}, // 13
    {"<0x64>", 0, TOKEN_BYTE},           // 14: d
    {"\u00e9", -7, TOKEN_NORMAL},        // 15: e with an accent
    {"<0xC3>", 0, TOKEN_BYTE},           // 16
    {"<|user|><s>", 0, TOKEN_CONTROL},   // 17, longer than the tokens in it
    {"a", -2, TOKEN_NORMAL},             // 18: spelled like 4, and found instead of it
    {"<0xc3>", 0, TOKEN_BYTE},           // 19: another spelling of 16
};

struct changes {
    const char *model;    // of the tokenizer; NULL: "llama"
    size_t scores, kinds; // how many fewer than tokens
    int no_tokens, no_scores, no_kinds, no_space, no_bos, eos;
    uint32_t bos;
    int32_t bad_kind;
    int nan_score;
};

static const char *write_vocabulary(const struct changes *c)
{
    const char *texts[COUNT_OF(pieces)];
    float scores[COUNT_OF(pieces)];
    int32_t kinds[COUNT_OF(pieces)];
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        texts[i] = pieces[i].text;
        scores[i] = pieces[i].score;
        kinds[i] = pieces[i].kind;
    }
    if (c->nan_score)
        memcpy(&scores[3], &(uint32_t){0x7fc00000}, sizeof scores[3]);
    if (c->bad_kind)
        kinds[4] = c->bad_kind;
    struct gguf_writer *writer = NULL;
    const char *path = model_files_path("vocabulary.gguf");
    assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
    gguf_writer_text(writer, "tokenizer.ggml.model", c->model ? c->model : "llama");
    if (!c->no_tokens)
        gguf_writer_texts(writer, "tokenizer.ggml.tokens", texts, COUNT_OF(pieces));
    if (!c->no_scores)
        gguf_writer_array(writer, "tokenizer.ggml.scores", GGUF_FLOAT32, scores,
                          COUNT_OF(pieces) - c->scores);
    if (!c->no_kinds)
        gguf_writer_array(writer, "tokenizer.ggml.token_type", GGUF_INT32, kinds,
                          COUNT_OF(pieces) - c->kinds);
    if (c->no_space)
        gguf_writer_bool(writer, "tokenizer.ggml.add_space_prefix", false);
    if (c->no_bos)
        gguf_writer_bool(writer, "tokenizer.ggml.add_bos_token", false);
    if (c->eos)
        gguf_writer_bool(writer, "tokenizer.ggml.add_eos_token", true);
    if (c->bos)
        gguf_writer_uint(writer, "tokenizer.ggml.bos_token_id", c->bos);
    assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);
    return path;
}

static enum status open_path(const char *path, struct tokenizer **out, struct error *err)
{
    struct byte_source source;
    struct gguf *gguf = NULL;
    assert_int_equal(byte_source_open(&source, path, NULL), STATUS_OK);
    assert_int_equal(gguf_read(&gguf, &source, NULL, NULL), STATUS_OK);
    enum status status = tokenizer_new(out, gguf, NULL, err);
    gguf_free(gguf);
    byte_source_close(&source);
    return status;
}

static struct tokenizer *open_changed(struct changes changes)
{
    struct tokenizer *tokenizer = NULL;
    struct error err = {0};
    expect_ok(open_path(write_vocabulary(&changes), &tokenizer, &err), &err);
    return tokenizer;
}

static void check(const struct tokenizer *tokenizer, const char *text,
                  struct encode_options options, const uint32_t *ids, size_t count)
{
    struct token_list list;
    struct error err = {0};
    if (tokenizer_encode(tokenizer, text, strlen(text), options, &list, &err) != STATUS_OK)
        fail_msg("'%s': %s", text, err.text);
    if (list.count != count)
        fail_msg("'%s': %zu ids, not %zu", text, list.count, count);
    for (size_t i = 0; i < count; i++)
        if (list.ids[i] != ids[i])
            fail_msg("'%s': id %zu is %u, not %u", text, i, list.ids[i], ids[i]);
    free(list.ids);
}

#define IDS(...) (const uint32_t[]){__VA_ARGS__}, COUNT_OF(((const uint32_t[]){__VA_ARGS__}))

static const struct encode_options plain = {0};
static const struct encode_options with_special = {.add_special = true};
static const struct encode_options parsed = {.parse_special = true};

TEST_CASE(merges_best_first)
{
    struct tokenizer *t = open_changed((struct changes){.no_space = 1});
    check(t, "b", plain, IDS(5));
    check(t, "ab", plain, IDS(7));
    check(t, "abc", plain, IDS(9)); // bc first, then a + bc
    check(t, "abcb", plain, IDS(9, 5));
    check(t, "aa", plain, IDS(11));
    check(t, "aaa", plain, IDS(11, 18)); // the left pair of two equal ones
    check(t, "aaaaa", plain, IDS(12, 18));
    check(t, "aaab", plain, IDS(11, 7));
    check(t, " a", plain, IDS(10));
    check(t, "  a", plain, IDS(3, 10));
    tokenizer_free(t);
    t = open_changed((struct changes){0});
    check(t, "a", plain, IDS(10)); // a space is put before
    check(t, "b", plain, IDS(3, 5));
    check(t, " a", plain, IDS(3, 10));
    tokenizer_free(t);
    tokenizer_free(NULL);
}

TEST_CASE(spells_bytes)
{
    struct tokenizer *t = open_changed((struct changes){.no_space = 1});
    struct token_list list;
    struct error err = {0};
    check(t, "d", plain, IDS(14));
    check(t, "adb", plain, IDS(18, 14, 5));
    check(t, "\u00e9", plain, IDS(15));
    check(t, "\xc3", plain, IDS(16)); // cut short
    assert_int_equal(tokenizer_encode(t, "e", 1, plain, &list, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "0x65"));
    assert_null(list.ids);
    assert_int_equal(tokenizer_encode(t, "a\0b", 3, plain, &list, &err), STATUS_INVALID);
    assert_int_equal(tokenizer_encode(t, "", SIZE_MAX, plain, &list, &err), STATUS_INVALID);
    tokenizer_free(t);
}

TEST_CASE(special_tokens)
{
    struct tokenizer *t = open_changed((struct changes){0});
    assert_true(tokenizer_is_end(t, 2));
    assert_false(tokenizer_is_end(t, 1));
    assert_false(tokenizer_is_end(t, TOKEN_NONE));
    check(t, "a", with_special, IDS(1, 10));
    check(t, "", with_special, IDS(1));
    check(t, "<s>", parsed, IDS(1));
    check(t, "a</s>b<s>", parsed, IDS(10, 2, 3, 5, 1)); // a space again behind one
    check(t, "<s><s>", parsed, IDS(1, 1));
    check(t, "<|user|>a", plain, IDS(13, 10)); // user-defined ones always
    check(t, "<|user|><s>", parsed, IDS(17));  // the longest first
    check(t, "a<|user|><s>b", parsed, IDS(10, 17, 3, 5));
    tokenizer_free(t);

    t = open_changed((struct changes){.no_bos = 1, .eos = 1});
    check(t, "a", with_special, IDS(10, 2));
    tokenizer_free(t);
    t = open_changed((struct changes){.bos = TOKEN_NONE});
    check(t, "a", with_special, IDS(10));
    tokenizer_free(t);
}

TEST_CASE(empty_text)
{
    struct tokenizer *t = open_changed((struct changes){0});
    struct token_list list;
    assert_int_equal(tokenizer_encode(t, "", 0, plain, &list, NULL), STATUS_OK);
    assert_int_equal(list.count, 0);
    free(list.ids);
    tokenizer_free(t);
}

TEST_CASE(pieces_of_tokens)
{
    struct tokenizer *t = open_changed((struct changes){0});
    static const struct {
        uint32_t id;
        const char *text;
    } cases[] = {{0, ""},          {1, ""},          {3, " "},
                 {10, " a"},       {14, "d"},        {9, "abc"},
                 {16, "\xc3"},     {13, "<|user|>"}, {COUNT_OF(pieces), ""},
                 {TOKEN_NONE, ""}, {19, "\xc3"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char piece[TOKEN_SIZE_MAX];
        size_t size = tokenizer_piece(t, cases[i].id, piece);
        assert_int_equal(size, strlen(cases[i].text));
        assert_memory_equal(piece, cases[i].text, size);
    }
    tokenizer_free(t);
}

TEST_CASE(bad_vocabularies)
{
    static const struct {
        struct changes changes;
        enum status status;
        const char *says;
    } cases[] = {
        {{.model = "bert"}, STATUS_UNSUPPORTED, "'bert'"},
        {{.model = "llam"}, STATUS_UNSUPPORTED, "'llam'"},
        {{.no_tokens = 1}, STATUS_NOT_FOUND, "tokenizer.ggml.tokens"},
        {{.no_scores = 1}, STATUS_NOT_FOUND, "tokenizer.ggml.scores"},
        {{.scores = 1}, STATUS_CORRUPT, "has 19 elements for 20 tokens"},
        {{.kinds = 2}, STATUS_CORRUPT, "has 18 elements for 20 tokens"},
        {{.bad_kind = 7}, STATUS_CORRUPT, "token_type"},
        {{.bad_kind = -1}, STATUS_CORRUPT, "token_type"},
        {{.nan_score = 1}, STATUS_CORRUPT, "number 3 is not a number"},
        {{.bos = COUNT_OF(pieces)}, STATUS_CORRUPT, "names token 20 of 20"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tokenizer *tokenizer = NULL;
        struct error err = {0};
        assert_int_equal(open_path(write_vocabulary(&cases[i].changes), &tokenizer, &err),
                         cases[i].status);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        assert_null(tokenizer);
    }
    struct tokenizer *tokenizer = open_changed((struct changes){.no_kinds = 1});
    char piece[TOKEN_SIZE_MAX];
    assert_int_equal(tokenizer_piece(tokenizer, 1, piece), 3); // all are normal ones then
    tokenizer_free(tokenizer);
}

// A text is searched for each special token: their number is limited.
TEST_CASE(too_many_special_tokens)
{
    enum { SPECIAL_MAX = 8192 };
    static const char *texts[SPECIAL_MAX + 1];
    static float scores[SPECIAL_MAX + 1];
    static int32_t kinds[SPECIAL_MAX + 1];
    for (size_t i = 0; i <= SPECIAL_MAX; i++) {
        texts[i] = "a";
        kinds[i] = TOKEN_USER_DEFINED;
    }
    for (size_t count = SPECIAL_MAX; count <= SPECIAL_MAX + 1; count++) {
        struct gguf_writer *writer = NULL;
        struct tokenizer *tokenizer = NULL;
        struct error err = {0};
        const char *path = model_files_path("special.gguf");
        assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
        gguf_writer_text(writer, "tokenizer.ggml.model", "llama");
        gguf_writer_texts(writer, "tokenizer.ggml.tokens", texts, count);
        gguf_writer_array(writer, "tokenizer.ggml.scores", GGUF_FLOAT32, scores, count);
        gguf_writer_array(writer, "tokenizer.ggml.token_type", GGUF_INT32, kinds, count);
        assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);
        assert_int_equal(open_path(path, &tokenizer, &err),
                         count == SPECIAL_MAX ? STATUS_OK : STATUS_UNSUPPORTED);
        assert_true(count == SPECIAL_MAX || strstr(err.text, "8193 control, unknown and user-def"));
        tokenizer_free(tokenizer);
    }
}

static struct tokenizer *open_synthetic(uint32_t count)
{
    struct synthetic_shape shape = model_files_smallest;
    shape.vocabulary = count;
    const char *path = model_files_path("synthetic.gguf");
    assert_int_equal(synthetic_write(path, &shape, TENSOR_F32, 1, 1, NULL), STATUS_OK);
    struct tokenizer *tokenizer = NULL;
    assert_int_equal(open_path(path, &tokenizer, NULL), STATUS_OK);
    assert_int_equal(tokenizer_count(tokenizer), count);
    return tokenizer;
}

// Decoding gives back what was encoded, but for the space put before.
static void check_round_trip(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    struct token_list list;
    assert_int_equal(tokenizer_encode(tokenizer, text, size, plain, &list, NULL), STATUS_OK);
    assert_true(list.count <= size + 1);
    char *back = malloc(size + 16);
    size_t at = 0;
    for (size_t i = 0; i < list.count; i++) {
        char piece[TOKEN_SIZE_MAX];
        size_t piece_size = tokenizer_piece(tokenizer, list.ids[i], piece);
        assert_true(at + piece_size <= size + 1);
        memcpy(back + at, piece, piece_size);
        at += piece_size;
    }
    assert_int_equal(at, size + (size > 0));
    if (size > 0)
        assert_memory_equal(back + 1, text, size);
    free(back);
    free(list.ids);
}

TEST_CASE(any_bytes_come_back)
{
    struct tokenizer *tokenizer = open_synthetic(32000);
    uint64_t seed = 99;
    char text[300];
    for (int round = 0; round < 2000; round++) {
        size_t size = test_random(&seed) % sizeof text;
        for (size_t i = 0; i < size; i++) {
            uint64_t r = test_random(&seed);
            text[i] = round % 2 ? (char)(r % 256) : "bacedi xyz\n"[r % 11];
            // The mark itself is read back as a space, as with any such vocabulary.
            if ((unsigned char)text[i] == 0xe2)
                text[i] = 'e';
        }
        check_round_trip(tokenizer, text, size);
    }
    tokenizer_free(tokenizer);
}

// Words of syllables are single tokens, so that merging is put to work.
TEST_CASE(long_words_are_merged)
{
    struct tokenizer *tokenizer = open_synthetic(32000);
    struct token_list list;
    assert_int_equal(tokenizer_encode(tokenizer, "bace bace", 9, plain, &list, NULL), STATUS_OK);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.ids[0], list.ids[1]);
    free(list.ids);
    tokenizer_free(tokenizer);
}

// A megabyte of one letter takes its time times a logarithm; were it squared, this
// test would not end.
TEST_CASE(long_text)
{
    struct tokenizer *tokenizer = open_synthetic(512);
    size_t size = 1 << 20;
    char *text = malloc(size);
    for (size_t i = 0; i < size; i++)
        text[i] = "ba"[i % 2];
    check_round_trip(tokenizer, text, size);
    memset(text, 'q', size);
    check_round_trip(tokenizer, text, size);
    free(text);
    tokenizer_free(tokenizer);
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, merges_best_first, spells_bytes,
               special_tokens, empty_text, pieces_of_tokens, bad_vocabularies,
               too_many_special_tokens, any_bytes_come_back, long_words_are_merged, long_text)
