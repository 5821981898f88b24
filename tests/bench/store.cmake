add_library(inferstat_bench STATIC bench.c)
target_link_libraries(inferstat_bench PUBLIC
  inferstat_options inferstat_sys inferstat_core inferstat_test_folder m)

add_library(inferstat_bench_store STATIC bench_store.c)
target_link_libraries(inferstat_bench_store PUBLIC inferstat_options inferstat_bench inferstat_store)

add_executable(bench_ingest
  bench_ingest.c ingest_loop.c ingest_fold.c ingest_crowd.c ingest_victoria.c victoria.c)
target_link_libraries(bench_ingest PRIVATE
  inferstat_options inferstat_bench_store inferstat_bench inferstat_collector inferstat_store inferstat_test_producer
  inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_ingest PRIVATE INFERSTATD="$<TARGET_FILE:inferstatd>")
add_dependencies(bench_ingest inferstatd)

add_executable(bench_latency bench_latency.c)
target_link_libraries(bench_latency PRIVATE
  inferstat_options inferstat_bench inferstat_monitor inferstat_store inferstat_test_producer
  inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_latency PRIVATE INFERSTATD="$<TARGET_FILE:inferstatd>")
add_dependencies(bench_latency inferstatd)

add_executable(bench_query bench_query.c query_ask.c query_victoria.c victoria.c)
target_link_libraries(bench_query PRIVATE
  inferstat_options inferstat_bench_store inferstat_bench inferstat_remote inferstat_store inferstat_test_history
  inferstat_test_rows inferstat_test_producer inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_query PRIVATE
  INFERSTATD="$<TARGET_FILE:inferstatd>" INFERSTAT="$<TARGET_FILE:inferstat>")
add_dependencies(bench_query inferstatd inferstat)

add_executable(bench_alerts bench_alerts.c)
target_link_libraries(bench_alerts PRIVATE
  inferstat_options inferstat_bench inferstat_store inferstat_test_rows inferstat_test_history
  inferstat_test_folder)

add_executable(bench_samples bench_samples.c samples/samples_fleet.c samples/samples_history.c)
target_link_libraries(bench_samples PRIVATE
  inferstat_options inferstat_bench_store inferstat_bench inferstat_store inferstat_test_history
  inferstat_test_producer inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_samples PRIVATE INFERSTATD="$<TARGET_FILE:inferstatd>")
add_dependencies(bench_samples inferstatd)

add_executable(bench_views dashboard/bench_views.c samples/samples_fleet.c)
target_link_libraries(bench_views PRIVATE
  inferstat_options inferstat_bench_store inferstat_bench inferstat_tui inferstat_store inferstat_test_history
  inferstat_test_producer inferstat_test_folder Threads::Threads)
target_compile_definitions(bench_views PRIVATE INFERSTATD="$<TARGET_FILE:inferstatd>")
add_dependencies(bench_views inferstatd)

# A few records, to see that the benches work; what they find is nobody's verdict.
if(NOT INFERSTAT_SANITIZE)
  inferstat_add_test(bench.ingest COMMAND $<TARGET_FILE:bench_ingest> --json --quick LABELS bench)
  inferstat_add_test(bench.latency COMMAND $<TARGET_FILE:bench_latency> --json --quick LABELS bench)
  inferstat_add_test(bench.alerts COMMAND $<TARGET_FILE:bench_alerts> --json --quick LABELS bench)
  inferstat_add_test(bench.samples COMMAND $<TARGET_FILE:bench_samples> --json --quick LABELS bench)
  inferstat_add_test(fleet.samples COMMAND $<TARGET_FILE:bench_samples> --seconds 60 LABELS fleet)
  # Alone: it takes most of two processors, and the other tests of fleets have bounds of time.
  set_tests_properties(fleet.samples PROPERTIES RUN_SERIAL TRUE)
  inferstat_add_test(bench.views COMMAND $<TARGET_FILE:bench_views> --json --quick LABELS bench)
  if(TARGET fake_nvml AND TARGET inferstat-worker)
    inferstat_add_test(bench.top LABELS bench
      COMMAND "${INFERSTAT_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/dashboard/bench_top.py" --json --quick
              --build "${PROJECT_BINARY_DIR}")
  endif()
  inferstat_add_test(bench.metrics LABELS bench
    COMMAND "${INFERSTAT_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/bench_metrics.py" --json --quick
            --build "${PROJECT_BINARY_DIR}")
  inferstat_add_test(bench.query COMMAND $<TARGET_FILE:bench_query> --json --quick LABELS bench)
endif()
