# The collector as a process, over real sockets.
foreach(name test_collector test_collector_files test_collector_keys test_collector_limits
             test_collector_live test_collector_retention test_collector_silence)
  add_executable(${name} ${name}.c collector_fixture.c)
  target_link_libraries(${name} PRIVATE
    inferstat_options inferstat_store inferstat_test_producer inferstat_test_folder
    PkgConfig::CMOCKA)
  target_compile_definitions(${name} PRIVATE INFERSTATD="$<TARGET_FILE:inferstatd>")
  add_dependencies(${name} inferstatd)
  inferstat_add_test(integration.${name} COMMAND $<TARGET_FILE:${name}>)
endforeach()

# Stores that are damaged, half copied or none.
foreach(class FlipTest ChecksumTest CopyTest ForeignTest)
  string(REGEX REPLACE "Test$" "" name "${class}")
  string(TOLOWER "${name}" name)
  inferstat_script_test(damage.${name} test_damage.py ${class} TIMEOUT 900)
  set_property(TEST damage.${name} APPEND PROPERTY ENVIRONMENT
               "MAKE_HISTORY=$<TARGET_FILE:make_history>")
endforeach()
