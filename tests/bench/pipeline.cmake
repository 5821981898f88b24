# The streaming pipeline beside what it cannot beat.
add_executable(bench_pipeline bench_pipeline.c pipeline_sides.c)
target_link_libraries(bench_pipeline PRIVATE
  inferstat_options inferstat_bench inferstat_pipeline Threads::Threads m)

if(NOT INFERSTAT_SANITIZE)
  inferstat_add_test(bench.pipeline LABELS bench
    COMMAND $<TARGET_FILE:bench_pipeline> --json --quick)
endif()
