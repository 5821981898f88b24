# The real programs, killed, stopped, cut off and starved.
add_executable(fault_engine "${PROJECT_SOURCE_DIR}/tests/support/fault_engine.c")
target_link_libraries(fault_engine PRIVATE inferstat_options inferstat_shared Threads::Threads)
add_library(shift_clock MODULE "${PROJECT_SOURCE_DIR}/tests/support/shift_clock.c")
target_compile_definitions(shift_clock PRIVATE _GNU_SOURCE)
set_target_properties(shift_clock PROPERTIES PREFIX "")
