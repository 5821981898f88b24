add_executable(bench_encode bench_encode.c)
target_link_libraries(bench_encode PRIVATE
  inferstat_options inferstat_bench inferstat_workload inferstat_device inferstat_sys)

if(NOT INFERSTAT_SANITIZE)
  add_test(NAME bench.encode COMMAND bench_encode --json --quick)
  add_test(NAME bench.pipeline_report
           COMMAND "${PROJECT_SOURCE_DIR}/scripts/bench_pipeline.sh" --quick
                   --build "${PROJECT_BINARY_DIR}" --out "${CMAKE_CURRENT_BINARY_DIR}/pipeline")
  set_tests_properties(bench.encode bench.pipeline_report PROPERTIES TIMEOUT 120 LABELS bench)
endif()
