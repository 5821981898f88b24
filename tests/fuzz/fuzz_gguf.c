// Loading and running a model under libFuzzer.  The first byte chooses: a file built
// from the rest, mostly right; or the rest as the file itself.

#include "server/workload/llm/llama.h"
#include "server/workload/llm/token_sampler.h"
#include "server/workload/llm/tokenizer/tokenizer.h"
#include "tests/fuzz/gguf_feed.h"
#include "tests/fuzz/fuzz.h"

// Everything that was loaded lies within the file, each at a place of its own.
static void check_header(const struct gguf *gguf, size_t size)
{
    for (size_t i = 0; i < gguf_tensor_count(gguf); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(gguf, i);
        check(tensor->bytes > 0 && tensor->offset <= size &&
              tensor->bytes <= size - tensor->offset);
        for (size_t j = 0; j < i; j++) {
            const struct gguf_tensor *other = gguf_tensor_at(gguf, j);
            check(tensor->offset + tensor->bytes <= other->offset ||
                  other->offset + other->bytes <= tensor->offset);
        }
    }
}

static void run_model(struct device *device, struct llama *llama, uint32_t vocabulary,
                      uint64_t file_size)
{
    const struct llama_config *config = llama_get_config(llama);
    struct llama_session *session = NULL;
    struct error err;
    if (llama_session_new(&session, llama, llama_default_context(llama_get_config(llama)), &err) !=
        STATUS_OK)
        return;
    // The session, as the weights, is of the file's own size class.
    check((uint64_t)device_memory_used(device) <=
          LLAMA_SESSION_BASE + (LLAMA_SESSION_FACTOR + 1) * file_size);
    float *logits = calloc(vocabulary, sizeof *logits);
    struct token_sampler *sampler = NULL;
    const struct token_sampler_options options = {.temperature = 1.0, .top_p = 0.9, .seed = 1};
    check(logits && token_sampler_new(&sampler, &options, vocabulary, &err) == STATUS_OK);
    uint32_t ids[3] = {0, vocabulary - 1, vocabulary / 2};
    size_t count = config->context < 3 ? config->context : 3;
    check(llama_session_eval(session, ids, count, logits, &err) == STATUS_OK);
    uint32_t id;
    if (token_sampler_pick(sampler, logits, &id, &err) == STATUS_OK)
        check(id < vocabulary);
    token_sampler_free(sampler);
    free(logits);
    llama_session_free(session);
}

static void load_model(const struct byte_source *source, const struct gguf *gguf,
                       uint32_t vocabulary)
{
    struct device *device = NULL;
    struct llama *llama = NULL;
    struct llama_config config;
    struct transfer_figures transfer;
    struct error err = {0};
    check(device_open(&device, &(struct device_options){.spec = "cpu", .threads = 1}, &err) ==
          STATUS_OK);
    if (llama_config_read(&config, gguf, vocabulary, &err) == STATUS_OK &&
        llama_load(&llama, device, source, gguf, &config, NULL, &transfer, &err) == STATUS_OK) {
        // No more than the file has, whatever it promises.
        check((uint64_t)device_memory_used(device) <= source->size);
        run_model(device, llama, vocabulary, source->size);
    } else {
        check(err.text[0] != '\0');
    }
    llama_free(llama);
    check(device_memory_used(device) == 0);
    device_close(device);
}

static void load_file(const unsigned char *file, size_t size)
{
    struct byte_source source;
    struct gguf *gguf = NULL;
    struct tokenizer *tokenizer = NULL;
    struct error err = {0};
    byte_source_from_memory(&source, file, size);
    if (gguf_read(&gguf, &source, NULL, &err) != STATUS_OK) {
        check(err.text[0] != '\0');
        return;
    }
    check_header(gguf, size);
    if (tokenizer_new(&tokenizer, gguf, NULL, &err) == STATUS_OK)
        load_model(&source, gguf, tokenizer_count(tokenizer));
    else
        check(err.text[0] != '\0');
    tokenizer_free(tokenizer);
    gguf_free(gguf);
    byte_source_close(&source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    const uint64_t choice = feed_take(&feed, 1) % 4;
    if (choice != 3) {
        size_t file_size;
        unsigned char *file = feed_gguf(&feed, choice == 2 ? FEED_MIXTURE : FEED_DENSE, &file_size);
        load_file(file, file_size);
        free(file);
        return 0;
    }
    load_file(feed.data, feed.size);
    return 0;
}
