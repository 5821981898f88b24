#include "tests/support/monitor_fixture.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(pthread_mutex_init(&fixture->lines.lock, NULL), 0);
    folder_make(fixture->folder);
    (void)snprintf(fixture->address, sizeof fixture->address, "ipc://%s", fixture->folder);
    inferstat_options_init(&fixture->options);
    fixture->options.collector = fixture->address;
    fixture->options.run_folder = fixture->folder;
    fixture->options.spool_folder = "";
    fixture->options.sample_ms = 0;
    *state = fixture;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *fixture = *state;
    (void)inferstat_close(fixture->monitor, 0, NULL);
    fake_collector_close(fixture->collector);
    folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

int scene_begin(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    folder_make(scene->folder);
    assert_int_equal(mkdir(folder_path(scene->runs, scene->folder, "runs"), 0700), 0);
    folder_path(scene->spools, scene->folder, "spools");
    (void)snprintf(scene->address, sizeof scene->address, "ipc://%s", scene->folder);
    (void)pthread_mutex_init(&scene->lines.lock, NULL);
    assert_int_equal(peer_trust_init(&scene->trust.users, NULL, NULL), STATUS_OK);
    scene->settings = (struct replay_settings){
        .folders = {.runs = scene->runs, .spools = scene->spools},
        .trust = &scene->trust,
        .log = {take_line, &scene->lines},
    };
    *state = scene;
    return 0;
}

int scene_finish(void **state)
{
    struct scene *scene = *state;
    fake_collector_close(scene->collector);
    folder_remove(scene->folder);
    free(scene);
    return 0;
}

struct replay_counts scene_replay(struct scene *scene, replay_listener *listener, void *context)
{
    struct replay_counts counts;
    struct error err;
    expect_ok(replay_all(&scene->settings, NULL, listener, context, &counts, &err), &err);
    return counts;
}

struct inferstat_monitor *open_monitor(struct fixture *fixture)
{
    struct inferstat_error err;
    if (inferstat_open(&fixture->monitor, &fixture->options, &err) != INFERSTAT_OK)
        fail_msg("%s", err.text);
    assert_non_null(fixture->monitor);
    return fixture->monitor;
}

enum inferstat_status close_monitor(struct fixture *fixture, uint64_t timeout_ns,
                                    struct inferstat_totals *totals)
{
    const enum inferstat_status status = inferstat_close(fixture->monitor, timeout_ns, totals);
    fixture->monitor = NULL;
    return status;
}

struct fake_state seen_by(struct fake_collector *collector)
{
    struct fake_state seen;
    fake_collector_state(collector, &seen);
    if (seen.faults)
        fail_msg("%s", seen.fault);
    return seen;
}

unsigned count_run_files(const char *folder)
{
    unsigned count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        count += strstr(entry->d_name, ".run") != NULL;
    (void)closedir(entries);
    return count;
}

void operate(struct inferstat_monitor *monitor, uint32_t operation, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        struct inferstat_timer timer;
        inferstat_timer_begin(&timer, monitor, operation);
        (void)inferstat_timer_end(&timer, NULL);
    }
}

void infer(struct inferstat_monitor *monitor, uint32_t model, unsigned tokens)
{
    struct inferstat_inference *inference = inferstat_inference_new(monitor);
    inferstat_inference_begin(inference,
                              &(struct inferstat_request){.model = model, .prompt_tokens = 4});
    inferstat_inference_start_prefill(inference);
    for (unsigned i = 0; i < tokens; i++)
        inferstat_inference_token(inference);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(inference);
}

struct lines *log_lines(struct fixture *fixture)
{
    fixture->options.log = take_line;
    fixture->options.log_context = &fixture->lines;
    return &fixture->lines;
}

void take_line(void *context, enum inferstat_log_level level, const char *text)
{
    struct lines *lines = context;
    (void)level;
    (void)pthread_mutex_lock(&lines->lock);
    lines->lost += strstr(text, "does not answer") != NULL;
    lines->found += strstr(text, "answers") != NULL;
    lines->refused += strstr(text, "refused") != NULL;
    lines->rejected += strstr(text, "Hello: not understood") != NULL;
    lines->losses += strstr(text, "dropped so far") != NULL;
    lines->evicted += strstr(text, "oldest records are dropped") != NULL;
    lines->waits += strstr(text, "another process of this user samples them") != NULL;
    lines->kept += strstr(text, ": records stay in ") != NULL;
    lines->load += strncmp(text, "[LOAD] ", 7) == 0;
    lines->infer += strncmp(text, "[INFER] ", 8) == 0;
    const size_t used = strlen(lines->text);
    (void)snprintf(lines->text + used, sizeof lines->text - used, "%s\n", text);
    (void)pthread_mutex_unlock(&lines->lock);
}

unsigned read_count(struct lines *lines, const unsigned *count)
{
    (void)pthread_mutex_lock(&lines->lock);
    const unsigned value = *count;
    (void)pthread_mutex_unlock(&lines->lock);
    return value;
}

void wait_for(struct lines *lines, const unsigned *count, unsigned wanted)
{
    for (int i = 0; i < 60000 && read_count(lines, count) < wanted; i++)
        (void)usleep(1000);
    if (read_count(lines, count) < wanted)
        fail_msg("not logged in time; so far:\n%s", lines->text);
}
