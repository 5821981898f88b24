// bench_views [--json] [--quick] [--hosts N] [--devices N] [--seconds N] [--db FILE]
//
// What the dashboard's views cost with a large fleet: 500 hosts of 8 devices report to a collector
// for N seconds (default 60), a sample of each device, a request and a record of its gaps between
// tokens a second, or did so until now, into a store; then the queries of each view are asked of
// the store, five times, and the view is drawn on 80x24 and 200x60.  `refresh_cpu_ns` is the
// processor time of all queries of one refresh of the costliest view (a query that rests for 15
// refreshes of 2 s counts with a fifteenth; a chart with 14 fifteenths of what its newest steps
// cost, too), `frame_cpu_ns` that of the costliest frame, each a median; the goals are 50 ms and 5
// ms, and the exit code is 1 when one is missed.  With
// --json the figures of each view are in `views`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/remote/remote.h"
#include "client/tui/steps.h"
#include "client/tui/update.h"
#include "client/tui/view.h"
#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/samples/samples.h"
#include "tests/support/folder.h"

enum { REFRESHES = 5, FRAMES = 40 };

#define INTERVAL_NS 2e9 // of refreshes

#define GOAL_REFRESH_NS 50e6
#define GOAL_FRAME_NS   5e6

struct view_cost {
    double refresh_ns, frame_ns, small_frame_ns;
    double query_ns[POLL_COUNT];
};

static double processor_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void happen(struct model *model, struct event event)
{
    event.now_ns = clock_monotonic_ns();
    event.wall_now_ns = clock_wall_ns();
    (void)model_update(model, &event);
}

// Asks a query, and puts what it took into `*took_ns`.
static struct result *ask(struct remote *remote, const struct query *query, double *took_ns)
{
    struct result *result = NULL;
    struct error err = {0};
    const double began_ns = processor_ns();
    const enum status status = remote_query(remote, query, &result, &err);
    *took_ns = processor_ns() - began_ns;
    if (status != STATUS_OK && status != STATUS_NO_DATA)
        bench_die("query", err.text);
    return result;
}

// Asks all queries of the view, and hands the answers to the model.  One that rests costs its share
// of the refreshes at which it is asked; at the others, a chart costs its newest steps.
static double refresh(struct model *model, struct remote *remote, struct view_cost *cost)
{
    double sum_ns = 0;
    for (unsigned polled = 0; polled < POLL_COUNT; polled++) {
        struct query query;
        struct steps steps = {0};
        double took_ns, part_ns = 0;
        if (!(view_polls(model) >> polled & 1) ||
            !queries_fill((enum polled_query)polled, &model->scope, clock_wall_ns(), &query))
            continue;
        struct result *result = ask(remote, &query, &took_ns), *newest = NULL;
        const double rest_ns =
            (double)queries_rest_ns((enum polled_query)polled, (uint64_t)took_ns);
        const double share = rest_ns > INTERVAL_NS ? INTERVAL_NS / rest_ns : 1;
        if (query.step_ns > 0 &&
            steps_merge(&steps, &query, query.filter.since_ns, &result, NULL) != STATUS_OK)
            bench_die("chart", "out of memory");
        if (steps_narrow(&steps, 0, clock_wall_ns(), &query))
            newest = ask(remote, &query, &part_ns);
        result_free(newest);
        result_free(steps.rows);
        cost->query_ns[polled] = took_ns * share + part_ns * (1 - share);
        sum_ns += cost->query_ns[polled];
        happen(model, (struct event){.kind = EVENT_ANSWER,
                                     .polled = (enum polled_query)polled,
                                     .result = result});
    }
    return sum_ns;
}

static double draw(struct model *model, int width, int height)
{
    struct figures figures = {0};
    struct canvas canvas;
    canvas_init(&canvas, false);
    if (canvas_resize(&canvas, width, height) != STATUS_OK)
        bench_die("canvas", "out of memory");
    happen(model, (struct event){.kind = EVENT_RESIZE, .x = width, .y = height});
    for (unsigned i = 0; i < FRAMES; i++) {
        const double began_ns = processor_ns();
        happen(model, (struct event){.kind = EVENT_TICK});
        view_draw(model, &canvas);
        figures_add(&figures, processor_ns() - began_ns);
    }
    canvas_deinit(&canvas);
    return figures_median(&figures);
}

static void measure_view(struct model *model, struct remote *remote, unsigned view,
                         struct view_cost *cost)
{
    struct figures refreshes = {0};
    happen(model, (struct event){.kind = EVENT_KEY, .code = '1' + view});
    for (unsigned i = 0; i < REFRESHES; i++)
        figures_add(&refreshes, refresh(model, remote, cost));
    cost->refresh_ns = figures_median(&refreshes);
    cost->frame_ns = draw(model, 200, 60);
    cost->small_frame_ns = draw(model, 80, 24);
}

static void print_view(const struct view_cost *cost, const char *name, bool is_json, bool is_first)
{
    if (is_json) {
        (void)printf("%s{\"view\": \"%s\", \"refresh_cpu_ns\": %.0f, \"frame_cpu_ns\": %.0f, "
                     "\"frame_80x24_cpu_ns\": %.0f}",
                     is_first ? "" : ", ", name, cost->refresh_ns, cost->frame_ns,
                     cost->small_frame_ns);
        return;
    }
    (void)printf("%-10s refresh %6.1f ms   frame %5.2f ms (80x24: %.2f ms)  ", name,
                 cost->refresh_ns / 1e6, cost->frame_ns / 1e6, cost->small_frame_ns / 1e6);
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        if (cost->query_ns[polled] > 1e5)
            (void)printf(" %u: %.1f", polled, cost->query_ns[polled] / 1e6);
    (void)printf("\n");
}

int main(int argc, char **argv)
{
    int64_t hosts = 500, devices = 8, seconds = 60;
    bool is_json = false, is_quick = false;
    const char *db = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            is_quick = true;
        else if (strcmp(argv[i], "--hosts") == 0)
            bench_option_number(&hosts, argv, argc, &i, 1, 2000);
        else if (strcmp(argv[i], "--devices") == 0)
            bench_option_number(&devices, argv, argc, &i, 1, 16);
        else if (strcmp(argv[i], "--seconds") == 0)
            bench_option_number(&seconds, argv, argc, &i, 2, 3600);
        else if (strcmp(argv[i], "--db") == 0 && i + 1 < argc)
            db = argv[++i];
        else
            bench_die(argv[i], "no such option");
    }
    if (is_quick) {
        hosts = 5;
        devices = 2;
        seconds = 3;
    }
    struct fleet_result fleet = {0};
    const struct fleet_plan plan = {bench_open("bench_views"), (unsigned)hosts, (unsigned)devices,
                                    (unsigned)seconds, true};
    char path[FOLDER_PATH_SIZE];
    const struct remote_target target = {.db =
                                             db ? db : folder_path(path, plan.folder, "fleet.db")};
    if (!db)
        fleet_run(&plan, &fleet);
    struct remote *remote;
    struct error err = {0};
    if (remote_open(&remote, &target, &err) != STATUS_OK)
        bench_die("store", err.text);
    static struct model model;
    struct view_cost costs[VIEW_COUNT] = {0};
    double refresh_ns = 0, frame_ns = 0;
    model_init(&model, "bench", 2);
    if (is_json)
        (void)printf("{\"views\": [");
    for (unsigned view = 0; view < VIEW_COUNT; view++) {
        measure_view(&model, remote, view, &costs[view]);
        print_view(&costs[view], views[view]->name, is_json, view == 0);
        refresh_ns = costs[view].refresh_ns > refresh_ns ? costs[view].refresh_ns : refresh_ns;
        frame_ns = costs[view].frame_ns > frame_ns ? costs[view].frame_ns : frame_ns;
    }
    if (is_json)
        (void)printf("], \"hosts\": %lld, \"devices\": %lld, \"refresh_cpu_ns\": %.0f, "
                     "\"frame_cpu_ns\": %.0f}\n",
                     (long long)hosts, (long long)devices, refresh_ns, frame_ns);
    model_deinit(&model);
    remote_close(remote);
    return !is_quick && (refresh_ns > GOAL_REFRESH_NS || frame_ns > GOAL_FRAME_NS);
}
