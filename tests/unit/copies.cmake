inferstat_room(inferstat_test_copies copy_fixture.c LINK inferstat_store inferstat_test_folder
               PkgConfig::CMOCKA)
inferstat_unit_test(test_store_copy LINK inferstat_test_copies)
inferstat_unit_test(test_store_import LINK inferstat_test_copies)
inferstat_unit_test(test_bundle_baselines LINK inferstat_test_copies)
inferstat_unit_test(test_llama_bench LINK inferstat_cli inferstat_test_copies)
inferstat_unit_test(test_bundle_expired LINK inferstat_rollup_rig inferstat_test_copies)
