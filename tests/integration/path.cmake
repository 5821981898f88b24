# The whole path, over ipc and over TCP, each class a test of its own.
find_program(PYTHON3 python3 REQUIRED)
foreach(transport PathTest TcpPathTest)
  add_test(NAME integration.path.${transport}
           COMMAND ${PYTHON3} -B "${CMAKE_CURRENT_SOURCE_DIR}/test_path.py" ${transport})
  set_tests_properties(integration.path.${transport} PROPERTIES
    TIMEOUT 240
    ENVIRONMENT "INFERSTATD=$<TARGET_FILE:inferstatd>;WORKER=$<TARGET_FILE:inferstat-worker>;INFERSTAT=$<TARGET_FILE:inferstat>")
endforeach()
