inferstat_room(inferstat_fake_collector ../support/fake_collector.c
  LINK inferstat_core inferstat_sys inferstat_wire Threads::Threads)

inferstat_room(inferstat_monitor_fixture ../support/monitor_fixture.c
  LINK inferstat_monitor inferstat_fake_collector inferstat_test_folder PkgConfig::CMOCKA)

inferstat_unit_test(test_gaps THREADS LINK inferstat_monitor)
inferstat_unit_test(test_local THREADS LINK inferstat_monitor)
inferstat_unit_test(test_runfile THREADS LINK inferstat_monitor inferstat_test_folder)
inferstat_unit_test(test_tracker THREADS
  LINK inferstat_monitor inferstat_fake_collector inferstat_test_folder m)
foreach(test test_monitor test_publisher test_replay)
  inferstat_unit_test(${test} THREADS LINK inferstat_monitor_fixture)
endforeach()
target_compile_definitions(test_replay PRIVATE
  INFERSTAT_UNIT_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}")
