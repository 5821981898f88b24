// An inference engine without a model: it answers requests one after the other on each of its
// devices, at a steady pace, but slower where and while it is told.  For fleets that are simulated
// on one machine: it sleeps, and takes next to no processor time.
//
//     fleet_engine [--model NAME] [--devices N] [--token-ms MS] [--tokens N] [--seconds S]
//                  [--uuid PREFIX] [--slow DEVICE:FROM:UNTIL:FACTOR]... [--cycle S]
//                  [--fail DEVICE:FROM:UNTIL]...
//
// Device I is "cuda:I" and has the UUID PREFIX and I as 12 hexadecimal digits.  From FROM to UNTIL
// seconds after the start, and with --cycle again every S seconds, tokens on DEVICE take FACTOR
// times as long, or the requests that begin on it fail.  SIGTERM or SIGINT ends it, or --seconds S.
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/monitor/inferstat.h"

enum { DEVICES_MAX = 16, SLOW_MAX = 16, PROMPT_TOKENS = 128 };

#define PREFILL_TOKENS 4 // as long as so many tokens
#define LATE_NS        UINT64_C(100000000)
#define MEMORY_BYTES   (INT64_C(80) << 30)

struct slow {
    unsigned int device;
    double from, until, factor; // 0: requests fail
};

struct settings {
    const char *model, *uuid;
    unsigned int devices, tokens, slow_count;
    double token_ms, seconds, cycle;
    struct slow slow[SLOW_MAX];
};

struct device {
    uint32_t name;
    struct inferstat_inference *inference;
    uint64_t due_ns;   // of the next step
    unsigned int step; // of the request: 0: it arrives, 1, 2, ...: token
    bool fails;        // the request
    uint64_t requests;
};

static volatile sig_atomic_t stopping;

static void stop(int number)
{
    (void)number;
    stopping = 1;
}

static void say(void *context, enum inferstat_log_level level, const char *text)
{
    (void)context;
    if (level != INFERSTAT_LOG_INFO)
        (void)fprintf(stderr, "fleet_engine: %s\n", text);
}

// How much longer a token takes than usual.
static double find_factor(const struct settings *settings, unsigned int device, double second)
{
    if (settings->cycle > 0)
        second = fmod(second, settings->cycle);
    for (unsigned int i = 0; i < settings->slow_count; i++) {
        const struct slow *slow = &settings->slow[i];
        if (slow->device == device && second >= slow->from && second < slow->until)
            return slow->factor;
    }
    return 1;
}

static void take_step(struct device *device, const struct settings *settings, uint32_t model,
                      double token_ns, bool fails)
{
    if (device->step == 0) {
        device->fails = fails;
        inferstat_inference_begin(device->inference,
                                  &(struct inferstat_request){.model = model,
                                                              .device = device->name,
                                                              .request = ++device->requests,
                                                              .prompt_tokens = PROMPT_TOKENS});
        inferstat_inference_start_prefill(device->inference);
        device->due_ns += (uint64_t)(token_ns * PREFILL_TOKENS);
    } else {
        inferstat_inference_token(device->inference);
        device->due_ns += (uint64_t)token_ns;
    }
    if (device->step++ == settings->tokens) {
        if (device->fails)
            inferstat_inference_fail(device->inference, "as the test wants");
        else
            inferstat_inference_end(device->inference, INFERSTAT_FINISH_LENGTH);
        device->step = 0;
    }
}

static void work(struct device *devices, const struct settings *settings, uint32_t model)
{
    const uint64_t began_ns = inferstat_clock_ns();
    const double token_ns = settings->token_ms * 1e6;
    for (unsigned int i = 0; i < settings->devices; i++) // not all at once
        devices[i].due_ns = began_ns + (uint64_t)(token_ns * i / settings->devices);
    while (!stopping) {
        unsigned int next = 0;
        for (unsigned int i = 1; i < settings->devices; i++)
            next = devices[i].due_ns < devices[next].due_ns ? i : next;
        const uint64_t now_ns = inferstat_clock_ns();
        const double second = (double)(now_ns - began_ns) / 1e9;
        if (settings->seconds > 0 && second >= settings->seconds)
            return;
        if (devices[next].due_ns > now_ns) {
            const uint64_t wait_ns = devices[next].due_ns - now_ns;
            (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(wait_ns / 1000000000),
                                               .tv_nsec = (long)(wait_ns % 1000000000)},
                            NULL);
            continue;
        }
        if (devices[next].due_ns + LATE_NS < now_ns) // what was overslept is not caught up with
            devices[next].due_ns = now_ns;
        const double factor = find_factor(settings, next, second);
        take_step(&devices[next], settings, model, factor > 0 ? token_ns * factor : token_ns,
                  factor <= 0);
    }
}

static void load_model(struct inferstat_monitor *monitor, uint32_t model, uint32_t device)
{
    struct inferstat_load *load = inferstat_load_begin(monitor, model, device);
    inferstat_load_start_stage(load, "file_opening");
    inferstat_load_start_stage(load, "model_building");
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    inferstat_load_set_model_bytes(load, INT64_C(16) << 30);
    inferstat_load_end(load, INFERSTAT_RESULT_OK, NULL);
}

static uint32_t add_device(struct inferstat_monitor *monitor, unsigned int number, const char *uuid)
{
    char name[32], whole[128];
    struct inferstat_device device;
    inferstat_device_init(&device);
    (void)snprintf(name, sizeof name, "cuda:%u", number);
    (void)snprintf(whole, sizeof whole, "%s%012x", uuid, number);
    device.ordinal = number;
    device.name = name;
    device.uuid = whole;
    device.memory_bytes = MEMORY_BYTES;
    return inferstat_add_device(monitor, &device);
}

static bool read_settings(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){.model = "llama-8b",
                                  .uuid = "GPU-00000000-0000-0000-0000-",
                                  .devices = 1,
                                  .tokens = 32,
                                  .token_ms = 20};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        struct slow *slow = &settings->slow[settings->slow_count];
        if (strcmp(option, "--model") == 0)
            settings->model = value;
        else if (strcmp(option, "--uuid") == 0)
            settings->uuid = value;
        else if (strcmp(option, "--devices") == 0)
            settings->devices = (unsigned int)strtoul(value, NULL, 10);
        else if (strcmp(option, "--tokens") == 0)
            settings->tokens = (unsigned int)strtoul(value, NULL, 10);
        else if (strcmp(option, "--token-ms") == 0)
            settings->token_ms = strtod(value, NULL);
        else if (strcmp(option, "--seconds") == 0)
            settings->seconds = strtod(value, NULL);
        else if (strcmp(option, "--cycle") == 0)
            settings->cycle = strtod(value, NULL);
        else if (settings->slow_count < SLOW_MAX &&
                 sscanf(value, "%u:%lf:%lf:%lf", &slow->device, &slow->from, &slow->until,
                        &slow->factor) == (strcmp(option, "--slow") == 0   ? 4
                                           : strcmp(option, "--fail") == 0 ? 3
                                                                           : -1))
            settings->slow_count++; // the factor of --fail is 0
        else
            return false;
    }
    return argc % 2 == 1 && settings->devices >= 1 && settings->devices <= DEVICES_MAX &&
           settings->tokens >= 1 && settings->token_ms > 0;
}

int main(int argc, char **argv)
{
    static struct device devices[DEVICES_MAX];
    struct settings settings;
    if (!read_settings(&settings, argc, argv)) {
        (void)fprintf(stderr, "fleet_engine: the usage is in the source\n");
        return 2;
    }
    const struct sigaction action = {.sa_handler = stop};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    struct inferstat_options options;
    struct inferstat_error err;
    struct inferstat_monitor *monitor;
    inferstat_options_init(&options);
    options.program = "fleet_engine";
    options.log = say;
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK) {
        say(NULL, INFERSTAT_LOG_ERROR, err.text);
        return 1;
    }
    const uint32_t model = inferstat_name(monitor, settings.model);
    for (unsigned int i = 0; i < settings.devices; i++) {
        devices[i].name = add_device(monitor, i, settings.uuid);
        devices[i].inference = inferstat_inference_new(monitor);
        load_model(monitor, model, devices[i].name);
    }
    work(devices, &settings, model);
    for (unsigned int i = 0; i < settings.devices; i++)
        inferstat_inference_free(devices[i].inference);
    (void)inferstat_close(monitor, 2000000000, NULL);
    return 0;
}
