# What these tests share: a job whose data can be checked.
add_library(inferstat_test_pipeline STATIC pipeline_rig.c)
target_link_libraries(inferstat_test_pipeline PUBLIC
  inferstat_options inferstat_pipeline inferstat_test_device_fault PkgConfig::CMOCKA)

inferstat_unit_test(test_copy_overlap_log LINK inferstat_pipeline)
inferstat_unit_test(test_overlap LINK inferstat_pipeline)
inferstat_unit_test(test_pipeline THREADS LINK inferstat_test_pipeline)
target_sources(test_pipeline PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/toy_pipeline.c")
inferstat_unit_test(test_pipeline_faults THREADS LINK inferstat_test_pipeline)
inferstat_unit_test(test_pipeline_races THREADS LINK inferstat_test_pipeline)
inferstat_unit_test(test_slot_pool THREADS LINK inferstat_test_pipeline)
inferstat_unit_test(test_timeline THREADS LINK inferstat_test_pipeline m)
inferstat_unit_test(test_autotune THREADS LINK inferstat_test_pipeline)
inferstat_unit_test(test_tuning THREADS LINK inferstat_pipeline inferstat_test_folder)
