add_executable(bench_encode bench_encode.c)
target_link_libraries(bench_encode PRIVATE
  inferstat_options inferstat_bench inferstat_workload inferstat_device inferstat_sys)

if(NOT INFERSTAT_SANITIZE)
  add_test(NAME bench.encode COMMAND bench_encode --json --quick)
  set_tests_properties(bench.encode PROPERTIES TIMEOUT 120 LABELS bench)
endif()
