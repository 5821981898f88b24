# The real programs, killed, stopped, cut off and starved.
add_executable(fault_engine "${PROJECT_SOURCE_DIR}/tests/support/fault_engine.c")
target_link_libraries(fault_engine PRIVATE inferstat_options inferstat_shared Threads::Threads)
add_library(shift_clock MODULE "${PROJECT_SOURCE_DIR}/tests/support/shift_clock.c")
target_compile_definitions(shift_clock PRIVATE _GNU_SOURCE)
set_target_properties(shift_clock PROPERTIES PREFIX "")

# faults.NAME runs the class CLASS of SCRIPT.
function(inferstat_fault_test name script class timeout)
  inferstat_script_test(faults.${name} ${script} ${class} LABELS faults TIMEOUT ${timeout})
  set_property(TEST faults.${name} APPEND PROPERTY ENVIRONMENT
               "FAULT_ENGINE=$<TARGET_FILE:fault_engine>" "SHIFT_CLOCK=$<TARGET_FILE:shift_clock>")
endfunction()

# INFERSTAT_TEST_VOLUME=80 takes that long.
inferstat_fault_test(kills test_faults.py KillTest 7200)
inferstat_fault_test(crash_loop test_faults.py CrashLoopTest 120)
inferstat_fault_test(stops test_faults.py StopTest 300)
inferstat_fault_test(clocks test_faults.py ClockTest 120)
inferstat_fault_test(stores test_faults.py StoreTest 120)
inferstat_fault_test(reboot test_faults.py RebootTest 120)
inferstat_fault_test(store_disk test_faults_machine.py StoreDiskTest 180)
inferstat_fault_test(store_read_only test_faults_machine.py ImmutableStoreTest 120)
inferstat_fault_test(spool_disk test_faults_machine.py SpoolDiskTest 180)
inferstat_fault_test(run_disk test_faults_machine.py RunDiskTest 180)
inferstat_fault_test(network test_faults_machine.py NetworkTest 300)
inferstat_fault_test(memory test_faults_machine.py MemoryTest 180)
