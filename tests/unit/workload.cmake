# What these tests share: vectors from outside, and model files of their own.
add_library(inferstat_test_models STATIC llm_fixture.c model_files.c vectors.c)
target_link_libraries(inferstat_test_models PUBLIC inferstat_workload PkgConfig::CMOCKA)

inferstat_unit_test(test_device THREADS LINK inferstat_device)
inferstat_unit_test(test_device_record THREADS LINK inferstat_workload inferstat_monitor_fixture)
inferstat_unit_test(test_gguf LINK inferstat_test_models)
inferstat_unit_test(test_vectors LINK inferstat_test_models)
inferstat_unit_test(test_llama THREADS LINK inferstat_test_models)
inferstat_unit_test(test_llama_refusals THREADS LINK inferstat_test_models)
target_sources(test_llama PRIVATE llama_fixture.c)
target_sources(test_llama_refusals PRIVATE llama_fixture.c)
inferstat_unit_test(test_load THREADS LINK inferstat_test_models)
inferstat_unit_test(test_llm THREADS LINK inferstat_test_models)
inferstat_unit_test(test_prompts LINK inferstat_test_models)
inferstat_unit_test(test_text_stream LINK inferstat_workload)
inferstat_unit_test(test_token_sampler LINK inferstat_workload)
inferstat_unit_test(test_tokenizer LINK inferstat_test_models)
inferstat_unit_test(test_repeats LINK inferstat_core)
target_sources(test_repeats PRIVATE
               "${PROJECT_SOURCE_DIR}/server/worker/json.c"
               "${PROJECT_SOURCE_DIR}/server/worker/repeats.c")
inferstat_unit_test(test_worker_json LINK inferstat_workload)
target_sources(test_worker_json PRIVATE
               "${PROJECT_SOURCE_DIR}/server/worker/json.c")
