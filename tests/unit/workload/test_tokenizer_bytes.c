// Byte-level tokenizers: pre-tokenizers against another program's words, merges over a vocabulary
// made here.
#include <dlfcn.h>
#include <stdio.h>

#include "server/workload/llm/tokenizer/chat_template.h"
#include "server/workload/llm/gguf_writer.h"
#include "server/workload/llm/tokenizer/pre_tokenizer.h"
#include "server/workload/llm/tokenizer/tokenizer.h"
#include "tests/support/test.h"
#include "tests/unit/workload/model_files.h"

// ---- Words --------------------------------------------------------------------------------

// Stands before PCRE2's own: while it fails, as where memory may not be executable, expressions are
// interpreted.
static bool no_jit;
int pcre2_jit_compile_8(void *code, uint32_t options);
int pcre2_jit_compile_8(void *code, uint32_t options)
{
    int (*compile)(void *code, uint32_t options);
    *(void **)&compile = dlsym(RTLD_NEXT, "pcre2_jit_compile_8");
    return no_jit ? -1 : compile(code, options);
}

struct sizes {
    size_t list[4096];
    size_t count;
};

static enum status add_size(void *context, const char *text, size_t size, struct error *err)
{
    struct sizes *sizes = context;
    (void)text;
    if (sizes->count == COUNT_OF(sizes->list))
        return error_set(err, STATUS_FULL, "too many words");
    sizes->list[sizes->count++] = size;
    return STATUS_OK;
}

static struct pre_tokenizer *open_words(const char *name)
{
    struct pre_tokenizer *words = NULL;
    struct error err = {0};
    expect_ok(pre_tokenizer_new(&words, &(struct gguf_text){name, strlen(name)}, &err), &err);
    return words;
}

// words.py wrote the file.
TEST_CASE(words_as_published)
{
    static char line[8192], hex[4096], text[2048];
    char name[32];
    size_t lines = 0;
    FILE *file = fopen(INFERSTAT_UNIT_FOLDER "/words.txt", "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++) {
        int at = 0;
        struct sizes sizes = {.count = 0};
        assert_int_equal(sscanf(line, "%31s %4095s%n", name, hex, &at), 2);
        const size_t size = strlen(hex) / 2;
        for (size_t i = 0; i < size; i++) {
            const char pair[] = {hex[2 * i], hex[2 * i + 1], '\0'};
            text[i] = (char)strtoul(pair, NULL, 16);
        }
        no_jit = lines % 2 == 1;
        struct pre_tokenizer *words = open_words(name);
        assert_int_equal(pre_tokenizer_run(words, text, size, add_size, &sizes, NULL), STATUS_OK);
        char *expected = line + at;
        for (size_t i = 0; i < sizes.count; i++)
            if (strtoul(expected, &expected, 10) != sizes.list[i])
                fail_msg("%s, %s: word %zu has %zu bytes", name, hex, i, sizes.list[i]);
        assert_string_equal(expected, "\n");
        pre_tokenizer_free(words);
    }
    no_jit = false;
    (void)fclose(file);
    assert_int_equal(lines, 6 * 61);
}

static const char *const family_names[] = {"gpt-2",        "llama-bpe",      "qwen2",
                                           "deepseek-llm", "deepseek-coder", "deepseek-v3"};

// Megabytes of one character.
TEST_CASE(long_runs_are_cut)
{
    enum { SIZE = 4 << 20 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < COUNT_OF(family_names); i++) {
        struct pre_tokenizer *words = open_words(family_names[i]);
        for (const char *fill = " a!\xff"; *fill; fill++) {
            struct sizes sizes = {.count = 0};
            size_t sum = 0;
            memset(text, *fill, SIZE);
            assert_int_equal(pre_tokenizer_run(words, text, SIZE, add_size, &sizes, NULL),
                             STATUS_OK);
            for (size_t j = 0; j < sizes.count; j++)
                sum += sizes.list[j];
            assert_int_equal(sum, SIZE);
        }
        pre_tokenizer_free(words);
    }
    free(text);
}

static enum status sum_sizes(void *context, const char *text, size_t size, struct error *err)
{
    size_t *sum = context;
    (void)text;
    (void)err;
    *sum += size;
    return STATUS_OK;
}

// Many short words, and long runs before another character, take linear time in the interpreter
// too. The limit of a test's processor time tells.
TEST_CASE(words_are_cut_without_jit)
{
    enum { SIZE = 128 << 10 };
    static const char *const fills[] = {"a ", "!1", "a\xff", " "};
    char *text = malloc(SIZE);
    assert_non_null(text);
    no_jit = true;
    for (size_t i = 0; i < COUNT_OF(family_names); i++) {
        struct pre_tokenizer *words = open_words(family_names[i]);
        for (size_t fill = 0; fill < COUNT_OF(fills); fill++) {
            size_t sum = 0;
            for (size_t at = 0; at < SIZE; at++)
                text[at] = fills[fill][at % strlen(fills[fill])];
            text[SIZE - 1] = '1';
            assert_int_equal(pre_tokenizer_run(words, text, SIZE, sum_sizes, &sum, NULL),
                             STATUS_OK);
            assert_int_equal(sum, SIZE);
        }
        pre_tokenizer_free(words);
    }
    no_jit = false;
    free(text);
}

// ---- Merges -------------------------------------------------------------------------------

struct changes {
    const char *pre, *merge; // NULL: "qwen2", no merge but those below
    bool no_merges, stopped;
    uint32_t eot;
    const char *chat;    // the file's chat template; NULL: none
    const char *control; // a control token; NULL: "<|x|>"
};

enum { BYTES = 256, AB = BYTES, ABC, BC, SPACE_A, CONTROL, END, START, OWN, TOKENS };

// The characters of bytes, in the order of the bytes, then tokens that merges make, and others.
static const char *write_vocabulary(const struct changes *c)
{
    static char bytes[BYTES][3];
    const char *texts[TOKENS] = {[AB] = "ab",
                                 [ABC] = "abc",
                                 [BC] = "bc",
                                 [SPACE_A] = "\u0120a",
                                 [CONTROL] = c->control ? c->control : "<|x|>",
                                 [END] = "<|im_end|>",
                                 [START] = "<|im_start|>",
                                 [OWN] = "own token"};
    int32_t kinds[TOKENS];
    const char *merges[] = {"b c", "a b", "a bc", "\u0120 a", c->merge};
    unsigned int other = 0x100;
    for (unsigned int byte = 0; byte < BYTES; byte++) {
        const bool alone = (byte > ' ' && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
        const unsigned int character = alone ? byte : other++;
        if (character < 0x80)
            bytes[byte][0] = (char)character;
        else
            (void)sprintf(bytes[byte], "%c%c", (int)(0xc0 | character >> 6),
                          (int)(0x80 | (character & 63)));
        texts[byte] = bytes[byte];
    }
    for (size_t i = 0; i < TOKENS; i++)
        kinds[i] = i < CONTROL ? 1 : i == OWN ? 4 : 3;
    struct gguf_writer *writer = NULL;
    const char *path = model_files_path("bytes.gguf");
    assert_int_equal(gguf_writer_open(&writer, path, NULL), STATUS_OK);
    gguf_writer_text(writer, "tokenizer.ggml.model", "gpt2");
    gguf_writer_text(writer, "tokenizer.ggml.pre", c->pre ? c->pre : "qwen2");
    gguf_writer_texts(writer, "tokenizer.ggml.tokens", texts, TOKENS);
    gguf_writer_array(writer, "tokenizer.ggml.token_type", GGUF_INT32, kinds, TOKENS);
    if (!c->no_merges)
        gguf_writer_texts(writer, "tokenizer.ggml.merges", merges,
                          COUNT_OF(merges) - (c->merge == NULL));
    if (c->eot)
        gguf_writer_uint(writer, "tokenizer.ggml.eot_token_id", c->eot);
    if (c->chat)
        gguf_writer_text(writer, "tokenizer.chat_template", c->chat);
    assert_int_equal(gguf_writer_close(writer, STATUS_OK, NULL), STATUS_OK);
    return path;
}

static bool always(void)
{
    return true;
}

static struct gguf *read_changed(struct changes changes)
{
    struct byte_source source;
    struct gguf *gguf = NULL;
    assert_int_equal(byte_source_open(&source, write_vocabulary(&changes), NULL), STATUS_OK);
    assert_int_equal(gguf_read(&gguf, &source, NULL, NULL), STATUS_OK);
    byte_source_close(&source);
    return gguf;
}

static enum status open_changed(struct changes changes, struct tokenizer **out, struct error *err)
{
    struct gguf *gguf = read_changed(changes);
    enum status status = tokenizer_new(out, gguf, changes.stopped ? always : NULL, err);
    gguf_free(gguf);
    return status;
}

static struct tokenizer *open_bytes(struct changes changes)
{
    struct tokenizer *tokenizer = NULL;
    struct error err = {0};
    expect_ok(open_changed(changes, &tokenizer, &err), &err);
    return tokenizer;
}

static void check(const struct tokenizer *tokenizer, const char *text, bool parse_special,
                  const uint32_t *ids, size_t count)
{
    struct token_list list;
    const struct encode_options options = {.add_special = true, .parse_special = parse_special};
    assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), options, &list, NULL),
                     STATUS_OK);
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(list.ids[i], ids[i]);
    free(list.ids);
}

#define CHECK(tokenizer, text, parse, ...)                                                         \
    check(tokenizer, text, parse, (const uint32_t[]){__VA_ARGS__},                                 \
          COUNT_OF(((const uint32_t[]){__VA_ARGS__})))

TEST_CASE(merges_in_order)
{
    struct tokenizer *tokenizer = open_bytes((struct changes){0});
    CHECK(tokenizer, "ab", false, AB);
    CHECK(tokenizer, "abc", false, ABC); // by "b c", which goes first, then "a bc"
    CHECK(tokenizer, "abab", false, AB, AB);
    CHECK(tokenizer, "a ab", false, 'a', ' ', AB); // "a b" goes before a space and an "a"
    CHECK(tokenizer, "b a", false, 'b', SPACE_A);
    CHECK(tokenizer, "\xff\n", false, 0xff, '\n');
    CHECK(tokenizer, "a<|x|>", true, 'a', CONTROL);
    CHECK(tokenizer, "<|x|>", false, '<', '|', 'x', '|', '>');
    CHECK(tokenizer, "own token", false, OWN);
    tokenizer_free(tokenizer);
    // A word that is a token, whatever the merges.
    tokenizer = open_bytes((struct changes){.pre = "llama3"});
    CHECK(tokenizer, "abc", false, ABC);
    tokenizer_free(tokenizer);
}

static unsigned int chat_choice(const char *name)
{
    unsigned int i = 0;
    while (chat_template_word(i) && strcmp(chat_template_word(i), name) != 0)
        i++;
    assert_non_null(chat_template_word(i));
    return i;
}

// A prompt that has the marks itself stays inside its message.
TEST_CASE(chat_marks)
{
    static const char text[] = "ab<|im_end|>";
    static const uint32_t expected[] = {START, 'u', 's', 'e', 'r', '\n', AB,  '<', '|',  'i',
                                        'm',   '_', 'e', 'n', 'd', '|',  '>', END, '\n', START,
                                        'a',   's', 's', 'i', 's', 't',  'a', 'n', 't',  '\n'};
    struct tokenizer *tokenizer = open_bytes((struct changes){0});
    const struct chat_template *chat = NULL;
    struct token_list list;
    struct error err = {0};
    expect_ok(chat_template_choose(&chat, chat_choice("chatml"), NULL, &err), &err);
    expect_ok(chat_template_encode(chat, tokenizer, text, strlen(text), &list, &err), &err);
    assert_int_equal(list.count, COUNT_OF(expected));
    for (size_t i = 0; i < list.count; i++)
        assert_int_equal(list.ids[i], expected[i]);
    free(list.ids);
    tokenizer_free(tokenizer);
}

// A mark that overlaps the prompt everywhere is not looked for again at each of its bytes.
TEST_CASE(a_mark_like_the_prompt)
{
    enum { MARK = 60000, SIZE = 1 << 20 };
    static char mark[MARK + 1], text[SIZE];
    memset(mark, 'a', MARK);
    memset(text, 'a', SIZE);
    struct tokenizer *tokenizer = open_bytes((struct changes){.control = mark});
    struct token_list list;
    const struct encode_options options = {.parse_special = true, .plain_to = SIZE};
    assert_int_equal(tokenizer_encode(tokenizer, text, SIZE, options, &list, NULL), STATUS_OK);
    assert_int_equal(list.count, SIZE);
    free(list.ids);
    tokenizer_free(tokenizer);
}

// Parts of the templates of real models that have no more of each family's than its marks.
TEST_CASE(chat_templates_by_their_marks)
{
    static const struct {
        const char *template, *name; // NULL: not known
    } cases[] = {
        {"{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'}}",
         "chatml"},
        {"{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}", "llama3"},
        {"{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}", "llama2"},
        {"{{ '[INST] ' + message['content'] + '[/INST]' }}", "mistral"},
        {"{{ '<|user|>\n' + message['content'] + eos_token }}{{ '<|assistant|>' }}", "zephyr"},
        {"{{'### Instruction:\n' + message['content'] + '\n'}}", "deepseek-coder"},
        {"{{ 'User: ' + message['content'] + '\n\n' }}{{ 'Assistant:' }}", "deepseek-llm"},
        {"{{'<｜User｜>' + message['content'] + '<｜Assistant｜>'}}", "deepseek3"},
        {"{{ message['content'] }}", NULL},
        {NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct gguf *gguf = read_changed((struct changes){.chat = cases[i].template});
        const struct chat_template *found = NULL, *named = NULL;
        enum status status = chat_template_choose(&found, CHAT_AUTO, gguf, NULL);
        if (cases[i].name) {
            assert_int_equal(status, STATUS_OK);
            assert_int_equal(chat_template_choose(&named, chat_choice(cases[i].name), gguf, NULL),
                             STATUS_OK);
            assert_ptr_equal(found, named);
        } else {
            assert_int_equal(status, cases[i].template ? STATUS_UNSUPPORTED : STATUS_NOT_FOUND);
            assert_null(found);
        }
        gguf_free(gguf);
    }
}

TEST_CASE(several_ends)
{
    struct tokenizer *tokenizer = open_bytes((struct changes){.eot = CONTROL});
    assert_true(tokenizer_is_end(tokenizer, CONTROL));
    assert_true(tokenizer_is_end(tokenizer, END)); // by its mark
    assert_false(tokenizer_is_end(tokenizer, OWN));
    assert_false(tokenizer_is_end(tokenizer, TOKEN_NONE));
    tokenizer_free(tokenizer);
}

TEST_CASE(any_bytes_come_back)
{
    struct tokenizer *tokenizer = open_bytes((struct changes){0});
    uint64_t seed = 4;
    char text[200], back[200], piece[TOKEN_SIZE_MAX];
    for (unsigned int round = 0; round < 200; round++) {
        const size_t size = test_random(&seed) % (sizeof text + 1);
        size_t at = 0;
        struct token_list list;
        for (size_t i = 0; i < size; i++)
            text[i] =
                round % 2 ? "abc \n\xc3\xa9"[test_random(&seed) % 7] : (char)test_random(&seed);
        assert_int_equal(
            tokenizer_encode(tokenizer, text, size, (struct encode_options){0}, &list, NULL),
            STATUS_OK);
        for (size_t i = 0; i < list.count; i++) {
            const size_t piece_size = tokenizer_piece(tokenizer, list.ids[i], piece);
            assert_true(at + piece_size <= size);
            memcpy(back + at, piece, piece_size);
            at += piece_size;
        }
        assert_int_equal(at, size);
        assert_memory_equal(text, back, size);
        free(list.ids);
    }
    tokenizer_free(tokenizer);
}

TEST_CASE(bad_vocabularies)
{
    static const struct {
        struct changes changes;
        enum status status;
        const char *says;
    } cases[] = {
        {{.pre = "gpt-3"}, STATUS_UNSUPPORTED, "pre-tokenizer 'gpt-3' is not supported"},
        {{.stopped = true}, STATUS_CANCELLED, "stopped while reading the vocabulary"},
        {{.no_merges = true}, STATUS_NOT_FOUND, "tokenizer.ggml.merges"},
        {{.merge = "a zz"}, STATUS_CORRUPT, "'a zz' does not merge two tokens into one"},
        {{.merge = "a c"}, STATUS_CORRUPT, "'a c' does not"},
        {{.merge = "abc"}, STATUS_CORRUPT, "'abc' does not"},
        {{.merge = ""}, STATUS_CORRUPT, "'' does not"},
        {{.eot = TOKENS}, STATUS_CORRUPT, "eot_token_id"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tokenizer *tokenizer = NULL;
        struct error err = {0};
        assert_int_equal(open_changed(cases[i].changes, &tokenizer, &err), cases[i].status);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        assert_null(tokenizer);
    }
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, words_as_published, long_runs_are_cut,
               words_are_cut_without_jit, merges_in_order, chat_marks, a_mark_like_the_prompt,
               chat_templates_by_their_marks, several_ends, any_bytes_come_back, bad_vocabularies)
