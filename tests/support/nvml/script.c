#include "tests/support/nvml/script.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name;
    double value;
} fields[FIELD_COUNT] = {
#define FIELD_TEXT(name, value) {#name, value},
    FIELDS(FIELD_TEXT)
#undef FIELD_TEXT
};

static const struct fake at_first = {.gpu_count = 1,
                                     .plugged = GPUS_MAX,
                                     .uuid = "GPU-00000000-0000-0000-0000-",
                                     .name = "Fake H200",
                                     .driver = "580.65.06",
                                     .seed = 1};

struct fake fake;

static double now_s(void)
{
    struct timespec now;
    const char *seconds = getenv("INFERSTAT_TEST_NVML_CLOCK");
    if (seconds)
        return strtod(seconds, NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const char *line)
{
    (void)fprintf(stderr, "fake_nvml: the script has a line that is none: %s\n", line);
    abort();
}

static void copy_escaped(char out[64], const char *text)
{
    size_t used = 0;
    for (; *text && *text != '\n' && used < 63; text++) {
        unsigned int code;
        if (text[0] == '\\' && text[1] == 'x' && sscanf(text + 2, "%2x", &code) == 1) {
            out[used++] = (char)code;
            text += 3;
        } else {
            out[used++] = *text;
        }
    }
    out[used] = '\0';
}

static void set_value(struct gpu *gpu, const struct action *action)
{
    for (unsigned int i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].name, action->words[2]) != 0)
            continue;
        gpu->is_missing[i] = strcmp(action->words[3], "none") == 0;
        gpu->values[i] = strtod(action->words[3], NULL);
        return;
    }
    fail(action->words[2]);
}

static void set_process(struct gpu *gpu, const struct action *action)
{
    const unsigned int pid = (unsigned int)strtoul(action->words[2], NULL, 10);
    struct process *place = NULL;
    for (unsigned int i = 0; i < PROCESSES_MAX; i++)
        if (gpu->processes[i].pid == pid || (!place && gpu->processes[i].pid == 0))
            place = &gpu->processes[i];
    if (!place)
        fail("too many processes");
    place->bytes = strcmp(action->words[3], "none") == 0 ? (double)UNKNOWN_BYTES
                                                         : strtod(action->words[3], NULL);
    place->pid = place->bytes == 0 ? 0 : pid;
}

static void act_on_gpu(unsigned int number, const struct action *action)
{
    const char *verb = action->words[0];
    struct gpu *gpu = &fake.gpus[number];
    if (strcmp(verb, "gpu") == 0) {
        set_value(gpu, action);
    } else if (strcmp(verb, "process") == 0) {
        set_process(gpu, action);
    } else if (strcmp(verb, "error") == 0) {
        gpu->error = atoi(action->words[2]);
    } else if (strcmp(verb, "mig") == 0) {
        gpu->instances = (unsigned int)atoi(action->words[2]) % (INSTANCES_MAX + 1);
    } else if (strcmp(verb, "xid") == 0 && fake.xid_count < XIDS_MAX) {
        fake.xids[fake.xid_count].gpu = number;
        fake.xids[fake.xid_count++].code = (unsigned int)atoi(action->words[2]);
    } else {
        fail(verb);
    }
}

static void act(const struct action *action)
{
    const char *verb = action->words[0];
    const unsigned int number = (unsigned int)strtoul(action->words[1], NULL, 10);
    if (strcmp(verb, "unplug") == 0) {
        fake.plugged = number;
    } else if (strcmp(verb, "plug") == 0) {
        fake.plugged = GPUS_MAX;
    } else if (strcmp(verb, "hang") == 0) {
        fake.hang_s = strtod(action->words[1], NULL);
    } else if (strcmp(verb, "driver-unload") == 0) {
        fake.is_unloaded = true;
    } else if (strcmp(verb, "driver-load") == 0) {
        fake.is_unloaded = false;
    } else if (strcmp(action->words[1], "all") == 0) {
        for (unsigned int i = 0; i < GPUS_MAX; i++)
            act_on_gpu(i, action);
    } else if (number < GPUS_MAX) {
        act_on_gpu(number, action);
    } else {
        fail(action->words[1]);
    }
}

// A line that says how the library is from the start.
static bool read_setting(const char *line)
{
    unsigned int count;
    if (sscanf(line, "gpus %u", &count) == 1 && count <= GPUS_MAX)
        fake.gpu_count = count;
    else if (strncmp(line, "uuid ", 5) == 0)
        copy_escaped(fake.uuid, line + 5);
    else if (strncmp(line, "name ", 5) == 0)
        copy_escaped(fake.name, line + 5);
    else if (strncmp(line, "driver ", 7) == 0)
        copy_escaped(fake.driver, line + 7);
    else if (strncmp(line, "broken", 6) == 0)
        fake.is_broken = true;
    else if (strncmp(line, "processes-535", 13) == 0)
        fake.has_processes_535 = true;
    else if (strncmp(line, "missing ", 8) == 0 && fake.missing_count < 32)
        copy_escaped(fake.missing[fake.missing_count++], line + 8);
    else
        return sscanf(line, "delay %lf %lf", &fake.delay_us[0], &fake.delay_us[1]) == 2 ||
               sscanf(line, "noise %lf", &fake.noise) == 1;
    return true;
}

static void read_line(const char *line)
{
    struct action action = {0};
    int used = 0;
    line += strspn(line, " \t");
    if (*line == '#' || *line == '\n' || !*line || read_setting(line))
        return;
    if (sscanf(line, "at %lf%n", &action.at, &used) == 1)
        line += used;
    if (sscanf(line, "%63s %63s %63s %63s", action.words[0], action.words[1], action.words[2],
               action.words[3]) < 1)
        fail(line);
    if (action.at <= 0) {
        act(&action);
        return;
    }
    if (fake.action_count == ACTIONS_MAX)
        fail("too many lines");
    unsigned int at = fake.action_count++;
    for (; at > 0 && fake.actions[at - 1].at > action.at; at--)
        fake.actions[at] = fake.actions[at - 1];
    fake.actions[at] = action;
}

void script_read(void)
{
    const char *path = getenv("INFERSTAT_TEST_NVML_SCRIPT");
    char line[512];
    struct stat script = {0};
    if (path && stat(path, &script) != 0)
        fail(path);
    if (fake.is_read && script.st_mtim.tv_sec == fake.script.st_mtim.tv_sec &&
        script.st_mtim.tv_nsec == fake.script.st_mtim.tv_nsec &&
        script.st_size == fake.script.st_size)
        return;
    fake = at_first;
    fake.script = script;
    for (unsigned int i = 0; i < GPUS_MAX; i++)
        for (unsigned int j = 0; j < FIELD_COUNT; j++)
            fake.gpus[i].values[j] = fields[j].value;
    FILE *file = path ? fopen(path, "r") : NULL;
    if (path && !file)
        fail(path);
    while (file && fgets(line, sizeof line, file))
        read_line(line);
    if (file)
        (void)fclose(file);
    fake.is_read = true;
    fake.began = fake.energy_at = now_s();
}

void script_play(void)
{
    const double now = now_s();
    while (fake.next_action < fake.action_count &&
           fake.actions[fake.next_action].at <= now - fake.began)
        act(&fake.actions[fake.next_action++]);
    for (unsigned int i = 0; i < GPUS_MAX; i++)
        fake.gpus[i].values[FIELD_energy] +=
            fake.gpus[i].values[FIELD_power] * (now - fake.energy_at);
    fake.energy_at = now;
}
