inferstat_unit_test(test_encode_kernels THREADS LINK inferstat_workload)
inferstat_add_test(unit.test_encode_kernels_large LABELS unit
                   COMMAND $<TARGET_FILE:test_encode_kernels> large)
inferstat_unit_test(test_npy LINK inferstat_workload)
inferstat_unit_test(test_pipeline_record LINK inferstat_workload)
inferstat_unit_test(test_encoding THREADS LINK inferstat_workload inferstat_monitor_fixture)
inferstat_unit_test(test_encoding_devices THREADS LINK inferstat_workload inferstat_monitor_fixture)
