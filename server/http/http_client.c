#include "server/http/http_client.h"

#include <curl/curl.h>

enum { POLL_MS = 1000 }; // at most; the library wakes earlier when something happens

enum status http_client_begin(struct error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        return STATUS_OK;
    return error_set(err, STATUS_UNSUPPORTED, "webhooks: libcurl cannot be used");
}

void http_client_end(void)
{
    curl_global_cleanup();
}

// Counts headers and body; a number other than that of the bytes ends the transfer.
static size_t discard(const char *bytes, size_t size, size_t count, void *context)
{
    size_t *received = context;
    (void)bytes;
    *received += size * count;
    return *received <= HTTP_ANSWER_MAX ? size * count : 0;
}

static CURLcode set_options(CURL *easy, const char *url, const char *body, size_t size,
                            const struct curl_slist *headers, size_t *received)
{
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},
        {CURLOPT_SSL_VERIFYPEER, 1},
        {CURLOPT_SSL_VERIFYHOST, 2},
        {CURLOPT_CONNECTTIMEOUT_MS, HTTP_CONNECT_MS},
        {CURLOPT_TIMEOUT_MS, HTTP_TOTAL_MS},
        {CURLOPT_QUICK_EXIT, 1}, // does not wait for a name server that hangs
        {CURLOPT_POST, 1},
        {CURLOPT_POSTFIELDSIZE, (long)size},
    };
    const struct {
        CURLoption option;
        const void *value;
    } pointers[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_PROXY, ""},
        {CURLOPT_USERAGENT, "inferstatd"},
        {CURLOPT_URL, url},
        {CURLOPT_POSTFIELDS, body},
        {CURLOPT_HTTPHEADER, headers},
    };
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, discard);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, received);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, received);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && code == CURLE_OK; i++)
        code = curl_easy_setopt(easy, numbers[i].option, numbers[i].value);
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers && code == CURLE_OK; i++)
        code = curl_easy_setopt(easy, pointers[i].option, pointers[i].value);
    return code;
}

// Sets `*result` when the transfer has ended.
static enum status perform(CURLM *multi, int stop_fd, CURLcode *result, struct error *err)
{
    int running = 1, messages;
    CURLMcode code = CURLM_OK;
    struct curl_waitfd stop = {.fd = stop_fd, .events = CURL_WAIT_POLLIN};
    while (code == CURLM_OK && running) {
        code = curl_multi_perform(multi, &running);
        if (code == CURLM_OK && running)
            code = curl_multi_poll(multi, &stop, 1, POLL_MS, NULL);
        if (stop.revents)
            return error_set(err, STATUS_CANCELLED, "the collector is stopping");
    }
    const CURLMsg *message = curl_multi_info_read(multi, &messages);
    if (code != CURLM_OK || !message)
        return error_set(err, STATUS_UNREACHABLE, "no answer: %s", curl_multi_strerror(code));
    *result = message->data.result;
    return STATUS_OK;
}

static enum status judge(CURL *easy, CURLcode result, size_t received, long *code,
                         struct error *err)
{
    // One that was ended for its size has been answered.
    if (result == CURLE_OK || (result == CURLE_WRITE_ERROR && received > HTTP_ANSWER_MAX)) {
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, code);
        return STATUS_OK;
    }
    if (result == CURLE_OUT_OF_MEMORY)
        return error_no_memory(err, "webhook");
    if (result == CURLE_URL_MALFORMAT)
        return error_set(err, STATUS_INVALID, "the URL is malformed");
    if (result == CURLE_OPERATION_TIMEDOUT)
        return error_set(err, STATUS_TIMEOUT, "no answer within the time");
    return error_set(err, STATUS_UNREACHABLE, "no answer: %s", curl_easy_strerror(result));
}

enum status http_client_post(const char *url, const char *body, size_t size, int stop_fd,
                             long *code, struct error *err)
{
    size_t received = 0;
    CURLcode result = CURLE_OUT_OF_MEMORY;
    enum status status = STATUS_OK;
    CURLM *multi = curl_multi_init();
    CURL *easy = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (multi && easy && headers)
        result = set_options(easy, url, body, size, headers, &received);
    if (result == CURLE_OK) {
        if (curl_multi_add_handle(multi, easy) == CURLM_OK)
            status = perform(multi, stop_fd, &result, err);
        else
            result = CURLE_OUT_OF_MEMORY;
    }
    if (status == STATUS_OK)
        status = judge(easy, result, received, code, err);
    if (multi && easy)
        (void)curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    (void)curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
    return status;
}
