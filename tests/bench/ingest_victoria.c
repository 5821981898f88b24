#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/record/record.h"
#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/ingest.h"
#include "tests/bench/victoria.h"

enum {
    CONNECTIONS_MAX = 8,
    LINE_SIZE_MAX = 1024,
    TRIAL_RECORDS = 100000,
};

struct body {
    char *bytes;
    size_t size;
};

// A connection with its requests.
struct channel {
    pthread_t thread;
    int socket;
    struct body *bodies;
    size_t body_count;
};

// Nothing of what was sent was thrown away for its time or its form.
static void check_taken(const struct victoria *victoria, uint64_t samples)
{
    static const char counter[] = "\nvm_rows_inserted_total{type=\"influx\"} ";
    char *answer = victoria_get(victoria, "/metrics");
    const char *line = answer ? strstr(answer, counter) : NULL;
    uint64_t taken = 0;
    if (!line || sscanf(line + sizeof counter - 1, "%" SCNu64, &taken) != 1 || taken != samples)
        bench_die("victoria-metrics", "it did not take every sample");
    free(answer);
}

// One record; returns the line's size.  `*samples` grows by its fields.
static size_t write_line(char *line, const struct record *record, unsigned run, uint64_t *samples)
{
    const struct record_column *columns = record_kind_info(RECORD_KIND_INFERENCE)->columns;
    char separator = ' ';
    int used = snprintf(line, LINE_SIZE_MAX, "inference,run=%u,model=name-%d,device=name-%d", run,
                        (int)record->values[INFERENCE_MODEL].name,
                        (int)record->values[INFERENCE_DEVICE].name);
    for (unsigned i = 0; i < INFERENCE_COLUMNS; i++) {
        if (columns[i].type == COLUMN_NAME || !record_has(record, i))
            continue;
        used += snprintf(line + used, (size_t)(LINE_SIZE_MAX - used), "%c%s=%" PRId64, separator,
                         columns[i].name, record->values[i].i);
        separator = ',';
        ++*samples;
    }
    used +=
        snprintf(line + used, (size_t)(LINE_SIZE_MAX - used), " %" PRId64 "\n", record->started_ns);
    if (used >= LINE_SIZE_MAX)
        bench_die("lines", "one is too long");
    return (size_t)used;
}

// Lays out the channel's share of the records, `first` and after.
static void prepare_channel(struct channel *channel, const struct load *load, uint64_t first,
                            uint64_t count, unsigned lines, uint64_t *samples)
{
    channel->bodies = calloc((size_t)(count / lines + 1), sizeof *channel->bodies);
    for (uint64_t done = 0; channel->bodies && done < count; done += lines) {
        struct body *body = &channel->bodies[channel->body_count++];
        const uint64_t size = count - done < lines ? count - done : lines;
        char *grown = malloc((size_t)size * LINE_SIZE_MAX);
        if (!grown)
            bench_die("lines", "out of memory");
        for (uint64_t i = first + done; i < first + done + size; i++)
            body->size += write_line(grown + body->size, &load->records[i],
                                     (unsigned)(i * INGEST_PRODUCERS / load->count) + 1, samples);
        body->bytes = realloc(grown, body->size + 1);
    }
}

static void *run_channel(void *context)
{
    const struct channel *channel = context;
    for (size_t i = 0; i < channel->body_count; i++)
        victoria_post(channel->socket, channel->bodies[i].bytes, channel->bodies[i].size);
    return NULL;
}

static void free_channel(struct channel *channel)
{
    for (size_t i = 0; i < channel->body_count; i++)
        free(channel->bodies[i].bytes);
    free(channel->bodies);
    (void)close(channel->socket);
}

double victoria_rate(const struct load *load, const struct victoria_client *client)
{
    struct victoria victoria = {0};
    struct channel channels[CONNECTIONS_MAX] = {0};
    uint64_t samples = 0, first = 0;
    victoria_start(&victoria, load->folder);
    for (unsigned i = 0; i < client->connections; i++) {
        const uint64_t end = load->count * (i + 1) / client->connections;
        prepare_channel(&channels[i], load, first, end - first, client->lines, &samples);
        channels[i].socket = victoria_connect(&victoria);
        if (channels[i].socket < 0)
            bench_die("victoria-metrics", "no connection");
        first = end;
    }
    const uint64_t began = clock_monotonic_ns();
    for (unsigned i = 0; i < client->connections; i++)
        if (pthread_create(&channels[i].thread, NULL, run_channel, &channels[i]) != 0)
            bench_die("victoria-metrics", "no thread for a connection");
    for (unsigned i = 0; i < client->connections; i++)
        (void)pthread_join(channels[i].thread, NULL);
    const uint64_t ended = clock_monotonic_ns();
    check_taken(&victoria, samples);
    for (unsigned i = 0; i < client->connections; i++)
        free_channel(&channels[i]);
    victoria_stop(&victoria);
    return (double)load->count * 1e9 / (double)(ended - began);
}

struct victoria_client victoria_best_client(const struct load *load)
{
    static const unsigned connections[] = {2, 4, CONNECTIONS_MAX};
    static const unsigned lines[] = {1000, 5000, 25000};
    struct load trial = *load;
    struct victoria_client best = {0};
    double best_rate = 0;
    if (trial.count > TRIAL_RECORDS)
        trial.count = TRIAL_RECORDS;
    for (unsigned i = 0; i < sizeof connections / sizeof *connections; i++)
        for (unsigned k = 0; k < sizeof lines / sizeof *lines; k++) {
            const struct victoria_client client = {connections[i], lines[k]};
            const double rate = victoria_rate(&trial, &client);
            if (rate > best_rate)
                best = client;
            if (rate > best_rate)
                best_rate = rate;
        }
    return best;
}
