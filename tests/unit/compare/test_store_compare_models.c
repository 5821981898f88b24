// Comparisons of two models, and of models without tokens.
#include <math.h>

#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

static struct query of_models(const char *before, const char *after)
{
    struct query query = {.kind = QUERY_COMPARE};
    set(query.filter.by[QUERY_BY_MODEL], before);
    set(query.compare.other.by[QUERY_BY_MODEL], after);
    return query;
}

TEST_CASE(two_models)
{
    add((struct measured){
        .run = 1, .host = "a", .model = "net", .requests = 400, .loads = 5, .noise = 0.01});
    add((struct measured){.run = 2,
                          .host = "a",
                          .model = "net-int8",
                          .noise = 0.01,
                          .digest = "cd34",
                          .quantisation = "int8",
                          .requests = 400,
                          .loads = 5,
                          .slowness = 0.5});
    add((struct measured){.run = 3, .host = "a", .model = "other", .requests = 100});
    change("UPDATE model SET file_bytes = iif(run = 1, 4000, 1000) WHERE run < 3;"
           "UPDATE model SET parameters = NULL WHERE run = 2");
    struct query query = of_models("net", "net-int8");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 12);
    verdict_is(result, "e2e_ns", "BETTER");
    verdict_is(result, "load.duration_ns", "BETTER");
    verdict_is(result, "busy_output_token_rate", "BETTER");
    for (size_t row = 0; row < result_row_count(result); row++) {
        assert_string_equal(text_at(result, row, "model"), "net / net-int8");
        assert_string_equal(text_at(result, row, "device"), "cpu");
        assert_string_equal(text_at(result, row, "before_quantisation"), "q8_0");
        assert_string_equal(text_at(result, row, "after_quantisation"), "int8");
        assert_int_equal(result_integer(result, row, "before_parameters", 0), 15000000);
        assert_int_equal(result_integer(result, row, "after_parameters", 0), 0);
        assert_true(isnan(result_number(result, row, "parameters_ratio", (double)NAN)));
        assert_int_equal(result_integer(result, row, "before_file_bytes", 0), 4000);
        assert_int_equal(result_integer(result, row, "after_file_bytes", 0), 1000);
        assert_true(result_number(result, row, "file_bytes_ratio", 0) == 0.25);
    }
    assert_string_equal(text_at(result, 0, "differences"), ""); // the models are meant to differ
    result_free(result);
    // No text is cut within a character.
    change("UPDATE model SET quantisation = 'q' || replace(hex(zeroblob(40)), '00', 'é')"
           " WHERE run = 2");
    result = ask(&query);
    assert_int_equal(strlen(text_at(result, 0, "after_quantisation")), 81);
    result_free(result);
    // The other way round, and each with itself.
    query = of_models("net-int8", "net");
    result = ask(&query);
    verdict_is(result, "e2e_ns", "WORSE");
    assert_true(result_number(result, 0, "file_bytes_ratio", 0) == 4);
    result_free(result);
    query = of_models("net", "net");
    result = ask(&query);
    verdict_is(result, "e2e_ns", "SAME");
    assert_string_equal(text_at(result, 0, "model"), "net");
    assert_string_equal(text_at(result, 0, "before_quantisation"), "");
    result_free(result);
}

// Only models may differ: a group is compared with that on the same device of a machine like it.
TEST_CASE(two_models_elsewhere)
{
    const struct measured net = {.run = 1, .host = "a", .model = "net", .requests = 100};
    struct measured others[] = {net, net, net};
    add(net);
    others[0].device = "gpu";
    others[1].cpu = "another cpu";
    others[2].quantisation = "int8";
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        static const char *const hosts[] = {"b", "c", "d"};
        others[i].run = (int)i + 2;
        others[i].model = "net-int8";
        others[i].host = hosts[i];
        add(others[i]);
    }
    struct query query = of_models("net", "net-int8");
    set(query.compare.other.by[QUERY_BY_HOST], "b");
    refused(&query, STATUS_INVALID,
            "nothing in common: only in the first: inference of net on cpu; only in the second: "
            "inference of net-int8 on gpu");
    set(query.compare.other.by[QUERY_BY_HOST], "c");
    refused(&query, STATUS_INVALID, "unlike: cpu cpu model / another cpu");
    set(query.compare.other.by[QUERY_BY_HOST], "d");
    result_free(ask(&query));
    // Of several runs that differ in a fact, it is not told.
    query.compare.other.by[QUERY_BY_HOST][0] = '\0';
    query.compare.force = true;
    struct result *result = ask(&query);
    assert_string_equal(text_at(result, 0, "after_quantisation"), "");
    assert_int_equal(result_integer(result, 0, "after_parameters", 0), 15000000);
    result_free(result);
}

TEST_CASE(a_model_that_is_not_there)
{
    add((struct measured){.run = 1, .host = "a", .model = "ds-cnn", .requests = 100});
    add((struct measured){.run = 2, .host = "b", .model = "ds-cnn-int8", .requests = 100});
    struct query query = of_models("ds-cnn", "ds-cn-int8");
    refused(&query, STATUS_NO_DATA,
            "the second of the two: no model is called \"ds-cn-int8\" (did you mean ds-cnn-int8?)");
    query = of_models("zebra", "ds-cnn");
    refused(&query, STATUS_NO_DATA,
            "the first of the two: no model is called \"zebra\" (inferstat models lists");
    query = of_models("ds-cnn", "ds-cnn-int8"); // which is there, but not on that host
    set(query.compare.other.by[QUERY_BY_HOST], "a");
    refused(&query, STATUS_NO_DATA, "the second of the two: no requests, loads, operations or");
}

// Models without tokens have neither speeds nor rates of them, but of items.
TEST_CASE(requests_without_tokens)
{
    static const char *const expected[] = {"e2e_ns", "items_per_second", "error_ratio",
                                           "request_rate"};
    add((struct measured){.run = 1, .host = "a", .model = "net", .requests = 400});
    add((struct measured){
        .run = 2, .host = "a", .model = "net-int8", .requests = 400, .slowness = 0.5});
    change("UPDATE inference SET prompt_tokens = NULL, cached_prompt_tokens = NULL,"
           " generated_tokens = NULL, prefill_ns = NULL, ttft_ns = NULL, decode_ns = NULL,"
           " itl_p99_ns = NULL, items = 8");
    const struct query query = of_models("net", "net-int8");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), COUNT_OF(expected));
    for (size_t row = 0; row < COUNT_OF(expected); row++)
        assert_string_equal(text_at(result, row, "metric"), expected[row]);
    verdict_is(result, "e2e_ns", "BETTER");
    verdict_is(result, "items_per_second", "BETTER");
    result_free(result);
    // Other batches are other work.
    change("UPDATE inference SET items = 1 WHERE run = 2");
    result = ask(&query);
    verdict_is(result, "e2e_ns", "UNDECIDED");
    verdict_is(result, "items_per_second", "UNDECIDED");
    assert_string_equal(text_at(result, row_of(result, "e2e_ns"), "note"),
                        "the work differs: median items 8 / 1");
    result_free(result);
    // Requests with tokens and requests with items have no work in common.
    change("UPDATE inference SET items = NULL, prompt_tokens = 4, cached_prompt_tokens = 0,"
           " generated_tokens = 2, prefill_ns = 1 WHERE run = 2");
    result = ask(&query);
    verdict_is(result, "e2e_ns", "UNDECIDED");
    assert_string_equal(text_at(result, row_of(result, "e2e_ns"), "note"),
                        "the work differs: median prompt_tokens none / 4; the work differs: median "
                        "generated_tokens none / 2; the work differs: median items 8 / none");
    result_free(result);
    // One side with tokens is enough.
    change("UPDATE inference SET generated_tokens = 1 WHERE run = 2");
    result = ask(&query);
    (void)row_of(result, "output_token_rate");
    result_free(result);
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, two_models, two_models_elsewhere,
               a_model_that_is_not_there, requests_without_tokens)
