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
#include "server/worker/profile_table.h"
#include "server/worker/repeats.h"
#include "server/worker/worker.h"
#include "server/workload/telemetry.h"
#include "server/workload/llm/load.h"
#include "server/workload/llm/serve.h"

// The options of the command line, where they are used; complete_options adds the rest.
static struct {
    struct llm_load_options load;
    struct llm_serve_options serve;
    const char *prompt, *prompt_file, *requests;
    int64_t repeats;
    double until_steady;
    int profile; // PROFILE_NONE, PROFILE_LAYERS
    bool json;
} options = {.serve = {.tokens = 128, .sampler = {.seed = 1, .top_p = 1.0}}};

#define OPTION_TARGET __typeof__(options)

enum { PROFILE_NONE, PROFILE_LAYERS };

static const struct option rows[] = {
    {"model", "FILE.gguf", "the model to run", TEXT_AT(load.path)},
    {"prompt", "TEXT", "the prompt (default \"Once upon a time\")", TEXT_AT(prompt)},
    {"prompt-file", "FILE", "one prompt per line; - is standard input", TEXT_AT(prompt_file)},
    {"chat", "TEMPLATE", CHAT_OPTION_HELP, CHOICE_AT(load.chat, chat_template_word)},
    {"tokens", "N", "maximum tokens per request (default 128)",
     UINT32_AT(serve.tokens, 1, 1 << 24)},
    {"requests", "N|forever", "number of requests (default: each prompt once)", TEXT_AT(requests)},
    {"rate", "R", "requests per second, at even intervals (default: one after the other)",
     REAL_AT(serve.rate, 1e-6, 1e6)},
    {"temperature", "T", "sampling temperature; 0 takes the most likely token (default 0)",
     REAL_AT(serve.sampler.temperature, 0, 100)},
    {"top-p", "P", "sample from the most likely tokens with this total share (default 1)",
     REAL_AT(serve.sampler.top_p, 1e-6, 1)},
    {"seed", "S", "seed of sampling (default 1)", INTEGER_AT(serve.sampler.seed, 0, INT32_MAX)},
    {"context", "N", "maximum tokens of prompt and answer (default: the model's, at most 4096)",
     UINT32_AT(serve.context, 1, 1 << 24)},
    {"until-steady", "RATIO", "repeat requests " REPEATS_RATIO_HELP,
     REAL_AT(until_steady, REPEATS_RATIO_LEAST, 1)},
    {"repeats", "N", REPEATS_MOST_HELP, INTEGER_AT(repeats, CONVERGENCE_RUNS_MIN, REPEATS_MAX)},
    {"profile", "none|layers", "measure each operation of each layer (default none)",
     CHOICE_AT(profile, NULL)},
    {"json", NULL, "print one object of figures at the end; text goes to standard error",
     FLAG_AT(json)},
};

// ---- What the server calls ------------------------------------------------

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

static bool request_served(void *context, uint64_t tokens, uint64_t ns)
{
    return repeats_add(context, per_second(tokens, ns));
}

// ---- Validating options ------------------------------------------------

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

// Each prompt once, unless a number is given or prompts repeat until the speed has converged.
static enum status set_requests(struct repeats *repeats, struct error *err)
{
    const bool steady = options.until_steady > 0.0;
    enum status status = repeats_init(repeats, options.until_steady, options.repeats, err);
    if (status != STATUS_OK)
        return status;
    if (steady && options.requests)
        return error_set(err, STATUS_INVALID,
                         "--requests: not with --until-steady (say how many at most with "
                         "--repeats)");
    if (steady && options.serve.tokens == 1)
        return error_set(err, STATUS_INVALID,
                         "--until-steady: with --tokens 1 there are no tokens/s after the first "
                         "one (give more)");
    int64_t count = options.prompt_file || steady ? 0 : 1;
    if (options.requests && strcmp(options.requests, "forever") == 0)
        count = 0;
    else if (options.requests)
        status = parse_int(&count, options.requests, 1, INT64_MAX, "--requests", err);
    options.serve.requests = (uint64_t)count;
    return status;
}

static enum status complete_options(const struct worker_options *worker, char *const *words,
                                    int count, struct repeats *repeats, struct error *err)
{
    static int text_fd;
    if (!options.load.path)
        return error_set(err, STATUS_INVALID, "llm: no model (give --model FILE.gguf)");
    if (check_device(worker->device.spec, err) != STATUS_OK)
        return STATUS_INVALID;
    bool standard_input = count == 1 && strcmp(words[0], "-") == 0;
    if (count > 0 && !standard_input)
        return error_set(err, STATUS_INVALID, "llm: unexpected '%.60s' (see --help)", words[0]);
    if ((options.prompt != NULL) + (options.prompt_file != NULL) + standard_input > 1)
        return error_set(err, STATUS_INVALID,
                         "llm: prompts from several places (give one of --prompt, --prompt-file "
                         "and -)");
    if (standard_input)
        options.prompt_file = "-";
    text_fd = options.json ? STDERR_FILENO : STDOUT_FILENO;
    options.load.device = worker->device;
    options.load.context = options.serve.context;
    options.load.cancelled = stop_requested;
    options.load.delay = getenv("INFERSTAT_TEST_STAGE_DELAY");
    options.serve.terminal = isatty(text_fd) == 1;
    options.serve.write = write_text;
    options.serve.write_context = &text_fd;
    options.serve.failed = request_failed;
    options.serve.served = options.until_steady > 0.0 ? request_served : NULL;
    options.serve.served_context = repeats;
    return set_requests(repeats, err);
}

// ---- Output ---------------------------------------------------------------

static double mean(uint64_t sum, uint64_t count)
{
    return count > 0 ? (double)sum / (double)count : (double)NAN;
}

// A run: what is open, and its figures.
struct run {
    struct inferstat_monitor *monitor;
    struct prompts *prompts;
    struct llm *llm;               // NULL: not loaded
    struct layer_profile *profile; // NULL: none
    double joules;                 // that the requests took; 0: unknown
    struct llm_server *server;
    struct repeats repeats;
    struct llm_figures figures;
    struct inferstat_summary summary;
    struct inferstat_totals totals;
};

static double joules_per_token(const struct run *run)
{
    const double tokens = (double)run->figures.generated_tokens;
    return run->joules > 0.0 && tokens > 0.0 ? run->joules / tokens : (double)NAN;
}

static void write_figures(const struct run *run)
{
    const struct llm_figures *f = &run->figures;
    struct device_description device = {.name = ""};
    if (run->llm)
        device_describe(run->llm->device, &device);
    struct json_writer json = files_json(stdout);
    json_write_begin(&json, NULL);
    json_write_text(&json, "workload", "llm");
    json_write_text(&json, "model", run->llm ? run->llm->name : NULL);
    json_write_text(&json, "device", run->llm ? device.name : NULL);
    worker_write_maybe(&json, "load_duration_ns", run->summary.last_load.duration_ns,
                       run->summary.has_load);
    worker_write_maybe(&json, "startup_duration_ns", run->summary.startup_ns,
                       run->summary.has_startup);
    worker_write_maybe(&json, "duration_ns", f->duration_ns, f->duration_ns > 0);
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
    repeats_write(&json, &run->repeats, "tokens_per_second");
    json_write_real(&json, "joules_per_token", joules_per_token(run));
    worker_write_settings(&json);
    worker_write_totals(&json, &run->totals);
    json_write_end(&json);
    (void)fputc('\n', stdout);
}

// ---- Running --------------------------------------------------------------

static enum status open_prompts(struct prompts **out, struct error *err)
{
    const bool repeat = options.requests || options.until_steady > 0.0;
    if (options.prompt_file)
        return prompts_from_file(out, options.prompt_file, repeat, stop_fd(), err);
    return prompts_from_text(out, options.prompt ? options.prompt : "Once upon a time", err);
}

// The process's start-up, recorded in stages; the stages of a load are inside load_model.
static enum status get_ready(struct run *run, struct error *err)
{
    struct inferstat_startup *startup = inferstat_startup_begin(run->monitor);
    inferstat_startup_start_stage(startup, "open_prompts");
    enum status status = open_prompts(&run->prompts, err);
    if (status == STATUS_OK) {
        inferstat_startup_start_stage(startup, "load_model");
        status = llm_load(&run->llm, &options.load, run->monitor, err);
    }
    if (status == STATUS_OK) {
        inferstat_startup_start_stage(startup, "prepare_session");
        if (options.profile == PROFILE_LAYERS)
            status = layer_profile_new(&run->profile, run->llm, err);
    }
    if (status == STATUS_OK) {
        options.serve.profile = run->profile;
        status = llm_server_new(&run->server, run->llm, &options.serve, run->monitor, err);
        if (status != STATUS_OK)
            (void)error_prefix(err, status, "%s", options.load.path);
    }
    if (status == STATUS_OK)
        inferstat_startup_end(startup);
    else
        inferstat_startup_abandon(startup);
    return status;
}

static enum status serve(struct run *run, struct error *err)
{
    enum status status = get_ready(run, err);
    if (status != STATUS_OK)
        return status;
    struct device_description device;
    device_describe(run->llm->device, &device);
    worker_log_device(&device);
    const double before = run->profile ? device_energy_joules(run->llm->device) : 0.0;
    status = llm_server_run(run->server, run->prompts, &run->figures, err);
    if (before > 0.0)
        run->joules = device_energy_joules(run->llm->device) - before;
    if (status == STATUS_OK && run->monitor)
        device_calibrate_for_later(run->llm->device);
    return status;
}

static int report(const struct run *run)
{
    if (options.json)
        write_figures(run);
    else
        repeats_print(stderr, &run->repeats, UNIT_TOKENS_PER_SECOND);
    if (run->profile)
        profile_table_print(stderr, run->profile, run->llm->device);
    if (run->joules > 0.0)
        (void)fprintf(stderr, "%.3g J per token\n", joules_per_token(run));
    if (run->figures.failed == 0)
        return WORKER_DONE;
    log_write(LOG_LEVEL_ERROR, "requests: %llu of %llu failed",
              (unsigned long long)run->figures.failed, (unsigned long long)run->figures.requests);
    return WORKER_CHECK_FAILED;
}

static int run_llm(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    struct run run = {0};
    enum status status = complete_options(worker, words, count, &run.repeats, &err);
    if (status == STATUS_OK)
        status = worker_open_monitor(&run.monitor, worker, &err);
    if (status != STATUS_OK)
        return worker_fail(&err);

    status = serve(&run, &err);
    inferstat_get_summary(run.monitor, &run.summary);
    llm_server_free(run.server);
    worker_close_monitor(run.monitor, &run.totals);
    int code;
    // A stop while loading, and no prompts, are normal ends.
    if (status == STATUS_OK || status == STATUS_CANCELLED || status == STATUS_NO_DATA)
        code = report(&run);
    else
        code = worker_fail(&err);
    layer_profile_free(run.profile);
    llm_free(run.llm);
    prompts_free(run.prompts);
    if (status != STATUS_NO_DATA)
        return code;
    log_write(LOG_LEVEL_WARNING, "%s", err.text);
    return WORKER_NO_DATA;
}

const struct worker_command command_llm = {
    .name = "llm",
    .summary = "load a model and answer prompts",
    .words = "[-]",
    .options = {.options = rows, .count = sizeof rows / sizeof *rows, .target = &options},
    .run = run_llm,
};
