#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/parse.h"
#include "common/sys/files.h"
#include "common/sys/log.h"
#include "common/sys/stop.h"
#include "server/device/device_list.h"
#include "server/worker/repeats.h"
#include "server/worker/worker.h"
#include "server/workload/device_record.h"
#include "server/workload/llm/load.h"
#include "server/workload/llm/serve.h"

static struct {
    const char *model, *prompt, *prompt_file, *requests;
    int64_t tokens, seed, context, repeats;
    double rate, temperature, top_p, until_steady;
    bool json;
} options = {.tokens = 128, .seed = 1, .top_p = 1.0};

#define OPTION_TARGET __typeof__(options)

static const struct option rows[] = {
    {"model", "FILE.gguf", "the model to run", TEXT_AT(model)},
    {"prompt", "TEXT", "the prompt (default \"Once upon a time\")", TEXT_AT(prompt)},
    {"prompt-file", "FILE", "one prompt per line; - is standard input", TEXT_AT(prompt_file)},
    {"tokens", "N", "maximum tokens per request (default 128)", INTEGER_AT(tokens, 1, 1 << 24)},
    {"requests", "N|forever", "number of requests (default: each prompt once)", TEXT_AT(requests)},
    {"rate", "R", "requests per second, at even intervals (default: one after the other)",
     REAL_AT(rate, 1e-6, 1e6)},
    {"temperature", "T", "sampling temperature; 0 takes the most likely token (default 0)",
     REAL_AT(temperature, 0, 100)},
    {"top-p", "P", "sample from the most likely tokens with this total share (default 1)",
     REAL_AT(top_p, 1e-6, 1)},
    {"seed", "S", "seed of sampling (default 1)", INTEGER_AT(seed, 0, INT32_MAX)},
    {"context", "N", "maximum tokens of prompt and answer (default: the model's, at most 4096)",
     INTEGER_AT(context, 1, 1 << 24)},
    {"until-steady", "RATIO", "repeat requests " REPEATS_RATIO_HELP,
     REAL_AT(until_steady, REPEATS_RATIO_LEAST, 1)},
    {"repeats", "N", REPEATS_MOST_HELP, INTEGER_AT(repeats, CONVERGENCE_RUNS_MIN, REPEATS_MAX)},
    {"json", NULL, "print one object of figures at the end; text goes to standard error",
     FLAG_AT(json)},
};

static const struct option_table table = {
    .options = rows, .count = sizeof rows / sizeof *rows, .target = &options};

// ---- Validating options ------------------------------------------------

struct plan {
    uint64_t requests; // 0: until the prompts end or a stop is requested
    bool repeat;       // repeat the prompts of a file
    const char *prompt_file;
    const char *delay_stage;
    uint64_t delay_ns;
    char delay_text[64];
};

static enum status plan_requests(struct plan *plan, struct error *err)
{
    plan->requests = plan->prompt_file ? 0 : 1;
    if (!options.requests)
        return STATUS_OK;
    plan->repeat = true;
    plan->requests = 0;
    if (strcmp(options.requests, "forever") == 0)
        return STATUS_OK;
    int64_t count;
    enum status status = parse_int(&count, options.requests, 1, INT64_MAX, "--requests", err);
    if (status == STATUS_OK)
        plan->requests = (uint64_t)count;
    return status;
}

// Repeats prompts until the speed has converged.
static enum status plan_repeats(struct plan *plan, struct repeats *repeats, struct error *err)
{
    enum status status = repeats_init(repeats, options.until_steady, options.repeats, err);
    if (status != STATUS_OK || !(options.until_steady > 0.0))
        return status;
    if (options.requests)
        return error_set(err, STATUS_INVALID,
                         "--requests: not with --until-steady (say how many at most with "
                         "--repeats)");
    if (options.tokens == 1)
        return error_set(err, STATUS_INVALID,
                         "--until-steady: with --tokens 1 there are no tokens/s after the first "
                         "one (give more)");
    plan->repeat = true;
    plan->requests = 0;
    return STATUS_OK;
}

// For tests: INFERSTAT_TEST_STAGE_DELAY=STAGE:MS delays a stage of the load.
static enum status plan_delay(struct plan *plan, struct error *err)
{
    static const char variable[] = "INFERSTAT_TEST_STAGE_DELAY";
    const char *text = getenv(variable);
    if (!text || !*text)
        return STATUS_OK;
    const char *colon = strchr(text, ':');
    int64_t ms = 0;
    if (!colon || (size_t)(colon - text) >= sizeof plan->delay_text)
        return error_set(err, STATUS_INVALID, "%s: not of the form STAGE:MS", variable);
    memcpy(plan->delay_text, text, (size_t)(colon - text));
    if (!llm_is_stage(plan->delay_text))
        return error_set(err, STATUS_INVALID, "%s: '%s' is no stage", variable, plan->delay_text);
    enum status status = parse_int(&ms, colon + 1, 0, 600000, variable, err);
    plan->delay_stage = plan->delay_text;
    plan->delay_ns = (uint64_t)ms * 1000000U;
    return status;
}

// A model runs on one device.
static enum status check_device(const char *spec, struct error *err)
{
    struct device_list list;
    enum status status = device_list_parse(&list, spec, err);
    if (status == STATUS_OK && list.count > 1)
        return error_set(err, STATUS_INVALID,
                         "llm: --device %.40s: a model runs on one device (choose one, as "
                         "--device %s)",
                         spec, list.specs[0]);
    return status;
}

static enum status make_plan(struct plan *plan, const struct worker_options *worker,
                             char *const *words, int count, struct error *err)
{
    memset(plan, 0, sizeof *plan);
    if (!options.model)
        return error_set(err, STATUS_INVALID, "llm: no model (give --model FILE.gguf)");
    if (check_device(worker->device, err) != STATUS_OK)
        return STATUS_INVALID;
    bool standard_input = count == 1 && strcmp(words[0], "-") == 0;
    if (count > 0 && !standard_input)
        return error_set(err, STATUS_INVALID, "llm: unexpected '%.60s' (see --help)", words[0]);
    plan->prompt_file = standard_input ? "-" : options.prompt_file;
    if ((options.prompt != NULL) + (options.prompt_file != NULL) + standard_input > 1)
        return error_set(err, STATUS_INVALID,
                         "llm: prompts from several places (give one of --prompt, --prompt-file "
                         "and -)");
    enum status status = plan_requests(plan, err);
    return status == STATUS_OK ? plan_delay(plan, err) : status;
}

static enum status open_prompts(struct prompts **out, const struct plan *plan, struct error *err)
{
    if (plan->prompt_file)
        return prompts_from_file(out, plan->prompt_file, plan->repeat, stop_fd(), err);
    return prompts_from_text(out, options.prompt ? options.prompt : "Once upon a time", err);
}

// ---- Output ---------------------------------------------------------------

// Writes all bytes; a stop signal ends the wait for a reader.  A pipe that polls as writable
// accepts PIPE_BUF bytes without blocking.
static int write_text(void *context, const char *text, size_t size)
{
    const int *fd = context;
    while (size > 0) {
        struct pollfd fds[] = {{.fd = *fd, .events = POLLOUT}, {.fd = stop_fd(), .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) {
            if (errno != EINTR)
                return errno;
            continue;
        }
        if (!fds[0].revents)
            return EINTR;
        ssize_t n = write(*fd, text, size < PIPE_BUF ? size : PIPE_BUF);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static void request_failed(void *context, uint64_t request, const char *why)
{
    (void)context;
    log_write(LOG_LEVEL_ERROR, "request %llu: %s", (unsigned long long)request, why);
}

static double per_second(uint64_t count, uint64_t ns)
{
    return count > 0 && ns > 0 ? (double)count * 1e9 / (double)ns : (double)NAN;
}

static double mean(uint64_t sum, uint64_t count)
{
    return count > 0 ? (double)sum / (double)count : (double)NAN;
}

// The figures of a finished run.
struct outcome {
    struct llm_figures figures;
    struct inferstat_summary summary;
    struct inferstat_totals totals;
    struct repeats repeats;
    struct device_description device;
    char model[sizeof((struct llm *)0)->name];
};

static void write_figures(const struct outcome *o)
{
    const struct llm_figures *f = &o->figures;
    struct json_writer json = files_json(stdout);
    json_write_begin(&json, NULL);
    json_write_text(&json, "workload", "llm");
    json_write_text(&json, "model", o->model);
    json_write_text(&json, "device", o->device.name);
    json_write_uint(&json, "load_duration_ns", o->summary.last_load.duration_ns);
    json_write_uint(&json, "startup_duration_ns", o->summary.startup_ns);
    json_write_uint(&json, "duration_ns", f->duration_ns);
    json_write_uint(&json, "requests", f->requests);
    json_write_uint(&json, "completed", f->completed);
    json_write_uint(&json, "cancelled", f->cancelled);
    json_write_uint(&json, "failed", f->failed);
    json_write_uint(&json, "prompt_tokens", f->prompt_tokens);
    json_write_uint(&json, "generated_tokens", f->generated_tokens);
    json_write_real(&json, "mean_ttft_ns", mean(f->ttft_ns, f->first_tokens));
    json_write_real(&json, "mean_e2e_ns", mean(f->e2e_ns, f->requests));
    json_write_real(&json, "mean_tpot_ns",
                    f->decoded_requests > 0 ? f->tpot_ns / (double)f->decoded_requests
                                            : (double)NAN);
    json_write_real(&json, "tokens_per_second", per_second(f->decoded_tokens, f->decode_ns));
    json_write_real(&json, "output_tokens_per_second", per_second(f->generated_tokens, f->e2e_ns));
    repeats_write(&json, &o->repeats, "tokens_per_second");
    json_write_uint(&json, "records_produced", o->totals.produced);
    json_write_uint(&json, "records_acknowledged", o->totals.acknowledged);
    json_write_uint(&json, "records_dropped", o->totals.dropped);
    json_write_end(&json);
    (void)fputc('\n', stdout);
}

// ---- Running --------------------------------------------------------------

// All open resources, closed in one place.
struct running {
    struct inferstat_monitor *monitor;
    struct llm *llm;
    struct llm_server *server;
    struct prompts *prompts;
};

static void stop_running(struct running *r)
{
    llm_server_free(r->server);
    llm_free(r->llm);
    prompts_free(r->prompts);
}

static enum status load_model(struct running *r, const struct worker_options *worker,
                              const struct plan *plan, struct error *err)
{
    const struct llm_load_options load = {
        .path = options.model,
        .device = {.spec = worker->device,
                   .threads = (unsigned int)worker->threads,
                   .spin = worker->wait == WORKER_WAIT_SPIN},
        .cancelled = stop_requested,
        .delay_stage = plan->delay_stage,
        .delay_ns = plan->delay_ns,
    };
    return llm_load(&r->llm, &load, r->monitor, err);
}

static bool request_served(void *context, uint64_t tokens, uint64_t ns)
{
    return repeats_add(context, per_second(tokens, ns));
}

static enum status prepare_server(struct running *r, const struct plan *plan,
                                  struct repeats *repeats, struct error *err)
{
    static int text_fd;
    text_fd = options.json ? STDERR_FILENO : STDOUT_FILENO;
    const struct llm_serve_options serve = {
        .requests = plan->requests,
        .tokens = (uint32_t)options.tokens,
        .rate = options.rate,
        .context = (size_t)options.context,
        .sampler = {.temperature = options.temperature,
                    .top_p = options.top_p,
                    .seed = (uint64_t)options.seed},
        .terminal = isatty(text_fd) == 1,
        .write = write_text,
        .write_context = &text_fd,
        .failed = request_failed,
        .served = repeats->ratio > 0.0 ? request_served : NULL,
        .served_context = repeats,
    };
    enum status status = llm_server_new(&r->server, r->llm, &serve, r->monitor, err);
    return status == STATUS_OK ? status : error_prefix(err, status, "%s", options.model);
}

// The process's start-up, recorded in stages; the stages of a load are inside load_model.
static enum status get_ready(struct running *r, const struct worker_options *worker,
                             const struct plan *plan, struct repeats *repeats, struct error *err)
{
    struct inferstat_startup *startup = inferstat_startup_begin(r->monitor);
    inferstat_startup_start_stage(startup, "open_prompts");
    enum status status = open_prompts(&r->prompts, plan, err);
    if (status == STATUS_OK) {
        inferstat_startup_start_stage(startup, "load_model");
        status = load_model(r, worker, plan, err);
    }
    if (status == STATUS_OK) {
        inferstat_startup_start_stage(startup, "prepare_session");
        status = prepare_server(r, plan, repeats, err);
    }
    if (status == STATUS_OK)
        inferstat_startup_end(startup);
    else
        inferstat_startup_abandon(startup);
    return status;
}

static enum status serve(struct running *r, const struct worker_options *worker,
                         const struct plan *plan, struct outcome *outcome, struct error *err)
{
    enum status status = get_ready(r, worker, plan, &outcome->repeats, err);
    if (status != STATUS_OK)
        return status;
    device_describe(r->llm->device, &outcome->device);
    memcpy(outcome->model, r->llm->name, sizeof outcome->model);
    log_write(outcome->device.fell_back ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
              "device %s: %s (kernels: %s, threads: %u)", outcome->device.name,
              outcome->device.reason, outcome->device.kernels, outcome->device.threads);
    status = llm_server_run(r->server, r->prompts, &outcome->figures, err);
    if (status == STATUS_OK && r->monitor)
        device_get_to_know(r->llm->device);
    return status;
}

static int report(const struct outcome *outcome)
{
    if (options.json)
        write_figures(outcome);
    else
        repeats_print(stderr, &outcome->repeats, UNIT_TOKENS_PER_SECOND);
    if (outcome->figures.failed == 0)
        return WORKER_DONE;
    log_write(LOG_LEVEL_ERROR, "requests: %llu of %llu failed",
              (unsigned long long)outcome->figures.failed,
              (unsigned long long)outcome->figures.requests);
    return WORKER_CHECK_FAILED;
}

static int run(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    struct plan plan;
    struct running r = {0};
    struct outcome outcome = {0};
    enum status status = make_plan(&plan, worker, words, count, &err);
    if (status == STATUS_OK)
        status = plan_repeats(&plan, &outcome.repeats, &err);
    if (status == STATUS_OK)
        status = stop_install(&err);
    if (status == STATUS_OK)
        status = worker_open_monitor(&r.monitor, worker, &err);
    if (status != STATUS_OK)
        return worker_fail(&err);

    status = serve(&r, worker, &plan, &outcome, &err);
    inferstat_get_summary(r.monitor, &outcome.summary);
    stop_running(&r);
    worker_close_monitor(r.monitor, &outcome.totals);
    // A stop while loading, and no prompts, are normal ends.
    if (status != STATUS_OK && status != STATUS_CANCELLED && status != STATUS_NO_DATA)
        return worker_fail(&err);
    int code = report(&outcome);
    if (status != STATUS_NO_DATA)
        return code;
    log_write(LOG_LEVEL_WARNING, "%s", err.text);
    return WORKER_NO_DATA;
}

const struct worker_command command_llm = {
    .name = "llm",
    .summary = "load a model and answer prompts",
    .words = "[-]",
    .options = &table,
    .run = run,
};
