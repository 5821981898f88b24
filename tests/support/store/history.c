#include "tests/support/store/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/core/record/record.h"
#include "common/core/stats/sketch.h"
#include "common/sys/clock.h"
#include "common/wire/codec.h"
#include "server/collector/threads/channels.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer.h"
#include "tests/support/store/health.h"
#include "tests/support/store/history_rollups.h"

enum {
    BATCH_MAX = 1024, // records
    RUN_DAYS = 30,
    HOURS = 24,
    SPELL_LEAST = 3, // hours
    SPELL_RATIO = 24,
    STAGES = 5,
};

#define HOUR_NS INT64_C(3600000000000)
#define MS      INT64_C(1000000)
#define MB      INT64_C(1048576)

struct host {
    unsigned char run[MESSAGE_RUN_SIZE];
    uint64_t sequence, number; // of the message and the record sent last
    uint64_t request;
    unsigned model; // that it serves, until that hour
    unsigned serves_until;
    struct health health;
    bool is_open;
    struct table_builder *builder;
};

struct maker {
    struct history plan;
    struct channels *channels;
    struct writer *writer;
    struct host hosts[HISTORY_HOSTS_MAX];
    double share[HISTORY_MODELS_MAX]; // running sums, to 1
    uint64_t random, made;
    double due; // inferences that should have been made
    enum status status;
    struct error err;
};

// splitmix64 (Steele, Lea, Flood 2014).
static uint64_t next_random(struct maker *maker)
{
    uint64_t z = maker->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double uniform(struct maker *maker)
{
    return (double)(next_random(maker) >> 11) * 0x1p-53;
}

// About normal: four uniform numbers in one draw, of variance 1/12 each.
static double normal(struct maker *maker)
{
    const uint64_t bits = next_random(maker);
    const double sum = (double)(bits & 0xffff) + (double)(bits >> 16 & 0xffff) +
                       (double)(bits >> 32 & 0xffff) + (double)(bits >> 48);
    return (sum / 65536 - 2) * 1.7320508075688772;
}

static int64_t spread(struct maker *maker, double median, double sigma)
{
    return (int64_t)(median * exp(sigma * normal(maker)));
}

// ---- To the writer -----------------------------------------------------------------------

static void rest(void)
{
    const struct timespec moment = {.tv_nsec = 200000};
    (void)nanosleep(&moment, NULL);
}

// Nobody waits for these.
static void drop_answers(struct queue *answers)
{
    for (void *answer; (answer = queue_pop(answers)) != NULL;)
        answer_free(answer);
}

static void hand_over(struct maker *maker, struct job *job)
{
    const size_t size = sizeof *job + message_memory(&job->message);
    while (!queue_push(maker->channels->inbox, job, size)) {
        drop_answers(maker->channels->acks);
        rest();
    }
    drop_answers(maker->channels->acks);
}

static void fail(struct maker *maker, enum status status)
{
    if (maker->status == STATUS_OK)
        maker->status = status;
}

// By way of bytes, as from a socket.
static void send(struct maker *maker, const struct message *message, int64_t received_ns)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    struct job *job = calloc(1, sizeof *job);
    enum status status = job ? codec_encode(&bytes, &size, message, &maker->err)
                             : error_set(&maker->err, STATUS_NOMEM, "history: out of memory");
    if (status == STATUS_OK)
        status = codec_decode(&job->message, bytes, size, &maker->err);
    free(bytes);
    if (status != STATUS_OK) {
        free(job);
        fail(maker, status);
        return;
    }
    job->received_ns = received_ns;
    hand_over(maker, job);
}

static struct wire_bytes bytes_of(const char *text)
{
    return (struct wire_bytes){strlen(text), text};
}

// Models first, then a device, an operation, stages and an event.
static unsigned list_names(const struct maker *maker, char texts[][32], struct wire_bytes *names)
{
    static const char *const others[] = {
        "gpu",         "tokenize",       "device_selection", "file_opening",
        "read_header", "tokenizer_init", "model_building",   "throttling"};
    unsigned count = 0;
    for (; count < maker->plan.models; count++) {
        (void)snprintf(texts[count], 32, "model-%02u", count);
        names[count] = bytes_of(texts[count]);
    }
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
        names[count++] = bytes_of(others[i]);
    return count;
}

// Sends what the builder has, which ends with the host's last number.
static void send_batch(struct maker *maker, struct host *host, uint64_t first, int64_t now_ns)
{
    char texts[HISTORY_MODELS_MAX][32];
    struct wire_bytes names[HISTORY_MODELS_MAX + 8];
    struct message message = {.kind = MESSAGE_BATCH};
    message.batch = (struct message_batch){.sequence = ++host->sequence,
                                           .sent_ns = now_ns,
                                           .first = first,
                                           .last = host->number,
                                           .names_first = 1,
                                           .names = names};
    memcpy(message.batch.run, host->run, sizeof host->run);
    if (first == 1)
        message.batch.name_count = list_names(maker, texts, names);
    message.batch.tables = table_builder_tables(host->builder, &message.batch.table_count);
    send(maker, &message, now_ns + 50 * MS);
    table_builder_reset(host->builder);
}

// The records of a host at one time; in batches, with what is left at the end.
struct outbox {
    struct maker *maker;
    struct host *host;
    uint64_t first; // of the batch
    int64_t last_ns;
};

static void put(struct outbox *box, const struct record *record)
{
    if (table_builder_add(box->host->builder, ++box->host->number, record) != STATUS_OK)
        fail(box->maker, error_set(&box->maker->err, STATUS_NOMEM, "history: out of memory"));
    if (record->started_ns > box->last_ns)
        box->last_ns = record->started_ns;
    if (box->host->number - box->first + 1 < BATCH_MAX)
        return;
    send_batch(box->maker, box->host, box->first, box->last_ns);
    box->first = box->host->number + 1;
}

static void post(struct outbox *box)
{
    if (box->host->number >= box->first)
        send_batch(box->maker, box->host, box->first, box->last_ns);
}

// ---- Records -----------------------------------------------------------------------------

static uint32_t other_name(const struct maker *maker, unsigned i)
{
    return maker->plan.models + 1 + i;
}

static unsigned pick_model(struct maker *maker)
{
    const double at = uniform(maker);
    unsigned model = 0;
    while (model + 1 < maker->plan.models && maker->share[model] < at)
        model++;
    return model;
}

static void put_inference(struct outbox *box, int64_t at_ns)
{
    struct maker *maker = box->maker;
    const unsigned model = box->host->model;
    const int64_t prompt = 1 + spread(maker, 400, 1.1);
    const int64_t generated = 1 + spread(maker, 180, 0.8);
    const int64_t queue = spread(maker, 2e6, 1.5);
    const int64_t prefill = (int64_t)((double)prompt * (20e3 + 5e3 * model)) + 3 * MS;
    const double gap = (4e6 + 1e6 * model) * exp(0.15 * normal(maker));
    const int64_t decode = (int64_t)(gap * (double)(generated - 1));
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, at_ns);
    record_set_name(&record, INFERENCE_MODEL, model + 1);
    record_set_name(&record, INFERENCE_DEVICE, other_name(maker, 0));
    record_set_int(&record, INFERENCE_REQUEST, (int64_t)++box->host->request);
    record_set_int(&record, INFERENCE_FINISH,
                   next_random(maker) % 50 ? RECORD_FINISH_STOP : RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, prompt);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, prompt / 4);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, generated);
    record_set_int(&record, INFERENCE_QUEUE_NS, queue);
    record_set_int(&record, INFERENCE_PREFILL_NS, prefill);
    record_set_int(&record, INFERENCE_TTFT_NS, queue + prefill);
    if (generated > 1) {
        record_set_int(&record, INFERENCE_DECODE_NS, decode);
        record_set_int(&record, INFERENCE_ITL_MAX_NS, (int64_t)(gap * 3));
        record_set_int(&record, INFERENCE_ITL_P99_NS, (int64_t)(gap * 1.6));
    }
    record_set_int(&record, INFERENCE_E2E_NS, queue + prefill + (generated > 1 ? decode : 0));
    record_set_int(&record, INFERENCE_HOST_MEMORY, 4096 * MB + (int64_t)(model * 512) * MB);
    record_set_int(&record, INFERENCE_DEVICE_MEMORY, 60000 * MB);
    record_set_int(&record, INFERENCE_CONCURRENT, 1 + (int64_t)(next_random(maker) % 8));
    put(box, &record);
}

static void set_text(struct record *record, unsigned column, const char *text)
{
    (void)record_set_text(record, column, text, strlen(text));
}

static void put_run_facts(struct outbox *box, int64_t at_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, at_ns);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, other_name(box->maker, 0));
    record_set_int(&record, DEVICE_MEMORY_BYTES, 81920 * MB);
    record_set_real(&record, DEVICE_MEMORY_BANDWIDTH, 3.35e12);
    put(box, &record);

    record_init(&record, RECORD_KIND_MODEL, at_ns);
    record_set_name(&record, MODEL_NAME, 1);
    set_text(&record, MODEL_FORMAT, "gguf");
    set_text(&record, MODEL_QUANTISATION, "f16");
    record_set_int(&record, MODEL_PARAMETERS, 15191712);
    put(box, &record);

    record_init(&record, RECORD_KIND_STARTUP, at_ns);
    record_set_int(&record, STARTUP_DURATION_NS, spread(box->maker, 9e8, 0.3));
    record_set_int(&record, STARTUP_MEMORY_START_BYTES, 4 * MB);
    record_set_int(&record, STARTUP_MEMORY_READY_BYTES, 12 * MB);
    put(box, &record);
}

static void put_load(struct outbox *box, int64_t at_ns)
{
    struct maker *maker = box->maker;
    const bool failed = next_random(maker) % 20 == 0;
    int64_t stages[STAGES], whole = 2 * MS;
    for (unsigned i = 0; i < STAGES; i++)
        whole += stages[i] = spread(maker, 1e7 * (i + 1) * (i + 1), 0.5);
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, at_ns);
    record_set_name(&record, LOAD_MODEL, box->host->model + 1);
    record_set_name(&record, LOAD_DEVICE, other_name(maker, 0));
    record_set_int(&record, LOAD_DURATION_NS, whole);
    record_set_int(&record, LOAD_STATUS, failed ? RECORD_STATUS_ERROR : RECORD_STATUS_OK);
    if (failed)
        set_text(&record, LOAD_ERROR, "no room on the device");
    record_set_int(&record, LOAD_MODEL_BYTES, 58 * MB);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 12 * MB);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 71 * MB);
    record_set_real(&record, LOAD_PAGE_CACHE_RATIO, uniform(maker));
    put(box, &record);
    const int64_t load = (int64_t)box->host->number;
    for (unsigned i = 0; i < STAGES; i++) {
        record_init(&record, RECORD_KIND_LOAD_STAGE, at_ns);
        record_set_int(&record, LOAD_STAGE_PARENT, load);
        record_set_int(&record, LOAD_STAGE_ORDINAL, i);
        record_set_name(&record, LOAD_STAGE_STAGE, other_name(maker, 2 + i));
        record_set_int(&record, LOAD_STAGE_DURATION_NS, stages[i]);
        put(box, &record);
        at_ns += stages[i];
    }
}

static void put_gaps(struct outbox *box, int64_t at_ns)
{
    struct maker *maker = box->maker;
    unsigned char bytes[512];
    struct sketch *sketch = NULL;
    uint32_t next = 0;
    struct record record;
    if (sketch_new(&sketch) != STATUS_OK) {
        fail(maker, error_set(&maker->err, STATUS_NOMEM, "history: out of memory"));
        return;
    }
    for (unsigned i = 0; i < 40; i++)
        sketch_add(sketch, (double)spread(maker, 8e6, 0.4), 1);
    const size_t size = sketch_encode(sketch, bytes, sizeof bytes, &next);
    sketch_free(sketch);
    record_init(&record, RECORD_KIND_ITL, at_ns);
    record_set_name(&record, ITL_MODEL, box->host->model + 1);
    record_set_name(&record, ITL_DEVICE, other_name(maker, 0));
    record_set_int(&record, ITL_DURATION_NS, 1000 * MS);
    if (record_set_blob(&record, ITL_SKETCH, bytes, size) == size)
        put(box, &record);
}

static void put_samples(struct outbox *box, int64_t at_ns)
{
    struct maker *maker = box->maker;
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, at_ns);
    record_set_real(&record, PROCESS_SAMPLE_CPU, uniform(maker));
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, spread(maker, 4e9, 0.1));
    put(box, &record);
    health_device_sample(&record, &box->host->health, other_name(maker, 0), at_ns, 1000 * MS);
    put(box, &record);
    health_host_sample(&record, &box->host->health, at_ns, 1000 * MS);
    put(box, &record);
    record_init(&record, RECORD_KIND_DEVICE_PROCESS, at_ns);
    record_set_name(&record, DEVICE_PROCESS_DEVICE, other_name(maker, 0));
    record_set_int(&record, DEVICE_PROCESS_PID, 1000);
    set_text(&record, DEVICE_PROCESS_NAME, "history");
    record_set_int(&record, DEVICE_PROCESS_MEMORY, 60000 * MB);
    put(box, &record);
    record_init(&record, RECORD_KIND_EVENT, at_ns);
    record_set_name(&record, EVENT_EVENT, other_name(maker, 2 + STAGES));
    record_set_name(&record, EVENT_DEVICE, other_name(maker, 0));
    record_set_int(&record, EVENT_DURATION_NS, 1000 * MS);
    record_set_int(&record, EVENT_CODE, 4);
    put(box, &record);
    record_init(&record, RECORD_KIND_OPERATION, at_ns);
    record_set_name(&record, OPERATION_OPERATION, other_name(maker, 1));
    record_set_int(&record, OPERATION_DURATION_NS, spread(maker, 250e3, 0.5));
    record_set_int(&record, OPERATION_ITEMS, 500);
    put(box, &record);
}

static void put_pipeline(struct outbox *box, int64_t at_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_PIPELINE, at_ns);
    for (unsigned i = PIPELINE_STATUS; i < PIPELINE_COLUMNS; i++)
        if (!record_kind_info(RECORD_KIND_PIPELINE)->columns[i].maybe)
            record_set_int(&record, i, spread(box->maker, 1e6, 0.3));
    record_set_int(&record, PIPELINE_STATUS, RECORD_STATUS_OK);
    record_set_int(&record, PIPELINE_SYNC, RECORD_SYNC_EVENTS);
    record_set_name(&record, PIPELINE_WORKLOAD, other_name(box->maker, 1));
    record_set_name(&record, PIPELINE_DEVICE, other_name(box->maker, 0));
    put(box, &record);
}

// Once a day and host.
static void put_others(struct outbox *box, int64_t at_ns)
{
    put_load(box, at_ns);
    put_gaps(box, at_ns + 1000 * MS);
    put_samples(box, at_ns + 2000 * MS);
    put_pipeline(box, at_ns + 3000 * MS);
}

// ---- Runs ----------------------------------------------------------------------------------

static void greet(struct maker *maker, unsigned place, int64_t at_ns)
{
    struct host *host = &maker->hosts[place];
    char name[32];
    struct message message = {.kind = MESSAGE_HELLO};
    (void)snprintf(name, sizeof name, "host-%03u", place);
    host->is_open = true;
    host->number = host->sequence = 0;
    for (unsigned i = 0; i < sizeof host->run; i += 8) {
        const uint64_t bits = next_random(maker);
        memcpy(host->run + i, &bits, 8);
    }
    message.hello = (struct message_hello){.protocol = MESSAGE_PROTOCOL,
                                           .host = bytes_of(name),
                                           .worker_version = bytes_of("history"),
                                           .os = bytes_of("Debian GNU/Linux 12"),
                                           .kernel = bytes_of("6.1.0"),
                                           .cpu = bytes_of("EPYC"),
                                           .pid = 1000 + (int64_t)place,
                                           .started_ns = at_ns,
                                           .cpu_count = 16,
                                           .host_memory_bytes = 65536 * MB,
                                           .device_count = 1};
    memcpy(message.hello.run, host->run, sizeof host->run);
    send(maker, &message, at_ns);
}

static void part(struct maker *maker, struct host *host, int64_t at_ns)
{
    const struct delivery_stream stream = {.produced = host->number};
    struct message message = {.kind = MESSAGE_GOODBYE};
    message.goodbye = (struct message_goodbye){.sequence = ++host->sequence,
                                               .ended_ns = at_ns,
                                               .streams = &stream,
                                               .stream_count = host->number > 0};
    memcpy(message.goodbye.run, host->run, sizeof host->run);
    send(maker, &message, at_ns + 50 * MS);
    host->is_open = false;
}

// How busy an hour of the day is: four times as much at the peak as at night.
static double weight(unsigned hour)
{
    return 1 - 0.6 * cos(2 * 3.14159265358979323846 * (hour % HOURS + 0.5) / HOURS);
}

// How many inferences fall to this host and hour, so that all sum up to the plan.
static uint64_t count_of(struct maker *maker, unsigned hour)
{
    const double hours = (double)maker->plan.days * HOURS * maker->plan.hosts;
    maker->due += weight(hour) * (double)maker->plan.inferences / hours;
    // Rounding adds up, to some 1e-5 of a hundred million.
    uint64_t until = (uint64_t)(maker->due + 1e-3);
    if (until > maker->plan.inferences)
        until = maker->plan.inferences;
    const uint64_t count = until - maker->made;
    maker->made = until;
    return count;
}

// From a few hours to three days, more often short.
static void change_model(struct maker *maker, struct host *host, unsigned hour)
{
    if (hour < host->serves_until)
        return;
    host->model = pick_model(maker);
    host->serves_until = hour + (unsigned)(SPELL_LEAST * pow(SPELL_RATIO, uniform(maker)));
}

static void make_hour(struct maker *maker, unsigned place, unsigned hour, int64_t at_ns)
{
    struct host *host = &maker->hosts[place];
    change_model(maker, host, hour);
    struct outbox box = {.maker = maker, .host = host, .first = host->number + 1};
    const uint64_t count = count_of(maker, hour);
    if (host->number == 0)
        put_run_facts(&box, at_ns);
    if (maker->plan.has_all_kinds && hour % HOURS == place % HOURS)
        put_others(&box, at_ns + 1000 * MS);
    for (uint64_t i = 0; i < count; i++) {
        const double at = ((double)i + uniform(maker)) / (double)count;
        put_inference(&box, at_ns + (int64_t)(at * (double)(HOUR_NS - MS)));
    }
    post(&box);
}

static void make_all(struct maker *maker)
{
    const struct history *plan = &maker->plan;
    const unsigned hours = plan->days * HOURS;
    const int64_t begin_ns = plan->until_ns - (int64_t)hours * HOUR_NS;
    for (unsigned hour = 0; hour < hours && maker->status == STATUS_OK; hour++) {
        const int64_t at_ns = begin_ns + (int64_t)hour * HOUR_NS;
        for (unsigned place = 0; place < plan->hosts && maker->status == STATUS_OK; place++) {
            struct host *host = &maker->hosts[place];
            if (host->is_open && (hour + place) % (RUN_DAYS * HOURS) == 0)
                part(maker, host, at_ns);
            if (!host->is_open)
                greet(maker, place, at_ns);
            make_hour(maker, place, hour, at_ns);
        }
    }
    for (unsigned place = 0; place < plan->hosts && !plan->keeps_last_runs_open; place++)
        if (maker->hosts[place].is_open && maker->status == STATUS_OK)
            part(maker, &maker->hosts[place], plan->until_ns);
}

// ---- The writer ------------------------------------------------------------------------------

static enum status start(struct maker *maker)
{
    struct error *err = &maker->err;
    enum status status = channels_new(&maker->channels, err);
    for (unsigned i = 0; i < maker->plan.hosts && status == STATUS_OK; i++)
        if (table_builder_new(&maker->hosts[i].builder) != STATUS_OK)
            status = error_set(err, STATUS_NOMEM, "history: out of memory");
    const struct writer_config config = {.path = maker->plan.path,
                                         .channels = maker->channels,
                                         .limits = LIMITS_DEFAULT,
                                         .retention = retention_rules_default(),
                                         .no_rollups = true};
    return status == STATUS_OK ? writer_start(&maker->writer, &config, err) : status;
}

static void stop(struct maker *maker)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        abort();
    job->kind = JOB_STOP;
    hand_over(maker, job);
    writer_join(maker->writer);
}

static void free_maker(struct maker *maker)
{
    for (unsigned i = 0; i < HISTORY_HOSTS_MAX; i++)
        table_builder_free(maker->hosts[i].builder);
    channels_free(maker->channels);
    free(maker);
}

// Shares of models fall like 1 / (place + 2).
static void set_shares(struct maker *maker)
{
    double sum = 0;
    for (unsigned i = 0; i < maker->plan.models; i++)
        maker->share[i] = sum += 1.0 / (i + 2);
    for (unsigned i = 0; i < maker->plan.models; i++)
        maker->share[i] /= sum;
}

static bool is_possible(const struct history *history)
{
    return history->models >= 1 && history->models <= HISTORY_MODELS_MAX && history->hosts >= 1 &&
           history->hosts <= HISTORY_HOSTS_MAX && history->days >= 1 && history->days <= 3660;
}

enum status history_write(const struct history *history, double *seconds, struct error *err)
{
    struct maker *maker = calloc(1, sizeof *maker);
    if (!maker)
        return error_set(err, STATUS_NOMEM, "history: out of memory");
    if (!is_possible(history)) {
        free(maker);
        return error_set(err, STATUS_INVALID, "history: no such history can be made");
    }
    maker->plan = *history;
    maker->random = history->seed;
    set_shares(maker);
    const uint64_t began = clock_monotonic_ns();
    maker->status = start(maker);
    if (maker->status == STATUS_OK) {
        make_all(maker);
        stop(maker);
    }
    if (maker->status == STATUS_OK)
        maker->status = history_roll_up(history->path, history->until_ns, &maker->err);
    *seconds = (double)(clock_monotonic_ns() - began) / 1e9;
    const enum status status = maker->status;
    *err = maker->err;
    free_maker(maker);
    return status;
}
