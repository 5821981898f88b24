#include "server/collector/exporters/exporter.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/wire/text_file.h"
#include "server/collector/exporters/metrics_page.h"
#include "server/collector/threads/reader_thread.h"
#include "server/http/http_server.h"

enum {
    FEED_ROWS = 2000, // of each kind, while scrapes wait: some milliseconds
    LOAD_SECONDS = 300,
    QUERY_SECONDS = 4,
    TOKEN_LEAST = 16,
    TOKEN_MOST = 512,
};
#define SECOND_NS     UINT64_C(1000000000)
#define REFRESH_NS    (5 * SECOND_NS)
#define FROZEN_NS     (120 * SECOND_NS)
#define RETRY_NS      (10 * SECOND_NS)
#define CONNECTION_NS (30 * SECOND_NS)
enum { REFRESH_SHARE = 10 }; // the rest is read for at most a tenth of the time

struct exporter {
    const struct exporter_options *options;
    const char *path;
    struct listener *listener;
    struct channels *channels;
    struct http_server *server;
    struct reader_thread reader;

    // Of the thread.
    struct inventory inventory;
    uint64_t refresh_at_ns;
    uint64_t refreshed_ns; // when that last succeeded
    bool has_complained;   // of the last failure
    atomic_bool is_ready;  // set once `totals` have their initial values; read by any thread

    pthread_mutex_t lock; // of the members below
    struct totals *totals;
    struct result *tables[METRICS_PAGE_TABLES]; // NULL: not read yet
    uint64_t scrapes;
    double last_scrape_seconds, last_refresh_seconds;
};

// ---- Secrets -----------------------------------------------------------------------------------

// Contents of the files that the options name; NULL: none.
struct secrets {
    char *token, *certificate, *key;
};

static void secrets_free(struct secrets *secrets)
{
    char *const texts[] = {secrets->token, secrets->certificate, secrets->key};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i])
            explicit_bzero(texts[i], strlen(texts[i]));
        free(texts[i]);
    }
}

static enum status read_file(char **out, const char *path, enum text_file_privacy privacy,
                             struct error *err)
{
    struct text_file *file = NULL;
    size_t size;
    if (!path[0])
        return STATUS_OK;
    enum status status = text_file_open(&file, path, privacy, err);
    if (status == STATUS_OK && !(*out = strdup(text_file_contents(file, &size))))
        status = error_no_memory(err, "metrics");
    text_file_close(file);
    return status;
}

// Cuts the token's file to its first line.
static enum status check_token(char *token, const char *path, struct error *err)
{
    token[strcspn(token, "\r\n")] = '\0';
    const size_t size = strlen(token);
    for (size_t i = 0; i < size; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return error_set(err, STATUS_INVALID,
                             "%.300s: a token has only visible ASCII characters", path);
    if (size < TOKEN_LEAST || size > TOKEN_MOST)
        return error_set(err, STATUS_INVALID,
                         "%.300s: a token of %zu characters (%d to %d; openssl rand -hex 32 makes "
                         "one)",
                         path, size, TOKEN_LEAST, TOKEN_MOST);
    return STATUS_OK;
}

static enum status secrets_read(struct secrets *secrets, const struct exporter_options *options,
                                struct error *err)
{
    enum status status = read_file(&secrets->token, options->token, TEXT_FILE_SECRET, err);
    if (status == STATUS_OK && secrets->token)
        status = check_token(secrets->token, options->token, err);
    if (status == STATUS_OK)
        status = read_file(&secrets->certificate, options->certificate, TEXT_FILE_TRUSTED, err);
    if (status == STATUS_OK)
        status = read_file(&secrets->key, options->key, TEXT_FILE_SECRET, err);
    return status;
}

enum status exporter_check(const struct exporter_options *options, bool insecure, struct error *err)
{
    struct secrets secrets = {.token = NULL};
    const bool has_tls = options->certificate[0] && options->key[0];
    if (!options->is_on && (options->token[0] || options->certificate[0] || options->key[0]))
        return error_set(err, STATUS_INVALID,
                         "--metrics-token, --metrics-certificate and --metrics-key need --metrics");
    if (!options->certificate[0] != !options->key[0])
        return error_set(err, STATUS_INVALID,
                         "--metrics-certificate and --metrics-key belong together (say both)");
    if (options->is_on && !insecure && !address_is_local(&options->listen) &&
        !(has_tls && options->token[0]))
        return error_set(err, STATUS_DENIED,
                         "--metrics %.200s:%u: others than this host could read the metrics (say "
                         "--metrics-token, --metrics-certificate and --metrics-key, or --insecure "
                         "in a network that you trust)",
                         options->listen.place, options->listen.port);
    enum status status = secrets_read(&secrets, options, err);
    secrets_free(&secrets);
    return status;
}

// ---- Reading -----------------------------------------------------------------------------------

// Logs the first of several failures; what was read before is kept.
static void report(struct exporter *exporter, enum status status, const struct error *err)
{
    if (status != STATUS_OK && status != STATUS_CANCELLED)
        log_write(exporter->has_complained ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING, "metrics: %s",
                  err->text);
    exporter->has_complained = status != STATUS_OK;
}

// Reads the initial values.  Where that takes too long, counters begin at zero.
static enum status load(struct exporter *exporter, struct error *err)
{
    reader_thread_enter(&exporter->reader, READER_LONG, LOAD_SECONDS);
    enum status status = totals_load(exporter->totals, exporter->reader.store, err);
    if (status == STATUS_TIMEOUT || status == STATUS_FULL) {
        log_write(LOG_LEVEL_WARNING, "metrics: counters begin at zero: %s", err->text);
        status = totals_begin_at_end(exporter->totals, exporter->reader.store, err);
    }
    reader_thread_leave(&exporter->reader, READER_LONG);
    atomic_store(&exporter->is_ready, status == STATUS_OK);
    return status;
}

static enum status feed(struct exporter *exporter, struct error *err)
{
    enum status status = STATUS_OK;
    bool more = true;
    while (more && status == STATUS_OK && reader_thread_wait(&exporter->reader, 0)) {
        reader_thread_enter(&exporter->reader, READER_SHORT, QUERY_SECONDS);
        (void)pthread_mutex_lock(&exporter->lock);
        status = totals_feed(exporter->totals, exporter->reader.store, FEED_ROWS, &more, err);
        (void)pthread_mutex_unlock(&exporter->lock);
        reader_thread_leave(&exporter->reader, READER_SHORT);
    }
    return status;
}

static enum status read_answers(struct exporter *exporter, struct result **tables,
                                struct error *err)
{
    static const struct {
        enum query_kind kind;
        unsigned table;
    } queries[] = {{QUERY_PING, METRICS_PAGE_PING},
                   {QUERY_DEVICE_HEALTH, METRICS_PAGE_DEVICES},
                   {QUERY_HOST_HEALTH, METRICS_PAGE_HOST_SAMPLES},
                   {QUERY_ALERTS, METRICS_PAGE_ALERTS}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof queries / sizeof *queries && status == STATUS_OK; i++) {
        const struct query query = {.kind = queries[i].kind};
        reader_thread_enter(&exporter->reader, READER_SHORT, QUERY_SECONDS);
        status = store_query(exporter->reader.store, &query, &tables[queries[i].table], err);
        reader_thread_leave(&exporter->reader, READER_SHORT);
        if (status == STATUS_NO_DATA) // no device, no host
            status = STATUS_OK;
    }
    if (status == STATUS_OK)
        channels_add_to_ping(exporter->channels, exporter->listener, exporter->path,
                             tables[METRICS_PAGE_PING]);
    return status;
}

// Reads all but the totals, and publishes it.
static enum status refresh(struct exporter *exporter, struct error *err)
{
    struct result *tables[METRICS_PAGE_TABLES] = {NULL};
    const uint64_t began_ns = clock_monotonic_ns();
    reader_thread_enter(&exporter->reader, READER_SHORT, QUERY_SECONDS);
    enum status status =
        inventory_read(&exporter->inventory, exporter->reader.store, clock_wall_ns(), tables, err);
    reader_thread_leave(&exporter->reader, READER_SHORT);
    if (status == STATUS_OK)
        status = read_answers(exporter, tables, err);
    const uint64_t took_ns = clock_monotonic_ns() - began_ns;
    exporter->refresh_at_ns =
        began_ns + (took_ns * REFRESH_SHARE > REFRESH_NS ? took_ns * REFRESH_SHARE : REFRESH_NS);
    (void)pthread_mutex_lock(&exporter->lock);
    // Figures that cannot be read again for long are no longer shown.
    const bool is_old = began_ns - exporter->refreshed_ns > FROZEN_NS;
    for (unsigned i = 0; i < METRICS_PAGE_TABLES && (status == STATUS_OK || is_old); i++) {
        struct result *before = exporter->tables[i];
        exporter->tables[i] = tables[i];
        tables[i] = before;
    }
    if (status == STATUS_OK)
        exporter->refreshed_ns = began_ns;
    exporter->last_refresh_seconds = (double)took_ns / 1e9;
    (void)pthread_mutex_unlock(&exporter->lock);
    for (unsigned i = 0; i < METRICS_PAGE_TABLES; i++)
        result_free(tables[i]);
    return status;
}

static void *exporter_body(void *context)
{
    struct exporter *exporter = context;
    uint64_t pause_ns = 0;
    while (reader_thread_wait(&exporter->reader, clock_monotonic_ns() + pause_ns)) {
        struct error err = {.text = "failed"};
        enum status status = atomic_load(&exporter->is_ready) ? STATUS_OK : load(exporter, &err);
        if (status == STATUS_OK)
            status = feed(exporter, &err);
        if (status == STATUS_OK && clock_monotonic_ns() >= exporter->refresh_at_ns)
            status = refresh(exporter, &err);
        report(exporter, status, &err);
        http_server_close_older(exporter->server, CONNECTION_NS);
        pause_ns = atomic_load(&exporter->is_ready) ? SECOND_NS : RETRY_NS;
    }
    return NULL;
}

// ---- Pages
// ---------------------------------------------------------------------------------------

static void answer_text(struct http_response *response, unsigned code, const char *text)
{
    response->code = code;
    response->type = "text/plain; charset=utf-8";
    response->body = strdup(text);
    response->size = response->body ? strlen(text) : 0;
}

static void answer_metrics(struct exporter *exporter, const struct http_request *request,
                           struct http_response *response)
{
    const uint64_t began_ns = clock_thread_ns();
    struct metrics_text text = {.is_openmetrics =
                                    metrics_text_accepts_openmetrics(request->accept)};
    struct metrics_page page = {.totals = exporter->totals,
                                .series_max = exporter->options->series};
    struct commit_ids ids;
    char why[ERROR_TEXT_SIZE];
    channels_committed(exporter->channels, &ids);
    memcpy(page.committed, ids.last, sizeof page.committed);
    page.can_write = channels_read_write_error(exporter->channels, why) == 0;
    (void)pthread_mutex_lock(&exporter->lock);
    memcpy(page.tables, exporter->tables, sizeof page.tables);
    page.scrapes = ++exporter->scrapes;
    page.last_scrape_seconds = exporter->last_scrape_seconds;
    page.last_refresh_seconds = exporter->last_refresh_seconds;
    metrics_page_write(&text, &page);
    exporter->last_scrape_seconds = (double)(clock_thread_ns() - began_ns) / 1e9;
    (void)pthread_mutex_unlock(&exporter->lock);
    if (text.has_failed) {
        metrics_text_deinit(&text);
        answer_text(response, 503, "out of memory\n");
    } else {
        response->code = 200;
        response->type = metrics_text_type(text.is_openmetrics);
        response->body = text.bytes;
        response->size = text.size;
    }
}

// Returns why the collector cannot answer, static text; NULL: it can.
static const char *find_trouble(struct exporter *exporter, bool of_writing)
{
    char why[ERROR_TEXT_SIZE];
    if (of_writing && channels_read_write_error(exporter->channels, why) > 0)
        return "the last commit failed\n";
    return atomic_load(&exporter->is_ready) ? NULL : "the initial values are being read\n";
}

static void on_request(void *context, const struct http_request *request,
                       struct http_response *response)
{
    struct exporter *exporter = context;
    const bool is_health = strcmp(request->path, "/health") == 0;
    const char *trouble = find_trouble(exporter, is_health);
    if (!is_health && !request->is_authorized)
        answer_text(response, 401, "this needs the header Authorization: Bearer TOKEN\n");
    else if (!is_health && strcmp(request->path, "/metrics") != 0)
        answer_text(response, 404, "there are /metrics and /health\n");
    else if (trouble)
        answer_text(response, 503, trouble);
    else if (is_health)
        answer_text(response, 200, "ok\n");
    else
        answer_metrics(exporter, request, response);
}

// ---- Start and end
// -------------------------------------------------------------------------------

static enum status start_server(struct exporter *exporter, struct error *err)
{
    struct secrets secrets = {.token = NULL};
    const struct exporter_options *options = exporter->options;
    enum status status = secrets_read(&secrets, options, err);
    if (status == STATUS_OK) {
        const struct http_server_settings settings = {.host = options->listen.place,
                                                      .port = options->listen.port,
                                                      .token = secrets.token,
                                                      .certificate = secrets.certificate,
                                                      .key = secrets.key,
                                                      .handler = on_request,
                                                      .context = exporter};
        status = http_server_start(&exporter->server, &settings, err);
    }
    if (status == STATUS_OK)
        log_write(LOG_LEVEL_INFO, "metrics: %s://%s%s%s:%u/metrics%s",
                  secrets.certificate ? "https" : "http", options->listen.is_ipv6 ? "[" : "",
                  options->listen.place, options->listen.is_ipv6 ? "]" : "", options->listen.port,
                  secrets.token ? ", with a token" : "");
    secrets_free(&secrets);
    return status;
}

enum status exporter_start(struct exporter **out, const struct exporter_options *options,
                           const char *path, struct listener *listener, struct channels *channels,
                           struct error *err)
{
    struct exporter *exporter = calloc(1, sizeof *exporter);
    if (!exporter)
        return error_no_memory(err, "metrics");
    (void)pthread_mutex_init(&exporter->lock, NULL);
    exporter->options = options;
    exporter->path = path;
    exporter->listener = listener;
    exporter->channels = channels;
    // Half of the lines for the totals, the other half for all else.
    enum status status =
        totals_new(&exporter->totals, options->series / 2 / METRICS_PAGE_LINES_PER_SERIES + 1);
    if (status != STATUS_OK)
        status = error_no_memory(err, "metrics");
    if (status == STATUS_OK)
        status = reader_thread_open(&exporter->reader, path, &channels->gate, err);
    if (status == STATUS_OK)
        status = start_server(exporter, err);
    if (status == STATUS_OK)
        status = reader_thread_start(&exporter->reader, "metrics", exporter_body, exporter, err);
    if (status != STATUS_OK) {
        exporter_stop(exporter);
        return status;
    }
    *out = exporter;
    return STATUS_OK;
}

void exporter_stop(struct exporter *exporter)
{
    if (!exporter)
        return;
    reader_thread_end(&exporter->reader);
    http_server_stop(exporter->server);
    totals_free(exporter->totals);
    inventory_deinit(&exporter->inventory);
    for (unsigned i = 0; i < METRICS_PAGE_TABLES; i++)
        result_free(exporter->tables[i]);
    (void)pthread_mutex_destroy(&exporter->lock);
    free(exporter);
}
