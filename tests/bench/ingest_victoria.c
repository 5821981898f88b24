#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/core/record.h"
#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/ingest.h"
#include "tests/support/folder.h"

enum {
    CONNECTIONS_MAX = 8,
    LINE_SIZE_MAX = 1024,
    READY_S = 20,
    TRIAL_RECORDS = 100000,
};

static const char program[] = "/usr/bin/victoria-metrics";

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

struct victoria {
    pid_t pid;
    uint16_t port;
    char folder[FOLDER_PATH_SIZE];
};

bool victoria_exists(void)
{
    return access(program, X_OK) == 0;
}

// ---- HTTP -------------------------------------------------------------------------------

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        return fd;
    }
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static bool send_bytes(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

// Posts one body and waits for the answer, which has none itself.
static void post(int fd, const struct body *body)
{
    char text[2048];
    const int size = snprintf(text, sizeof text,
                              "POST /write HTTP/1.1\r\nHost: localhost\r\n"
                              "Content-Length: %zu\r\n\r\n",
                              body->size);
    size_t used = 0;
    if (!send_bytes(fd, text, (size_t)size) || !send_bytes(fd, body->bytes, body->size))
        bench_die("victoria-metrics", "it takes no more");
    do {
        const ssize_t got = recv(fd, text + used, sizeof text - 1 - used, 0);
        if (got <= 0)
            bench_die("victoria-metrics", "it does not answer");
        used += (size_t)got;
        text[used] = '\0';
    } while (!strstr(text, "\r\n\r\n") && used < sizeof text - 1);
    if (strncmp(text, "HTTP/1.1 204", 12) != 0)
        bench_die("victoria-metrics", text);
}

// The whole answer to a GET, to be freed; NULL where nobody listens.
static char *get(uint16_t port, const char *path)
{
    char request[256];
    size_t used = 0, room = 1 << 20;
    const int fd = connect_to(port);
    char *answer = malloc(room);
    const int size =
        snprintf(request, sizeof request,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (fd < 0 || !answer || !send_bytes(fd, request, (size_t)size)) {
        if (fd >= 0)
            (void)close(fd);
        free(answer);
        return NULL;
    }
    ssize_t got;
    while (used < room - 1 && (got = recv(fd, answer + used, room - 1 - used, 0)) > 0)
        used += (size_t)got;
    (void)close(fd);
    answer[used] = '\0';
    return answer;
}

// ---- The program ----------------------------------------------------------------------

static void run_program(const struct victoria *victoria)
{
    char data[FOLDER_PATH_SIZE + 32], listen[64];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(data, sizeof data, "-storageDataPath=%s", victoria->folder);
    (void)snprintf(listen, sizeof listen, "-httpListenAddr=127.0.0.1:%u", victoria->port);
    (void)execl(program, program, data, listen, "-retentionPeriod=100y", "-search.latencyOffset=0s",
                "-loggerLevel=ERROR", (char *)NULL);
    _exit(127);
}

static void start_program(struct victoria *victoria, const struct load *load)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    const uint64_t deadline = clock_monotonic_ns() + READY_S * UINT64_C(1000000000);
    (void)folder_path(victoria->folder, load->folder, "victoria");
    victoria->port = bench_free_ports(1);
    victoria->pid = fork();
    if (victoria->pid == 0)
        run_program(victoria);
    for (bool ready = false; !ready; (void)nanosleep(&moment, NULL)) {
        char *answer = get(victoria->port, "/health");
        ready = answer && strstr(answer, "200 OK") != NULL;
        free(answer);
        if (clock_monotonic_ns() > deadline)
            bench_die("victoria-metrics", "it does not start");
    }
}

static void stop_program(const struct victoria *victoria)
{
    int status;
    (void)kill(victoria->pid, SIGTERM);
    (void)waitpid(victoria->pid, &status, 0);
    folder_remove(victoria->folder);
}

// Nothing of what was sent was thrown away for its time or its form.
static void check_taken(const struct victoria *victoria, uint64_t samples)
{
    static const char counter[] = "\nvm_rows_inserted_total{type=\"influx\"} ";
    char *answer = get(victoria->port, "/metrics");
    const char *line = answer ? strstr(answer, counter) : NULL;
    uint64_t taken = 0;
    if (!line || sscanf(line + sizeof counter - 1, "%" SCNu64, &taken) != 1 || taken != samples)
        bench_die("victoria-metrics", "it did not take every sample");
    free(answer);
}

// ---- Lines --------------------------------------------------------------------------------

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
        body->bytes = realloc(grown, body->size);
    }
}

static void *run_channel(void *context)
{
    const struct channel *channel = context;
    for (size_t i = 0; i < channel->body_count; i++)
        post(channel->socket, &channel->bodies[i]);
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
    start_program(&victoria, load);
    for (unsigned i = 0; i < client->connections; i++) {
        const uint64_t end = load->count * (i + 1) / client->connections;
        prepare_channel(&channels[i], load, first, end - first, client->lines, &samples);
        channels[i].socket = connect_to(victoria.port);
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
    stop_program(&victoria);
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
