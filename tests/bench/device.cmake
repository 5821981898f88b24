# What a device reaches beside its own memory.
add_executable(bench_device bench_device.c)
target_link_libraries(bench_device PRIVATE
  inferstat_options inferstat_bench inferstat_workload inferstat_device inferstat_sys)
if(INFERSTAT_WITH_CUDA)
  add_library(inferstat_bench_unfused STATIC unfused.cu)
  target_include_directories(inferstat_bench_unfused PRIVATE "${PROJECT_SOURCE_DIR}")
  set_target_properties(inferstat_bench_unfused PROPERTIES
                        CUDA_STANDARD 20 CUDA_RUNTIME_LIBRARY Static)
  target_link_libraries(inferstat_bench_unfused PRIVATE $<LINK_ONLY:inferstat_device>)
  target_link_libraries(bench_device PRIVATE inferstat_bench_unfused)
else()
  target_sources(bench_device PRIVATE unfused_none.c)
endif()

if(NOT INFERSTAT_SANITIZE)
  inferstat_add_test(bench.device LABELS bench
    COMMAND $<TARGET_FILE:bench_device> --json --quick --device cpu)
endif()
