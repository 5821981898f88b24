# What the command line prints of a store whose numbers are fixed.
add_executable(make_store "${PROJECT_SOURCE_DIR}/tests/support/store/make_store.c")
target_compile_definitions(make_store PRIVATE STORE_SQL="${CMAKE_CURRENT_SOURCE_DIR}/store.sql")
target_link_libraries(make_store PRIVATE inferstat_options inferstat_store)

inferstat_script_test(golden.cli cli.sh "$<TARGET_FILE:make_store>"
                      "$<TARGET_FILE:make_measured>")
inferstat_script_test(golden.pages pages.sh "$<TARGET_FILE:make_store>")
