#include "server/collector/exporters/exporter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/sys/process.h"
#include "common/wire/text_file.h"
#include "server/collector/exporters/metrics_page.h"
#include "server/collector/threads/reader_thread.h"
#include "server/http/http_server.h"

enum {
    FEED_ROWS = 2000, // of each kind in a snapshot
    QUERY_SECONDS = 4,
    TOKEN_LEAST = 16,
    TOKEN_MOST = 512,
};
#define SECOND_NS  UINT64_C(1000000000)
#define REFRESH_NS (5 * SECOND_NS)
#define FROZEN_NS  (120 * SECOND_NS)
enum { REFRESH_SHARE = 10 }; // the rest is read for at most a tenth of the time

// What the page shows beside the totals.  Each part is read and becomes stale by itself.
static const struct {
    unsigned first, count;                      // its tables
    enum query_kind kind;                       // of the only table's query
} parts[] = {{0, INVENTORY_TABLES, QUERY_PING}, // not by a query
             {METRICS_PAGE_PING, 1, QUERY_PING},
             {METRICS_PAGE_DEVICES, 1, QUERY_DEVICE_HEALTH},
             {METRICS_PAGE_HOST_SAMPLES, 1, QUERY_HOST_HEALTH},
             {METRICS_PAGE_ALERTS, 1, QUERY_ALERTS}};
enum { PARTS = sizeof parts / sizeof *parts };

struct exporter {
    const struct exporter_options *options;
    const char *path;
    struct listener *listener;
    struct channels *channels;
    int64_t started_ns;         // wall clock
    struct http_server *server; // of the thread that starts, reloads and stops
    struct reader_thread reader;

    // Of the thread.
    struct inventory inventory;
    uint64_t refresh_at_ns;
    uint64_t read_ns[PARTS]; // when that last succeeded
    bool has_complained;     // of the last failure

    pthread_mutex_t lock; // of the members below
    struct totals *totals;
    struct result *tables[METRICS_PAGE_TABLES]; // NULL: not read yet
    uint64_t scrapes;
    double scrape_cpu_seconds, refresh_seconds;
    int64_t refreshed_ns; // when all parts were read, by the wall clock; 0: not yet
};

// ---- Secrets -----------------------------------------------------------------------------------

enum { TOKEN, CERTIFICATE, KEY, SECRETS };

// Contents of the files that the options name; NULL: none.
struct secrets {
    char *texts[SECRETS];
};

static void secrets_free(struct secrets *secrets)
{
    for (unsigned i = 0; i < SECRETS; i++) {
        if (secrets->texts[i])
            explicit_bzero(secrets->texts[i], strlen(secrets->texts[i]));
        free(secrets->texts[i]);
    }
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
    static const enum text_file_privacy privacies[SECRETS] = {
        [TOKEN] = TEXT_FILE_SECRET, [CERTIFICATE] = TEXT_FILE_TRUSTED, [KEY] = TEXT_FILE_SECRET};
    const char *const paths[SECRETS] = {
        [TOKEN] = options->token, [CERTIFICATE] = options->certificate, [KEY] = options->key};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SECRETS && status == STATUS_OK; i++) {
        struct text_file *file = NULL;
        size_t size;
        if (!paths[i][0])
            continue;
        status = text_file_open(&file, paths[i], privacies[i], err);
        if (status == STATUS_OK && !(secrets->texts[i] = strdup(text_file_contents(file, &size))))
            status = error_no_memory(err, "metrics");
        text_file_close(file);
    }
    if (status == STATUS_OK && secrets->texts[TOKEN])
        status = check_token(secrets->texts[TOKEN], options->token, err);
    return status;
}

static struct http_server_settings make_settings(const struct exporter_options *options,
                                                 const struct secrets *secrets,
                                                 http_handler *handler, void *context)
{
    return (struct http_server_settings){.host = options->listen.place,
                                         .port = options->listen.port,
                                         .token = secrets->texts[TOKEN],
                                         .certificate = secrets->texts[CERTIFICATE],
                                         .key = secrets->texts[KEY],
                                         .handler = handler,
                                         .context = context};
}

enum status exporter_check(const struct exporter_options *options, bool insecure, struct error *err)
{
    struct secrets secrets = {.texts = {NULL}};
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
    if (status == STATUS_OK && has_tls) {
        const struct http_server_settings settings = make_settings(options, &secrets, NULL, NULL);
        status = http_server_check(&settings, err);
    }
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

static enum status feed(struct exporter *exporter, struct error *err)
{
    enum status status = STATUS_OK;
    bool more = true;
    while (more && status == STATUS_OK && reader_thread_wait(&exporter->reader, 0)) {
        reader_thread_enter(&exporter->reader, READER_SHORT, QUERY_SECONDS);
        status = totals_feed(exporter->totals, exporter->reader.store, FEED_ROWS, &exporter->lock,
                             &more, err);
        reader_thread_leave(&exporter->reader, READER_SHORT);
    }
    return status;
}

static enum status read_part(struct exporter *exporter, unsigned part, struct result **tables,
                             struct error *err)
{
    const struct query query = {.kind = parts[part].kind};
    reader_thread_enter(&exporter->reader, READER_SHORT, QUERY_SECONDS);
    enum status status = part == 0 ? inventory_read(&exporter->inventory, exporter->reader.store,
                                                    clock_wall_ns(), tables, err)
                                   : store_query(exporter->reader.store, &query, tables, err);
    reader_thread_leave(&exporter->reader, READER_SHORT);
    if (status == STATUS_OK && parts[part].first == METRICS_PAGE_PING)
        channels_add_to_ping(exporter->channels, exporter->listener, exporter->path, *tables);
    return status == STATUS_NO_DATA ? STATUS_OK : status; // no device, no host
}

// Replaces the tables of a part, which come to `tables`.  Where they could not be read, they stay,
// but not for long.
static void publish(struct exporter *exporter, unsigned part, struct result **tables, bool is_read)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (is_read)
        exporter->read_ns[part] = now_ns;
    else if (now_ns - exporter->read_ns[part] < FROZEN_NS)
        return;
    (void)pthread_mutex_lock(&exporter->lock);
    for (unsigned i = 0; i < parts[part].count; i++) {
        struct result **shown = &exporter->tables[parts[part].first + i], *before = *shown;
        *shown = tables[i];
        tables[i] = before;
    }
    (void)pthread_mutex_unlock(&exporter->lock);
}

// Reads all but the totals.  Returns the first failure: `first`, that of the totals, or one of its
// own.
static enum status refresh(struct exporter *exporter, enum status first, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns();
    for (unsigned part = 0; part < PARTS; part++) {
        struct result *tables[INVENTORY_TABLES] = {NULL};
        struct error part_err;
        const enum status status = read_part(exporter, part, tables, &part_err);
        publish(exporter, part, tables, status == STATUS_OK);
        for (unsigned i = 0; i < INVENTORY_TABLES; i++)
            result_free(tables[i]);
        if (first == STATUS_OK && status != STATUS_OK) {
            first = status;
            *err = part_err;
        }
    }
    const uint64_t took_ns = clock_monotonic_ns() - began_ns;
    exporter->refresh_at_ns =
        began_ns + (took_ns * REFRESH_SHARE > REFRESH_NS ? took_ns * REFRESH_SHARE : REFRESH_NS);
    (void)pthread_mutex_lock(&exporter->lock);
    exporter->refresh_seconds = (double)took_ns / 1e9;
    if (first == STATUS_OK)
        exporter->refreshed_ns = clock_wall_ns();
    (void)pthread_mutex_unlock(&exporter->lock);
    return first;
}

static void *exporter_body(void *context)
{
    struct exporter *exporter = context;
    uint64_t pause_ns = 0;
    while (reader_thread_wait(&exporter->reader, clock_monotonic_ns() + pause_ns)) {
        struct error err = {.text = "failed"};
        enum status status = feed(exporter, &err);
        const bool is_due =
            status != STATUS_CANCELLED && clock_monotonic_ns() >= exporter->refresh_at_ns;
        if (is_due)
            status = refresh(exporter, status, &err);
        if (is_due || status != STATUS_OK)
            report(exporter, status, &err);
        pause_ns = SECOND_NS;
    }
    return NULL;
}

// ---- Pages --------------------------------------------------------------------------------------

static void answer_text(struct http_response *response, unsigned code, const char *text)
{
    response->code = code;
    response->type = "text/plain; charset=utf-8";
    response->body = strdup(text);
    response->size = response->body ? strlen(text) : 0;
}

static bool can_write(struct exporter *exporter)
{
    char why[ERROR_TEXT_SIZE];
    return channels_read_write_error(exporter->channels, why) == 0;
}

static void read_counters(struct channels *channels, struct metrics_page *page)
{
    for (unsigned i = 0; i < RECORD_KIND_COUNT; i++)
        page->stored[i] = atomic_load_explicit(&channels->stored[i], memory_order_relaxed);
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        page->rejected[i] = atomic_load_explicit(&channels->rejects.total[i], memory_order_relaxed);
}

static void answer_metrics(struct exporter *exporter, const struct http_request *request,
                           struct http_response *response)
{
    const uint64_t began_ns = clock_thread_ns();
    const bool is_openmetrics = metrics_text_accepts_openmetrics(request->accept);
    struct metrics_text text;
    if (metrics_text_open(&text, is_openmetrics) != STATUS_OK)
        return; // 500
    struct metrics_page page = {
        .totals = exporter->totals,
        .can_write = can_write(exporter),
        .started_seconds = (double)exporter->started_ns / 1e9,
        .cpu_seconds = (double)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9,
        .memory_bytes = (double)process_memory_bytes(),
        .series_max = exporter->options->series,
    };
    read_counters(exporter->channels, &page);
    (void)pthread_mutex_lock(&exporter->lock);
    memcpy(page.tables, exporter->tables, sizeof page.tables);
    page.scrapes = ++exporter->scrapes;
    page.scrape_cpu_seconds = exporter->scrape_cpu_seconds;
    page.refresh_seconds = exporter->refresh_seconds;
    page.refreshed_seconds =
        exporter->refreshed_ns > 0 ? (double)exporter->refreshed_ns / 1e9 : (double)NAN;
    metrics_page_write(&text, &page);
    const enum status status = metrics_text_close(&text, &response->body, &response->size);
    if (status == STATUS_OK)
        totals_show(exporter->totals);
    exporter->scrape_cpu_seconds += (double)(clock_thread_ns() - began_ns) / 1e9;
    (void)pthread_mutex_unlock(&exporter->lock);
    if (status != STATUS_OK)
        return; // 500
    response->code = 200;
    response->type = metrics_text_type(is_openmetrics);
}

static void on_request(void *context, const struct http_request *request,
                       struct http_response *response)
{
    struct exporter *exporter = context;
    const bool is_health = strcmp(request->path, "/health") == 0;
    if (!is_health && !request->is_authorized)
        answer_text(response, 401, "this needs the header Authorization: Bearer TOKEN\n");
    else if (!is_health && strcmp(request->path, "/metrics") != 0)
        answer_text(response, 404, "there are /metrics and /health\n");
    else if (is_health && !can_write(exporter))
        answer_text(response, 503, "the last commit failed\n");
    else if (is_health)
        answer_text(response, 200, "ok\n");
    else
        answer_metrics(exporter, request, response);
}

// ---- Start and end ------------------------------------------------------------------------------

// Reads the secrets and serves with them; on failure those of before, if there are any, stay.
enum status exporter_reload(struct exporter *exporter, struct error *err)
{
    struct secrets secrets = {.texts = {NULL}};
    if (!exporter)
        return STATUS_OK;
    const struct exporter_options *options = exporter->options;
    enum status status = secrets_read(&secrets, options, err);
    if (status == STATUS_OK) {
        const struct http_server_settings settings =
            make_settings(options, &secrets, on_request, exporter);
        status = exporter->server ? http_server_restart(&exporter->server, &settings, err)
                                  : http_server_start(&exporter->server, &settings, err);
    }
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
    exporter->started_ns = clock_wall_ns();
    // Half of the lines for the totals, the other half for all else.
    const size_t series = options->series / 2 / METRICS_PAGE_LINES_PER_SERIES + 1;
    enum status status = reader_thread_open(&exporter->reader, path, &channels->gate, err);
    if (status == STATUS_OK)
        status = totals_new(&exporter->totals, exporter->reader.store, series, err);
    if (status == STATUS_OK)
        status = inventory_begin(&exporter->inventory, exporter->reader.store, err);
    if (status == STATUS_OK)
        status = exporter_reload(exporter, err);
    if (status == STATUS_OK)
        status = reader_thread_start(&exporter->reader, "metrics", exporter_body, exporter, err);
    if (status != STATUS_OK) {
        exporter_stop(exporter);
        return status;
    }
    log_write(LOG_LEVEL_INFO, "metrics: %s://%s%s%s:%u/metrics%s",
              options->certificate[0] ? "https" : "http", options->listen.is_ipv6 ? "[" : "",
              options->listen.place, options->listen.is_ipv6 ? "]" : "", options->listen.port,
              options->token[0] ? ", with a token" : "");
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
