# The checks of a GPU as they are packed and run, with the emulated CUDA runtime in place of
# a device's: the worker and the benchmarks on it, in the build's folder `emulated`, which
# the test lays out as a build with CUDA is.  What they take is no figure of any device.
if(TARGET inferstat_device_emulated AND NOT INFERSTAT_SANITIZE)
  function(inferstat_emulated_program name)
    cmake_parse_arguments(PROGRAM "" "" "LINK" ${ARGN})
    add_executable(${name}-emulated ${PROGRAM_UNPARSED_ARGUMENTS})
    target_link_libraries(${name}-emulated PRIVATE
                          inferstat_options inferstat_device_emulated ${PROGRAM_LINK})
    set_target_properties(${name}-emulated PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/emulated")
  endfunction()

  get_target_property(worker_folder inferstat-worker SOURCE_DIR)
  get_target_property(worker_sources inferstat-worker SOURCES)
  list(TRANSFORM worker_sources PREPEND "${worker_folder}/")
  inferstat_emulated_program(inferstat-worker ${worker_sources}
                             LINK inferstat_workload inferstat_monitor inferstat_sys inferstat_core)

  set(bench "${PROJECT_SOURCE_DIR}/tests/bench")
  file(GLOB pipeline CONFIGURE_DEPENDS "${bench}/bench_pipeline.c" "${bench}/pipeline_*.c")
  inferstat_emulated_program(bench_pipeline ${pipeline}
                             LINK inferstat_bench inferstat_pipeline Threads::Threads m)
  inferstat_emulated_program(bench_device "${bench}/bench_device.c" "${bench}/unfused.cu"
                             LINK inferstat_bench inferstat_workload m)
  inferstat_emulated_program(zoo_probe "${PROJECT_SOURCE_DIR}/tests/support/zoo/zoo_probe.c"
                             LINK inferstat_test_zoo)
  set_source_files_properties("${bench}/unfused.cu" PROPERTIES LANGUAGE CXX)
  get_target_property(emulation inferstat_device_emulated SOURCE_DIR)
  target_include_directories(bench_device-emulated PRIVATE "${emulation}/cuda")
  target_compile_features(bench_device-emulated PRIVATE cxx_std_20)
  target_compile_options(bench_device-emulated PRIVATE
                         $<$<COMPILE_LANGUAGE:CXX>:-xc++;-Wno-unknown-pragmas>)

  inferstat_script_test(worker.gpu_emulated test_gpu_emulated.sh LABELS worker emulated TIMEOUT 900)
endif()

inferstat_script_test(worker.parquet test_parquet.sh LABELS worker)
