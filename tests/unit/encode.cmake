inferstat_unit_test(test_encode_kernels LINK inferstat_workload)
inferstat_unit_test(test_npy LINK inferstat_workload)
inferstat_unit_test(test_encoding LINK inferstat_workload inferstat_monitor_fixture)
inferstat_unit_test(test_encoding_devices LINK inferstat_workload inferstat_monitor_fixture)
# Large states by formula: long where the machine has much else to do.
set_tests_properties(unit.test_encode_kernels PROPERTIES TIMEOUT 300)
