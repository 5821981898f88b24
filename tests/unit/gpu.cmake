# The timeline beside a device's own trace, where CUPTI is found beside the CUDA compiler.
inferstat_unit_test(test_activity LINK inferstat_pipeline m)
target_sources(test_activity PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/gpu/activity.c")

set(INFERSTAT_CUPTI FALSE)
if(INFERSTAT_WITH_CUDA)
  find_package(CUDAToolkit QUIET)
  find_path(CUPTI_INCLUDE cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
            "${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include")
  find_library(CUPTI_LIBRARY cupti HINTS ${CUDAToolkit_LIBRARY_DIR} "${CUDAToolkit_TARGET_DIR}/lib"
               "${CUDAToolkit_TARGET_DIR}/extras/CUPTI/lib64")
  if(CUPTI_INCLUDE AND CUPTI_LIBRARY)
    set(INFERSTAT_CUPTI TRUE)
  endif()
endif()
message(STATUS "CUPTI: ${INFERSTAT_CUPTI}")

if(INFERSTAT_CUPTI)
  add_library(inferstat_test_cupti STATIC
              "${PROJECT_SOURCE_DIR}/tests/support/gpu/cupti_trace.c")
  target_include_directories(inferstat_test_cupti SYSTEM PUBLIC "${CUPTI_INCLUDE}"
                             ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(inferstat_test_cupti PUBLIC inferstat_options "${CUPTI_LIBRARY}"
                        Threads::Threads)
  target_link_libraries(test_activity PRIVATE inferstat_test_cupti)
  target_compile_definitions(test_activity PRIVATE WITH_CUPTI)

  add_executable(test_cupti_gpu test_cupti.c
                 "${PROJECT_SOURCE_DIR}/tests/support/gpu/activity.c")
  target_link_libraries(test_cupti_gpu PRIVATE inferstat_options inferstat_pipeline
                        inferstat_device inferstat_test_cupti PkgConfig::CMOCKA m)
  inferstat_add_test(gpu.test_cupti COMMAND $<TARGET_FILE:test_cupti_gpu> LABELS gpu)
endif()

# The pipeline with ranges for profilers, whether or not the build has them.
if(NVTX_INCLUDE)
  get_target_property(pipeline_folder inferstat_pipeline SOURCE_DIR)
  get_target_property(pipeline_sources inferstat_pipeline SOURCES)
  list(TRANSFORM pipeline_sources PREPEND "${pipeline_folder}/")
  inferstat_unit_test(test_range THREADS LINK inferstat_test_device_fault ${CMAKE_DL_LIBS} m)
  target_sources(test_range PRIVATE pipeline_rig.c ${pipeline_sources}
                 "${PROJECT_SOURCE_DIR}/server/device/cuda/range.c")
  target_compile_definitions(test_range PRIVATE INFERSTAT_NVTX)
  target_include_directories(test_range SYSTEM PRIVATE "${NVTX_INCLUDE}")
endif()
