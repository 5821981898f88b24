#include "server/workload/llm/tokenizer/pre_tokenizer.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/core/base/text.h"

// White space of Unicode: PCRE2's \s lacks U+0085.
#define SPACES    "\\s\\x{85}"
#define SPACE     "[" SPACES "]"
#define NOT_SPACE "[^" SPACES "]"

// Spaces but the last before a word, which takes that one; then all spaces.
#define BLANKS "|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"

// Llama 3 and later families differ in how many digits make a word.
#define MODERN(digits)                                                                             \
    "(?i:'(?:[sdmt]|re|ve|ll))|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits "| ?[^" SPACES         \
    "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]+" BLANKS

// All spaces at the end, in linear time: none begins amid a run.
#define LAST_SPACES "(?<!" SPACE ")" SPACE "++$"

enum { EXPRESSIONS_MAX = 6 };

// The expressions of a family run one after the other, each on what the former ones left as one
// word, whether it was matched or not.
static const struct family {
    const char *name;
    const char *expressions[EXPRESSIONS_MAX];
} families[] = {
    {"gpt-2", {"'(?:[sdmt]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES "\\p{L}\\p{N}]+" BLANKS}},
    {"llama-bpe", {MODERN("{1,3}")}},
    {"qwen2", {MODERN("")}},
    {"deepseek-llm",
     {"[\\r\\n]", SPACE "?\\p{L&}+",
      SPACE
      "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
      LAST_SPACES, "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}+"}},
    {"deepseek-coder",
     {"[\\r\\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+",
      "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"}},
    {"deepseek-v3",
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
      "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
      "?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACE "*[\\r\\n]+" BLANKS}},
};

// Other names of the families.
static const struct {
    const char *name, *family;
} aliases[] = {
    {"default", "gpt-2"},
    {"llama3", "llama-bpe"},
    {"llama-v3", "llama-bpe"},
    {"deepseek-r1-qwen", "qwen2"},
};

struct pre_tokenizer {
    const struct family *family;
    pcre2_code *codes[EXPRESSIONS_MAX];
    size_t count;
    pcre2_match_context *limits;
};

static const struct family *find_family(const struct gguf_text *name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (gguf_text_is(name, families[i].name))
            return &families[i];
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++) {
        const struct gguf_text family = {aliases[i].family, strlen(aliases[i].family)};
        if (gguf_text_is(name, aliases[i].name))
            return find_family(&family);
    }
    return NULL;
}

enum status pre_tokenizer_new(struct pre_tokenizer **out, const struct gguf_text *name,
                              struct error *err)
{
    const struct family *family = find_family(name);
    if (!family)
        return error_set(err, STATUS_UNSUPPORTED,
                         "key 'tokenizer.ggml.pre': pre-tokenizer '%.*s' is not supported",
                         (int)(name->size < 32 ? name->size : 32), name->data);
    struct pre_tokenizer *pre_tokenizer = calloc(1, sizeof *pre_tokenizer);
    bool is_made = pre_tokenizer && (pre_tokenizer->limits = pcre2_match_context_create(NULL));
    for (size_t i = 0; is_made && i < EXPRESSIONS_MAX && family->expressions[i]; i++) {
        int code;
        PCRE2_SIZE at;
        pre_tokenizer->codes[i] =
            pcre2_compile((PCRE2_SPTR)family->expressions[i], PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
        is_made = pre_tokenizer->codes[i] != NULL;
        pre_tokenizer->count = i + 1;
        if (is_made) // several times as fast; without it, expressions are interpreted
            (void)pcre2_jit_compile(pre_tokenizer->codes[i], PCRE2_JIT_COMPLETE);
    }
    if (!is_made) {
        pre_tokenizer_free(pre_tokenizer);
        return error_no_memory(err, "tokenizer");
    }
    // A run of spaces takes a step each; the text's size is limited instead.
    (void)pcre2_set_match_limit(pre_tokenizer->limits, UINT32_MAX);
    pre_tokenizer->family = family;
    *out = pre_tokenizer;
    return STATUS_OK;
}

void pre_tokenizer_free(struct pre_tokenizer *pre_tokenizer)
{
    if (!pre_tokenizer)
        return;
    for (size_t i = 0; i < pre_tokenizer->count; i++)
        pcre2_code_free(pre_tokenizer->codes[i]);
    pcre2_match_context_free(pre_tokenizer->limits);
    free(pre_tokenizer);
}

bool pre_tokenizer_is_llama3(const struct pre_tokenizer *pre_tokenizer)
{
    return strcmp(pre_tokenizer->family->name, "llama-bpe") == 0;
}

struct run {
    const struct pre_tokenizer *pre_tokenizer;
    pcre2_match_data *matches[EXPRESSIONS_MAX];
    pre_tokenizer_word *word;
    void *context;
};

// The size of the first characters of `text` that are well-formed.
static size_t well_formed(const char *text, size_t size)
{
    size_t end = 0, length;
    while (end < size && (length = text_character(text + end, size - end, NULL)) > 0)
        end += length;
    return end;
}

// Cuts a part of the text with the expressions from `number` on.  The characters are checked here,
// since PCRE2 would check the rest of the text at every word.
static enum status cut(const struct run *run, size_t number, const char *text, size_t size,
                       struct error *err)
{
    const struct pre_tokenizer *pre_tokenizer = run->pre_tokenizer;
    enum status status = STATUS_OK;
    if (size == 0)
        return STATUS_OK;
    if (number == pre_tokenizer->count)
        return run->word(run->context, text, size, err);
    pcre2_match_data *match = run->matches[number];
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(match);
    size_t done = 0;                                             // what is before it has been cut
    for (size_t start = 0, end; start < size; start = end + 1) { // a malformed byte is at `end`
        end = start + well_formed(text + start, size - start);
        const uint32_t options = PCRE2_NO_UTF_CHECK | (end < size ? PCRE2_NOTEOL : 0);
        for (size_t at = start; at < end && status == STATUS_OK; at = done) {
            const int found =
                pcre2_match(pre_tokenizer->codes[number], (PCRE2_SPTR)text + start, end - start,
                            at - start, options, match, pre_tokenizer->limits);
            if (found == PCRE2_ERROR_NOMATCH)
                break;
            if (found < 0)
                return error_set(err, STATUS_NOMEM, "tokenizer: the text cannot be cut into words");
            const size_t first = start + place[0];
            status = cut(run, number + 1, text + done, first - done, err);
            done = start + place[1];
            if (status == STATUS_OK)
                status = cut(run, number + 1, text + first, done - first, err);
        }
        if (status != STATUS_OK)
            return status;
    }
    return cut(run, number + 1, text + done, size - done, err);
}

enum status pre_tokenizer_run(const struct pre_tokenizer *pre_tokenizer, const char *text,
                              size_t size, pre_tokenizer_word *word, void *context,
                              struct error *err)
{
    struct run run = {.pre_tokenizer = pre_tokenizer, .word = word, .context = context};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < pre_tokenizer->count && status == STATUS_OK; i++) {
        run.matches[i] = pcre2_match_data_create(1, NULL);
        if (!run.matches[i])
            status = error_no_memory(err, "tokenizer");
    }
    if (status == STATUS_OK)
        status = cut(&run, 0, text, size, err);
    for (size_t i = 0; i < pre_tokenizer->count; i++)
        pcre2_match_data_free(run.matches[i]);
    return status;
}
