// What llama-bench writes, as records; and what only looks like it.
#include <sys/stat.h>

#include "client/cli/commands/llama_bench.h"
#include "tests/support/test.h"
#include "tests/unit/transfer/copy_fixture.h"

#define HEAD                                                                                       \
    "\"build_commit\": \"8cf427ff\", \"build_number\": 5163, \"cpu_info\": \"a CPU\","             \
    " \"gpu_info\": \"a GPU\", \"model_type\": \"qwen2 7B Q4_K - Medium\","                        \
    " \"model_size\": 4677120000, \"model_n_params\": 7615616512, \"n_threads\": 8,"
#define FILE_AT "\"model_filename\": \"models/some-Q4_K_M.gguf\","
#define TIME    "\"test_time\": \"2025-04-24T11:58:50Z\","

static void convert(const char *text, const char *into)
{
    struct error err;
    const char *path = write_text(copy_path("results.json"), text);
    assert_true(llama_bench_is_json(path));
    expect_ok(llama_bench_convert(path, into, &err), &err);
    assert_true(copy_balances(into));
}

TEST_CASE(test_three_kinds_of_tests)
{
    const char *into = copy_path("b.db");
    convert("[{" HEAD FILE_AT TIME "\"n_prompt\": 512, \"n_gen\": 0, \"n_depth\": 100,"
            " \"samples_ns\": [1000, 3000]},"
            "{" HEAD FILE_AT TIME "\"n_prompt\": 0, \"n_gen\": 4, \"samples_ns\": [4000]},"
            "{" HEAD FILE_AT TIME "\"n_prompt\": 0, \"n_gen\": 1, \"samples_ns\": [4000]},"
            "{" HEAD FILE_AT TIME "\"n_prompt\": 8, \"n_gen\": 4, \"samples_ns\": [9000]}]",
            into);
    static const struct {
        const char *sql;
        int64_t value;
    } cases[] = {
        {"SELECT count(*) FROM run", 4},
        {"SELECT count(*) FROM inference", 5},
        {"SELECT sum(prefill_ns) FROM inference WHERE run = 1", 4000},
        {"SELECT max(prompt_tokens) FROM inference WHERE run = 1", 612},
        {"SELECT max(cached_prompt_tokens) FROM inference WHERE run = 1", 100},
        {"SELECT count(*) FROM inference WHERE run = 1 AND ttft_ns IS NULL AND decode_ns IS NULL",
         2},
        {"SELECT started_ns - 1745495930000000000 FROM inference WHERE run = 1 AND request = 2",
         1000},
        {"SELECT ttft_ns FROM inference WHERE run = 2", 1000},
        {"SELECT decode_ns FROM inference WHERE run = 2", 3000},
        {"SELECT tokens_per_second FROM v_inference WHERE generated_tokens = 4 AND ttft_ns > 0",
         1000000},
        {"SELECT count(*) FROM inference WHERE run = 3 AND ttft_ns = 4000 AND decode_ns IS NULL",
         1},
        {"SELECT count(*) FROM inference WHERE run = 4 AND e2e_ns = 9000 AND ttft_ns IS NULL", 1},
        {"SELECT count(*) FROM v_model WHERE name = 'some-Q4_K_M' AND architecture = 'qwen2'"
         " AND quantisation = 'Q4_K - Medium' AND parameters = 7615616512",
         4},
        {"SELECT count(DISTINCT run) FROM v_inference WHERE device = 'a GPU'", 4},
        {"SELECT count(*) FROM device", 0}, // nothing is known of it but its name
        {"SELECT count(*) FROM v_run WHERE worker_version = 'llama.cpp 8cf427ff (5163)'"
         " AND host = 'llama-bench'",
         4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (copy_integer(into, cases[i].sql) != cases[i].value)
            fail_msg("%s: %lld", cases[i].sql, (long long)copy_integer(into, cases[i].sql));
}

// Whatever the order of keys, and however they are written down.
TEST_CASE(test_the_same_is_the_same_run)
{
    static const char one[] =
        "[{" HEAD FILE_AT TIME "\"n_prompt\": 0, \"n_gen\": 4, \"samples_ns\": [4000]}]";
    static const char two[] =
        "{\"samples_ns\": [4000],\"n_gen\": 4, \"n_prompt\": 0," TIME HEAD FILE_AT
        "\"z\": 1}\n{\"samples_ns\":\n[4000],\"n_gen\": 4, \"n_prompt\": 0," TIME FILE_AT
        "\"cpu_info\": \"a CPU\"," HEAD "\"z\": 1}\n";
    static const char three[] = "{\"samples_ns\": [ 4000 ],\"n_gen\": 4, \"n_prompt\": 0," TIME HEAD
                                "\"model_filename\": \"models/some-Q4_K_M.gguf\"}";
    struct error err;
    convert(one, copy_path("1.db"));
    convert(three, copy_path("3.db"));
    // A key twice is no JSON that means anything.
    assert_int_equal(
        llama_bench_convert(write_text(copy_path("two.jsonl"), two), copy_path("2.db"), &err),
        STATUS_INVALID);
    assert_int_equal(copy_digest(copy_path("1.db")), copy_digest(copy_path("3.db")));
}

TEST_CASE(test_refusals)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"[", "expected"},
        {"[1]", "no object"},
        {"{}", "n_prompt"},
        {"[[{}]]", "no object"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 0, \"n_gen\": 0, \"samples_ns\": [1]}]",
         "nothing was tested"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": -1, \"n_gen\": 0, \"samples_ns\": [1]}]",
         "n_prompt"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 1.5, \"n_gen\": 0, \"samples_ns\": [1]}]",
         "n_prompt"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 9007199254740992, \"n_gen\": 0,"
         " \"n_depth\": 1, \"samples_ns\": [1]}]",
         "n_depth"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 99999999999999999999, \"n_gen\": 0}]", "integer"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 1, \"n_gen\": 0}]", "samples_ns"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 1, \"n_gen\": 0, \"samples_ns\": []}]",
         "samples_ns"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 1, \"n_gen\": 0, \"samples_ns\": [0]}]",
         "samples_ns"},
        {"[{" HEAD FILE_AT TIME "\"n_prompt\": 1, \"n_gen\": 0,"
         " \"samples_ns\": [9007199254740992, 1]}]",
         "samples_ns"},
        {"[{" HEAD FILE_AT "\"test_time\": \"noon\", \"n_prompt\": 1, \"n_gen\": 0,"
         " \"samples_ns\": [1]}]",
         "test_time"},
        {"[{" HEAD FILE_AT "\"test_time\": \"1925-04-24T11:58:50Z\", \"n_prompt\": 1,"
         " \"n_gen\": 0, \"samples_ns\": [1]}]",
         "test_time"},
        {"[{" HEAD TIME "\"model_filename\": \"models/\", \"n_prompt\": 1, \"n_gen\": 0,"
         " \"samples_ns\": [1]}]",
         "model_filename"},
        {"[{" HEAD TIME "\"model_filename\": \"a\\u0000b\", \"n_prompt\": 1, \"n_gen\": 0}]",
         "\\u0000"},
        {"[{\"a\": \"\xff\"}]", "unable to decode"},
        {"[{}] trailing", "expected"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {.text = ""};
        const char *into = copy_path("b.db");
        const enum status status =
            llama_bench_convert(write_text(copy_path("bad.json"), cases[i].text), into, &err);
        if (status != STATUS_INVALID || !strstr(err.text, cases[i].said))
            fail_msg("%s: %s: %s", cases[i].text, status_text(status), err.text);
        struct stat about;
        assert_int_not_equal(stat(into, &about), 0);
    }
}

TEST_CASE(test_without_results_there_is_no_data)
{
    static const char *const cases[] = {"[]", " [ ] \n", "[]\n[]\n"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {.text = ""};
        const char *into = copy_path("b.db");
        struct stat about;
        assert_int_equal(
            llama_bench_convert(write_text(copy_path("empty.json"), cases[i]), into, &err),
            STATUS_NO_DATA);
        assert_non_null(strstr(err.text, "empty.json: no results in it"));
        assert_int_not_equal(stat(into, &about), 0);
    }
}

TEST_CASE(test_what_is_json)
{
    assert_true(llama_bench_is_json(write_text(copy_path("a"), " \n\t [")));
    assert_true(llama_bench_is_json(write_text(copy_path("b"), "{")));
    assert_false(llama_bench_is_json(write_text(copy_path("c"), "SQLite format 3")));
    assert_false(llama_bench_is_json(write_text(copy_path("d"), "")));
    assert_false(llama_bench_is_json(copy_folder));
    assert_false(llama_bench_is_json(copy_path("missing")));
    assert_false(llama_bench_is_json("/dev/zero"));
}

TEST_MAIN_EACH(copy_set_up, copy_tear_down, test_three_kinds_of_tests,
               test_the_same_is_the_same_run, test_refusals, test_without_results_there_is_no_data,
               test_what_is_json)
