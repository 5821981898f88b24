# Loss of power under the store's writer.
inferstat_unit_test(test_store_power THREADS
  LINK inferstat_collector inferstat_test_producer inferstat_test_folder)
target_sources(test_store_power PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/power_vfs.c")
target_link_options(test_store_power PRIVATE -Wl,--wrap=database_open_writer
                    -Wl,--wrap=fsync -Wl,--wrap=renameat2)
# INFERSTAT_TEST_VOLUME asks for more.
set_tests_properties(unit.test_store_power PROPERTIES TIMEOUT 600)
