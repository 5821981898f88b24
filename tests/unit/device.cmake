# Tests over streams share what makes their waits deterministic.
inferstat_unit_test(test_device_list LINK inferstat_device)
inferstat_unit_test(test_stream THREADS LINK inferstat_device)
target_sources(test_stream PRIVATE stream_fixture.c)
inferstat_unit_test(test_device_fault THREADS LINK inferstat_test_device_fault)
target_sources(test_device_fault PRIVATE stream_fixture.c)
inferstat_unit_test(test_properties THREADS LINK inferstat_test_device_fault inferstat_test_folder)
target_sources(test_properties PRIVATE stream_fixture.c)
inferstat_unit_test(test_stream_graphs THREADS LINK inferstat_test_device_fault)
target_sources(test_stream_graphs PRIVATE stream_fixture.c)

# The CUDA back end: on the emulated runtime, and on a device where there is one.  DEFINE
# is of both, EMULATED of the slow one alone.
function(inferstat_cuda_test name)
  cmake_parse_arguments(TEST "" "" "LINK;DEFINE;EMULATED" ${ARGN})
  if(TARGET inferstat_device_emulated)
    add_executable(${name}_emulated ${name}.c)
    target_link_libraries(${name}_emulated PRIVATE inferstat_device_emulated ${TEST_LINK}
                          PkgConfig::CMOCKA)
    target_compile_definitions(${name}_emulated PRIVATE ${TEST_DEFINE} ${TEST_EMULATED})
    inferstat_add_test(emulated.${name} COMMAND $<TARGET_FILE:${name}_emulated>
                       LABELS emulated TIMEOUT 600)
  endif()
  if(INFERSTAT_WITH_CUDA)
    add_executable(${name}_gpu ${name}.c)
    target_link_libraries(${name}_gpu PRIVATE inferstat_options inferstat_device ${TEST_LINK}
                          PkgConfig::CMOCKA)
    target_compile_definitions(${name}_gpu PRIVATE ${TEST_DEFINE})
    inferstat_add_test(gpu.${name} COMMAND $<TARGET_FILE:${name}_gpu> LABELS gpu)
  endif()
endfunction()

inferstat_cuda_test(test_cuda_tensors)
inferstat_cuda_test(test_cuda_encode LINK inferstat_workload)
inferstat_cuda_test(test_encoding LINK inferstat_workload inferstat_monitor_fixture
                    DEFINE ENCODING_ON_CUDA)
inferstat_cuda_test(test_vectors LINK inferstat_test_models DEFINE VECTORS_ON_CUDA
                    EMULATED VECTORS_BRIEF)
# The rig of the pipeline's tests, for a device.
inferstat_cuda_test(test_pipeline_races LINK inferstat_pipeline inferstat_test_device_fault
                    DEFINE RIG_ON_CUDA)
foreach(kind emulated gpu)
  if(TARGET test_pipeline_races_${kind})
    target_sources(test_pipeline_races_${kind} PRIVATE pipeline_rig.c)
  endif()
endforeach()
if(TARGET inferstat_device_emulated)
  inferstat_unit_test(test_cuda_faults THREADS LINK inferstat_device_emulated)
  inferstat_unit_test(test_cuda_ways LINK inferstat_device_emulated)
  inferstat_unit_test(test_cuda_memory THREADS LINK inferstat_device_emulated inferstat_test_models)
  inferstat_unit_test(test_nvml LINK inferstat_device_emulated)
  add_dependencies(test_nvml nvml_fake)
  set_tests_properties(unit.test_nvml PROPERTIES
                       ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:nvml_fake>")
  inferstat_add_test(unit.test_nvml_none COMMAND $<TARGET_FILE:test_nvml> none LABELS unit)
  # Several devices, and one of them lost: there is no real one to lose.
  add_executable(test_encoding_devices_emulated test_encoding_devices.c)
  target_link_libraries(test_encoding_devices_emulated PRIVATE inferstat_device_emulated
                        inferstat_workload inferstat_monitor_fixture PkgConfig::CMOCKA)
  target_compile_definitions(test_encoding_devices_emulated PRIVATE ENCODING_ON_CUDA)
  inferstat_add_test(emulated.test_encoding_devices LABELS emulated
                     COMMAND $<TARGET_FILE:test_encoding_devices_emulated>)
endif()
