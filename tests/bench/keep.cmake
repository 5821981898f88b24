# What retention costs, and what the store's rows do.
add_executable(bench_keep bench_keep.c)
target_link_libraries(bench_keep PRIVATE
  inferstat_options inferstat_bench_store inferstat_bench inferstat_store inferstat_test_history
  inferstat_test_producer inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_keep PRIVATE
  INFERSTATD="$<TARGET_FILE:inferstatd>" INFERSTAT="$<TARGET_FILE:inferstat>")
add_dependencies(bench_keep inferstatd inferstat)

add_executable(bench_schema bench_schema.c)
target_link_libraries(bench_schema PRIVATE
  inferstat_options inferstat_bench inferstat_store inferstat_test_producer inferstat_test_folder)

if(NOT INFERSTAT_SANITIZE)
  inferstat_add_test(bench.keep COMMAND $<TARGET_FILE:bench_keep> --json --quick LABELS bench)
  inferstat_add_test(bench.schema COMMAND $<TARGET_FILE:bench_schema> --json --quick LABELS bench)
endif()
