// The public header in C++: every call is there, and a program that uses the
// shared library alone records and reads back.
#include "inferstat.h"

#include <cstdio>
#include <cstring>
#include <string>

static int heard = 0;

static void listener(void *context, const inferstat_event *event)
{
    heard += event->kind == INFERSTAT_EVENT_INFERENCE && context == &heard;
}

static int fail(const char *what)
{
    std::fprintf(stderr, "test_library: %s\n", what);
    return 1;
}

int main()
{
    inferstat_options options;
    inferstat_options_init(&options);
    options.report = 0;
    inferstat_monitor *monitor = nullptr;
    inferstat_error error;
    if (inferstat_open(&monitor, &options, &error) != INFERSTAT_OK)
        return fail(error.text);
    const std::uint32_t model = inferstat_name(monitor, "cpp");
    const int number = inferstat_listen(monitor, listener, &heard);

    inferstat_load *load = inferstat_load_begin(monitor, model, model);
    inferstat_load_start_stage(load, "file_opening");
    inferstat_load_end(load, INFERSTAT_RESULT_OK, nullptr);
    inferstat_inference *inference = inferstat_inference_new(monitor);
    inferstat_request request{};
    request.model = model;
    request.prompt_tokens = 3;
    for (int i = 0; i < 5; i++) {
        inferstat_inference_begin(inference, &request);
        inferstat_inference_start_prefill(inference);
        for (int token = 0; token < 4; token++)
            inferstat_inference_token(inference);
        inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    }
    inferstat_inference_free(inference);
    inferstat_unlisten(monitor, number);

    inferstat_event events[10];
    if (inferstat_history(monitor, INFERSTAT_EVENT_INFERENCE, events, 10) != 5)
        return fail("not five inferences");
    if (std::string(events[4].name) != "cpp" || events[4].generated_tokens != 4)
        return fail("not the inference that was");
    inferstat_summary summary;
    inferstat_get_summary(monitor, &summary);
    if (summary.loads != 1 || summary.generated_tokens != 20 || heard != 5)
        return fail("the summary or the listener is wrong");
    if (inferstat_close(monitor, 1000000000, nullptr) != INFERSTAT_OK)
        return fail("not closed");
    return 0;
}
