add_executable(bench_encode bench_encode.c)
target_link_libraries(bench_encode PRIVATE
  inferstat_options inferstat_bench inferstat_workload inferstat_device inferstat_sys)

if(NOT INFERSTAT_SANITIZE)
  # The same encoders for scripts/bench_encode_peers.py.
  add_library(bench_encode_library MODULE encode_library.c)
  target_link_libraries(bench_encode_library PRIVATE
    inferstat_options inferstat_device inferstat_sys)

  inferstat_add_test(bench.encode COMMAND $<TARGET_FILE:bench_encode> --json --quick LABELS bench)
  inferstat_add_test(bench.pipeline_report LABELS bench
    COMMAND "${PROJECT_SOURCE_DIR}/scripts/bench_pipeline.sh" --quick
            --build "${PROJECT_BINARY_DIR}" --out "${CMAKE_CURRENT_BINARY_DIR}/pipeline")
  # Skipped where NumPy is not there.
  inferstat_add_test(bench.encode_peers LABELS bench
    COMMAND "${INFERSTAT_PYTHON}" "${PROJECT_SOURCE_DIR}/scripts/bench_encode_peers.py"
            --build "${PROJECT_BINARY_DIR}" --qubits 6 --batch 5 --batches 3 --seconds 0.01)
endif()
