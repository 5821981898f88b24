# The streaming pipeline beside what it cannot beat.
add_executable(bench_pipeline bench_pipeline.c pipeline_sides.c)
target_link_libraries(bench_pipeline PRIVATE
  inferstat_options inferstat_bench inferstat_pipeline Threads::Threads m)

if(NOT INFERSTAT_SANITIZE)
  add_test(NAME bench.pipeline COMMAND bench_pipeline --json --quick)
  set_tests_properties(bench.pipeline PROPERTIES TIMEOUT 120 LABELS bench)
endif()
