#include "tests/unit/workload/llama_fixture.h"

#include "tests/support/test.h"
#include "tests/unit/workload/model_files.h"

enum status llama_ready_load(struct ready *r, unsigned int threads, bool (*cancelled)(void),
                             struct error *err)
{
    struct transfer_figures transfer;
    byte_source_from_memory(&r->source, r->data, r->size);
    enum status status = gguf_read(&r->gguf, &r->source, NULL, err);
    if (status == STATUS_OK)
        status = device_open(&r->device, &(struct device_options){.threads = threads}, err);
    struct gguf_array tokens;
    if (status == STATUS_OK)
        status = gguf_get_array(r->gguf, "tokenizer.ggml.tokens", GGUF_STRING, &tokens, err);
    if (status == STATUS_OK)
        status = llama_config_read(&r->config, r->gguf, tokens.count, err);
    if (status == STATUS_OK)
        status = llama_load(&r->llama, r->device, &r->source, r->gguf, &r->config, cancelled,
                            &transfer, err);
    if (status == STATUS_OK)
        assert_int_equal(transfer.bytes, device_memory_used(r->device));
    return status;
}

void llama_ready_unload(struct ready *r)
{
    llama_session_free(r->session);
    llama_free(r->llama);
    if (r->device)
        assert_int_equal(device_memory_used(r->device), 0);
    device_close(r->device);
    gguf_free(r->gguf);
}

struct ready llama_ready_make(const struct synthetic_shape *shape, bool half, unsigned int threads,
                              size_t context)
{
    struct ready r = {0};
    struct error err = {0};
    r.data = model_files_make(shape, half, &r.size);
    if (llama_ready_load(&r, threads, NULL, &err) != STATUS_OK ||
        llama_session_new(&r.session, r.llama, context, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return r;
}

void llama_ready_end(struct ready *r)
{
    llama_ready_unload(r);
    free(r->data);
}
