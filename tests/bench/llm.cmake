# Language models on the CPU, beside llama.cpp where LLAMA_BENCH names its bench.
add_executable(bench_llm bench_llm.c)
target_link_libraries(bench_llm PRIVATE
  inferstat_options inferstat_bench inferstat_workload inferstat_device inferstat_sys)

if(NOT INFERSTAT_SANITIZE)
  inferstat_add_test(bench.llm COMMAND $<TARGET_FILE:bench_llm> --json --quick LABELS bench)
endif()
